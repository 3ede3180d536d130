//! Runs that are stopped, killed, or watched by somebody who leaves.

use crate::command::{Desk, Ran, news_report};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;

/// Makes the model take an hour over its last reply.
const SLOW: &str = "models.default.delay_ms=3600000";
const QUICK: &str = "models.default.delay_ms=0";

/// A run that stands in the middle of its last reply.
fn standing(desk: &Desk) -> (Child, Vec<String>) {
    let graph = news_report();
    let mut child = desk.spawn(&[
        "run", &graph, "find tea", "--thread", "t", "--json", "--set", SLOW,
    ]);
    let mut lines = Vec::new();
    for line in BufReader::new(child.stdout.as_mut().unwrap()).lines() {
        lines.push(line.unwrap());
        if lines
            .last()
            .is_some_and(|line| line.contains(r#""kind":"token""#))
        {
            return (child, lines);
        }
    }
    let mut stderr = String::new();
    child.stderr.unwrap().read_to_string(&mut stderr).unwrap();
    panic!("the run ended before it was stopped: {lines:#?}\n{stderr}");
}

fn goes_on(desk: &Desk) -> Ran {
    let ran = desk.tine(&["resume", "t", "--set", QUICK, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let outcome = ran.outcome();
    assert_eq!(outcome["exit"], "done");
    assert_eq!(outcome["steps"], 1, "what was done is not done again");
    assert_eq!(outcome["artifacts"].as_array().unwrap().len(), 1);
    ran
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let desk = Desk::new();
    let (mut child, _) = standing(&desk);
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = desk.tine(&["threads", "show", "t"]).stdout;
    assert!(shown.contains("pending, next agent"), "{shown}");
    goes_on(&desk);
}

#[test]
fn a_thread_has_one_runner_at_a_time() {
    let desk = Desk::new();
    let graph = news_report();
    let (mut child, _) = standing(&desk);
    for ran in [
        desk.run(&["run", &graph, "find tea", "--thread", "t"]),
        desk.tine(&["resume", "t"]),
        desk.tine(&["threads", "delete", "t", "--yes"]),
    ] {
        assert_eq!(ran.code, 2, "{}", ran.stdout);
        let pid = format!("thread `t` is being run by process {}", child.id());
        assert!(ran.stderr.contains(&pid), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("hint: wait until it has ended"),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(
        desk.tine(&["threads", "show", "t"]).code,
        0,
        "reading is free"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    goes_on(&desk);
}

#[cfg(unix)]
#[test]
fn a_cancelled_run_says_how_to_go_on() {
    let desk = Desk::new();
    let (mut child, _) = standing(&desk);
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(killed.unwrap().success());
    let mut stdout = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut stdout)
        .unwrap();
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        stdout
            .lines()
            .last()
            .unwrap()
            .contains(r#""exit":"cancelled""#),
        "{stdout}"
    );
    assert!(
        stderr.contains("hint: `tine resume t` goes on from here"),
        "{stderr}"
    );
    goes_on(&desk);
}

#[test]
fn a_reader_that_leaves_ends_the_run_quietly() {
    let desk = Desk::new();
    let graph = news_report();
    let mut child = desk.spawn(&["run", &graph, "find tea", "--thread", "t"]);
    let mut line = String::new();
    let mut reader = BufReader::with_capacity(1, child.stdout.take().unwrap());
    reader.read_line(&mut line).unwrap();
    drop(reader);
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    let code = child.wait().unwrap().code();
    assert!(
        matches!(code, Some(0 | 130)),
        "{code:?}: it may have been done already"
    );
    assert_eq!(stderr, "");
}

#[test]
fn a_narrow_terminal_cuts_lines_and_nothing_else() {
    let desk = Desk::new();
    let graph = news_report();
    for columns in ["20", "1"] {
        let args = ["run", &graph, "搜今天 AI 新闻并存成 Markdown"];
        let config = crate::command::shipped("config/config.yaml");
        let mut command = desk.command(&[&args[..], &["--config", &config]].concat());
        let ran = crate::command::finish(command.env("COLUMNS", columns));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("今天-ai-新闻.md"), "{}", ran.stdout);
    }
}
