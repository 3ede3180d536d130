//! A store that stops for good at a chosen write, and says what it wrote before.

use super::thread::Wrote;
use async_trait::async_trait;
use std::sync::{Arc, Mutex};
use tine_engine::StoreError;
use tine_engine::checkpoint::{
    Advance, Checkpoint, Checkpointer, RecordKind, RecordOp, Scope, ThreadInfo, ThreadKey,
    ThreadWriter,
};
use tine_engine::value::Map;
use tine_engine::world::Id;
use tokio::sync::Notify;

#[derive(Clone)]
pub(super) struct Stopping {
    inner: Arc<dyn Checkpointer>,
    stop: Arc<Stop>,
}

#[derive(Default)]
struct Stop {
    stopped: Notify,
    /// Says to who still waits for a write that it will not come: the process is gone.
    gone: Notify,
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    /// Before or after which write to stop.
    at: Option<(usize, bool)>,
    writes: usize,
    wrote: Vec<Wrote>,
}

impl Stopping {
    pub(super) fn new(inner: Arc<dyn Checkpointer>) -> Self {
        Self {
            inner,
            stop: Arc::default(),
        }
    }

    pub(super) fn inner(&self) -> Arc<dyn Checkpointer> {
        self.inner.clone()
    }

    /// Begins to count: stops at the write of this number, before or after it.
    pub(super) fn arm(&self, at: Option<(usize, bool)>) {
        *self.stop.plan.lock().unwrap() = Plan {
            at,
            ..Plan::default()
        };
    }

    pub(super) async fn stopped(&self) {
        self.stop.stopped.notified().await;
    }

    /// Ends a task that writes for a run which was dropped.
    pub(super) async fn end(&self) {
        self.stop.gone.notify_waiters();
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }

    pub(super) fn wrote(&self) -> Vec<Wrote> {
        self.stop.plan.lock().unwrap().wrote.clone()
    }
}

impl Stop {
    async fn write<T>(
        &self,
        wrote: Vec<Wrote>,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let (number, at) = {
            let mut plan = self.plan.lock().unwrap();
            plan.writes += 1;
            (plan.writes, plan.at)
        };
        if at == Some((number, false)) {
            return self.stop().await;
        }
        let result = work.await?;
        self.plan.lock().unwrap().wrote.extend(wrote);
        if at == Some((number, true)) {
            return self.stop().await;
        }
        Ok(result)
    }

    async fn stop<T>(&self) -> Result<T, StoreError> {
        self.stopped.notify_one();
        self.gone.notified().await;
        Err(StoreError::Unavailable {
            place: "the store".to_owned(),
            message: "stopped, as planned".to_owned(),
        })
    }
}

#[async_trait]
impl Checkpointer for Stopping {
    async fn open(&self, thread: &ThreadKey) -> Result<Arc<dyn ThreadWriter>, StoreError> {
        Ok(Arc::new(Writer {
            inner: self.inner.open(thread).await?,
            stop: self.stop.clone(),
        }))
    }
    async fn load(&self, scope: &Scope, id: Option<Id>) -> Result<Option<Checkpoint>, StoreError> {
        self.inner.load(scope, id).await
    }
    async fn history(
        &self,
        scope: &Scope,
        before: Option<Id>,
        limit: Option<usize>,
    ) -> Result<Vec<Checkpoint>, StoreError> {
        self.inner.history(scope, before, limit).await
    }
    async fn thread(&self, thread: &ThreadKey) -> Result<Option<ThreadInfo>, StoreError> {
        self.inner.thread(thread).await
    }
    async fn threads(&self, tenant: &str) -> Result<Vec<ThreadInfo>, StoreError> {
        self.inner.threads(tenant).await
    }
    async fn delete(&self, thread: &ThreadKey) -> Result<bool, StoreError> {
        self.inner.delete(thread).await
    }
}

struct Writer {
    inner: Arc<dyn ThreadWriter>,
    stop: Arc<Stop>,
}

#[async_trait]
impl ThreadWriter for Writer {
    async fn advance(&self, namespace: &Arc<str>, advance: Advance) -> Result<(), StoreError> {
        let wrote = vec![Wrote::Checkpoint(advance.step)];
        let work = self.inner.advance(namespace, advance);
        self.stop.write(wrote, work).await
    }
    async fn record(
        &self,
        namespace: &Arc<str>,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError> {
        let wrote = ops.iter().filter_map(|op| match op {
            RecordOp::Put(record) => match &record.kind {
                RecordKind::Done { .. } => Some(Wrote::Done(record.task.to_string())),
                RecordKind::Asked { .. } => Some(Wrote::Asked(record.task.to_string())),
                RecordKind::Failed(_) => Some(Wrote::Undone(record.task.to_string())),
                RecordKind::Answered { .. } => Some(Wrote::Answered),
                _ => None,
            },
            RecordOp::Remove(key) => {
                (key.name == "done").then(|| Wrote::Undone(key.task.to_string()))
            }
        });
        let wrote = wrote.collect();
        let work = self.inner.record(namespace, checkpoint, ops);
        self.stop.write(wrote, work).await
    }
    async fn note(&self, entries: Map) -> Result<(), StoreError> {
        self.inner.note(entries).await
    }
}
