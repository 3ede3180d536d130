//! What a run is given, and what it gives.

use super::budget::{Budget, Spend};
use super::drain::Drain;
use crate::command::{ClientCommand, Command, Update};
use crate::error::RunError;
use crate::event::Listener;
use crate::graph::Breakpoints;
use crate::interrupt::{Interrupt, Resume};
use crate::value::Map;
use crate::world::Id;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What an invocation begins with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Input {
    /// New input; starts a run, on top of what the thread holds.
    New(Update),
    /// Answers to open questions.
    Resume(Resume),
    /// Goes on with what is planned: after a crash, a failure, a limit, a breakpoint.
    Continue,
    /// A client's command.
    Command(ClientCommand),
}

impl From<Update> for Input {
    fn from(update: Update) -> Self {
        Self::New(update)
    }
}

impl From<Resume> for Input {
    fn from(resume: Resume) -> Self {
        Self::Resume(resume)
    }
}

impl From<ClientCommand> for Input {
    fn from(command: ClientCommand) -> Self {
        Self::Command(command)
    }
}

/// What to do with input keys that are no input channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputPolicy {
    /// Refuse the input.
    #[default]
    Reject,
    /// Drop them.
    Ignore,
}

/// When checkpoints become durable. It governs checkpoints alone: the journal of calls, questions and answers is durable
/// before anyone is told of them, whatever is chosen here, and so is the checkpoint at which they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Each checkpoint before the next step begins. A crash loses at most the step under way.
    #[default]
    Sync,
    /// Checkpoints are written in their order while the run goes on, a few at most behind it, and all of them before
    /// the invocation ends. A crash loses those few steps. The first write that fails ends the run.
    ///
    /// The writing is done by a task of the tokio runtime; outside of one this is [`Sync`](Self::Sync).
    Async,
    /// One checkpoint at the end of the invocation, and where something must be recorded before it. A crash loses the
    /// steps of the invocation.
    Exit,
}

/// How an invocation is run.
#[derive(Clone)]
pub struct RunOptions {
    /// How many steps this invocation may make. A chain of n nodes needs n + 1, for the end is found in one more.
    #[doc(alias = "recursion_limit")]
    pub step_limit: u64,
    /// How many steps may run, counted as people count: a graph that ends after this many steps ends well.
    pub max_steps: Option<u64>,
    /// How many tasks of a step run at once.
    pub max_parallel: usize,
    /// Stops before these nodes, in place of the graph's own breakpoints.
    pub interrupt_before: Breakpoints,
    /// Stops after these nodes, in place of the graph's own breakpoints.
    pub interrupt_after: Breakpoints,
    /// What to do with unknown input keys.
    pub input_policy: InputPolicy,
    /// Hears the events.
    #[doc(alias = "stream")]
    pub listener: Option<Arc<dyn Listener>>,
    /// Cancels the run.
    pub cancel: CancellationToken,
    /// Begins at this checkpoint of the thread instead of the newest.
    ///
    /// With [`Input::Continue`] this is a replay: everything after the checkpoint runs again, on a branch of its own that
    /// begins with a checkpoint of source [`Fork`](crate::checkpoint::Source::Fork). An answer or a command at a
    /// checkpoint that the thread has moved past makes such a branch too, and so does new input, without the fork.
    /// Nothing that was stored is changed; the newest branch is what the thread goes on with.
    #[doc(alias = "checkpoint_id")]
    pub at: Option<Id>,
    /// The client's id of this invocation, kept by the checkpoints that it makes (LangGraph: `run_id`).
    ///
    /// New input under the id of the checkpoint at which it comes is the same call once more: the input is ignored, and
    /// the run goes on. So a client may repeat a call whose outcome it did not learn.
    pub invocation: Option<Id>,
    /// When checkpoints become durable.
    pub durability: Durability,
    /// How long a step may take. Tasks that are not finished then fail; the others are kept.
    pub step_timeout: Option<Duration>,
    /// Asks the run to stop at its next step boundary.
    pub drain: Drain,
    /// What the run may spend, counted over all its invocations.
    pub budget: Budget,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            step_limit: 10_007,
            max_steps: None,
            max_parallel: 64,
            interrupt_before: Breakpoints::None,
            interrupt_after: Breakpoints::None,
            input_policy: InputPolicy::Reject,
            listener: None,
            cancel: CancellationToken::new(),
            at: None,
            invocation: None,
            durability: Durability::Sync,
            step_timeout: None,
            drain: Drain::new(),
            budget: Budget::default(),
        }
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RunOptions")
            .field("step_limit", &self.step_limit)
            .field("max_steps", &self.max_steps)
            .field("max_parallel", &self.max_parallel)
            .field("interrupt_before", &self.interrupt_before)
            .field("interrupt_after", &self.interrupt_after)
            .field("input_policy", &self.input_policy)
            .field("step_timeout", &self.step_timeout)
            .field("budget", &self.budget)
            .field("listens", &self.listener.is_some())
            .field("at", &self.at)
            .field("invocation", &self.invocation)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}

/// How an invocation ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "exit", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Exit {
    /// Nothing is left to run.
    Done,
    /// Questions are open.
    Interrupted,
    /// A static breakpoint was met.
    Paused,
    /// A limit on steps or visits was met; the thread can go on.
    #[doc(alias = "GraphRecursionError")]
    StepLimit {
        /// Which limit.
        error: RunError,
    },
    /// The run has spent what it may; the thread can go on with a larger budget.
    Budget {
        /// Which budget.
        error: RunError,
    },
    /// The run stopped between two steps, as asked; the thread can go on.
    Drained,
    /// The run was cancelled; the thread can go on.
    Cancelled,
    /// Something failed; the thread can go on from the last good checkpoint.
    Failed {
        /// What.
        error: RunError,
    },
}

impl Exit {
    /// The name of the exit: `done`, `interrupted`, ...
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Interrupted => "interrupted",
            Self::Paused => "paused",
            Self::StepLimit { .. } => "step_limit",
            Self::Budget { .. } => "budget",
            Self::Drained => "drained",
            Self::Cancelled => "cancelled",
            Self::Failed { .. } => "failed",
        }
    }

    /// The error, if there was one.
    #[must_use]
    pub fn error(&self) -> Option<&RunError> {
        match self {
            Self::StepLimit { error } | Self::Budget { error } | Self::Failed { error } => {
                Some(error)
            }
            Self::Done | Self::Interrupted | Self::Paused | Self::Drained | Self::Cancelled => None,
        }
    }
}

/// What an invocation gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The output channels. Writes of tasks that finished in an open step show already.
    pub values: Map,
    /// How it ended.
    #[serde(flatten)]
    pub exit: Exit,
    /// The questions asked in this invocation that are open.
    pub interrupts: Vec<Interrupt>,
    /// The run.
    pub run: Id,
    /// How many questions were answered by the input; 0 also if it was an answer and nothing was asked.
    pub answered: usize,
    /// What the run has spent so far, over all its invocations; of a child graph, what the run of the root graph has.
    #[serde(skip_serializing_if = "Spend::is_zero")]
    pub spent: Spend,
    /// That the listener panicked, and with what; it heard nothing of the run from there on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deaf: Option<String>,
    /// What a child graph sends to the graph that contains it; the run ended with it.
    #[serde(skip)]
    pub(crate) to_parent: Vec<Command>,
    /// Ids of a lenient resume that belong to no open question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_ids: Vec<String>,
}

impl Outcome {
    /// The outcome as a result, for programs that are done with a run that failed: the error of one that failed or ran
    /// into a limit. One that asks, pauses, was drained or cancelled is no error.
    ///
    /// # Errors
    /// That of the run.
    pub fn into_result(self) -> Result<Self, RunError> {
        match self.exit.error() {
            Some(error) => Err(error.clone()),
            None => Ok(self),
        }
    }
}
