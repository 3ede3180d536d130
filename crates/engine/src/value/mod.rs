//! The engine's own JSON value: shared and immutable.
//!
//! State is made of these. Cloning one is a reference count, whatever its size: texts and maps stand behind an
//! [`Arc`], lists are persistent vectors. `serde_json` stands only at the edges ([`Value::from_json`],
//! [`Value::to_json`]); typed Rust data goes in and out through serde without passing by it ([`to_value`],
//! [`from_value`]).

mod de;
mod diff;
mod list;
mod number;
mod ser;

pub use de::from_value;
pub use diff::{Change, ChangeKind, Part, diff};
pub use list::{Iter, List};
pub use number::Number;
pub use ser::{ValueError, to_value};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A JSON object: keys in code point order, so equal maps print alike.
pub type Map = BTreeMap<Arc<str>, Value>;

/// One JSON value of the state.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer or a finite float.
    Number(Number),
    /// A text.
    Text(Arc<str>),
    /// A list; appending shares everything already there.
    List(List),
    /// An object.
    Map(Arc<Map>),
}

impl Value {
    /// An empty list.
    #[must_use]
    pub fn list() -> Self {
        Self::List(List::new())
    }

    /// An empty map.
    #[must_use]
    pub fn map() -> Self {
        Self::Map(Arc::new(Map::new()))
    }

    /// A float; `None` if it is not finite, for JSON has no such number.
    #[must_use]
    pub fn float(value: f64) -> Option<Self> {
        Number::from_f64(value).map(Self::Number)
    }

    /// Makes a map of pairs; a later key replaces an earlier one.
    pub fn from_pairs<K: Into<Arc<str>>>(pairs: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(Arc::new(
            pairs
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        ))
    }

    /// Converts from `serde_json`.
    #[must_use]
    pub fn from_json(json: serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(value),
            serde_json::Value::Number(number) => {
                Number::from_json(&number).map_or(Self::Null, Self::Number)
            }
            serde_json::Value::String(text) => Self::Text(text.into()),
            serde_json::Value::Array(items) => {
                Self::List(items.into_iter().map(Self::from_json).collect())
            }
            serde_json::Value::Object(entries) => Self::from_pairs(
                entries
                    .into_iter()
                    .map(|(key, value)| (key, Self::from_json(value))),
            ),
        }
    }

    /// Converts to `serde_json`.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => serde_json::Value::Bool(*value),
            Self::Number(number) => number.to_json(),
            Self::Text(text) => serde_json::Value::String(text.to_string()),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(entries) => entries
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_json()))
                .collect(),
        }
    }

    /// What kind of value this is, in words for messages: `a list`, `null`, ...
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The text, if this is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The boolean, if this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self {
            Some(*value)
        } else {
            None
        }
    }

    /// The integer, if this is one that fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        if let Self::Number(number) = self {
            number.as_i64()
        } else {
            None
        }
    }

    /// The number as a float, if this is one.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        if let Self::Number(number) = self {
            Some(number.as_f64())
        } else {
            None
        }
    }

    /// The list, if this is one.
    #[must_use]
    pub fn as_list(&self) -> Option<&List> {
        if let Self::List(items) = self {
            Some(items)
        } else {
            None
        }
    }

    /// The map, if this is one.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        if let Self::Map(entries) = self {
            Some(entries)
        } else {
            None
        }
    }

    /// The member `key` of a map, if this is a map and has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_map()?.get(key)
    }

    /// Prints canonical JSON: no spaces, keys sorted; equal values print equal bytes.
    #[must_use]
    pub fn to_canonical(&self) -> String {
        serde_json::to_string(self).expect("a value has text keys and finite numbers only")
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.to_canonical())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.to_canonical())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Number(value.into())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Number(Number::from(value))
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Number(value.into())
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        Self::Number(number)
    }
}

impl TryFrom<f64> for Value {
    type Error = ValueError;

    /// # Errors
    /// If the float is not finite, for JSON has no such number.
    fn try_from(value: f64) -> Result<Self, ValueError> {
        Number::try_from(value).map(Self::Number)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Number(Number::from(value as u64))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Arc<str>> for Value {
    fn from(text: Arc<str>) -> Self {
        Self::Text(text)
    }
}

impl From<List> for Value {
    fn from(items: List) -> Self {
        Self::List(items)
    }
}

impl From<Map> for Value {
    fn from(entries: Map) -> Self {
        Self::Map(Arc::new(entries))
    }
}

impl<T: Into<Self>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Self {
        Self::from_json(json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    #[test]
    fn json_goes_through_unchanged() {
        for json in [
            json!(null),
            json!(-3),
            json!(u64::MAX),
            json!(1.5),
            json!("文"),
            json!([1, [2, {"k": null}]]),
            json!({"b": 1, "a": {"c": [true, false]}}),
        ] {
            assert_eq!(Value::from_json(json.clone()).to_json(), json);
            let text = json.to_string();
            let parsed: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(parsed, Value::from_json(json));
        }
    }

    #[test]
    fn canonical_text_sorts_keys() {
        let value = Value::from_json(json!({"b": 1, "a": [1.0, "x"]}));
        assert_eq!(value.to_canonical(), r#"{"a":[1.0,"x"],"b":1}"#);
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Dot,
        Circle(f64),
        Rect { w: u8, h: Option<u8> },
        Pair(i8, String),
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Plan {
        title: String,
        steps: Vec<Shape>,
        notes: BTreeMap<u32, Option<bool>>,
        unit: (),
    }

    #[test]
    fn typed_data_goes_in_and_out_as_serde_json_would_have_it() {
        let plan = Plan {
            title: "t".into(),
            steps: vec![
                Shape::Dot,
                Shape::Circle(0.5),
                Shape::Rect { w: 1, h: None },
                Shape::Pair(-1, "p".into()),
            ],
            notes: [(7, Some(true)), (8, None)].into(),
            unit: (),
        };
        let value = to_value(&plan).unwrap();
        assert_eq!(value.to_json(), serde_json::to_value(&plan).unwrap());
        assert_eq!(from_value::<Plan>(&value).unwrap(), plan);
    }

    #[test]
    fn a_wrong_type_is_an_error_with_its_place() {
        let value = Value::from_json(json!({"title": "t", "steps": 3, "notes": {}, "unit": null}));
        let error = from_value::<Plan>(&value).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid type: integer `3`, expected a sequence"
        );
        assert!(to_value(&f64::NAN).is_err());
    }
}
