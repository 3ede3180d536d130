//! The pieces of a reply, folded into the reply.

use crate::delta::{Delta, ToolCallDelta};
use crate::reply::{FinishReason, ModelReply, ReplyCall, Usage};
use crate::request::ModelRequest;
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tine_engine::Value;
use tine_engine::message::{InvalidToolCall, ToolCall};

/// Folds the pieces of one reply.
///
/// Each field has a rule of its own: texts and arguments append, ids and names are set once, usage and finish reason
/// are replaced. Merging all fields by appending is how a tool called `ls` becomes one called `lsls`.
#[derive(Clone, Debug, Default)]
pub struct Accumulator {
    text: String,
    reasoning: String,
    /// By index; a list, because some gateways give all calls the index 0.
    calls: BTreeMap<u32, Vec<OpenCall>>,
    /// How many there are.
    count: usize,
    usage: Option<Usage>,
    model: Option<Arc<str>>,
    extra: Map<String, Json>,
    finish: Option<FinishReason>,
}

#[derive(Clone, Debug, Default)]
struct OpenCall {
    id: Option<Arc<str>>,
    name: Option<Arc<str>>,
    /// A second name under the same index: nobody can know which one is meant.
    other_name: Option<Arc<str>>,
    arguments: String,
    /// How far the arguments are.
    shape: Shape,
    /// Whether they are an object, once they have come to the end of one. They are read for it once only, for there can
    /// be very many pieces.
    is_object: Option<bool>,
    extra: Map<String, Json>,
}

/// How far a text is that is to be one JSON object, told from its brackets alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shape {
    /// There is nothing but space yet.
    #[default]
    Blank,
    /// Within the object.
    Open {
        depth: usize,
        in_string: bool,
        after_backslash: bool,
    },
    /// Its end has come.
    Closed,
    /// It is something else, which begins at this byte.
    Other(usize),
}

/// The most characters of arguments that an error repeats.
const MOST_ECHOED: usize = 500;

/// Where a reply keeps what providers attach to its calls, by the id of the call.
pub const CALL_EXTRAS: &str = "tool_call_extras";

impl Accumulator {
    /// An empty reply.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next piece.
    pub fn push(&mut self, delta: &Delta) {
        match delta {
            Delta::Text(more) => self.text.push_str(more),
            Delta::Reasoning(more) => self.reasoning.push_str(more),
            Delta::ToolCall(delta) => {
                let calls = self.calls.entry(delta.index).or_default();
                let is_new = calls
                    .last_mut()
                    .is_none_or(|call| call.is_followed_by(delta));
                if is_new {
                    calls.push(OpenCall::default());
                    self.count += 1;
                }
                if let Some(call) = calls.last_mut() {
                    call.push(delta);
                }
            }
            Delta::Usage(usage) => self.usage = Some(*usage),
            Delta::Model(model) => self.model = Some(model.clone()),
            Delta::Extra { key, value } => self.attach(key, value),
            Delta::Finish(reason) => self.finish = Some(reason.clone()),
        }
    }

    /// How many calls there are so far.
    pub(crate) fn calls(&self) -> usize {
        self.count
    }

    fn attach(&mut self, key: &str, value: &Json) {
        match (self.extra.get_mut(key), value) {
            (Some(Json::Array(items)), Json::Array(more)) => {
                for item in more {
                    let joined = items.last_mut().is_some_and(|last| goes_on(last, item));
                    if !joined {
                        items.push(item.clone());
                    }
                }
            }
            _ => {
                self.extra.insert(key.to_owned(), value.clone());
            }
        }
    }

    /// Ends the reply. Without a [`Delta::Finish`] it counts as broken off.
    ///
    /// A call is valid if its arguments are a JSON object; no text at all and `null` count as `{}`. In a reply that was
    /// cut off no call is valid, even one whose arguments can be read: some gateways close an object that broke off, and
    /// the calls may be part of what the model had still to say. `model` names the model unless the provider did, and `request` gives ids
    /// to calls that came without one or with that of another call.
    #[must_use]
    pub fn finish(self, model: &str, request: &ModelRequest) -> ModelReply {
        let finish = self.finish.unwrap_or(FinishReason::Incomplete);
        let mut taken = BTreeSet::new();
        let mut attached = Map::new();
        let mut calls = Vec::new();
        for (nth, mut call) in (0..).zip(self.calls.into_values().flatten()) {
            let id = call
                .id
                .clone()
                .filter(|id| !taken.contains(id))
                .unwrap_or_else(|| request.call_id(nth));
            taken.insert(id.clone());
            if !call.extra.is_empty() {
                attached.insert(id.to_string(), std::mem::take(&mut call.extra).into());
            }
            calls.push(call.close(id, &finish));
        }
        let mut extra = self.extra;
        if !attached.is_empty() {
            extra.insert(CALL_EXTRAS.to_owned(), attached.into());
        }
        ModelReply {
            content: self.text.into(),
            reasoning: (!self.reasoning.is_empty()).then(|| self.reasoning.into()),
            calls,
            usage: self.usage,
            finish,
            model: self.model.unwrap_or_else(|| model.into()),
            extra,
        }
    }
}

impl Shape {
    /// The shape with more of the text, which begins at byte `at`.
    fn after(self, more: &str, at: usize) -> Self {
        let mut shape = self;
        for (offset, c) in more.char_indices() {
            shape = match shape {
                Self::Blank if c == '{' => Self::Open {
                    depth: 1,
                    in_string: false,
                    after_backslash: false,
                },
                Self::Blank | Self::Closed if c.is_whitespace() => shape,
                Self::Blank | Self::Closed => Self::Other(at + offset),
                Self::Open {
                    depth,
                    in_string,
                    after_backslash,
                } => {
                    let depth = match c {
                        '{' | '[' if !in_string => depth + 1,
                        '}' | ']' if !in_string => depth - 1,
                        _ => depth,
                    };
                    match depth {
                        0 => Self::Closed,
                        _ => Self::Open {
                            depth,
                            in_string: in_string ^ (c == '"' && !after_backslash),
                            after_backslash: in_string && c == '\\' && !after_backslash,
                        },
                    }
                }
                Self::Other(_) => return shape,
            };
        }
        shape
    }
}

/// Appends an item to the one before it, if it is more of the same: of the type and the place, with more of its text.
fn goes_on(last: &mut Json, item: &Json) -> bool {
    const TEXTS: [&str; 3] = ["text", "summary", "data"];
    let (Json::Object(last), Json::Object(item)) = (last, item) else {
        return false;
    };
    let same = |key: &str| last.get(key) == item.get(key);
    let text = |key: &&&str| item.get(**key).is_some_and(Json::is_string);
    let is_more = item.contains_key("index") && same("index") && same("type");
    if !is_more || TEXTS.iter().find(text).is_none() {
        return false;
    }
    for (key, value) in item {
        match (last.get_mut(key), value) {
            (Some(Json::String(said)), Json::String(more)) if TEXTS.contains(&&**key) => {
                said.push_str(more);
            }
            (Some(Json::Null) | None, value) => {
                last.insert(key.clone(), value.clone());
            }
            _ => {}
        }
    }
    true
}

impl OpenCall {
    /// Whether a piece under the same index begins another call.
    ///
    /// It does if it has a name and an id of its own, and the arguments so far can be all there are. An id that only
    /// changes within an object means nothing. Where calls have no ids, one with a name that comes after a whole object
    /// is another call if its name is another or it begins another object.
    fn is_followed_by(&mut self, delta: &ToolCallDelta) -> bool {
        let Some(name) = delta.name.as_ref().filter(|name| !name.is_empty()) else {
            return false;
        };
        let opens = delta.arguments.trim_start().starts_with('{');
        if !opens && !delta.arguments.is_empty() {
            return false;
        }
        match delta.id.as_ref().filter(|id| !id.is_empty()) {
            Some(id) => {
                let other_id = self.id.as_ref().is_some_and(|first| first != id);
                other_id && (self.has_none() || self.is_object())
            }
            None => {
                let other_name = self.name.as_ref().is_some_and(|first| first != name);
                (opens || other_name) && self.is_object()
            }
        }
    }

    /// Whether the arguments so far say that there are none.
    fn has_none(&self) -> bool {
        match self.shape {
            Shape::Blank => true,
            Shape::Open { .. } | Shape::Closed => false,
            Shape::Other(start) => {
                let rest = self.arguments.get(start..).unwrap_or_default();
                let rest = rest.strip_prefix("null");
                rest.is_some_and(|rest| rest.trim_end().is_empty())
            }
        }
    }

    fn is_object(&mut self) -> bool {
        if self.shape != Shape::Closed {
            return false;
        }
        let read = || matches!(parse(&self.arguments), Ok(Value::Map(_)));
        *self.is_object.get_or_insert_with(read)
    }

    fn push(&mut self, delta: &ToolCallDelta) {
        // Providers that repeat fields often repeat them empty.
        let given = |field: &Option<Arc<str>>| field.clone().filter(|text| !text.is_empty());
        if self.id.is_none() {
            self.id = given(&delta.id);
        }
        if let Some(name) = given(&delta.name) {
            match &self.name {
                None => self.name = Some(name),
                Some(first) if *first == name => {}
                Some(_) => self.other_name = Some(name),
            }
        }
        self.shape = self.shape.after(&delta.arguments, self.arguments.len());
        self.arguments.push_str(&delta.arguments);
        for (key, value) in &delta.extra {
            self.extra.insert(key.clone(), value.clone());
        }
    }

    fn close(self, id: Arc<str>, finish: &FinishReason) -> ReplyCall {
        let read = self.read(finish);
        match read {
            Ok((name, args)) => ReplyCall::Valid(ToolCall { name, args, id }),
            Err(error) => ReplyCall::Invalid(InvalidToolCall {
                name: self.name,
                args: Some(self.arguments.into()),
                id: Some(id),
                error: Some(error.into()),
            }),
        }
    }

    fn read(&self, finish: &FinishReason) -> Result<(Arc<str>, Value), String> {
        if finish.is_cut_off() {
            return Err(format!(
                "the reply was cut off ({}), so none of its calls counts",
                finish.name()
            ));
        }
        let Some(name) = &self.name else {
            return Err("the call names no tool".to_owned());
        };
        if let Some(other) = &self.other_name {
            return Err(format!("the call names two tools, `{name}` and `{other}`"));
        }
        let text = self.arguments.trim();
        // Some models write `null` where a call takes nothing.
        if matches!(text, "" | "null") {
            return Ok((name.clone(), Value::map()));
        }
        match parse(text) {
            Ok(args @ Value::Map(_)) => Ok((name.clone(), args)),
            Ok(other) => Err(format!(
                "the arguments are {}, and must be a JSON object: {}",
                other.kind(),
                echo(text)
            )),
            Err(error) => Err(match extra_data(text) {
                Some(offset) => format!(
                    "the arguments are not valid JSON: extra data at character {offset} of {}",
                    echo(text)
                ),
                None => format!(
                    "the arguments are not valid JSON: {error} of {}",
                    echo(text)
                ),
            }),
        }
    }
}

/// Where something else begins behind a whole value, counted in characters from 0.
fn extra_data(text: &str) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    values.next()?.ok()?;
    let end = values.byte_offset();
    let rest = text.get(end..)?;
    let gap = rest.len() - rest.trim_start().len();
    Some(text.get(..end + gap)?.chars().count())
}

/// The text, or its beginning if it is long.
fn echo(text: &str) -> String {
    match text.char_indices().nth(MOST_ECHOED) {
        None => text.to_owned(),
        Some((end, _)) => format!(
            "{}… ({} characters in all)",
            text.get(..end).unwrap_or_default(),
            text.chars().count()
        ),
    }
}

/// Reads JSON, and once more with line breaks and tabs in its strings escaped: models that write a file's text into an
/// argument forget to.
fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|error| {
        let escaped = escape_controls(text);
        match escaped.len() == text.len() {
            true => Err(error),
            // The position in the repaired text would mislead.
            false => serde_json::from_str(&escaped).map_err(|_| error),
        }
    })
}

/// Writes the control characters within JSON strings as JSON wants them.
fn escape_controls(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut in_string = false;
    let mut after_backslash = false;
    for c in text.chars() {
        if in_string && c.is_ascii_control() && c != '\u{7f}' {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
        in_string ^= c == '"' && !after_backslash;
        after_backslash = in_string && c == '\\' && !after_backslash;
    }
    escaped
}

#[cfg(test)]
mod tests;
