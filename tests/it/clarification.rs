//! Questions of the agent, and the ways to answer them.

use crate::command::{Desk, news_report, shipped};
use serde_json::Value;

#[test]
fn a_run_without_a_topic_asks_and_goes_on_with_the_answer() {
    let mut desk = Desk::new();
    let graph = news_report();
    assert_eq!(
        desk.record(&["run", &graph, "写份报告", "--thread", "report"])
            .code,
        3
    );
    assert_eq!(desk.record(&["threads", "show", "report"]).code, 0);
    assert_eq!(desk.record(&["resume", "report", "电池"]).code, 0);
    desk.assert("clarification");
}

fn asked(desk: &Desk) -> Value {
    let graph = news_report();
    let ran = desk.run(&["run", &graph, "写份报告", "--thread", "t", "--json"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    ran.outcome()
}

/// The messages as `type: text`, tool calls by name.
fn conversation(outcome: &Value) -> Vec<String> {
    let messages = outcome["values"]["messages"].as_array().unwrap();
    let line = |message: &Value| {
        let calls = message["tool_calls"].as_array();
        match calls.and_then(|calls| calls.first()) {
            Some(call) => format!("calls {}", call["name"].as_str().unwrap()),
            None => format!(
                "{}: {}",
                message["type"].as_str().unwrap(),
                message["content"].as_str().unwrap()
            ),
        }
    };
    messages.iter().map(line).collect()
}

#[test]
fn a_message_to_a_thread_that_asks_is_the_answer_and_stays_a_message() {
    let desk = Desk::new();
    let question = asked(&desk);
    let graph = news_report();
    let ran = desk.run(&["run", &graph, "高铁", "--thread", "t", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let outcome = ran.outcome();
    assert_eq!(
        outcome["run"], question["run"],
        "it goes on in the same run"
    );
    assert_eq!(outcome["answered"], 1);
    let conversation = conversation(&outcome);
    assert_eq!(
        conversation[..5],
        [
            "human: 写份报告",
            "calls ask_clarification",
            "tool: 高铁",
            "human: 高铁",
            "calls web_search"
        ]
    );
    let ends = ran
        .stdout
        .lines()
        .filter(|line| line.contains(r#""event":"ended""#));
    assert_eq!(ends.count(), 1, "to listeners it is one invocation");
}

#[test]
fn a_question_is_answered_by_its_id_or_the_start_of_it() {
    let desk = Desk::new();
    let question = asked(&desk);
    let id = question["interrupts"][0]["id"].as_str().unwrap();
    let answer = format!("{}=2", &id[..6]);
    let ran = desk.tine(&["resume", "t", "--answer", &answer, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(conversation(&ran.outcome())[2], "tool: 电池技术");
}

#[test]
fn an_answer_may_be_the_json_of_a_front_end() {
    let desk = Desk::new();
    asked(&desk);
    let json = r#"{"kind": "text", "value": "茶"}"#;
    let ran = desk.tine(&["resume", "t", "--answer-json", json, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(conversation(&ran.outcome())[2], "tool: 茶");
}

#[test]
fn nobody_is_asked_when_questions_are_switched_off() {
    let desk = Desk::new();
    let graph = news_report();
    let args = [
        "run",
        &graph,
        "写份报告",
        "--option",
        "disable_clarification",
        "--json",
    ];
    let ran = desk.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.outcome()["interrupts"].as_array().unwrap().is_empty());
}

#[test]
fn going_on_without_an_answer_asks_again() {
    let desk = Desk::new();
    let first = asked(&desk);
    let ran = desk.tine(&["resume", "t", "--json"]);
    assert_eq!(ran.code, 3);
    assert_eq!(
        ran.outcome()["interrupts"][0]["id"],
        first["interrupts"][0]["id"]
    );
}

const TRIAGE: &str = "\
schema: graph/v1
name: triage
state:
  level: { type: integer }
input: []
start: ask
nodes:
  ask:
    type: interrupt
    payload: { question: How urgent is it?, from: 1, to: 5 }
    resume: integer
    set: { level: \"${resume}\" }
    then: end
";

#[test]
fn an_answer_that_will_not_do_is_refused_with_the_reason() {
    let mut desk = Desk::new();
    desk.file("triage.yaml", TRIAGE);
    desk.record(&["run", "triage.yaml", "--thread", "t"]);
    desk.record(&["resume", "t", "very"]);
    desk.record(&["resume", "t", "4"]);
    desk.assert("refused_answer");
}

#[test]
fn words_do_not_pass_over_the_question_of_a_node() {
    let mut desk = Desk::new();
    let graph = shipped("graphs/react.yaml");
    desk.record(&["run", &graph, "写份报告", "--thread", "t"]);
    desk.record(&["run", &graph, "茶", "--thread", "t"]);
    let ran = desk.record(&["resume", "t", "茶"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    desk.assert("question_of_a_node");
}

#[test]
fn a_question_is_answered_once() {
    let desk = Desk::new();
    let question = asked(&desk);
    let id = question["interrupts"][0]["id"].as_str().unwrap();
    let twice = [format!("{}=茶", &id[..8]), format!("{id}=电池")];
    let ran = desk.tine(&["resume", "t", "--answer", &twice[0], "--answer", &twice[1]]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("is answered twice"), "{}", ran.stderr);
}

#[test]
fn words_that_answered_stay_on_their_branch() {
    for fork in [
        &["threads", "fork", "t", "--at", "step:0"][..],
        &["threads", "fork", "t", "--at", "step:0", "--to", "copy"],
    ] {
        let desk = Desk::new();
        asked(&desk);
        let graph = news_report();
        let ran = desk.run(&["run", &graph, "电池", "--thread", "t"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let ran = desk.tine(fork);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let thread = *fork.last().filter(|name| **name == "copy").unwrap_or(&"t");
        let ran = desk.tine(&["resume", thread, "--json"]);
        assert_eq!(ran.code, 3, "it asks: {}{}", ran.stdout, ran.stderr);
        assert_eq!(
            conversation(&ran.outcome()),
            ["human: 写份报告", "calls ask_clarification"]
        );
    }
}

#[test]
fn a_number_that_answers_a_run_is_said_as_what_it_stands_for() {
    let desk = Desk::new();
    let graph = news_report();
    let run = |text: &str| desk.run(&["run", &graph, text, "--thread", "t", "--json"]);
    assert_eq!(run("写份报告").code, 3);
    let outcome = run("2").outcome();
    assert_eq!(outcome["exit"], "done");
    let messages = outcome["values"]["messages"].as_array().unwrap();
    let said = messages.iter().filter(|message| message["type"] == "human");
    let said: Vec<_> = said.map(|message| message["content"].clone()).collect();
    assert_eq!(said, ["写份报告", "电池技术"]);
    assert_eq!(
        outcome["artifacts"][0]["path"],
        "/mnt/user-data/outputs/电池技术.md"
    );
}
