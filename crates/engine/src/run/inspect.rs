//! Reading threads.

use super::Runner;
use super::child::child_namespace;
use super::open::load_thread;
use crate::checkpoint::{ByTask, Checkpoint, RecordKind, Scope, Source, ThreadKey};
use crate::error::RunError;
use crate::interrupt::Interrupt;
use crate::state::ChannelIx;
use crate::step::{Done, Results, Task, ThreadState, apply, plan_unlimited};
use crate::value::Map;
use crate::world::{Id, Timestamp};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The state of a thread at a checkpoint.
#[doc(alias = "StateSnapshot")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// The checkpoint.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invocation: Option<Id>,
    /// The channels that have a value.
    pub values: Map,
    /// The tasks that run next, in run order.
    pub next: Vec<Pending>,
    /// The questions asked there: for the newest state those that are open, in a history all.
    pub interrupts: Vec<Interrupt>,
}

/// A task that runs next.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pending {
    /// Its node.
    pub node: Arc<str>,
    /// Why its last attempt failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// The state of the child graph that it is in the middle of, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<Box<Snapshot>>,
}

/// Which checkpoints of a thread to read; all that is given must hold. A number is a limit alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// At most so many, the newest.
    pub limit: Option<usize>,
    /// Only those stored before this one.
    pub before: Option<Id>,
    /// Only those of this source.
    pub source: Option<Source>,
    /// Only those of this number.
    pub step: Option<i64>,
    /// Only those of this run.
    pub run: Option<Id>,
    /// Only those that this invocation made, by the client's id.
    pub invocation: Option<Id>,
}

/// How many checkpoints are read at once when most may not be wanted.
const PIECE: usize = 100;

impl HistoryQuery {
    fn filters(&self) -> bool {
        self.source.is_some()
            || self.step.is_some()
            || self.run.is_some()
            || self.invocation.is_some()
    }

    fn selects(&self, checkpoint: &Checkpoint) -> bool {
        self.source.is_none_or(|source| source == checkpoint.source)
            && self.step.is_none_or(|step| step == checkpoint.step)
            && self.run.is_none_or(|run| run == checkpoint.run)
            && (self.invocation.is_none() || self.invocation == checkpoint.invocation)
    }
}

impl From<Option<usize>> for HistoryQuery {
    fn from(limit: Option<usize>) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }
}

impl From<usize> for HistoryQuery {
    fn from(limit: usize) -> Self {
        Some(limit).into()
    }
}

impl Runner {
    /// The newest state of a thread: with the writes of tasks that finished in an open step, and without those tasks.
    /// `None` if there is no such thread.
    ///
    /// # Errors
    /// Without a checkpointer, or if the stored thread can not be read or does not fit the graph.
    #[doc(alias = "get_state")]
    pub async fn state(&self, thread: &ThreadKey) -> Result<Option<Snapshot>, RunError> {
        self.read(&Scope::root(thread.clone()), false).await
    }

    /// As [`Runner::state`], with the states of child graphs in the middle of which the thread is, at any depth. Only
    /// nodes that are graphs are looked into ([`Node::subgraph`](crate::Node::subgraph)).
    ///
    /// # Errors
    /// As [`Runner::state`].
    pub async fn state_with_children(
        &self,
        thread: &ThreadKey,
    ) -> Result<Option<Snapshot>, RunError> {
        self.read(&Scope::root(thread.clone()), true).await
    }

    async fn read(&self, scope: &Scope, children: bool) -> Result<Option<Snapshot>, RunError> {
        let checkpointer = self.stored("reading a thread")?;
        let Some(checkpoint) = checkpointer.load(scope, None).await? else {
            return Ok(None);
        };
        let (mut snapshot, paths) = self.newest(&checkpoint)?;
        if children {
            for (task, path) in snapshot.next.iter_mut().zip(&paths) {
                let child = self.child_state(scope, checkpoint.id, &task.node, path);
                task.child = Box::pin(child).await?.map(Box::new);
            }
        }
        Ok(Some(snapshot))
    }

    /// The state of the child graph that a pending task runs, if it began.
    async fn child_state(
        &self,
        scope: &Scope,
        checkpoint: Id,
        node: &str,
        path: &str,
    ) -> Result<Option<Snapshot>, RunError> {
        let def = self.graph.find(node).map(|ix| self.graph.node(ix));
        let Some(subgraph) = def.and_then(|def| def.node.subgraph()) else {
            return Ok(None);
        };
        let child = Self {
            graph: subgraph.graph.clone(),
            ..self.clone()
        };
        let scope = Scope {
            thread: scope.thread.clone(),
            namespace: child_namespace(&scope.namespace, path, "", checkpoint, subgraph.memory),
        };
        child.read(&scope, true).await
    }

    /// The state at one checkpoint as it was stored: without the writes of tasks that finished there since, and with all
    /// tasks and questions of the step.
    ///
    /// # Errors
    /// As [`Runner::state`]; and if the thread has no such checkpoint.
    #[doc(alias = "get_state")]
    pub async fn state_at(&self, thread: &ThreadKey, id: Id) -> Result<Snapshot, RunError> {
        let checkpointer = self.stored("reading a thread")?;
        let scope = Scope::root(thread.clone());
        match checkpointer.load(&scope, Some(id)).await? {
            Some(checkpoint) => self.as_stored(&checkpoint),
            None => Err(RunError::UnknownCheckpoint {
                thread: thread.to_string().into(),
                id,
            }),
        }
    }

    /// The checkpoints of a thread as they were stored, newest first: all, a number of them, or those that a query
    /// selects.
    ///
    /// # Errors
    /// As [`Runner::state`]; and if the query begins before a checkpoint that the thread does not have.
    #[doc(alias = "get_state_history")]
    pub async fn history(
        &self,
        thread: &ThreadKey,
        query: impl Into<HistoryQuery>,
    ) -> Result<Vec<Snapshot>, RunError> {
        let checkpointer = self.stored("reading a thread")?;
        let query = query.into();
        let scope = Scope::root(thread.clone());
        let limit = query.limit.unwrap_or(usize::MAX);
        // What is filtered is read piece by piece, for most of it may not be wanted.
        let piece = if query.filters() {
            Some(PIECE)
        } else {
            query.limit
        };
        let mut before = query.before;
        let mut found = Vec::new();
        while found.len() < limit {
            let checkpoints = checkpointer.history(&scope, before, piece).await?;
            before = checkpoints.last().map(|checkpoint| checkpoint.id);
            let ended = piece.is_none_or(|piece| checkpoints.len() < piece);
            let wanted = checkpoints
                .iter()
                .filter(|checkpoint| query.selects(checkpoint));
            for checkpoint in wanted.take(limit - found.len()) {
                found.push(self.as_stored(checkpoint)?);
            }
            if ended || !query.filters() {
                break;
            }
        }
        // Nothing comes before the first checkpoint, and nothing before one that is not there.
        if let (true, Some(id)) = (found.is_empty(), query.before)
            && checkpointer.load(&scope, Some(id)).await?.is_none()
        {
            let thread = thread.to_string().into();
            return Err(RunError::UnknownCheckpoint { thread, id });
        }
        Ok(found)
    }

    fn as_stored(&self, checkpoint: &Checkpoint) -> Result<Snapshot, RunError> {
        let thread = load_thread(&self.graph, checkpoint)?;
        let asked = checkpoint.all_questions();
        Ok(self
            .snapshot(checkpoint, &thread, asked, &BTreeSet::new())
            .0)
    }

    /// The state at the newest checkpoint, with the paths of its pending tasks.
    fn newest(&self, checkpoint: &Checkpoint) -> Result<(Snapshot, Vec<Arc<str>>), RunError> {
        let mut thread = load_thread(&self.graph, checkpoint)?;
        let open = checkpoint.open_questions();
        let done: BTreeSet<&Arc<str>> = checkpoint
            .records
            .iter()
            .filter(|record| matches!(record.kind, RecordKind::Done { .. }))
            .map(|record| &record.task)
            .collect();
        let seen = if done.is_empty() {
            None
        } else {
            self.with_finished(checkpoint, &thread, &done)
        };
        let (mut snapshot, paths) = self.snapshot(checkpoint, &thread, open, &done);
        if let Some(seen) = seen {
            thread.state = seen.state;
            snapshot.values = self.values(&thread);
        }
        Ok((snapshot, paths))
    }

    /// The state with what the finished tasks of the open step wrote; `None` if their writes are in each other's way,
    /// which is told as an error when the step is applied.
    fn with_finished(
        &self,
        checkpoint: &Checkpoint,
        thread: &ThreadState,
        done: &BTreeSet<&Arc<str>>,
    ) -> Option<ThreadState> {
        let table = &self.graph.0.channels;
        let tasks: Vec<Task> = plan_unlimited(&self.graph, thread)
            .into_iter()
            .filter(|task| done.contains(&task.path))
            .collect();
        let records = ByTask::of(&checkpoint.records);
        let results = tasks.iter().map(|task| {
            let mut result = Done::default();
            for record in records.task(&task.path) {
                if let RecordKind::Done { writes, .. } = &record.kind {
                    let known = writes.iter().filter_map(|write| {
                        Some((table.find(&write.channel)?, write.write.clone()))
                    });
                    result.writes.extend(known);
                }
            }
            result
        });
        let results: Results = results.collect();
        let mut seen = ThreadState {
            effects: None,
            ..thread.clone()
        };
        apply(&self.graph, &mut seen, &tasks, results).ok()?;
        Some(seen)
    }

    fn snapshot(
        &self,
        checkpoint: &Checkpoint,
        thread: &ThreadState,
        interrupts: Vec<Interrupt>,
        done: &BTreeSet<&Arc<str>>,
    ) -> (Snapshot, Vec<Arc<str>>) {
        let records = ByTask::of(&checkpoint.records);
        let failed = |path: &Arc<str>| {
            let of_task = || records.task(path).iter();
            let last = of_task().find_map(|record| match &record.kind {
                RecordKind::Failed(error) => Some(error.clone()),
                _ => None,
            });
            // While the handler is at work, the task is what it was called for.
            last.or_else(|| {
                of_task().find_map(|record| match &record.kind {
                    RecordKind::Caught(error) => Some(error.clone()),
                    _ => None,
                })
            })
        };
        let mut dispatched = 0;
        let next = thread.next.iter().filter_map(|planned| {
            let named = planned.named(&self.graph);
            let node: Arc<str> = named.node().into();
            let mut path = node.clone();
            if matches!(named, crate::checkpoint::PlannedTask::Dispatch(_)) {
                path = format!("{node}#{dispatched}").into();
                dispatched += 1;
            }
            (!done.contains(&path)).then(|| {
                let pending = Pending {
                    error: failed(&path),
                    node,
                    child: None,
                };
                (pending, path)
            })
        });
        let (next, paths) = next.unzip();
        let snapshot = Snapshot {
            id: checkpoint.id,
            parent: checkpoint.parent,
            step: checkpoint.step,
            source: checkpoint.source,
            created: checkpoint.created,
            run: checkpoint.run,
            invocation: checkpoint.invocation,
            values: self.values(thread),
            next,
            interrupts,
        };
        (snapshot, paths)
    }

    fn values(&self, thread: &ThreadState) -> Map {
        let all: Vec<ChannelIx> = (0..).take(self.graph.0.declared).collect();
        thread.values(&self.graph, &all)
    }
}
