//! What the tasks of an invocation share.

use super::budget::Ledger;
use super::drain::Drain;
use super::task::TaskCx;
use crate::cache::NodeCache;
use crate::checkpoint::{Checkpointer, RecordOp, ThreadKey, ThreadWriter};
use crate::command::START;
use crate::error::{Location, StoreError};
use crate::event::{Event, EventKind, Listener};
use crate::graph::Graph;
use crate::world::{Id, World};
use std::sync::{Arc, Weak};
use std::time::Duration;
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
    /// Whom checkpoints and records go to. Weak, so that a context that outlives its run neither holds the thread nor
    /// writes to it.
    pub(crate) writer: Option<Weak<dyn ThreadWriter>>,
    pub(crate) cache: Option<Arc<dyn NodeCache>>,
    pub(crate) step_limit: u64,
    pub(crate) max_parallel: usize,
    pub(crate) start_name: Arc<str>,
    pub(crate) step_timeout: Option<Duration>,
    pub(crate) drain: Drain,
    /// Whether this graph stops when it is asked to. A child that keeps no state could not go on from there.
    pub(crate) drains: bool,
    pub(crate) ledger: Arc<Ledger>,
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

    /// The writer of the thread; none if threads are not stored.
    ///
    /// # Errors
    /// [`StoreError::Over`] if the run is over.
    pub(crate) fn writer(&self) -> Result<Option<Arc<dyn ThreadWriter>>, StoreError> {
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
