//! Types as JSON Schema, for those who do not read graph files.

use indexmap::IndexMap;
use tine_engine::Value;

use super::{Field, Others, Type, Types};

impl Type {
    /// Writes the type as JSON Schema, for a model provider or a client.
    ///
    /// Named types are collected under `$defs`.
    pub(crate) fn to_schema(&self, types: &Types) -> serde_json::Value {
        let mut used = IndexMap::new();
        let mut schema = write(self, types, &mut used);
        if let (Some(object), false) = (schema.as_object_mut(), used.is_empty()) {
            object.insert("$defs".to_owned(), used.into_iter().collect());
        }
        schema
    }
}

fn write(
    kind: &Type,
    types: &Types,
    used: &mut IndexMap<String, serde_json::Value>,
) -> serde_json::Value {
    use serde_json::{Map, json};
    let mut out = Map::new();
    let mut put = |key: &str, value: Option<serde_json::Value>| {
        if let Some(value) = value {
            out.insert(key.to_owned(), value);
        }
    };
    match kind {
        Type::Any | Type::Never => {}
        Type::Null => put("type", Some("null".into())),
        Type::Bool => put("type", Some("boolean".into())),
        Type::Integer(limits) | Type::Number(limits) => {
            let whole = matches!(kind, Type::Integer(_));
            let bound = |value: Option<f64>| {
                value.map(|value| {
                    if whole {
                        json!(value as i64)
                    } else {
                        json!(value)
                    }
                })
            };
            put(
                "type",
                Some(if whole { "integer" } else { "number" }.into()),
            );
            put("minimum", bound(limits.min));
            put("maximum", bound(limits.max));
        }
        Type::Text(limits) => {
            put("type", Some("string".into()));
            put("minLength", limits.min.map(Into::into));
            put("maxLength", limits.max.map(Into::into));
            put(
                "pattern",
                limits
                    .pattern
                    .as_ref()
                    .map(|pattern| pattern.as_str().into()),
            );
        }
        Type::Enum(values) => put("enum", Some(values.iter().map(Value::to_json).collect())),
        Type::List(list) => {
            put("type", Some("array".into()));
            put("items", Some(write(&list.items, types, used)));
            put("minItems", list.min.map(Into::into));
            put("maxItems", list.max.map(Into::into));
        }
        Type::Map(values) => {
            put("type", Some("object".into()));
            put("additionalProperties", Some(write(values, types, used)));
        }
        Type::Object(object) => {
            let properties: Map<_, _> = object
                .fields
                .iter()
                .map(|(name, field)| (name.clone(), write_field(field, types, used)))
                .collect();
            let required: Vec<_> = object
                .fields
                .iter()
                .filter(|(_, f)| f.required)
                .map(|(name, _)| name)
                .collect();
            put("type", Some("object".into()));
            put("properties", Some(properties.into()));
            put("required", (!required.is_empty()).then(|| json!(required)));
            put(
                "additionalProperties",
                match &object.others {
                    Others::Unsaid => None,
                    Others::Forbidden => Some(false.into()),
                    Others::Typed(values) => Some(write(values, types, used)),
                },
            );
        }
        Type::Optional(inner) => {
            return json!({ "anyOf": [write(inner, types, used), { "type": "null" }] });
        }
        Type::Named(name) => {
            if !used.contains_key(&**name) {
                used.insert(name.to_string(), serde_json::Value::Null);
                let schema = write(types.resolve(kind), types, used);
                used.insert(name.to_string(), schema);
            }
            return json!({ "$ref": format!("#/$defs/{name}") });
        }
    }
    out.into()
}

fn write_field(
    field: &Field,
    types: &Types,
    used: &mut IndexMap<String, serde_json::Value>,
) -> serde_json::Value {
    let mut schema = write(&field.kind, types, used);
    if let Some(object) = schema.as_object_mut() {
        if let Some(default) = &field.default {
            object.insert("default".to_owned(), default.to_json());
        }
        if let Some(description) = &field.description {
            object.insert("description".to_owned(), description.as_str().into());
        }
    }
    schema
}
