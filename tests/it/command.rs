//! The command, run in a folder of its own.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// The repository.
pub(crate) const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// A file of the repository.
pub(crate) fn shipped(path: &str) -> String {
    format!("{REPOSITORY}/{path}")
}

/// The graph of the main job.
pub(crate) fn news_report() -> String {
    shipped("graphs/news_report.yaml")
}

/// The graph of an agent: a model, and these tools for as long as it calls some.
pub(crate) fn agent_graph(name: &str, tools: &str) -> String {
    format!(
        "schema: graph/v1
name: {name}
state:
  messages: {{ type: list<message>, reduce: messages }}
limits: {{ max_visits: {{ agent: 9 }} }}
start: agent
nodes:
  agent:
    type: model
    model: default
    tools: [{tools}]
    then:
      - when: has_tool_calls(last(state.messages))
        goto: act
      - else: end
  act: {{ type: tools, tools: [{tools}], then: agent }}
"
    )
}

/// What a command did.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Ran {
    /// The last line of standard output as JSON.
    pub(crate) fn outcome(&self) -> serde_json::Value {
        let last = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(last)
            .unwrap_or_else(|error| panic!("{error} in {last}\n{}", self.stderr))
    }
}

/// A working directory with a home for threads, and a record of what was done there.
pub(crate) struct Desk {
    folder: TempDir,
    record: String,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            record: String::new(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where threads live.
    pub(crate) fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// Writes a file.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The command, not run yet.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tine"));
        command
            .args(args)
            .current_dir(self.path())
            .env_remove("NO_COLOR")
            .env_remove("COLUMNS")
            .env_remove("TINE_LOG")
            .env("TINE_HOME", self.home())
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        command
    }

    /// Runs the command.
    pub(crate) fn tine(&self, args: &[&str]) -> Ran {
        finish(&mut self.command(args))
    }

    /// Runs the command with the configuration that ships.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.tine(&with_config(args))
    }

    /// Starts the command with the configuration that ships, its output to be read.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(&with_config(args))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs the command and writes it down, as it would look in a terminal.
    pub(crate) fn record(&mut self, args: &[&str]) -> Ran {
        // Only what runs graphs takes a configuration.
        let ran = match args.first() {
            Some(&"run" | &"tools" | &"validate") => self.run(args),
            _ => self.tine(args),
        };
        self.write_down(args, ran)
    }

    /// The same, with the configuration that the command finds itself.
    pub(crate) fn record_bare(&mut self, args: &[&str]) -> Ran {
        let ran = self.tine(args);
        self.write_down(args, ran)
    }

    fn write_down(&mut self, args: &[&str], ran: Ran) -> Ran {
        let shown: Vec<String> = args.iter().map(|arg| word(arg)).collect();
        let _ = writeln!(
            self.record,
            "$ tine {}\n{}",
            shown.join(" "),
            ran.stdout.trim_end()
        );
        if !ran.stderr.is_empty() {
            let _ = writeln!(self.record, "[stderr]\n{}", ran.stderr.trim_end());
        }
        let _ = writeln!(self.record, "[exit {}]\n", ran.code);
        ran
    }

    /// Writes something down that was done by other means.
    pub(crate) fn note(mut self, text: &str) -> Self {
        self.record.push_str(text);
        self
    }

    /// Has what was written down say something else for what is never the same.
    pub(crate) fn rename(&mut self, text: &str, name: &str) {
        self.record = self.record.replace(text, name);
    }

    /// Compares what was written down with a snapshot.
    pub(crate) fn assert(self, name: &str) {
        let folder = std::fs::canonicalize(self.path()).unwrap();
        let folders = [self.path(), folder.as_path()];
        let mut record = self.record.clone();
        for folder in folders {
            record = record.replace(folder.to_str().unwrap(), "<desk>");
        }
        let record = record.replace(REPOSITORY, "<tine>");
        insta::with_settings!({
            filters => vec![
                // The room that short ids take in a list depends on how much they share.
                (r"(?m)^([*o]) [0-9a-f]{8}-[0-9a-f-]{4,27} +", "$1 <id>  "),
                (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>"),
                (r"\b[0-9a-f]{8}-[0-9a-f]{4}(-[0-9a-f]{1,4}){0,2}(-[0-9a-f]{1,11})?\b", "<id>"),
                (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<second>"),
                (r"\b[0-9a-f]{32}\b", "<question>"),
                (r"SQLite \d+\.\d+\.\d+, \w+ \w+", "SQLite <version>, <platform>"),
                (r"[\d.]+ (KB|MB|GB) of room", "<size> of room"),
                (r"\bshipped/[0-9a-f]{16}\b", "shipped/<edition>"),
                (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "<time>"),
                (r"\d{4}-\d\d-\d\d \d\d:\d\d", "<minute>"),
            ],
            omit_expression => true,
            prepend_module_to_snapshot => false,
        }, {
            insta::assert_snapshot!(name, record);
        });
    }
}

/// Runs a command with this on its standard input.
pub(crate) fn fed(command: &mut Command, input: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // It may end without reading all of it.
        stdin.write_all(&input).ok();
    });
    let ran = told(child.wait_with_output().unwrap());
    writer.join().unwrap();
    ran
}

/// Waits for a command and gives what it did.
pub(crate) fn finish(command: &mut Command) -> Ran {
    told(command.output().unwrap())
}

fn told(output: Output) -> Ran {
    Ran {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap_or(-1),
    }
}

pub(crate) fn with_config<'a>(args: &[&'a str]) -> Vec<&'a str> {
    const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config/config.yaml");
    let mut args = args.to_vec();
    if !args.contains(&"--config") {
        args.extend(["--config", CONFIG]);
    }
    args
}

fn word(arg: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=<>".contains(c);
    match !arg.is_empty() && arg.chars().all(plain) {
        true => arg.to_owned(),
        false => format!("'{arg}'"),
    }
}
