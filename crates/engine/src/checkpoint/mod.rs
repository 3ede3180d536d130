//! Checkpoints: the state of a thread between two steps, and the trait of what stores them.
//!
//! A checkpoint stores what its step changed ([`Effect`]s), never whole values that did not change; loading replays
//! the effects from the last [`Effect::Set`] of each channel on, and runs no other code. Beside a checkpoint stand
//! [`Record`]s: what the tasks planned there did so far (finished tasks, open questions and their answers, journaled
//! calls, failures).

mod export;
mod memory;
mod merge;
mod questions;
mod record;
mod records;

pub use export::export;
pub use memory::MemoryCheckpointer;
pub(crate) use questions::{Open, asked_questions, epoch, open_questions};
pub(crate) use record::HANDLER;
pub use record::{CallRecord, CallState, Record, RecordKey, RecordKind, RecordOp};
pub(crate) use records::ByTask;

use crate::channel::Effect;
use crate::command::{Dispatch, Target};
use crate::error::StoreError;
use crate::event::ChannelWrite;
use crate::value::Map;
use crate::world::{Id, Timestamp};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Names a thread: one conversation or job of one tenant.
#[doc(alias = "thread_id")]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadKey {
    /// Whose thread it is.
    pub tenant: Arc<str>,
    /// Its id, any text; never used as a path.
    pub thread: Arc<str>,
}

impl ThreadKey {
    /// The tenant of programs that have only one.
    pub const LOCAL: &'static str = "local";

    /// A thread of the default tenant.
    pub fn local(thread: impl Into<Arc<str>>) -> Self {
        Self {
            tenant: Self::LOCAL.into(),
            thread: thread.into(),
        }
    }
}

impl fmt::Display for ThreadKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if &*self.tenant == Self::LOCAL {
            out.write_str(&self.thread)
        } else {
            write!(out, "{}/{}", self.tenant, self.thread)
        }
    }
}

/// What made a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// New input.
    Input,
    /// A step.
    Loop,
    /// An update from outside.
    Update,
    /// A branch off an older checkpoint.
    Fork,
}

/// A task that a checkpoint plans for the next step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlannedTask {
    /// The start of a run: writes the input, then fires the entry edges, or goes to `goto` instead if it is not empty.
    Start {
        /// The input, in order.
        writes: Vec<ChannelWrite>,
        /// Where to go instead of along the entry edges.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        goto: Vec<Target>,
    },
    /// A node reached by edges.
    Node(Arc<str>),
    /// A dispatch.
    Dispatch(Dispatch),
}

impl PlannedTask {
    /// The node that runs; [`START`](crate::START) for the start of a run.
    #[must_use]
    pub fn node(&self) -> &str {
        match self {
            Self::Start { .. } => crate::command::START,
            Self::Node(name) => name,
            Self::Dispatch(dispatch) => &dispatch.node,
        }
    }
}

/// The nodes of a plan that edges led to, or the start: who counts as having run last when it has been carried out.
pub(crate) fn by_edges(plan: &[PlannedTask]) -> Vec<Arc<str>> {
    let counts = plan
        .iter()
        .filter(|task| !matches!(task, PlannedTask::Dispatch(_)));
    counts.map(|task| task.node().into()).collect()
}

/// What one step did to one channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChannelEffects {
    /// The channel.
    pub channel: Arc<str>,
    /// The changes, in order.
    pub effects: Vec<Effect>,
}

/// A checkpoint about to be stored: what changed since its parent, and what comes next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advance {
    /// The id of the new checkpoint.
    pub id: Id,
    /// The checkpoint it follows; `None` starts a thread.
    pub parent: Option<Id>,
    /// Its number: -1 for the first input, then one more each.
    pub step: i64,
    /// What made it.
    pub source: Source,
    /// When.
    pub created: Timestamp,
    /// The run it belongs to.
    pub run: Id,
    /// The client's id of the invocation that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation: Option<Id>,
    /// The changes of the step, by channel, in channel order.
    pub effects: Vec<ChannelEffects>,
    /// What runs next, in run order.
    pub next: Vec<PlannedTask>,
    /// Joins that have seen some but not all of their sources: name of the join to the sources seen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub joins: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// Deferred nodes that were triggered and wait for everything else to end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred: Vec<Arc<str>>,
    /// The nodes that ran last, if steps between the parent and this checkpoint were not stored; else the parent's plan
    /// tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<Arc<str>>,
    /// What stands at the checkpoint from its first moment on, stored in the same commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<Record>,
}

/// A stored checkpoint, loaded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checkpoint {
    /// Its id.
    pub id: Id,
    /// The checkpoint it follows.
    pub parent: Option<Id>,
    /// Its number.
    pub step: i64,
    /// What made it.
    pub source: Source,
    /// When.
    pub created: Timestamp,
    /// The run it belongs to.
    pub run: Id,
    /// The client's id of the invocation that made it.
    pub invocation: Option<Id>,
    /// The channels that have a value.
    pub values: Map,
    /// What runs next, in run order.
    pub next: Vec<PlannedTask>,
    /// Joins in the middle of filling.
    pub joins: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// Deferred nodes that wait.
    pub deferred: Vec<Arc<str>>,
    /// The nodes that ran last, if the parent's plan does not tell: see [`Advance::ran`].
    pub ran: Vec<Arc<str>>,
    /// What the tasks planned here did so far, in the order it was recorded.
    pub records: Vec<Record>,
}

impl Checkpoint {
    /// The checkpoint that `advance` makes of the values of its parent.
    ///
    /// # Errors
    /// If an effect does not fit the value it changes.
    pub fn advanced(
        mut values: Map,
        advance: Advance,
    ) -> Result<Self, crate::channel::EffectError> {
        apply(advance.effects, &mut values)?;
        Ok(Self {
            id: advance.id,
            parent: advance.parent,
            step: advance.step,
            source: advance.source,
            created: advance.created,
            run: advance.run,
            invocation: advance.invocation,
            values,
            next: advance.next,
            joins: advance.joins,
            deferred: advance.deferred,
            ran: advance.ran,
            records: advance.records,
        })
    }

    /// The questions asked here that have no answer yet, in the order of their tasks.
    #[must_use]
    pub fn open_questions(&self) -> Vec<crate::interrupt::Interrupt> {
        let open = questions::open_questions(&self.records);
        open.into_iter().map(|open| open.interrupt).collect()
    }

    /// All questions asked here, answered or not, in the order of their tasks.
    #[must_use]
    pub fn all_questions(&self) -> Vec<crate::interrupt::Interrupt> {
        questions::all_questions(&self.records)
    }
}

/// Changes values as a step did.
fn apply(
    effects: impl IntoIterator<Item = ChannelEffects>,
    values: &mut Map,
) -> Result<(), crate::channel::EffectError> {
    for ChannelEffects { channel, effects } in effects {
        let mut value = values.remove(&channel);
        for effect in effects {
            effect.apply(&mut value)?;
        }
        if let Some(value) = value {
            values.insert(channel, value);
        }
    }
    Ok(())
}

/// A thread, as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadInfo {
    /// Its name.
    pub key: ThreadKey,
    /// When its first checkpoint was stored.
    pub created: Timestamp,
    /// When its newest checkpoint was stored.
    pub updated: Timestamp,
    /// How many checkpoints its root graph has.
    pub checkpoints: u64,
    /// What the host noted about it: graph file, configuration, ...
    pub meta: Map,
}

/// Which checkpoints of a thread to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The thread.
    pub thread: ThreadKey,
    /// The graph within it: empty for the root, else the namespace of a child.
    pub namespace: Arc<str>,
}

impl Scope {
    /// The root graph of a thread.
    #[must_use]
    pub fn root(thread: ThreadKey) -> Self {
        Self {
            thread,
            namespace: "".into(),
        }
    }
}

/// Stores threads.
///
/// The engine ships [`MemoryCheckpointer`]; `tine-stores` has durable ones. What an implementation must keep: a
/// checkpoint never changes once written, records are durable when [`ThreadWriter::record`] returns, and a thread has
/// one writer at a time. [`Checkpoint::advanced`] and [`RecordOp::apply_all`] do what every store has to do when it
/// loads; `examples/json_files` in the repository is a small store that works.
///
/// The methods with a body may be left out: runs need none of them. Copying and exporting threads, and asking from
/// outside that a run stops, do.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not store threads",
    note = "use `MemoryCheckpointer`, one of `tine-stores`, or implement `tine_engine::Checkpointer`"
)]
pub trait Checkpointer: Send + Sync {
    /// Takes the thread for writing, until the writer is dropped.
    ///
    /// # Errors
    /// [`StoreError::Held`] if another writer has it.
    async fn open(&self, thread: &ThreadKey) -> Result<Arc<dyn ThreadWriter>, StoreError>;

    /// Loads a checkpoint with its records: the newest, or the one with this id.
    ///
    /// `None` if there is none. Takes no lease.
    ///
    /// # Errors
    /// If stored data is damaged or the store is not available.
    async fn load(&self, scope: &Scope, id: Option<Id>) -> Result<Option<Checkpoint>, StoreError>;

    /// Loads checkpoints, newest first: at most `limit`, and only those older than `before`.
    ///
    /// # Errors
    /// If stored data is damaged or the store is not available.
    async fn history(
        &self,
        scope: &Scope,
        before: Option<Id>,
        limit: Option<usize>,
    ) -> Result<Vec<Checkpoint>, StoreError>;

    /// Says what is known of a thread; `None` if there is no such thread.
    ///
    /// # Errors
    /// If the store is not available.
    async fn thread(&self, thread: &ThreadKey) -> Result<Option<ThreadInfo>, StoreError>;

    /// Lists the threads of a tenant, the newest first.
    ///
    /// # Errors
    /// If the store is not available.
    async fn threads(&self, tenant: &str) -> Result<Vec<ThreadInfo>, StoreError>;

    /// Deletes a thread with everything in it; false if there was none, or nothing in it.
    ///
    /// # Errors
    /// [`StoreError::Held`] if it has a writer.
    async fn delete(&self, thread: &ThreadKey) -> Result<bool, StoreError>;

    /// Lists the graphs of a thread that have checkpoints, by their namespaces, in order: the root, whose namespace is
    /// empty, comes first. None if there is no such thread.
    ///
    /// # Errors
    /// If the store is not available, or can not tell.
    async fn namespaces(&self, thread: &ThreadKey) -> Result<Vec<Arc<str>>, StoreError> {
        unsupported(format!("listing the graphs of thread `{thread}`"))
    }

    /// Reads checkpoints as they were stored, oldest first: what each changed, not what came of it. Begins with the one
    /// of number `from`, counted from 0 in the order in which they were stored, and gives at most `limit`.
    ///
    /// Each has its records as they stand now, without the finished writes ([`RecordKind::Done`]) of one that has
    /// children. So [`ThreadWriter::advance`] with one after the other makes the same checkpoints again, elsewhere or
    /// under another name.
    ///
    /// # Errors
    /// If stored data is damaged or the store is not available, or can not tell.
    async fn advances(
        &self,
        scope: &Scope,
        from: u64,
        limit: Option<usize>,
    ) -> Result<Vec<Advance>, StoreError> {
        let _ = (from, limit);
        let thread = &scope.thread;
        unsupported(format!(
            "reading what each step of thread `{thread}` changed"
        ))
    }

    /// Gives a thread another name, with everything in it, in one commit; false if there is no such thread.
    ///
    /// # Errors
    /// [`StoreError::Exists`] if there is a thread of that name, [`StoreError::Held`] if one of the two has a writer; or
    /// if the store is not available, or can not rename.
    async fn rename(&self, thread: &ThreadKey, to: &ThreadKey) -> Result<bool, StoreError> {
        unsupported(format!("renaming thread `{thread}` to `{to}`"))
    }

    /// Asks the writer of a thread to let it go. Gives who has it, as far as is known; `None` if nobody does.
    ///
    /// This only leaves the wish: who runs the thread looks for it with [`is_asked_to_stop`](Self::is_asked_to_stop) and
    /// ends the run, or does not. It is gone when the writer is.
    ///
    /// # Errors
    /// If the store is not available, or has no such wishes.
    async fn ask_to_stop(&self, thread: &ThreadKey) -> Result<Option<String>, StoreError> {
        unsupported(format!("asking who runs thread `{thread}` to stop"))
    }

    /// Asks again, but only this holder, as [`ask_to_stop`](Self::ask_to_stop) named it: it may have let the thread go
    /// and taken it again. False if nobody has the thread, or somebody else: they are not asked.
    ///
    /// # Errors
    /// If the store is not available, or has no such wishes.
    async fn ask_again_to_stop(
        &self,
        thread: &ThreadKey,
        holder: &str,
    ) -> Result<bool, StoreError> {
        let _ = holder;
        unsupported(format!("asking who runs thread `{thread}` to stop"))
    }

    /// Whether somebody asked the writer that a thread has now to let it go. Takes little, and no lease.
    ///
    /// # Errors
    /// If the store is not available.
    async fn is_asked_to_stop(&self, thread: &ThreadKey) -> Result<bool, StoreError> {
        let _ = thread;
        Ok(false)
    }
}

fn unsupported<T>(what: String) -> Result<T, StoreError> {
    Err(StoreError::Unsupported { what })
}

/// The one writer of a thread. Dropping it lets the thread go.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not write to a thread",
    note = "a `Checkpointer` gives its own writer from `open`: implement `tine_engine::checkpoint::ThreadWriter` for it"
)]
pub trait ThreadWriter: Send + Sync {
    /// Stores a checkpoint with its first records, and makes it the newest of its namespace. In the same commit the
    /// finished writes recorded at its parent ([`RecordKind::Done`]) may go; all other records stay.
    ///
    /// # Errors
    /// [`StoreError::UnknownCheckpoint`] if the parent is not there; or if the checkpoint could not be made durable. Then
    /// nothing of it is stored.
    async fn advance(&self, namespace: &Arc<str>, advance: Advance) -> Result<(), StoreError>;

    /// Stores and removes records at a checkpoint, all or none.
    ///
    /// # Errors
    /// If they could not be made durable; then nothing of them is stored.
    async fn record(
        &self,
        namespace: &Arc<str>,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError>;

    /// Merges entries into what the host noted about the thread.
    ///
    /// # Errors
    /// If they could not be made durable.
    async fn note(&self, entries: Map) -> Result<(), StoreError>;
}
