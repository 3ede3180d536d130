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
fn references_that_branch_at_every_level_end_too() {
    let mut defs = String::new();
    for (keyword, start) in [("allOf", 0), ("anyOf", 100)] {
        for n in start..start + 40 {
            let next = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, n + 1);
            defs += &format!(r#""d{n}":{{"{keyword}":[{next},{next}]}},"#);
        }
    }
    defs += r#""d40":{},"d140":{"type":"string"}"#;
    let schema = |first: usize| {
        let text = format!(
            r##"{{"type":"object","properties":{{"x":{{"$ref":"#/$defs/d{first}"}}}},"$defs":{{{defs}}}}}"##
        );
        ArgSchema::parse(&text).unwrap()
    };
    for (first, value) in [(0, json!(1)), (100, json!(1)), (100, json!(null))] {
        let errors = schema(first).check("t", json!({"x": value})).unwrap_err();
        insta::allow_duplicates! {
            insta::assert_snapshot!(errors, @"
            t was not run, because its arguments are wrong:
            - took more than 100000 steps to check: send less at once
            ");
        }
    }
    assert!(schema(30).check("t", json!({"x": 1})).is_ok());
}

#[test]
fn null_is_left_out_only_where_the_schema_forbids_it() {
    let text = r##"{
      "type": "object",
      "properties": {
        "any": {"description": "any"},
        "ref": {"$ref": "#/$defs/nullable"},
        "refs": {"$ref": "#/$defs/text"},
        "one": {"const": null},
        "choice": {"enum": ["a", null]},
        "letters": {"enum": ["a"]},
        "both": {"allOf": [{"$ref": "#/$defs/nullable"}, {"type": "string"}]},
        "never": false
      },
      "$defs": {"nullable": {"type": ["string", "null"]}, "text": {"type": "string"}}
    }"##;
    let schema = ArgSchema::parse(text).unwrap();
    let names = [
        "any", "ref", "refs", "one", "choice", "letters", "both", "never",
    ];
    let nulls = names.iter().map(|name| ((*name).to_owned(), Value::Null));
    let kept = schema.check("t", Value::Object(nulls.collect())).unwrap();
    let mut kept: Vec<&str> = kept.keys().map(String::as_str).collect();
    kept.sort_unstable();
    assert_eq!(kept, ["any", "choice", "one", "ref"]);
}

#[test]
fn numbers_are_compared_by_value() {
    let text = r#"{"type": "object", "properties": {"n": {"enum": [1]}, "m": {"const": 2}}}"#;
    let schema = ArgSchema::parse(text).unwrap();
    assert!(schema.check("t", json!({"n": 1.0, "m": 2.0})).is_ok());
    assert!(schema.check("t", json!({"n": 1.5})).is_err());
    assert!(schema.check("t", json!({"n": "1"})).is_err());
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
