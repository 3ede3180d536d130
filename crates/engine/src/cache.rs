//! Results of nodes, kept by what the nodes were given.

use crate::command::Target;
use crate::error::StoreError;
use crate::event::ChannelWrite;
use crate::value::Value;
use crate::world::Timestamp;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the results of a node are kept by, and how long.
///
/// A result is kept when its task has finished, routers and all; a failure, a question and a command for the parent
/// graph are not, nor is what a node did with an answer, what its error handler did, and what writes channels that are
/// never stored.
#[derive(Clone, Default)]
pub struct CachePolicy {
    pub(crate) ttl: Option<Duration>,
    pub(crate) key: Option<KeyOf>,
}

/// Picks what a result depends on out of the input of a node.
type KeyOf = Arc<dyn Fn(&Value) -> Value + Send + Sync>;

impl CachePolicy {
    /// Keeps results by the whole input of the node: what it was dispatched with, else the channels it reads.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets a result after this time.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Keeps results by what this makes of the input of the node.
    #[must_use]
    pub fn key(mut self, key: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        self.key = Some(Arc::new(key));
        self
    }
}

impl fmt::Debug for CachePolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CachePolicy")
            .field("ttl", &self.ttl)
            .field("has_key", &self.key.is_some())
            .finish()
    }
}

/// Names a kept result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey {
    /// Whose result it is.
    pub tenant: Arc<str>,
    /// The graph; graphs that share a cache need names of their own.
    pub graph: Arc<str>,
    /// The node.
    pub node: Arc<str>,
    /// A hash of what the result depends on.
    pub input: u128,
}

/// A kept result: what a task wrote and where it went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CachedResult {
    /// What it wrote, in order, as the node returned it.
    pub writes: Vec<ChannelWrite>,
    /// Where it went, edges and routers included.
    pub targets: Vec<Target>,
    /// Joins that it fed.
    pub joins: Vec<Arc<str>>,
}

/// Which results are meant: those that have all that is said here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheScope {
    /// Of this tenant.
    pub tenant: Option<Arc<str>>,
    /// Of this graph.
    pub graph: Option<Arc<str>>,
    /// Of the node of this name.
    pub node: Option<Arc<str>>,
}

impl CacheScope {
    /// All results.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// The results of one node.
    pub fn node(graph: impl Into<Arc<str>>, node: impl Into<Arc<str>>) -> Self {
        Self {
            tenant: None,
            graph: Some(graph.into()),
            node: Some(node.into()),
        }
    }

    /// Only those of this tenant.
    #[must_use]
    pub fn of_tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Whether the result of this name is meant.
    #[must_use]
    pub fn includes(&self, key: &CacheKey) -> bool {
        let fits = |wanted: &Option<Arc<str>>, found: &Arc<str>| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        fits(&self.tenant, &key.tenant)
            && fits(&self.graph, &key.graph)
            && fits(&self.node, &key.node)
    }
}

/// Keeps results of nodes.
///
/// An error fails the task: an implementation that would rather have the node run gives nothing, and keeps nothing.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a node cache",
    note = "use `MemoryNodeCache`, or implement `tine_engine::cache::NodeCache`"
)]
pub trait NodeCache: Send + Sync {
    /// The result of this name, unless its time was over before `now`.
    ///
    /// # Errors
    /// If the cache can not be read.
    async fn get(&self, key: &CacheKey, now: Timestamp)
    -> Result<Option<CachedResult>, StoreError>;

    /// Keeps a result, until `expires` if that is said.
    ///
    /// # Errors
    /// If it can not be kept.
    async fn put(
        &self,
        key: CacheKey,
        result: CachedResult,
        expires: Option<Timestamp>,
    ) -> Result<(), StoreError>;

    /// Forgets results.
    ///
    /// # Errors
    /// If they can not be forgotten.
    async fn clear(&self, scope: &CacheScope) -> Result<(), StoreError>;
}

/// Keeps results in memory, as long as the process lives or their policy says. Clones share one cache.
#[derive(Clone, Debug, Default)]
pub struct MemoryNodeCache {
    results: Arc<Mutex<Results>>,
}

type Results = BTreeMap<CacheKey, (CachedResult, Option<Timestamp>)>;

impl MemoryNodeCache {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn results(&self) -> MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl NodeCache for MemoryNodeCache {
    async fn get(
        &self,
        key: &CacheKey,
        now: Timestamp,
    ) -> Result<Option<CachedResult>, StoreError> {
        let mut results = self.results();
        let Some((result, expires)) = results.get(key) else {
            return Ok(None);
        };
        if expires.is_none_or(|expires| now < expires) {
            return Ok(Some(result.clone()));
        }
        results.remove(key);
        Ok(None)
    }

    async fn put(
        &self,
        key: CacheKey,
        result: CachedResult,
        expires: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        self.results().insert(key, (result, expires));
        Ok(())
    }

    async fn clear(&self, scope: &CacheScope) -> Result<(), StoreError> {
        self.results().retain(|key, _| !scope.includes(key));
        Ok(())
    }
}
