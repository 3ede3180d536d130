//! Checks values against types, and completes them with the defaults of their fields.

use tine_engine::Value;
use tine_engine::value::Map;

use super::{NumberLimits, Others, Type, Types};

/// Why a value is not of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", if pointer.is_empty() { String::new() } else { format!("at `{pointer}`: ") })]
#[non_exhaustive]
pub struct Mismatch {
    /// Where in the value, as a JSON Pointer; empty for the value itself.
    pub pointer: String,
    /// What was expected there and what was found.
    pub problem: String,
}

impl Mismatch {
    fn new(problem: String) -> Self {
        Self {
            pointer: String::new(),
            problem,
        }
    }

    fn below(mut self, step: &dyn std::fmt::Display) -> Self {
        self.pointer = format!("/{step}{}", self.pointer);
        self
    }
}

impl Types {
    /// Checks a value.
    ///
    /// # Errors
    /// The first part of the value that does not fit, with its place.
    pub(crate) fn check(&self, kind: &Type, value: &Value) -> Result<(), Mismatch> {
        let wrong = || {
            Err(Mismatch::new(format!(
                "expected {kind}, found {}",
                describe(value)
            )))
        };
        match (self.resolve(kind), value) {
            (Type::Any, _) | (Type::Null, Value::Null) | (Type::Bool, Value::Bool(_)) => Ok(()),
            (Type::Optional(_), Value::Null) => Ok(()),
            (Type::Optional(inner), value) => self.check(inner, value),
            (Type::Integer(limits), Value::Number(number)) if number.is_integer() => {
                within(limits, number.as_f64())
            }
            (Type::Number(limits), Value::Number(number)) => within(limits, number.as_f64()),
            (Type::Text(limits), Value::Text(text)) => {
                let length = text.chars().count();
                if limits.min.is_some_and(|min| length < min) {
                    let min = limits.min.unwrap_or_default();
                    return Err(Mismatch::new(format!(
                        "the text has {length} characters, {min} are the least"
                    )));
                }
                if limits.max.is_some_and(|max| length > max) {
                    let max = limits.max.unwrap_or_default();
                    return Err(Mismatch::new(format!(
                        "the text has {length} characters, {max} are the most"
                    )));
                }
                match &limits.pattern {
                    Some(pattern) if !pattern.is_match(text) => Err(Mismatch::new(format!(
                        "the text does not match the pattern `{pattern}`"
                    ))),
                    _ => Ok(()),
                }
            }
            (Type::Enum(values), value) => match values.contains(value) {
                true => Ok(()),
                false => {
                    let values: Vec<_> = values.iter().map(Value::to_string).collect();
                    let all = values.join(", ");
                    Err(Mismatch::new(format!(
                        "{} is none of {all}",
                        describe(value)
                    )))
                }
            },
            (Type::List(list), Value::List(items)) => {
                if list.min.is_some_and(|min| items.len() < min)
                    || list.max.is_some_and(|max| items.len() > max)
                {
                    let bounds = match (list.min, list.max) {
                        (Some(min), Some(max)) => format!("{min} to {max}"),
                        (Some(min), None) => format!("at least {min}"),
                        (None, max) => format!("at most {}", max.unwrap_or_default()),
                    };
                    let count = items.len();
                    return Err(Mismatch::new(format!("{count} items, expected {bounds}")));
                }
                items.iter().enumerate().try_for_each(|(index, item)| {
                    self.check(&list.items, item)
                        .map_err(|wrong| wrong.below(&index))
                })
            }
            (Type::Map(values), Value::Map(entries)) => {
                entries.iter().try_for_each(|(key, value)| {
                    self.check(values, value).map_err(|wrong| wrong.below(key))
                })
            }
            (Type::Object(_), Value::Map(entries)) => self.check_object(kind, entries),
            _ => wrong(),
        }
    }

    fn check_object(&self, kind: &Type, entries: &Map) -> Result<(), Mismatch> {
        let Type::Object(object) = self.resolve(kind) else {
            return Ok(());
        };
        for (name, field) in &object.fields {
            match entries.get(name.as_str()) {
                Some(value) => {
                    self.check(&field.kind, value)
                        .map_err(|wrong| wrong.below(name))?;
                }
                None if field.required && field.default.is_none() => {
                    return Err(Mismatch::new(format!("`{name}` is missing")));
                }
                None => {}
            }
        }
        for (key, value) in entries {
            if object.fields.contains_key(&**key) {
                continue;
            }
            match &object.others {
                Others::Unsaid => {}
                Others::Forbidden => {
                    return Err(Mismatch::new(format!("{kind} has no field `{key}`")));
                }
                Others::Typed(others) => {
                    self.check(others, value)
                        .map_err(|wrong| wrong.below(key))?;
                }
            }
        }
        Ok(())
    }

    /// Fills in the defaults of fields that a value leaves out.
    #[must_use]
    pub(crate) fn complete(&self, kind: &Type, value: Value) -> Value {
        match (self.plain(kind), value) {
            (Type::List(list), Value::List(items)) => Value::List(
                items
                    .iter()
                    .map(|item| self.complete(&list.items, item.clone()))
                    .collect(),
            ),
            (Type::Object(object), Value::Map(entries)) => {
                let mut full = (*entries).clone();
                for (name, field) in &object.fields {
                    let given = full.get(name.as_str()).cloned();
                    let value = match (given, &field.default) {
                        (Some(value), _) => self.complete(&field.kind, value),
                        (None, Some(default)) => default.clone(),
                        (None, None) => continue,
                    };
                    full.insert(name.as_str().into(), value);
                }
                full.into()
            }
            (_, value) => value,
        }
    }
}

fn within(limits: &NumberLimits, number: f64) -> Result<(), Mismatch> {
    match (limits.min, limits.max) {
        (Some(min), _) if number < min => {
            Err(Mismatch::new(format!("{number} is less than {min}")))
        }
        (_, Some(max)) if number > max => {
            Err(Mismatch::new(format!("{number} is more than {max}")))
        }
        _ => Ok(()),
    }
}

/// Names a value for a message: short ones as they are.
fn describe(value: &Value) -> String {
    const MOST: usize = 40;
    let text = value.to_string();
    match text.chars().count() <= MOST {
        true => text,
        false => match value {
            Value::Text(_) => "a text".to_owned(),
            Value::List(_) => "a list".to_owned(),
            _ => "a map".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{fits, parse, read_schema};
    use serde_json::json;

    fn types() -> Types {
        let mut types = Types::default();
        types.insert(
            "Step",
            read_schema(&json!({
                "type": "object", "required": ["id"], "additionalProperties": false,
                "properties": {
                    "id": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3},
                    "depth": {"type": "integer", "minimum": 1, "maximum": 3, "default": 1},
                },
            })),
        );
        types.insert("Verdict", read_schema(&json!({"enum": ["go", "stop"]})));
        types.insert("Loose", read_schema(&json!({
            "properties": {"step": {"type": "string"}}, "additionalProperties": {"type": "integer"},
        })));
        types
    }

    #[track_caller]
    fn check(kind: &str, value: serde_json::Value, expected: &str) {
        let types = types();
        let kind = parse(kind, &types).unwrap();
        let found = types.check(&kind, &Value::from_json(value));
        assert_eq!(
            found.map_or_else(|wrong| wrong.to_string(), |()| "fits".to_owned()),
            expected
        );
    }

    #[test]
    fn values_are_checked_with_the_place_of_the_mistake() {
        check("string", json!("x"), "fits");
        check("string", json!(1), "expected string, found 1");
        check("integer", json!(1.0), "expected integer, found 1.0");
        check("number", json!(1), "fits");
        check("boolean", json!(null), "expected boolean, found null");
        check("any", json!({"a": [null]}), "fits");
        check("optional<string>", json!(null), "fits");
        check(
            "list<integer>",
            json!([1, "x"]),
            "at `/1`: expected integer, found \"x\"",
        );
        check(
            "map<list<string>>",
            json!({"a": ["x"], "b": [2]}),
            "at `/b/0`: expected string, found 2",
        );
        check("Step", json!({"id": "ab"}), "fits");
        check("Step", json!({}), "`id` is missing");
        check(
            "Step",
            json!({"id": "AB"}),
            "at `/id`: the text does not match the pattern `^[a-z]+$`",
        );
        check(
            "Step",
            json!({"id": "abcd"}),
            "at `/id`: the text has 4 characters, 3 are the most",
        );
        check(
            "Step",
            json!({"id": "a", "depth": 9}),
            "at `/depth`: 9 is more than 3",
        );
        check(
            "Step",
            json!({"id": "a", "deep": 1}),
            "Step has no field `deep`",
        );
        check(
            "list<Step>",
            json!([{"id": "a"}, {"id": 1}]),
            "at `/1/id`: expected string, found 1",
        );
        check("Verdict", json!("go"), "fits");
        check(
            "Verdict",
            json!("halt"),
            "\"halt\" is none of \"go\", \"stop\"",
        );
        check("Loose", json!({"step": "a", "n": 1}), "fits");
        check(
            "Loose",
            json!({"n": "x"}),
            "at `/n`: expected integer, found \"x\"",
        );
        check(
            "string",
            json!([
                [1, 2, 3],
                "a long text that does not fit into a line of a message"
            ]),
            "expected string, found a list",
        );
    }

    #[test]
    fn fields_that_are_left_out_are_filled_in() {
        let types = types();
        let kind = parse("list<Step>", &types).unwrap();
        let given = Value::from_json(json!([{"id": "a"}, {"id": "b", "depth": 2}]));
        let full = types.complete(&kind, given).to_json();
        assert_eq!(
            full,
            json!([{"id": "a", "depth": 1}, {"id": "b", "depth": 2}])
        );
    }

    #[test]
    fn a_type_fits_where_all_its_values_may_go() {
        let types = types();
        let fit = |from: &str, to: &str| {
            fits(
                &types,
                &parse(from, &types).unwrap(),
                &parse(to, &types).unwrap(),
            )
        };
        for (from, to) in [
            ("integer", "number"),
            ("any", "Step"),
            ("Step", "any"),
            ("Verdict", "string"),
            ("string", "Verdict"),
            ("optional<Step>", "Step"),
            ("Step", "optional<Step>"),
            ("list<integer>", "list<number>"),
            ("Step", "map<any>"),
            ("map<any>", "Step"),
        ] {
            assert!(fit(from, to), "{from} -> {to}");
        }
        for (from, to) in [
            ("number", "integer"),
            ("string", "integer"),
            ("list<string>", "string"),
            ("string", "list<string>"),
            ("Verdict", "integer"),
            ("boolean", "Verdict"),
            ("list<string>", "list<integer>"),
            ("message", "Step"),
            ("Step", "map<integer>"),
        ] {
            assert!(!fit(from, to), "{from} -> {to}");
        }
    }
}
