//! What tasks did so far at an open checkpoint.

use super::records::Records;
use crate::command::Target;
use crate::error::RunError;
use crate::event::ChannelWrite;
use crate::interrupt::{Interrupt, Slot};
use crate::run::Spend;
use crate::value::Value;
use crate::world::Id;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What stands behind the path of a task where its error handler is meant.
pub(crate) const HANDLER: &str = "#handler";

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
    /// The node failed and was not tried again, and its error handler began: the handler runs when the task goes on, and
    /// not the node.
    Caught(RunError),
    /// What the task has spent at this checkpoint, all invocations together.
    Spent(Spend),
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
    /// A static breakpoint was met here: going on passes it.
    Paused,
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

/// A journaled call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Names the call within its task.
    pub key: Arc<str>,
    /// A hash of what the call was given.
    pub input: u64,
    /// How often it was started or asked about: what tells one time from the next.
    pub times: u32,
    /// How it stands.
    pub state: CallState,
    /// Whether it stems from an open task whose state was updated since: met with another input, it is another call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub carried: bool,
}

/// How a journaled call stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// It is known not to have taken place since it was last started.
    Idle,
    /// It was started; whether it took place is not known.
    Started,
    /// It finished with this result.
    Done(Value),
}

/// Names a record within its checkpoint: putting one with the key of another replaces it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecordKey {
    /// The path of the task.
    pub task: Arc<str>,
    /// The kind, and what tells records of the kind apart: `done`, `call/<key>`, `asked/<call>/<ordinal>`, ...
    pub name: String,
}

impl RecordKey {
    /// The name of a question.
    pub(crate) fn asked(task: &Arc<str>, slot: &Slot) -> Self {
        Self {
            task: task.clone(),
            name: slot.name("asked"),
        }
    }

    /// The name of the mark of a failure.
    pub(crate) fn failed(task: &Arc<str>) -> Self {
        Self {
            task: task.clone(),
            name: "failed".to_owned(),
        }
    }
}

impl Record {
    /// The name of this record within its checkpoint.
    #[must_use]
    pub fn key(&self) -> RecordKey {
        let name = match &self.kind {
            RecordKind::Done { .. } => "done".to_owned(),
            RecordKind::Failed(_) => "failed".to_owned(),
            RecordKind::Caught(_) => "caught".to_owned(),
            RecordKind::Spent(_) => "spent".to_owned(),
            RecordKind::Asked { slot, .. } => slot.name("asked"),
            RecordKind::Answered { slot, .. } => slot.name("answered"),
            RecordKind::Call(call) => format!("call/{}", call.key),
            RecordKind::Paused => "paused".to_owned(),
            RecordKind::Command { id, .. } => format!("command/{id}"),
        };
        RecordKey {
            task: self.task.clone(),
            name,
        }
    }
}

/// One change of the records at a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
        for (state, json) in [
            (CallState::Idle, r#""idle""#),
            (CallState::Started, r#""started""#),
            (CallState::Done(Value::Null), r#"{"done":null}"#),
            (CallState::Done(1.into()), r#"{"done":1}"#),
        ] {
            assert_eq!(serde_json::to_string(&state).unwrap(), json);
            assert_eq!(serde_json::from_str::<CallState>(json).unwrap(), state);
        }
    }
}
