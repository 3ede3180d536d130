//! What clients and nodes write as a message, brought into the form the state keeps.

use super::{InvalidToolCall, Message, Role};
use crate::value::{List, Map, Value, ValueError, from_value, to_value};
use std::sync::Arc;

/// Why something is not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// Neither a text nor a map.
    #[error("a message is a text or a map with `type` and `content`, not {0}")]
    Kind(&'static str),
    /// No `type` and no `role`.
    #[error(
        "a message needs a `type` (human, ai, tool, system) or a `role` (user, assistant, tool, system)"
    )]
    NoRole,
    /// A speaker nobody knows.
    #[error(
        "`{0}` is no type or role of a message; known are human, ai, tool, system, user, assistant"
    )]
    UnknownRole(Arc<str>),
    /// An id of another type.
    #[error("the `id` of a message is a text, not {0}; without one it gets a new id")]
    Id(&'static str),
    /// Content of another type.
    #[error("the `content` of a message is a text or a list of blocks, not {0}")]
    Content(&'static str),
    /// Another field of another type.
    #[error("the field `{field}` of a message does not fit: {error}")]
    Field {
        /// The field.
        field: Arc<str>,
        /// What is wrong with it.
        error: ValueError,
    },
}

/// Brings what clients and nodes write as a message into the form the state keeps: `type` instead of `role`, a text
/// as a human message, no content as an empty text, an empty id as none, calls of tools in OpenAI's form as
/// [`ToolCall`](super::ToolCall)s.
///
/// # Errors
/// If it is not a message: [`Message::from_value`] reads all that this gives.
pub fn normalise(value: &Value) -> Result<Value, MessageError> {
    let message = shape(value)?;
    decode(&message)?;
    Ok(message)
}

/// [`normalise`] without a look at fields whose form never changes.
pub(crate) fn shape(value: &Value) -> Result<Value, MessageError> {
    let entries = match value {
        Value::Text(text) => {
            return Ok(Value::from_pairs([
                ("type", "human".into()),
                ("content", Value::Text(text.clone())),
            ]));
        }
        Value::Map(entries) => entries,
        other => return Err(MessageError::Kind(other.kind())),
    };
    let name = entries
        .get("type")
        .or_else(|| entries.get("role"))
        .and_then(Value::as_str);
    let name = name.ok_or(MessageError::NoRole)?;
    let role = Role::parse(name).ok_or_else(|| MessageError::UnknownRole(name.into()))?;
    let has_id = match entries.get("id") {
        None => true,
        Some(Value::Text(id)) => !id.is_empty(),
        Some(Value::Null) => false,
        Some(other) => return Err(MessageError::Id(other.kind())),
    };
    let has_content = match entries.get("content") {
        Some(Value::Text(_) | Value::List(_)) => true,
        None | Some(Value::Null) => false,
        Some(other) => return Err(MessageError::Content(other.kind())),
    };
    let foreign_calls = match entries.get("tool_calls") {
        Some(Value::List(calls)) => calls.iter().any(|call| function(call).is_some()),
        _ => false,
    };
    let unset = |field: &str| entries.get(field).is_some_and(Value::is_null);
    let no_calls = CALLS.iter().any(|field| unset(field));
    let named = name == role.name() && !entries.contains_key("role");
    if named && has_id && has_content && !foreign_calls && !no_calls {
        return Ok(value.clone());
    }
    let mut normal = Map::clone(entries);
    normal.remove("role");
    normal.insert("type".into(), role.name().into());
    if !has_id {
        normal.remove("id");
    }
    if !has_content {
        normal.insert("content".into(), "".into());
    }
    if no_calls {
        normal.retain(|key, value| !(value.is_null() && CALLS.contains(&&**key)));
    }
    if foreign_calls {
        convert_calls(&mut normal)?;
    }
    Ok(normal.into())
}

/// The fields that hold lists of calls; some clients write null for an empty one.
const CALLS: [&str; 2] = ["tool_calls", "invalid_tool_calls"];

/// The function of a call in OpenAI's form: `{id, type: function, function: {name, arguments}}`.
fn function(call: &Value) -> Option<&Map> {
    call.get("function")?.as_map()
}

/// Converts the calls in OpenAI's form. Those whose arguments can not be read join the invalid ones.
fn convert_calls(message: &mut Map) -> Result<(), MessageError> {
    let Some(Value::List(calls)) = message.remove("tool_calls") else {
        return Ok(());
    };
    let mut valid = List::new();
    let mut invalid = Vec::new();
    for call in calls.iter() {
        match function(call) {
            None => valid.push(call.clone()),
            Some(function) => match arguments(function.get("arguments")) {
                Ok(args) => valid.push(converted(call, function, args)),
                Err(error) => invalid.push(unreadable(call, function, error)),
            },
        }
    }
    message.insert("tool_calls".into(), valid.into());
    if invalid.is_empty() {
        return Ok(());
    }
    let mut all = match message.remove("invalid_tool_calls") {
        None => List::new(),
        Some(Value::List(known)) => known,
        Some(other) => {
            return Err(MessageError::Field {
                field: "invalid_tool_calls".into(),
                error: serde::de::Error::custom(format_args!("a list, not {}", other.kind())),
            });
        }
    };
    for call in &invalid {
        all.push(to_value(call).map_err(|error| MessageError::Field {
            field: "tool_calls".into(),
            error,
        })?);
    }
    message.insert("invalid_tool_calls".into(), all.into());
    Ok(())
}

/// The arguments of a call: a map, mostly written as JSON; nothing stands for no arguments.
fn arguments(given: Option<&Value>) -> Result<Value, String> {
    let not_a_map = |other: &Value| {
        Err(format!(
            "the arguments are {}, and must be a JSON object",
            other.kind()
        ))
    };
    match given {
        None | Some(Value::Null) => Ok(Value::map()),
        Some(Value::Text(text)) if text.trim().is_empty() => Ok(Value::map()),
        Some(Value::Text(text)) => match serde_json::from_str(text) {
            Ok(args @ Value::Map(_)) => Ok(args),
            Ok(other) => not_a_map(&other),
            Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
        },
        Some(args @ Value::Map(_)) => Ok(args.clone()),
        Some(other) => not_a_map(other),
    }
}

fn converted(call: &Value, function: &Map, args: Value) -> Value {
    let mut converted = call.as_map().cloned().unwrap_or_default();
    converted.remove("type");
    converted.remove("function");
    if let Some(name) = function.get("name") {
        converted.insert("name".into(), name.clone());
    }
    converted.insert("args".into(), args);
    converted.into()
}

fn unreadable(call: &Value, function: &Map, error: String) -> InvalidToolCall {
    let text = |value: Option<&Value>| match value {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let args = function.get("arguments").map(|given| match given {
        Value::Text(text) => text.clone(),
        other => other.to_canonical().into(),
    });
    InvalidToolCall {
        name: text(function.get("name")),
        args,
        id: text(call.get("id")),
        error: Some(error.into()),
    }
}

/// Decodes a message in the form the state keeps.
pub(super) fn decode(message: &Value) -> Result<Message, MessageError> {
    from_value(message).map_err(|error| {
        // Unknown fields are kept, which costs errors their place: the field that is wrong also alone is it.
        let alone = |key: &Arc<str>, value: &Value| {
            from_value::<Message>(&Value::from_pairs([
                (Arc::from("type"), "ai".into()),
                (key.clone(), value.clone()),
            ]))
        };
        let fields = message.as_map().into_iter().flatten();
        let wrong = fields.into_iter().find_map(|(key, value)| {
            let error = alone(key, value).err()?;
            Some((key.clone(), error))
        });
        let (field, error) = wrong.unwrap_or_else(|| ("type".into(), error));
        MessageError::Field { field, error }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(input: serde_json::Value, expected: Result<serde_json::Value, &str>) {
        let found = normalise(&input.into())
            .map(|value| value.to_json())
            .map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn clients_may_write_roles_or_plain_text() {
        check(json!("hi"), Ok(json!({"type": "human", "content": "hi"})));
        check(
            json!({"role": "user", "content": "hi"}),
            Ok(json!({"type": "human", "content": "hi"})),
        );
        check(
            json!({"role": "assistant", "content": "ok", "id": "m"}),
            Ok(json!({"type": "ai", "content": "ok", "id": "m"})),
        );
        check(
            json!({"type": "ai", "tool_calls": []}),
            Ok(json!({"type": "ai", "content": "", "tool_calls": []})),
        );
        check(
            json!(7),
            Err("a message is a text or a map with `type` and `content`, not a number"),
        );
        check(
            json!({"role": "robot", "content": ""}),
            Err(
                "`robot` is no type or role of a message; known are human, ai, tool, system, user, assistant",
            ),
        );
    }

    #[test]
    fn an_empty_id_is_none_and_no_content_is_an_empty_text() {
        check(
            json!({"type": "human", "content": "hi", "id": ""}),
            Ok(json!({"type": "human", "content": "hi"})),
        );
        check(
            json!({"role": "assistant", "content": null, "id": null, "tool_calls": null}),
            Ok(json!({"type": "ai", "content": ""})),
        );
    }

    #[test]
    fn calls_in_the_form_of_openai_are_converted() {
        let call = |arguments: serde_json::Value| {
            json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": arguments}}]})
        };
        let valid = |args: serde_json::Value| {
            Ok(json!({"type": "ai", "content": "",
                "tool_calls": [{"name": "ls", "args": args, "id": "c1"}]}))
        };
        let invalid = |args: &str, error: &str| {
            Ok(
                json!({"type": "ai", "content": "", "tool_calls": [], "invalid_tool_calls": [
                {"name": "ls", "args": args, "id": "c1", "error": error}]}),
            )
        };
        check(
            call(json!("{\"path\": \"/\"}")),
            valid(json!({"path": "/"})),
        );
        check(call(json!({"path": "/"})), valid(json!({"path": "/"})));
        check(call(json!("")), valid(json!({})));
        check(
            call(json!("[1]")),
            invalid("[1]", "the arguments are a list, and must be a JSON object"),
        );
        check(
            call(json!("{\"path")),
            invalid(
                "{\"path",
                "the arguments are not valid JSON: EOF while parsing a string at line 1 column 6",
            ),
        );
        let own = json!({"type": "ai", "content": "",
            "tool_calls": [{"name": "ls", "args": {}, "id": "c1", "type": "tool_call"}]});
        check(own.clone(), Ok(own));
    }

    #[test]
    fn a_field_of_another_type_is_refused_by_name() {
        let with = |key: &str, value: serde_json::Value| {
            let mut message = json!({"type": "ai", "content": ""});
            message[key] = value;
            message
        };
        check(
            with("id", json!(5)),
            Err("the `id` of a message is a text, not a number; without one it gets a new id"),
        );
        check(
            with("content", json!(5)),
            Err("the `content` of a message is a text or a list of blocks, not a number"),
        );
        check(
            with("tool_calls", json!("x")),
            Err(
                "the field `tool_calls` of a message does not fit: invalid type: string \"x\", expected a sequence",
            ),
        );
        check(
            with("tool_calls", json!([{"name": "ls", "args": {}}])),
            Err("the field `tool_calls` of a message does not fit: missing field `id`"),
        );
        check(
            with("status", json!("fine")),
            Err(
                "the field `status` of a message does not fit: unknown variant `fine`, expected `success` or `error`",
            ),
        );
    }

    #[test]
    fn a_message_keeps_fields_nobody_knows_and_leaves_unset_ones_out() {
        let json = json!({"type": "ai", "content": [{"type": "text", "text": "a"}, {"type": "reasoning", "sig": "x"}],
            "id": "m1", "tool_calls": [{"name": "t", "args": {"q": 1}, "id": "c1"}], "example": false});
        let message = Message::from_value(&json.clone().into()).unwrap();
        assert_eq!(message.content.text(), "a");
        assert_eq!(message.to_value().unwrap().to_json(), json);
    }
}
