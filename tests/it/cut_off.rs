//! A model that is speaking when its run is cancelled: what it said is kept, and not believed to be all.
#![cfg(unix)]

use crate::command::{Desk, agent_graph};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;

/// It says words, calls a tool, and is done.
const SCRIPT: &str = "\
schema: script/v1
rules:
  - when: results('write_file') | length == 0
    content: I write it down now.
    tool_calls:
      - name: write_file
        args: { path: /mnt/user-data/outputs/a.md, content: \"{{ user_text }}\" }
  - content: It is done.
";

const CONFIG: &str = "\
models:
  - { name: default, use: 'tine.models.scripted:ScriptedModel', script: talk.script.yaml, delay_ms: 0 }
tool_groups: [{ name: 'file:write' }]
tools:
  - { name: write_file, group: 'file:write', use: 'deerflow.sandbox.tools:write_file_tool' }
";

/// Makes the model take an hour for its second word.
const SLOW: &str = "models.default.delay_ms=3600000";
const QUICK: &str = "models.default.delay_ms=0";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.file("talk.yaml", &agent_graph("talk", "write_file"));
    desk.file("talk.script.yaml", SCRIPT);
    desk.file("config.yaml", CONFIG);
    desk
}

/// Starts a run and sends it a signal when it has said its first word; gives how it ended and what it wrote.
fn cut_off(desk: &Desk, args: &[&str], signal: &str) -> (Option<i32>, String) {
    let mut child = desk
        .command(args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut heard = String::new();
    let mut lines = BufReader::with_capacity(1, child.stdout.as_mut().unwrap()).lines();
    while !heard.contains(r#""kind":"token""#) {
        heard.push_str(&lines.next().expect("it ended without a word").unwrap());
    }
    drop(lines);
    send(&child, signal);
    let mut stdout = String::new();
    let out = child.stdout.as_mut().unwrap();
    out.read_to_string(&mut stdout).unwrap();
    (child.wait().unwrap().code(), stdout)
}

fn send(child: &Child, signal: &str) {
    let sent = std::process::Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

fn run(desk: &Desk, signal: &str) {
    let args = [
        "run",
        "talk.yaml",
        "first",
        "--thread",
        "t",
        "--config",
        "config.yaml",
        "--set",
        SLOW,
        "--json",
    ];
    let (code, stdout) = cut_off(desk, &args, signal);
    assert_eq!(code, Some(130), "{stdout}");
    let last = stdout.lines().last().unwrap();
    assert!(last.contains(r#""exit":"cancelled""#), "{last}");
}

fn shown(desk: &Desk) -> serde_json::Value {
    desk.tine(&["threads", "show", "t", "--json"]).outcome()
}

/// The texts of a conversation, each with why it ended.
fn texts(messages: &serde_json::Value) -> Vec<String> {
    let texts = messages.as_array().unwrap().iter().map(|message| {
        let text = message["content"].as_str().unwrap();
        match message["response_metadata"]["finish_reason"].as_str() {
            Some(reason) => format!("{text} [{reason}]"),
            None => text.to_owned(),
        }
    });
    texts.collect()
}

#[test]
fn what_was_said_is_kept_beside_the_thread_and_the_model_is_asked_again() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let desk = desk();
        run(&desk, signal);
        let thread = shown(&desk);
        assert_eq!(thread["status"], "pending");
        assert_eq!(texts(&thread["values"]["messages"]), ["first"]);
        assert_eq!(texts(&thread["cut_off"]), ["I  [cancelled]"]);
        let ran = desk.tine(&["resume", "t", "--set", QUICK, "--json"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let thread = shown(&desk);
        assert_eq!(
            texts(&thread["values"]["messages"]),
            [
                "first",
                "I write it down now. [tool_calls]",
                "OK",
                "It is done. [stop]"
            ]
        );
        assert_eq!(thread["cut_off"], serde_json::json!([]));
    }
}

#[test]
fn what_was_said_stays_in_the_conversation_if_the_user_says_something_else() {
    let mut desk = desk();
    run(&desk, "-INT");
    desk.record(&["threads", "show", "t"]);
    desk.record(&[
        "run",
        "talk.yaml",
        "second",
        "--thread",
        "t",
        "--config",
        "config.yaml",
    ]);
    desk.record(&["threads", "show", "t"]);
    let thread = shown(&desk);
    assert_eq!(
        texts(&thread["values"]["messages"]),
        [
            "first",
            "I  [cancelled]",
            "second",
            "I write it down now. [tool_calls]",
            "OK",
            "It is done. [stop]"
        ]
    );
    let file = desk.home().join("threads/local/t/user-data/outputs/a.md");
    assert_eq!(
        std::fs::read_to_string(file).unwrap(),
        "second",
        "no call of a partial reply is made"
    );
    desk.assert("cut_off");
}

#[test]
fn a_reply_that_is_cut_off_twice_leaves_what_was_said_last() {
    let desk = desk();
    run(&desk, "-INT");
    let args = ["resume", "t", "--json"];
    let (code, _) = cut_off(&desk, &args, "-INT");
    assert_eq!(code, Some(130));
    assert_eq!(texts(&shown(&desk)["cut_off"]), ["I  [cancelled]"]);
}
