//! What the nodes of an agent have in common.

use crate::function::Functions;
use crate::middleware::Middleware;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tine_engine::{NodeError, ThreadKey};
use tine_graphfile::{FunctionManifest, Registry, RouteLabel, ToolManifest};
use tine_models::{Model, Pricing};
use tine_tools::Blocking;
use tine_tools::assemble::Toolbox;
use tine_tools::paths::ThreadFolders;

/// Gives each thread its folders.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not give threads their folders",
    note = "closures `Fn(&ThreadKey) -> Result<ThreadFolders, NodeError>` do; or implement `tine_agent::Folders`"
)]
pub trait Folders: Send + Sync {
    /// Opens the folders of a thread, and makes them if need be.
    ///
    /// # Errors
    /// If they can not be made.
    fn of(&self, thread: &ThreadKey) -> Result<ThreadFolders, NodeError>;
}

impl<F: Fn(&ThreadKey) -> Result<ThreadFolders, NodeError> + Send + Sync> Folders for F {
    fn of(&self, thread: &ThreadKey) -> Result<ThreadFolders, NodeError> {
        self(thread)
    }
}

/// What a host has for its agents: models, tools, folders, functions. Makes the nodes of graph files.
#[derive(Clone)]
pub struct Agent {
    pub(crate) models: Arc<BTreeMap<String, Arc<dyn Model>>>,
    pub(crate) pricing: Arc<BTreeMap<String, Pricing>>,
    pub(crate) toolbox: Toolbox,
    pub(crate) folders: Arc<dyn Folders>,
    pub(crate) functions: Functions,
    pub(crate) options: Arc<Map<String, Value>>,
    pub(crate) blocking: Blocking,
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
}

impl Agent {
    /// An agent with these tools, and without models, functions and options.
    pub fn new(toolbox: Toolbox, folders: impl Folders + 'static) -> Self {
        Self {
            models: Arc::default(),
            pricing: Arc::default(),
            toolbox,
            folders: Arc::new(folders),
            functions: Functions::default(),
            options: Arc::default(),
            blocking: Blocking::Inline,
            middleware: Vec::new(),
        }
    }

    /// Gives it models, by alias.
    #[must_use]
    pub fn with_models(
        mut self,
        models: impl IntoIterator<Item = (String, Arc<dyn Model>)>,
    ) -> Self {
        self.models = Arc::new(models.into_iter().collect());
        self
    }

    /// Says what its models cost, by alias. What a reply costs is counted against the budget of the run, and stands in
    /// its message as `response_metadata.cost`: `{currency, micros}`.
    #[must_use]
    pub fn with_pricing(mut self, pricing: impl IntoIterator<Item = (String, Pricing)>) -> Self {
        self.pricing = Arc::new(pricing.into_iter().collect());
        self
    }

    /// Gives it functions.
    #[must_use]
    pub fn with_functions(mut self, functions: Functions) -> Self {
        self.functions = functions;
        self
    }

    /// Sets options of the run that tools look at, such as `disable_clarification`.
    #[must_use]
    pub fn with_options(mut self, options: Map<String, Value>) -> Self {
        self.options = Arc::new(options);
        self
    }

    /// Sets where work of tools that blocks is done.
    #[must_use]
    pub fn with_blocking(mut self, blocking: Blocking) -> Self {
        self.blocking = blocking;
        self
    }

    /// Adds middleware, inside of those added before and outside of the agent's own.
    #[must_use]
    pub fn with_middleware(mut self, middleware: impl Middleware + 'static) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// The tools.
    #[must_use]
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// What a graph file may name, for checking it.
    #[must_use]
    pub fn registry(&self, checkpointer: bool) -> Registry {
        Registry {
            tools: self
                .toolbox
                .iter()
                .map(|tool| (tool.name().to_owned(), manifest(tool.spec())))
                .collect(),
            models: self.models.keys().cloned().collect(),
            functions: self
                .functions
                .iter()
                .map(|(name, function)| (name.to_owned(), function_manifest(function)))
                .collect(),
            checkpointer,
            ..Registry::default()
        }
    }
}

fn manifest(spec: &tine_tools::ToolSpec) -> ToolManifest {
    ToolManifest {
        args: spec.args.value().clone(),
        result: None,
        writes: spec.manifest.writes.clone(),
        may_write: spec.manifest.may_write.clone(),
        routes: spec
            .manifest
            .routes
            .iter()
            .map(|route| RouteLabel {
                label: route.label.clone(),
                optional: route.optional,
            })
            .collect(),
        shell: false,
    }
}

fn function_manifest(function: &dyn crate::Function) -> FunctionManifest {
    let routes = function.routes().iter().map(|label| RouteLabel {
        label: (*label).to_owned(),
        optional: false,
    });
    FunctionManifest {
        input: function.input(),
        routes: routes.collect(),
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chain: Vec<_> = self
            .middleware
            .iter()
            .map(|middleware| middleware.name())
            .collect();
        out.debug_struct("Agent")
            .field("models", &self.models.keys().collect::<Vec<_>>())
            .field("tools", &self.toolbox.names().collect::<Vec<_>>())
            .field("middleware", &chain)
            .finish_non_exhaustive()
    }
}
