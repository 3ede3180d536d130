//! A reply while it comes.

use crate::reply::{FinishReason, Usage};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One piece of a reply.
///
/// The pieces of a reply, folded by an [`Accumulator`](crate::Accumulator) in the order in which they came, are the
/// reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delta {
    /// More of the text.
    Text(String),
    /// More of what the model thinks before it answers.
    Reasoning(String),
    /// The beginning of a tool call, or more of its arguments.
    ToolCall(ToolCallDelta),
    /// What the reply cost so far; a later one replaces an earlier one.
    Usage(Usage),
    /// The name of the model that answers, as the provider says it.
    Model(Arc<str>),
    /// Something of the provider's own that later requests or people may need, kept as it came. Lists append, and all
    /// else is replaced.
    Extra {
        /// What it is: `reasoning_details`, `annotations`, ...
        key: Arc<str>,
        /// The value.
        value: serde_json::Value,
    },
    /// The reply is whole; why it ends here.
    Finish(FinishReason),
}

impl Delta {
    /// How many characters of the reply it brings.
    #[must_use]
    pub fn chars(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text.chars().count(),
            Self::ToolCall(call) => {
                let name = call.name.as_deref().unwrap_or_default();
                name.chars().count() + call.arguments.chars().count()
            }
            _ => 0,
        }
    }
}

/// A piece of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallDelta {
    /// Which call of the reply, counted from 0. Calls may come interleaved.
    pub index: u32,
    /// The id of the call. The first one counts: some providers send it with every piece, a few a new one each time.
    pub id: Option<Arc<str>>,
    /// The name of the tool, whole. Never a part of one: a repeated name is the same name.
    pub name: Option<Arc<str>>,
    /// More of the JSON text of the arguments.
    pub arguments: String,
    /// What else the provider attached to the call, kept as it came: signatures that it wants back.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// Hears the pieces of a reply as they come.
///
/// A sink must be quick: the model waits for it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not listen to a reply",
    note = "closures `FnMut(&Delta)` do; `Discard` hears nothing"
)]
pub trait DeltaSink: Send {
    /// Hears one piece.
    fn push(&mut self, delta: &Delta);
}

impl<F: FnMut(&Delta) + Send> DeltaSink for F {
    fn push(&mut self, delta: &Delta) {
        self(delta);
    }
}

/// A sink for those who want the whole reply only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl DeltaSink for Discard {
    fn push(&mut self, _: &Delta) {}
}
