#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::{Map, json};

use super::*;
use crate::fixture::Fixture;

fn text(args: Value) -> String {
    let Value::Object(args) = args else {
        return String::new();
    };
    payload("call_1", &args).0["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_question_is_written_with_its_choices() {
    let check = |args: Value, expected: &str| assert_eq!(text(args.clone()), expected, "{args}");
    check(
        json!({"question": "Which?", "clarification_type": "missing_info"}),
        "❓ Which?",
    );
    check(
        json!({"question": "Q", "clarification_type": "risk_confirmation", "context": "C", "options": ["A", " A ", "<b>B</b>", ""]}),
        "⚠️ C\n\nQ\n\n  1. A\n  2. B",
    );
    check(
        json!({"question": "Q", "clarification_type": "weird", "options": "[\"x\",\"y\"]"}),
        "❓ Q\n\n  1. x\n  2. y",
    );
    check(
        json!({"question": "Q", "clarification_type": "suggestion", "options": {"option": ["a", {"k": 1}]}}),
        "💡 Q\n\n  1. a\n  2. 1",
    );
    check(
        json!({"question": "Q", "clarification_type": "approach_choice", "options": "not json"}),
        "🔀 Q\n\n  1. not json",
    );
    check(
        json!({"question": "Q", "options": "- one\n2) two\n\n3. three"}),
        "❓ Q\n\n  1. one\n  2. two\n  3. three",
    );
    check(
        json!({"question": "Q", "options": [{"label": "L", "value": "v"}, {"value": "w"}, 5, true, null]}),
        "❓ Q\n\n  1. L\n  2. w\n  3. 5\n  4. true",
    );
    check(
        json!({"question": "a < b > c", "options": ["x < 3", "<", "</x>"]}),
        "❓ a < b > c\n\n  1. x < 3\n  2. <",
    );
    check(
        json!({"question": "Q", "options": ["Option<A>", "Option<B>", "HashMap<K,V>", "Vec<T>"]}),
        "❓ Q\n\n  1. Option<A>\n  2. Option<B>\n  3. HashMap<K,V>\n  4. Vec<T>",
    );
    check(
        json!({"question": "Q", "options": ["<option id=\"1\">A</option>", "<br/>B", "<o>Vec<T></o>"]}),
        "❓ Q\n\n  1. A\n  2. B\n  3. Vec<T>",
    );
    check(
        json!({"question": "Q", "fields": [
            {"name": "n", "type": "bogus", "required": "true"},
            {"name": "s", "type": "multi_select", "options": ["a", "b"], "label": "S"},
            {"name": "t", "type": "select"}
        ]}),
        "❓ Q\n\n  1. n (required)\n  2. S — options: a / b (multiple allowed)\n  3. t\n\nPlease reply with a value for each field.",
    );
    check(
        json!({"question": "Q", "fields": [{"name": "a"}, {"name": "a"}], "options": ["z"]}),
        "❓ Q\n\n  1. z",
    );
}

#[test]
fn a_faulty_form_is_left_out_with_a_note() {
    let check = |fields: Value, expected: &str| {
        let Value::Object(args) = json!({"question": "Q", "fields": fields}) else {
            return;
        };
        let (payload, note) = payload("c", &args);
        assert_eq!(payload["input_mode"], "free_text", "{fields}");
        let note = note.unwrap_or_default();
        assert!(note.ends_with(expected), "{fields}: {note}");
    };
    check(json!("nonsense"), "it is not a list");
    check(json!({"name": "a"}), "it is not a list");
    check(json!(["a"]), "a field is not an object");
    check(json!([{"label": "a"}]), "a field has no name");
    check(
        json!([{"name": "__proto__"}]),
        "a field may not be named `__proto__`",
    );
    check(
        json!([{"name": "x".repeat(201)}]),
        "is longer than 200 characters",
    );
    check(
        json!(vec![json!({"name": "a"}); 17]),
        "it has more than 16 fields",
    );
    let options: Vec<String> = (0..25).map(|n| n.to_string()).collect();
    check(
        json!([{"name": "a", "options": options}]),
        "`a` has more than 24 options",
    );
}

#[tokio::test]
async fn the_call_waits_until_it_is_answered() {
    let f = Fixture::new();
    let args = json!({"question": "写什么？", "clarification_type": "missing_info", "context": "没有主题", "options": ["AI", "茶"]});
    let waits = f.call(AskClarification::new(), args.clone()).await;
    assert!(matches!(waits, Err(ToolError::Interrupted)));
    *f.heard.answer.lock().unwrap() = Some(json!("茶"));
    assert_eq!(f.say(AskClarification::new(), args).await, "茶");
    let asked = f.heard.asked.lock().unwrap();
    assert_eq!(asked[0], asked[1]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&sorted(&asked[0])).unwrap(), @r#"
    {
      "clarification_type": "missing_info",
      "context": "没有主题",
      "input_mode": "choice_with_other",
      "kind": "human_input_request",
      "options": [
        {
          "id": "option-1",
          "label": "AI",
          "value": "AI"
        },
        {
          "id": "option-2",
          "label": "茶",
          "value": "茶"
        }
      ],
      "question": "写什么？",
      "request_id": "clarification:call_1",
      "source": "ask_clarification",
      "text": "❓ 没有主题\n\n写什么？\n\n  1. AI\n  2. 茶",
      "tool_call_id": "call_1",
      "version": 1
    }
    "#);
}

/// Orders keys, whether or not `serde_json` keeps theirs.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            names
                .into_iter()
                .map(|name| (name.clone(), sorted(&fields[name])))
                .collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn an_answer_may_be_a_text_or_a_front_ends_object() {
    let f = Fixture::new();
    for (answer, expected) in [
        (json!("x"), "x"),
        (json!(""), ""),
        (json!({"kind": "human_input_response", "value": "B"}), "B"),
        (json!({"a": 1}), "{\"a\":1}"),
        (json!(false), "false"),
        (json!(null), "null"),
    ] {
        *f.heard.answer.lock().unwrap() = Some(answer);
        assert_eq!(
            f.say(AskClarification::new(), json!({"question": "Q"}))
                .await,
            expected
        );
    }
}

#[tokio::test]
async fn a_run_may_forbid_questions_or_ask_in_its_graph() {
    let mut f = Fixture::new();
    let options = Map::from_iter([(DISABLED.to_owned(), json!(true))]);
    let before = f.cx.clone();
    f.cx = before.clone().with_options(Arc::new(options));
    let said = f
        .say(AskClarification::new(), json!({"question": "Q"}))
        .await;
    assert!(
        said.starts_with("error: questions are switched off"),
        "{said}"
    );
    f.cx = before.with_routes(Arc::from([ROUTE.to_owned()]));
    let output = f
        .call(AskClarification::new(), json!({"question": "Q"}))
        .await
        .unwrap();
    assert!(matches!(
        output,
        ToolOutput::Command(ToolCommand {
            route: Some(_),
            reply: None,
            ..
        })
    ));
    assert!(f.heard.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_question_that_is_no_text_is_refused() {
    let f = Fixture::new();
    let mut lines = Vec::new();
    for args in [
        json!({}),
        json!({"question": 1}),
        json!({"question": ""}),
        json!({"question": " \n\t"}),
        json!(["Q"]),
        json!("Q"),
    ] {
        lines.push(f.say(AskClarification::new(), args).await);
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    error: ask_clarification was not run, because its arguments are wrong:
    - `question`: is missing and required: a string
    error: ask_clarification was not run, because its arguments are wrong:
    - `question`: expected a string, got the number 1
    error: ask_clarification was not run, because its arguments are wrong:
    - `question`: must not be empty
    error: ask_clarification was not run, because its arguments are wrong:
    - `question`: must not be empty
    error: ask_clarification was not run, because its arguments are wrong:
    - expected an object, got a list of 1
    error: ask_clarification was not run, because its arguments are wrong:
    - expected an object, got the string "Q"
    "#);
}
