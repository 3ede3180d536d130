//! What a run tells while it goes on.

use crate::checkpoint::Source;
use crate::command::Write;
use crate::error::panic_text;
use crate::interrupt::Interrupt;
use crate::run::Exit;
use crate::value::{Map, Value};
use crate::world::Id;
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

/// One event of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// The path of the graph that speaks: empty for the root, else node names joined with `/`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub namespace: Arc<str>,
    /// The step that is being made: the number of the checkpoint it will produce.
    pub step: i64,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// An invocation began.
    Started {
        /// The thread.
        thread: Arc<str>,
        /// The run, which goes on over interrupts and resumes.
        run: Id,
    },
    /// A step begins with these tasks, in run order.
    Step {
        /// The names of the nodes.
        tasks: Vec<Arc<str>>,
    },
    /// A task begins.
    TaskStarted {
        /// The node.
        node: Arc<str>,
        /// The path of the task within the step.
        task: Arc<str>,
        /// Counted from 1.
        attempt: u32,
    },
    /// A task finished.
    TaskFinished {
        /// The node.
        node: Arc<str>,
        /// The path of the task within the step.
        task: Arc<str>,
        /// What it wrote, in order.
        writes: Vec<ChannelWrite>,
        /// Whether the result was stored earlier and the node did not run now.
        cached: bool,
    },
    /// A task asks and waits.
    TaskInterrupted {
        /// The node.
        node: Arc<str>,
        /// The path of the task within the step.
        task: Arc<str>,
        /// The questions.
        interrupts: Vec<Interrupt>,
    },
    /// An attempt of a task failed.
    TaskFailed {
        /// The node.
        node: Arc<str>,
        /// The path of the task within the step.
        task: Arc<str>,
        /// Why.
        error: String,
        /// Whether another attempt follows.
        retried: bool,
    },
    /// The state after a step that wrote an output channel.
    Values {
        /// The output channels.
        values: Map,
    },
    /// A checkpoint was made, and is stored as the durability of the run says: with `Exit` most never are.
    Checkpoint {
        /// Its id.
        id: Id,
        /// What made it.
        source: Source,
        /// The nodes that run next, in run order.
        next: Vec<Arc<str>>,
    },
    /// A static breakpoint stopped the run.
    Breakpoint {
        /// The nodes of the step that are listed.
        nodes: Vec<Arc<str>>,
    },
    /// Something a node said while it ran: a token, a tool call, anything.
    Custom {
        /// The node.
        node: Arc<str>,
        /// What kind of thing, for listeners to tell apart.
        kind: Arc<str>,
        /// The thing.
        data: Value,
    },
    /// The invocation ended; nothing follows.
    Ended {
        /// How.
        exit: Exit,
    },
}

/// A write as events show it.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize)]
pub struct ChannelWrite {
    /// The channel.
    pub channel: Arc<str>,
    /// What was written.
    pub write: Write,
}

/// Hears the events of a run, in order, on the runner's task.
///
/// A listener must be quick: hand the event on, do not work on it here. One that panics hears nothing more of its run,
/// which goes on; [`Outcome::deaf`](crate::Outcome::deaf) says so.
///
/// ```
/// use std::sync::{Arc, mpsc};
/// use tine_engine::{Event, RunOptions};
///
/// let (events, heard) = mpsc::channel();
/// let listener = move |event: &Event| {
///     // Whoever heard may be gone.
///     let _ = events.send(event.clone());
/// };
/// let options = RunOptions { listener: Some(Arc::new(listener)), ..RunOptions::default() };
/// # drop((options, heard));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not listen to events",
    note = "closures `Fn(&Event)` do; wrap them in an `Arc`"
)]
pub trait Listener: Send + Sync {
    /// Hears one event.
    fn on_event(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> Listener for F {
    fn on_event(&self, event: &Event) {
        self(event);
    }
}

/// A listener that can not harm the run that it listens to.
pub(crate) struct Guarded {
    listener: Arc<dyn Listener>,
    /// What it panicked with. Then it hears nothing more.
    panicked: OnceLock<String>,
}

impl Guarded {
    pub(crate) fn new(listener: Arc<dyn Listener>) -> Self {
        Self {
            listener,
            panicked: OnceLock::new(),
        }
    }

    /// What the listener panicked with, if it did.
    pub(crate) fn panicked(&self) -> Option<String> {
        self.panicked.get().cloned()
    }
}

impl Listener for Guarded {
    fn on_event(&self, event: &Event) {
        if self.panicked.get().is_some() {
            return;
        }
        let told = AssertUnwindSafe(|| self.listener.on_event(event));
        if let Err(payload) = catch_unwind(told) {
            self.panicked.get_or_init(|| panic_text(&*payload));
        }
    }
}
