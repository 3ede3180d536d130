use super::*;
use proptest::prelude::*;
use tine_engine::Value;
use tine_engine::message::{Content, InvalidToolCall};
use tine_models::ToolSchema;

fn call(id: &str) -> ToolCall {
    ToolCall {
        name: "t".into(),
        args: Value::map(),
        id: id.into(),
    }
}

fn ai(ids: &[&str]) -> Message {
    let mut message = Message::ai("");
    message.tool_calls = ids.iter().map(|id| call(id)).collect();
    message
}

/// An AI message with a call that can not be read.
fn cut_off(name: Option<&str>, id: Option<&str>) -> Message {
    let mut message = Message::ai("");
    message.invalid_tool_calls.push(InvalidToolCall {
        name: name.map(Into::into),
        args: Some("{".into()),
        id: id.map(Into::into),
        error: None,
    });
    message
}

fn result(id: &str, text: &str) -> Message {
    Message::tool(&call(id), text, ToolStatus::Success)
}

fn result_of_nothing(text: &str) -> Message {
    let mut message = result("", text);
    message.tool_call_id = None;
    message
}

fn hi() -> Message {
    Message::human("hi")
}

fn of(messages: Vec<Message>) -> History {
    valid(messages.into_iter().map(Ok))
}

/// One letter a message, the ids of calls and the id and text of results in brackets.
fn sketch(messages: &[Message]) -> String {
    let one = |message: &Message| match message.role {
        Role::Human => "H".to_owned(),
        Role::System => "S".to_owned(),
        Role::Ai if message.tool_calls.is_empty() => "A".to_owned(),
        Role::Ai => {
            let ids: Vec<&str> = message.tool_calls.iter().map(|call| &*call.id).collect();
            format!("A[{}]", ids.join(","))
        }
        Role::Tool => {
            let id = message.tool_call_id.as_deref().unwrap_or("-");
            let text = message.content.text();
            format!("T[{id}:{}]", if text == NO_RESULT { "none" } else { &text })
        }
    };
    messages.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn check(messages: Vec<Message>, expected: &str) {
    assert_eq!(sketch(&of(messages).messages), expected);
}

#[test]
fn results_stand_behind_their_calls() {
    check(
        vec![hi(), ai(&["a", "b"]), result("a", "1"), result("b", "2")],
        "H A[a,b] T[a:1] T[b:2]",
    );
    check(
        vec![
            hi(),
            ai(&["a", "b"]),
            result("b", "2"),
            hi(),
            result("a", "1"),
        ],
        "H A[a,b] T[a:1] T[b:2] H",
    );
    check(vec![hi(), ai(&["a"]), hi()], "H A[a] T[a:none] H");
    check(vec![result("x", "1"), hi()], "H");
    check(
        vec![hi(), ai(&["a"]), result("a", "old"), result("a", "new")],
        "H A[a] T[a:new]",
    );
    check(vec![hi(), Message::ai(""), hi()], "H H");
    check(vec![result("a", "1"), hi(), ai(&["a"])], "H A[a] T[a:1]");
}

#[test]
fn calls_of_one_id_have_each_their_own_result_and_id() {
    let both = || ai(&["a", "b", "a"]);
    let [one, two, three] = ["1", "2", "3"].map(|text| result("a", text));
    let b = || result("b", "b");
    check(
        vec![both(), one.clone(), b(), two.clone()],
        "A[a,b,a_2] T[a:1] T[b:b] T[a_2:2]",
    );
    check(
        vec![both(), one.clone()],
        "A[a,b,a_2] T[a:1] T[b:none] T[a_2:none]",
    );
    check(
        vec![both(), one.clone(), two.clone(), three.clone()],
        "A[a,b,a_2] T[a:1] T[b:none] T[a_2:3]",
    );
    check(
        vec![both(), one.clone(), two.clone(), ai(&["a"]), three],
        "A[a,b,a_2] T[a:1] T[b:none] T[a_2:2] A[a_3] T[a_3:3]",
    );
    check(
        vec![ai(&["a"]), one, ai(&["a"]), two, ai(&["a", "a_2"])],
        "A[a] T[a:1] A[a_2] T[a_2:2] A[a_3,a_2_2] T[a_3:none] T[a_2_2:none]",
    );
}

#[test]
fn a_call_without_an_id_gets_one_and_keeps_its_result() {
    check(
        vec![ai(&["", "x", " "]), result("", "1"), result("x", "2")],
        "A[call_1,x,call_2] T[call_1:1] T[x:2] T[call_2:none]",
    );
    // One side says null and the other nothing: they mean each other.
    check(
        vec![cut_off(Some("t"), None), result_of_nothing("not JSON")],
        "A[call_1] T[call_1:not JSON]",
    );
    check(vec![hi(), result_of_nothing("1")], "H");
}

#[test]
fn an_invalid_call_is_one_without_arguments() {
    for (args, sent) in [
        ("{\"a\": ", "{}"),
        ("[1]", "{}"),
        ("{\"a\": 1}{\"a\": 1}", "{}"),
        // Whole, in a reply that was cut off.
        ("{\"a\": 1}", "{\"a\":1}"),
    ] {
        let mut message = cut_off(Some("t"), Some("a"));
        message.invalid_tool_calls[0].args = Some(args.into());
        let history = of(vec![message, result("a", "no")]);
        assert_eq!(sketch(&history.messages), "A[a] T[a:no]");
        assert!(history.messages[0].invalid_tool_calls.is_empty());
        let args = &history.messages[0].tool_calls[0].args;
        assert_eq!(args.to_canonical(), sent);
    }
}

#[test]
fn names_are_such_as_tools_may_have() {
    let long = "päd".repeat(40);
    for (name, expected) in [
        (Some("read_file"), "read_file"),
        (Some("admin.tools/list"), "admin_tools_list"),
        (Some("今天"), "__"),
        (Some(" "), "unknown"),
        (Some(""), "unknown"),
        (None, "unknown"),
        (Some(&*long), &"p_d".repeat(40)[..64]),
    ] {
        let history = of(vec![cut_off(name, Some("a")), result("a", "no")]);
        assert_eq!(&*history.messages[0].tool_calls[0].name, expected);
        assert_eq!(history.messages[1].name.as_deref(), Some(expected));
    }
}

#[test]
fn arguments_are_maps() {
    let args = |args: serde_json::Value| {
        let mut message = ai(&["a"]);
        message.tool_calls[0].args = args.into();
        of(vec![message]).messages[0].tool_calls[0]
            .args
            .to_canonical()
    };
    use serde_json::json;
    assert_eq!(args(json!({"a": [1]})), r#"{"a":[1]}"#);
    assert_eq!(args(json!(null)), "{}");
    assert_eq!(args(json!(" ")), "{}");
    assert_eq!(args(json!("{\"a\": 1}")), r#"{"a":1}"#);
    assert_eq!(args(json!("tea")), r#"{"value":"tea"}"#);
    assert_eq!(args(json!([1, 2])), r#"{"value":[1,2]}"#);
}

#[test]
fn contents_say_something() {
    use serde_json::json;
    let check = |role: &str, content: serde_json::Value, expected: Option<serde_json::Value>| {
        let message = json!({"type": role, "content": content});
        let message = Message::from_value(&message.into()).unwrap();
        let history = of(vec![message]);
        let content = history.messages.first().map(|message| &message.content);
        let found = content.map(|content| match content {
            Content::Text(text) => json!(**text),
            Content::Blocks(blocks) => Value::from(blocks.clone()).to_json(),
        });
        assert_eq!(found, expected);
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image_url", "image_url": {"url": "data:"}});
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let used = json!({"type": "tool_use", "id": "a", "name": "t", "input": {}});
    for role in ["human", "ai"] {
        check(role, json!(""), None);
        check(role, json!(" \n"), None);
        check(role, json!([]), None);
        check(role, json!([text(" ")]), None);
        check(role, json!([text("")]), None);
        check(role, json!([{"type": "text"}]), None);
        check(role, json!(" a "), Some(json!(" a ")));
        check(
            role,
            json!([text(""), text("a"), "b", "", null]),
            Some(json!([text("a"), "b"])),
        );
        check(role, json!([7]), Some(json!([text("7")])));
        check(role, json!([{"a": 1}]), Some(json!([text("{\"a\":1}")])));
        check(role, json!([image]), Some(json!([image])));
    }
    check("ai", json!([thought]), None);
    check("ai", json!([used]), None);
    check(
        "ai",
        json!([thought, text("a"), used]),
        Some(json!([thought, text("a")])),
    );
}

#[test]
fn a_result_of_nothing_says_so() {
    check(vec![ai(&["a"]), result("a", "")], "A[a] T[a:(no output)]");
    check(vec![ai(&["a"]), result("a", "\n")], "A[a] T[a:(no output)]");
}

#[test]
fn only_a_model_calls() {
    // As an import may have it.
    let mut human = hi();
    human.tool_calls.push(call("a"));
    let mut answer = result("b", "2");
    answer.tool_calls.push(call("c"));
    let history = of(vec![human, result("a", "1"), ai(&["b"]), answer]);
    assert_eq!(sketch(&history.messages), "H A[b] T[b:2]");
    assert!(history.messages[0].tool_calls.is_empty());
}

#[test]
fn instructions_stand_apart() {
    let history = of(vec![
        Message::system("be kind"),
        hi(),
        ai(&["a"]),
        Message::system("be brief"),
        Message::system(" "),
        result("a", "1"),
    ]);
    assert_eq!(sketch(&history.messages), "H A[a] T[a:1]");
    let mut request = ModelRequest::new(history.messages);
    request.system = Some("You are a poet.".into());
    instruct(&mut request, history.instructions);
    assert_eq!(
        request.system.as_deref(),
        Some("You are a poet.\n\nbe kind\n\nbe brief")
    );
}

#[test]
fn what_is_left_out_is_counted_by_reason() {
    let check = |entries: Vec<Result<Message, MessageError>>, expected: &str| {
        let left_out = valid(entries).left_out;
        let found = if left_out.is_empty() {
            String::new()
        } else {
            left_out.to_string()
        };
        assert_eq!(found, expected);
    };
    let ok = |messages: Vec<Message>| messages.into_iter().map(Ok).collect();
    check(ok(vec![hi(), ai(&["a"]), Message::system("s")]), "");
    check(
        ok(vec![hi(), result("x", "1"), result_of_nothing("2")]),
        "2 entries of the conversation left out of the request: 2 are results of no call",
    );
    let mut entries: Vec<Result<Message, MessageError>> = ok(vec![
        ai(&["a"]),
        result("a", "1"),
        result("a", "2"),
        Message::ai(""),
        Message::human(""),
        result("b", "3"),
    ]);
    entries.insert(2, Message::from_value(&7.into()));
    entries.insert(3, Message::from_value(&"hi".into()));
    check(
        entries.clone(),
        "5 entries of the conversation left out of the request: 1 is no message, 1 is the result of no call, \
         1 is an earlier result of its call, 2 say nothing",
    );
    let left_out = valid(entries).left_out;
    let places: Vec<_> = left_out.iter().map(|(place, _)| place).collect();
    assert_eq!(places, [1, 2, 5, 6, 7]);
    assert_eq!(left_out.since(6).len(), 2);
}

#[test]
fn a_changed_request_is_made_valid_again() {
    let tool = |name: &str, description: &str| ToolSchema {
        name: name.into(),
        description: description.into(),
        parameters: serde_json::json!({}),
    };
    let mut request = ModelRequest::new(vec![result("a", "1"), hi(), Message::system("s")])
        .with_tools(vec![tool("a", "first"), tool("b", ""), tool("a", "second")]);
    request.tool_choice = ToolChoice::Tool("c".into());
    assert_eq!(repair(&mut request).len(), 1);
    assert_eq!(sketch(&request.messages), "H");
    assert_eq!(request.system.as_deref(), Some("s"));
    assert_eq!(request.tools, [tool("a", "first"), tool("b", "")]);
    assert_eq!(request.tool_choice, ToolChoice::Auto);
    request.tool_choice = ToolChoice::Tool("b".into());
    let before = request.clone();
    assert!(repair(&mut request).is_empty());
    assert_eq!(request, before);
    request.tools.clear();
    request.tool_choice = ToolChoice::Required;
    repair(&mut request);
    assert_eq!(request.tool_choice, ToolChoice::Auto);
}

/// What every provider asks for.
fn assert_valid(messages: &[Message]) {
    let mut open: Vec<ToolCall> = Vec::new();
    let mut ids = BTreeSet::new();
    for message in messages {
        assert!(message.role != Role::System, "instructions in the middle");
        assert!(message.invalid_tool_calls.is_empty());
        assert!(
            !message.content.is_empty() || !message.tool_calls.is_empty(),
            "an empty message"
        );
        if message.role == Role::Tool {
            let call = open.first().expect("a result has a call");
            assert_eq!(message.tool_call_id.as_ref(), Some(&call.id));
            assert_eq!(message.name.as_ref(), Some(&call.name));
            open.remove(0);
            continue;
        }
        assert!(open.is_empty(), "a call has no result");
        open = message.tool_calls.clone();
        assert!(open.is_empty() || message.role == Role::Ai);
        for call in &open {
            assert!(!call.id.is_empty() && ids.insert(call.id.clone()));
            assert!(call.args.as_map().is_some());
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            assert!((1..=64).contains(&call.name.len()) && call.name.chars().all(fits));
        }
    }
    assert!(open.is_empty(), "the last call has no result");
}

/// Few ids, so that they meet; some of them look like those that are made.
const IDS: [&str; 9] = ["a", "b", "c", "", " ", "call_1", "a_2", "a_2_2", "ä"];

fn any_call() -> impl Strategy<Value = ToolCall> {
    let names = ["t", "", " ", "a.b", "\u{0}", "tool-with_ok"];
    let args = [
        Value::map(),
        Value::Null,
        "x".into(),
        Value::list(),
        "{}".into(),
    ];
    let names = prop::sample::select(names.map(Arc::from).to_vec());
    let ids = prop::sample::select(IDS.map(Arc::from).to_vec());
    (names, prop::sample::select(args.to_vec()), ids).prop_map(|(name, args, id)| ToolCall {
        name,
        args,
        id,
    })
}

fn any_content() -> impl Strategy<Value = Content> {
    let block = |json: serde_json::Value| Value::from(json);
    let blocks = vec![
        block(serde_json::json!({"type": "text", "text": "x"})),
        block(serde_json::json!({"type": "text", "text": ""})),
        block(serde_json::json!({"type": "reasoning"})),
        block(serde_json::json!({"type": "tool_use"})),
        block(serde_json::json!({"type": "image_url"})),
        block(serde_json::json!({"x": 1})),
        Value::Null,
        "said".into(),
        "".into(),
    ];
    prop_oneof![
        prop::sample::select(vec!["", " ", "said", "more"]).prop_map(Content::from),
        prop::collection::vec(prop::sample::select(blocks), 0..3).prop_map(Content::Blocks),
    ]
}

fn any_entry() -> impl Strategy<Value = Result<Message, MessageError>> {
    let roles = [
        Role::Human,
        Role::Ai,
        Role::Ai,
        Role::Tool,
        Role::Tool,
        Role::System,
    ];
    let calls = || prop::collection::vec(any_call(), 0..4);
    let id = prop::option::of(prop::sample::select(IDS.map(Arc::from).to_vec()));
    let message = (
        prop::sample::select(roles.to_vec()),
        any_content(),
        calls(),
        calls(),
        id,
        0_u8..4,
    );
    let message = message.prop_map(|(role, content, calls, invalid, id, which)| {
        let mut message = hi();
        message.role = role;
        message.content = content;
        message.tool_call_id = id;
        if which > 0 {
            message.tool_calls = calls;
        }
        if which > 2 {
            let invalid = invalid.into_iter().map(|call| InvalidToolCall {
                name: Some(call.name),
                args: None,
                id: Some(call.id).filter(|id| !id.is_empty()),
                error: None,
            });
            message.invalid_tool_calls = invalid.collect();
        }
        Ok(message)
    });
    prop_oneof![
        20 => message,
        1 => Just(Message::from_value(&Value::Null)),
    ]
}

proptest! {
    #[test]
    fn any_conversation_becomes_a_valid_history(entries in prop::collection::vec(any_entry(), 0..24)) {
        let count = entries.len();
        let once = valid(entries.clone());
        assert_valid(&once.messages);
        let again = of(once.messages.clone());
        prop_assert_eq!(&again.messages, &once.messages);
        prop_assert!(again.left_out.is_empty());
        // Every entry is in it, an instruction, or said to be left out; what is added stands in for results.
        let added = once.messages.iter().filter(|message| message.content.text() == NO_RESULT);
        let there = once.messages.len() - added.count() + once.instructions.len();
        prop_assert_eq!(there + once.left_out.len(), count);
        // What is appended changes nothing before it but results.
        let mut longer = entries;
        longer.push(Ok(hi()));
        let longer = valid(longer);
        prop_assert_eq!(&longer.messages[..once.messages.len()], &once.messages[..]);
    }
}
