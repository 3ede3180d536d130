//! `--json`: one event a line, the outcome last.

use crate::command::{Desk, news_report};
use serde_json::Value;

#[test]
fn every_line_is_json_and_the_last_is_the_outcome() {
    let desk = Desk::new();
    let graph = news_report();
    let ran = desk.run(&["run", &graph, "find tea", "--thread", "t", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let events: Vec<&str> = lines
        .iter()
        .map(|line| line["event"].as_str().unwrap())
        .collect();
    assert_eq!(events.first(), Some(&"started"));
    assert_eq!(events[events.len() - 2..], ["ended", "outcome"]);
    assert_eq!(
        events.iter().filter(|event| **event == "outcome").count(),
        1
    );
    let outcome = lines.last().unwrap();
    assert_eq!(outcome["exit"], "done");
    assert_eq!(outcome["thread"], "t");
    assert_eq!(outcome["steps"], 7);
    assert!(ran.stderr.is_empty(), "{}", ran.stderr);
}

#[test]
fn a_limit_shows_its_code_and_the_thread_goes_on() {
    let desk = Desk::new();
    let graph = news_report();
    let args = [
        "run",
        &graph,
        "find tea",
        "--thread",
        "t",
        "--json",
        "--max-steps",
        "3",
    ];
    let ran = desk.run(&args);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let outcome = ran.outcome();
    assert_eq!(outcome["exit"], "step_limit");
    assert_eq!(outcome["error"]["code"], "step_limit");
    let made = outcome["steps"].as_u64().unwrap();
    assert!(
        ran.stderr
            .contains("hint: `tine resume t` goes on from here"),
        "{}",
        ran.stderr
    );
    let ran = desk.tine(&["resume", "t", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.outcome()["steps"].as_u64().unwrap() + made, 7);
}

#[test]
fn what_is_refused_is_told_in_json_too() {
    let desk = Desk::new();
    let ran = desk.run(&["run", "missing.yaml", "x", "--json"]);
    assert_eq!(ran.code, 2);
    let outcome = ran.outcome();
    assert_eq!(outcome["exit"], "refused");
    assert_eq!(outcome["error"]["code"], "usage");
    assert_eq!(ran.stdout.lines().count(), 1);
}
