//! What the tasks of an invocation share, and what belongs to each.

use crate::checkpoint::{CallRecord, Checkpointer, RecordOp, ThreadKey, ThreadWriter};
use crate::command::START;
use crate::error::{Location, StoreError};
use crate::event::{Event, EventKind, Listener};
use crate::graph::{Graph, NodeIx};
use crate::interrupt::{Interrupt, Slot};
use crate::state::StateView;
use crate::step::{Task, TaskKind};
use crate::value::Value;
use crate::world::{Id, Timestamp, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// What all tasks of an invocation share.
pub(crate) struct RunCx {
    pub(crate) graph: Graph,
    pub(crate) world: Arc<dyn World>,
    pub(crate) thread: ThreadKey,
    /// Where the checkpoints of this graph are stored.
    pub(crate) namespace: Arc<str>,
    /// The path of this graph: the names of the nodes above it.
    pub(crate) graph_path: Arc<str>,
    pub(crate) run: Id,
    pub(crate) listener: Option<Arc<dyn Listener>>,
    pub(crate) cancel: CancellationToken,
    pub(crate) checkpointer: Option<Arc<dyn Checkpointer>>,
    pub(crate) writer: Option<Arc<dyn ThreadWriter>>,
    pub(crate) step_limit: u64,
    pub(crate) max_parallel: usize,
    pub(crate) start_name: Arc<str>,
}

impl RunCx {
    /// The path of a node: the path of the graph and its name.
    pub(crate) fn node_path(&self, node: &str) -> String {
        if self.graph_path.is_empty() {
            node.to_owned()
        } else {
            format!("{}/{node}", self.graph_path)
        }
    }

    pub(crate) fn location(&self, node: &str) -> Location {
        let node = if node.is_empty() {
            String::new()
        } else {
            self.node_path(node)
        };
        Location {
            graph: self.graph.name().clone(),
            node: node.into(),
        }
    }

    /// Tells listeners, if there are any.
    pub(crate) fn emit(&self, step: i64, kind: impl FnOnce() -> EventKind) {
        if let Some(listener) = &self.listener {
            listener.on_event(&Event {
                namespace: self.graph_path.clone(),
                step,
                kind: kind(),
            });
        }
    }

    /// Stores records at a checkpoint, if threads are stored.
    pub(crate) async fn record(
        &self,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError> {
        match &self.writer {
            Some(writer) if !ops.is_empty() => {
                writer.record(&self.namespace, checkpoint, ops).await
            }
            _ => Ok(()),
        }
    }
}

/// A question just asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) slot: Slot,
    pub(crate) interrupt: Interrupt,
}

/// What belongs to one task.
pub(crate) struct TaskCx {
    pub(crate) run: Arc<RunCx>,
    pub(crate) view: StateView,
    /// What the task was dispatched with.
    pub(crate) input: Option<Value>,
    pub(crate) node: Option<NodeIx>,
    pub(crate) path: Arc<str>,
    pub(crate) visits: u64,
    /// The checkpoint at which the task was planned.
    pub(crate) checkpoint: Id,
    /// The number of the checkpoint that the step will produce.
    pub(crate) step: i64,
    pub(crate) remaining: u64,
    pub(crate) now: Timestamp,
    answers: Mutex<BTreeMap<Slot, Value>>,
    calls: Mutex<BTreeMap<Arc<str>, CallRecord>>,
    attempt: Mutex<Attempt>,
}

/// What one attempt of a task has done so far. A later attempt begins anew; what an earlier one left running can not
/// disturb it.
#[derive(Debug, Default)]
struct Attempt {
    number: u32,
    ordinals: BTreeMap<Arc<str>, u32>,
    ids: u32,
    keys: BTreeSet<Arc<str>>,
    asked: Vec<Asked>,
}

/// What was recorded of a task before.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) answers: BTreeMap<Slot, Value>,
    pub(crate) calls: BTreeMap<Arc<str>, CallRecord>,
}

/// What the tasks of one step have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepInfo {
    pub(crate) checkpoint: Id,
    pub(crate) step: i64,
    pub(crate) remaining: u64,
    pub(crate) now: Timestamp,
}

impl TaskCx {
    pub(crate) fn new(
        run: &Arc<RunCx>,
        view: &StateView,
        info: StepInfo,
        task: &Task,
        recorded: Recorded,
    ) -> Self {
        let (node, input) = match &task.kind {
            TaskKind::Start { .. } => (None, None),
            TaskKind::Node { node, input } => (Some(*node), input.clone()),
        };
        let reads = node.and_then(|node| run.graph.node(node).reads.clone());
        Self {
            run: run.clone(),
            view: StateView {
                reads,
                ..view.clone()
            },
            input,
            node,
            path: task.path.clone(),
            visits: task.visits,
            checkpoint: info.checkpoint,
            step: info.step,
            remaining: info.remaining,
            now: info.now,
            answers: Mutex::new(recorded.answers),
            calls: Mutex::new(recorded.calls),
            attempt: Mutex::new(Attempt::default()),
        }
    }

    pub(crate) fn node_name(&self) -> &Arc<str> {
        self.node
            .map_or(&self.run.start_name, |node| &self.run.graph.node(node).name)
    }

    /// A hash of this task and more: the same whenever the task runs again, and on no other task.
    pub(crate) fn hash(&self, parts: &[&str]) -> u128 {
        let mut bytes = Vec::with_capacity(96);
        bytes.extend_from_slice(&self.checkpoint.0.to_be_bytes());
        for part in [&*self.run.namespace, &*self.path].iter().chain(parts) {
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(0xff); // in no UTF-8 text, so parts can not run into each other
        }
        xxhash_rust::xxh3::xxh3_128(&bytes)
    }

    fn attempt(&self, number: u32) -> MutexGuard<'_, Attempt> {
        let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if attempt.number < number {
            *attempt = Attempt {
                number,
                ..Attempt::default()
            };
        }
        attempt
    }

    pub(crate) fn next_id(&self, number: u32) -> u32 {
        let mut attempt = self.attempt(number);
        attempt.ids += 1;
        attempt.ids
    }

    pub(crate) fn next_slot(&self, number: u32, call: &str) -> Slot {
        let mut attempt = self.attempt(number);
        let call: Arc<str> = call.into();
        let ordinal = attempt.ordinals.entry(call.clone()).or_default();
        *ordinal += 1;
        Slot {
            ordinal: *ordinal - 1,
            call,
        }
    }

    fn answers(&self) -> MutexGuard<'_, BTreeMap<Slot, Value>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn answer(&self, slot: &Slot) -> Option<Value> {
        self.answers().get(slot).cloned()
    }

    /// Where this call, or the question about it, was answered.
    pub(crate) fn answered(&self, asker: &str) -> Vec<Slot> {
        let answers = self.answers();
        let own = answers.keys().filter(|slot| &*slot.call == asker);
        own.cloned().collect()
    }

    /// Forgets an answer, so that the question is asked again.
    pub(crate) fn forget_answer(&self, slot: &Slot) {
        self.answers().remove(slot);
    }

    /// Questions about unknown outcomes whose answer was to give the call up. They are open again once the task failed.
    pub(crate) fn given_up(&self) -> Vec<Slot> {
        let answers = self.answers();
        let up = answers
            .iter()
            .filter(|(slot, answer)| slot.call.ends_with('?') && answer.as_str() == Some("fail"));
        up.map(|(slot, _)| slot.clone()).collect()
    }

    pub(crate) fn ask(&self, number: u32, asked: Asked) {
        let mut attempt = self.attempt(number);
        if attempt.number == number {
            attempt.asked.push(asked);
        }
    }

    /// The questions this attempt asked, in a fixed order.
    pub(crate) fn take_asked(&self, number: u32) -> Vec<Asked> {
        let mut asked = std::mem::take(&mut self.attempt(number).asked);
        asked.sort_by(|a, b| a.slot.cmp(&b.slot));
        asked
    }

    /// Takes a key of the journal for this attempt; false if it was taken before.
    pub(crate) fn take_key(&self, number: u32, key: &Arc<str>) -> bool {
        self.attempt(number).keys.insert(key.clone())
    }

    pub(crate) fn recorded_call(&self, key: &str) -> Option<CallRecord> {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(key)
            .cloned()
    }

    pub(crate) fn note_calls(&self, calls: impl IntoIterator<Item = CallRecord>) {
        let mut known = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(calls.into_iter().map(|call| (call.key.clone(), call)));
    }

    pub(crate) fn forget_calls<'a>(&self, keys: impl IntoIterator<Item = &'a Arc<str>>) {
        let mut known = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            known.remove(key);
        }
    }

    pub(crate) fn location(&self) -> Location {
        self.run.location(self.node_name())
    }

    pub(crate) fn is_start(&self) -> bool {
        self.node.is_none()
    }
}

/// The name of the start, made once a run.
pub(crate) fn start_name() -> Arc<str> {
    START.into()
}
