//! Runs that are stopped, killed, or watched by somebody who leaves.

use crate::command::{Desk, Ran, news_report};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;

/// Makes the model take an hour over its last reply.
const SLOW: &str = "models.default.delay_ms=3600000";
const QUICK: &str = "models.default.delay_ms=0";

/// A run that stands in the middle of its last reply.
pub(crate) fn standing(desk: &Desk) -> Child {
    let graph = news_report();
    let args = [
        "run", &graph, "find tea", "--thread", "t", "--json", "--set", SLOW,
    ];
    let mut child = desk.spawn(&args);
    let mut lines = BufReader::with_capacity(1, child.stdout.as_mut().unwrap()).lines();
    let stands = lines.any(|line| line.unwrap().contains(r#""kind":"token""#));
    drop(lines);
    if !stands {
        let output = child.wait_with_output().unwrap();
        panic!("it ended: {}", String::from_utf8_lossy(&output.stderr));
    }
    child
}

pub(crate) fn goes_on(desk: &Desk) -> Ran {
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
    let mut child = standing(&desk);
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
    let mut child = standing(&desk);
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
    let mut child = standing(&desk);
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

#[test]
fn a_failed_run_goes_on_when_its_cause_is_gone() {
    let desk = Desk::new();
    let graph = desk.file(
        "graph.yaml",
        "schema: graph/v1\nname: read\nstate:\n  text: { type: optional<string> }\nstart: read\nnodes:\n  read:\n    \
         type: tool\n    tool: read_file\n    args: { description: read, path: /mnt/user-data/uploads/a.md }\n    \
         into: text\n    then: end\n",
    );
    let ran = desk.run(&["run", &graph, "--input", "{}", "--thread", "t"]);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.ends_with("failed after 1 step\n"),
        "{}",
        ran.stdout
    );
    for part in [
        "error: graph.yaml: node `read` failed: ",
        "/mnt/user-data/uploads/a.md",
        "hint: `tine resume t` goes on from here",
    ] {
        assert!(ran.stderr.contains(part), "no {part:?} in {}", ran.stderr);
    }
    let shown = desk.tine(&["threads", "show", "t"]).stdout;
    assert!(
        shown.contains("status   failed: node `read` failed"),
        "{shown}"
    );
    desk.file(
        "home/threads/local/t/user-data/uploads/a.md",
        "It was here.",
    );
    let ran = desk.tine(&["resume", "t"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("It was here."), "{}", ran.stdout);
}

#[test]
fn a_deadline_is_a_limit() {
    let desk = Desk::new();
    let text = std::fs::read_to_string(news_report()).unwrap();
    let graph = desk.file("graph.yaml", &text.replace("max_steps: 40", "deadline: 1s"));
    let ran = desk.run(&[
        "run", &graph, "find tea", "--thread", "t", "--json", "--set", SLOW,
    ]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert_eq!(ran.outcome()["exit"], "deadline");
    assert!(ran.stderr.contains("`limits.deadline`"), "{}", ran.stderr);
}

#[test]
fn a_breakpoint_stops_and_the_thread_goes_on() {
    let desk = Desk::new();
    let text = std::fs::read_to_string(news_report()).unwrap();
    let paused = text.replace("    type: tools\n", "    type: tools\n    pause: before\n");
    let graph = desk.file("graph.yaml", &paused);
    let ran = desk.run(&["run", &graph, "find tea", "--thread", "t"]);
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
    let end = "  pause  act\n\nstopped at a breakpoint after 1 step\ngo on with\n  tine resume t\n";
    assert!(ran.stdout.ends_with(end), "{}", ran.stdout);
    let ran = desk.tine(&["resume", "t"]);
    assert_eq!(ran.code, 3, "it meets the next one: {}", ran.stdout);
}
