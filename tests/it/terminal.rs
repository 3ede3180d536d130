//! The command in a real terminal.

use crate::command::{Desk, news_report, with_config};
use crate::questions::{AGENT, desk_of, question};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long something may take to show up.
const LONGEST: Duration = Duration::from_secs(60);

/// A command in a terminal of its own.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// All that was shown.
    shown: Vec<u8>,
    /// Up to where it was looked for something.
    seen: usize,
}

impl Terminal {
    /// Runs a command with this many columns. Standard error is piped, so that no spinner turns.
    fn open(mut command: Command, columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize {
            ws_row: 50,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap();
        let no_control = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).unwrap();
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(no_control)
            .open(path.to_str().unwrap())
            .unwrap();
        let child = command
            .stdin(slave.try_clone().unwrap())
            .stdout(slave)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The command holds the other ends of the terminal, which would stay open as long.
        drop(command);
        let keyboard = File::from(master);
        let mut reader = keyboard.try_clone().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // At the end a terminal gives an error.
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keyboard,
            screen,
            shown: Vec::new(),
            seen: 0,
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).replace("\r\n", "\n")
    }

    /// Waits until this is shown, after what was waited for before.
    fn wait_for(&mut self, what: &str) {
        loop {
            let new = &self.shown[self.seen..];
            if let Some(at) = new
                .windows(what.len())
                .position(|part| part == what.as_bytes())
            {
                self.seen += at + what.len();
                return;
            }
            match self.screen.recv_timeout(LONGEST) {
                Ok(bytes) => self.shown.extend(bytes),
                Err(RecvTimeoutError::Timeout) => panic!("no {what:?} in\n{}", self.text()),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("it ended without {what:?}\n{}", self.end().1)
                }
            }
        }
    }

    /// Types keys; a line needs its `\n`.
    fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end. Gives the status, and all that was shown with what went to standard error.
    fn end(&mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        loop {
            match self.screen.recv_timeout(LONGEST) {
                Ok(bytes) => self.shown.extend(bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the terminal stays open"),
            }
        }
        let mut stderr = String::new();
        let pipe = self.child.stderr.take();
        pipe.unwrap().read_to_string(&mut stderr).unwrap();
        let mut text = self.text();
        if !stderr.is_empty() {
            text.push_str(&format!("[stderr]\n{stderr}"));
        }
        (status, text)
    }
}

/// A command without colours, in a terminal of 80 columns.
fn open(desk: &Desk, args: &[&str]) -> Terminal {
    let mut command = desk.command(args);
    command.env("NO_COLOR", "1");
    Terminal::open(command, 80)
}

fn assert_session(desk: Desk, name: &str, title: &str, (status, text): (ExitStatus, String)) {
    let code = status.code().unwrap();
    desk.note(&format!(
        "$ {title}\n{}[exit {code}]\n",
        text.trim_end().to_owned() + "\n"
    ))
    .assert(name);
}

#[test]
fn a_question_is_answered_by_number_where_the_run_stopped() {
    let desk = Desk::new();
    let graph = news_report();
    let args = with_config(&["run", &graph, "写份报告", "--thread", "t"]);
    let mut terminal = open(&desk, &args);
    terminal.wait_for("\n> ");
    terminal.type_in("9\n");
    terminal.wait_for("\n> ");
    terminal.type_in("2\n");
    let end = terminal.end();
    assert_eq!(end.0.code(), Some(0), "{}", end.1);
    assert_session(
        desk,
        "session_by_number",
        "tine run graphs/news_report.yaml 写份报告 --thread t",
        end,
    );
}

#[test]
fn a_question_that_is_left_waits() {
    for (keys, what) in [("\n", "an empty line"), ("\x04", "Ctrl-D")] {
        let desk = Desk::new();
        let graph = news_report();
        let args = with_config(&["run", &graph, "写份报告", "--thread", "t"]);
        let mut terminal = open(&desk, &args);
        terminal.wait_for("\n> ");
        terminal.type_in(keys);
        let (status, text) = terminal.end();
        assert_eq!(status.code(), Some(3), "{what}: {text}");
        assert!(text.contains("tine resume t \"ANSWER\""), "{what}: {text}");
        let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
        assert_eq!(shown["status"], "interrupted", "{what}");
        // It is asked again when the thread is gone on with.
        let mut terminal = open(&desk, &["resume", "t"]);
        terminal.wait_for("\n> ");
        terminal.type_in("高铁\n");
        let (status, text) = terminal.end();
        assert_eq!(status.code(), Some(0), "{what}: {text}");
        assert!(text.contains("关于“高铁”的报告已写好"), "{text}");
    }
}

#[test]
fn ctrl_c_at_a_question_leaves_the_thread_as_it_was() {
    let desk = Desk::new();
    let graph = news_report();
    let args = with_config(&["run", &graph, "写份报告", "--thread", "t"]);
    // A terminal turns Ctrl-C into a signal for the session that it controls.
    let tine = desk.command(&args);
    let mut command = Command::new("setsid");
    command
        .args(["--ctty", "--wait"])
        .arg(tine.get_program())
        .args(tine.get_args())
        .current_dir(desk.path())
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS")
        .env("TINE_HOME", desk.home());
    if Command::new("setsid").arg("--version").output().is_err() {
        println!("skipped: `setsid` is not installed");
        return;
    }
    let mut terminal = Terminal::open(command, 80);
    terminal.wait_for("\n> ");
    terminal.type_in("\x03");
    let (status, text) = terminal.end();
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(text.contains("tine resume t \"ANSWER\""), "{text}");
    let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
    assert_eq!(shown["status"], "interrupted");
}

#[test]
fn nothing_is_asked_where_it_is_not_wanted() {
    for flag in ["--no-prompt", "--json"] {
        let desk = Desk::new();
        let graph = news_report();
        let args = with_config(&["run", &graph, "写份报告", "--thread", "t", flag]);
        let (status, text) = open(&desk, &args).end();
        assert_eq!(status.code(), Some(3), "{text}");
        assert!(!text.contains("> "), "{text}");
        let (status, text) = open(&desk, &["resume", "t", flag]).end();
        assert_eq!(status.code(), Some(3), "{text}");
    }
}

/// Questions of all kinds by nodes, one after the other.
const NODES: &str = "\
schema: graph/v1
name: nodes
types:
  Level: { type: string, enum: [low, high] }
  Plan:
    type: object
    required: [title, level]
    properties:
      title: { type: string }
      level: { $ref: \"#/types/Level\" }
      days: { type: integer, default: 3 }
      public: { type: boolean }
    additionalProperties: false
state:
  count: { type: integer }
  sure: { type: boolean }
  level: { type: Level }
  plan: { type: Plan }
input: []
start: count
nodes:
  count: { type: interrupt, payload: { question: How many? }, resume: integer, set: { count: \"${resume}\" }, then: sure }
  sure: { type: interrupt, payload: Are you sure?, resume: boolean, set: { sure: \"${resume}\" }, then: level }
  level: { type: interrupt, payload: { question: How urgent? }, resume: Level, set: { level: \"${resume}\" }, then: plan }
  plan: { type: interrupt, payload: { question: What is the plan? }, resume: Plan, set: { plan: \"${resume}\" }, then: end }
";

#[test]
fn nodes_are_answered_with_what_the_graph_file_says_they_take() {
    let desk = Desk::new();
    desk.file("nodes.yaml", NODES);
    let args = with_config(&["run", "nodes.yaml", "--thread", "t"]);
    let mut terminal = open(&desk, &args);
    for (prompt, keys) in [
        ("> ", "many\n"),
        ("> ", " 5 \n"),
        ("> ", "perhaps\n"),
        ("> ", "Yes\n"),
        ("> ", "urgent\n"),
        ("> ", "2\n"),
        ("level (1 low, 2 high) (required): ", "\n"),
        ("level (1 low, 2 high) (required): ", "3\n"),
        ("level (1 low, 2 high) (required): ", "1\n"),
        ("title (required): ", "旅行\n"),
        ("days (a number) [3]: ", "1.5\n"),
        // The engine refuses it, and the form is asked for again.
        ("public (yes or no): ", "\n"),
        ("level (1 low, 2 high) (required): ", "LOW\n"),
        ("title (required): ", "旅行\n"),
        ("days (a number) [3]: ", "\n"),
        ("public (yes or no): ", "y\n"),
    ] {
        terminal.wait_for(prompt);
        terminal.type_in(keys);
    }
    let end = terminal.end();
    assert_eq!(end.0.code(), Some(0), "{}", end.1);
    assert_session(
        desk,
        "session_of_nodes",
        "tine run nodes.yaml --thread t",
        end,
    );
}

#[test]
fn lines_fit_narrow_terminals_and_nothing_breaks() {
    for columns in [20, 7, 1] {
        let desk = Desk::new();
        let graph = news_report();
        let args = with_config(&["run", &graph, "写份报告", "--thread", "t"]);
        let mut command = desk.command(&args);
        command.env("NO_COLOR", "1");
        let mut terminal = Terminal::open(command, columns);
        terminal.wait_for("\n> ");
        terminal.type_in("电池\n");
        let (status, text) = terminal.end();
        assert_eq!(status.code(), Some(0), "{text}");
        assert!(text.contains("done after"), "{text}");
        assert!(!text.contains('\u{fffd}'), "a character was cut: {text}");
        if columns == 20 {
            assert_session(
                desk,
                "session_narrow",
                "tine run graphs/news_report.yaml",
                (status, text),
            );
        }
    }
}

#[test]
fn several_questions_are_asked_one_after_the_other() {
    let graph = AGENT.replace(
        "    then: agent\n",
        "    ask_before: [write_file]\n    then: agent\n",
    );
    let fields = json!({"fields": [
        {"name": "env", "label": "Environment", "type": "select", "options": ["dev", "prod"], "required": true},
        {"name": "replicas", "type": "number", "default": 2},
        {"name": "regions", "type": "multi_select", "options": ["eu", "us", "ap"]},
        {"name": "day", "type": "date"},
        {"name": "note", "placeholder": "a word to the team"}
    ]});
    let call = (
        "write_file",
        json!({"description": "note", "path": "/mnt/user-data/outputs/once.txt", "content": "x", "append": true}),
    );
    let desk = desk_of(
        &graph,
        &[
            call,
            question("How to deploy?", &fields),
            question("Who is told?", &json!({"options": ["all", "nobody"]})),
        ],
    );
    let args = [
        "run",
        "graph.yaml",
        "go",
        "--config",
        "config.yaml",
        "--thread",
        "t",
    ];
    let mut terminal = open(&desk, &args);
    for (prompt, keys) in [
        ("allow / deny, or 1-2", ""),
        ("> ", "alow\n"),
        ("> ", "1\n"),
        ("Environment (1 dev, 2 prod) (required): ", "\n"),
        ("Environment (1 dev, 2 prod) (required): ", "2\n"),
        ("replicas (a number) [2]: ", "some\n"),
        ("replicas (a number) [2]: ", "\n"),
        ("regions (some of 1 eu, 2 us, 3 ap): ", "3，EU\n"),
        ("day (a date as 2026-08-01): ", "tomorrow\n"),
        ("day (a date as 2026-08-01): ", "2026-12-24\n"),
        ("note (such as a word to the team): ", "\n"),
        ("1-2 or your own words", ""),
        ("> ", "\n"),
    ] {
        terminal.wait_for(prompt);
        terminal.type_in(keys);
    }
    let end = terminal.end();
    assert_eq!(end.0.code(), Some(3), "{}", end.1);
    let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
    assert_eq!(shown["interrupts"].as_array().unwrap().len(), 1);
    let ran = desk.tine(&["resume", "t", "nobody", "--json"]);
    let outcome = ran.outcome();
    let messages = outcome["values"]["messages"].as_array().unwrap().iter();
    let results: Vec<&str> = messages
        .filter(|message| message["type"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    let form: serde_json::Value = serde_json::from_str(results[1]).unwrap();
    assert_eq!(
        form,
        json!({"env": "prod", "replicas": 2, "regions": ["ap", "eu"], "day": "2026-12-24"})
    );
    assert_eq!([results[0], results[2]], ["OK", "nobody"]);
    assert_session(desk, "session_of_several", "tine run graph.yaml go", end);
}

#[test]
fn an_answer_that_comes_too_late_takes_no_file_away() {
    let desk = Desk::new();
    let notes = desk.file("notes.md", "Tea at five.\n");
    let graph = news_report();
    let args = with_config(&[
        "run",
        &graph,
        "写份报告",
        "--thread",
        "t",
        "--upload",
        &notes,
    ]);
    let mut terminal = open(&desk, &args);
    terminal.wait_for("\n> ");
    // Somebody else is quicker.
    let ran = desk.tine(&["resume", "t", "电池"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    terminal.type_in("2\n");
    let (status, text) = terminal.end();
    assert_eq!(status.code(), Some(2), "{text}");
    let file = "threads/local/t/user-data/uploads/notes.md";
    assert!(desk.home().join(file).exists(), "{text}");
}
