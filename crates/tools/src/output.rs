use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tine_engine::message::Content;
use tine_engine::{Update, Value, Write};

/// What a call of a tool gives.
///
/// It can be stored and read back: a call's output is journaled, so that a
/// task that runs again does not call the tool again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutput {
    /// A text for the model.
    Text(Arc<str>),
    /// Content blocks for the model.
    Blocks(Vec<Value>),
    /// Writes to channels, perhaps a route, perhaps a reply for the model.
    Command(ToolCommand),
}

impl ToolOutput {
    /// Makes a text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// Gives what the model is told; `None` for a command without a reply.
    #[must_use]
    pub fn reply(&self) -> Option<Content> {
        match self {
            Self::Text(text) => Some(Content::Text(Arc::clone(text))),
            Self::Blocks(blocks) => Some(Content::Blocks(blocks.clone())),
            Self::Command(command) => command.reply.clone(),
        }
    }
}

/// An output that changes more than the conversation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ToolCommand {
    /// What to write, to channels that the tool's manifest names.
    #[serde(with = "writes")]
    pub update: Update,
    /// A label of the tool's manifest, for the tools node to resolve.
    pub route: Option<String>,
    /// What the model is told. A command without a reply must have a route:
    /// the graph then answers the call.
    pub reply: Option<Content>,
}

/// An update as a list of its writes.
mod writes {
    use super::{Arc, Deserialize, Deserializer, Serialize, Serializer, Update, Write};

    pub(super) fn serialize<S: Serializer>(update: &Update, to: S) -> Result<S::Ok, S::Error> {
        let writes: Vec<(&Arc<str>, &Write)> = update.iter().collect();
        writes.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Update, D::Error> {
        let writes = Vec::<(Arc<str>, Write)>::deserialize(from)?;
        Ok(writes
            .into_iter()
            .fold(Update::new(), |update, (channel, write)| {
                update.with(channel, write)
            }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_output_survives_being_stored() {
        let command = ToolOutput::Command(ToolCommand {
            update: Update::new()
                .set("artifacts", "a.md")
                .overwrite("title", "t"),
            route: Some("clarify".to_owned()),
            reply: Some("done".into()),
        });
        for output in [ToolOutput::text("今天"), command] {
            let stored = tine_engine::to_value(&output).unwrap();
            let read: ToolOutput = tine_engine::from_value(&stored).unwrap();
            assert_eq!(format!("{read:?}"), format!("{output:?}"));
        }
    }
}
