//! Calls and contents in a form that every provider takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tine_engine::message::{Content, Role, ToolCall};
use tine_engine::{Message, Value};

/// The most characters of a name of a tool.
const LONGEST_NAME: usize = 64;

/// The ids of the calls of a request, no two the same.
#[derive(Default)]
pub(super) struct Ids {
    taken: BTreeSet<Arc<str>>,
    /// How often an id was wanted that was taken.
    again: BTreeMap<Arc<str>, usize>,
}

impl Ids {
    /// The id itself, unless it is empty or taken. It follows from what stands before, so that a conversation that grows
    /// keeps its beginning.
    fn unique(&mut self, wanted: Arc<str>) -> Arc<str> {
        let (base, before) = if wanted.trim().is_empty() {
            (Arc::from("call"), 0)
        } else if self.taken.insert(wanted.clone()) {
            return wanted;
        } else {
            (wanted, 1)
        };
        let count = self.again.entry(base.clone()).or_insert(before);
        loop {
            *count += 1;
            let id: Arc<str> = format!("{base}_{count}").into();
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// The call with an id of its own, a name that a tool may have, and a map of arguments.
pub(super) fn call(call: ToolCall, ids: &mut Ids) -> ToolCall {
    ToolCall {
        id: ids.unique(call.id),
        name: name(call.name),
        args: arguments(call.args),
    }
}

/// What stands for the name of a call. The model has learned from the result that there is no such tool.
fn name(name: Arc<str>) -> Arc<str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.trim().is_empty() {
        return "unknown".into();
    }
    if name.len() <= LONGEST_NAME && name.chars().all(fits) {
        return name;
    }
    let fitting = name.chars().map(|c| if fits(c) { c } else { '_' });
    fitting.take(LONGEST_NAME).collect::<String>().into()
}

/// Arguments as a map. Nothing stands for none, a text may be their JSON, and anything else is kept under a key.
fn arguments(args: Value) -> Value {
    match args {
        Value::Map(_) => args,
        Value::Null => Value::map(),
        Value::Text(text) if text.trim().is_empty() => Value::map(),
        Value::Text(text) => match serde_json::from_str(&text) {
            Ok(args @ Value::Map(_)) => args,
            _ => Value::from_pairs([("value", Value::Text(text))]),
        },
        other => Value::from_pairs([("value", other)]),
    }
}

/// The arguments of a call that is not to be made: none, unless their text is that of a map.
pub(super) fn raw_arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(args @ Value::Map(_)) => args,
        _ => Value::map(),
    }
}

/// Blocks that repeat the calls of a message, as some providers write them. The calls themselves count.
const CALLS: [&str; 5] = [
    "tool_use",
    "input_json_delta",
    "tool_call",
    "invalid_tool_call",
    "tool_call_chunk",
];

/// Blocks that only show how a reply came about.
const THOUGHTS: [&str; 3] = ["reasoning", "thinking", "redacted_thinking"];

/// Leaves texts of nothing out of the content, and makes a text of what is no block.
pub(super) fn content(message: &mut Message) {
    let is_ai = message.role == Role::Ai;
    match &mut message.content {
        Content::Text(text) if !text.is_empty() && text.trim().is_empty() => {
            message.content = Content::default();
        }
        Content::Text(_) => {}
        Content::Blocks(blocks) => {
            blocks.retain(|block| match kind(block) {
                Some("text") => has_words(block.get("text")),
                Some(kind) => !(is_ai && CALLS.contains(&kind)),
                None => !matches!(block, Value::Null | Value::Text(_)) || has_words(Some(block)),
            });
            for block in blocks {
                if kind(block).is_none() && block.as_str().is_none() {
                    let text = block.to_canonical();
                    *block = Value::from_pairs([("type", "text".into()), ("text", text.into())]);
                }
            }
        }
    }
}

/// Whether there is something in the content that a model can be told.
pub(super) fn says_something(message: &Message) -> bool {
    match &message.content {
        Content::Text(text) => !text.is_empty(),
        Content::Blocks(_) if message.role == Role::System => !message.content.text().is_empty(),
        Content::Blocks(blocks) => blocks
            .iter()
            .any(|block| kind(block).is_none_or(|kind| !THOUGHTS.contains(&kind))),
    }
}

fn kind(block: &Value) -> Option<&str> {
    block.get("type")?.as_str()
}

fn has_words(text: Option<&Value>) -> bool {
    let text = text.and_then(Value::as_str);
    text.is_some_and(|text| !text.trim().is_empty())
}
