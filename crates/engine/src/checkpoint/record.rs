//! What tasks did so far at an open checkpoint.

use super::records::Records;
use crate::command::Target;
use crate::error::RunError;
use crate::event::ChannelWrite;
use crate::interrupt::{Interrupt, Slot};
use crate::value::Value;
use crate::world::Id;
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::Arc;

/// One record at a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The path of the task within its step; empty for what came from outside.
    pub task: Arc<str>,
    /// What is recorded.
    pub kind: RecordKind,
}

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// The task finished.
    Done {
        /// What it wrote, in order.
        writes: Vec<ChannelWrite>,
        /// Where it goes, edges included.
        targets: Vec<Target>,
        /// Joins that it feeds.
        joins: Vec<Arc<str>>,
    },
    /// The last attempt failed.
    Failed(RunError),
    /// The task asked.
    Asked {
        /// Which of its questions.
        slot: Slot,
        /// The question.
        interrupt: Interrupt,
    },
    /// The question was answered.
    Answered {
        /// Which of its questions.
        slot: Slot,
        /// The answer.
        value: Value,
    },
    /// A journaled call.
    Call(CallRecord),
    /// A client command that came while the checkpoint was open.
    Command {
        /// Tells commands apart.
        id: Id,
        /// What it wrote.
        writes: Vec<ChannelWrite>,
        /// Where it goes.
        targets: Vec<Target>,
    },
}

/// A journaled call: started, or done with its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Names the call within its task.
    pub key: Arc<str>,
    /// A hash of what the call was given.
    pub input: u64,
    /// The result; `None` as long as the call is only known to have started.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "given"
    )]
    pub result: Option<Value>,
}

/// What is there is a result, also if it is null: a call that gave null is done.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Names a record within its checkpoint: putting one with the key of another replaces it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordKey {
    /// The path of the task.
    pub task: Arc<str>,
    /// The kind, and what tells records of the kind apart: `done`, `call/<key>`, `asked/<call>/<ordinal>`, ...
    pub name: String,
}

impl RecordKey {
    /// The names of a question and of its answer.
    pub(crate) fn question(task: &Arc<str>, slot: &Slot) -> [Self; 2] {
        ["asked", "answered"].map(|what| Self {
            task: task.clone(),
            name: format!("{what}/{}/{}", slot.call, slot.ordinal),
        })
    }
}

impl Record {
    /// The name of this record within its checkpoint.
    #[must_use]
    pub fn key(&self) -> RecordKey {
        let name = match &self.kind {
            RecordKind::Done { .. } => "done".to_owned(),
            RecordKind::Failed(_) => "failed".to_owned(),
            RecordKind::Asked { slot, .. } => format!("asked/{}/{}", slot.call, slot.ordinal),
            RecordKind::Answered { slot, .. } => format!("answered/{}/{}", slot.call, slot.ordinal),
            RecordKind::Call(call) => format!("call/{}", call.key),
            RecordKind::Command { id, .. } => format!("command/{id}"),
        };
        RecordKey {
            task: self.task.clone(),
            name,
        }
    }
}

/// One change of the records at a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordOp {
    /// Adds a record, in place of one with the same key; a replaced record keeps its place in the order.
    Put(Record),
    /// Takes a record away, if it is there.
    Remove(RecordKey),
}

impl RecordOp {
    /// Applies changes to the records of a checkpoint, for stores that keep them as a list.
    pub fn apply_all(ops: Vec<Self>, records: &mut Vec<Record>) {
        let mut all: Records = std::mem::take(records).into_iter().collect();
        all.apply(ops);
        records.extend(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_gave_null_is_done() {
        for (result, json) in [
            (None, r#"{"key":"k","input":1}"#),
            (Some(Value::Null), r#"{"key":"k","input":1,"result":null}"#),
            (Some(1.into()), r#"{"key":"k","input":1,"result":1}"#),
        ] {
            let call = CallRecord {
                key: "k".into(),
                input: 1,
                result,
            };
            assert_eq!(serde_json::to_string(&call).unwrap(), json);
            assert_eq!(serde_json::from_str::<CallRecord>(json).unwrap(), call);
        }
    }
}
