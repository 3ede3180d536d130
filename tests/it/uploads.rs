//! Files that are handed in with a message.

use crate::command::{Desk, Ran};
use crate::questions::{AGENT as AGENT_THAT_ASKS, desk_of, question};
use serde_json::{Value, json};

const CONFIG: &str = "\
models:
  - { name: default, use: 'tine.models.scripted:ScriptedModel', script: script.yaml }
tools:
  - { name: read_file, group: file:read, use: 'deerflow.sandbox.tools:read_file_tool' }
";

/// Reads what was handed in first.
const SCRIPT: &str = "\
schema: script/v1
rules:
  - visit: 1
    tool_calls:
      - { name: read_file, args: { description: read it, path: /mnt/user-data/uploads/notes.md } }
  - content: \"It says: {{ results('read_file') | join(' ') }}\"
";

const AGENT: &str = "\
schema: graph/v1
name: agent
state:
  messages: { type: list<message>, reduce: messages }
  uploaded_files: { type: list<file> }
input: [messages, uploaded_files]
limits: { max_visits: { agent: 9 } }
start: agent
nodes:
  agent:
    type: model
    model: default
    tools: [read_file]
    then:
      - when: has_tool_calls(last(state.messages))
        goto: act
      - else: end
  act: { type: tools, tools: [read_file], then: agent }
";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.file("config.yaml", CONFIG);
    desk.file("graph.yaml", AGENT);
    desk.file("script.yaml", SCRIPT);
    desk.file("notes.md", "Tea at five.\n");
    desk
}

fn run(desk: &Desk, args: &[&str]) -> Ran {
    let run = ["run", "graph.yaml", "--config", "config.yaml", "--json"];
    desk.tine(&[&run, args].concat())
}

/// The names and contents of what a thread was handed.
fn handed_in(desk: &Desk, thread: &str) -> Vec<(String, String)> {
    let folder = desk
        .home()
        .join(format!("threads/local/{thread}/user-data/uploads"));
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), text)
        })
        .collect();
    found.sort();
    found
}

#[test]
fn the_agent_is_told_of_a_file_and_reads_it() {
    let desk = desk();
    let ran = run(
        &desk,
        &["what does it say?", "--thread", "t", "--upload", "notes.md"],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let outcome = ran.outcome();
    let messages = outcome["values"]["messages"].as_array().unwrap();
    insta::assert_snapshot!(messages[0]["content"].as_str().unwrap(), @"
    <current_uploads>
    The user handed these files in with this message:

    - notes.md (0.0 KB)
      Path: /mnt/user-data/uploads/notes.md

    Their contents are not part of the message: read what you need with `read_file`.
    </current_uploads>

    what does it say?
    ");
    let kept: &Value = &messages[0]["additional_kwargs"];
    insta::assert_snapshot!(kept, @r#"{"files":[{"filename":"notes.md","path":"/mnt/user-data/uploads/notes.md","size":13,"status":"uploaded"}],"original_user_content":"what does it say?"}"#);
    insta::assert_snapshot!(outcome["values"]["uploaded_files"], @r#"[{"extension":".md","filename":"notes.md","path":"/mnt/user-data/uploads/notes.md","size":13}]"#);
    let last = messages.last().unwrap()["content"].as_str().unwrap();
    assert!(last.contains("Tea at five."), "{last}");
    assert_eq!(
        handed_in(&desk, "t"),
        [("notes.md".to_owned(), "Tea at five.\n".to_owned())]
    );
}

#[test]
fn files_of_one_name_stand_side_by_side() {
    let desk = desk();
    desk.file("a/notes.md", "another");
    desk.file("b/notes.md", "Tea at five.\n");
    desk.file("c/.hidden", "x");
    let files = [
        "notes.md",
        "a/notes.md",
        "b/notes.md",
        "notes.md",
        "c/.hidden",
    ];
    for _ in 0..2 {
        let mut args = vec!["read", "--thread", "t"];
        files
            .iter()
            .for_each(|file| args.extend(["--upload", file]));
        let ran = run(&desk, &args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let listed = ran.outcome()["values"]["uploaded_files"].clone();
        assert_eq!(listed.as_array().unwrap().len(), 3, "{listed}");
        let found = handed_in(&desk, "t");
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [".hidden", "notes.md", "notes_1.md"]);
        assert_eq!(found[2].1, "another");
    }
}

#[test]
fn a_name_is_made_plain() {
    let desk = desk();
    let long = format!("{}.txt", "长".repeat(80));
    let cut = format!("{}.txt", "长".repeat(78));
    for (name, expected) in [
        ("a\nb.md", "a_b.md"),
        ("\u{202e}dm.exe", "_dm.exe"),
        ("<b>.md", "_b_.md"),
        ("a\\..\\b", "a_.._b"),
        (" spaced .md ", "spaced .md"),
        ("-rf", "-rf"),
        (long.as_str(), cut.as_str()),
    ] {
        let path = desk.file(&format!("files/{name}"), "x");
        desk.tine(&["threads", "delete", "t", "--yes"]);
        let ran = run(&desk, &["read", "--thread", "t", "--upload", &path]);
        assert_eq!(ran.code, 0, "{name:?}: {}", ran.stderr);
        assert_eq!(
            handed_in(&desk, "t"),
            [(expected.to_owned(), "x".to_owned())]
        );
    }
}

#[test]
fn what_can_not_be_handed_in_runs_nothing_and_leaves_nothing() {
    let desk = desk();
    desk.file("big.txt", &"x".repeat(100));
    desk.file("folder/x", "x");
    let many: Vec<&str> = std::iter::repeat_n(["--upload", "notes.md"], 10)
        .flatten()
        .collect();
    let pipe = desk.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    std::os::unix::fs::symlink("nowhere", desk.path().join("dead")).unwrap();
    let small = ["--set", "uploads.max_file_size=99"];
    let total = ["--set", "uploads.max_total_size=110"];
    for (args, says) in [
        (
            &["--upload", "missing.md"][..],
            "missing.md can not be read: No such file",
        ),
        (&["--upload", "dead"], "dead can not be read: No such file"),
        (&["--upload", "folder"], "folder is a folder"),
        (&["--upload", ".."], "is a folder"),
        (&["--upload", "/dev/zero"], "/dev/zero is no plain file"),
        (&["--upload", "pipe"], "pipe is no plain file"),
        (
            &["--upload", "big.txt", small[0], small[1]],
            "big.txt is too large: 0.1 KB",
        ),
        (
            &[
                "--upload", "big.txt", "--upload", "notes.md", total[0], total[1],
            ],
            "the files are 0.1 KB together",
        ),
        (&many, "11 files are too many for one message; it takes 10"),
        (
            &["--upload", "notes.md", "--input", r#"{"mesages": []}"#],
            "takes no input `mesages`",
        ),
    ] {
        let args = [&["read", "--thread", "t", "--upload", "notes.md"], args].concat();
        let ran = run(&desk, &args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(says), "no {says:?} in {}", ran.stderr);
        assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
        assert!(
            !desk.home().join("threads/local/t").exists(),
            "{args:?} left files"
        );
        let threads = desk.tine(&["threads"]).stdout;
        assert!(threads.starts_with("no threads"), "{args:?}: {threads}");
    }
}

#[test]
fn a_refused_run_takes_back_what_it_brought_and_nothing_else() {
    let desk = desk();
    desk.file("more.md", "more");
    assert_eq!(
        run(&desk, &["read", "--thread", "t", "--upload", "notes.md"]).code,
        0
    );
    let files = ["--upload", "notes.md", "--upload", "more.md"];
    let wrong = ["read", "--thread", "t", "--input", r#"{"x": 1}"#];
    let ran = run(&desk, &[&wrong[..], &files].concat());
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert_eq!(handed_in(&desk, "t").len(), 1);
    // A folder in the way is gone around, a link out of the folder is not followed.
    let uploads = desk.home().join("threads/local/t/user-data/uploads");
    std::fs::create_dir(uploads.join("more.md")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", uploads.join("more_1.md")).unwrap();
    let ran = run(&desk, &["read", "--thread", "t", "--upload", "more.md"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        std::fs::read_to_string(uploads.join("more_2.md")).unwrap(),
        "more"
    );
    assert_eq!(
        std::fs::read_link(uploads.join("more_1.md"))
            .unwrap()
            .to_str(),
        Some("/etc/passwd")
    );
}

#[test]
fn a_graph_that_takes_no_files_says_so() {
    let desk = desk();
    desk.file(
        "graph.yaml",
        &AGENT.replace("input: [messages, uploaded_files]\n", "input: []\n"),
    );
    let ran = run(&desk, &["--upload", "notes.md", "--thread", "t"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr
            .contains("has no input `messages` or `uploaded_files` to take files"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_message_with_a_file_answers_a_question_with_its_words() {
    let desk = desk_of(AGENT_THAT_ASKS, &[question("Which one?", &json!({}))]);
    desk.file("notes.md", "Tea at five.\n");
    assert_eq!(run(&desk, &["go", "--thread", "t"]).code, 3);
    let args = ["this one", "--thread", "t", "--upload", "notes.md"];
    let ran = run(&desk, &args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let outcome = ran.outcome();
    let messages = outcome["values"]["messages"].as_array().unwrap();
    let content = |at: usize| messages[at]["content"].as_str().unwrap();
    assert_eq!(content(2), "this one", "the result of the call that asked");
    assert!(
        content(3).starts_with("<current_uploads>"),
        "{}",
        content(3)
    );
    assert!(content(3).ends_with("\n\nthis one"), "{}", content(3));
}

#[test]
fn an_answer_that_is_stored_keeps_its_file_and_words() {
    // The answer is taken, and then the channel does not take what was handed in.
    let graph = AGENT_THAT_ASKS.replace(
        "state:\n",
        "input: [messages, uploaded_files]\nstate:\n  uploaded_files: { type: integer }\n",
    );
    let desk = desk_of(&graph, &[question("Which one?", &json!({}))]);
    desk.file("notes.md", "Tea at five.\n");
    assert_eq!(run(&desk, &["go", "--thread", "t"]).code, 3);
    let args = ["this one", "--thread", "t", "--upload", "notes.md"];
    let ran = run(&desk, &args);
    assert!(ran.stderr.contains("uploaded_files"), "{}", ran.stderr);
    assert_eq!(handed_in(&desk, "t").len(), 1, "the answer is stored");
    let again = desk.tine(&["resume", "t"]);
    assert!(
        again.stderr.contains("uploaded_files"),
        "the words are still to be said: {}{}",
        again.stdout,
        again.stderr
    );
}

#[test]
fn an_answer_that_is_refused_brings_no_file() {
    let options = json!({"options": ["a", "b"]});
    let desk = desk_of(AGENT_THAT_ASKS, &[question("Which one?", &options)]);
    desk.file("notes.md", "Tea at five.\n");
    assert_eq!(run(&desk, &["go", "--thread", "t"]).code, 3);
    let ran = run(&desk, &["7", "--thread", "t", "--upload", "notes.md"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(handed_in(&desk, "t").is_empty());
    let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
    assert_eq!(shown["status"], "interrupted", "the thread is as it was");
}

#[cfg(unix)]
#[test]
fn a_file_that_must_not_be_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = desk();
    let path = desk.file("secret.md", "x");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(&path).is_ok() {
        println!("skipped: this user may read every file");
        return;
    }
    let ran = run(&desk, &["read", "--thread", "t", "--upload", "secret.md"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    let says = "secret.md can not be read: Permission denied";
    assert!(ran.stderr.contains(says), "{}", ran.stderr);
    assert!(!desk.home().join("threads/local/t").exists());
}

#[test]
fn files_alone_answer_no_question() {
    let desk = desk_of(AGENT_THAT_ASKS, &[question("Which one?", &json!({}))]);
    desk.file("notes.md", "Tea at five.\n");
    assert_eq!(run(&desk, &["go", "--thread", "t"]).code, 3);
    let ran = run(&desk, &["--thread", "t", "--upload", "notes.md"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("in words"), "{}", ran.stderr);
    assert!(handed_in(&desk, "t").is_empty());
}

#[test]
fn the_report_is_on_what_was_said_and_not_on_the_files() {
    let desk = desk();
    let graph = crate::command::news_report();
    let ran = desk.run(&["run", &graph, "AI news", "--upload", "notes.md", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let outcome = ran.outcome();
    assert_eq!(
        outcome["values"]["artifacts"],
        json!(["/mnt/user-data/outputs/ai-news.md"])
    );
}
