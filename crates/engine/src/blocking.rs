//! Running graphs from programs without async.
//!
//! [`Runner`] has the methods of the [asynchronous one](crate::Runner), and each waits until its work is done. It may be
//! called from anywhere, from inside a tokio runtime too: from a task, from `spawn_blocking`, from a node of another run.
//!
//! ```
//! use tine_engine::channel::append;
//! use tine_engine::node::from_fn;
//! use tine_engine::{Graph, RunOptions, START, ThreadKey, TokioWorld, Update, blocking};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut graph = Graph::builder("greet");
//! let said = graph.channel("said", append::<String>());
//! graph.node("hello", from_fn(move |_| Ok(Update::new().write(&said, vec!["hello".to_owned()]))));
//! graph.edge(START, "hello");
//!
//! let runner = blocking::Runner::new(graph.build()?, TokioWorld::new());
//! let outcome = runner.invoke(&ThreadKey::local("t1"), Update::new(), RunOptions::default())?;
//! assert_eq!(outcome.values["said"].to_canonical(), r#"["hello"]"#);
//! # Ok(())
//! # }
//! ```
//!
//! # Which thread, which runtime
//! Each call makes a runtime of its own, on the calling thread or on another one that the calling thread waits for.
//! What a node spawned and did not await ends with the call.
//!
//! A worker of a multi-thread runtime hands its other tasks to the runtime's next thread while it waits. A current-thread
//! runtime has no other: all its tasks stand still until the call returns, and so they do in a `LocalSet`. A run that is
//! called there must not wait for one of them, such as for a message that a task beside the caller is to send: it would
//! wait forever. Such programs use the asynchronous [`Runner`](crate::Runner), or call this one from `spawn_blocking`.

use crate::checkpoint::{Checkpointer, ThreadKey};
use crate::command::Output;
use crate::error::RunError;
use crate::graph::Graph;
use crate::run::{HistoryQuery, Input, Outcome, RunOptions, Snapshot, ThreadUpdate, UpdateAs};
use crate::world::{Id, World};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::{io, panic, thread};
use tokio::runtime::{Builder, Handle, RuntimeFlavor, worker_index};
use tokio::task::block_in_place;

/// Runs a graph and waits: the [asynchronous runner](crate::Runner) for programs without async.
///
/// What each method does and when it fails, that one's method of the same name says; [`RunError::Runtime`] comes from
/// here, if the system gives no thread or no timer. A call is stopped from another thread by [`RunOptions::cancel`].
#[derive(Clone, Debug)]
pub struct Runner {
    runner: crate::Runner,
}

impl Runner {
    /// A runner without a checkpointer. See [`Runner::new`](crate::Runner::new).
    pub fn new(graph: Graph, world: impl World + 'static) -> Self {
        crate::Runner::new(graph, world).into()
    }

    /// Stores threads. See [`Runner::with_checkpointer`](crate::Runner::with_checkpointer).
    #[must_use]
    pub fn with_checkpointer(self, checkpointer: Arc<dyn Checkpointer>) -> Self {
        self.runner.with_checkpointer(checkpointer).into()
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        self.runner.graph()
    }

    /// The asynchronous runner: for what has no method here, together with [`block_on`].
    #[must_use]
    pub fn asynchronous(&self) -> &crate::Runner {
        &self.runner
    }

    /// Runs the graph until it is done, asks, or stops. See [`Runner::invoke`](crate::Runner::invoke).
    ///
    /// # Errors
    /// As there.
    pub fn invoke(
        &self,
        thread: &ThreadKey,
        input: impl Into<Input>,
        options: RunOptions,
    ) -> Result<Outcome, RunError> {
        wait(self.runner.invoke(thread, input.into(), options))
    }

    /// The newest state of a thread. See [`Runner::state`](crate::Runner::state).
    ///
    /// # Errors
    /// As there.
    pub fn state(&self, thread: &ThreadKey) -> Result<Option<Snapshot>, RunError> {
        wait(self.runner.state(thread))
    }

    /// The newest state, with those of child graphs. See
    /// [`Runner::state_with_children`](crate::Runner::state_with_children).
    ///
    /// # Errors
    /// As there.
    pub fn state_with_children(&self, thread: &ThreadKey) -> Result<Option<Snapshot>, RunError> {
        wait(self.runner.state_with_children(thread))
    }

    /// The state at one checkpoint. See [`Runner::state_at`](crate::Runner::state_at).
    ///
    /// # Errors
    /// As there.
    pub fn state_at(&self, thread: &ThreadKey, id: Id) -> Result<Snapshot, RunError> {
        wait(self.runner.state_at(thread, id))
    }

    /// The checkpoints of a thread, newest first. See [`Runner::history`](crate::Runner::history).
    ///
    /// # Errors
    /// As there.
    pub fn history(
        &self,
        thread: &ThreadKey,
        query: impl Into<HistoryQuery>,
    ) -> Result<Vec<Snapshot>, RunError> {
        wait(self.runner.history(thread, query.into()))
    }

    /// Updates a thread from outside. See [`Runner::update`](crate::Runner::update).
    ///
    /// # Errors
    /// As there.
    pub fn update(
        &self,
        thread: &ThreadKey,
        by: impl Into<UpdateAs>,
        output: impl Into<Output>,
    ) -> Result<Id, RunError> {
        wait(self.runner.update(thread, by.into(), output.into()))
    }

    /// Gives up what a thread has planned. See [`Runner::cancel`](crate::Runner::cancel).
    ///
    /// # Errors
    /// As there.
    pub fn cancel(&self, thread: &ThreadKey) -> Result<Option<Id>, RunError> {
        wait(self.runner.cancel(thread))
    }

    /// Updates a thread in several steps. See [`Runner::bulk_update`](crate::Runner::bulk_update).
    ///
    /// # Errors
    /// As there.
    pub fn bulk_update(
        &self,
        thread: &ThreadKey,
        at: Option<Id>,
        steps: Vec<Vec<ThreadUpdate>>,
    ) -> Result<Id, RunError> {
        wait(self.runner.bulk_update(thread, at, steps))
    }
}

impl From<crate::Runner> for Runner {
    fn from(runner: crate::Runner) -> Self {
        Self { runner }
    }
}

impl crate::Runner {
    /// This runner for callers that wait: the same graph, threads and world.
    #[must_use]
    pub fn blocking(&self) -> Runner {
        self.clone().into()
    }
}

fn wait<T: Send>(work: impl Future<Output = Result<T, RunError>> + Send) -> Result<T, RunError> {
    block_on(work).unwrap_or_else(|error| {
        Err(RunError::Runtime {
            message: error.to_string(),
        })
    })
}

/// Waits for a future, on a runtime made for it, wherever it is called: for asking a checkpointer, and whatever else is
/// asynchronous. The [module](self) says which thread does the work.
///
/// A panic of the future goes through to the caller.
///
/// ```
/// use tine_engine::{Checkpointer, MemoryCheckpointer, blocking::block_on};
///
/// let threads = block_on(MemoryCheckpointer::new().threads("local"))??;
/// assert!(threads.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the system gives no thread or no timer; the future was not polled then.
pub fn block_on<F>(future: F) -> io::Result<F::Output>
where
    F: Future<Output: Send> + Send,
{
    match Handle::try_current() {
        Err(outside) if outside.is_missing_context() => block_here(future),
        Ok(inside) if is_worker(&inside) => block_in_worker(future),
        _ => block_beside(future),
    }
}

/// Whether this thread is a worker of a multi-thread runtime.
fn is_worker(runtime: &Handle) -> bool {
    runtime.runtime_flavor() == RuntimeFlavor::MultiThread && worker_index().is_some()
}

/// Waits on a worker of a multi-thread runtime, and lets another thread do what the worker has still to do.
fn block_in_worker<F>(future: F) -> io::Result<F::Output>
where
    F: Future<Output: Send> + Send,
{
    let mut future = Some(future);
    let result = panic::catch_unwind(AssertUnwindSafe(|| {
        block_in_place(|| future.take().map(block_here))
    }));
    match (result, future) {
        (Ok(output), _) => output.expect("the future is there until it is taken"),
        // It had not begun: the thread is of a current-thread runtime, and only entered the other one.
        (Err(_), Some(future)) => block_beside(future),
        (Err(panic), None) => panic::resume_unwind(panic),
    }
}

/// Waits for another thread: one that belongs to a runtime may not block on a second.
fn block_beside<F>(future: F) -> io::Result<F::Output>
where
    F: Future<Output: Send> + Send,
{
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("tine-blocking".to_owned());
        let worker = thread.spawn_scoped(scope, || block_here(future))?;
        let joined = worker.join();
        joined.unwrap_or_else(|panic| panic::resume_unwind(panic))
    })
}

fn block_here<F: Future>(future: F) -> io::Result<F::Output> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let output = runtime.block_on(future);
    // Blocking work that nobody waits for any more must not hold up the result.
    runtime.shutdown_background();
    Ok(output)
}
