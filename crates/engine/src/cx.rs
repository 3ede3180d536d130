//! What a node can see and do while it runs.

use crate::channel::Channel;
use crate::checkpoint::ThreadKey;
use crate::error::{ErrorClass, HandledError, NodeError, NodeErrorKind};
use crate::event::{Event, EventKind, Listener};
use crate::interrupt::{Interrupt, InterruptId, Slot};
use crate::run::context::RunCx;
use crate::run::task::{Asked, TaskCx};
use crate::state::{Overlay, ReadError, StateView};
use crate::value::Value;
use crate::world::{Id, Timestamp, World};
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The context of one task: the frozen state, the task's own input, and the engine's services. Cheap to clone.
#[derive(Clone)]
pub struct NodeCx {
    pub(crate) task: Arc<TaskCx>,
    pub(crate) overlay: Option<Arc<Overlay>>,
    pub(crate) attempt: u32,
    /// The journaled call on whose behalf this context asks; none for the node itself.
    pub(crate) call: Option<Arc<str>>,
}

impl NodeCx {
    pub(crate) fn new(task: Arc<TaskCx>, attempt: u32) -> Self {
        Self {
            task,
            overlay: None,
            attempt,
            call: None,
        }
    }

    pub(crate) fn run_cx(&self) -> &RunCx {
        &self.task.run
    }

    fn call_key(&self) -> &str {
        self.call.as_deref().unwrap_or_default()
    }

    /// The state as it was when the step began; in a router, with the task's own writes.
    #[must_use]
    pub fn state(&self) -> StateView {
        StateView {
            overlay: self.overlay.clone(),
            ..self.task.view.clone()
        }
    }

    /// The decoded value of a channel; `None` if it is unset. See [`StateView::get`].
    ///
    /// # Errors
    /// If the channel is not of this graph, or holds another type.
    pub fn get<T: DeserializeOwned>(&self, channel: &Channel<T>) -> Result<Option<T>, ReadError> {
        if self.overlay.is_none() {
            self.task.view.get(channel)
        } else {
            self.state().get(channel)
        }
    }

    /// The decoded value of a channel, shared. See [`StateView::read`].
    ///
    /// # Errors
    /// If the channel is unset, is not of this graph, or holds another type.
    pub fn read<T: DeserializeOwned + Send + Sync + 'static>(
        &self,
        channel: &Channel<T>,
    ) -> Result<Arc<T>, ReadError> {
        if self.overlay.is_none() {
            self.task.view.read(channel)
        } else {
            self.state().read(channel)
        }
    }

    /// The value of the channel of this name; `None` if it is unset.
    #[must_use]
    pub fn value(&self, channel: &str) -> Option<Value> {
        self.state().value(channel).cloned()
    }

    /// What the task was dispatched with; `None` if its node was reached by an edge.
    #[doc(alias = "Send")]
    #[must_use]
    pub fn dispatched(&self) -> Option<&Value> {
        self.task.input.as_ref()
    }

    /// The input of the task: what it was dispatched with, else the set channels as a map.
    #[must_use]
    pub fn input(&self) -> Value {
        self.task
            .input
            .clone()
            .unwrap_or_else(|| self.state().to_map().into())
    }

    /// The name of the node; of its error handler, the name of the node and `#handler`.
    #[must_use]
    pub fn node(&self) -> &Arc<str> {
        self.task.node_name()
    }

    /// The path of the node: the names from the root graph down, joined with `/`.
    #[must_use]
    pub fn path(&self) -> String {
        self.run_cx().node_path(self.node())
    }

    /// The path of the graph: empty for the root, else the names of the nodes above, joined with `/`.
    #[must_use]
    pub fn graph_path(&self) -> &Arc<str> {
        &self.run_cx().graph_path
    }

    /// The thread.
    #[must_use]
    pub fn thread(&self) -> &ThreadKey {
        &self.run_cx().thread
    }

    /// The run, which goes on over interrupts and resumes.
    #[must_use]
    pub fn run_id(&self) -> Id {
        self.run_cx().run
    }

    /// The number of the checkpoint that this step will produce.
    #[must_use]
    pub fn step(&self) -> i64 {
        self.task.info.step
    }

    /// How many more steps fit, counted as LangGraph counts them: 1 on the last step from which the run can end well.
    #[must_use]
    pub fn remaining_steps(&self) -> u64 {
        self.task.info.remaining
    }

    /// Whether this is the last step from which the run can still end well.
    #[must_use]
    pub fn is_last_step(&self) -> bool {
        self.task.info.remaining == 1
    }

    /// How often this node has run in this run, this time included; 0 if the graph does not count visits.
    #[must_use]
    pub fn visits(&self) -> u64 {
        self.task.visits
    }

    /// The attempt, counted from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The time at which the step began.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.task.info.now
    }

    /// The world, for waiting.
    #[must_use]
    pub fn world(&self) -> &Arc<dyn World> {
        &self.run_cx().world
    }

    /// Cancelled when the run is.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.run_cx().cancel
    }

    /// A new id that is the same whenever this task is run again.
    #[must_use]
    pub fn new_id(&self) -> String {
        let call = self.call_key();
        let ordinal = self.task.next_id(self.attempt, call);
        format!(
            "{:032x}",
            self.task.hash(&[call, "id", &ordinal.to_string()])
        )
    }

    /// A key for the receiver of an effect, stable over the attempts of this call.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        format!("{:032x}", self.task.hash(&[self.call_key(), "idempotency"]))
    }

    /// Asks, and waits.
    ///
    /// The first time this returns an error that the node must hand on with `?`; the step then ends in an interrupt.
    /// When the answer has come the node runs again from its top, and this returns the answer. Several questions of
    /// one node are matched to their answers by their order.
    ///
    /// # Errors
    /// Until the question is answered.
    pub fn interrupt(&self, payload: impl Into<Value>) -> Result<Value, NodeError> {
        let slot = self.task.next_slot(self.attempt, self.call_key());
        self.ask_at(slot, || payload.into())
    }

    /// The answer to the question at this place; asks it if there is none.
    pub(crate) fn ask_at(
        &self,
        slot: Slot,
        payload: impl FnOnce() -> Value,
    ) -> Result<Value, NodeError> {
        if let Some(answer) = self.task.answer(&slot) {
            return Ok(answer.clone());
        }
        let task = &self.task;
        let id = InterruptId::of(task.info.checkpoint, &task.run.namespace, &task.path, &slot);
        let interrupt = Interrupt {
            id,
            node: self.path().into(),
            payload: payload(),
        };
        task.ask(self.attempt, Asked { slot, interrupt });
        Err(NodeError::interrupted())
    }

    /// Asks the run to stop at its next step boundary, as [`RunOptions::drain`](crate::RunOptions::drain) does.
    pub fn request_drain(&self) {
        self.run_cx().drain.request();
    }

    /// Whether the run was asked to stop at its next step boundary: work that takes long can end early.
    #[must_use]
    pub fn drain_requested(&self) -> bool {
        self.run_cx().drain.is_requested()
    }

    /// In an error handler, the failure that it handles.
    #[must_use]
    pub fn handled_error(&self) -> Option<&HandledError> {
        self.task.handles()
    }

    /// Says that the attempt goes on, which begins its idle timeout anew. Whatever the node tells or begins says so too.
    pub fn heartbeat(&self) {
        self.task.note_progress(self.attempt);
    }

    /// Refuses what an attempt that is over would still do.
    ///
    /// # Errors
    /// If it is over.
    pub(crate) fn check_attempt(&self) -> Result<(), NodeError> {
        if !self.task.is_over(self.attempt) {
            self.heartbeat();
            return Ok(());
        }
        let run = self.run_cx().writer();
        run.map_err(|error| NodeError::from_kind(NodeErrorKind::Run(Box::new(error.into()))))?;
        let message = format!(
            "attempt {} of `{}` is over; what it left running can do nothing any more",
            self.attempt,
            self.path()
        );
        Err(NodeError::new(ErrorClass::Canceled, message))
    }

    /// Tells listeners something, unless the attempt is over. Costs nothing if there are none.
    #[doc(alias = "get_stream_writer")]
    pub fn emit(&self, kind: &str, data: impl FnOnce() -> Value) {
        let run = self.run_cx();
        self.heartbeat();
        if let Some(listener) = &run.listener
            && !self.task.is_over(self.attempt)
        {
            self.tell(&**listener, kind, data());
        }
    }

    fn tell(&self, listener: &dyn Listener, kind: &str, data: Value) {
        let run = self.run_cx();
        let kind = EventKind::Custom {
            node: self.node().clone(),
            kind: kind.into(),
            data,
        };
        listener.on_event(&Event {
            namespace: run.graph_path.clone(),
            step: self.task.info.step,
            kind,
        });
    }
}

impl fmt::Debug for NodeCx {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NodeCx")
            .field("path", &self.path())
            .field("task", &self.task.path)
            .field("step", &self.task.info.step)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}
