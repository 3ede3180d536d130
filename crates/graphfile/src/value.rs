//! Values of a file: literals whose texts may hold `${...}`.

use std::sync::Arc;

use serde_yaml::Value as Yaml;
use tine_engine::Value;
use tine_engine::value::Map;

use crate::expr::{ExprError, Expression, Scene};

/// A value that may have to be computed.
#[derive(Clone, Debug)]
pub enum ValueExpr {
    /// Always the same.
    Literal(Value),
    /// One expression; its value keeps its type.
    Expression(Expression),
    /// Text with expressions in it.
    Text(Arc<[Part]>),
    /// A list with something computed in it.
    List(Vec<Self>),
    /// A map with something computed in it.
    Map(Vec<(Arc<str>, Self)>),
}

/// A piece of a text.
#[derive(Clone, Debug)]
pub enum Part {
    /// As it is.
    Text(Arc<str>),
    /// The value, written out.
    Expression(Expression),
}

impl ValueExpr {
    /// Evaluates the value.
    ///
    /// # Errors
    /// The first expression that has no value.
    pub fn eval(&self, scene: &Scene<'_>) -> Result<Value, ExprError> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Expression(expression) => {
                // An optional channel without a value is passed on as null.
                if let Some(channel) = expression.channel()
                    && scene.channels().is_optional(channel)
                {
                    return Ok(scene.channel(channel).unwrap_or(Value::Null));
                }
                expression.eval(scene)
            }
            Self::Text(parts) => {
                let mut text = String::new();
                for part in parts.iter() {
                    match part {
                        Part::Text(part) => text.push_str(part),
                        Part::Expression(expression) => {
                            write_out(&mut text, expression, &expression.eval(scene)?)?;
                        }
                    }
                }
                Ok(text.into())
            }
            Self::List(items) => {
                let items: Result<_, _> = items.iter().map(|item| item.eval(scene)).collect();
                items.map(Value::List)
            }
            Self::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    map.insert(key.clone(), value.eval(scene)?);
                }
                Ok(map.into())
            }
        }
    }

    /// Tells whether nothing has to be computed.
    pub fn is_literal(&self) -> bool {
        matches!(self, Self::Literal(_))
    }
}

fn write_out(text: &mut String, expression: &Expression, value: &Value) -> Result<(), ExprError> {
    match value {
        Value::Text(value) => text.push_str(value),
        Value::Null => {
            return Err(ExprError {
                expression: expression.text().to_owned(),
                problem: "null cannot stand inside a text".to_owned(),
            });
        }
        value => text.push_str(&value.to_canonical()),
    }
    Ok(())
}

/// A piece of a text that was cut at `${` and `}`; places are bytes of the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut<'t> {
    Text(&'t str),
    Code {
        text: &'t str,
        start: usize,
    },
    /// A `${` without its `}`.
    Open {
        start: usize,
    },
}

/// Cuts a text into literal parts and expressions.
pub(crate) fn cut(text: &str) -> Vec<Cut<'_>> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("${") {
        let start = at + found;
        if start > at {
            parts.push(Cut::Text(&text[at..start]));
        }
        let Some(length) = code_length(&text[start + 2..]) else {
            parts.push(Cut::Open { start });
            return parts;
        };
        parts.push(Cut::Code {
            text: &text[start + 2..start + 2 + length],
            start: start + 2,
        });
        at = start + 2 + length + 1;
    }
    if at < text.len() || parts.is_empty() {
        parts.push(Cut::Text(&text[at..]));
    }
    parts
}

/// Returns the length of an expression up to its closing brace, past braces and texts inside it.
fn code_length(code: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in code.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') if depth == 0 => return Some(at),
            (None, '}') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Converts plain data of a file; keys that are no text are written out.
pub(crate) fn from_yaml(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(value) => (*value).into(),
        Yaml::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(value), _, _) => value.into(),
            (_, Some(value), _) => value.into(),
            (_, _, float) => float.and_then(Value::float).unwrap_or_default(),
        },
        Yaml::String(text) => text.as_str().into(),
        Yaml::Sequence(items) => Value::List(items.iter().map(from_yaml).collect()),
        Yaml::Mapping(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| (key_text(key).into(), from_yaml(value)));
            Value::from(entries.collect::<Map>())
        }
        Yaml::Tagged(tagged) => from_yaml(&tagged.value),
    }
}

fn key_text(key: &Yaml) -> String {
    match key {
        Yaml::String(text) => text.clone(),
        other => from_yaml(other).to_canonical(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_expressions() {
        let code = |text, start| Cut::Code { text, start };
        assert_eq!(cut("plain"), [Cut::Text("plain")]);
        assert_eq!(cut(""), [Cut::Text("")]);
        assert_eq!(cut("${state.a}"), [code("state.a", 2)]);
        assert_eq!(
            cut("a ${b} c"),
            [Cut::Text("a "), code("b", 4), Cut::Text(" c")]
        );
        assert_eq!(cut("${ {'a': '}'} }"), [code(" {'a': '}'} ", 2)]);
        assert_eq!(
            cut("${'it\\'s }'}!"),
            [code("'it\\'s }'", 2), Cut::Text("!")]
        );
        assert_eq!(cut("a ${b"), [Cut::Text("a "), Cut::Open { start: 2 }]);
        assert_eq!(cut("$ {b} $5"), [Cut::Text("$ {b} $5")]);
    }
}
