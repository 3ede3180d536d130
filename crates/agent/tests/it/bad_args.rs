//! Calls whose arguments did not come whole: none of them runs, each is answered, and the model goes on.

use crate::fixture::{Bench, Say, conversation, react};
use crate::rules::broken;
use serde_json::json;
use tine_engine::Exit;
use tine_engine::message::{InvalidToolCall, ToolCall};
use tine_models::{FinishReason, ReplyCall};

fn invalid(name: &str, id: &str, args: &str, error: &str) -> ReplyCall {
    ReplyCall::Invalid(InvalidToolCall {
        name: Some(name.into()),
        args: Some(args.into()),
        id: Some(id.into()),
        error: Some(error.into()),
    })
}

/// Lets a model reply like this and then go on, and gives what the conversation says of it. No call of `effect` runs.
async fn check(calls: Vec<ReplyCall>, finish: FinishReason) -> String {
    let count = calls.len();
    let lines = vec![Say::Reply(calls, finish), Say::Text("done")];
    let bench = Bench::new(&react("", ""), lines);
    let outcome = bench.send("go").await;
    assert_eq!(outcome.exit, Exit::Done);
    assert!(!bench.log().iter().any(|line| line.contains("half")));
    let requests = bench.requests.lock().unwrap();
    assert_eq!(requests.len(), 2, "the model is asked again");
    assert_eq!(broken(&requests[1]), Vec::<String>::new());
    assert_eq!(requests[1].messages.len(), 2 + count);
    let told = conversation(&outcome);
    told.strip_prefix("Human: go\n")
        .and_then(|told| told.strip_suffix("\nAi: done"))
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_call_that_is_no_json_is_answered_with_what_is_wrong() {
    let cut = "the arguments are not valid JSON: EOF while parsing a string at line 1 column 13";
    let calls = vec![invalid("get_weather", "w1", "{\"city\": \"Par", cut)];
    let told = check(calls, FinishReason::ToolCalls).await;
    insta::assert_snapshot!(told, @r#"
    Ai: 
    Tool Error: The call of `get_weather` was not made: the arguments are not valid JSON: EOF while parsing a string at line 1 column 13. Send the call again with the arguments as one complete JSON object. What came was: {"city": "Par
    "#);
    let extra = "the arguments are not valid JSON: trailing characters at line 1 column 8";
    let calls = vec![invalid("effect", "e1", "{\"a\":1}{\"a\":1}", extra)];
    let told = check(calls, FinishReason::ToolCalls).await;
    insta::assert_snapshot!(told, @r#"
    Ai: 
    Tool Error: The call of `effect` was not made: the arguments are not valid JSON: trailing characters at line 1 column 8. Send the call again with the arguments as one complete JSON object. What came was: {"a":1}{"a":1}
    "#);
    // A parser that quotes the text is not repeated.
    let quoting = "the arguments are not valid JSON: expected `:` at line 1 column 6 of {\"a\" 1}";
    let calls = vec![invalid("effect", "e1", "{\"a\" 1}", quoting)];
    let told = check(calls, FinishReason::ToolCalls).await;
    insta::assert_snapshot!(told, @r#"
    Ai: 
    Tool Error: The call of `effect` was not made: the arguments are not valid JSON: expected `:` at line 1 column 6 of {"a" 1}. Send the call again with the arguments as one complete JSON object.
    "#);
    let nothing = ReplyCall::Invalid(InvalidToolCall {
        name: None,
        args: None,
        id: None,
        error: None,
    });
    let told = check(vec![nothing], FinishReason::Stop).await;
    insta::assert_snapshot!(told, @"
    Ai: 
    Tool Error: The call of `unknown` was not made: the call names no tool. Send the call again with the arguments as one complete JSON object.
    ");
}

#[tokio::test]
async fn the_raw_text_is_shown_up_to_a_cap() {
    for (length, shown) in [(200, 200), (201, 200), (100_000, 200)] {
        let text = "ä".repeat(length);
        let calls = vec![invalid(
            "probe",
            "p",
            &text,
            "the arguments are not valid JSON",
        )];
        let told = check(calls, FinishReason::ToolCalls).await;
        assert_eq!(told.matches('ä').count(), shown);
        let left = format!("... ({} more characters)", length - shown);
        assert_eq!(told.contains(&left), length > shown);
    }
}

#[tokio::test]
async fn no_call_of_a_reply_that_was_cut_off_runs() {
    // They parse, but nobody knows whether that is all.
    let half = "{\"say\":\"half\"}";
    for (finish, advice) in [
        (FinishReason::Length, true),
        (FinishReason::ContentFilter, false),
        (FinishReason::Incomplete, false),
    ] {
        for count in [1, 2, 5] {
            let why = format!("the reply was cut off ({})", finish.name());
            let calls = (0..count).map(|n| invalid("effect", &format!("c{n}"), half, &why));
            let told = check(calls.collect(), finish.clone()).await;
            let again = "Send the call again with the arguments as one complete JSON object.";
            assert_eq!(told.matches("Tool Error: ").count(), count);
            assert_eq!(told.matches(again).count(), count);
            assert_eq!(told.matches(&why).count(), count);
            let smaller = "make several calls with a part of them each";
            assert_eq!(
                told.matches(smaller).count(),
                if advice { count } else { 0 }
            );
        }
    }
}

#[tokio::test]
async fn the_other_calls_of_the_message_are_made() {
    let good = ReplyCall::Valid(ToolCall {
        name: "probe".into(),
        args: json!({"say": "fine"}).into(),
        id: "g".into(),
    });
    let bad = invalid(
        "probe",
        "b",
        "[1]",
        "the arguments are a list, and must be a JSON object",
    );
    let told = check(vec![bad, good], FinishReason::ToolCalls).await;
    insta::assert_snapshot!(told, @"
    Ai calls probe
    Tool Success: fine
    Tool Error: The call of `probe` was not made: the arguments are a list, and must be a JSON object. Send the call again with the arguments as one complete JSON object. What came was: [1]
    ");
}
