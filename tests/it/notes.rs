//! What people are told beside what a model says.

use crate::command::{Desk, news_report};

/// A conversation with results that answer nothing, as an import may have it.
const MESSAGES: &str = r#"{"messages": [
    {"role": "tool", "tool_call_id": "lost", "content": "4"},
    {"role": "tool", "tool_call_id": null, "content": "5"},
    {"role": "user", "content": "find tea"}]}"#;

#[test]
fn what_is_left_out_of_a_request_is_a_note_and_stays_in_the_thread() {
    let desk = Desk::new();
    let graph = news_report();
    let mut command = desk.command(&["run", &graph, "--input", MESSAGES, "--thread", "t"]);
    let config = crate::command::shipped("config/config.yaml");
    let ran = crate::command::finish(command.args(["--config", &config]).env("COLUMNS", "120"));
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let notes: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| line.starts_with("  note"))
        .collect();
    assert_eq!(
        notes,
        [
            "  note   agent: 2 entries of the conversation left out of the request: 2 are results of no call"
        ]
    );
    let ran = desk.run(&[
        "run", &graph, "--input", MESSAGES, "--thread", "u", "--json",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let note = ran
        .stdout
        .lines()
        .find(|line| line.contains(r#""kind":"note""#));
    let note: serde_json::Value = serde_json::from_str(note.unwrap()).unwrap();
    assert_eq!(note["node"], "agent");
    let outcome = ran.outcome();
    let messages = outcome["values"]["messages"].as_array().unwrap();
    assert_eq!(messages[0]["content"], "4");
    assert_eq!(messages[1]["content"], "5");
}
