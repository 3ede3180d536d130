//! What the templates of a script see of a request.

use crate::request::ModelRequest;
use minijinja::value::{Serde, Value};
use std::collections::BTreeMap;
use tine_engine::Message;
use tine_engine::message::{Role, ToolStatus};

/// The names that every script has.
pub(super) const GIVEN: [&str; 5] = ["messages", "tools", "user_text", "results", "errors"];

/// The values of these names for one request.
///
/// `messages` costs as much as the conversation is long, so it is made only for scripts that use it.
pub(super) fn given(request: &ModelRequest, with_messages: bool) -> BTreeMap<String, Value> {
    let start = turn_start(&request.messages);
    let user_text = start
        .and_then(|at| request.messages.get(at))
        .map(Message::words)
        .unwrap_or_default();
    let turn = request
        .messages
        .get(start.unwrap_or(0)..)
        .unwrap_or_default();
    let (results, errors) = results(turn);
    let mut names = BTreeMap::from([
        ("user_text".to_owned(), Value::from(user_text)),
        ("tools".to_owned(), Value::from(Serde(&request.tools))),
        ("results".to_owned(), look_up(results)),
        ("errors".to_owned(), look_up(errors)),
    ]);
    if with_messages {
        names.insert("messages".to_owned(), Value::from(Serde(&request.messages)));
    }
    names
}

/// Where the message stands that the model is working on: the last of the user's.
///
/// An answer to a question may come as a message. It then stands twice, as the result of the call that asked and as
/// itself right after the results; what is worked on is still the message before.
fn turn_start(messages: &[Message]) -> Option<usize> {
    let human = |before: usize| {
        let earlier = messages.get(..before)?;
        earlier
            .iter()
            .rposition(|message| message.role == Role::Human)
    };
    let mut start = human(messages.len())?;
    while repeats_a_result(messages, start)
        && let Some(earlier) = human(start)
    {
        start = earlier;
    }
    Some(start)
}

/// Whether the message says what one of the tool results directly before it says.
fn repeats_a_result(messages: &[Message], at: usize) -> bool {
    let Some((message, before)) = messages.get(..=at).and_then(<[Message]>::split_last) else {
        return false;
    };
    let text = message.words();
    before
        .iter()
        .rev()
        .take_while(|message| message.role == Role::Tool)
        .any(|result| result.content.text() == text)
}

type ByTool = BTreeMap<String, Vec<Value>>;

/// The results of the tool calls in `turn` by tool, in order: those that went well, and the texts of the others.
fn results(turn: &[Message]) -> (ByTool, ByTool) {
    let mut called = BTreeMap::new();
    let (mut results, mut errors) = (ByTool::new(), ByTool::new());
    for message in turn {
        for call in &message.tool_calls {
            called.insert(&call.id, &call.name);
        }
        for call in &message.invalid_tool_calls {
            if let (Some(id), Some(name)) = (&call.id, &call.name) {
                called.insert(id, name);
            }
        }
        if message.role != Role::Tool {
            continue;
        }
        // The call says which tool it was; the name of the message is there for messages that came without it.
        let by_call = message.tool_call_id.as_ref().and_then(|id| called.get(id));
        let Some(tool) = by_call.copied().or(message.name.as_ref()) else {
            continue;
        };
        let text = message.content.text();
        if message.status == Some(ToolStatus::Error) {
            errors
                .entry(tool.to_string())
                .or_default()
                .push(text.into());
        } else {
            results
                .entry(tool.to_string())
                .or_default()
                .push(read(text));
        }
    }
    (results, errors)
}

/// A result as a value: JSON if it is an object or a list.
///
/// `3.10`, `true` and `null` are JSON too, but when somebody answers so, they are what was typed.
fn read(text: String) -> Value {
    match serde_json::from_str(&text) {
        Ok(json @ (tine_engine::Value::Map(_) | tine_engine::Value::List(_))) => {
            Value::from(Serde(&json))
        }
        _ => Value::from(text),
    }
}

/// A function that gives the list of a tool, empty if there is none.
fn look_up(by_tool: ByTool) -> Value {
    let by_tool: BTreeMap<String, Value> = by_tool
        .into_iter()
        .map(|(tool, list)| (tool, Value::from(list)))
        .collect();
    Value::from_function(move |tool: &str| {
        by_tool
            .get(tool)
            .cloned()
            .unwrap_or_else(|| Value::from(Vec::<Value>::new()))
    })
}
