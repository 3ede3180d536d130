//! What a model answers.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tine_engine::message::{Content, InvalidToolCall, Message, ToolCall};
use tine_engine::value::{Map, Value};

/// A whole reply of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelReply {
    /// What the model says.
    pub content: Content,
    /// What it thought before, if the provider shows it.
    pub reasoning: Option<Arc<str>>,
    /// The tools it calls, in its order.
    pub calls: Vec<ReplyCall>,
    /// What it cost, if that is known.
    pub usage: Option<Usage>,
    /// Why it ends here.
    pub finish: FinishReason,
    /// The model that answered.
    pub model: Arc<str>,
    /// What the provider added of its own, as it came: `reasoning_details`, `annotations`, ...
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// A call of a tool in a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyCall {
    /// It can be executed: its arguments are a JSON object.
    Valid(ToolCall),
    /// It can not: its arguments are something else, or were cut off. It has an id, so that it can be answered.
    Invalid(InvalidToolCall),
}

/// Tokens of one request and its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Tokens of the reply.
    pub output_tokens: u64,
    /// Those of the request that the provider had in its cache.
    #[serde(default)]
    pub cached_input_tokens: u64,
    /// Whether the numbers are guessed from the length of the texts, because no provider counted.
    #[serde(default)]
    pub estimated: bool,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// Why a reply ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model has said what it had to say.
    Stop,
    /// It waits for the results of its calls.
    ToolCalls,
    /// It reached the most tokens of a reply.
    Length,
    /// The provider stopped it.
    ContentFilter,
    /// The stream broke off without saying why.
    Incomplete,
    /// A reason that only this provider has, in its words.
    Other(Arc<str>),
}

impl FinishReason {
    /// The reason that a name stands for: one of tine's own, or one that a provider gives, in any case.
    ///
    /// Reasons that say that a reply was broken off, by whatever, become such that are
    /// [cut off](FinishReason::is_cut_off); a name that nobody knows is kept.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let lower = name.to_ascii_lowercase();
        match lower.as_str() {
            "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "completed" => Self::Stop,
            "tool_calls" | "tool_call" | "tool_use" | "function_call" => Self::ToolCalls,
            "max_tokens" | "max_output_tokens" => Self::Length,
            "content_filter" | "safety" | "sensitive" | "recitation" => Self::ContentFilter,
            "incomplete"
            | "abort"
            | "aborted"
            | "cancelled"
            | "canceled"
            | "timeout"
            | "network_error"
            | "insufficient_system_resource" => Self::Incomplete,
            other => {
                let words = ["length", "truncat", "exceed", "context_window"];
                match words.iter().any(|word| other.contains(word)) {
                    true => Self::Length,
                    false => Self::Other(name.into()),
                }
            }
        }
    }

    /// Whether the reply may miss its end.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        matches!(self, Self::Length | Self::ContentFilter | Self::Incomplete)
    }

    /// The name, as metadata shows it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Incomplete => "incomplete",
            Self::Other(reason) => reason,
        }
    }
}

impl ModelReply {
    /// Turns the reply into the message that the conversation keeps.
    ///
    /// Reasoning goes to `additional_kwargs.reasoning_content`, what the provider added beside it; finish reason and model to `response_metadata`, with
    /// `usage_estimated: true` there if nobody counted the tokens.
    #[must_use]
    pub fn into_message(self) -> Message {
        let mut message = Message::ai("");
        message.content = self.content;
        for call in self.calls {
            match call {
                ReplyCall::Valid(call) => message.tool_calls.push(call),
                ReplyCall::Invalid(call) => message.invalid_tool_calls.push(call),
            }
        }
        let reasoning = self
            .reasoning
            .map(|text| ("reasoning_content".into(), Value::Text(text)));
        let extra = self.extra.into_iter();
        let attached: Map = extra
            .map(|(key, value)| (key.into(), Value::from_json(value)))
            .chain(reasoning)
            .collect();
        message.additional_kwargs = (!attached.is_empty()).then(|| attached.into());
        let mut metadata = Map::from([
            ("finish_reason".into(), self.finish.name().into()),
            ("model_name".into(), Value::Text(self.model)),
        ]);
        if let Some(usage) = self.usage {
            let counts = [
                ("input_tokens", usage.input_tokens),
                ("output_tokens", usage.output_tokens),
                ("total_tokens", usage.total_tokens()),
            ];
            let counts = counts.map(|(key, count)| (key, Value::from(count)));
            let cached = (usage.cached_input_tokens > 0).then(|| {
                let cached = [("cache_read", usage.cached_input_tokens.into())];
                ("input_token_details", Value::from_pairs(cached))
            });
            message.usage_metadata = Some(Value::from_pairs(counts.into_iter().chain(cached)));
            if usage.estimated {
                metadata.insert("usage_estimated".into(), true.into());
            }
        }
        message.response_metadata = Some(metadata.into());
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reason_is_known_by_its_name() {
        let own = [
            FinishReason::Stop,
            FinishReason::ToolCalls,
            FinishReason::Length,
            FinishReason::ContentFilter,
            FinishReason::Incomplete,
            FinishReason::Other("Made_Up".into()),
        ];
        for reason in own {
            assert_eq!(FinishReason::from_name(reason.name()), reason);
        }
        let check = |name: &str, expected: FinishReason| {
            assert_eq!(FinishReason::from_name(name), expected, "{name}");
        };
        check("MAX_TOKENS", FinishReason::Length);
        check("model_length", FinishReason::Length);
        check("model_context_window_exceeded", FinishReason::Length);
        check("Truncated", FinishReason::Length);
        check("cancelled", FinishReason::Incomplete);
        check("SAFETY", FinishReason::ContentFilter);
        check("tool_use", FinishReason::ToolCalls);
    }

    #[test]
    fn a_reply_becomes_a_message_in_langchains_json() {
        let reply = ModelReply {
            content: "好".into(),
            reasoning: Some("hm".into()),
            calls: vec![
                ReplyCall::Invalid(InvalidToolCall {
                    name: Some("ls".into()),
                    args: Some("{".into()),
                    id: Some("c1".into()),
                    error: Some("cut off".into()),
                }),
                ReplyCall::Valid(ToolCall {
                    name: "ls".into(),
                    args: Value::map(),
                    id: "c2".into(),
                }),
            ],
            usage: Some(Usage {
                input_tokens: 7,
                output_tokens: 2,
                cached_input_tokens: 5,
                estimated: true,
            }),
            finish: FinishReason::Length,
            model: "m1".into(),
            extra: json!({"annotations": [1]}).as_object().cloned().unwrap(),
        };
        assert_eq!(
            reply.into_message().to_value().unwrap().to_json(),
            json!({
                "type": "ai",
                "content": "好",
                "tool_calls": [{"name": "ls", "args": {}, "id": "c2"}],
                "invalid_tool_calls": [{"name": "ls", "args": "{", "id": "c1", "error": "cut off"}],
                "additional_kwargs": {"annotations": [1], "reasoning_content": "hm"},
                "usage_metadata": {
                    "input_tokens": 7, "output_tokens": 2, "total_tokens": 9, "input_token_details": {"cache_read": 5}
                },
                "response_metadata": {"finish_reason": "length", "model_name": "m1", "usage_estimated": true},
            })
        );
    }
}
