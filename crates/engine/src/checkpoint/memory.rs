//! Threads in memory.

use super::records::Records;
use super::{
    Advance, Checkpoint, Checkpointer, RecordKind, RecordOp, Scope, ThreadInfo, ThreadKey,
    ThreadWriter,
};
use crate::channel::EffectError;
use crate::error::StoreError;
use crate::value::Map;
use crate::world::Id;
use async_trait::async_trait;
use dashmap::DashMap;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keeps threads in memory, for tests and for runs that need not outlive the process.
///
/// Nothing is serialised; values are shared with the runs that made them.
#[derive(Clone, Debug, Default)]
pub struct MemoryCheckpointer {
    threads: Arc<DashMap<ThreadKey, Arc<Thread>>>,
}

#[derive(Debug, Default)]
struct Thread {
    held: AtomicBool,
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    meta: Map,
    graphs: BTreeMap<Arc<str>, Vec<Stored>>,
}

#[derive(Debug)]
struct Stored {
    advance: Advance,
    records: Records,
}

impl Thread {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    fn branch(&self, namespace: &str) -> &[Stored] {
        self.graphs.get(namespace).map_or(&[], Vec::as_slice)
    }

    fn find(&mut self, namespace: &str, id: Id) -> Option<&mut Stored> {
        let branch = self.graphs.get_mut(namespace)?;
        let place = position(branch, id)?;
        branch.get_mut(place)
    }

    fn is_empty(&self) -> bool {
        self.graphs.is_empty() && self.meta.is_empty()
    }

    /// The checkpoints at the places for which `wanted` holds, oldest first, made in one pass over the branch.
    fn load(
        &self,
        thread: &ThreadKey,
        namespace: &str,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Vec<Checkpoint>, StoreError> {
        let branch = self.branch(namespace);
        let Some(end) = (0..branch.len()).rev().find(|place| wanted(*place)) else {
            return Ok(Vec::new());
        };
        // Values share their structure, so keeping those of every ancestor costs little.
        let mut values: BTreeMap<Id, Map> = BTreeMap::new();
        let mut loaded = Vec::new();
        for (place, stored) in branch[..=end].iter().enumerate() {
            let before = match stored.advance.parent {
                None => Map::new(),
                Some(parent) => values
                    .get(&parent)
                    .cloned()
                    .ok_or_else(|| unknown(thread, parent))?,
            };
            let damaged = |error: EffectError| StoreError::Damaged {
                place: format!("thread `{thread}`"),
                message: error.to_string(),
            };
            let checkpoint =
                Checkpoint::advanced(before, stored.advance.clone()).map_err(damaged)?;
            values.insert(checkpoint.id, checkpoint.values.clone());
            if wanted(place) {
                loaded.push(Checkpoint {
                    records: stored.records.iter().cloned().collect(),
                    ..checkpoint
                });
            }
        }
        Ok(loaded)
    }
}

fn position(branch: &[Stored], id: Id) -> Option<usize> {
    // Most look-ups are for the newest.
    branch.iter().rposition(|stored| stored.advance.id == id)
}

fn unknown(thread: &ThreadKey, id: Id) -> StoreError {
    StoreError::UnknownCheckpoint {
        thread: thread.to_string().into(),
        id: id.to_string(),
    }
}

fn held(thread: &ThreadKey) -> StoreError {
    StoreError::Held {
        thread: thread.to_string().into(),
        holder: "another run of this process".into(),
    }
}

impl MemoryCheckpointer {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn get(&self, thread: &ThreadKey) -> Option<Arc<Thread>> {
        self.threads.get(thread).map(|thread| thread.clone())
    }
}

#[async_trait]
impl Checkpointer for MemoryCheckpointer {
    async fn open(&self, key: &ThreadKey) -> Result<Arc<dyn ThreadWriter>, StoreError> {
        // Taken while the entry is locked, so that no deletion comes in between.
        let entry = self.threads.entry(key.clone()).or_default();
        if entry.held.swap(true, Ordering::AcqRel) {
            return Err(held(key));
        }
        Ok(Arc::new(Writer {
            threads: self.threads.clone(),
            key: key.clone(),
            thread: entry.clone(),
        }))
    }

    async fn load(&self, scope: &Scope, id: Option<Id>) -> Result<Option<Checkpoint>, StoreError> {
        let Some(thread) = self.get(&scope.thread) else {
            return Ok(None);
        };
        let content = thread.content();
        let branch = content.branch(&scope.namespace);
        let place = match id {
            None => branch.len().checked_sub(1),
            Some(id) => position(branch, id),
        };
        let Some(place) = place else { return Ok(None) };
        let mut loaded = content.load(&scope.thread, &scope.namespace, |at| at == place)?;
        Ok(loaded.pop())
    }

    async fn history(
        &self,
        scope: &Scope,
        before: Option<Id>,
        limit: Option<usize>,
    ) -> Result<Vec<Checkpoint>, StoreError> {
        let Some(thread) = self.get(&scope.thread) else {
            return Ok(Vec::new());
        };
        let content = thread.content();
        let branch = content.branch(&scope.namespace);
        let end = before
            .map_or(Some(branch.len()), |id| position(branch, id))
            .unwrap_or(0);
        let begin = end.saturating_sub(limit.unwrap_or(usize::MAX));
        let wanted = begin..end;
        let mut loaded =
            content.load(&scope.thread, &scope.namespace, |at| wanted.contains(&at))?;
        loaded.reverse();
        Ok(loaded)
    }

    async fn thread(&self, key: &ThreadKey) -> Result<Option<ThreadInfo>, StoreError> {
        let Some(thread) = self.get(key) else {
            return Ok(None);
        };
        let content = thread.content();
        let branch = content.branch("");
        let (Some(first), Some(last)) = (branch.first(), branch.last()) else {
            return Ok(None);
        };
        Ok(Some(ThreadInfo {
            key: key.clone(),
            created: first.advance.created,
            updated: last.advance.created,
            checkpoints: branch.len() as u64,
            meta: content.meta.clone(),
        }))
    }

    async fn threads(&self, tenant: &str) -> Result<Vec<ThreadInfo>, StoreError> {
        let keys: Vec<ThreadKey> = self
            .threads
            .iter()
            .map(|entry| entry.key().clone())
            .filter(|key| &*key.tenant == tenant)
            .collect();
        let mut infos = Vec::new();
        for key in keys {
            infos.extend(self.thread(&key).await?);
        }
        infos.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.key.cmp(&b.key)));
        Ok(infos)
    }

    async fn delete(&self, key: &ThreadKey) -> Result<bool, StoreError> {
        let mut is_held = false;
        let deleted = self.threads.remove_if(key, |_, thread| {
            is_held = thread.held.load(Ordering::Acquire);
            !is_held
        });
        if is_held {
            return Err(held(key));
        }
        Ok(deleted.is_some())
    }
}

struct Writer {
    threads: Arc<DashMap<ThreadKey, Arc<Thread>>>,
    key: ThreadKey,
    thread: Arc<Thread>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.thread.held.store(false, Ordering::Release);
        // A thread that was opened and never stored is none, unless somebody opened it again just now.
        self.threads.remove_if(&self.key, |_, thread| {
            !thread.held.load(Ordering::Acquire) && thread.content().is_empty()
        });
    }
}

#[async_trait]
impl ThreadWriter for Writer {
    async fn advance(&self, namespace: &Arc<str>, mut advance: Advance) -> Result<(), StoreError> {
        let records = std::mem::take(&mut advance.records).into_iter().collect();
        let mut content = self.thread.content();
        if let Some(parent) = advance.parent {
            let stored = content.find(namespace, parent);
            let stored = stored.ok_or_else(|| unknown(&self.key, parent))?;
            stored
                .records
                .retain(|record| !matches!(record.kind, RecordKind::Done { .. }));
        }
        let branch = content.graphs.entry(namespace.clone()).or_default();
        branch.push(Stored { advance, records });
        Ok(())
    }

    async fn record(
        &self,
        namespace: &Arc<str>,
        checkpoint: Id,
        ops: Vec<RecordOp>,
    ) -> Result<(), StoreError> {
        let mut content = self.thread.content();
        let stored = content.find(namespace, checkpoint);
        let stored = stored.ok_or_else(|| unknown(&self.key, checkpoint))?;
        stored.records.apply(ops);
        Ok(())
    }

    async fn note(&self, entries: Map) -> Result<(), StoreError> {
        self.thread.content().meta.extend(entries);
        Ok(())
    }
}
