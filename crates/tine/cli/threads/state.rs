//! What a thread is about, read off its newest checkpoint.

use crate::cli::output::Tone;
use tine::engine::checkpoint::RecordKind;
use tine::engine::{Checkpoint, RunError};

/// Where a thread stands.
pub(super) enum State {
    /// Nothing is left to run.
    Done,
    /// It waits for answers.
    Asks,
    /// A task failed.
    Failed(RunError),
    /// It was stopped between two steps, or is running.
    Pending,
}

impl State {
    pub(super) fn of(checkpoint: Option<&Checkpoint>) -> Self {
        let Some(checkpoint) = checkpoint else {
            return Self::Pending;
        };
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

    /// The word for it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Asks => "interrupted",
            Self::Failed(_) => "failed",
            Self::Pending => "pending",
        }
    }

    pub(super) fn tone(&self) -> Tone {
        match self {
            Self::Done => Tone::Good,
            Self::Asks | Self::Pending => Tone::Hint,
            Self::Failed(_) => Tone::Bad,
        }
    }
}
