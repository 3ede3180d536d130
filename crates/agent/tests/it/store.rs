//! A store that notes the starts of calls among what tools note, that can refuse them, and that can be slow.

use crate::fixture::Log;
use async_trait::async_trait;
use std::sync::Arc;
use std::task::Poll;
use tine_engine::checkpoint::{
    Advance, CallState, Checkpoint, RecordKind, RecordOp, Scope, ThreadInfo, ThreadWriter,
};
use tine_engine::value::Map;
use tine_engine::world::Id;
use tine_engine::{Checkpointer, MemoryCheckpointer, StoreError, ThreadKey};

#[derive(Clone)]
pub(crate) struct Noting {
    pub(crate) store: MemoryCheckpointer,
    pub(crate) log: Log,
    pub(crate) refuses: bool,
    /// Whether runs can be dropped while something is stored.
    pub(crate) pauses: bool,
}

/// Waits for some polls, more than the engine makes at once: a place at which a run can be dropped.
pub(crate) async fn pause() {
    for _ in 0..3 {
        let mut waited = false;
        std::future::poll_fn(|cx| {
            if waited {
                return Poll::Ready(());
            }
            waited = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

impl Noting {
    async fn pause(&self) {
        if self.pauses {
            pause().await;
        }
    }
}

#[async_trait]
impl Checkpointer for Noting {
    async fn open(&self, thread: &ThreadKey) -> Result<Arc<dyn ThreadWriter>, StoreError> {
        let writer = self.store.open(thread).await?;
        Ok(Arc::new(NotingWriter(writer, self.clone())))
    }
    async fn load(&self, scope: &Scope, id: Option<Id>) -> Result<Option<Checkpoint>, StoreError> {
        self.store.load(scope, id).await
    }
    async fn history(
        &self,
        scope: &Scope,
        before: Option<Id>,
        limit: Option<usize>,
    ) -> Result<Vec<Checkpoint>, StoreError> {
        self.store.history(scope, before, limit).await
    }
    async fn thread(&self, thread: &ThreadKey) -> Result<Option<ThreadInfo>, StoreError> {
        self.store.thread(thread).await
    }
    async fn threads(&self, tenant: &str) -> Result<Vec<ThreadInfo>, StoreError> {
        self.store.threads(tenant).await
    }
    async fn delete(&self, thread: &ThreadKey) -> Result<bool, StoreError> {
        self.store.delete(thread).await
    }
}

struct NotingWriter(Arc<dyn ThreadWriter>, Noting);

#[async_trait]
impl ThreadWriter for NotingWriter {
    async fn advance(&self, namespace: &Arc<str>, advance: Advance) -> Result<(), StoreError> {
        self.1.pause().await;
        self.0.advance(namespace, advance).await?;
        self.1.pause().await;
        Ok(())
    }
    async fn record(
        &self,
        namespace: &Arc<str>,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError> {
        let is_start = |op: &&RecordOp| match op {
            RecordOp::Put(record) => {
                matches!(&record.kind, RecordKind::Call(call) if call.state == CallState::Started)
            }
            RecordOp::Remove(_) => false,
        };
        let starts = ops.iter().filter(is_start).count();
        if starts > 0 && self.1.refuses {
            return Err(StoreError::Damaged {
                place: "the disk".to_owned(),
                message: "it is full".to_owned(),
            });
        }
        self.1.pause().await;
        self.0.record(namespace, checkpoint, ops).await?;
        self.1.pause().await;
        if starts > 0 {
            self.1.log.lock().unwrap().push(format!("{starts} started"));
        }
        Ok(())
    }
    async fn note(&self, entries: Map) -> Result<(), StoreError> {
        self.0.note(entries).await
    }
}
