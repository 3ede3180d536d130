//! How the program ends, as a number.

use std::process::ExitCode;
use tine::engine::{Exit, RunError, StoreError};

/// The exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// All is done.
    Done = 0,
    /// `validate` found errors.
    Findings = 1,
    /// The command, a file or an input is wrong; nothing ran.
    Usage = 2,
    /// The run waits for an answer, or at a breakpoint, or stopped between two steps as asked.
    Interrupted = 3,
    /// The run failed, or the home can not be used.
    Failed = 4,
    /// A limit stopped the run.
    Limit = 5,
    /// The run was cancelled.
    Cancelled = 130,
}

impl Status {
    /// The status that goes with the end of a run.
    pub(crate) fn of(exit: &Exit) -> Self {
        match exit {
            Exit::Done => Self::Done,
            Exit::Interrupted | Exit::Paused => Self::Interrupted,
            // Stopped where it can go on, as somebody asked.
            Exit::Drained => Self::Interrupted,
            Exit::StepLimit { .. } | Exit::Budget { .. } => Self::Limit,
            Exit::Cancelled => Self::Cancelled,
            // What else may come is no success.
            _ => Self::Failed,
        }
    }

    /// The status that goes with a run that was refused or broken off.
    pub(crate) fn of_error(error: &RunError) -> Self {
        match error {
            RunError::Store(StoreError::Unavailable { .. } | StoreError::Fenced { .. })
            | RunError::Node { .. }
            | RunError::NodeTimeout { .. }
            | RunError::IdleTimeout { .. }
            | RunError::StepTimeout { .. } => Self::Failed,
            RunError::StepLimit { .. } | RunError::VisitLimit { .. } | RunError::Budget { .. } => {
                Self::Limit
            }
            RunError::Cancelled => Self::Cancelled,
            _ => Self::Usage,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status as u8)
    }
}
