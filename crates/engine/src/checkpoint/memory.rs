//! Threads in memory.

use super::apply;
use super::records::Records;
use super::{
    Advance, Checkpoint, Checkpointer, Record, RecordKind, RecordOp, Scope, ThreadInfo, ThreadKey,
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
#[doc(alias("InMemorySaver", "MemorySaver"))]
#[derive(Clone, Debug, Default)]
pub struct MemoryCheckpointer {
    threads: Arc<DashMap<ThreadKey, Arc<Thread>>>,
}

#[derive(Debug, Default)]
struct Thread {
    held: AtomicBool,
    /// Whether who holds it is asked to stop.
    asked: AtomicBool,
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    meta: Map,
    graphs: BTreeMap<Arc<str>, Stored>,
}

/// The checkpoints of one graph.
#[derive(Debug, Default)]
struct Stored {
    /// In the order in which they were stored.
    checkpoints: Vec<One>,
    /// The values at some of them, by place: made when they are loaded, so that no later load begins further back and no
    /// step pays for it.
    whole: BTreeMap<usize, Map>,
}

#[derive(Debug)]
struct One {
    /// In a box, so that the list grows by little.
    advance: Box<Advance>,
    /// The place of its parent.
    parent: Option<usize>,
    /// None for most: a step of one task records nothing.
    records: Option<Box<Records>>,
}

impl One {
    fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().flat_map(|all| all.iter())
    }
}

/// How many changes a load may replay before it keeps what they came to.
const FAR: usize = 64;

impl Thread {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    fn find(&mut self, namespace: &str, id: Id) -> Option<&mut One> {
        let stored = self.graphs.get_mut(namespace)?;
        let place = stored.position(id)?;
        stored.checkpoints.get_mut(place)
    }

    fn is_empty(&self) -> bool {
        let mut graphs = self.graphs.values();
        self.meta.is_empty() && graphs.all(|stored| stored.checkpoints.is_empty())
    }
}

impl Stored {
    fn position(&self, id: Id) -> Option<usize> {
        // Most look-ups are for the newest.
        let mut all = self.checkpoints.iter();
        all.rposition(|one| one.advance.id == id)
    }

    /// The values at a place: those of its line of ancestors, from the last whole ones on.
    fn values(&mut self, place: usize) -> Result<Map, EffectError> {
        let mut line = Vec::new();
        let mut next = Some(place);
        let mut values = loop {
            let Some(at) = next else { break Map::new() };
            if let Some(values) = self.whole.get(&at) {
                break values.clone();
            }
            line.push(at);
            next = self.checkpoints[at].parent;
        };
        for (number, at) in line.iter().rev().enumerate() {
            let effects = &self.checkpoints[*at].advance.effects;
            apply(effects.iter().cloned(), &mut values)?;
            if (number + 1).is_multiple_of(FAR) {
                self.whole.insert(*at, values.clone());
            }
        }
        Ok(values)
    }

    /// The checkpoints at these places, oldest first.
    fn load(&mut self, places: std::ops::Range<usize>) -> Result<Vec<Checkpoint>, EffectError> {
        let first = places.start;
        let mut loaded: Vec<Checkpoint> = Vec::with_capacity(places.len());
        for place in places {
            let before = match self.checkpoints[place].parent {
                None => Map::new(),
                Some(parent) => match parent.checked_sub(first).and_then(|at| loaded.get(at)) {
                    Some(parent) => parent.values.clone(),
                    None => self.values(parent)?,
                },
            };
            let one = &self.checkpoints[place];
            loaded.push(Checkpoint {
                records: one.records().cloned().collect(),
                ..Checkpoint::advanced(before, (*one.advance).clone())?
            });
        }
        Ok(loaded)
    }
}

fn unknown(thread: &ThreadKey, id: Id) -> StoreError {
    StoreError::UnknownCheckpoint {
        thread: thread.to_string().into(),
        id: id.to_string(),
    }
}

fn damaged(thread: &ThreadKey, error: &EffectError) -> StoreError {
    StoreError::Damaged {
        place: format!("thread `{thread}`"),
        message: error.to_string(),
    }
}

/// Who else can have a thread.
const HOLDER: &str = "another run of this process";

fn held(thread: &ThreadKey) -> StoreError {
    StoreError::Held {
        thread: thread.to_string().into(),
        holder: HOLDER.into(),
    }
}

impl MemoryCheckpointer {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn take(&self, key: &ThreadKey) -> Result<Writer, StoreError> {
        // Taken while the entry is locked, so that no deletion comes in between.
        let entry = self.threads.entry(key.clone()).or_default();
        if entry.held.swap(true, Ordering::AcqRel) {
            return Err(held(key));
        }
        Ok(Writer {
            threads: self.threads.clone(),
            key: key.clone(),
            thread: entry.clone(),
        })
    }

    fn get(&self, thread: &ThreadKey) -> Option<Arc<Thread>> {
        self.threads.get(thread).map(|thread| thread.clone())
    }
}

#[async_trait]
impl Checkpointer for MemoryCheckpointer {
    async fn open(&self, key: &ThreadKey) -> Result<Arc<dyn ThreadWriter>, StoreError> {
        Ok(Arc::new(self.take(key)?))
    }

    async fn load(&self, scope: &Scope, id: Option<Id>) -> Result<Option<Checkpoint>, StoreError> {
        let Some(thread) = self.get(&scope.thread) else {
            return Ok(None);
        };
        let mut content = thread.content();
        let Some(stored) = content.graphs.get_mut(&scope.namespace) else {
            return Ok(None);
        };
        let place = match id {
            None => stored.checkpoints.len().checked_sub(1),
            Some(id) => stored.position(id),
        };
        let Some(place) = place else { return Ok(None) };
        let loaded = stored.load(place..place + 1);
        let mut loaded = loaded.map_err(|error| damaged(&scope.thread, &error))?;
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
        let mut content = thread.content();
        let Some(stored) = content.graphs.get_mut(&scope.namespace) else {
            return Ok(Vec::new());
        };
        let end = match before {
            None => stored.checkpoints.len(),
            Some(id) => stored.position(id).unwrap_or(0),
        };
        let begin = end.saturating_sub(limit.unwrap_or(usize::MAX));
        let loaded = stored.load(begin..end);
        let mut loaded = loaded.map_err(|error| damaged(&scope.thread, &error))?;
        loaded.reverse();
        Ok(loaded)
    }

    async fn thread(&self, key: &ThreadKey) -> Result<Option<ThreadInfo>, StoreError> {
        let Some(thread) = self.get(key) else {
            return Ok(None);
        };
        let content = thread.content();
        let root = content.graphs.get("").map(|root| &root.checkpoints);
        let Some((first, last)) = root.and_then(|all| all.first().zip(all.last())) else {
            return Ok(None);
        };
        Ok(Some(ThreadInfo {
            key: key.clone(),
            created: first.advance.created,
            updated: last.advance.created,
            checkpoints: root.map_or(0, Vec::len) as u64,
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

    async fn namespaces(&self, key: &ThreadKey) -> Result<Vec<Arc<str>>, StoreError> {
        let Some(thread) = self.get(key) else {
            return Ok(Vec::new());
        };
        let content = thread.content();
        let graphs = content.graphs.iter();
        let stored = graphs.filter(|(_, stored)| !stored.checkpoints.is_empty());
        Ok(stored.map(|(namespace, _)| namespace.clone()).collect())
    }

    async fn advances(
        &self,
        scope: &Scope,
        from: u64,
        limit: Option<usize>,
    ) -> Result<Vec<Advance>, StoreError> {
        let Some(thread) = self.get(&scope.thread) else {
            return Ok(Vec::new());
        };
        let content = thread.content();
        let Some(stored) = content.graphs.get(&scope.namespace) else {
            return Ok(Vec::new());
        };
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let wanted = stored.checkpoints.iter().skip(from);
        let wanted = wanted.take(limit.unwrap_or(usize::MAX));
        Ok(wanted
            .map(|one| Advance {
                records: one.records().cloned().collect(),
                ..(*one.advance).clone()
            })
            .collect())
    }

    async fn rename(&self, key: &ThreadKey, to: &ThreadKey) -> Result<bool, StoreError> {
        // Who holds both keeps all others out.
        let (from, to) = (self.take(key)?, self.take(to)?);
        if !to.thread.content().is_empty() {
            let thread = to.key.to_string().into();
            return Err(StoreError::Exists { thread });
        }
        let content = std::mem::take(&mut *from.thread.content());
        let found = !content.is_empty();
        *to.thread.content() = content;
        Ok(found)
    }

    async fn ask_to_stop(&self, key: &ThreadKey) -> Result<Option<String>, StoreError> {
        let thread = self.get(key);
        let held = thread.filter(|thread| thread.held.load(Ordering::Acquire));
        Ok(held.map(|thread| {
            thread.asked.store(true, Ordering::Release);
            HOLDER.to_owned()
        }))
    }

    async fn ask_again_to_stop(&self, key: &ThreadKey, holder: &str) -> Result<bool, StoreError> {
        Ok(holder == HOLDER && self.ask_to_stop(key).await?.is_some())
    }

    async fn is_asked_to_stop(&self, key: &ThreadKey) -> Result<bool, StoreError> {
        let thread = self.get(key);
        Ok(thread.is_some_and(|thread| {
            thread.held.load(Ordering::Acquire) && thread.asked.load(Ordering::Acquire)
        }))
    }
}

struct Writer {
    threads: Arc<DashMap<ThreadKey, Arc<Thread>>>,
    key: ThreadKey,
    thread: Arc<Thread>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A wish is for who holds the thread; the next one has not heard it.
        self.thread.asked.store(false, Ordering::Release);
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
        let records = match advance.records.is_empty() {
            true => None,
            false => {
                let records = std::mem::take(&mut advance.records);
                Some(Box::new(records.into_iter().collect()))
            }
        };
        let mut content = self.thread.content();
        let stored = match content.graphs.get_mut(namespace) {
            Some(stored) => stored,
            None => content.graphs.entry(namespace.clone()).or_default(),
        };
        let parent = match advance.parent {
            None => None,
            Some(id) => {
                let place = stored.position(id);
                let place = place.ok_or_else(|| unknown(&self.key, id))?;
                let parent = &mut stored.checkpoints[place];
                if let Some(records) = &mut parent.records {
                    records.retain(|record| !matches!(record.kind, RecordKind::Done { .. }));
                }
                Some(place)
            }
        };
        stored.checkpoints.push(One {
            advance: Box::new(advance),
            parent,
            records,
        });
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
        stored.records.get_or_insert_default().apply(ops);
        Ok(())
    }

    async fn note(&self, entries: Map) -> Result<(), StoreError> {
        self.thread.content().meta.extend(entries);
        Ok(())
    }
}
