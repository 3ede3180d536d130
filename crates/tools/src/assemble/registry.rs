use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::known;
use crate::config::{Config, ConfigError, EnvSource, Resolved, ToolEntry};
use crate::tool::Tool;

/// What an implementation may look at when it is built.
#[derive(Clone, Copy)]
pub struct BuildCx<'a> {
    /// The whole configuration.
    pub config: &'a Config,
    /// The tool's entry.
    pub entry: &'a ToolEntry,
    /// The host's environment.
    pub env: &'a dyn EnvSource,
}

impl<'a> BuildCx<'a> {
    /// Gives the entry's settings, variables looked up.
    #[must_use]
    pub fn settings(&self) -> Resolved<'a> {
        self.entry.settings.with(self.env)
    }
}

impl fmt::Debug for BuildCx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildCx")
            .field("entry", &self.entry)
            .finish_non_exhaustive()
    }
}

type Build = dyn Fn(BuildCx<'_>) -> Result<Arc<dyn Tool>, ConfigError> + Send + Sync;

/// What a `use:` path stands for.
#[derive(Clone)]
pub(super) enum Implementation {
    Ready {
        build: Arc<Build>,
        /// The settings it reads; `None` when it takes any.
        settings: Option<Arc<[&'static str]>>,
    },
    /// A name of DeerFlow's that nothing stands behind yet.
    Unavailable {
        /// What would work in its place.
        instead: Option<&'static str>,
    },
}

/// The names that `use:` may give, and what they stand for.
///
/// A configuration never names code to load: what it can use is what the host
/// put here.
#[derive(Clone)]
pub struct Registry {
    known: BTreeMap<String, Implementation>,
}

impl Registry {
    /// Knows the tools that ship, and all names of DeerFlow's.
    #[must_use]
    pub fn standard() -> Self {
        let mut registry = Self {
            known: BTreeMap::new(),
        };
        known::register(&mut registry);
        registry
    }

    /// Adds an implementation that is built from its entry; replaces what the
    /// name stood for.
    #[must_use]
    pub fn with<F>(mut self, path: impl Into<String>, build: F) -> Self
    where
        F: Fn(BuildCx<'_>) -> Result<Arc<dyn Tool>, ConfigError> + Send + Sync + 'static,
    {
        self.known.insert(
            path.into(),
            Implementation::Ready {
                build: Arc::new(build),
                settings: None,
            },
        );
        self
    }

    /// Adds a tool that needs no settings; replaces what the name stood for.
    #[must_use]
    pub fn with_tool(self, path: impl Into<String>, tool: Arc<dyn Tool>) -> Self {
        self.with(path, move |_| Ok(Arc::clone(&tool)))
    }

    pub(super) fn ready<F>(&mut self, path: &str, settings: &[&'static str], build: F)
    where
        F: Fn(BuildCx<'_>) -> Result<Arc<dyn Tool>, ConfigError> + Send + Sync + 'static,
    {
        self.known.insert(
            path.to_owned(),
            Implementation::Ready {
                build: Arc::new(build),
                settings: Some(Arc::from(settings)),
            },
        );
    }

    pub(super) fn unavailable(&mut self, path: &str, instead: Option<&'static str>) {
        let unavailable = Implementation::Unavailable { instead };
        self.known.insert(path.to_owned(), unavailable);
    }

    pub(super) fn get(&self, path: &str) -> Option<&Implementation> {
        self.known.get(path)
    }

    pub(super) fn nearest(&self, path: &str) -> Option<&str> {
        tine_engine::text::nearest(path, self.known.keys().map(String::as_str))
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::standard()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.known.keys()).finish()
    }
}
