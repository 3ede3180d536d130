//! One message alone.

use super::{Judge, Rule, is_function_name, kind, shown};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The most characters of the id of a call.
const LONGEST_ID: usize = 40;

/// Fields beside `role`, `content` and `name`; what a model thought is sent back by the names that servers have for it.
fn fields(role: &str) -> &'static [&'static str] {
    match role {
        "assistant" => &[
            "tool_calls",
            "refusal",
            "audio",
            "reasoning_content",
            "reasoning",
            "reasoning_details",
        ],
        "tool" => &["tool_call_id"],
        _ => &[],
    }
}

/// The types of the parts that content may have.
fn parts(role: &str) -> &'static [&'static str] {
    match role {
        "user" => &["text", "image_url", "input_audio", "file"],
        "assistant" => &["text", "refusal"],
        _ => &["text"],
    }
}

impl Judge {
    pub(super) fn message(&mut self, nth: usize, message: &Value) {
        let place = format!("messages[{nth}]");
        let Some(entries) = message.as_object() else {
            let found = format!("not a message, but {}", kind(message));
            return self.breaks(Rule::Messages, place, found);
        };
        let role = entries.get("role");
        let Some(role @ ("system" | "developer" | "user" | "assistant" | "tool")) =
            role.and_then(Value::as_str)
        else {
            let found = format!("no role: {}", shown(role));
            return self.breaks(Rule::Role, format!("{place}.role"), found);
        };
        if matches!(role, "system" | "developer") && nth > 0 {
            self.breaks(Rule::SystemFirst, &place, format!("{role} after others"));
        }
        for field in entries.keys() {
            let known = matches!(&**field, "role" | "content" | "name");
            if !known && !fields(role).contains(&&**field) {
                let found = format!("no field of a message of {role}");
                self.breaks(Rule::Field, format!("{place}.{field}"), found);
            }
        }
        self.speaker(&place, entries);
        if role == "assistant" {
            self.calls(&place, entries);
        }
        self.content(&place, role, entries);
    }

    fn speaker(&mut self, place: &str, entries: &Map<String, Value>) {
        let Some(name) = entries.get("name") else {
            return;
        };
        let fits = |c: char| !c.is_whitespace() && !matches!(c, '<' | '|' | '\\' | '/' | '>');
        let fits = name
            .as_str()
            .is_some_and(|name| (1..=64).contains(&name.chars().count()) && name.chars().all(fits));
        if !fits {
            let found = format!("no name: {}", shown(Some(name)));
            self.breaks(Rule::SpeakerName, format!("{place}.name"), found);
        }
    }

    fn content(&mut self, place: &str, role: &str, entries: &Map<String, Value>) {
        let place = format!("{place}.content");
        let calls = role == "assistant" && entries.contains_key("tool_calls");
        match entries.get("content") {
            None | Some(Value::Null) if calls => {}
            Some(Value::String(text)) => {
                if text.is_empty() && !calls {
                    self.breaks(Rule::Empty, place, "an empty text");
                }
            }
            Some(Value::Array(found)) if !found.is_empty() => {
                for (nth, part) in found.iter().enumerate() {
                    self.part(&format!("{place}[{nth}]"), role, part);
                }
            }
            other => {
                let found = format!("no content: {}", shown(other));
                self.breaks(Rule::Content, place, found);
            }
        }
    }

    fn part(&mut self, place: &str, role: &str, part: &Value) {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
        if !parts(role).contains(&kind) {
            let found = format!("no part of a message of {role}: {}", shown(Some(part)));
            return self.breaks(Rule::Part, place, found);
        }
        let whole = |at: &[&str]| {
            let value = at.iter().try_fold(part, |value, key| value.get(key));
            value
                .and_then(Value::as_str)
                .is_some_and(|text| !text.is_empty())
        };
        let is_whole = match kind {
            "image_url" => whole(&["image_url", "url"]),
            "input_audio" => whole(&["input_audio", "data"]) && whole(&["input_audio", "format"]),
            "file" => part["file"]
                .as_object()
                .is_some_and(|file| !file.is_empty()),
            text => whole(&[text]),
        };
        if !is_whole {
            let found = format!("an empty part: {}", shown(Some(part)));
            self.breaks(Rule::Part, place, found);
        }
    }

    fn calls(&mut self, place: &str, entries: &Map<String, Value>) {
        let Some(given) = entries.get("tool_calls") else {
            return;
        };
        let place = format!("{place}.tool_calls");
        let calls = match given.as_array() {
            Some(calls) if !calls.is_empty() => calls,
            _ => {
                let found = format!("not a list of calls, but {}", kind(given));
                return self.breaks(Rule::Calls, place, found);
            }
        };
        let mut ids = BTreeSet::new();
        for (nth, call) in calls.iter().enumerate() {
            let place = format!("{place}[{nth}]");
            self.call(&place, call);
            if let Some(id) = call.get("id").and_then(Value::as_str)
                && !ids.insert(id)
            {
                let found = format!("the id `{id}` once more");
                self.breaks(Rule::SameCallId, format!("{place}.id"), found);
            }
        }
    }

    fn call(&mut self, place: &str, call: &Value) {
        let id = call.get("id");
        let length = id.and_then(Value::as_str).map(|id| id.chars().count());
        if !length.is_some_and(|length| (1..=LONGEST_ID).contains(&length)) {
            let found = format!("no id: {}", shown(id));
            self.breaks(Rule::CallId, format!("{place}.id"), found);
        }
        let function = call.get("function").and_then(Value::as_object);
        let (Some("function"), Some(function)) = (call["type"].as_str(), function) else {
            let found = format!("no call of a function: {}", shown(Some(call)));
            return self.breaks(Rule::Calls, place, found);
        };
        let name = function.get("name");
        if !name.and_then(Value::as_str).is_some_and(is_function_name) {
            let found = format!("no name of a function: {}", shown(name));
            self.breaks(Rule::FunctionName, format!("{place}.function.name"), found);
        }
        let arguments = function.get("arguments");
        let read = arguments
            .and_then(Value::as_str)
            .and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
        if read.is_none() {
            let found = format!("not the JSON text of an object: {}", shown(arguments));
            self.breaks(
                Rule::Arguments,
                format!("{place}.function.arguments"),
                found,
            );
        }
    }
}
