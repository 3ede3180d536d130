//! Several questions at once, questions of all kinds, and what answers them.

use crate::command::{Desk, Ran};
use serde_json::{Value, json};

/// The models of these tests play `script.yaml`.
const CONFIG: &str = "\
models:
  - { name: default, use: 'tine.models.scripted:ScriptedModel', script: script.yaml }
tools:
  - { name: write_file, group: file:write, use: 'deerflow.sandbox.tools:write_file_tool' }
";

/// An agent and its tools.
pub(crate) const AGENT: &str = "\
schema: graph/v1
name: agent
state:
  messages: { type: list<message>, reduce: messages }
limits: { max_visits: { agent: 9 } }
start: agent
nodes:
  agent:
    type: model
    model: default
    tools: [write_file, ask_clarification]
    then:
      - when: has_tool_calls(last(state.messages))
        goto: act
      - else: end
  act:
    type: tools
    tools: [write_file, ask_clarification]
    then: agent
";

/// Makes these calls, and tells their results.
pub(crate) fn desk_of(graph: &str, calls: &[(&str, Value)]) -> Desk {
    let desk = Desk::new();
    desk.file("config.yaml", CONFIG);
    desk.file("graph.yaml", graph);
    let calls: Vec<Value> = calls
        .iter()
        .map(|(name, args)| json!({"name": name, "args": args}))
        .collect();
    let script = json!({
        "schema": "script/v1",
        "rules": [
            {"visit": 1, "tool_calls": calls},
            {"content": "{{ results('ask_clarification') | join(' + ') }}"},
        ],
    });
    desk.file("script.yaml", &script.to_string());
    desk
}

pub(crate) fn question(text: &str, more: &Value) -> (&'static str, Value) {
    let mut args = json!({"question": text, "clarification_type": "missing_info"});
    for (key, value) in more.as_object().unwrap() {
        args[key] = value.clone();
    }
    ("ask_clarification", args)
}

fn run(desk: &Desk, args: &[&str]) -> Ran {
    let config = [
        "run",
        "graph.yaml",
        "--config",
        "config.yaml",
        "--thread",
        "t",
    ];
    desk.tine(&[&config, args].concat())
}

fn results(outcome: &Value) -> Vec<&str> {
    let messages = outcome["values"]["messages"].as_array().unwrap();
    let tools = messages.iter().filter(|message| message["type"] == "tool");
    tools
        .map(|message| message["content"].as_str().unwrap())
        .collect()
}

/// What must not change when an answer is refused.
fn place(desk: &Desk) -> Value {
    let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
    json!([
        shown["step"],
        shown["checkpoints"],
        shown["updated"],
        shown["interrupts"]
    ])
}

fn refused(desk: &Desk, args: &[&str], says: &[&str]) {
    let before = place(desk);
    let ran = desk.tine(args);
    assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.stdout, ran.stderr);
    for part in says {
        assert!(ran.stderr.contains(part), "no {part:?} in {}", ran.stderr);
    }
    assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
    assert_eq!(place(desk), before, "{args:?} moved the thread");
}

fn two_questions() -> Desk {
    desk_of(
        AGENT,
        &[
            question("Where to?", &json!({"options": ["dev", "prod"]})),
            (
                "write_file",
                json!({"description": "note", "path": "/mnt/user-data/outputs/once.txt", "content": "x", "append": true}),
            ),
            question("Who is told?", &json!({})),
        ],
    )
}

fn written(desk: &Desk) -> String {
    let path = desk
        .home()
        .join("threads/local/t/user-data/outputs/once.txt");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn two_questions_and_a_call_are_answered_one_by_one() {
    let mut desk = two_questions();
    let ran = run(&desk, &["go", "--json"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let outcome = ran.outcome();
    let ids: Vec<&str> = outcome["interrupts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|question| question["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(written(&desk), "x");
    desk.record(&["threads", "show", "t"]);
    refused(&desk, &["resume", "t", "1"], &["2", "open"]);
    let asked = desk.tine(&["threads", "show", "t", "--json"]).outcome();
    let asked = asked["checkpoint"].as_str().unwrap();
    // A branch, which leaves the questions at an old checkpoint.
    let copy = desk.tine(&["threads", "fork", "t", "--to", "old"]);
    assert_eq!(copy.code, 0, "{}", copy.stderr);
    for id in &ids {
        let told = format!("tine resume old --answer {id}=\"ANSWER\"");
        assert!(copy.stdout.contains(&told), "{}", copy.stdout);
    }
    let fork = ["threads", "fork", "old", "--at", "step:1"];
    assert_eq!(desk.tine(&fork).code, 0);
    let old = desk.tine(&["threads", "show", "old", "--at", asked]);
    for id in &ids {
        let told = format!("tine resume old --at {asked} --answer {id}=\"ANSWER\"");
        assert!(old.stdout.contains(&told), "{}", old.stdout);
    }
    desk.record(&["resume", "t", "--answer", &format!("{}=2", ids[0])]);
    assert_eq!(written(&desk), "x", "an ordinary call is made once");
    desk.record(&["resume", "t", "the whole team"]);
    assert_eq!(written(&desk), "x");
    let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
    assert_eq!(results(&shown), ["prod", "OK", "the whole team"]);
    desk.assert("two_questions");
}

#[test]
fn two_questions_are_answered_at_once() {
    let desk = two_questions();
    let outcome = run(&desk, &["go", "--json"]).outcome();
    let id = |at: usize| outcome["interrupts"][at]["id"].as_str().unwrap();
    let answers = [format!("{}=DEV", id(0)), format!("{}=1", id(1))];
    let ran = desk.tine(&[
        "resume",
        "t",
        "--answer",
        &answers[0],
        "--answer",
        &answers[1],
        "--json",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(results(&ran.outcome()), ["dev", "OK", "1"]);
    assert_eq!(ran.outcome()["answered"], 2);
}

#[test]
fn a_message_answers_all_questions() {
    let desk = two_questions();
    assert_eq!(run(&desk, &["go"]).code, 3);
    let ran = run(&desk, &["whatever you like", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let outcome = ran.outcome();
    assert_eq!(
        results(&outcome),
        ["whatever you like", "OK", "whatever you like"]
    );
    assert_eq!(written(&desk), "x");
    let last = outcome["values"]["messages"].as_array().unwrap();
    assert_eq!(last[last.len() - 2]["content"], "whatever you like");
}

#[test]
fn a_message_leaves_the_question_of_a_node_open() {
    let graph = AGENT
        .replace(
            "    then:\n      - when: has_tool_calls(last(state.messages))\n        goto: act\n      - else: end\n",
            "    then: [act, check]\n",
        )
        .replace("    then: agent\n", "    then: end\n")
        + "  check: { type: interrupt, payload: May it go?, resume: boolean, then: end }\n";
    let desk = desk_of(
        &graph,
        &[
            question("First?", &json!({})),
            question("Second?", &json!({})),
        ],
    );
    let ran = run(&desk, &["go", "--json"]);
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.outcome()["interrupts"].as_array().unwrap().len(), 3);
    let ran = run(&desk, &["words", "--json"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let outcome = ran.outcome();
    assert_eq!(outcome["answered"], 2);
    let open = outcome["interrupts"].as_array().unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0]["node"], "check");
    refused(&desk, &["resume", "t", "perhaps"], &["boolean"]);
    let ran = desk.tine(&["resume", "t", "yes", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(results(&ran.outcome()), ["words", "words"]);
}

#[test]
fn an_answer_is_a_number_an_option_or_words() {
    let options = json!({"options": [{"label": "Development", "value": "dev"}, "prod", "10"]});
    for (given, expected) in [
        (&["1"][..], "dev"),
        (&[" 2 "], "prod"),
        (&["10"], "10"),
        (&["PROD"], "prod"),
        (&["development"], "dev"),
        (&["Dev"], "dev"),
        (&["somewhere", "else"], "somewhere else"),
        (&["\"7\""], "7"),
        (&["2."], "2."),
        (&["--answer-json", "7"], "7"),
        (&["--answer-json", "\"2\""], "2"),
    ] {
        let desk = desk_of(AGENT, &[question("Where to?", &options)]);
        assert_eq!(run(&desk, &["go"]).code, 3);
        let ran = desk.tine(&[&["resume", "t", "--json"], given].concat());
        assert_eq!(ran.code, 0, "{given:?}: {}", ran.stderr);
        assert_eq!(results(&ran.outcome()), [expected], "{given:?}");
    }
    let desk = desk_of(AGENT, &[question("Where to?", &options)]);
    assert_eq!(run(&desk, &["go"]).code, 3);
    for number in ["0", "4", "99999999999999999999999"] {
        let says = [
            &format!("there is no option {number}; the options have the numbers 1 to 3"),
            "nothing was recorded",
            &format!("'\"{number}\"'"),
        ];
        refused(&desk, &["resume", "t", number], &says);
        let ran = run(&desk, &[number]);
        assert_eq!(ran.code, 2, "{}", ran.stdout);
        assert!(ran.stderr.contains(says[0]), "{}", ran.stderr);
    }
}

#[test]
fn options_that_are_json_in_a_text_are_options() {
    let options = json!({"options": "[\"dev\",\"prod\"]"});
    let desk = desk_of(AGENT, &[question("Where to?", &options)]);
    let ran = run(&desk, &["go", "--json"]);
    let offered = &ran.outcome()["interrupts"][0]["payload"]["options"];
    let labels: Vec<&str> = offered
        .as_array()
        .unwrap()
        .iter()
        .map(|option| option["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["dev", "prod"]);
    let ran = desk.tine(&["resume", "t", "2", "--json"]);
    assert_eq!(results(&ran.outcome()), ["prod"]);
}

#[test]
fn a_question_is_the_same_wherever_it_is_read() {
    let desk = two_questions();
    let ran = run(&desk, &["go", "--json"]);
    let outcome = ran.outcome();
    let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
    assert_eq!(outcome["interrupts"], shown["interrupts"]);
    assert_eq!(shown["interrupts"].as_array().unwrap().len(), 2);
    assert_eq!(shown["status"], "interrupted");
    // The stream tells of each as it is asked.
    for question in shown["interrupts"].as_array().unwrap() {
        let id = question["id"].as_str().unwrap();
        let told = ran.stdout.lines().filter(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["event"] != "outcome" && line.to_string().contains(id)
        });
        assert!(told.count() >= 1, "{id} is in no event");
    }
    assert_eq!(
        desk.tine(&["resume", "t", "--json"]).outcome()["interrupts"],
        outcome["interrupts"]
    );
}

#[test]
fn a_form_is_answered_with_an_object_that_is_checked_first() {
    let fields = json!({"fields": [
        {"name": "env", "label": "Environment", "type": "select", "options": ["dev", "prod"], "required": true},
        {"name": "replicas", "type": "number", "default": 2},
        {"name": "note"}
    ]});
    let mut desk = desk_of(AGENT, &[question("How to deploy?", &fields)]);
    assert_eq!(run(&desk, &["go"]).code, 3);
    desk.record(&["threads", "show", "t"]);
    refused(
        &desk,
        &["resume", "t", "prod, please"],
        &["JSON object", "`env` (select)"],
    );
    refused(
        &desk,
        &["resume", "t", "--answer-json", "[1]"],
        &["JSON object"],
    );
    let ran = run(&desk, &["prod, please"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    desk.record(&[
        "resume",
        "t",
        "--answer-json",
        r#"{"env": "test", "replicas": "many", "x": 1}"#,
    ]);
    desk.record(&["resume", "t", r#"{"env": "PROD", "note": null}"#]);
    let shown = desk.tine(&["threads", "show", "t", "--json"]).outcome();
    let answer: Value = serde_json::from_str(results(&shown)[0]).unwrap();
    assert_eq!(answer, json!({"env": "prod", "replicas": 2}));
    desk.assert("form");
}

#[test]
fn an_approval_takes_nothing_but_its_options() {
    let graph = AGENT.replace(
        "    then: agent\n",
        "    ask_before: [write_file]\n    then: agent\n",
    );
    let call = (
        "write_file",
        json!({"description": "note", "path": "/mnt/user-data/outputs/once.txt", "content": "x", "append": true}),
    );
    let mut desk = desk_of(&graph, &[call]);
    assert_eq!(run(&desk, &["go"]).code, 3);
    desk.record(&["threads", "show", "t"]);
    refused(
        &desk,
        &["resume", "t", "alow"],
        &["`alow` is none of allow, deny"],
    );
    refused(&desk, &["resume", "t", "3"], &["there is no option 3"]);
    desk.record(&["resume", "t", "1"]);
    assert_eq!(written(&desk), "x");
    desk.assert("approval");
}
