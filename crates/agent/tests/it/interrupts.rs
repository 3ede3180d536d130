//! Several calls of one message that ask.

use crate::fixture::{Bench, Say, ask, call, conversation, react};
use serde_json::json;
use std::sync::{Arc, Mutex};
use tine_engine::value::Value;
use tine_engine::{
    Event, EventKind, Exit, Interrupt, Outcome, Resume, RunOptions, ThreadKey, Update,
};

/// Asks before these calls of `effect` are made, and gives the questions by what they would say.
async fn asked(says: &[&str]) -> (Bench, Vec<(String, Interrupt)>) {
    let calls = says.iter().map(|say| call("effect", &json!({"say": say})));
    let lines = vec![Say::Calls(calls.collect()), Say::Text("done")];
    let bench = Bench::new(&react("", "    ask_before: [effect]"), lines);
    let outcome = bench.send("go").await;
    let questions = questions(&outcome);
    (bench, questions)
}

fn questions(outcome: &Outcome) -> Vec<(String, Interrupt)> {
    let say = |asked: &Interrupt| {
        let args = asked.payload.get("args").unwrap();
        args.get("say").unwrap().as_str().unwrap().to_owned()
    };
    outcome
        .interrupts
        .iter()
        .map(|asked| (say(asked), asked.clone()))
        .collect()
}

/// Answers in rounds, each with what is said about whom, and compares what the calls came to.
async fn check(says: &[&str], rounds: &[&[(&str, &str)]], expected: &str) {
    let (bench, asked) = asked(says).await;
    assert_eq!(asked.len(), says.len());
    let mut ids: Vec<_> = asked.iter().map(|(_, asked)| asked.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), says.len(), "a question has an id of its own");
    let mut open = says.len();
    for (round, answers) in rounds.iter().enumerate() {
        let answers = answers.iter().map(|(who, answer)| {
            let (_, asked) = asked.iter().find(|(say, _)| say == who).unwrap();
            (asked.id, *answer)
        });
        let outcome = bench.invoke(Resume::by_id(answers)).await;
        open -= rounds[round].len();
        if open > 0 {
            assert_eq!(outcome.exit, Exit::Interrupted);
            // Those that are left are the same questions.
            for (say, left) in questions(&outcome) {
                assert!(
                    asked
                        .iter()
                        .any(|(who, asked)| *who == say && asked.id == left.id)
                );
            }
            assert_eq!(outcome.interrupts.len(), open);
        } else {
            assert_eq!(outcome.exit, Exit::Done);
            let told = conversation(&outcome).replace(
                "Tool Error: The user does not allow this call of `effect`.",
                "denied",
            );
            let results: Vec<&str> = told.lines().skip(2).collect();
            assert_eq!(results.join(", "), expected);
        }
    }
    assert_eq!(open, 0);
}

#[tokio::test]
async fn each_call_gets_its_own_answer() {
    let three = ["one", "two", "three"];
    let expected = "Tool Success: one, denied, Tool Success: three, Ai: done";
    check(
        &three,
        &[&[("one", "allow"), ("two", "deny"), ("three", "allow")]],
        expected,
    )
    .await;
    // In any order, and not all at once.
    check(
        &three,
        &[&[("three", "allow")], &[("two", "deny"), ("one", "allow")]],
        expected,
    )
    .await;
    check(
        &three,
        &[
            &[("two", "deny")],
            &[("three", "allow")],
            &[("one", "allow")],
        ],
        expected,
    )
    .await;
    check(
        &["a", "b", "c", "d", "e"],
        &[
            &[("e", "deny"), ("a", "deny")],
            &[("d", "allow"), ("b", "deny"), ("c", "allow")],
        ],
        "denied, denied, Tool Success: c, Tool Success: d, denied, Ai: done",
    )
    .await;
}

#[tokio::test]
async fn a_question_is_the_same_in_the_events_the_outcome_and_the_state() {
    let lines = vec![
        Say::Calls(vec![ask("which?"), ask("when?")]),
        Say::Text("done"),
    ];
    let bench = Bench::new(&react("", ""), lines);
    let told: Arc<Mutex<Vec<Interrupt>>> = Arc::default();
    let hears = told.clone();
    let listener = move |event: &Event| {
        if let EventKind::TaskInterrupted { interrupts, .. } = &event.kind {
            hears.lock().unwrap().extend(interrupts.clone());
        }
    };
    let options = RunOptions {
        listener: Some(Arc::new(listener)),
        ..RunOptions::default()
    };
    let input = Update::new().set("messages", "go");
    let outcome = bench.run_if(input, options).await.unwrap();
    let payloads: Vec<_> = outcome
        .interrupts
        .iter()
        .map(|asked| asked.payload.get("question").and_then(Value::as_str))
        .collect();
    assert_eq!(payloads, [Some("which?"), Some("when?")]);
    assert_eq!(*told.lock().unwrap(), outcome.interrupts);
    let thread = ThreadKey::local("t");
    let state = bench.runner.state(&thread).await.unwrap().unwrap();
    assert_eq!(state.interrupts, outcome.interrupts);
    // They name the task that waits.
    let waits: Vec<_> = state.next.iter().map(|task| &*task.node).collect();
    assert_eq!(waits, ["act"]);
    assert!(state.interrupts.iter().all(|asked| &*asked.node == "act"));
    // What is stored of the conversation shows meanwhile: the calls, and no results yet.
    let messages = state.values["messages"].as_list().unwrap();
    assert_eq!(messages.len(), 2);
    let answers = outcome.interrupts.iter().map(|asked| (asked.id, "this"));
    let outcome = bench.invoke(Resume::by_id(answers)).await;
    assert_eq!(outcome.exit, Exit::Done);
    let state = bench.runner.state(&thread).await.unwrap().unwrap();
    assert!(state.interrupts.is_empty());
}
