//! What the tasks of an invocation share.

use super::budget::Ledger;
use super::drain::Drain;
use super::durable::Durable;
use super::task::TaskCx;
use crate::cache::NodeCache;
use crate::checkpoint::{Checkpointer, RecordOp, ThreadKey};
use crate::command::START;
use crate::error::{Location, StoreError};
use crate::event::{Event, EventKind, Listener};
use crate::graph::Graph;
use crate::world::{Id, Timestamp, World};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What all tasks of an invocation share.
#[derive(Clone)]
pub(crate) struct RunCx {
    pub(crate) graph: Graph,
    pub(crate) world: Arc<dyn World>,
    pub(crate) thread: ThreadKey,
    /// Where the checkpoints of this graph are stored.
    pub(crate) namespace: Arc<str>,
    /// The path of this graph: the names of the nodes above it.
    pub(crate) graph_path: Arc<str>,
    pub(crate) run: Id,
    pub(crate) invocation: Option<Id>,
    pub(crate) listener: Option<Arc<dyn Listener>>,
    pub(crate) cancel: CancellationToken,
    pub(crate) checkpointer: Option<Arc<dyn Checkpointer>>,
    /// Whom checkpoints and records go to. Weak, so that a context that outlives its run neither holds the thread nor
    /// writes to it.
    pub(crate) writer: Option<Weak<Durable>>,
    pub(crate) cache: Option<Arc<dyn NodeCache>>,
    pub(crate) step_limit: u64,
    pub(crate) max_parallel: usize,
    pub(crate) start_name: Arc<str>,
    pub(crate) step_timeout: Option<Duration>,
    pub(crate) drain: Drain,
    /// Whether this graph stops when it is asked to. A child that keeps no state could not go on from there.
    pub(crate) drains: bool,
    pub(crate) ledger: Arc<Ledger>,
    /// Whether somebody listens to the spans of its steps and tasks.
    pub(crate) spans: bool,
    /// The task in which this graph runs, if it is not the root.
    pub(crate) host: Option<Arc<TaskCx>>,
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

    /// The time now and the id of the checkpoint that follows `head`, greater than that one's.
    ///
    /// Those of a child graph are not drawn from the world: children that run side by side would draw in the order in
    /// which they happen to get there. They follow from the time and from their place.
    pub(crate) fn stamp(&self, head: Id) -> (Timestamp, Id) {
        if self.graph_path.is_empty() {
            return self.world.stamp();
        }
        let now = self.world.now();
        let mut place = Vec::with_capacity(96);
        place.extend_from_slice(&self.run.0.to_be_bytes());
        place.extend_from_slice(&head.0.to_be_bytes());
        place.extend_from_slice(self.namespace.as_bytes());
        let hash = u128::from(xxhash_rust::xxh3::xxh3_64(&place));
        // As ids of the world, the time stands in the upper 48 bits; the next 16 count on within a millisecond.
        let time = u128::from(now.0) << 16;
        (now, Id((time.max((head.0 >> 64) + 1) << 64) | hash))
    }

    /// The id of the state after `head` where none is stored: for the names of what its tasks make and ask. They count on
    /// from a place that no other run has.
    pub(crate) fn unstored_id(&self, head: Id) -> Id {
        let head = match head.0 {
            0 => xxhash_rust::xxh3::xxh3_128(&self.run.0.to_be_bytes()),
            head => head,
        };
        Id(head.wrapping_add(1))
    }

    /// Tells listeners, if there are any.
    #[inline]
    pub(crate) fn emit(&self, step: i64, kind: impl FnOnce() -> EventKind) {
        if let Some(listener) = &self.listener {
            listener.on_event(&Event {
                namespace: self.graph_path.clone(),
                step,
                kind: kind(),
            });
        }
    }

    /// The writer of the thread; none if threads are not stored.
    ///
    /// # Errors
    /// [`StoreError::Over`] if the run is over.
    pub(crate) fn writer(&self) -> Result<Option<Arc<Durable>>, StoreError> {
        let Some(writer) = &self.writer else {
            return Ok(None);
        };
        match writer.upgrade() {
            Some(writer) => Ok(Some(writer)),
            None => Err(StoreError::Over {
                thread: self.thread.to_string().into(),
            }),
        }
    }

    /// Makes durable what this graph stored, and if it is the root what all did.
    ///
    /// # Errors
    /// If it can not be.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        match &self.writer {
            None => Ok(()),
            Some(writer) => match writer.upgrade() {
                Some(writer) => match self.namespace.is_empty() {
                    true => writer.flush(None).await,
                    false => writer.flush_child(&self.namespace).await,
                },
                // Nothing was written since the run is over.
                None => Ok(()),
            },
        }
    }

    /// Whether what a task finished with is stored while others of its step still run.
    pub(crate) fn records_early(&self) -> bool {
        let writer = self.writer.as_ref().and_then(Weak::upgrade);
        writer.is_some_and(|writer| writer.records_early())
    }

    /// Stores records at a checkpoint, if threads are stored.
    pub(crate) async fn record(
        &self,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError> {
        match self.writer()? {
            Some(writer) if !ops.is_empty() => {
                writer.record(&self.namespace, checkpoint, ops).await
            }
            _ => Ok(()),
        }
    }
}

/// The name of the start, made once a run.
pub(crate) fn start_name() -> Arc<str> {
    START.into()
}
