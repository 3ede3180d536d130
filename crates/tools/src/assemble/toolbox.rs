use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use crate::cx::ToolCx;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::schema::Args;
use crate::spec::{Effect, Source, ToolSpec};
use crate::tool::Tool;

/// What a tool is, whatever name the model calls it by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToolId {
    /// Where it comes from.
    pub source: Source,
    /// Its own name there.
    pub name: String,
}

/// A tool under the name the model knows it by.
#[derive(Clone)]
pub struct BoundTool {
    spec: Arc<ToolSpec>,
    id: ToolId,
    tool: Arc<dyn Tool>,
}

impl BoundTool {
    /// Binds a tool under its own name.
    pub fn new(tool: Arc<dyn Tool>) -> Self {
        let spec = tool.spec().clone();
        Self {
            id: ToolId {
                source: spec.source,
                name: spec.name.clone(),
            },
            spec: Arc::new(spec),
            tool,
        }
    }

    /// Binds it under the name and group that a configuration gives.
    pub(super) fn alias(mut self, name: &str, group: &str) -> Self {
        let spec = Arc::make_mut(&mut self.spec);
        spec.name = name.to_owned();
        spec.group = Some(group.to_owned());
        spec.source = Source::Config;
        self.id.source = Source::Config;
        self
    }

    /// Gives the name the model knows.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Describes the tool as the model is told, under the model's name.
    #[must_use]
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Says which tool it is.
    #[must_use]
    pub fn id(&self) -> &ToolId {
        &self.id
    }

    /// Checks the arguments of a call; nothing runs yet.
    ///
    /// # Errors
    /// [`ToolError::Arguments`] with all that is wrong.
    pub fn prepare(&self, args: Value) -> Result<PreparedCall<'_>, ToolError> {
        let args = self.tool.accepts().check(self.name(), args)?;
        Ok(PreparedCall { bound: self, args })
    }

    /// Checks the arguments and calls the tool.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare) and [`Tool::call`].
    pub async fn call(&self, cx: &ToolCx, args: Value) -> Result<ToolOutput, ToolError> {
        self.prepare(args)?.run(cx).await
    }
}

impl fmt::Debug for BoundTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundTool")
            .field("spec", &self.spec)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A call whose arguments fit.
#[derive(Debug)]
pub struct PreparedCall<'a> {
    bound: &'a BoundTool,
    args: Args,
}

impl PreparedCall<'_> {
    /// Gives the arguments, made plain.
    #[must_use]
    pub fn args(&self) -> &Args {
        &self.args
    }

    /// Says what doing this call twice would do.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.bound.tool.effect(&self.args)
    }

    /// Calls the tool.
    ///
    /// # Errors
    /// As [`Tool::call`].
    pub async fn run(self, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        self.bound.tool.call(cx, self.args).await
    }
}

/// The tools one agent can use: immutable, in order, each name once.
#[derive(Clone, Debug, Default)]
pub struct Toolbox {
    tools: Arc<IndexMap<String, BoundTool>>,
}

impl Toolbox {
    /// Makes a toolbox of tools under their own names; of two with one name
    /// the first stays.
    #[must_use]
    pub fn of(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        Self::from_bound(tools.into_iter().map(BoundTool::new))
    }

    pub(super) fn from_bound(tools: impl IntoIterator<Item = BoundTool>) -> Self {
        let mut map = IndexMap::new();
        for tool in tools {
            map.entry(tool.name().to_owned()).or_insert(tool);
        }
        Self {
            tools: Arc::new(map),
        }
    }

    /// Finds a tool by the model's name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&BoundTool> {
        self.tools.get(name)
    }

    /// Finds the name that a mistyped one most likely stands for.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&str> {
        tine_engine::text::nearest(name, self.names())
    }

    /// Lists the tools in order.
    pub fn iter(&self) -> impl Iterator<Item = &BoundTool> {
        self.tools.values()
    }

    /// Lists the names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    /// Counts the tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Tells whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Keeps the tools that `keep` accepts, in the same order.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&BoundTool) -> bool) -> Self {
        Self::from_bound(self.iter().filter(|tool| keep(tool)).cloned())
    }
}
