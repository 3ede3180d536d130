//! Calls that a person is asked about.

use crate::fixture::{Bench, Say, call, conversation, react};
use serde_json::json;
use tine_engine::value::Value;
use tine_engine::{Exit, Resume};

async fn check(answer: Value, expected: &str, log: &[&str]) {
    let calls = vec![
        call("effect", &json!({"say": "boom"})),
        call("probe", &json!({"say": "peek"})),
    ];
    let bench = Bench::new(
        &react("", "    ask_before: [effect]"),
        vec![Say::Calls(calls), Say::Text("done")],
    );
    let outcome = bench.send("go").await;
    assert_eq!(outcome.exit, Exit::Interrupted);
    assert_eq!(bench.log(), ["peek begins", "peek ends"]);
    let payload = &outcome.interrupts[0].payload;
    assert_eq!(
        payload.get("text"),
        Some(&r#"May `effect` be called with {"say":"boom"}?"#.into())
    );

    let outcome = bench.invoke(Resume::value(answer)).await;
    assert_eq!(outcome.exit, Exit::Done);
    let head = "Human: go\nAi calls effect, probe\n";
    assert_eq!(
        conversation(&outcome),
        format!("{head}{expected}\nTool Success: peek\nAi: done")
    );
    assert_eq!(bench.log()[2..], *log);
}

#[tokio::test]
async fn only_a_clear_yes_makes_the_call() {
    let denied = "Tool Error: The user does not allow this call of `effect`.";
    check(
        "allow".into(),
        "Tool Success: boom",
        &["boom begins", "boom ends"],
    )
    .await;
    check("deny".into(), denied, &[]).await;
    check("well".into(), denied, &[]).await;
    check(Value::Null, denied, &[]).await;
}

#[tokio::test]
async fn the_arguments_can_be_edited() {
    let edited = json!({"edit": {"say": "hush"}});
    check(
        edited.into(),
        "Tool Success: hush",
        &["hush begins", "hush ends"],
    )
    .await;
}
