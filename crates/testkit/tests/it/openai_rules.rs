//! What a strict server refuses, and what it takes.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Mutex;
use tine_testkit::openai_rules::{Rule, check};

/// Everything that a request may have.
fn good() -> Value {
    let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{\"path\": \"/\"}"}});
    json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            ], "name": "ada"},
            {"role": "assistant", "content": null, "tool_calls": [call("a", "ls"), call("b", "read-file_2")]},
            {"role": "tool", "tool_call_id": "b", "content": "second"},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "first"}]},
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": "", "tool_calls": [call("a", "ls")], "reasoning_content": "hm"},
            {"role": "tool", "tool_call_id": "a", "content": "again"},
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [
            {"type": "function", "function": {"name": "ls", "description": "Lists.", "parameters":
                {"type": "object", "properties": {"paths": {"type": "array", "items": {"type": "string"}}}}}},
            {"type": "function", "function": {"name": "now"}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "ls"}},
        "parallel_tool_calls": true,
        "response_format": {"type": "json_schema", "json_schema": {"name": "verdict", "schema": {"type": "object"}}},
    })
}

/// What the rules say of a body: `Rule at place`, one a line.
fn told(body: &Value) -> String {
    let broken = check(body);
    let lines = broken
        .iter()
        .map(|broken| format!("{:?} at {}", broken.rule, broken.place));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_strict_server_takes_what_is_right() {
    assert_eq!(told(&good()), "");
    let mut least = json!({"messages": [{"role": "user", "content": "hi"}]});
    assert_eq!(told(&least), "");
    least["messages"][0]["role"] = "developer".into();
    assert_eq!(told(&least), "");
    for choice in ["none", "auto", "required"] {
        let mut body = good();
        body["tool_choice"] = choice.into();
        assert_eq!(told(&body), "");
    }
}

/// The rules that some case has shown to refuse.
static SHOWN: Mutex<BTreeSet<Rule>> = Mutex::new(BTreeSet::new());

/// Puts `value` at a place of the good body (null takes the field away, a text `null` puts null), and compares.
fn refused(pointer: &str, value: Value, expected: &str) {
    let mut body = good();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match (body.pointer_mut(parent).unwrap(), value) {
        (Value::Object(entries), Value::Null) => {
            entries.remove(key);
        }
        (Value::Object(entries), value) => {
            let value = if value == "null" { Value::Null } else { value };
            entries.insert(key.to_owned(), value);
        }
        (Value::Array(items), Value::Null) => {
            items.remove(key.parse().unwrap());
        }
        // A list as value is put in between.
        (Value::Array(items), Value::Array(between)) => {
            let at: usize = key.parse().unwrap();
            items.splice(at..at, between);
        }
        (Value::Array(items), value) => items[key.parse::<usize>().unwrap()] = value,
        (other, _) => panic!("{pointer} is in {other}"),
    }
    assert_eq!(told(&body), expected, "{pointer}");
    let rules = check(&body).into_iter().map(|broken| broken.rule);
    SHOWN.lock().unwrap().extend(rules);
}

#[test]
fn a_strict_server_refuses_what_breaks_a_rule() {
    not_a_body();
    messages();
    contents();
    calls();
    pairs();
    tools();
    let shown = SHOWN.lock().unwrap().clone();
    assert_eq!(shown, BTreeSet::from(Rule::ALL), "a rule without a case");
}

fn not_a_body() {
    assert_eq!(told(&json!([])), "Body at ");
    SHOWN.lock().unwrap().insert(Rule::Body);
    refused("/messages", Value::Null, "Messages at messages");
    refused("/messages", json!([]), "Messages at messages");
    refused("/messages", json!({"role": "user"}), "Messages at messages");
    let format = "ResponseFormat at response_format";
    refused("/response_format", json!({"type": "xml"}), format);
    refused("/response_format/json_schema/name", json!("a b"), format);
    refused("/response_format/json_schema/schema", Value::Null, format);
}

fn messages() {
    refused("/messages/5", json!("hi"), "Messages at messages[5]");
    for role in [
        json!("human"),
        json!("function"),
        json!(""),
        json!(7),
        Value::Null,
    ] {
        refused("/messages/5/role", role, "Role at messages[5].role");
    }
    let system = json!([{"role": "system", "content": "x"}]);
    refused("/messages/1", system.clone(), "SystemFirst at messages[1]");
    refused("/messages/9", system, "SystemFirst at messages[9]");
    let developer = json!({"role": "developer", "content": "x"});
    refused("/messages/5", developer, "SystemFirst at messages[5]");
    for (place, field) in [
        (1, "tool_calls"),
        (1, "id"),
        (3, "status"),
        (2, "invalid_tool_calls"),
        (2, "function_call"),
        (8, "tool_call_id"),
    ] {
        let expected = format!("Field at messages[{place}].{field}");
        refused(&format!("/messages/{place}/{field}"), json!("x"), &expected);
    }
    for name in [
        json!("a b"),
        json!(""),
        json!("a/b"),
        json!("null"),
        json!("x".repeat(65)),
    ] {
        refused("/messages/1/name", name, "SpeakerName at messages[1].name");
    }
}

fn contents() {
    for (place, content) in [
        (0, Value::Null),
        (1, json!("null")),
        (1, json!([])),
        (3, json!({"ok": true})),
        (5, json!(7)),
        (8, json!("null")),
        (8, Value::Null),
    ] {
        let expected = format!("Content at messages[{place}].content");
        refused(&format!("/messages/{place}/content"), content, &expected);
    }
    for place in [0, 1, 3, 5, 8] {
        let expected = format!("Empty at messages[{place}].content");
        refused(&format!("/messages/{place}/content"), json!(""), &expected);
    }
    for (pointer, part) in [
        ("/messages/1/content/0", json!("text")),
        ("/messages/1/content/0", json!({"type": "text", "text": ""})),
        ("/messages/1/content/0", json!({"type": "text"})),
        (
            "/messages/1/content/0",
            json!({"type": "image_url", "image_url": "data:"}),
        ),
        (
            "/messages/1/content/0",
            json!({"type": "tool_use", "id": "a"}),
        ),
        (
            "/messages/1/content/0",
            json!({"type": "input_audio", "input_audio": {"data": "AA"}}),
        ),
        ("/messages/1/content/0", json!({"type": "file"})),
        (
            "/messages/1/content/0",
            json!({"type": "refusal", "refusal": "no"}),
        ),
    ] {
        refused(pointer, part, "Part at messages[1].content[0]");
    }
    let thought = json!({"type": "thinking", "thinking": "hm"});
    refused(
        "/messages/8/content",
        json!([thought]),
        "Part at messages[8].content[0]",
    );
    let image = json!({"type": "image_url", "image_url": {"url": "data:"}});
    refused(
        "/messages/4/content/0",
        image,
        "Part at messages[4].content[0]",
    );
}

fn calls() {
    // Without calls the results have none either.
    let none = "NoCall at messages[7].tool_call_id";
    for (calls, more) in [(json!([]), ""), (json!("null"), ""), (json!("x"), "")] {
        let expected = format!("Calls at messages[6].tool_calls{more}\n{none}");
        refused("/messages/6/tool_calls", calls, &expected);
    }
    let call = "/messages/6/tool_calls/0";
    for change in [json!("custom"), Value::Null] {
        refused(
            &format!("{call}/type"),
            change,
            "Calls at messages[6].tool_calls[0]",
        );
    }
    refused(
        &format!("{call}/function"),
        json!("ls"),
        "Calls at messages[6].tool_calls[0]",
    );
    for id in [json!(7), json!("null"), Value::Null] {
        let expected = format!("CallId at messages[6].tool_calls[0].id\n{none}");
        refused(&format!("{call}/id"), id, &expected);
    }
    for id in [String::new(), "x".repeat(41)] {
        let expected = format!(
            "CallId at messages[6].tool_calls[0].id\n{none}\nNoResult at messages[6].tool_calls"
        );
        refused(&format!("{call}/id"), json!(id), &expected);
    }
    refused(
        "/messages/2/tool_calls/1/id",
        json!("a"),
        "SameCallId at messages[2].tool_calls[1].id\nNoCall at messages[3].tool_call_id\n\
         NoResult at messages[2].tool_calls",
    );
    for name in ["", "a.b", "a b", "今天", &"x".repeat(65)] {
        refused(
            &format!("{call}/function/name"),
            json!(name),
            "FunctionName at messages[6].tool_calls[0].function.name",
        );
    }
    for arguments in [
        json!(""),
        json!("{\"path"),
        json!("[1]"),
        json!("null"),
        json!("\"x\""),
        json!("{}{}"),
        json!({"path": "/"}),
        Value::Null,
    ] {
        refused(
            &format!("{call}/function/arguments"),
            arguments,
            "Arguments at messages[6].tool_calls[0].function.arguments",
        );
    }
}

fn pairs() {
    refused(
        "/messages/3",
        Value::Null,
        "NoResult at messages[2].tool_calls",
    );
    refused(
        "/messages/7",
        Value::Null,
        "NoResult at messages[6].tool_calls",
    );
    let user = json!([{"role": "user", "content": "hurry"}]);
    refused(
        "/messages/4",
        user.clone(),
        "NoResult at messages[2].tool_calls\nNoCall at messages[5].tool_call_id",
    );
    refused(
        "/messages/3",
        user,
        "NoResult at messages[2].tool_calls\nNoResult at messages[2].tool_calls\n\
         NoCall at messages[4].tool_call_id\nNoCall at messages[5].tool_call_id",
    );
    let result = |id: &str| json!([{"role": "tool", "tool_call_id": id, "content": "x"}]);
    refused(
        "/messages/5",
        result("a"),
        "TwoResults at messages[5].tool_call_id",
    );
    refused(
        "/messages/5",
        result("c"),
        "NoCall at messages[5].tool_call_id",
    );
    refused(
        "/messages/1",
        result("a"),
        "NoCall at messages[1].tool_call_id",
    );
    refused(
        "/messages/9",
        result("a"),
        "NoCall at messages[9].tool_call_id",
    );
    refused(
        "/messages/6",
        result("b"),
        "NoCall at messages[6].tool_call_id",
    );
    for id in [Value::Null, json!("null"), json!("")] {
        refused(
            "/messages/7/tool_call_id",
            id,
            "NoCall at messages[7].tool_call_id\nNoResult at messages[6].tool_calls",
        );
    }
}

fn tools() {
    refused(
        "/tools",
        json!([]),
        "Tools at tools\nChosenTool at tool_choice",
    );
    refused(
        "/tools",
        json!("ls"),
        "Tools at tools\nChosenTool at tool_choice",
    );
    refused(
        "/tools",
        Value::Null,
        "NoTools at tool_choice\nNoTools at parallel_tool_calls",
    );
    let many: Vec<Value> = (0..129)
        .map(|nth| json!({"type": "function", "function": {"name": format!("t{nth}")}}))
        .collect();
    refused(
        "/tools",
        many.into(),
        "Tools at tools\nChosenTool at tool_choice",
    );
    refused("/tools/1", json!({"name": "now"}), "Tools at tools[1]");
    refused(
        "/tools/1/function/description",
        json!(7),
        "Tools at tools[1].function.description",
    );
    refused(
        "/tools/1/function/name",
        json!("ls"),
        "SameTool at tools[1].function.name",
    );
    for name in [
        json!("admin.tools.list"),
        json!(""),
        json!("x".repeat(65)),
        Value::Null,
    ] {
        refused(
            "/tools/1/function/name",
            name,
            "FunctionName at tools[1].function.name",
        );
    }
    for schema in [
        json!({"type": "object"}),
        json!({"properties": {}}),
        json!({"type": "string"}),
        json!("object"),
        json!("null"),
    ] {
        refused(
            "/tools/1/function/parameters",
            schema,
            "Parameters at tools[1].function.parameters",
        );
    }
    let paths = "/tools/0/function/parameters/properties/paths";
    let place = "Parameters at tools[0].function.parameters.properties.paths";
    refused(paths, json!({"type": "array"}), place);
    refused(
        paths,
        json!({"anyOf": [{"type": "string"}, {"type": "array"}]}),
        &format!("{place}.anyOf[1]"),
    );
    refused(
        paths,
        json!({"type": "array", "items": {"type": "array"}}),
        &format!("{place}.items"),
    );
    for choice in [
        json!("any"),
        json!("ls"),
        json!("null"),
        json!({"name": "ls"}),
    ] {
        refused("/tool_choice", choice, "ToolChoice at tool_choice");
    }
    let other = json!({"type": "function", "function": {"name": "rm"}});
    refused("/tool_choice", other, "ChosenTool at tool_choice");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let body = json!({"messages": [
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "write_file", "arguments": "{\"path\": \"a.t"}}]},
        {"role": "user", "content": "and?"},
    ]});
    let told: Vec<String> = check(&body).iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    messages[0].tool_calls[0].function.arguments: not the JSON text of an object: "{\"path\": \"a.t" (Arguments)
    messages[0].tool_calls: no result for `a` right behind (NoResult)
    "#);
}
