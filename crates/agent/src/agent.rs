//! What the nodes of an agent have in common, and how a graph file gets them.

use crate::call_node::CallNode;
use crate::function::Functions;
use crate::middleware::{Approval, Clarification, ErrorReplies, Middleware};
use crate::model_node::ModelNode;
use crate::tool_node::ToolNode;
use crate::tools_node::ToolsNode;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tine_engine::{Node, NodeError, ThreadKey};
use tine_graphfile::{
    CallSpec, FunctionManifest, ModelSpec, NodeKinds, OnToolError, Registry, RouteLabel,
    ToolManifest, ToolSpec, ToolsSpec,
};
use tine_models::Model;
use tine_tools::Blocking;
use tine_tools::assemble::Toolbox;
use tine_tools::paths::ThreadFolders;

/// Gives each thread its folders.
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
    pub(crate) toolbox: Toolbox,
    pub(crate) folders: Arc<dyn Folders>,
    pub(crate) functions: Functions,
    pub(crate) options: Arc<Map<String, Value>>,
    pub(crate) blocking: Blocking,
    middleware: Vec<Arc<dyn Middleware>>,
}

impl Agent {
    /// An agent with these tools, and without models, functions and options.
    pub fn new(toolbox: Toolbox, folders: impl Folders + 'static) -> Self {
        Self {
            models: Arc::default(),
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

    /// The chain around the tool calls of one node, outermost first: what the host added, then errors, approvals and
    /// questions. Errors stand outside, so that they see what the others refuse.
    fn chain(&self, on_error: OnToolError, ask_before: &[String]) -> Arc<[Arc<dyn Middleware>]> {
        let mut chain = self.middleware.clone();
        if on_error == OnToolError::Reply {
            chain.push(Arc::new(ErrorReplies));
        }
        if !ask_before.is_empty() {
            chain.push(Arc::new(Approval::before(ask_before.iter().cloned())));
        }
        chain.push(Arc::new(Clarification));
        chain.into()
    }

    /// The tools of these names, or the name of one that is not there.
    fn select(&self, names: &[String]) -> Result<Toolbox, String> {
        if let Some(name) = names.iter().find(|name| self.toolbox.get(name).is_none()) {
            let near = self
                .toolbox
                .nearest(name)
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            return Err(format!("there is no tool `{name}`{near}"));
        }
        Ok(self
            .toolbox
            .filtered(|tool| names.iter().any(|name| name == tool.name())))
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

impl NodeKinds for Agent {
    fn model(&self, spec: ModelSpec) -> Result<Arc<dyn Node>, String> {
        let Some(model) = self.models.get(&spec.model) else {
            return Err(format!("there is no model `{}`", spec.model));
        };
        let tools = self.select(&spec.tools)?;
        Ok(Arc::new(ModelNode::new(
            spec,
            model.clone(),
            &tools,
            self.middleware.clone().into(),
        )))
    }

    fn tools(&self, spec: ToolsSpec) -> Result<Arc<dyn Node>, String> {
        let tools = self.select(&spec.tools)?;
        let chain = self.chain(spec.on_tool_error, &spec.ask_before);
        Ok(Arc::new(ToolsNode::new(spec, self.clone(), tools, chain)))
    }

    fn tool(&self, spec: ToolSpec) -> Result<Arc<dyn Node>, String> {
        let tools = self.select(std::slice::from_ref(&spec.tool))?;
        let chain = self.chain(OnToolError::Fail, &[]);
        Ok(Arc::new(ToolNode::new(spec, self.clone(), tools, chain)))
    }

    fn call(&self, spec: CallSpec) -> Result<Arc<dyn Node>, String> {
        let Some(function) = self.functions.get(&spec.function) else {
            return Err(format!("there is no function `{}`", spec.function));
        };
        Ok(Arc::new(CallNode::new(spec, function)))
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
