#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::{Map, json};

use super::*;
use crate::fixture::Fixture;

fn text(args: Value) -> String {
    let Value::Object(args) = args else {
        return String::new();
    };
    payload("call_1", &args).payload["text"]
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
            {"name": "n", "default": {}, "type": "bogus", "required": "true"},
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
        let asked = payload("c", &args);
        assert_eq!(asked.payload["input_mode"], "free_text", "{fields}");
        let note = asked.notes.first().cloned().unwrap_or_default();
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

#[test]
fn options_are_read_in_any_shape_that_models_send() {
    let check = |options: Value, expected: &[&str]| {
        let read = options::read(Some(&options), "option");
        let lines: Vec<String> = read.list.iter().map(options::Choice::line).collect();
        assert_eq!(lines, expected, "{options}");
        assert_eq!(read.left_out, 0, "{options}");
    };
    check(json!(["dev", "prod"]), &["dev", "prod"]);
    check(json!("[\"dev\",\"prod\"]"), &["dev", "prod"]);
    check(json!(" [\"dev\",\n \"prod\"] "), &["dev", "prod"]);
    check(json!(["[\"dev\",\"prod\"]"]), &["dev", "prod"]);
    check(json!("\"[\\\"dev\\\",\\\"prod\\\"]\""), &["dev", "prod"]);
    check(json!("['dev', \"a, b\", prod]"), &["dev", "a, b", "prod"]);
    check(json!("[dev, prod"), &["[dev", "prod"]);
    check(json!("dev, prod,staging"), &["dev", "prod", "staging"]);
    check(json!("开发、测试，生产"), &["开发", "测试", "生产"]);
    check(json!("1,000 or 2,500 rows"), &["1,000 or 2,500 rows"]);
    check(json!("don't ask, 'tis fine"), &["don't ask", "'tis fine"]);
    check(json!("one, with comma\ntwo"), &["one, with comma", "two"]);
    check(json!("\r\n- dev\r\n* prod\r\n"), &["dev", "prod"]);
    check(json!("just one"), &["just one"]);
    check(json!(["Yes, delete it"]), &["Yes, delete it"]);
    check(json!([1, 2.5, true, null, ""]), &["1", "2.5", "true"]);
    check(json!(3), &["3"]);
    check(json!("7"), &["7"]);
    check(json!(false), &["false"]);
    check(json!(null), &[]);
    check(json!("null"), &[]);
    check(json!(""), &[]);
    check(json!([]), &[]);
    check(json!({}), &[]);
    check(json!([["a", ["b"]], [["c"]]]), &["a", "b", "c"]);
    check(json!({"options": ["a", {"x": "b"}]}), &["a", "b"]);
    check(json!({"first": "a", "second": "b"}), &["a", "b"]);
    check(
        json!([{"label": "Dev", "value": "d", "description": "for\n tests"}, {"name": "Prod"}, {"value": "v", "description": "x"}]),
        &["Dev — for tests", "Prod", "v — x"],
    );
    check(json!([{"label": null, "value": 3}]), &["3"]);
    check(json!([{"label": ["a", "b"]}]), &["a", "b"]);
    check(json!(["a", "a", " a ", "<b>a</b>", "A"]), &["a", "A"]);
    check(json!(["two\nlines"]), &["two lines"]);
    check(json!("[1, [\"a\", {\"label\": \"L\"}]]"), &["1", "a", "L"]);
}

#[test]
fn the_value_of_an_option_is_what_it_answers() {
    let read = options::read(
        Some(&json!([{"label": "Dev", "value": "d1"}, "x"])),
        "option",
    );
    assert_eq!(
        json!(read.list),
        json!([
            {"id": "option-1", "label": "Dev", "value": "d1"},
            {"id": "option-2", "label": "x", "value": "x"},
        ])
    );
}

#[test]
fn options_that_are_too_many_or_too_long_are_cut_where_they_are_shown() {
    let many: Vec<String> = (1..=1000).map(|n| n.to_string()).collect();
    let Value::Object(args) = json!({"question": "Q", "options": many}) else {
        panic!("an object");
    };
    let asked = payload("c", &args);
    assert_eq!(asked.payload["options"].as_array().unwrap().len(), 100);
    let text = asked.payload["text"].as_str().unwrap();
    assert!(
        text.ends_with("  100. 100\n  … and 900 more"),
        "{}",
        &text[text.len() - 60..]
    );
    assert_eq!(
        asked.notes,
        ["ask_clarification: 900 of the options are left out, because there are too many"]
    );
    let long = "长".repeat(10_000);
    let read = options::read(Some(&json!([long, "short"])), "option");
    assert_eq!(read.list[0].label.chars().count(), 200);
    assert!(read.list[0].label.ends_with('…'));
    assert_eq!(read.list[0].value, long, "what it answers is whole");
}

fn form() -> Form {
    Form::read(&json!([
        {"name": "env", "type": "select", "required": true, "options": [{"label": "Production", "value": "prod"}, "dev"]},
        {"name": "replicas", "type": "number", "default": "2"},
        {"name": "regions", "type": "multi_select", "options": ["eu", "us", "ap"]},
        {"name": "sure", "type": "checkbox", "default": "maybe"},
        {"name": "day", "type": "date"},
        {"name": "note", "type": "textarea"}
    ]))
    .unwrap()
}

#[test]
fn an_answer_to_a_form_is_brought_into_shape() {
    let form = form();
    let check = |answer: Value, expected: Value| {
        assert_eq!(form.accept(&answer), Ok(expected), "{answer}");
    };
    check(
        json!({"env": "prod"}),
        json!({"env": "prod", "replicas": 2}),
    );
    check(
        json!({"env": "PRODUCTION", "replicas": "3", "regions": ["EU", "ap", "eu"], "sure": "yes", "day": " 2028-02-29 ", "note": 7}),
        json!({"env": "prod", "replicas": 3, "regions": ["eu", "ap"], "sure": true, "day": "2028-02-29", "note": "7"}),
    );
    check(
        json!({"env": "env-option-2", "replicas": 1.5, "regions": "us、eu", "sure": false, "day": "", "note": null}),
        json!({"env": "dev", "replicas": 1.5, "regions": ["us", "eu"], "sure": false}),
    );
    check(
        json!("{\"env\": \"dev\", \"replicas\": 0}"),
        json!({"env": "dev", "replicas": 0}),
    );
    check(
        json!({"kind": "human_input_response", "value": "env: prod, no replicas"}),
        json!("env: prod, no replicas"),
    );
}

#[test]
fn all_that_is_wrong_with_an_answer_to_a_form_is_told() {
    let form = form();
    let mut lines = Vec::new();
    for answer in [
        json!({}),
        json!({"env": "test", "replicas": "many", "regions": ["eu", "mars"], "sure": 1, "day": "2026-02-30", "note": {}}),
        json!({"env": "dev", "replcas": 3}),
        json!({"env": ["dev"], "replicas": "NaN", "day": "1 May", "regions": 5}),
        json!("dev, 3 replicas"),
        json!(["dev"]),
        json!(null),
        json!(7),
    ] {
        lines.push(form.accept(&answer).unwrap_err());
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    `env` is missing and required
    `env`: expected one of Production, dev, got the string "test"; `replicas`: expected a number, got the string "many"; `regions`: expected some of eu, us, ap, got the string "mars"; `sure`: expected true or false, got the number 1; `day`: expected a date as 2026-08-01, got the string "2026-02-30"; `note`: expected a text, got an object
    there is no field `replcas`; the form has `env` (select), `replicas` (number), `regions` (multi_select), `sure` (checkbox), `day` (date), `note` (textarea)
    `env`: expected one of Production, dev, got a list of 1; `replicas`: expected a number, got the string "NaN"; `regions`: expected some of eu, us, ap, got the number 5; `day`: expected a date as 2026-08-01, got the string "1 May"
    a form is answered with a JSON object; expected `env` (select), `replicas` (number), `regions` (multi_select), `sure` (checkbox), `day` (date), `note` (textarea), got the string "dev, 3 replicas"
    a form is answered with a JSON object; expected `env` (select), `replicas` (number), `regions` (multi_select), `sure` (checkbox), `day` (date), `note` (textarea), got a list of 1
    a form is answered with a JSON object; expected `env` (select), `replicas` (number), `regions` (multi_select), `sure` (checkbox), `day` (date), `note` (textarea), got null
    a form is answered with a JSON object; expected `env` (select), `replicas` (number), `regions` (multi_select), `sure` (checkbox), `day` (date), `note` (textarea), got the number 7
    "#);
}

#[test]
fn a_form_with_one_field_takes_its_value() {
    let form = Form::read(&json!([{"name": "n", "type": "number"}])).unwrap();
    assert_eq!(form.accept(&json!("5")), Ok(json!({"n": 5})));
    assert_eq!(form.accept(&json!(5)), Ok(json!({"n": 5})));
    assert!(form.accept(&json!("five")).is_err());
    assert!(form.accept(&json!("")).is_err());
}

#[test]
fn a_form_is_found_in_its_question() {
    let fields = json!([
        {"name": "a", "type": "select", "options": "x, y", "default": "X", "placeholder": "p"},
        {"name": "value", "required": true}
    ]);
    let Value::Object(args) = json!({"question": "Q", "fields": fields}) else {
        panic!("an object");
    };
    let asked = payload("c", &args);
    assert_eq!(Form::of_question(&asked.payload), asked.form);
    assert_eq!(
        asked.form.unwrap().accept(&json!({"value": "v"})),
        Ok(json!({"a": "x", "value": "v"}))
    );
    assert_eq!(Form::of_question(&json!({"source": "other"})), None);
    assert_eq!(Form::of_question(&json!("text")), None);
}

#[tokio::test]
async fn the_answer_to_a_form_is_an_object_with_all_its_values() {
    let f = Fixture::new();
    let args = json!({"question": "Q", "fields": [{"name": "value"}, {"name": "n", "type": "number", "default": 1}]});
    *f.heard.answer.lock().unwrap() = Some(json!({"value": "x"}));
    let said = f.say(AskClarification::new(), args).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said, json!({"value": "x", "n": 1}));
}
