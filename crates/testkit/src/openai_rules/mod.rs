//! The rules of OpenAI's chat completions, as strict as the strictest server that speaks them.
//!
//! Providers tell a request that breaks a rule from one that does not by a 400, and then every later request of the
//! thread has the same fault. [`check`] says before anything is sent what a server would refuse. Where servers differ
//! the stricter one counts: local ones take one system message, and only at the beginning.

mod message;
mod pairing;
mod tool;

use serde_json::{Map, Value};
use std::fmt;

/// A rule that a request can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// The body is an object.
    Body,
    /// `messages` is a list of objects, with at least one.
    Messages,
    /// A message has one of the roles system, developer, user, assistant, tool.
    Role,
    /// One message of role system or developer at most, and it is the first.
    SystemFirst,
    /// A message has only fields that its role has.
    Field,
    /// A `name` matches `^[^\s<|\\/>]{1,64}$`.
    SpeakerName,
    /// Content is a text or a list of parts with at least one; only beside calls it may be null or left out.
    Content,
    /// Nobody says nothing: an empty text stands only beside calls.
    Empty,
    /// A part is of a type that the role may have, and whole.
    Part,
    /// `tool_calls` is a list of functions to call, with at least one.
    Calls,
    /// The id of a call is a text of 1 to 40 characters.
    CallId,
    /// No two calls of a message have one id.
    SameCallId,
    /// The name of a function matches `^[A-Za-z0-9_-]{1,64}$`.
    FunctionName,
    /// `arguments` is the JSON text of an object.
    Arguments,
    /// Each call of a message has a result among the tool messages right behind it.
    NoResult,
    /// A tool message answers a call of the message that it and its like stand right behind.
    NoCall,
    /// A call has one result.
    TwoResults,
    /// `tools` is a list of at least one and at most 128 functions.
    Tools,
    /// No two tools have one name.
    SameTool,
    /// `parameters` is the schema of an object with `properties`; lists in it say what their items are.
    Parameters,
    /// `tool_choice` is none, auto, required, or a function.
    ToolChoice,
    /// `tool_choice` names one of the tools.
    ChosenTool,
    /// `tool_choice` and `parallel_tool_calls` stand only beside `tools`.
    NoTools,
    /// `response_format` is a text, a JSON object, or a schema with a name.
    ResponseFormat,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::Body,
        Self::Messages,
        Self::Role,
        Self::SystemFirst,
        Self::Field,
        Self::SpeakerName,
        Self::Content,
        Self::Empty,
        Self::Part,
        Self::Calls,
        Self::CallId,
        Self::SameCallId,
        Self::FunctionName,
        Self::Arguments,
        Self::NoResult,
        Self::NoCall,
        Self::TwoResults,
        Self::Tools,
        Self::SameTool,
        Self::Parameters,
        Self::ToolChoice,
        Self::ChosenTool,
        Self::NoTools,
        Self::ResponseFormat,
    ];
}

/// A rule that a request breaks, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The rule.
    pub rule: Rule,
    /// Where, as a path: `messages[2].tool_calls[0].id`.
    pub place: String,
    /// What is there.
    pub found: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {} ({:?})", self.place, self.found, self.rule)
    }
}

/// Every rule that the body of a request breaks, in the order of its places; none if a server takes it.
///
/// Only what a model is told is looked at: `messages`, `tools`, `tool_choice`, `parallel_tool_calls` and
/// `response_format`. Sampling and streaming are not.
///
/// ```
/// use serde_json::json;
/// use tine_testkit::openai_rules::{Rule, check};
///
/// let body = json!({"messages": [{"role": "tool", "tool_call_id": "a", "content": "4"}]});
/// assert_eq!(check(&body)[0].rule, Rule::NoCall);
/// ```
#[must_use]
pub fn check(body: &Value) -> Vec<Broken> {
    let mut judge = Judge::default();
    let Some(body) = body.as_object() else {
        judge.breaks(Rule::Body, "", format!("not an object, but {}", kind(body)));
        return judge.0;
    };
    match body.get("messages") {
        Some(Value::Array(messages)) if !messages.is_empty() => {
            for (nth, message) in messages.iter().enumerate() {
                judge.message(nth, message);
            }
            judge.pairing(messages);
        }
        other => judge.breaks(
            Rule::Messages,
            "messages",
            format!("not a list of messages, but {}", shown(other)),
        ),
    }
    judge.tools(body);
    judge.response_format(body);
    judge.0
}

/// What is wrong so far.
#[derive(Default)]
struct Judge(Vec<Broken>);

impl Judge {
    fn breaks(&mut self, rule: Rule, place: impl Into<String>, found: impl Into<String>) {
        self.0.push(Broken {
            rule,
            place: place.into(),
            found: found.into(),
        });
    }

    fn response_format(&mut self, body: &Map<String, Value>) {
        let Some(format) = body.get("response_format") else {
            return;
        };
        let fits = match format.get("type").and_then(Value::as_str) {
            Some("text" | "json_object") => true,
            Some("json_schema") => format.get("json_schema").is_some_and(|schema| {
                let name = schema.get("name").and_then(Value::as_str);
                name.is_some_and(is_function_name) && schema["schema"].is_object()
            }),
            _ => false,
        };
        if !fits {
            let found = format!("not a format of a response: {}", shown(Some(format)));
            self.breaks(Rule::ResponseFormat, "response_format", found);
        }
    }
}

/// Whether it matches `^[A-Za-z0-9_-]{1,64}$`.
fn is_function_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=64).contains(&name.len()) && name.chars().all(fits)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(text) if text.is_empty() => "an empty text",
        Value::String(_) => "a text",
        Value::Array(items) if items.is_empty() => "an empty list",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A value in short.
fn shown(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(value @ (Value::Array(_) | Value::Null)) => kind(value).to_owned(),
        Some(value) => {
            let text = value.to_string();
            match text.char_indices().nth(100) {
                Some((end, _)) => format!("{}...", &text[..end]),
                None => text,
            }
        }
    }
}
