//! A store in memory that knows which graphs a thread has, for exports of the whole thread.

use crate::scene::block_on;
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tine_engine::checkpoint::{
    Advance, Checkpoint, RecordOp, Scope, ThreadInfo, ThreadWriter, export,
};
use tine_engine::value::Map;
use tine_engine::world::Id;
use tine_engine::{Checkpointer, MemoryCheckpointer, StoreError, ThreadKey};

#[derive(Clone, Default)]
pub(crate) struct Spy {
    memory: MemoryCheckpointer,
    namespaces: Arc<Mutex<BTreeSet<Arc<str>>>>,
}

impl Spy {
    /// Everything stored of a thread: its root graph and every child.
    pub(crate) fn graphs(&self, thread: &ThreadKey) -> Vec<(Arc<str>, Vec<Checkpoint>)> {
        let namespaces = self.namespaces.lock().unwrap().clone();
        let graphs = namespaces.into_iter().map(|namespace| {
            let scope = Scope {
                thread: thread.clone(),
                namespace: namespace.clone(),
            };
            let history = block_on(self.memory.history(&scope, None, None)).unwrap();
            (namespace, history)
        });
        graphs.collect()
    }

    pub(crate) fn export(&self, thread: &ThreadKey) -> String {
        let graphs = self.graphs(thread);
        export(
            graphs
                .iter()
                .map(|(name, history)| (&**name, history.as_slice())),
        )
    }
}

#[async_trait]
impl Checkpointer for Spy {
    async fn open(&self, thread: &ThreadKey) -> Result<Arc<dyn ThreadWriter>, StoreError> {
        Ok(Arc::new(Writer {
            memory: self.memory.open(thread).await?,
            namespaces: self.namespaces.clone(),
        }))
    }
    async fn load(&self, scope: &Scope, id: Option<Id>) -> Result<Option<Checkpoint>, StoreError> {
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
    namespaces: Arc<Mutex<BTreeSet<Arc<str>>>>,
}

#[async_trait]
impl ThreadWriter for Writer {
    async fn advance(&self, namespace: &Arc<str>, advance: Advance) -> Result<(), StoreError> {
        self.namespaces.lock().unwrap().insert(namespace.clone());
        self.memory.advance(namespace, advance).await
    }
    async fn record(
        &self,
        namespace: &Arc<str>,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError> {
        self.memory.record(namespace, checkpoint, ops).await
    }
    async fn note(&self, entries: Map) -> Result<(), StoreError> {
        self.memory.note(entries).await
    }
}
