//! The JSON Schema of a tool's arguments, and the check against it.

mod check;
mod list;
mod problem;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

pub use list::Argument;
pub(crate) use problem::describe;
pub use problem::{ArgumentErrors, ArgumentProblem};

/// The arguments of one call, checked against the tool's schema.
pub type Args = Map<String, Value>;

/// The JSON Schema of a tool's arguments.
///
/// Its text is kept as the source wrote it, because key order is part of what
/// a model sees (and of what providers cache). Checked are `type`, `enum`,
/// `const`, `properties`, `required`, `additionalProperties`, `items`, the
/// numeric, length and count bounds, `anyOf`, `oneOf`, `allOf` and local
/// `$ref`s; other keywords are left to the tool.
#[derive(Clone)]
pub struct ArgSchema {
    text: Arc<str>,
    value: Arc<Value>,
}

/// Says why a text is no schema of arguments.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The text is not JSON.
    #[error("the argument schema is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The schema does not describe an object.
    #[error("the argument schema must be an object schema: it needs `type: object`")]
    NotObject,
}

impl ArgSchema {
    /// Reads a schema from JSON text.
    ///
    /// # Errors
    /// When the text is not JSON or does not describe an object.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let value: Value = serde_json::from_str(text)?;
        let object = match value.get("type") {
            Some(kind) => kind == "object",
            None => value.is_object(),
        };
        if !object {
            return Err(SchemaError::NotObject);
        }
        Ok(Self {
            text: Arc::from(text.trim()),
            value: Arc::new(value),
        })
    }

    /// Takes a schema written in this program.
    pub(crate) fn literal(text: &'static str) -> Self {
        Self::parse(text).expect("a schema written in this program is an object schema")
    }

    /// Gives the JSON text as the source wrote it, keys in the source's order.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Gives the schema as a JSON value; the order of keys is not kept.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Lists the arguments for people, in the order in which the model is told them.
    #[must_use]
    pub fn arguments(&self) -> Vec<Argument> {
        list::list(&self.text)
    }

    /// Checks the arguments of a call of `tool` and makes them plain.
    ///
    /// A `null` for an argument that is optional and not nullable is taken as
    /// left out, and `3.0` for an integer becomes `3`. Nothing else is
    /// converted: a string is never read as a number.
    ///
    /// # Errors
    /// With every problem found, in a text the model can act on.
    pub fn check(&self, tool: &str, args: Value) -> Result<Args, ArgumentErrors> {
        check::check(&self.value, args).map_err(|problems| ArgumentErrors {
            tool: tool.to_owned(),
            problems,
        })
    }
}

impl fmt::Debug for ArgSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArgSchema").field(&self.text).finish()
    }
}

impl PartialEq for ArgSchema {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// Reads checked arguments into the struct of a tool.
pub(crate) fn typed<T: serde::de::DeserializeOwned>(args: Args) -> Result<T, crate::ToolError> {
    serde_json::from_value(Value::Object(args)).map_err(|error| crate::ToolError::Failed {
        message: format!("the arguments do not fit: {error}"),
        source: Some(Box::new(error)),
    })
}
