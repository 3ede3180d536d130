//! A store to break runs off at.

use crate::scene::pause;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tine_engine::checkpoint::{Advance, Checkpoint, RecordOp, Scope, ThreadInfo, ThreadWriter};
use tine_engine::value::Map;
use tine_engine::world::Id;
use tine_engine::{Checkpointer, MemoryCheckpointer, StoreError, ThreadKey};

/// A store in memory that waits before and after everything it writes, so that a run can be dropped there. While it is
/// full it writes nothing.
#[derive(Clone, Default)]
pub(crate) struct Unsteady {
    memory: MemoryCheckpointer,
    full: Arc<AtomicBool>,
}

impl Unsteady {
    pub(crate) fn fill(&self) {
        self.full.store(true, Ordering::Relaxed);
    }
}

#[async_trait]
impl Checkpointer for Unsteady {
    async fn open(&self, thread: &ThreadKey) -> Result<Arc<dyn ThreadWriter>, StoreError> {
        pause().await;
        Ok(Arc::new(Writer {
            memory: self.memory.open(thread).await?,
            full: self.full.clone(),
        }))
    }
    async fn load(&self, scope: &Scope, id: Option<Id>) -> Result<Option<Checkpoint>, StoreError> {
        pause().await;
        self.memory.load(scope, id).await
    }
    async fn history(
        &self,
        scope: &Scope,
        before: Option<Id>,
        limit: Option<usize>,
    ) -> Result<Vec<Checkpoint>, StoreError> {
        self.memory.history(scope, before, limit).await
    }
    async fn thread(&self, thread: &ThreadKey) -> Result<Option<ThreadInfo>, StoreError> {
        self.memory.thread(thread).await
    }
    async fn threads(&self, tenant: &str) -> Result<Vec<ThreadInfo>, StoreError> {
        self.memory.threads(tenant).await
    }
    async fn delete(&self, thread: &ThreadKey) -> Result<bool, StoreError> {
        self.memory.delete(thread).await
    }
}

struct Writer {
    memory: Arc<dyn ThreadWriter>,
    full: Arc<AtomicBool>,
}

impl Writer {
    fn room(&self) -> Result<(), StoreError> {
        if !self.full.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(StoreError::Unavailable {
            place: "disk".to_owned(),
            message: "full".to_owned(),
        })
    }
}

#[async_trait]
impl ThreadWriter for Writer {
    async fn advance(&self, namespace: &Arc<str>, advance: Advance) -> Result<(), StoreError> {
        pause().await;
        self.room()?;
        self.memory.advance(namespace, advance).await?;
        pause().await;
        Ok(())
    }
    async fn record(
        &self,
        namespace: &Arc<str>,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError> {
        pause().await;
        self.room()?;
        self.memory.record(namespace, checkpoint, ops).await?;
        pause().await;
        Ok(())
    }
    async fn note(&self, entries: Map) -> Result<(), StoreError> {
        self.memory.note(entries).await
    }
}
