//! A model over HTTP, against a provider on this machine.
#![expect(clippy::needless_pass_by_value, reason = "`json!` reads better so")]

use crate::world::TestWorld;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tine_engine::{ErrorClass, Message, Timestamp};
use tine_models::registry::OPENAI;
use tine_models::{
    Delta, Model, ModelCx, ModelEntry, ModelError, ModelReply, ModelRequest, Models, ReplyCall,
};
use tine_testkit::provider::{Exchange, Provider};

pub(crate) const KEY: &str = "sk-very-secret-key";

pub(crate) fn model(base_url: &str, more: Value) -> Arc<dyn Model> {
    let mut settings = json!({"model": "gpt", "base_url": base_url, "api_key": KEY});
    for (key, value) in more.as_object().cloned().unwrap() {
        settings[key] = value;
    }
    let entry = ModelEntry {
        name: "default".to_owned(),
        use_path: OPENAI.to_owned(),
        settings: settings.as_object().cloned().unwrap(),
    };
    let none = |_: &str| Err(std::io::Error::other("no files"));
    let models = Models::from_entries([entry], none).unwrap();
    models.get("default").unwrap()
}

/// What came of one request.
pub(crate) struct Asked {
    pub(crate) result: Result<ModelReply, ModelError>,
    pub(crate) heard: Vec<Delta>,
    pub(crate) provider: Provider,
    pub(crate) world: Arc<TestWorld>,
}

impl Asked {
    pub(crate) fn error(&self) -> &ModelError {
        self.result.as_ref().expect_err("an error")
    }

    pub(crate) fn reply(&self) -> &ModelReply {
        self.result
            .as_ref()
            .unwrap_or_else(|error| panic!("{error}"))
    }
}

pub(crate) async fn ask_in(
    world: TestWorld,
    exchanges: Vec<Exchange>,
    more: Value,
    meanwhile: impl FnOnce(&Provider, &TestWorld) + Send + 'static,
) -> Asked {
    let provider = Arc::new(Provider::start(exchanges).unwrap());
    let world = Arc::new(world);
    let cx = ModelCx::new(world.clone());
    let model = model(&provider.base_url(), more);
    let (there, time) = (provider.clone(), world.clone());
    let meanwhile = tokio::task::spawn_blocking(move || meanwhile(&there, &time));
    let mut heard = Vec::new();
    let mut sink = |delta: &Delta| heard.push(delta.clone());
    let request = ModelRequest::new(vec![Message::human("hi")]);
    let result = model.stream(&cx, &request, &mut sink).await;
    meanwhile.await.unwrap();
    Asked {
        result,
        heard,
        provider: Arc::into_inner(provider).expect("nobody else has it"),
        world,
    }
}

pub(crate) async fn ask(exchanges: Vec<Exchange>) -> Asked {
    ask_in(TestWorld::new(), exchanges, json!({}), |_, _| {}).await
}

pub(crate) fn text(text: &str) -> Value {
    json!({"id": "1", "object": "chat.completion.chunk", "model": "gpt-9-2026", "choices": [{"index": 0, "delta": {"content": text}}]})
}

pub(crate) fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

pub(crate) fn usage() -> Value {
    json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
}

pub(crate) fn hello() -> Vec<Value> {
    vec![text("Hel"), text("lo, 世界"), end("stop"), usage()]
}

pub(crate) fn whole(message: Value, reason: &str) -> Value {
    json!({"model": "gpt-9-2026", "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
}

#[tokio::test]
async fn a_stream_is_heard_piece_by_piece() {
    for size in [1, 7, usize::MAX] {
        let asked = ask(vec![Exchange::events(&hello()).cut(size)]).await;
        let reply = asked.reply();
        assert_eq!(reply.content.text(), "Hello, 世界");
        assert_eq!(reply.finish.name(), "stop");
        assert_eq!(&*reply.model, "gpt-9-2026");
        assert_eq!(reply.usage.map(|usage| usage.total_tokens()), Some(5));
        let texts = asked.heard.iter().filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(texts.collect::<Vec<_>>(), ["Hel", "lo, 世界"]);
    }
}

#[tokio::test]
async fn the_request_is_what_the_settings_say() {
    let settings = json!({"organization": "org", "default_headers": {"X-Title": "tine"}, "default_query": {"v": "1"}});
    let asked = ask_in(
        TestWorld::new(),
        vec![Exchange::events(&hello())],
        settings,
        |_, _| {},
    )
    .await;
    let requests = asked.provider.requests();
    let [request] = requests.as_slice() else {
        panic!("one request");
    };
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/v1/chat/completions?v=1")
    );
    let header = |name| request.header(name).unwrap_or_default();
    assert_eq!(header("authorization"), format!("Bearer {KEY}"));
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("openai-organization"), "org");
    assert_eq!(header("x-title"), "tine");
    assert!(header("user-agent").starts_with("tine/"));
    assert_eq!(
        request.json(),
        json!({"model": "gpt", "messages": [{"role": "user", "content": "hi"}], "stream": true,
            "stream_options": {"include_usage": true}})
    );
}

#[tokio::test]
async fn an_endpoint_that_does_not_stream_is_understood() {
    let message = json!({"role": "assistant", "content": "Hello", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{\"path\":\"/\"}"}},
        {"id": "a", "type": "function", "function": {"name": "ls", "arguments": {"path": "/b"}}},
    ]});
    for content_type in ["application/json", "text/plain", "text/event-stream"] {
        let body = whole(message.clone(), "tool_calls").to_string();
        let asked = ask(vec![
            Exchange::new(content_type, format!("\n {body}\n")).cut(11),
        ])
        .await;
        let reply = asked.reply();
        assert_eq!(reply.content.text(), "Hello");
        let args: Vec<String> = reply
            .calls
            .iter()
            .map(|call| match call {
                ReplyCall::Valid(call) => call.args.to_string(),
                ReplyCall::Invalid(call) => panic!("{call:?}"),
            })
            .collect();
        assert_eq!(args, [r#"{"path":"/"}"#, r#"{"path":"/b"}"#]);
        assert_eq!(reply.usage.map(|usage| usage.input_tokens), Some(3));
    }
}

/// What a stream of these pieces becomes: text, reasoning, calls, end.
pub(crate) async fn check(pieces: &[Value], expected: &str) {
    let asked = ask(vec![Exchange::events(pieces)]).await;
    let reply = asked.reply();
    let calls = reply.calls.iter().map(|call| match call {
        ReplyCall::Valid(call) => format!(" {}:{}{}", call.id, call.name, call.args),
        ReplyCall::Invalid(call) => {
            format!(" invalid:{}", call.error.as_deref().unwrap_or_default())
        }
    });
    let shown = format!(
        "{}|{}|{}{}",
        reply.content.text(),
        reply.reasoning.as_deref().unwrap_or_default(),
        reply.finish.name(),
        calls.collect::<String>()
    );
    assert_eq!(shown, expected);
}

pub(crate) fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

pub(crate) fn calls(calls: Value) -> Value {
    delta(json!({"tool_calls": calls}))
}

#[tokio::test]
async fn doubled_pieces_of_text_stay_doubled() {
    for (pieces, expected) in [
        (["谢", "谢", ""], "谢谢"),
        (["go", "go", ""], "gogo"),
        (["hel", "l", "o"], "hello"),
        (["\n", "\n", " "], "\n\n "),
    ] {
        let mut stream: Vec<Value> = pieces.iter().map(|piece| text(piece)).collect();
        stream.push(end("stop"));
        check(&stream, &format!("{expected}||stop")).await;
    }
}

#[tokio::test]
async fn calls_come_in_many_shapes() {
    let of = |id: Value, name: Value, arguments: Value| json!({"function": {"name": name, "arguments": arguments}, "id": id, "type": "function"});
    let at = |index: u32, mut call: Value| {
        call["index"] = index.into();
        call
    };
    let done = || end("tool_calls");
    let null = || Value::Null;
    let ab = "||tool_calls A:f{} B:g{}";
    // Two calls under one index, in two pieces and in one.
    let (a, b) = (
        of("A".into(), "f".into(), "{}".into()),
        of("B".into(), "g".into(), "{}".into()),
    );
    check(
        &[
            calls(json!([at(0, a.clone())])),
            calls(json!([at(0, b.clone())])),
            done(),
        ],
        ab,
    )
    .await;
    check(
        &[calls(json!([at(0, a.clone()), at(0, b.clone())])), done()],
        ab,
    )
    .await;
    // No index.
    check(
        &[calls(json!([a.clone()])), calls(json!([b.clone()])), done()],
        ab,
    )
    .await;
    check(&[calls(json!([a.clone(), b.clone()])), done()], ab).await;
    let more = |id: &str, arguments: &str| calls(json!([of(id.into(), null(), arguments.into())]));
    check(
        &[
            calls(json!([of("A".into(), "f".into(), "".into())])),
            more("A", "{\"x\""),
            more("", ":1}"),
            calls(json!([of("B".into(), "g".into(), "{".into())])),
            calls(json!([of(null(), null(), "}".into())])),
            done(),
        ],
        "||tool_calls A:f{\"x\":1} B:g{}",
    )
    .await;
    // The name comes late.
    check(
        &[
            calls(json!([{"index": 0, "id": "A", "function": {"arguments": "{\"a\""}}])),
            calls(json!([{"index": 0, "function": {"name": "f"}}])),
            calls(json!([{"index": 0, "function": {"arguments": ":1}"}}])),
            done(),
        ],
        "||tool_calls A:f{\"a\":1}",
    )
    .await;
    // One after the other, with one end; id and type repeated, name null.
    check(
        &[
            calls(json!([at(0, of("x".into(), "f".into(), "".into()))])),
            calls(json!([at(0, of("x".into(), null(), "{\"p\":".into()))])),
            calls(json!([at(0, of("x".into(), "".into(), "1}".into()))])),
            calls(json!([at(
                1,
                of("y".into(), "g".into(), "{\"q\":2}".into())
            )])),
            done(),
        ],
        "||tool_calls x:f{\"p\":1} y:g{\"q\":2}",
    )
    .await;
    // The oldest form.
    let old = delta(json!({"function_call": {"name": "f", "arguments": "{}"}}));
    let id = ModelRequest::new(vec![Message::human("hi")]).call_id(0);
    check(
        &[old, end("function_call")],
        &format!("||tool_calls {id}:f{{}}"),
    )
    .await;
}

#[tokio::test]
async fn a_reply_that_is_cut_off_has_no_call_that_counts() {
    let call = calls(
        json!([{"index": 0, "id": "A", "function": {"name": "write_file", "arguments": "{\"path\":\"a.txt\",\"content\":\"half\"}"}}]),
    );
    for reason in ["length", "content_filter"] {
        let expected = format!(
            "||{reason} invalid:the reply was cut off ({reason}), so none of its calls counts"
        );
        check(&[call.clone(), end(reason)], &expected).await;
    }
}

#[tokio::test]
async fn content_and_reasoning_come_in_many_shapes() {
    for field in ["reasoning_content", "reasoning", "thinking"] {
        check(
            &[
                delta(json!({field: "h"})),
                delta(json!({field: "m", "content": null})),
                text("a"),
                end("stop"),
            ],
            "a|hm|stop",
        )
        .await;
    }
    // Both fields at once say the same.
    check(
        &[
            delta(json!({"reasoning_content": "h", "reasoning": "h", "content": ""})),
            end("stop"),
        ],
        "|h|stop",
    )
    .await;
    check(
        &[
            delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]})),
            delta(json!({"content": [{"type": "text", "text": "a"}, "b"]})),
            end("model_length"),
        ],
        "ab|hm|length",
    )
    .await;
    check(
        &[
            delta(json!({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]})),
            text("a"),
            end("stop"),
        ],
        "a|hm|stop",
    )
    .await;
    check(
        &[
            delta(json!({"refusal": "I'm"})),
            delta(json!({"refusal": " sorry"})),
            end("stop"),
        ],
        "I'm sorry||stop",
    )
    .await;
    check(&[text("a"), end("sensitive")], "a||content_filter").await;
    check(
        &[text("a"), end("insufficient_system_resource")],
        "a||incomplete",
    )
    .await;
    check(&[text("a"), end("made_up")], "a||made_up").await;
    // An endpoint that gives no reason, but says that it is done.
    check(&[text("a")], "a||stop").await;
    // Of several replies the first is meant.
    let second =
        json!({"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "length"}]});
    check(&[text("a"), second, end("stop")], "a||stop").await;
}

#[tokio::test]
async fn usage_may_stand_in_groqs_own_place() {
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "x_groq": {"usage": {"prompt_tokens": 7, "completion_tokens": 1}}});
    let asked = ask(vec![Exchange::events(&[text("a"), last])]).await;
    assert_eq!(
        asked.reply().usage.map(|usage| usage.total_tokens()),
        Some(8)
    );
}

#[tokio::test]
async fn what_a_provider_had_in_its_cache_is_counted() {
    for (more, expected) in [
        (json!({"prompt_tokens_details": {"cached_tokens": 4}}), 4),
        (
            json!({"prompt_cache_hit_tokens": 6, "prompt_cache_miss_tokens": 1}),
            6,
        ),
        (json!({"prompt_tokens_details": null}), 0),
    ] {
        let mut usage = json!({"prompt_tokens": 7, "completion_tokens": 1});
        usage
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap());
        let last = json!({"choices": [], "usage": usage});
        let asked = ask(vec![Exchange::events(&[text("a"), end("stop"), last])]).await;
        let usage = asked.reply().usage.unwrap();
        assert_eq!(
            (usage.input_tokens, usage.cached_input_tokens),
            (7, expected)
        );
    }
}

#[tokio::test]
async fn comments_and_line_ends_of_every_kind_are_read() {
    let body = format!(
        "\u{feff}: OPENROUTER PROCESSING\r\n\r\nevent: message\r\ndata: {}\r\n\r\n: more\n\ndata:{}\n\nid: 7\rdata: {}\r\rdata: [DONE]",
        text("a"),
        text("b"),
        end("stop")
    );
    for size in [1, 2, 3, usize::MAX] {
        let asked = ask(vec![
            Exchange::new("text/event-stream", body.clone()).cut(size),
        ])
        .await;
        assert_eq!(asked.reply().content.text(), "ab");
    }
}

/// An error, its class and how often was asked.
pub(crate) async fn refused(exchanges: Vec<Exchange>) -> String {
    shown(&ask(exchanges).await)
}

pub(crate) fn shown(asked: &Asked) -> String {
    let error = asked.error();
    let times = asked.provider.requests().len();
    let text = format!("{:?}, asked {times}: {error}", error.class());
    assert!(!text.contains(KEY), "{text}");
    // Which port it is says nothing.
    text.replace(&asked.provider.base_url(), "<base>")
}

pub(crate) fn failing(status: u16, body: Value) -> Exchange {
    Exchange::json(&body).status(status)
}

#[tokio::test]
async fn a_status_becomes_an_error_in_the_providers_words() {
    let error = |message: &str, code: &str| json!({"error": {"message": message, "code": code, "type": "t"}});
    let shown = [
        refused(vec![failing(401, error(&format!("Incorrect API key provided: {KEY}."), "invalid_api_key"))]).await,
        refused(vec![failing(403, json!({"detail": "Not yours"}))]).await,
        refused(vec![failing(404, json!({"error": "Specified model not found: gpt"}))]).await,
        refused(vec![failing(400, json!({"object": "error", "message": "Invalid model", "code": "1500"}))]).await,
        refused(vec![failing(422, json!({"detail": [{"loc": ["body"], "msg": "Field required"}]}))]).await,
        refused(vec![failing(429, error("You exceeded your current quota.", "insufficient_quota"))]).await,
        refused(vec![failing(402, error("Insufficient Balance", "invalid_request_error"))]).await,
        refused(vec![Exchange::new("text/html", "<html>\n<h1>Not here</h1></html>").status(404)]).await,
        refused(vec![failing(308, json!({})).header("location", "https://elsewhere/v1")]).await,
        refused(vec![failing(400, json!({"error": {"message": "Provider returned error", "metadata": {"raw": "context too long"}}}))]).await,
        refused(vec![Exchange::new("text/plain", "x".repeat(100_000)).status(400)]).await,
    ];
    insta::assert_snapshot!(shown.join("\n"));
}

#[tokio::test]
async fn what_may_pass_is_asked_again_with_pauses() {
    let busy = || failing(503, json!({"error": {"message": "Overloaded"}}));
    let asked = ask(vec![
        busy(),
        failing(500, json!({})),
        Exchange::events(&hello()),
    ])
    .await;
    assert_eq!(asked.reply().content.text(), "Hello, 世界");
    assert_eq!(asked.world.paused(), [500, 1000]);
    let limited = |name: &str, value: &str| {
        failing(429, json!({"error": {"message": "Slow down"}})).header(name, value)
    };
    let asked = ask_in(
        TestWorld::at(Timestamp(784_111_777_500)),
        vec![
            limited("retry-after", "3"),
            limited("retry-after-ms", "20"),
            limited("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT"),
            failing(408, json!({})),
            Exchange::close(),
            Exchange::events(&hello()).first(0).then_close(),
            Exchange::events(&hello()),
        ],
        json!({"max_retries": 6}),
        |_, _| {},
    )
    .await;
    assert_eq!(asked.reply().content.text(), "Hello, 世界");
    assert_eq!(asked.world.paused(), [3000, 20, 2500, 4000, 8000, 8000]);
    assert_eq!(asked.provider.requests().len(), 7);
}

#[tokio::test]
async fn what_does_not_pass_is_given_up() {
    let limited = || failing(429, json!({"error": {"message": "Slow down"}}));
    let once = |exchange: Exchange| {
        ask_in(
            TestWorld::new(),
            vec![exchange],
            json!({"max_retries": 0}),
            |_, _| {},
        )
    };
    let shown = [
        refused(vec![limited(), limited(), limited(), limited()]).await,
        refused(vec![limited().header("retry-after", "3600")]).await,
        refused(vec![
            failing(503, json!({"error": {"message": "Down"}})).header("retry-after", "90"),
        ])
        .await,
        refused(vec![
            failing(500, json!({"error": {"message": "No"}})).header("x-should-retry", "false"),
        ])
        .await,
        refused(vec![
            Exchange::close(),
            Exchange::close(),
            Exchange::close(),
        ])
        .await,
        shown(&once(limited()).await),
        shown(&once(Exchange::new("text/html", "<html>bad gateway</html>").status(502)).await),
    ];
    insta::assert_snapshot!(shown.join("\n"));
}

#[tokio::test]
async fn a_reply_that_was_begun_is_not_asked_for_again() {
    let stream = || Exchange::events(&hello());
    let asked = ask(vec![stream().first(300).then_close(), stream()]).await;
    assert_eq!(asked.provider.requests().len(), 1);
    assert!(
        asked.heard.contains(&Delta::Text("Hel".to_owned())),
        "{:?}",
        asked.heard
    );
    let shown = [
        shown(&asked),
        // The end comes in order, and too early: between two pieces, and within one.
        refused(vec![Exchange::new(
            "text/event-stream",
            format!("data: {}\n\n", text("a")),
        )])
        .await,
        refused(vec![Exchange::new(
            "text/event-stream",
            format!("data: {}\n\ndata: {{\"cho", text("a")),
        )])
        .await,
        refused(vec![
            Exchange::json(&whole(json!({"content": "a"}), "stop")).first(40),
            Exchange::close(),
            Exchange::close(),
        ])
        .await,
        refused(vec![
            Exchange::new("application/json", ""),
            Exchange::close(),
            Exchange::close(),
        ])
        .await,
    ];
    insta::assert_snapshot!(shown.join("\n"));
}

#[tokio::test]
async fn what_is_no_reply_is_shown() {
    let events = |body: &str| Exchange::new("text/event-stream", body);
    let shown = [
        refused(vec![Exchange::new(
            "text/html",
            "<html>\n  <body>Sign in</body>",
        )])
        .await,
        refused(vec![Exchange::new("text/plain", "everything is fine")]).await,
        refused(vec![Exchange::new("application/json", "{not json")]).await,
        refused(vec![Exchange::json(&json!({"models": ["a"]}))]).await,
        refused(vec![Exchange::json(&json!({"choices": []}))]).await,
        refused(vec![Exchange::json(&json!([1]))]).await,
        refused(vec![events("data: {not json\n\n")]).await,
        refused(vec![events(
            "data: {\"type\":\"response.created\"}\n\ndata: {\"type\":\"response.completed\"}\n\n",
        )])
        .await,
        refused(vec![events("data: [DONE]\n\n")]).await,
        refused(vec![events(
            "data: {\"choices\":[{\"delta\":{\"content\":5}}]}\n\n",
        )])
        .await,
        refused(vec![events(
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1}]}}]}\n\n",
        )])
        .await,
        refused(vec![Exchange::new(
            "text/event-stream",
            b"data: \xff\xfe\n\n".to_vec(),
        )])
        .await,
        refused(vec![Exchange::new("text/plain", "word ".repeat(1000))]).await,
    ];
    insta::assert_snapshot!(shown.join("\n"));
}

#[tokio::test]
async fn an_error_within_a_reply_is_one() {
    let error = |error: Value| json!({"error": error});
    let shown = [
        refused(vec![Exchange::json(&error(
            json!({"code": 401, "message": "No auth"}),
        ))])
        .await,
        refused(vec![Exchange::events(&[
            text("a"),
            error(json!({"code": 502, "message": "Upstream broke"})),
        ])])
        .await,
        refused(vec![Exchange::events(&[
            text("a"),
            error(json!({"code": "context_length_exceeded", "message": "Too long"})),
        ])])
        .await,
        refused(vec![Exchange::events(&[
            text("a"),
            error(json!("just a text")),
        ])])
        .await,
        refused(vec![Exchange::new(
            "text/event-stream",
            format!(
                "data: {}\n\nevent: error\ndata: {{\"message\": \"Gone\"}}\n\n",
                text("a")
            ),
        )])
        .await,
    ];
    insta::assert_snapshot!(shown.join("\n"));
    // Before the first piece it may pass.
    let busy = error(json!({"code": 429, "message": "Slow down"}));
    let asked = ask(vec![Exchange::events(&[busy]), Exchange::events(&hello())]).await;
    assert_eq!(asked.reply().content.text(), "Hello, 世界");
}

#[tokio::test]
async fn a_reply_without_end_is_given_up() {
    let long = "x".repeat(10 << 20);
    let event = format!("data: {}\n\n", text(&long));
    let unended = format!("data: {}", "x".repeat(10 << 20));
    let dripping = format!("data: {}\n\n", text("x")).repeat(600_000);
    let shown = [
        refused(vec![Exchange::new("text/event-stream", event)]).await,
        refused(vec![
            Exchange::new("text/event-stream", unended).then_hang(),
        ])
        .await,
        refused(vec![
            Exchange::new("text/event-stream", dripping).then_hang(),
        ])
        .await,
    ];
    insta::assert_snapshot!(shown.join("\n"));
    // One JSON object may be as long as a reply.
    let asked = ask(vec![Exchange::json(&whole(
        json!({"content": long}),
        "stop",
    ))])
    .await;
    assert_eq!(asked.reply().content.text().len(), 10 << 20);
}

/// Asks a provider that falls silent; when it has, the time runs out.
pub(crate) async fn silent(exchange: Exchange, seconds: u64) -> String {
    let settings = json!({"timeout": 120, "stream_chunk_timeout": 90.5});
    let run_out = move |provider: &Provider, world: &TestWorld| {
        provider.wait_for_hanging(1);
        world.run_out(Duration::from_secs(seconds));
    };
    shown(&ask_in(TestWorld::new(), vec![exchange], settings, run_out).await)
}

#[tokio::test]
async fn a_silent_endpoint_is_given_up_when_the_time_has_run_out() {
    let begun = || Exchange::new("text/event-stream", format!("data: {}\n\n", text("a")));
    let mut shown = [
        silent(Exchange::hang(), 120).await,
        silent(Exchange::new("application/json", "{").then_hang(), 120).await,
        silent(
            failing(400, json!({"error": {"message": "Half an er"}}))
                .first(30)
                .then_hang(),
            100,
        )
        .await,
    ];
    // How much of a refusal was read when the time ran out is up to the system.
    if let Some((refused, _)) = shown[2].split_once(": {") {
        shown[2] = refused.to_owned();
    }
    insta::assert_snapshot!(shown.join("\n"));
    let settings = json!({"stream_chunk_timeout": 90.5});
    let (heard, hears) = std::sync::mpsc::channel();
    let provider = Provider::start([begun().then_hang()]).unwrap();
    let world = Arc::new(TestWorld::new());
    let cx = ModelCx::new(world.clone());
    let model = model(&provider.base_url(), settings);
    let run_out = tokio::task::spawn_blocking(move || {
        hears.recv().unwrap();
        world.run_out(Duration::from_secs(100));
    });
    let mut sink = |delta: &Delta| {
        if matches!(delta, Delta::Text(_)) {
            heard.send(()).unwrap();
        }
    };
    let error = model.stream(&cx, &ModelRequest::default(), &mut sink).await;
    run_out.await.unwrap();
    let error = error.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Transport);
    insta::assert_snapshot!(error, @"the reply of model `default` broke off: its next piece did not come within 90500 ms");
}

#[tokio::test]
async fn nobody_there_is_told_with_the_address() {
    // A port that was free a moment ago, and nobody has since.
    let base = {
        let provider = Provider::start([]).unwrap();
        provider.base_url()
    };
    let world = Arc::new(TestWorld::new());
    let cx = ModelCx::new(world.clone());
    let model = model(&base, json!({}));
    let error = model
        .stream(&cx, &ModelRequest::default(), &mut tine_models::Discard)
        .await
        .unwrap_err();
    assert_eq!(error.class(), ErrorClass::Transport);
    let text = error.to_string();
    assert_eq!(
        text.replace(&base, "<base>"),
        "model `default` could not be reached: <base>: Connection refused (os error 111) (asked 3 times)"
    );
    assert_eq!(world.paused(), [500, 1000]);
}
