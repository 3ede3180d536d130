//! What a model is asked.

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::sync::Arc;
use tine_engine::Message;
use xxhash_rust::xxh3::Xxh3;

/// One request to a model, the same for every provider.
///
/// The history is valid before a request is made: every tool call has exactly one result, next to it. Whoever builds
/// a request sees to that; a provider client only translates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    /// Instructions that stand before the conversation.
    pub system: Option<Arc<str>>,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The tools that the model may call, in the order in which it is told of them.
    pub tools: Vec<ToolSchema>,
    /// Whether the model may, must or must not call a tool.
    pub tool_choice: ToolChoice,
    /// How the model samples.
    pub params: Params,
    /// The shape that the reply must have, if it is to be data.
    pub response_schema: Option<ResponseSchema>,
    /// Where in a run the request is made.
    pub site: CallSite,
}

/// A tool as a model is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSchema {
    /// The name that calls carry.
    pub name: Arc<str>,
    /// What the tool is for.
    pub description: Arc<str>,
    /// The JSON Schema of the arguments, its keys in the order of the source.
    pub parameters: serde_json::Value,
}

/// Whether a model may, must or must not call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must call at least one.
    Required,
    /// It must call the tool of this name.
    Tool(Arc<str>),
}

/// How a model samples. What is unset is left to the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Params {
    /// Higher is more varied; usually 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens of a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Parameters of one provider, sent as they are.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// The shape of a reply that is to be data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResponseSchema {
    /// A name that the provider shows the model.
    pub name: Arc<str>,
    /// The JSON Schema.
    pub schema: serde_json::Value,
}

/// Where in a run a request is made. No provider is told; scripts choose their rules by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallSite {
    /// The node that asks.
    pub node: Arc<str>,
    /// How often that node has run in this run, this time included.
    pub visit: u64,
}

impl ModelRequest {
    /// A request with this conversation and nothing else.
    #[must_use]
    pub fn new(messages: Vec<Message>) -> Self {
        Self {
            messages,
            ..Self::default()
        }
    }

    /// Offers tools.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<ToolSchema>) -> Self {
        self.tools = tools;
        self
    }

    /// Says where in a run the request is made.
    #[must_use]
    pub fn at(mut self, node: impl Into<Arc<str>>, visit: u64) -> Self {
        self.site = CallSite {
            node: node.into(),
            visit,
        };
        self
    }

    /// Derives the id of the call at `index` of the reply, for models that give none.
    ///
    /// The same request gives the same ids, so a task that runs again meets its recorded results.
    #[must_use]
    pub fn call_id(&self, index: u32) -> Arc<str> {
        let mut hash = Xxh3::new();
        // A separator that no text holds keeps ("ab", "c") and ("a", "bc") apart.
        let mut add = |part: &str| {
            hash.update(part.as_bytes());
            hash.update(&[0xff]);
        };
        add(&self.site.node);
        add(&self.site.visit.to_string());
        add(self.system.as_deref().unwrap_or_default());
        for message in &self.messages {
            match message.to_value() {
                Ok(value) => add(&value.to_canonical()),
                Err(error) => add(&error.to_string()),
            }
        }
        add(&index.to_string());
        let mut id = String::from("call_");
        write!(id, "{:032x}", hash.digest128()).ok();
        id.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_ids_follow_from_the_request_and_the_index() {
        let request = ModelRequest::new(vec![Message::human("hi")]).at("agent", 1);
        let same = ModelRequest::new(vec![Message::human("hi")]).at("agent", 1);
        assert_eq!(request.call_id(0), same.call_id(0));
        let others = [
            request.call_id(1),
            request.clone().at("agent", 2).call_id(0),
            request.clone().at("other", 1).call_id(0),
            ModelRequest::new(vec![Message::human("hi!")])
                .at("agent", 1)
                .call_id(0),
        ];
        for other in others {
            assert_ne!(other, request.call_id(0));
        }
    }

    #[test]
    fn a_schema_keeps_the_order_of_its_source() {
        let text = r#"{"name":"t","description":"","parameters":{"type":"object","properties":{"query":{},"a":{}}}}"#;
        let tool: ToolSchema = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&tool).unwrap(), text);
    }
}
