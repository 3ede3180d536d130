//! What a thread is about, read off its newest checkpoint.

use crate::cli::output::Tone;
use tine::engine::checkpoint::RecordKind;
use tine::engine::value::Map;
use tine::engine::{Checkpoint, RunError, Value};

/// The note that names the checkpoint at which a thread was cancelled.
pub(super) const CANCELLED: &str = "cancelled";

/// Where a thread stands.
pub(super) enum State {
    /// Nothing is left to run.
    Done,
    /// It waits for answers.
    Asks,
    /// What it had planned was given up.
    Cancelled,
    /// A task failed.
    Failed(RunError),
    /// It was stopped between two steps, or is running.
    Pending,
    /// An old checkpoint, which the thread has moved past.
    Passed,
}

impl State {
    /// Where a thread with these notes stands at a checkpoint.
    pub(super) fn of(meta: &Map, checkpoint: Option<&Checkpoint>) -> Self {
        let Some(checkpoint) = checkpoint else {
            return Self::Pending;
        };
        let cancelled = meta.get(CANCELLED).and_then(Value::as_str);
        if cancelled.is_some_and(|id| id == checkpoint.id.to_string()) {
            return Self::Cancelled;
        }
        let failed = checkpoint
            .records
            .iter()
            .find_map(|record| match &record.kind {
                RecordKind::Failed(error) => Some(error.clone()),
                _ => None,
            });
        match failed {
            Some(error) => Self::Failed(error),
            None if !checkpoint.open_questions().is_empty() => Self::Asks,
            None if checkpoint.next.is_empty() => Self::Done,
            None => Self::Pending,
        }
    }

    /// The same for an old checkpoint.
    pub(super) fn at(meta: &Map, checkpoint: Option<&Checkpoint>) -> Self {
        match Self::of(meta, checkpoint) {
            Self::Pending => Self::Passed,
            state => state,
        }
    }

    /// The word for it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Asks => "interrupted",
            Self::Failed(_) => "failed",
            Self::Pending => "pending",
            Self::Passed => "passed",
        }
    }

    pub(super) fn tone(&self) -> Tone {
        match self {
            Self::Done => Tone::Good,
            Self::Asks | Self::Cancelled | Self::Pending | Self::Passed => Tone::Hint,
            Self::Failed(_) => Tone::Bad,
        }
    }
}
