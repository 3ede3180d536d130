#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::ArgSchema;

const SCHEMA: &str = r##"{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1},
    "line": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": null},
    "count": {"type": "integer", "minimum": 1, "maximum": 10},
    "kind": {"enum": ["a", "b"]},
    "append": {"type": "boolean"},
    "names": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    "tree": {"$ref": "#/$defs/tree"}
  },
  "required": ["path"],
  "additionalProperties": false,
  "$defs": {"tree": {
    "type": "object",
    "properties": {"name": {"type": "string"}, "child": {"$ref": "#/$defs/tree"}},
    "required": ["name"]
  }}
}"##;

fn check(args: Value) -> String {
    match ArgSchema::parse(SCHEMA).unwrap().check("read", args) {
        Ok(_) => "fits".to_owned(),
        Err(errors) => errors
            .problems
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" | "),
    }
}

#[test]
fn arguments_that_fit_are_made_plain() {
    let schema = ArgSchema::parse(SCHEMA).unwrap();
    let fits = |args: Value, expected: Value| {
        assert_eq!(Value::Object(schema.check("read", args).unwrap()), expected);
    };
    fits(json!({"path": "x"}), json!({"path": "x"}));
    fits(
        json!({"path": "x", "count": 3.0}),
        json!({"count": 3, "path": "x"}),
    );
    fits(
        json!({"path": "x", "count": null, "append": null}),
        json!({"path": "x"}),
    );
    fits(
        json!({"path": "x", "line": null}),
        json!({"line": null, "path": "x"}),
    );
    fits(
        json!({"path": "x", "line": 2.0}),
        json!({"line": 2, "path": "x"}),
    );
}

#[test]
fn each_problem_says_where_and_what_was_expected() {
    let cases = [
        json!([]),
        json!("{\"path\": \"x\"}"),
        json!(null),
        json!({}),
        json!({"path": null}),
        json!({"path": 3}),
        json!({"path": ""}),
        json!({"path": ["x"]}),
        json!({"path": "x", "count": "3"}),
        json!({"path": "x", "count": 2.5}),
        json!({"path": "x", "count": 11}),
        json!({"path": "x", "line": 0}),
        json!({"path": "x", "line": "one"}),
        json!({"path": "x", "kind": "c"}),
        json!({"path": "x", "append": "yes"}),
        json!({"path": "x", "names": ["a", 1, {}]}),
        json!({"path": "x", "tree": {"name": "a", "child": {"child": 1}}}),
        json!({"pth": "x", "colour": 1}),
    ];
    let lines: Vec<String> = cases.into_iter().map(check).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    expected an object, got a list of 0
    expected an object, got the string "{\"path\": \"x\"}"
    expected an object, got null
    `path`: is missing and required: a string
    `path`: expected a string, got null
    `path`: expected a string, got the number 3
    `path`: must not be empty
    `path`: expected a string, got a list of 1
    `count`: expected a whole number, got the string "3"
    `count`: expected a whole number, got the number 2.5
    `count`: expected at most 10, got the number 11
    `line`: expected at least 1, got the number 0
    `line`: expected a whole number or null, got the string "one"
    `kind`: expected one of "a", "b", got the string "c"
    `append`: expected true or false, got the string "yes"
    `names`: expected at most 2 items, got 3 items | `names[1]`: expected a string, got the number 1 | `names[2]`: expected a string, got an object
    `tree.child.child`: expected an object, got the number 1 | `tree.child.name`: is missing and required: a string
    `colour`: is not an argument of this tool; it takes append, count, kind, line, names, path, tree | `path`: is missing and required: a string | `pth`: is not an argument of this tool; did you mean `path`?
    "#);
}

#[test]
fn the_whole_text_names_the_tool() {
    let errors = ArgSchema::parse(SCHEMA)
        .unwrap()
        .check("read_file", json!({"path": 1, "count": "x".repeat(100)}))
        .unwrap_err();
    insta::assert_snapshot!(errors, @r#"
    read_file was not run, because its arguments are wrong:
    - `count`: expected a whole number, got the string "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"
    - `path`: expected a string, got the number 1
    "#);
}

#[test]
fn a_schema_that_refers_to_itself_for_ever_ends() {
    let schema = ArgSchema::parse(
        r##"{"type": "object", "properties": {"x": {"$ref": "#/properties/x"}}}"##,
    )
    .unwrap();
    let errors = schema.check("t", json!({"x": 1})).unwrap_err();
    assert_eq!(errors.problems[0].argument, "x");
}

#[test]
fn the_text_of_a_schema_keeps_its_key_order() {
    let text = r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}"#;
    assert_eq!(ArgSchema::parse(text).unwrap().text(), text);
}

#[test]
fn what_is_no_object_schema_is_refused() {
    for text in ["", "[]", "true", r#"{"type": "string"}"#] {
        assert!(ArgSchema::parse(text).is_err(), "{text}");
    }
}
