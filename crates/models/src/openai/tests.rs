//! What is sent.
#![expect(clippy::needless_pass_by_value, reason = "`json!` reads better so")]

use super::profile::{self, profile};
use super::request::body;
use super::settings::Settings;
use crate::accumulate::Accumulator;
use crate::delta::{Delta, ToolCallDelta};
use crate::registry::ModelEntry;
use crate::request::{ModelRequest, ResponseSchema, ToolChoice, ToolSchema};
use serde_json::{Map, Value, json};
use tine_engine::Message;
use tine_engine::message::{Content, InvalidToolCall, ToolCall, ToolStatus};

fn settings(use_path: &str, more: Value) -> Settings {
    let mut settings = json!({"model": "m", "base_url": "http://localhost/v1", "streaming": false});
    for (key, value) in more.as_object().cloned().unwrap() {
        settings[key] = value;
    }
    let entry = ModelEntry {
        name: "alias".to_owned(),
        use_path: use_path.to_owned(),
        settings: settings.as_object().cloned().unwrap(),
    };
    Settings::read(&entry, profile(use_path).unwrap()).unwrap()
}

const PLAIN: &str = "langchain_openai:ChatOpenAI";

fn sent_by(use_path: &str, more: Value, request: &ModelRequest) -> Value {
    match body(&settings(use_path, more), request) {
        Ok(body) => body.into(),
        Err(error) => error.to_string().into(),
    }
}

/// What is sent for a request, beside the model and the conversation.
fn check(more: Value, request: &ModelRequest, expected: Value) {
    let mut sent = sent_by(PLAIN, more, request);
    if let Some(sent) = sent.as_object_mut() {
        sent.remove("model");
        sent.remove("messages");
    }
    assert_eq!(sent, expected);
}

fn messages(use_path: &str, more: Value, messages: Vec<Message>) -> Value {
    sent_by(use_path, more, &ModelRequest::new(messages))["messages"].clone()
}

fn call(name: &str, args: Value, id: &str) -> ToolCall {
    ToolCall {
        name: name.into(),
        args: args.into(),
        id: id.into(),
    }
}

/// A conversation in which the model thought, called twice, once unreadably, and is asked on.
fn conversation() -> Vec<Message> {
    let ls = call("ls", json!({"path": "/"}), "c1");
    let bad = call("cat", json!({}), "c2");
    let mut ai = Message::ai("");
    ai.tool_calls.push(ls.clone());
    ai.invalid_tool_calls.push(InvalidToolCall {
        name: Some("cat".into()),
        args: Some("{\"pa".into()),
        id: Some("c2".into()),
        error: Some("not JSON".into()),
    });
    ai.additional_kwargs = Some(
        json!({
            "reasoning_content": "hm",
            "reasoning_details": [{"type": "reasoning.text", "text": "hm"}],
            "tool_call_extras": {"c1": {"extra_content": {"google": {"thought_signature": "t"}}}},
        })
        .into(),
    );
    vec![
        Message::human("hi"),
        ai,
        Message::tool(&ls, "a.txt", ToolStatus::Success),
        Message::tool(&bad, "not made", ToolStatus::Error),
    ]
}

#[test]
fn a_history_becomes_messages() {
    let request = ModelRequest {
        system: Some("Be brief.".into()),
        ..ModelRequest::new(conversation())
    };
    assert_eq!(
        sent_by(PLAIN, json!({}), &request)["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{\"path\":\"/\"}"}},
                {"id": "c2", "type": "function", "function": {"name": "cat", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
            {"role": "tool", "tool_call_id": "c2", "content": "not made"},
        ])
    );
}

/// The reply before the last results, as each profile sends it back.
#[test]
fn reasoning_is_sent_back_where_it_is_wanted_and_nowhere_else() {
    let check = |use_path: &str, expected: Value| {
        let mut sent = messages(use_path, json!({}), conversation())[1].clone();
        sent.as_object_mut().unwrap().remove("role");
        let first = sent["tool_calls"][0].as_object_mut().unwrap();
        let attached = first.remove("extra_content").is_some();
        sent.as_object_mut().unwrap().remove("tool_calls");
        sent["signature"] = attached.into();
        assert_eq!(sent, expected, "{use_path}");
    };
    let echo =
        |field: &str, content: Value| json!({"content": content, field: "hm", "signature": false});
    check(PLAIN, json!({"content": null, "signature": false}));
    check(
        "langchain_deepseek:ChatDeepSeek",
        json!({"content": "", "signature": false}),
    );
    check(
        "deerflow.models.patched_deepseek:PatchedChatDeepSeek",
        echo("reasoning_content", "".into()),
    );
    check(
        "deerflow.models.patched_mimo:PatchedChatMiMo",
        echo("reasoning_content", "".into()),
    );
    check(
        "deerflow.models.patched_stepfun:PatchedChatStepFun",
        echo("reasoning_content", "".into()),
    );
    check(
        "deerflow.models.vllm_provider:VllmChatModel",
        echo("reasoning", "".into()),
    );
    let details = json!([{"type": "reasoning.text", "text": "hm"}]);
    check(
        "deerflow.models.patched_openai:PatchedChatOpenAI",
        json!({"content": null, "reasoning_content": "hm", "reasoning_details": details, "signature": true}),
    );
    check(
        "deerflow.models.patched_minimax:PatchedChatMiniMax",
        json!({"content": "", "reasoning_details": details, "signature": true}),
    );
    assert_eq!(profile::names().count(), 8, "each profile is above");
}

#[test]
fn an_unreadable_call_is_sent_with_arguments_that_are_json() {
    let check = |args: &str, expected: &str| {
        let mut ai = Message::ai("");
        ai.invalid_tool_calls.push(InvalidToolCall {
            name: None,
            args: Some(args.into()),
            id: Some("c".into()),
            error: None,
        });
        let sent = messages(PLAIN, json!({}), vec![ai]);
        let function = json!({"name": "unknown", "arguments": expected});
        assert_eq!(sent[0]["tool_calls"][0]["function"], function);
    };
    check("{\"city\": \"Par", "{}");
    check(r#"{"a":1}{"a":1}"#, "{}");
    check("[1]", "{}");
    check("", "{}");
    // Those of a reply that was cut off can be whole.
    check(r#"{"path":"a.txt"}"#, r#"{"path":"a.txt"}"#);
}

#[test]
fn content_of_every_kind_becomes_parts() {
    let check = |blocks: Value, more: Value, expected: Value| {
        let Value::Array(blocks) = blocks else {
            panic!("a list of blocks");
        };
        let blocks = blocks
            .into_iter()
            .map(tine_engine::Value::from_json)
            .collect();
        let content = Content::Blocks(blocks);
        assert_eq!(
            messages(PLAIN, more, vec![Message::human(content)])[0]["content"],
            expected
        );
    };
    let image = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let plain = json!({});
    check(
        json!(["a", {"type": "text", "text": "b", "cache": 1}]),
        plain.clone(),
        json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
    );
    check(
        json!([image("http://x/y.png")]),
        plain.clone(),
        json!([image("http://x/y.png")]),
    );
    let data = image("data:image/png;base64,QUJD");
    for block in [
        json!({"type": "image", "base64": "QUJD", "mime_type": "image/png"}),
        json!({"type": "image", "source_type": "base64", "data": "QUJD", "mime_type": "image/png"}),
        json!({"type": "image", "source": {"type": "base64", "data": "QUJD", "media_type": "image/png"}}),
    ] {
        check(json!([block]), plain.clone(), json!([data]));
    }
    check(
        json!([{"type": "image", "url": "http://x/y.png"}]),
        plain.clone(),
        json!([image("http://x/y.png")]),
    );
    let audio = json!({"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}});
    check(json!([audio]), plain, json!([audio]));
    check(
        json!([image("http://x/y.png")]),
        json!({"supports_vision": false}),
        json!([{"type": "text", "text": "[an image that this model can not be shown]"}]),
    );
}

#[test]
fn a_result_of_texts_is_one_text() {
    let ls = call("ls", json!({}), "c");
    let result = |blocks: Value| {
        let blocks = blocks.as_array().cloned().unwrap();
        let blocks = blocks
            .into_iter()
            .map(tine_engine::Value::from_json)
            .collect();
        let result = Message::tool(&ls, "", ToolStatus::Success);
        let result = Message {
            content: Content::Blocks(blocks),
            ..result
        };
        messages(PLAIN, json!({}), vec![result])[0]["content"].clone()
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(result(json!([text("a"), text("b")])), json!("a\nb"));
    let image = json!({"type": "image_url", "image_url": {"url": "u"}});
    assert_eq!(result(json!([text("a"), image])), json!("a\n[image 1]"));
    let document = json!({"type": "document", "source": {"type": "text", "data": "x"}});
    assert_eq!(
        result(json!([document, {"type": "image"}])),
        json!(
            "[a part of type `document` that this model can not be shown]\n\
             [an image without an address and without data]"
        )
    );
    assert_eq!(result(json!([])), json!("(no output)"));
}

fn blocks(blocks: Value) -> Content {
    let blocks = blocks.as_array().cloned().unwrap().into_iter();
    Content::Blocks(blocks.map(tine_engine::Value::from_json).collect())
}

#[test]
fn images_of_results_are_shown_behind_all_of_them() {
    let image = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let (a, b) = (call("see", json!({}), "a"), call("see", json!({}), "b"));
    let mut ai = Message::ai("");
    ai.tool_calls = vec![a.clone(), b.clone()];
    let result = |call: &ToolCall, content: Value| Message {
        content: blocks(content),
        ..Message::tool(call, "", ToolStatus::Success)
    };
    let history = |behind: Vec<Message>| {
        let mut all = vec![
            ai.clone(),
            result(&a, json!([image("1"), "text", image("2")])),
            result(&b, json!([{"type": "image", "url": "3"}])),
        ];
        all.extend(behind);
        all
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let first =
        json!({"role": "tool", "tool_call_id": "a", "content": "[image 1]\ntext\n[image 2]"});
    let shown = json!({"role": "user", "content": [
        text("[image 1] of the results above:"), image("1"),
        text("[image 2] of the results above:"), image("2"),
        text("[image 3] of the results above:"), image("3"),
    ]});
    for behind in [vec![], vec![Message::ai("I see.")], history(vec![])] {
        let sent = messages(PLAIN, json!({}), history(behind));
        assert_eq!(sent[1], first);
        assert_eq!(sent[2]["content"], "[image 3]");
        assert_eq!(sent[3], shown);
        let body = json!({"messages": sent});
        assert_eq!(tine_testkit::openai_rules::check(&body), []);
    }
    let sent = messages(PLAIN, json!({"supports_vision": false}), history(vec![]));
    assert_eq!(
        sent[2]["content"],
        "[an image that this model can not be shown]"
    );
    assert_eq!(sent[3], Value::Null, "nothing to be shown");
}

#[test]
fn a_reply_that_is_no_text_says_so() {
    let check = |content: Value, calls: bool, expected: Value| {
        let mut ai = Message::ai(blocks(content));
        if calls {
            ai.tool_calls.push(call("t", json!({}), "c"));
        }
        assert_eq!(messages(PLAIN, json!({}), vec![ai])[0]["content"], expected);
    };
    let image = json!({"type": "image", "url": "u"});
    check(json!([image]), false, "[image]".into());
    check(json!(["so: ", image]), true, "so: [image]".into());
    check(
        json!([{"type": "thinking", "thinking": "hm"}]),
        false,
        "(nothing)".into(),
    );
    check(json!([{"type": "tool_use", "id": "c"}]), true, Value::Null);
    check(json!([]), false, "(nothing)".into());
    let file = json!({"type": "video", "base64": "QUJD"});
    let unseen = "[a part of type `video` that this model can not be shown]";
    check(json!([file]), false, unseen.into());
}

/// Whatever stands in a conversation, an endpoint takes it.
mod whatever_is_said {
    use super::*;
    use proptest::prelude::*;

    fn block() -> impl Strategy<Value = Value> {
        let empty = || json!({});
        proptest::sample::select(vec![
            json!("text"),
            json!(""),
            json!(7),
            json!(null),
            empty(),
            json!({"type": 7}),
            json!({"type": "text"}),
            json!({"type": "text", "text": "a"}),
            json!({"type": "text", "text": ""}),
            json!({"type": "text", "text": ["a"]}),
            json!({"type": "image"}),
            json!({"type": "image", "base64": "QUJD"}),
            json!({"type": "image", "base64": "QUJD", "mime_type": "image/png"}),
            json!({"type": "image", "source": {"type": "file", "file_id": "f"}}),
            json!({"type": "image", "source": "x"}),
            json!({"type": "image", "url": ""}),
            json!({"type": "image_url", "image_url": "http://x/y.png"}),
            json!({"type": "image_url", "image_url": {"url": "http://x/y.png", "detail": "low"}}),
            json!({"type": "image_url", "image_url": {}}),
            json!({"type": "image_url", "image_url": ""}),
            json!({"type": "image_url"}),
            json!({"type": "input_audio"}),
            json!({"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}}),
            json!({"type": "file", "file": {}}),
            json!({"type": "file", "file": {"file_id": "f"}}),
            json!({"type": "file", "base64": "QUJD", "mime_type": "application/pdf"}),
            json!({"type": "video_url", "video_url": {"url": "u"}}),
            json!({"type": "document", "source": {"type": "text", "data": "x"}}),
            json!({"type": "thinking", "thinking": "hm"}),
            json!({"type": "tool_use", "id": "c", "name": "t", "input": {}}),
            json!({"type": "x".repeat(500)}),
        ])
    }

    fn content() -> impl Strategy<Value = Content> {
        prop_oneof![
            Just(Content::from("")),
            Just(Content::from("text")),
            proptest::collection::vec(block(), 0..4).prop_map(|all| blocks(all.into())),
        ]
    }

    /// A user, and a model that calls so many tools.
    fn turn() -> impl Strategy<Value = (Content, Content, Vec<Content>)> {
        let results = proptest::collection::vec(content(), 0..3);
        (content(), content(), results)
    }

    proptest! {
        #[test]
        fn an_endpoint_takes_it(turns in proptest::collection::vec(turn(), 1..4)) {
            let mut conversation = Vec::new();
            for (nth, (user, said, results)) in turns.into_iter().enumerate() {
                conversation.push(Message::human(user));
                let mut ai = Message::ai(said);
                let calls = (0..results.len()).map(|call| super::call("t", json!({}), &format!("c{nth}_{call}")));
                ai.tool_calls = calls.collect();
                let calls = ai.tool_calls.clone();
                conversation.push(ai);
                for (call, content) in calls.iter().zip(results) {
                    let result = Message::tool(call, "", ToolStatus::Success);
                    conversation.push(Message { content, ..result });
                }
            }
            for sees in [true, false] {
                let more = json!({
                    "base_url": "https://api.openai.com/v1", "api_key": "k", "supports_vision": sees
                });
                let sent = messages(PLAIN, more, conversation.clone());
                let broken = tine_testkit::openai_rules::check(&json!({"messages": sent}));
                prop_assert!(broken.is_empty(), "{broken:?}\n{sent}");
            }
        }
    }
}

#[test]
fn users_are_named_where_names_are_taken() {
    let named = |name: &str| {
        let mut message = Message::human("hi");
        message.name = Some(name.into());
        message
    };
    let name = |use_path: &str, given: &str| {
        messages(use_path, json!({}), vec![named(given)])[0]["name"].clone()
    };
    assert_eq!(name(PLAIN, "ada"), "ada");
    assert_eq!(
        name(PLAIN, "Ada L."),
        Value::Null,
        "a name that would be refused"
    );
    assert_eq!(
        name("deerflow.models.patched_minimax:PatchedChatMiniMax", "ada"),
        Value::Null
    );
}

fn tool(parameters: &str) -> ToolSchema {
    ToolSchema {
        name: "t".into(),
        description: "".into(),
        parameters: serde_json::from_str(parameters).unwrap(),
    }
}

#[test]
fn a_schema_is_sent_in_its_order_and_with_properties() {
    let check = |parameters: &str, expected: &str| {
        let request = ModelRequest::default().with_tools(vec![tool(parameters)]);
        let sent = sent_by(PLAIN, json!({}), &request);
        assert_eq!(
            sent["tools"][0]["function"]["parameters"].to_string(),
            expected
        );
    };
    let ordered = r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"number"}},"required":["z"],"additionalProperties":false}"#;
    check(ordered, ordered);
    check(
        r#"{"type":"object"}"#,
        r#"{"type":"object","properties":{}}"#,
    );
    check("{}", r#"{"type":"object","properties":{}}"#);
    check("null", r#"{"type":"object","properties":{}}"#);
}

#[test]
fn the_choice_of_tools_is_sent_with_tools_only() {
    let choose = |tool_choice: ToolChoice, tools: Vec<ToolSchema>| ModelRequest {
        tool_choice,
        tools,
        ..ModelRequest::default()
    };
    let sent = |choice: ToolChoice| {
        sent_by(PLAIN, json!({}), &choose(choice, vec![tool("{}")]))["tool_choice"].clone()
    };
    assert_eq!(sent(ToolChoice::Auto), Value::Null);
    assert_eq!(sent(ToolChoice::None), "none");
    assert_eq!(sent(ToolChoice::Required), "required");
    assert_eq!(
        sent(ToolChoice::Tool("t".into())),
        json!({"type": "function", "function": {"name": "t"}})
    );
    check(
        json!({"parallel_tool_calls": false}),
        &choose(ToolChoice::None, vec![]),
        json!({}),
    );
    check(
        json!({}),
        &choose(ToolChoice::Required, vec![]),
        "model `alias` can not take the request: it must call a tool, and none is offered".into(),
    );
}

/// A request with parameters of its own.
fn with(params: Value) -> ModelRequest {
    ModelRequest {
        params: serde_json::from_value(params).unwrap(),
        ..ModelRequest::default()
    }
}

#[test]
fn parameters_of_the_request_win_over_those_of_the_configuration() {
    let none = ModelRequest::default();
    check(
        json!({"temperature": 0.5}),
        &none,
        json!({"temperature": 0.5}),
    );
    check(
        json!({"temperature": 0.5, "max_tokens": 10}),
        &with(json!({"temperature": 0.0, "max_tokens": 5})),
        json!({"temperature": 0.0, "max_tokens": 5}),
    );
    check(
        json!({"max_completion_tokens": 10}),
        &with(json!({"max_tokens": 5})),
        json!({"max_tokens": 5}),
    );
    // An effort, wherever the configuration has it.
    let effort = json!({"reasoning_effort": "minimal"});
    for configured in [
        json!({"reasoning_effort": "high", "supports_reasoning_effort": true}),
        json!({"reasoning_effort": "high"}),
        json!({"extra_body": {"reasoning_effort": "high"}}),
        json!({"model_kwargs": {"reasoning_effort": "high"}}),
        json!({}),
    ] {
        check(configured, &with(effort.clone()), effort.clone());
    }
    check(
        json!({"supports_reasoning_effort": false}),
        &with(effort),
        json!({}),
    );
    check(
        json!({"extra_body": {"provider": {"sort": "price", "only": ["a"]}}}),
        &with(json!({"provider": {"sort": "speed"}, "top_k": 3, "seed": null})),
        json!({"provider": {"sort": "speed", "only": ["a"]}, "top_k": 3}),
    );
    check(
        json!({}),
        &with(json!({"messages": []})),
        "model `alias` can not take the request: `params` must not give `messages`; the request has its own".into(),
    );
}

#[test]
fn the_newer_name_for_the_most_tokens_goes_to_openai_only() {
    let to = |base: &str| {
        let more = json!({"base_url": base, "api_key": "k", "max_tokens": 7});
        let sent = sent_by(PLAIN, more, &ModelRequest::default());
        let names = ["max_tokens", "max_completion_tokens"];
        names.map(|name| sent[name].as_u64())
    };
    assert_eq!(to("https://api.openai.com/v1"), [None, Some(7)]);
    assert_eq!(to("https://eu.api.openai.com/v1"), [None, Some(7)]);
    assert_eq!(to("https://me.openai.azure.com/openai/v1"), [None, Some(7)]);
    assert_eq!(to("https://notapi.openai.com.evil.org/v1"), [Some(7), None]);
    assert_eq!(to("https://myapi.openai.com/v1"), [Some(7), None]);
    assert_eq!(to("https://openrouter.ai/api/v1"), [Some(7), None]);
}

#[test]
fn ids_that_openai_refuses_are_hashed_alike_in_calls_and_results() {
    let long = "call_of_another_provider_with_much_in_its_id_0123456789";
    let check = |base: &str, id: &str, kept: bool| {
        let call = ToolCall {
            name: "t".into(),
            args: tine_engine::Value::map(),
            id: id.into(),
        };
        let mut ai = Message::ai("");
        ai.tool_calls.push(call.clone());
        let result = Message::tool(&call, "ok", ToolStatus::Success);
        let request = ModelRequest::new(vec![ai, result]);
        let sent = sent_by(PLAIN, json!({"base_url": base, "api_key": "k"}), &request);
        let called = sent["messages"][0]["tool_calls"][0]["id"].as_str().unwrap();
        assert_eq!(sent["messages"][1]["tool_call_id"], called);
        assert_eq!(called == id, kept, "{called}");
        assert!(kept || called.len() <= 40, "{called}");
    };
    check("https://api.openai.com/v1", long, false);
    check("https://us.api.openai.com/v1", long, false);
    check("https://me.openai.azure.com/openai/v1", long, false);
    check("https://api.openai.com/v1", &long[..40], true);
    check("https://openrouter.ai/api/v1", long, true);
}

#[test]
fn openai_wants_a_key_wherever_it_is() {
    let check = |base: &str, more: Value, expected: bool| {
        let mut settings = json!({"model": "m", "base_url": base});
        for (key, value) in more.as_object().cloned().unwrap() {
            settings[key] = value;
        }
        let entry = ModelEntry {
            name: "alias".to_owned(),
            use_path: PLAIN.to_owned(),
            settings: settings.as_object().cloned().unwrap(),
        };
        let read = Settings::read(&entry, profile(PLAIN).unwrap());
        let refused = matches!(read, Err(crate::ModelsError::NoKey { .. }));
        assert_eq!(refused, !expected, "{base}");
    };
    let none = || json!({});
    check("https://api.openai.com/v1", none(), false);
    check("https://eu.api.openai.com/v1", none(), false);
    check("https://me.openai.azure.com/openai/v1", none(), false);
    let own = json!({"default_headers": {"api-key": "k"}});
    check("https://me.openai.azure.com/openai/v1", own, true);
    check("http://localhost:8000/v1", none(), true);
}

#[test]
fn a_model_thinks_as_deerflow_has_it() {
    let on = json!({"thinking": {"type": "enabled"}});
    let off = json!({"thinking": {"type": "disabled"}});
    let both = || {
        json!({
            "supports_thinking": true,
            "when_thinking_enabled": {"extra_body": on.clone()},
            "when_thinking_disabled": {"extra_body": off.clone()},
        })
    };
    let none = ModelRequest::default();
    let asked = |on: bool| with(json!({"thinking_enabled": on}));
    check(both(), &none, on.clone());
    check(both(), &asked(true), on.clone());
    check(both(), &asked(false), off.clone());
    // What switches it off follows from what switches it on.
    let only_on = json!({"supports_thinking": true, "when_thinking_enabled": {"extra_body": on}});
    check(only_on, &asked(false), off.clone());
    let shortcut = json!({"supports_thinking": true, "thinking": {"type": "enabled", "budget": 5}});
    check(
        shortcut.clone(),
        &none,
        json!({"thinking": {"type": "enabled", "budget": 5}}),
    );
    check(shortcut, &asked(false), off);
    let vllm = json!({
        "supports_thinking": true,
        "when_thinking_enabled": {"extra_body": {"chat_template_kwargs": {"enable_thinking": true}}},
    });
    check(
        vllm,
        &asked(false),
        json!({"chat_template_kwargs": {"enable_thinking": false}}),
    );
    check(json!({}), &asked(false), json!({}));
    check(
        json!({}),
        &asked(true),
        "model `alias` can not take the request: `params.thinking_enabled` is true, and the model is not said to think; set `supports_thinking: true` in its entry of the configuration".into(),
    );
}

#[test]
fn a_reply_that_is_to_be_data_has_a_schema() {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    let request = ModelRequest {
        response_schema: Some(ResponseSchema {
            name: "the verdict".into(),
            schema: schema.clone(),
        }),
        ..ModelRequest::default()
    };
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "the_verdict", "schema": schema}});
    check(json!({}), &request, json!({"response_format": format}));
    // DeepSeek knows no schemas, and wants to be told of JSON.
    let sent = sent_by("langchain_deepseek:ChatDeepSeek", json!({}), &request);
    assert_eq!(sent["response_format"], json!({"type": "json_object"}));
    let told = format!("Reply with nothing but JSON that fits this JSON Schema: {schema}");
    assert_eq!(
        sent["messages"],
        json!([{"role": "system", "content": told}])
    );
}

#[test]
fn a_stream_is_asked_for_with_its_usage() {
    let none = ModelRequest::default();
    let stream = |more: Value, expected: Value| {
        let mut settings = json!({"streaming": true});
        for (key, value) in more.as_object().cloned().unwrap() {
            settings[key] = value;
        }
        check(settings, &none, expected);
    };
    stream(
        json!({}),
        json!({"stream": true, "stream_options": {"include_usage": true}}),
    );
    stream(json!({"stream_usage": false}), json!({"stream": true}));
    stream(json!({"disable_streaming": true}), json!({}));
}

#[test]
fn requests_go_below_the_base() {
    let check = |base: &str, url: &str, shown: &str| {
        let settings = settings(
            PLAIN,
            json!({"base_url": base, "default_query": {"v": "1 2"}}),
        );
        assert_eq!(
            (settings.url.as_str(), settings.endpoint.as_str()),
            (url, shown)
        );
    };
    check(
        "http://x/v1",
        "http://x/v1/chat/completions?v=1+2",
        "http://x/v1",
    );
    check(
        "http://x/v1/",
        "http://x/v1/chat/completions?v=1+2",
        "http://x/v1",
    );
    check(" http://x ", "http://x/chat/completions?v=1+2", "http://x");
    check(
        "http://u:secret@x/v1/chat/completions?k=secret#f",
        "http://u:secret@x/v1/chat/completions?k=secret&v=1+2",
        "http://x/v1/chat/completions",
    );
}

#[test]
fn what_a_profile_always_sends_is_json() {
    for use_path in profile::names() {
        let body = profile(use_path).unwrap().body;
        assert!(
            serde_json::from_str::<Map<String, Value>>(body).is_ok(),
            "{use_path}"
        );
    }
    let sent = sent_by(
        "deerflow.models.patched_minimax:PatchedChatMiniMax",
        json!({}),
        &ModelRequest::default(),
    );
    assert_eq!(sent["reasoning_split"], true);
}

/// A reply goes into the state and comes back in the next request as it was.
#[test]
fn what_a_provider_attached_comes_back_to_it() {
    let extra = json!({"extra_content": {"google": {"thought_signature": "t"}}});
    let mut reply = Accumulator::new();
    for delta in [
        Delta::Reasoning("hm".to_owned()),
        Delta::ToolCall(ToolCallDelta {
            id: Some("c1".into()),
            name: Some("ls".into()),
            extra: extra.as_object().cloned().unwrap(),
            ..ToolCallDelta::default()
        }),
        Delta::Finish(crate::FinishReason::ToolCalls),
    ] {
        reply.push(&delta);
    }
    let message = reply.finish("m", &ModelRequest::default()).into_message();
    // Kept whichever model it is sent to next.
    let kept = message.to_value().unwrap().to_json();
    assert_eq!(kept["additional_kwargs"]["reasoning_content"], "hm");
    let message = Message::from_value(&message.to_value().unwrap()).unwrap();
    let patched = "deerflow.models.patched_openai:PatchedChatOpenAI";
    let sent = messages(patched, json!({}), vec![message.clone()]);
    assert_eq!(
        sent[0]["tool_calls"][0]["extra_content"],
        extra["extra_content"]
    );
    let sent = messages(PLAIN, json!({}), vec![message]);
    assert_eq!(sent[0]["tool_calls"][0]["extra_content"], Value::Null);
}

mod what_is_late;
