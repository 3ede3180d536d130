//! Replies over HTTP that end in ways of their own, or do not.

use crate::openai::*;
use crate::world::{GRACE, TestWorld};
use serde_json::{Value, json};
use std::time::Duration;
use tine_engine::ErrorClass;
use tine_models::ReplyCall;
use tine_testkit::provider::{Exchange, Provider};

#[tokio::test]
async fn a_reply_that_has_ended_is_kept_whatever_follows() {
    type Meanwhile = fn(&Provider, &TestWorld);
    let stream = |rest: &str| {
        let body = format!("data: {}\n\ndata: {}\n\n{rest}", text("a"), end("stop"));
        Exchange::new("text/event-stream", body)
    };
    let nothing = |_: &Provider, _: &TestWorld| {};
    let silent = |provider: &Provider, world: &TestWorld| {
        provider.wait_for_hanging(1);
        world.run_out(GRACE);
    };
    let cases: [(Exchange, Meanwhile); 6] = [
        (stream("").then_close(), nothing),
        (stream("data: {\"usa").then_close(), nothing),
        (stream("data: {\"usa"), nothing),
        (stream("data: {not json\n\n"), nothing),
        (stream("data: \"\u{fffd}").then_hang(), silent),
        (stream("").then_hang(), silent),
    ];
    for (nth, (exchange, meanwhile)) in cases.into_iter().enumerate() {
        let asked = ask_in(TestWorld::new(), vec![exchange], json!({}), meanwhile).await;
        assert_eq!(asked.reply().content.text(), "a", "{nth}");
        assert_eq!(asked.reply().finish.name(), "stop", "{nth}");
        assert_eq!(asked.provider.requests().len(), 1, "{nth}");
    }
    // An error of the provider's own is told nevertheless.
    let failed = stream("data: {\"error\": {\"code\": 500, \"message\": \"No\"}}\n\n");
    let asked = ask(vec![failed]).await;
    assert_eq!(asked.error().class(), ErrorClass::Transport);
}

#[tokio::test]
async fn one_limit_is_for_all_of_a_reply_that_is_not_streamed() {
    let world = TestWorld::new();
    let body = whole(json!({"content": "a"}), "stop").to_string();
    let exchange = Exchange::new("application/json", format!("  {body}")).cut(3);
    let asked = ask_in(world, vec![exchange], json!({"timeout": 120}), |_, _| {}).await;
    assert_eq!(asked.reply().content.text(), "a");
    assert_eq!(asked.world.limits(), [Duration::from_secs(120)]);
}

#[tokio::test]
async fn a_stream_that_ends_within_a_character_has_broken_off() {
    let body = format!("data: {}\n\ndata: {{\"x\": \"\u{4e16}", text("a"));
    for cut in 1..3 {
        let exchange = Exchange::new("text/event-stream", body.clone()).first(body.len() - cut);
        let asked = ask(vec![exchange]).await;
        let error = asked.error().to_string();
        assert_eq!(asked.error().class(), ErrorClass::Transport, "{error}");
        assert!(error.ends_with("in the middle of a character"), "{error}");
    }
}

#[tokio::test]
async fn calls_of_a_stream_that_does_not_say_why_it_ends_are_not_made() {
    let call = json!([{"index": 0, "id": "A", "function": {"name": "rm", "arguments": "{\"path\":\"a\"}"}}]);
    let expected =
        "||incomplete invalid:the reply was cut off (incomplete), so none of its calls counts";
    check(&[calls(call.clone())], expected).await;
    // A reply in one piece has come whole.
    let message = json!({"message": {"tool_calls": call}});
    let asked = ask(vec![Exchange::json(&json!({"choices": [message]}))]).await;
    assert!(matches!(
        asked.reply().calls.as_slice(),
        [ReplyCall::Valid(_)]
    ));
}

#[tokio::test]
async fn reasons_that_speak_of_length_are_length() {
    for reason in [
        "max_length",
        "MODEL_CONTEXT_WINDOW_EXCEEDED",
        "truncated",
        "token_limit_exceeded",
    ] {
        check(&[text("a"), end(reason)], "a||length").await;
    }
}

#[tokio::test]
async fn a_reply_of_endless_calls_is_refused() {
    let call =
        |nth: usize| json!({"id": format!("c{nth}"), "function": {"name": "f", "arguments": "{}"}});
    let at = |nth: usize, index: usize| {
        let mut call = call(nth);
        call["index"] = index.into();
        call
    };
    let in_one = |calls: Vec<Value>| vec![delta(json!({"tool_calls": calls}))];
    let one_each = |call: &dyn Fn(usize) -> Value, count: usize| -> Vec<Value> {
        (0..count).map(|nth| calls(json!([call(nth)]))).collect()
    };
    let most = 1000;
    for pieces in [
        in_one((0..=most).map(call).collect()),
        one_each(&call, most + 1),
        one_each(&|nth| at(nth, nth), most + 1),
        one_each(&|nth| at(nth, 0), most + 1),
    ] {
        let asked = ask(vec![Exchange::events(&pieces)]).await;
        let error = asked.error();
        assert_eq!(error.class(), ErrorClass::InvalidOutput);
        assert!(
            error.to_string().contains("more than 1000 calls"),
            "{error}"
        );
    }
    let mut pieces = one_each(&call, most);
    pieces.push(end("tool_calls"));
    let asked = ask(vec![Exchange::events(&pieces)]).await;
    assert_eq!(asked.reply().calls.len(), most);
}

#[tokio::test]
async fn a_reply_that_begins_with_nothing_is_refused() {
    let space = |count: usize| Exchange::new("application/json", " ".repeat(count)).then_hang();
    let error = refused(vec![space(70_000)]).await;
    assert!(
        error.contains("it begins with 64 KiB of nothing"),
        "{error}"
    );
    let body = whole(json!({"content": "a"}), "stop");
    let some = Exchange::new("application/json", format!("{}{body}", " ".repeat(60_000)));
    assert_eq!(ask(vec![some.cut(100)]).await.reply().content.text(), "a");
}

#[tokio::test]
async fn a_header_does_not_have_a_refusal_asked_again() {
    for status in [400, 401, 403] {
        let refusal = failing(status, json!({})).header("x-should-retry", "true");
        let asked = ask(vec![refusal]).await;
        assert!(asked.result.is_err());
        assert_eq!(asked.provider.requests().len(), 1, "{status}");
    }
    let locked = failing(409, json!({}))
        .header("x-should-retry", "true")
        .header("retry-after", "0");
    let asked = ask(vec![locked, Exchange::events(&hello())]).await;
    assert_eq!(asked.reply().content.text(), "Hello, 世界");
    assert_eq!(asked.world.paused(), [500], "never at once");
}

#[tokio::test]
async fn pieces_that_come_late_are_waited_for() {
    let rest = format!("data: {}\n\ndata: {}\n\n", text("b"), end("stop"));
    let begun = Exchange::new("text/event-stream", format!("data: {}\n\n", text("a")));
    let release = |provider: &Provider, _: &TestWorld| provider.release();
    let asked = ask_in(
        TestWorld::new(),
        vec![begun.then_late(rest)],
        json!({}),
        release,
    )
    .await;
    assert_eq!(asked.reply().content.text(), "ab");
}
