//! What belongs to one task.

use super::context::RunCx;
use crate::checkpoint::{CallRecord, Record, RecordKind};
use crate::error::Location;
use crate::graph::NodeIx;
use crate::interrupt::{Interrupt, Slot};
use crate::state::StateView;
use crate::step::{Task, TaskKind};
use crate::value::Value;
use crate::world::{Id, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A question just asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) slot: Slot,
    pub(crate) interrupt: Interrupt,
}

/// What belongs to one task, over all its attempts.
pub(crate) struct TaskCx {
    pub(crate) run: Arc<RunCx>,
    pub(crate) view: StateView,
    /// What the task was dispatched with.
    pub(crate) input: Option<Value>,
    pub(crate) node: Option<NodeIx>,
    pub(crate) path: Arc<str>,
    pub(crate) visits: u64,
    pub(crate) info: StepInfo,
    recorded: Recorded,
    calls: Mutex<BTreeMap<Arc<str>, CallRecord>>,
    attempt: Mutex<Attempt>,
}

/// What one attempt of a task has done so far. A later attempt begins anew; what an earlier one left running can not
/// disturb it.
#[derive(Debug, Default)]
struct Attempt {
    number: u32,
    /// How many questions each asker asked.
    questions: BTreeMap<Arc<str>, u32>,
    /// How many ids each asker made.
    ids: BTreeMap<Arc<str>, u32>,
    /// How many children each name had.
    children: BTreeMap<Arc<str>, u32>,
    keys: BTreeSet<Arc<str>>,
    asked: Vec<Asked>,
}

/// What was recorded of a task before.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    answers: BTreeMap<Slot, Value>,
    /// Questions without an answer.
    open: Vec<Slot>,
    calls: BTreeMap<Arc<str>, CallRecord>,
}

impl Recorded {
    /// What the records of a checkpoint say of the task at this path.
    pub(crate) fn of(records: &[Record], path: &str) -> Self {
        let mut recorded = Self::default();
        for record in records.iter().filter(|record| &*record.task == path) {
            match &record.kind {
                RecordKind::Asked { slot, .. } => recorded.open.push(slot.clone()),
                RecordKind::Answered { slot, value } => {
                    recorded.answers.insert(slot.clone(), value.clone());
                }
                RecordKind::Call(call) => {
                    recorded.calls.insert(call.key.clone(), call.clone());
                }
                _ => {}
            }
        }
        recorded
            .open
            .retain(|slot| !recorded.answers.contains_key(slot));
        recorded
    }
}

/// What the tasks of one step have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepInfo {
    /// The checkpoint at which they were planned.
    pub(crate) checkpoint: Id,
    /// The number of the checkpoint that the step will produce.
    pub(crate) step: i64,
    /// How many more steps fit after it.
    pub(crate) remaining: u64,
    /// When it began.
    pub(crate) now: Timestamp,
    /// How many client commands changed the state since the checkpoint.
    pub(crate) epoch: u32,
}

impl TaskCx {
    pub(crate) fn new(
        run: &Arc<RunCx>,
        view: &StateView,
        info: StepInfo,
        task: &Task,
        mut recorded: Recorded,
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
            info,
            calls: Mutex::new(std::mem::take(&mut recorded.calls)),
            recorded,
            attempt: Mutex::new(Attempt::default()),
        }
    }

    pub(crate) fn node_name(&self) -> &Arc<str> {
        self.node
            .map_or(&self.run.start_name, |node| &self.run.graph.node(node).name)
    }

    pub(crate) fn location(&self) -> Location {
        self.run.location(self.node_name())
    }

    pub(crate) fn is_start(&self) -> bool {
        self.node.is_none()
    }

    /// A hash of this task and more: the same whenever the task runs again, and on no other task.
    pub(crate) fn hash(&self, parts: &[&str]) -> u128 {
        let mut bytes = Vec::with_capacity(96);
        bytes.extend_from_slice(&self.info.checkpoint.0.to_be_bytes());
        for part in [&*self.run.namespace, &*self.path].iter().chain(parts) {
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(0xff); // in no UTF-8 text, so parts can not run into each other
        }
        xxhash_rust::xxh3::xxh3_128(&bytes)
    }

    /// Works on an attempt; on a throw-away one if a later attempt has begun.
    fn attempt<R>(&self, number: u32, work: impl FnOnce(&mut Attempt) -> R) -> R {
        let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if attempt.number > number {
            return work(&mut Attempt::default());
        }
        if attempt.number < number {
            *attempt = Attempt {
                number,
                ..Attempt::default()
            };
        }
        work(&mut attempt)
    }

    /// Counts the ids that an asker makes.
    pub(crate) fn next_id(&self, number: u32, call: &str) -> u32 {
        self.attempt(number, |attempt| count(&mut attempt.ids, call))
    }

    /// Counts the children of one name.
    pub(crate) fn next_child(&self, number: u32, name: &str) -> u32 {
        self.attempt(number, |attempt| count(&mut attempt.children, name))
    }

    /// The place of the next question of an asker.
    pub(crate) fn next_slot(&self, number: u32, call: &str) -> Slot {
        let ordinal = self.attempt(number, |attempt| count(&mut attempt.questions, call));
        self.slot(call, ordinal)
    }

    /// The place of a question in the present state of the step.
    pub(crate) fn slot(&self, call: &str, ordinal: u32) -> Slot {
        Slot {
            call: call.into(),
            ordinal,
            epoch: self.info.epoch,
        }
    }

    pub(crate) fn answer(&self, slot: &Slot) -> Option<&Value> {
        self.recorded.answers.get(slot)
    }

    pub(crate) fn ask(&self, number: u32, asked: Asked) {
        self.attempt(number, |attempt| attempt.asked.push(asked));
    }

    /// The questions this attempt asked, in a fixed order.
    pub(crate) fn take_asked(&self, number: u32) -> Vec<Asked> {
        let mut asked = self.attempt(number, |attempt| std::mem::take(&mut attempt.asked));
        asked.sort_by(|a, b| a.slot.cmp(&b.slot));
        asked
    }

    /// Questions of earlier invocations that were left open and are not among those asked now.
    pub(crate) fn dropped_questions<'a>(
        &'a self,
        asked: &'a [Asked],
    ) -> impl Iterator<Item = &'a Slot> {
        let open = self.recorded.open.iter();
        open.filter(|slot| !asked.iter().any(|asked| asked.slot == **slot))
    }

    /// Takes a key of the journal for this attempt; false if it was taken before.
    pub(crate) fn take_key(&self, number: u32, key: &Arc<str>) -> bool {
        self.attempt(number, |attempt| attempt.keys.insert(key.clone()))
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, CallRecord>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn recorded_call(&self, key: &str) -> Option<CallRecord> {
        self.calls().get(key).cloned()
    }

    pub(crate) fn note_calls(&self, calls: impl IntoIterator<Item = CallRecord>) {
        let calls = calls.into_iter().map(|call| (call.key.clone(), call));
        self.calls().extend(calls);
    }
}

/// How many came before under this name; counts one more.
fn count(counts: &mut BTreeMap<Arc<str>, u32>, name: &str) -> u32 {
    match counts.get_mut(name) {
        Some(count) => {
            *count += 1;
            *count - 1
        }
        None => {
            counts.insert(name.into(), 1);
            0
        }
    }
}
