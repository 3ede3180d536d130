//! Replies, and pieces of them, as chat completions have them.

use super::profile::Profile;
use crate::delta::{Delta, ToolCallDelta};
use crate::reply::{FinishReason, Usage};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What providers add to a whole reply that people want to see.
const ADDED: [&str; 2] = ["citations", "search_results"];

/// What they add to a message.
const ATTACHED: [&str; 3] = ["reasoning_details", "annotations", "audio"];

/// The most calls of a reply. People wait for each of them, and a reply has a few.
pub(crate) const MOST_CALLS: usize = 1000;

/// What is wrong with a reply that has more calls than that.
pub(crate) fn too_many_calls() -> String {
    format!("it has more than {MOST_CALLS} calls")
}

/// Reads one reply, whole or in pieces.
pub(crate) struct Reader {
    profile: &'static Profile,
    /// The places of calls that came without an index, by their ids.
    unindexed: BTreeMap<String, u32>,
    /// How many there are, those without an id too.
    places: u32,
    /// The reasoning so far, where each piece repeats it.
    reasoning: String,
    /// What was added already; some repeat it with every piece.
    added: Vec<&'static str>,
    /// Whether anything was a part of a chat completion.
    pub(crate) known: bool,
    /// Whether a reason to end was given.
    pub(crate) finished: bool,
}

/// What a piece of a reply can be beside a piece of a reply.
#[derive(Debug, PartialEq)]
pub(crate) enum Unread {
    /// An error of the provider.
    Failed(Value),
    /// Something that does not fit.
    Wrong(String),
}

impl Reader {
    pub(crate) fn new(profile: &'static Profile) -> Self {
        Self {
            profile,
            unindexed: BTreeMap::new(),
            places: 0,
            reasoning: String::new(),
            added: Vec::new(),
            known: false,
            finished: false,
        }
    }

    /// Reads a piece of a stream, or a whole reply.
    pub(crate) fn read(&mut self, piece: &Value) -> Result<Vec<Delta>, Unread> {
        let Value::Object(piece) = piece else {
            return Err(Unread::Wrong(format!("it is {}", kind(piece))));
        };
        if let Some(error) = piece.get("error").filter(|error| !error.is_null()) {
            return Err(Unread::Failed(error.clone()));
        }
        let mut deltas = Vec::new();
        if let Some(choices) = piece.get("choices") {
            let choices = match choices {
                Value::Array(choices) => choices.as_slice(),
                Value::Null => &[],
                other => return Err(wrong("choices", "a list", other)),
            };
            self.known = true;
            if let Some(model) = piece.get("model").and_then(Value::as_str)
                && !model.is_empty()
                && !self.added.contains(&"model")
            {
                self.added.push("model");
                deltas.push(Delta::Model(model.into()));
            }
            // Of several replies to one request the first is meant.
            let is_first = |choice: &&Value| {
                let index = choice.get("index").and_then(Value::as_u64);
                index.unwrap_or(0) == 0
            };
            for choice in choices.iter().filter(is_first) {
                self.choice(choice, &mut deltas)?;
            }
        }
        for key in ADDED {
            if let Some(value) = piece.get(key).filter(|value| !is_empty(value))
                && !self.added.contains(&key)
            {
                self.added.push(key);
                deltas.push(extra(key, value));
            }
        }
        let of_groq = || piece.get("x_groq").and_then(|own| own.get("usage"));
        let given = piece.get("usage").filter(|usage| usage.is_object());
        if let Some(usage) = given.or_else(of_groq).and_then(usage) {
            deltas.push(Delta::Usage(usage));
        }
        // The end comes last, whatever else stands in its piece.
        deltas.sort_by_key(|delta| matches!(delta, Delta::Finish(_)));
        Ok(deltas)
    }

    fn choice(&mut self, choice: &Value, deltas: &mut Vec<Delta>) -> Result<(), Unread> {
        let part = |key: &str| choice.get(key).filter(|part| !part.is_null());
        let delta = part("delta");
        match delta.or_else(|| part("message")) {
            None => {}
            Some(Value::Object(message)) => self.message(message, delta.is_none(), deltas)?,
            Some(other) => return Err(wrong("delta", "an object", other)),
        }
        match part("finish_reason") {
            None => {}
            Some(Value::String(reason)) if reason.is_empty() => {}
            Some(Value::String(reason)) if reason == "error" => {
                return Err(Unread::Failed(choice.clone()));
            }
            Some(Value::String(reason)) => {
                self.finished = true;
                deltas.push(Delta::Finish(FinishReason::from_name(reason)));
            }
            Some(other) => return Err(wrong("finish_reason", "a text", other)),
        }
        Ok(())
    }

    fn message(
        &mut self,
        message: &Map<String, Value>,
        whole: bool,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), Unread> {
        let part = |key: &str| message.get(key).filter(|part| !part.is_null());
        let texts = ["reasoning_content", "reasoning", "thinking"];
        let said = texts.iter().find_map(|key| {
            let text = part(key)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        });
        if let Some(text) = said.or_else(|| details_text(part("reasoning_details")?)) {
            self.reason(text, deltas);
        }
        match part("content") {
            None => {}
            Some(Value::String(text)) => say(text, deltas),
            Some(Value::Array(parts)) => {
                for part in parts {
                    self.part(part, deltas)?;
                }
            }
            Some(other) => return Err(wrong("content", "a text or a list of parts", other)),
        }
        if let Some(refusal) = part("refusal").and_then(Value::as_str)
            && !refusal.is_empty()
        {
            // It is what the user must see. That it is a refusal stays known too.
            say(refusal, deltas);
            deltas.push(extra("refused", &true.into()));
        }
        for key in ATTACHED {
            if let Some(value) = part(key).filter(|value| !is_empty(value)) {
                deltas.push(extra(key, value));
            }
        }
        match part("tool_calls") {
            None => {}
            Some(Value::Array(calls)) => {
                if calls.len() > MOST_CALLS {
                    return Err(Unread::Wrong(too_many_calls()));
                }
                for (nth, call) in (0..).zip(calls) {
                    let mut call = self.call(call, nth)?;
                    if whole {
                        call.index = nth;
                    }
                    deltas.push(Delta::ToolCall(call));
                }
            }
            Some(other) => return Err(wrong("tool_calls", "a list", other)),
        }
        // How calls looked before there were several in a reply.
        if let Some(function) = part("function_call") {
            let (name, arguments) = function_parts(function)?;
            deltas.push(Delta::ToolCall(ToolCallDelta {
                name,
                arguments,
                ..ToolCallDelta::default()
            }));
        }
        Ok(())
    }

    fn reason(&mut self, text: String, deltas: &mut Vec<Delta>) {
        let new = match text.strip_prefix(self.reasoning.as_str()) {
            Some(rest) if self.profile.reasoning_repeats => rest.to_owned(),
            _ => text,
        };
        if self.profile.reasoning_repeats {
            self.reasoning.push_str(&new);
        }
        if !new.is_empty() {
            deltas.push(Delta::Reasoning(new));
        }
    }

    /// A part of a message whose content is a list.
    fn part(&mut self, part: &Value, deltas: &mut Vec<Delta>) -> Result<(), Unread> {
        if let Value::String(text) = part {
            say(text, deltas);
            return Ok(());
        }
        let field = |key: &str| part.get(key).and_then(Value::as_str);
        match (field("type"), part.get("thinking")) {
            (Some("text" | "output_text") | None, None) => match field("text") {
                Some(text) => say(text, deltas),
                None => return Err(wrong("a part of the content", "a text", part)),
            },
            (_, Some(thinking)) => {
                let text = match thinking {
                    Value::String(text) => text.clone(),
                    Value::Array(parts) => parts
                        .iter()
                        .filter_map(|part| part.get("text")?.as_str())
                        .collect(),
                    other => return Err(wrong("thinking", "a text", other)),
                };
                self.reason(text, deltas);
            }
            (Some("refusal"), None) => {
                say(field("refusal").unwrap_or_default(), deltas);
                deltas.push(extra("refused", &true.into()));
            }
            (Some(_), None) => deltas.push(extra("content_parts", &vec![part.clone()].into())),
        }
        Ok(())
    }

    fn call(&mut self, call: &Value, nth: u32) -> Result<ToolCallDelta, Unread> {
        let Value::Object(fields) = call else {
            return Err(wrong("a tool call", "an object", call));
        };
        let field = |key: &str| fields.get(key).filter(|field| !field.is_null());
        let (name, arguments) = match field("function") {
            Some(function) => function_parts(function)?,
            None => (None, String::new()),
        };
        let id = match field("id") {
            None => None,
            Some(Value::String(id)) => Some(id.as_str()).filter(|id| !id.is_empty()),
            Some(other) => return Err(wrong("the id of a tool call", "a text", other)),
        };
        let index = match field("index") {
            Some(index) => index
                .as_u64()
                .and_then(|index| u32::try_from(index).ok())
                .ok_or_else(|| wrong("the index of a tool call", "a small whole number", index))?,
            None => self.place(id, nth),
        };
        let own = ["index", "id", "type", "function"];
        let extra = fields
            .iter()
            .filter(|(key, value)| !own.contains(&key.as_str()) && !value.is_null())
            .map(|(key, value)| (key.clone(), value.clone()));
        Ok(ToolCallDelta {
            index,
            id: id.map(Into::into),
            name,
            arguments,
            extra: extra.collect(),
        })
    }

    /// The index of a call that has none: that of its id, or the next for a new id. What has no id either goes on with
    /// the last call, but for those behind the first of one piece.
    fn place(&mut self, id: Option<&str>, nth: u32) -> u32 {
        let known = id.and_then(|id| self.unindexed.get(id));
        match (known, id) {
            (Some(known), _) => *known,
            (None, None) if nth == 0 => self.places.saturating_sub(1),
            (None, id) => {
                let place = self.places;
                self.places = place.saturating_add(1);
                if let Some(id) = id {
                    self.unindexed.insert(id.to_owned(), place);
                }
                place
            }
        }
    }
}

fn say(text: &str, deltas: &mut Vec<Delta>) {
    if !text.is_empty() {
        deltas.push(Delta::Text(text.to_owned()));
    }
}

fn extra(key: &str, value: &Value) -> Delta {
    Delta::Extra {
        key: key.into(),
        value: value.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The text of reasoning that comes in no field of its own.
fn details_text(details: &Value) -> Option<String> {
    let texts = details.as_array()?.iter().filter_map(|detail| {
        detail
            .get("text")
            .or_else(|| detail.get("summary"))?
            .as_str()
    });
    Some(texts.collect::<String>()).filter(|text| !text.is_empty())
}

/// Name and arguments. Some endpoints send the arguments as an object instead of its text.
fn function_parts(function: &Value) -> Result<(Option<Arc<str>>, String), Unread> {
    let field = |key: &str| function.get(key).filter(|field| !field.is_null());
    let name = match field("name") {
        None => None,
        Some(Value::String(name)) => Some(name.as_str().into()),
        Some(other) => return Err(wrong("the name of a tool", "a text", other)),
    };
    let arguments = match field("arguments") {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(object @ Value::Object(_)) => object.to_string(),
        Some(other) => return Err(wrong("the arguments of a tool call", "a text", other)),
    };
    Ok((name, arguments))
}

fn usage(usage: &Value) -> Option<Usage> {
    let count = |keys: [&str; 2]| keys.iter().find_map(|key| usage.get(*key)?.as_u64());
    let input = count(["prompt_tokens", "input_tokens"]);
    let output = count(["completion_tokens", "output_tokens"]);
    // OpenAI's place, and DeepSeek's.
    let details = usage.get("prompt_tokens_details");
    let cached = details.and_then(|details| details.get("cached_tokens")?.as_u64());
    let cached = cached.or_else(|| usage.get("prompt_cache_hit_tokens")?.as_u64());
    (input.is_some() || output.is_some()).then(|| Usage {
        input_tokens: input.unwrap_or_default(),
        output_tokens: output.unwrap_or_default(),
        cached_input_tokens: cached.unwrap_or_default(),
        estimated: false,
    })
}

fn wrong(what: &str, expected: &str, found: &Value) -> Unread {
    Unread::Wrong(format!("{what} must be {expected}, and is {}", kind(found)))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
