//! When what a run stores becomes durable.

use super::options::Durability;
use crate::checkpoint::{Advance, RecordOp, ThreadWriter};
use crate::error::{StoreError, panic_text};
use crate::world::Id;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// How many checkpoints may wait to be written before the run waits for them.
const WAITING: usize = 16;

/// The writer of a thread, behind the durability that the invocation asked for.
///
/// Whatever that is, a record is stored after the checkpoint at which it stands, and is durable when [`Durable::record`]
/// returns.
pub(crate) struct Durable {
    mode: Mode,
}

enum Mode {
    Sync(Arc<dyn ThreadWriter>),
    Async(Queue),
    Exit(AtEnd),
}

impl Durable {
    /// Puts a writer behind a durability.
    pub(crate) fn new(writer: Arc<dyn ThreadWriter>, durability: Durability) -> Self {
        let runtime = tokio::runtime::Handle::try_current();
        let mode = match (durability, runtime) {
            (Durability::Async, Ok(runtime)) => Mode::Async(Queue::new(writer, &runtime)),
            (Durability::Sync | Durability::Async, _) => Mode::Sync(writer),
            (Durability::Exit, _) => Mode::Exit(AtEnd::new(writer)),
        };
        Self { mode }
    }

    /// The writer itself, if every checkpoint is to be stored at once.
    pub(crate) fn at_once(&self) -> Option<&dyn ThreadWriter> {
        match &self.mode {
            Mode::Sync(writer) => Some(&**writer),
            Mode::Async(_) | Mode::Exit(_) => None,
        }
    }

    /// Stores a checkpoint, or sees to it that it will be: at once if it comes with records.
    pub(crate) async fn advance(
        &self,
        namespace: &Arc<str>,
        advance: Advance,
    ) -> Result<(), StoreError> {
        let waits = advance.records.is_empty();
        self.take(namespace, advance).await?;
        if waits {
            Ok(())
        } else {
            self.flush(Some(namespace)).await
        }
    }

    async fn take(&self, namespace: &Arc<str>, advance: Advance) -> Result<(), StoreError> {
        match &self.mode {
            Mode::Sync(writer) => caught(writer.advance(namespace, advance)).await,
            Mode::Async(queue) => queue.advance(namespace, advance).await,
            Mode::Exit(end) => end.take(namespace, advance).await,
        }
    }

    /// Stores records at a checkpoint, and the checkpoint if it is not stored yet.
    pub(crate) async fn record(
        &self,
        namespace: &Arc<str>,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError> {
        match &self.mode {
            Mode::Sync(writer) => caught(writer.record(namespace, checkpoint, ops)).await,
            Mode::Async(queue) => queue.record(namespace, checkpoint, ops).await,
            Mode::Exit(end) => end.record(namespace, checkpoint, ops).await,
        }
    }

    /// Lets the thread go, as far as this holds it beyond its own life.
    pub(crate) async fn close(&self) {
        if let Mode::Async(queue) = &self.mode {
            // An error says that it has gone already.
            drop(queue.wait(Job::Close).await);
        }
    }

    /// Whether what a task finished with is stored while others of its step still run.
    pub(crate) fn records_early(&self) -> bool {
        !matches!(self.mode, Mode::Exit(_))
    }

    /// Makes durable what is held of a child, if anything is.
    pub(crate) async fn flush_held(&self, namespace: &Arc<str>) -> Result<(), StoreError> {
        if let Mode::Exit(end) = &self.mode
            && !end.holds(namespace).await
        {
            return Ok(());
        }
        self.flush(Some(namespace)).await
    }

    /// Ends a child: its checkpoint may be held as long as those of the graphs above it are.
    pub(crate) async fn flush_child(&self, namespace: &Arc<str>) -> Result<(), StoreError> {
        match &self.mode {
            Mode::Exit(_) => Ok(()),
            _ => self.flush(Some(namespace)).await,
        }
    }

    /// Makes durable what is not yet: of one namespace, or of all.
    ///
    /// # Errors
    /// If it can not be, or if an earlier write failed that nobody waited for.
    pub(crate) async fn flush(&self, namespace: Option<&Arc<str>>) -> Result<(), StoreError> {
        match &self.mode {
            Mode::Sync(_) => Ok(()),
            Mode::Async(queue) => queue.flush().await,
            Mode::Exit(end) => end.flush(namespace).await,
        }
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match &self.mode {
            Mode::Sync(_) => Durability::Sync,
            Mode::Async(_) => Durability::Async,
            Mode::Exit(_) => Durability::Exit,
        };
        out.debug_tuple("Durable").field(&mode).finish()
    }
}

/// By namespace, the checkpoint that stands for all that were not stored.
type Held = BTreeMap<Arc<str>, Advance>;

/// Writes one checkpoint at the end, and where something must be recorded before it.
struct AtEnd {
    writer: Arc<dyn ThreadWriter>,
    state: Mutex<AtEndState>,
}

struct AtEndState {
    held: Held,
    written: Written,
}

/// Ends when all is written that was ever taken out of what is held, or with the first error: what comes later has
/// nothing to stand on.
///
/// Who waits for it drives it, and who stops waiting (a task that timed out) leaves it to the next who does: so nothing
/// that was taken out is lost, and nothing is recorded before the checkpoint at which it stands.
type Written = Shared<BoxFuture<'static, Result<(), StoreError>>>;

impl AtEnd {
    fn new(writer: Arc<dyn ThreadWriter>) -> Self {
        let written = std::future::ready(Ok(())).boxed().shared();
        let held = Held::new();
        let state = Mutex::new(AtEndState { held, written });
        Self { writer, state }
    }

    async fn take(&self, namespace: &Arc<str>, advance: Advance) -> Result<(), StoreError> {
        let written = {
            let state = &mut *self.lock();
            let (advance, due) = match state.held.remove(namespace) {
                Some(before) if advance.parent == Some(before.id) => (before.then(advance), None),
                before => (advance, before),
            };
            let due = due.map(|due| (namespace.clone(), due));
            state.held.insert(namespace.clone(), advance);
            self.write(state, due.into_iter().collect())
        };
        written.await
    }

    /// Whether something of this namespace is still to be written, when all that is being written is.
    async fn holds(&self, namespace: &Arc<str>) -> bool {
        let written = self.lock().written.clone();
        // An error is told to whoever writes next, and at the end.
        drop(written.await);
        self.lock().held.contains_key(namespace)
    }

    async fn record(
        &self,
        namespace: &Arc<str>,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError> {
        self.flush(Some(namespace)).await?;
        caught(self.writer.record(namespace, checkpoint, ops)).await
    }

    async fn flush(&self, namespace: Option<&Arc<str>>) -> Result<(), StoreError> {
        let written = {
            let state = &mut *self.lock();
            let due = take_due(&mut state.held, namespace);
            self.write(state, due)
        };
        written.await
    }

    /// Writes what was taken out, after all that was before.
    fn write(&self, state: &mut AtEndState, due: Held) -> Written {
        if !due.is_empty() {
            let before = state.written.clone();
            let writer = Arc::clone(&self.writer);
            let write = async move {
                before.await?;
                for (namespace, advance) in due {
                    caught(writer.advance(&namespace, advance)).await?;
                }
                Ok(())
            };
            state.written = write.boxed().shared();
        }
        state.written.clone()
    }

    fn lock(&self) -> MutexGuard<'_, AtEndState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes an error of a store's panic: others may wait for what it was to write, and a record is written on behalf of a
/// node, which is not to blame.
pub(crate) async fn caught(
    write: impl Future<Output = Result<(), StoreError>>,
) -> Result<(), StoreError> {
    let written = AssertUnwindSafe(write).catch_unwind().await;
    written.unwrap_or_else(|payload| {
        Err(StoreError::Unavailable {
            place: "the store".to_owned(),
            message: panic_text(&*payload),
        })
    })
}

/// Takes what is to be stored out: all, or what stands in a namespace and in those of the graphs above it, these first.
/// For what stands below a checkpoint that was never stored is lost.
fn take_due(held: &mut Held, namespace: Option<&Arc<str>>) -> Held {
    let all = std::mem::take(held);
    let Some(namespace) = namespace else {
        return all;
    };
    let (due, later) = all
        .into_iter()
        .partition(|(above, _)| is_in(namespace, above));
    *held = later;
    due
}

/// Whether a namespace is this one, or below it.
fn is_in(namespace: &str, above: &str) -> bool {
    let rest = namespace.strip_prefix(above);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Writes on a task of its own, in order, and no more once a write failed.
///
/// The task holds the thread until it has written all that was handed to it, also if the run is dropped.
struct Queue {
    jobs: mpsc::Sender<Job>,
    failed: Arc<Mutex<Option<StoreError>>>,
}

enum Job {
    Advance(Arc<str>, Box<Advance>),
    Record(Arc<str>, Id, Vec<RecordOp>, Reply),
    Flush(Reply),
    /// Lets the thread go.
    Close(Reply),
}

type Reply = oneshot::Sender<Result<(), StoreError>>;

impl Queue {
    fn new(writer: Arc<dyn ThreadWriter>, runtime: &tokio::runtime::Handle) -> Self {
        let (jobs, waiting) = mpsc::channel(WAITING);
        let failed = Arc::default();
        drop(runtime.spawn(work(writer, waiting, Arc::clone(&failed))));
        Self { jobs, failed }
    }

    async fn advance(&self, namespace: &Arc<str>, advance: Advance) -> Result<(), StoreError> {
        if let Some(error) = known(&self.failed) {
            return Err(error);
        }
        let job = Job::Advance(namespace.clone(), Box::new(advance));
        self.jobs.send(job).await.map_err(|_| gone())
    }

    async fn record(
        &self,
        namespace: &Arc<str>,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError> {
        self.wait(|reply| Job::Record(namespace.clone(), checkpoint, ops, reply))
            .await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.wait(Job::Flush).await
    }

    async fn wait(&self, job: impl FnOnce(Reply) -> Job) -> Result<(), StoreError> {
        let (reply, done) = oneshot::channel();
        self.jobs.send(job(reply)).await.map_err(|_| gone())?;
        done.await.map_err(|_| gone())?
    }
}

async fn work(
    writer: Arc<dyn ThreadWriter>,
    mut waiting: mpsc::Receiver<Job>,
    failed: Arc<Mutex<Option<StoreError>>>,
) {
    while let Some(job) = waiting.recv().await {
        let before = known(&failed);
        let (result, reply) = match (before, job) {
            (Some(error), Job::Advance(..)) => (Err(error), None),
            (_, Job::Close(reply)) => {
                waiting.close();
                drop(writer);
                drop(reply.send(Ok(())));
                return;
            }
            (Some(error), Job::Record(.., reply) | Job::Flush(reply)) => (Err(error), Some(reply)),
            (None, Job::Advance(namespace, advance)) => {
                (caught(writer.advance(&namespace, *advance)).await, None)
            }
            (None, Job::Record(namespace, checkpoint, ops, reply)) => {
                let stored = caught(writer.record(&namespace, checkpoint, ops)).await;
                (stored, Some(reply))
            }
            (None, Job::Flush(reply)) => (Ok(()), Some(reply)),
        };
        match (result, reply) {
            // Who does not wait any more does not want to know.
            (result, Some(reply)) => drop(reply.send(result)),
            (Err(error), None) => {
                failed
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert(error);
            }
            (Ok(()), None) => {}
        }
    }
}

fn known(failed: &Mutex<Option<StoreError>>) -> Option<StoreError> {
    failed
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// The error where the writing task is no more.
fn gone() -> StoreError {
    StoreError::Unavailable {
        place: "the writer of checkpoints".to_owned(),
        message: "it stopped, for its runtime is shutting down".to_owned(),
    }
}
