//! Models that send what no tool expects.

use crate::fixture::{Bench, Say, call, conversation, react};
use serde_json::json;
use tine_engine::{Exit, Outcome, Resume};

/// Lets a model send these calls, and go on.
async fn send(tools: &str, calls: Vec<(&'static str, String)>) -> Outcome {
    let lines = vec![Say::Calls(calls), Say::Text("done")];
    let outcome = Bench::new(&react("", tools), lines).send("go").await;
    assert_eq!(outcome.exit, Exit::Done);
    outcome
}

#[tokio::test]
async fn a_name_of_any_characters_is_an_unknown_tool() {
    let long: &'static str = "päd".repeat(400_000).leak();
    for name in [
        " ",
        "pro\u{0}be",
        "../probe",
        "今天",
        "\u{202e}eborp",
        "`probe`",
        long,
    ] {
        let outcome = send("", vec![call(name, &json!({"say": "x"}))]).await;
        let told = conversation(&outcome);
        let result = told
            .lines()
            .find(|line| line.starts_with("Tool"))
            .unwrap_or_default();
        assert!(
            result.starts_with("Tool Error: There is no tool `"),
            "{result}"
        );
        assert!(result.len() < 500, "{}", result.len());
    }
}

#[tokio::test]
async fn calls_that_can_not_be_read_go_back_to_the_model() {
    let none = send("", vec![call("", &json!({}))]).await;
    insta::assert_snapshot!(conversation(&none), @"
    Human: go
    Ai: 
    Tool Error: The call of `unknown` was not made: the call names no tool. Send the call again with the arguments as one complete JSON object. What came was: {}
    Ai: done
    ");
    let cut = send("", vec![("effect", "{\"say\": \"x".to_owned())]).await;
    insta::assert_snapshot!(conversation(&cut), @r#"
    Human: go
    Ai: 
    Tool Error: The call of `effect` was not made: the arguments are not valid JSON: EOF while parsing a string at line 1 column 10 of {"say": "x. Send the call again with the arguments as one complete JSON object.
    Ai: done
    "#);
}

#[tokio::test]
async fn no_call_of_a_reply_that_was_cut_off_is_made() {
    let calls = vec![
        call("effect", &json!({"say": "half"})),
        ("effect", "{\"say\": \"ha".to_owned()),
    ];
    let bench = Bench::new(&react("", ""), vec![Say::CutOff(calls), Say::Text("done")]);
    let outcome = bench.send("go").await;
    assert!(bench.log().is_empty(), "{:?}", bench.log());
    insta::assert_snapshot!(conversation(&outcome), @"
    Human: go
    Ai: 
    Tool Error: The call of `effect` was not made: the reply was cut off (length), so none of its calls counts. Send the call again with the arguments as one complete JSON object. If they are long, make several calls with a part of them each.
    Tool Error: The call of `effect` was not made: the reply was cut off (length), so none of its calls counts. Send the call again with the arguments as one complete JSON object. If they are long, make several calls with a part of them each.
    Ai: done
    ");
}

#[tokio::test]
async fn arguments_of_any_size_and_depth_are_checked() {
    let big = "x".repeat(1 << 20);
    let deep = "[".repeat(1 << 20);
    let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
    for tool in ["probe", "effect"] {
        let calls = vec![
            call(tool, &json!({"say": big})),
            call(tool, &json!({"say": "x", "unknown": big})),
            (tool, format!("{{\"say\": {deep}")),
            (tool, format!("{{\"say\": {nested}}}")),
            (tool, "null".to_owned()),
        ];
        let told = conversation(&send("", calls).await);
        let statuses: Vec<_> = told
            .lines()
            .filter(|line| line.starts_with("Tool"))
            .map(|line| &line[5..10])
            .collect();
        assert_eq!(statuses, ["Succe", "Error", "Error", "Error", "Error"]);
    }
}

#[tokio::test]
async fn a_message_may_have_hundreds_of_calls() {
    for tools in ["", "    ask_before: [effect]"] {
        let one = |n: usize| {
            let name = ["probe", "effect", "nothing"][n % 3];
            call(name, &json!({"say": n.to_string(), "millis": 1}))
        };
        let calls = Say::Calls((0..500).map(one).collect());
        let bench = Bench::new(&react("", tools), vec![calls, Say::Text("done")]);
        let mut outcome = bench.send("go").await;
        if !tools.is_empty() {
            assert_eq!(outcome.interrupts.len(), 167);
            let allow = outcome.interrupts.iter().map(|asked| (asked.id, "allow"));
            outcome = bench.invoke(Resume::by_id(allow)).await;
        }
        let told = conversation(&outcome);
        let count = |start: &str| told.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!((count("Tool Success"), count("Tool Error")), (334, 166));
        assert_eq!(bench.log().len(), 334 * 2);
    }
}
