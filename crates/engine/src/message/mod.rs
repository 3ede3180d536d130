//! Messages of a conversation, in LangChain's JSON.

mod input;

use crate::value::{Map, Value, ValueError, to_value};
pub(crate) use input::shape;
pub use input::{MessageError, normalise};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    Human,
    /// The model.
    Ai,
    /// A tool, answering a call of the model.
    Tool,
    /// Instructions.
    System,
}

impl Role {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "human" | "user" => Self::Human,
            "ai" | "assistant" => Self::Ai,
            "tool" => Self::Tool,
            "system" | "developer" => Self::System,
            _ => return None,
        })
    }

    /// The name, as the state writes it.
    fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Ai => "ai",
            Self::Tool => "tool",
            Self::System => "system",
        }
    }
}

/// The content of a message: a text, or a list of blocks kept as the provider sent them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(Arc<str>),
    /// Blocks: `{type: text, text}`, images, reasoning, citations, ...
    Blocks(Vec<Value>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Text("".into())
    }
}

impl Content {
    /// The text of all text blocks, one after the other.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            Self::Blocks(blocks) => blocks
                .iter()
                .filter_map(|block| match block {
                    Value::Text(text) => Some(&**text),
                    block if block.get("type").and_then(Value::as_str) == Some("text") => {
                        block.get("text")?.as_str()
                    }
                    _ => None,
                })
                .collect(),
        }
    }

    /// Whether there is neither text nor a block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

impl<T: Into<Arc<str>>> From<T> for Content {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

/// A call of a tool, with arguments that are valid JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model-facing name of the tool.
    pub name: Arc<str>,
    /// The arguments.
    pub args: Value,
    /// The id that the result must carry.
    pub id: Arc<str>,
}

/// A call whose arguments are not valid JSON, or were cut off. It is never executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InvalidToolCall {
    /// The name, as far as it came.
    #[serde(default)]
    pub name: Option<Arc<str>>,
    /// The raw text of the arguments.
    #[serde(default)]
    pub args: Option<Arc<str>>,
    /// The id that the error result must carry.
    #[serde(default)]
    pub id: Option<Arc<str>>,
    /// What is wrong.
    #[serde(default)]
    pub error: Option<Arc<str>>,
}

/// Whether a tool call went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    /// It did.
    Success,
    /// It did not; the content says why.
    Error,
}

/// One message. Unset fields are left out of its JSON; fields not known here are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    #[serde(rename = "type")]
    pub role: Role,
    /// What is said.
    #[serde(default)]
    pub content: Content,
    /// Names the message within its thread; given by the engine if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// The name of the speaker, or of the tool that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// Calls the model asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Calls that can not be executed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid_tool_calls: Vec<InvalidToolCall>,
    /// The call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Arc<str>>,
    /// How the call went, in a tool message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    /// Tokens used: `input_tokens`, `output_tokens`, `total_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage_metadata: Option<Value>,
    /// What the provider said about its reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_metadata: Option<Value>,
    /// Everything else a client or provider attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_kwargs: Option<Value>,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Map,
}

/// The key of `additional_kwargs` under which a message keeps what its user wrote, if its content tells more: of files
/// that came with it.
pub const ORIGINAL_CONTENT: &str = "original_user_content";

impl Message {
    fn new(role: Role, content: impl Into<Content>) -> Self {
        Self {
            role,
            content: content.into(),
            id: None,
            name: None,
            tool_calls: Vec::new(),
            invalid_tool_calls: Vec::new(),
            tool_call_id: None,
            status: None,
            usage_metadata: None,
            response_metadata: None,
            additional_kwargs: None,
            other: Map::new(),
        }
    }

    /// A message of the user.
    pub fn human(content: impl Into<Content>) -> Self {
        Self::new(Role::Human, content)
    }

    /// A message of the model.
    pub fn ai(content: impl Into<Content>) -> Self {
        Self::new(Role::Ai, content)
    }

    /// Instructions.
    pub fn system(content: impl Into<Content>) -> Self {
        Self::new(Role::System, content)
    }

    /// The result of a tool call.
    pub fn tool(call: &ToolCall, content: impl Into<Content>, status: ToolStatus) -> Self {
        Self {
            name: Some(call.name.clone()),
            tool_call_id: Some(call.id.clone()),
            status: Some(status),
            ..Self::new(Role::Tool, content)
        }
    }

    /// What the user wrote in the message: its text, or that which is kept under [`ORIGINAL_CONTENT`].
    #[must_use]
    pub fn words(&self) -> String {
        let kept = self.additional_kwargs.as_ref();
        match kept.and_then(|kept| kept.get(ORIGINAL_CONTENT)?.as_str()) {
            Some(words) => words.to_owned(),
            None => self.content.text(),
        }
    }

    /// Gives the message an id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Reads a message of the state or of a client.
    ///
    /// # Errors
    /// If it is neither a text, nor `{type, content, ...}`, nor `{role, content, ...}`, or a field of it does not fit.
    pub fn from_value(value: &Value) -> Result<Self, MessageError> {
        input::decode(&shape(value)?)
    }

    /// The message as the state keeps it.
    ///
    /// # Errors
    /// Never for messages that were read; a value made by hand may hold a float that JSON has not.
    pub fn to_value(&self) -> Result<Value, ValueError> {
        to_value(self)
    }
}
