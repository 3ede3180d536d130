//! The pieces of a reply, folded into the reply.

use crate::delta::{Delta, ToolCallDelta};
use crate::reply::{FinishReason, ModelReply, ReplyCall, Usage};
use crate::request::ModelRequest;
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
    usage: Option<Usage>,
    model: Option<Arc<str>>,
    finish: Option<FinishReason>,
}

#[derive(Clone, Debug, Default)]
struct OpenCall {
    id: Option<Arc<str>>,
    name: Option<Arc<str>>,
    /// A second name under the same index: nobody can know which one is meant.
    other_name: Option<Arc<str>>,
    arguments: String,
}

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
                match calls.last_mut() {
                    Some(call) if !call.is_followed_by(delta) => call.push(delta),
                    _ => {
                        let mut call = OpenCall::default();
                        call.push(delta);
                        calls.push(call);
                    }
                }
            }
            Delta::Usage(usage) => self.usage = Some(*usage),
            Delta::Model(model) => self.model = Some(model.clone()),
            Delta::Finish(reason) => self.finish = Some(*reason),
        }
    }

    /// Ends the reply. Without a [`Delta::Finish`] it counts as broken off.
    ///
    /// A call is valid if its arguments are a JSON object; no text at all and `null` count as `{}`, but not in a reply
    /// that was cut off, where the arguments may have been about to come. (An object that is there is whole: no proper
    /// beginning of an object is an object.) `model` names the model unless the provider did, and `request` gives ids
    /// to calls that came without one or with that of another call.
    #[must_use]
    pub fn finish(self, model: &str, request: &ModelRequest) -> ModelReply {
        let finish = self.finish.unwrap_or(FinishReason::Incomplete);
        let mut taken = BTreeSet::new();
        let calls = self.calls.into_values().flatten();
        let calls = (0..).zip(calls).map(|(nth, call)| {
            let id = call
                .id
                .clone()
                .filter(|id| !taken.contains(id))
                .unwrap_or_else(|| request.call_id(nth));
            taken.insert(id.clone());
            call.close(id, finish)
        });
        ModelReply {
            content: self.text.into(),
            reasoning: (!self.reasoning.is_empty()).then(|| self.reasoning.into()),
            calls: calls.collect(),
            usage: self.usage,
            finish,
            model: self.model.unwrap_or_else(|| model.into()),
        }
    }
}

impl OpenCall {
    /// Whether a piece under the same index begins another call.
    ///
    /// It does if it has a name and an id of its own, and the arguments so far can be all there are. An id that only
    /// changes within an object means nothing.
    fn is_followed_by(&self, delta: &ToolCallDelta) -> bool {
        let named = delta.name.as_ref().is_some_and(|name| !name.is_empty());
        let other_id = match (&self.id, &delta.id) {
            (Some(first), Some(id)) => !id.is_empty() && first != id,
            _ => false,
        };
        let begins = delta.arguments.is_empty() || delta.arguments.trim_start().starts_with('{');
        let is_whole = || {
            matches!(self.arguments.trim(), "" | "null")
                || matches!(parse(&self.arguments), Ok(Value::Map(_)))
        };
        named && other_id && begins && is_whole()
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
        self.arguments.push_str(&delta.arguments);
    }

    fn close(self, id: Arc<str>, finish: FinishReason) -> ReplyCall {
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

    fn read(&self, finish: FinishReason) -> Result<(Arc<str>, Value), String> {
        let Some(name) = &self.name else {
            return Err("the call names no tool".to_owned());
        };
        if let Some(other) = &self.other_name {
            return Err(format!("the call names two tools, `{name}` and `{other}`"));
        }
        let text = self.arguments.trim();
        // Some models write `null` where a call takes nothing.
        if matches!(text, "" | "null") && !finish.is_cut_off() {
            return Ok((name.clone(), Value::map()));
        }
        match parse(text) {
            Ok(args @ Value::Map(_)) => Ok((name.clone(), args)),
            Ok(other) => Err(format!(
                "the arguments are {}, and must be a JSON object",
                other.kind()
            )),
            Err(_) if finish.is_cut_off() => Err(format!(
                "the reply was cut off ({}) before the arguments were whole",
                finish.name()
            )),
            Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
        }
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
