//! What is asked about a call that may have taken place when the process died, and what comes of the answers.
#![cfg(unix)]

use crate::command::{Desk, agent_graph};
use std::os::unix::process::ExitStatusExt as _;

const SCRIPT: &str = "\
schema: script/v1
rules:
  - when: results('write_file') | length + errors('write_file') | length == 0
    tool_calls:
      - name: write_file
        args:
          description: Note the day.
          path: /mnt/user-data/outputs/diary.md
          content: \"It rained, and nobody came. {{ 'It went on raining. ' * 10 }}\\n\"
          append: true
  - when: errors('write_file') | length > 0
    content: \"It was not noted: {{ errors('write_file') | last }}\"
  - content: It is noted.
";

/// A desk where the process died in the middle of a call that is not to be made twice.
fn killed(place: &str) -> Desk {
    let desk = Desk::new();
    desk.file("diary.yaml", &agent_graph("diary", "write_file"));
    desk.file("diary.script.yaml", SCRIPT);
    desk.file(
        "config.yaml",
        "\
models:
  - { name: default, use: 'tine.models.scripted:ScriptedModel', script: diary.script.yaml }
tool_groups: [{ name: 'file:write' }]
tools:
  - { name: write_file, group: 'file:write', use: 'deerflow.sandbox.tools:write_file_tool' }
",
    );
    let args = [
        "run",
        "diary.yaml",
        "go",
        "--thread",
        "t",
        "--config",
        "config.yaml",
    ];
    let mut command = desk.command(&args);
    let output = command.env("TINE_FAILPOINT", place).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.signal().is_some(), "it lives: {stderr}");
    desk
}

fn diary(desk: &Desk) -> usize {
    let path = desk
        .home()
        .join("threads/local/t/user-data/outputs/diary.md");
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

#[test]
fn a_call_that_may_have_taken_place_is_shown_and_asked_about() {
    let mut desk = killed("amid a file");
    desk.record(&["threads", "show", "t"]);
    desk.record(&["resume", "t"]);
    desk.record(&["threads", "show", "t"]);
    desk.record(&["resume", "t", "maybe"]);
    desk.record(&["resume", "t"]);
    assert_eq!(diary(&desk), 0, "nothing is done unasked");
    desk.record(&["resume", "t", "retry"]);
    assert_eq!(diary(&desk), 1);
    desk.assert("unknown_outcome");
}

#[test]
fn programs_see_the_call_whole() {
    let desk = killed("after a file");
    let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
    assert_eq!(shown["status"], "pending");
    assert_eq!(shown["unknown_calls"][0]["name"], "write_file", "{shown}");
    assert_eq!(shown["unknown_calls"][0]["args"]["append"], true);
    let ran = desk.tine(&["resume", "t", "--json"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let outcome = ran.outcome();
    assert_eq!(outcome["exit"], "interrupted");
    let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
    assert_eq!(
        shown["unknown_calls"],
        serde_json::json!([]),
        "it is asked about"
    );
    for asked in [&outcome["interrupts"], &shown["interrupts"]] {
        let payload = &asked[0]["payload"];
        assert_eq!(payload["kind"], "unknown_outcome");
        assert_eq!(payload["name"], "write_file");
        assert_eq!(
            payload["options"],
            serde_json::json!(["retry", "skip", "fail"])
        );
        let content = payload["args"]["content"].as_str().unwrap();
        assert!(content.len() > 200 && content.ends_with('\n'), "{content}");
    }
    let ran = desk.tine(&["resume", "t", "no", "--json"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let message = ran.outcome()["error"]["message"].to_string();
    assert!(
        message.contains("`no` is none of retry, skip, fail"),
        "{message}"
    );
    let id = shown["interrupts"][0]["id"].as_str().unwrap();
    let ran = desk.tine(&["resume", "t", "--answer", &format!("{id}=skip"), "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(diary(&desk), 1, "it had taken place, and is not made again");
}

#[test]
fn a_call_that_is_given_up_fails_its_node_and_is_asked_about_again() {
    let mut desk = killed("amid a file");
    desk.record(&["resume", "t"]);
    desk.record(&["resume", "t", "fail"]);
    desk.record(&["threads", "show", "t"]);
    desk.record(&["resume", "t"]);
    desk.record(&["resume", "t", "skip"]);
    assert_eq!(diary(&desk), 0);
    desk.assert("unknown_outcome_given_up");
}
