//! The schema of a tool's arguments as a list that people read.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// One argument of a tool, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What it takes, in a few words.
    pub takes: String,
    /// Whether a call must have it.
    pub needed: bool,
    /// What is taken where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// What the model is told about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What is read of a schema.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Schema {
    properties: Properties,
    required: Vec<String>,
}

/// Properties in the order of the source, which is the one the model sees.
#[derive(Default)]
struct Properties(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Properties;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a mapping of names to schemas")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Properties, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Properties(entries))
            }
        }
        from.deserialize_map(Entries)
    }
}

/// Lists the arguments of a schema, in the order of its text.
pub(super) fn list(schema: &str) -> Vec<Argument> {
    // Where a server's schema is too unusual to be listed, it is still printed as it is by `--json`.
    let schema: Schema = serde_json::from_str(schema).unwrap_or_default();
    let arguments = schema.properties.0.into_iter().map(|(name, schema_of)| {
        let text = schema_of.get("description").and_then(Value::as_str);
        Argument {
            takes: takes(&schema_of),
            needed: schema.required.contains(&name),
            default: schema_of.get("default").cloned(),
            description: text.map(str::to_owned),
            name,
        }
    });
    arguments.collect()
}

/// Says what a schema takes.
fn takes(schema: &Value) -> String {
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return values.join(" | ");
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(forms) = schema.get(key).and_then(Value::as_array) {
            return either(forms.iter().map(takes));
        }
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return target.rsplit('/').next().unwrap_or(target).to_owned();
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            either(kinds.iter().filter_map(Value::as_str).map(str::to_owned))
        }
        _ => return "anything".to_owned(),
    };
    let kind = match (kind.as_str(), schema.get("items")) {
        ("array", Some(items)) => format!("list of {}", takes(items)),
        ("array", None) => "list".to_owned(),
        _ => kind,
    };
    match bounds(schema) {
        Some(bounds) => format!("{kind} {bounds}"),
        None => kind,
    }
}

fn bounds(schema: &Value) -> Option<String> {
    const PAIRS: [(&str, &str, &str); 3] = [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ];
    let bounds = PAIRS.iter().filter_map(|(least, most, unit)| {
        match (schema.get(*least), schema.get(*most)) {
            (Some(least), Some(most)) => Some(format!("({least} to {most}{unit})")),
            (Some(least), None) => Some(format!("(at least {least}{unit})")),
            (None, Some(most)) => Some(format!("(at most {most}{unit})")),
            (None, None) => None,
        }
    });
    let bounds: Vec<String> = bounds.collect();
    (!bounds.is_empty()).then(|| bounds.join(" "))
}

fn either(forms: impl Iterator<Item = String>) -> String {
    forms.collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn check(schema: &str, expected: &str) {
        let schema = format!(r#"{{"type": "object", "properties": {{"a": {schema}}}}}"#);
        assert_eq!(list(&schema)[0].takes, expected, "{schema}");
    }

    #[test]
    fn schemas_are_said_in_words() {
        check(r#"{"type": "string"}"#, "string");
        check(
            r#"{"type": "string", "minLength": 1}"#,
            "string (at least 1 characters)",
        );
        check(
            r#"{"type": "integer", "minimum": 1, "maximum": 50}"#,
            "integer (1 to 50)",
        );
        check(r#"{"type": ["string", "null"]}"#, "string or null");
        check(r#"{"enum": ["a", 1]}"#, r#""a" | 1"#);
        check(r#"{"const": true}"#, "true");
        check(
            r#"{"type": "array", "items": {"type": "number"}}"#,
            "list of number",
        );
        check(r#"{"type": "array"}"#, "list");
        check(
            r##"{"anyOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}]}"##,
            "Item or null",
        );
        check("{}", "anything");
        check("true", "anything");
    }

    #[test]
    fn arguments_stand_in_the_order_of_the_text() {
        let arguments = list(
            r#"{"properties": {"z": {"default": 1}, "a": {"description": "first"}}, "required": ["a"]}"#,
        );
        let names: Vec<_> = arguments
            .iter()
            .map(|one| (&*one.name, one.needed))
            .collect();
        assert_eq!(names, [("z", false), ("a", true)]);
        assert_eq!(arguments[0].default, Some(1.into()));
        assert!(list(r#"{"properties": 3}"#).is_empty());
    }
}
