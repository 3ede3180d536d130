//! What belongs to one task.

use super::budget::Spend;
use super::context::RunCx;
use crate::checkpoint::{ByTask, CallRecord, CallState, HANDLER, Record, RecordKind, RecordOp};
use crate::error::{HandledError, Location, RunError};
use crate::graph::NodeIx;
use crate::interrupt::{Interrupt, Slot};
use crate::state::StateView;
use crate::step::{Task, TaskKind};
use crate::value::Value;
use crate::world::{Id, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

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
    /// None in most steps, which nothing was recorded of before.
    recorded: Option<Box<Recorded>>,
    /// For the task of an error handler: what it handles.
    handles: Option<Box<Handles>>,
    /// How the task came to its end, if not by its node.
    other: OnceLock<Other>,
    /// The last attempt that is over: what it left running can do nothing any more.
    over: AtomicU32,
    /// Counts what shows that an attempt goes on.
    progress: AtomicU64,
    /// Made on first use, for most tasks do nothing but write.
    doings: Mutex<Option<Box<Doings>>>,
}

/// What a task does beside what it returns.
#[derive(Debug, Default)]
struct Doings {
    /// What the task has spent at its checkpoint, all invocations together.
    spent: Spend,
    calls: BTreeMap<Arc<str>, CallRecord>,
    attempt: Attempt,
    left: Option<Left>,
}

/// What is to be kept of work that a cancellation breaks off.
pub(crate) struct Left {
    /// The record, without its result.
    pub(crate) call: CallRecord,
    pub(crate) result: Box<dyn Fn() -> Option<Value> + Send + Sync>,
}

impl fmt::Debug for Left {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Left").field(&self.call.key).finish()
    }
}

/// Who ended a task in place of its node.
#[derive(Debug)]
enum Other {
    Handler(Arc<TaskCx>),
    Cache,
}

/// What an error handler handles.
#[derive(Debug)]
struct Handles {
    /// The name under which the handler is shown.
    name: Arc<str>,
    error: HandledError,
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
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    /// The error that was handed to the handler.
    caught: Option<RunError>,
    /// What was recorded of the handler; also of one that is yet to begin, if it was kept from another checkpoint.
    handler: Option<Box<Self>>,
    spent: Spend,
    answers: BTreeMap<Slot, Value>,
    /// Questions without an answer.
    open: Vec<Slot>,
    calls: BTreeMap<Arc<str>, CallRecord>,
}

impl Recorded {
    /// What the records of a checkpoint say of the task at this path.
    pub(crate) fn of(records: &ByTask<'_>, path: &str) -> Option<Box<Self>> {
        if records.is_empty() {
            return None;
        }
        let mut recorded = Self::of_one(records.task(path));
        let of_handler = records.task(&handler_name(path));
        if !of_handler.is_empty() {
            recorded.handler = Some(Self::of_one(of_handler));
        }
        Some(recorded)
    }

    fn of_one(records: &[&Record]) -> Box<Self> {
        let mut recorded = Box::<Self>::default();
        for record in records {
            match &record.kind {
                RecordKind::Asked { slot, .. } => recorded.open.push(slot.clone()),
                RecordKind::Answered { slot, value } => {
                    recorded.answers.insert(slot.clone(), value.clone());
                }
                RecordKind::Call(call) => {
                    recorded.calls.insert(call.key.clone(), call.clone());
                }
                RecordKind::Spent(spent) => recorded.spent = *spent,
                RecordKind::Caught(error) => recorded.caught = Some(error.clone()),
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
        view: StateView,
        info: StepInfo,
        task: &Task,
        mut recorded: Option<Box<Recorded>>,
    ) -> Self {
        let (node, input) = match &task.kind {
            TaskKind::Start { .. } => (None, None),
            TaskKind::Node { node, input } => (Some(*node), input.clone()),
        };
        let reads = node.and_then(|node| run.graph.node(node).reads.clone());
        Self {
            run: run.clone(),
            view: StateView { reads, ..view },
            input,
            node,
            path: task.path.clone(),
            visits: task.visits,
            info,
            doings: Mutex::new(doings_of(&mut recorded)),
            recorded,
            handles: None,
            other: OnceLock::new(),
            over: AtomicU32::new(0),
            progress: AtomicU64::new(0),
        }
    }

    /// The task of the error handler of this one: with the same input and view, and with questions, calls and ids of its
    /// own.
    pub(crate) fn handler(self: &Arc<Self>, error: &RunError) -> Arc<Self> {
        let name = self.node_name();
        let recorded = self.recorded.as_deref();
        let mut recorded = recorded.and_then(|recorded| recorded.handler.clone());
        let handles = Handles {
            name: handler_name(name).into(),
            error: HandledError::new(self.run.node_path(name).into(), error.clone()),
        };
        let handler = Arc::new(Self {
            run: self.run.clone(),
            view: self.view.clone(),
            input: self.input.clone(),
            node: self.node,
            path: handler_name(&self.path).into(),
            visits: self.visits,
            info: self.info,
            doings: Mutex::new(doings_of(&mut recorded)),
            recorded,
            handles: Some(Box::new(handles)),
            other: OnceLock::new(),
            over: AtomicU32::new(0),
            progress: AtomicU64::new(0),
        });
        // A task whose handler runs never runs its node again, so nothing was set before.
        self.other.get_or_init(|| Other::Handler(handler.clone()));
        handler
    }

    /// The error that an earlier invocation handed to the handler.
    pub(crate) fn caught(&self) -> Option<&RunError> {
        self.recorded.as_ref()?.caught.as_ref()
    }

    /// What this handles, if it is the task of an error handler.
    pub(crate) fn handles(&self) -> Option<&HandledError> {
        self.handles.as_ref().map(|handles| &handles.error)
    }

    /// Notes that the result came from the cache.
    pub(crate) fn note_cached(&self) {
        self.other.get_or_init(|| Other::Cache);
    }

    pub(crate) fn came_from_cache(&self) -> bool {
        matches!(self.other.get(), Some(Other::Cache))
    }

    /// Whether somebody answered the task, in which case its result depends on more than its input.
    pub(crate) fn was_answered(&self) -> bool {
        let recorded = self.recorded.as_ref();
        recorded.is_some_and(|recorded| !recorded.answers.is_empty())
    }

    /// Whose questions are those of the task: the handler's, once it runs.
    pub(crate) fn asker(&self) -> &Self {
        match self.other.get() {
            Some(Other::Handler(handler)) => handler,
            _ => self,
        }
    }

    /// The names of the node and of the task that are shown as having finished.
    pub(crate) fn finisher(&self) -> (Arc<str>, Arc<str>) {
        let asker = self.asker();
        let handled_before = self.caught().is_some() && std::ptr::eq(asker, self);
        match handled_before {
            true => (
                handler_name(self.node_name()).into(),
                handler_name(&self.path).into(),
            ),
            false => (asker.node_name().clone(), asker.path.clone()),
        }
    }

    pub(crate) fn node_name(&self) -> &Arc<str> {
        if let Some(handles) = &self.handles {
            return &handles.name;
        }
        self.node
            .map_or(&self.run.start_name, |node| &self.run.graph.node(node).name)
    }

    /// Ends an attempt: what it left running can do nothing any more.
    pub(crate) fn end_attempt(&self, number: u32) {
        self.over.fetch_max(number, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self, attempt: u32) -> bool {
        attempt <= self.over.load(Ordering::Relaxed)
    }

    /// Notes that an attempt goes on, and with it the tasks in which its graph runs.
    pub(crate) fn note_progress(&self, attempt: u32) {
        if self.is_over(attempt) {
            return;
        }
        let mut goes_on = Some(self);
        while let Some(task) = goes_on {
            task.progress.fetch_add(1, Ordering::Relaxed);
            goes_on = task.run.host.as_deref();
        }
    }

    /// Notes that the task has spent more.
    pub(crate) fn spend(&self, more: Spend) {
        self.doing(|doings| doings.spent = doings.spent.and(more));
    }

    /// What the task has spent at its checkpoint, without its handler.
    pub(crate) fn own_spent(&self) -> Spend {
        let doings = self.doings();
        doings
            .as_ref()
            .map_or_else(Spend::default, |doings| doings.spent)
    }

    /// What the task and its handler have spent at their checkpoint.
    pub(crate) fn spent(&self) -> Spend {
        let asker = self.asker();
        let handlers = match &self.recorded {
            _ if !std::ptr::eq(asker, self) => asker.own_spent(),
            Some(recorded) => spent_of(recorded.handler.as_deref()),
            None => Spend::default(),
        };
        self.own_spent().and(handlers)
    }

    /// Ends the attempts of this task and of its handler, those under way included.
    pub(crate) fn end_attempts(&self) {
        self.end_attempt(u32::MAX);
        self.asker().end_attempt(u32::MAX);
    }

    /// How often progress was noted.
    pub(crate) fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
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
        self.doing(|doings| {
            let attempt = &mut doings.attempt;
            if attempt.number > number {
                return work(&mut Attempt::default());
            }
            if attempt.number < number {
                *attempt = Attempt {
                    number,
                    ..Attempt::default()
                };
            }
            work(attempt)
        })
    }

    fn doings(&self) -> MutexGuard<'_, Option<Box<Doings>>> {
        self.doings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn doing<R>(&self, work: impl FnOnce(&mut Doings) -> R) -> R {
        work(self.doings().get_or_insert_default())
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
        self.recorded.as_ref()?.answers.get(slot)
    }

    pub(crate) fn ask(&self, number: u32, asked: Asked) {
        self.attempt(number, |attempt| attempt.asked.push(asked));
    }

    /// Whether this attempt asked something.
    pub(crate) fn asks(&self, number: u32) -> bool {
        let doings = self.doings();
        let attempt = doings.as_ref().map(|doings| &doings.attempt);
        attempt.is_some_and(|attempt| attempt.number == number && !attempt.asked.is_empty())
    }

    /// The questions this attempt asked, in a fixed order.
    pub(crate) fn take_asked(&self, number: u32) -> Vec<Asked> {
        if self.doings().is_none() {
            return Vec::new();
        }
        let mut asked = self.attempt(number, |attempt| std::mem::take(&mut attempt.asked));
        asked.sort_by(|a, b| a.slot.cmp(&b.slot));
        asked
    }

    /// Questions of earlier invocations that were left open and are not among those asked now.
    pub(crate) fn dropped_questions<'a>(
        &'a self,
        asked: &'a [Asked],
    ) -> impl Iterator<Item = &'a Slot> {
        let recorded = self.recorded.iter();
        let open = recorded.flat_map(|recorded| &recorded.open);
        open.filter(|slot| !asked.iter().any(|asked| asked.slot == **slot))
    }

    /// Takes a key of the journal for this attempt; false if it was taken before.
    pub(crate) fn take_key(&self, number: u32, key: &Arc<str>) -> bool {
        self.attempt(number, |attempt| attempt.keys.insert(key.clone()))
    }

    pub(crate) fn recorded_call(&self, key: &str) -> Option<CallRecord> {
        let doings = self.doings();
        doings.as_ref()?.calls.get(key).cloned()
    }

    /// Says what is to be kept if a cancellation breaks the task off.
    pub(crate) fn set_left(&self, left: Left) {
        self.doing(|doings| doings.left = Some(left));
    }

    /// The record of what is to be kept, now that a cancellation has broken the task off.
    pub(crate) fn left(&self) -> Option<RecordOp> {
        let asker = self.asker();
        let left = asker.doings().as_mut()?.left.take()?;
        // What nobody can tell is not kept; the run ends as it would have.
        let result = catch_unwind(AssertUnwindSafe(|| (left.result)())).ok()??;
        Some(RecordOp::Put(Record {
            task: asker.path.clone(),
            kind: RecordKind::Call(CallRecord {
                state: CallState::Done(result),
                ..left.call
            }),
        }))
    }

    pub(crate) fn note_calls(&self, calls: impl IntoIterator<Item = CallRecord>) {
        let calls = calls.into_iter().map(|call| (call.key.clone(), call));
        self.doing(|doings| doings.calls.extend(calls));
    }
}

impl fmt::Debug for TaskCx {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TaskCx")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// What a task did before.
fn doings_of(recorded: &mut Option<Box<Recorded>>) -> Option<Box<Doings>> {
    let recorded = recorded.as_mut()?;
    Some(Box::new(Doings {
        spent: recorded.spent,
        calls: std::mem::take(&mut recorded.calls),
        ..Doings::default()
    }))
}

fn spent_of(recorded: Option<&Recorded>) -> Spend {
    recorded.map_or_else(Spend::default, |recorded| recorded.spent)
}

/// The name of the error handler of what has this name. No node and no dispatch is called so.
pub(crate) fn handler_name(name: &str) -> String {
    format!("{name}{HANDLER}")
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
