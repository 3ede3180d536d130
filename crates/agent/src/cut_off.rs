//! What a model was saying when its run was cancelled.
//!
//! Of a reply that is being streamed when a run is cancelled, the text is kept, for people saw it. It stands beside the
//! task, not in the conversation: when the thread goes on, the model is asked again, and the text is dropped. If new
//! input takes the place of the task instead, the text becomes a message before the input. Tool calls of such a reply
//! are never kept.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tine_engine::checkpoint::{CallState, RecordKind};
use tine_engine::message::Message;
use tine_engine::run::Call;
use tine_engine::{Checkpoint, NodeCx, NodeError, Value};
use tine_models::Delta;

/// The `finish_reason` in the `response_metadata` of such a message.
pub const CANCELLED: &str = "cancelled";

/// What the text is recorded under.
const KEY: &str = "model cut off";

fn call() -> Call {
    Call::new(KEY, &Value::Null)
}

/// What models were saying at the tasks that are pending at a checkpoint, as messages without ids.
#[must_use]
pub fn messages(checkpoint: &Checkpoint) -> Vec<Message> {
    let records = &checkpoint.records;
    let done = records.iter().filter_map(|record| match record.kind {
        RecordKind::Done { .. } => Some(&record.task),
        _ => None,
    });
    let done: BTreeSet<&Arc<str>> = done.collect();
    let said = records.iter().filter_map(|record| match &record.kind {
        RecordKind::Call(call) if &*call.key == KEY && !done.contains(&record.task) => {
            message(&call.state)
        }
        _ => None,
    });
    said.collect()
}

fn message(state: &CallState) -> Option<Message> {
    let CallState::Done(Value::Text(text)) = state else {
        return None;
    };
    let mut message = Message::ai(&**text);
    let reason = ("finish_reason", CANCELLED.into());
    message.response_metadata = Some(Value::from_pairs([reason]));
    Some(message)
}

/// What was kept of the reply that this task was getting.
pub(crate) fn kept(cx: &NodeCx) -> Option<Message> {
    message(&cx.recorded(&call())?)
}

/// Drops what was kept: the model is asked again.
///
/// # Errors
/// If that could not be made durable.
pub(crate) async fn drop_kept(cx: &NodeCx) -> Result<(), NodeError> {
    match kept(cx) {
        Some(_) => cx.abandon_calls(&[call()]).await,
        None => Ok(()),
    }
}

/// The text of a reply that comes, as far as it has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said(Arc<Mutex<String>>);

impl Said {
    /// Sees to it that the text is kept should the run be cancelled.
    pub(crate) fn keep(&self, cx: &NodeCx) {
        let said = self.clone();
        cx.keep_if_cancelled(&call(), move || {
            said.with(|text| (!text.is_empty()).then(|| text.as_str().into()))
        });
    }

    /// Hears more of it.
    pub(crate) fn hear(&self, delta: &Delta) {
        if let Delta::Text(more) = delta {
            self.with(|text| text.push_str(more));
        }
    }

    /// Forgets it: it is whole and kept otherwise, or it begins anew.
    pub(crate) fn forget(&self) {
        self.with(|text| text.clear());
    }

    fn with<R>(&self, work: impl FnOnce(&mut String) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
