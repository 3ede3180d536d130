use serde::{Deserialize, Serialize};

use crate::schema::ArgSchema;

/// Where a tool comes from; in the order of who wins a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// An entry of `tools:` in the configuration.
    Config,
    /// Always there, or by a condition.
    Builtin,
    /// A server that speaks the Model Context Protocol.
    Mcp,
    /// An agent that speaks the Agent Client Protocol.
    Acp,
}

impl Source {
    /// Names the source as reports write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Builtin => "built-in",
            Self::Mcp => "MCP",
            Self::Acp => "ACP",
        }
    }
}

/// What doing a call twice would do; decides what happens to a call that
/// started before a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing outside changes.
    ReadOnly,
    /// The second time changes nothing more.
    Idempotent,
    /// Each time changes something.
    Effectful,
}

/// What a tool may write and where it may lead, known before it is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// Channels the tool's commands write to; a graph that uses the tool declares them.
    pub writes: Vec<String>,
    /// Channels they write to as well, if the graph declares them.
    pub may_write: Vec<String>,
    /// Labels its commands may return as a route.
    pub routes: Vec<RouteLabel>,
}

/// One label a tool may return.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteLabel {
    /// The label.
    pub label: String,
    /// Whether a tools node may leave it unmapped; the tool then does without.
    pub optional: bool,
}

/// What is known of a tool without calling it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name the model sees; the toolbox may replace it by an alias.
    pub name: String,
    /// What the model is told about the tool.
    pub description: String,
    /// The arguments, as the model is told.
    pub args: ArgSchema,
    /// What scenes filter by: `web`, `file:read`.
    pub group: Option<String>,
    /// Where the tool comes from.
    pub source: Source,
    /// What doing a call twice would do, unless its arguments say otherwise.
    pub effect: Effect,
    /// What it may write and where it may lead.
    pub manifest: Manifest,
    /// Whether its calls may run beside others of the same message.
    pub parallel: bool,
    /// Whether the turn ends with its result instead of going back to the
    /// model.
    pub return_direct: bool,
}

impl ToolSpec {
    /// Describes a tool that changes something each time, may run in
    /// parallel, and writes to no channel.
    pub fn new(
        source: Source,
        name: impl Into<String>,
        description: impl Into<String>,
        args: ArgSchema,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            args,
            group: None,
            source,
            effect: Effect::Effectful,
            manifest: Manifest::default(),
            parallel: true,
            return_direct: false,
        }
    }

    /// Says what doing a call twice would do.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Adds a channel that the tool writes to.
    #[must_use]
    pub fn writes(mut self, channel: impl Into<String>) -> Self {
        self.manifest.writes.push(channel.into());
        self
    }

    /// Adds a channel that the tool writes to if the graph declares it.
    #[must_use]
    pub fn may_write(mut self, channel: impl Into<String>) -> Self {
        self.manifest.may_write.push(channel.into());
        self
    }

    /// Adds a label that a tools node must map.
    #[must_use]
    pub fn route(mut self, label: impl Into<String>) -> Self {
        let label = label.into();
        self.manifest.routes.push(RouteLabel {
            label,
            optional: false,
        });
        self
    }

    /// Adds a label that a tools node may map.
    #[must_use]
    pub fn optional_route(mut self, label: impl Into<String>) -> Self {
        let label = label.into();
        self.manifest.routes.push(RouteLabel {
            label,
            optional: true,
        });
        self
    }

    /// Says that its calls must not run beside others.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.parallel = false;
        self
    }

    /// Says that the turn ends with its result.
    #[must_use]
    pub fn return_direct(mut self) -> Self {
        self.return_direct = true;
        self
    }
}
