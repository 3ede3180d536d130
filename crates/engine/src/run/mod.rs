//! Running graphs: steps around the pure core, with everything that waits, fails or is stored.

mod answers;
mod attempt;
mod base;
mod begin;
mod bound;
mod budget;
mod cached;
mod child;
mod command;
pub(crate) mod context;
mod drain;
mod durable;
mod ends;
mod execute;
mod incomplete;
mod infer;
mod inspect;
mod journal;
mod limits;
mod open;
mod options;
mod schedule;
mod spans;
mod steps;
mod stored;
pub(crate) mod task;
mod update;

pub use budget::{Budget, Reservation, Spend, Spent};
pub use child::{ChildMemory, Subgraph};
pub use drain::Drain;
pub use inspect::{HistoryQuery, Pending, Snapshot};
pub use journal::{Call, Effects};
pub use options::{Durability, Exit, Input, InputPolicy, Outcome, RunOptions};
pub use update::{ThreadUpdate, UpdateAs};

use crate::cache::NodeCache;
use crate::checkpoint::{Checkpointer, Scope, ThreadKey};
use crate::error::RunError;
use crate::event::Guarded;
use crate::graph::Graph;
use crate::world::World;
use durable::Durable;
use std::fmt;
use std::sync::Arc;
use tracing::Instrument as _;

/// Runs a graph: takes a thread, an input, and the engine's surroundings.
#[derive(Clone)]
pub struct Runner {
    pub(crate) graph: Graph,
    pub(crate) checkpointer: Option<Arc<dyn Checkpointer>>,
    pub(crate) world: Arc<dyn World>,
    pub(crate) cache: Option<Arc<dyn NodeCache>>,
}

impl Runner {
    /// A runner without a checkpointer: threads are not stored, questions can not be answered. The world may be shared:
    /// an `Arc` of one is one.
    pub fn new(graph: Graph, world: impl World + 'static) -> Self {
        Self {
            graph,
            checkpointer: None,
            world: Arc::new(world),
            cache: None,
        }
    }

    /// Stores threads.
    #[must_use]
    pub fn with_checkpointer(mut self, checkpointer: Arc<dyn Checkpointer>) -> Self {
        self.checkpointer = Some(checkpointer);
        self
    }

    /// Keeps the results of nodes that have a cache policy, those of child graphs included. Without a cache they just
    /// run. The cache may be shared by runners whose graphs have different names.
    #[must_use]
    pub fn with_cache(mut self, cache: Arc<dyn NodeCache>) -> Self {
        self.cache = Some(cache);
        self
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Runs the graph on a thread until it is done, asks, or stops.
    ///
    /// That it gives an outcome does not mean that the graph is done: [`Outcome::exit`] says how it ended, and a node that
    /// failed is [`Exit::Failed`] there.
    ///
    /// # Errors
    /// If the invocation is refused before anything ran: an option that makes no sense, an unknown input or id, a
    /// thread that is held. What goes wrong later is the outcome's [`Exit::Failed`].
    #[doc(alias("ainvoke", "stream"))]
    pub async fn invoke(
        &self,
        thread: &ThreadKey,
        input: impl Into<Input>,
        mut options: RunOptions,
    ) -> Result<Outcome, RunError> {
        let guarded = options.listener.take().map(Guarded::new).map(Arc::new);
        options.listener = guarded.clone().map(|guarded| guarded as _);
        let span = spans::run(&self.graph, thread);
        let input = input.into();
        let outcome = match span.is_disabled() {
            true => self.invoke_root(thread, input, options).await,
            false => {
                let run = Box::pin(self.invoke_root(thread, input, options));
                let outcome = run.instrument(span.clone()).await;
                spans::ended(&span, &outcome);
                outcome
            }
        };
        outcome.map(|outcome| Outcome {
            deaf: guarded.and_then(|guarded| guarded.panicked()),
            ..outcome
        })
    }

    async fn invoke_root(
        &self,
        thread: &ThreadKey,
        input: Input,
        options: RunOptions,
    ) -> Result<Outcome, RunError> {
        let writer = match &self.checkpointer {
            Some(checkpointer) => {
                let writer = checkpointer.open(thread).await?;
                Some(Arc::new(Durable::new(writer, options.durability)))
            }
            None => None,
        };
        let invocation = open::Invocation {
            scope: Scope::root(thread.clone()),
            graph_path: "".into(),
            writer: writer.clone(),
            run: None,
            host: None,
        };
        let outcome = open::invoke(self, invocation, input, options).await;
        if let Some(writer) = writer {
            writer.close().await;
        }
        outcome
    }

    pub(crate) fn stored(&self, what: &str) -> Result<&Arc<dyn Checkpointer>, RunError> {
        self.checkpointer
            .as_ref()
            .ok_or_else(|| RunError::NoCheckpointer { what: what.into() })
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Runner")
            .field("graph", &self.graph)
            .field("stores", &self.checkpointer.is_some())
            .finish_non_exhaustive()
    }
}
