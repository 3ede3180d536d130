//! What the host brings: tools, models and functions by name, nodes by kind, files by path.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use tine_engine::{Node, NodeError, Reducer, Value};

use crate::graph::Channels;
use crate::template::Template;
use crate::types::{Mismatch, Type, Types};
use crate::value::ValueExpr;

/// Everything a file may name, by name. A file never names code to load.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// Tools.
    pub tools: BTreeMap<String, ToolManifest>,
    /// Aliases of models.
    pub models: BTreeSet<String>,
    /// Aliases of models that the host knows and can not use, with the reason.
    pub unusable: BTreeMap<String, String>,
    /// Functions for `call` nodes.
    pub functions: BTreeMap<String, FunctionManifest>,
    /// Reducers for `reduce: { custom: name }`.
    pub reducers: BTreeMap<String, Arc<dyn Reducer>>,
    /// Whether threads are kept, so that a run can stop and be resumed.
    pub checkpointer: bool,
    /// Whether the host's names are incomplete: unknown ones are then warnings.
    pub offline: bool,
}

/// What a tool says about itself.
#[derive(Clone, Debug, Default)]
pub struct ToolManifest {
    /// JSON Schema of the arguments.
    pub args: serde_json::Value,
    /// JSON Schema of the plain result, if it has one.
    pub result: Option<serde_json::Value>,
    /// Channels it writes; a graph that names the tool declares them.
    pub writes: Vec<String>,
    /// Channels it writes as well, if the graph declares them.
    pub may_write: Vec<String>,
    /// Route labels it may return.
    pub routes: Vec<RouteLabel>,
    /// Whether its arguments reach a shell.
    pub shell: bool,
}

/// A label a tool or function may return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteLabel {
    /// The label.
    pub label: String,
    /// Whether a node may leave it unmapped; the tool then finds another way.
    pub optional: bool,
}

/// What a function says about itself.
#[derive(Clone, Debug, Default)]
pub struct FunctionManifest {
    /// JSON Schema of the input.
    pub input: serde_json::Value,
    /// Route labels it may return.
    pub routes: Vec<RouteLabel>,
}

/// Reads the files a graph file names, such as prompts.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not give the files that graph files name",
    note = "use `NoSources` for a graph file that stands alone, or implement `tine_graphfile::Sources`"
)]
pub trait Sources {
    /// Returns the text of a file beside the graph file.
    ///
    /// `path` is relative and has no `..` in it.
    ///
    /// # Errors
    /// A word on why there is no such text.
    fn read(&self, path: &str) -> Result<String, String>;
}

/// Sources of a graph file that stands alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSources;

impl Sources for NoSources {
    fn read(&self, _: &str) -> Result<String, String> {
        Err("no other files can be read here".to_owned())
    }
}

/// Makes nodes of the kinds that need a host.
///
/// A node goes to a label by a Command with the label as its target (`Target::Node(label)`); the
/// loader puts a wrapper around each node that turns labels into the targets the file maps them
/// to. [`Routes`] tells which labels are mapped.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not make the nodes of graph files",
    note = "`tine_agent::Agent` makes those of models and tools; or implement `tine_graphfile::NodeKinds`"
)]
pub trait NodeKinds {
    /// Makes a node that asks a model.
    ///
    /// # Errors
    /// If the host cannot make it; the file is then refused with this message.
    fn model(&self, spec: ModelSpec) -> Result<Arc<dyn Node>, String>;

    /// Makes a node that runs the tool calls of the last message.
    ///
    /// # Errors
    /// As [`model`](Self::model).
    fn tools(&self, spec: ToolsSpec) -> Result<Arc<dyn Node>, String>;

    /// Makes a node that runs one tool.
    ///
    /// # Errors
    /// As [`model`](Self::model).
    fn tool(&self, spec: ToolSpec) -> Result<Arc<dyn Node>, String>;

    /// Makes a node that calls a function.
    ///
    /// # Errors
    /// As [`model`](Self::model).
    fn call(&self, spec: CallSpec) -> Result<Arc<dyn Node>, String>;
}

/// The labels a node maps.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    labels: Arc<BTreeMap<Arc<str>, Vec<tine_engine::Target>>>,
}

impl Routes {
    pub(crate) fn new(labels: BTreeMap<Arc<str>, Vec<tine_engine::Target>>) -> Self {
        Self {
            labels: Arc::new(labels),
        }
    }

    /// Tells whether a label leads somewhere.
    pub fn has(&self, label: &str) -> bool {
        self.labels.contains_key(label)
    }

    /// Iterates over the labels, sorted.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.labels.keys().map(|label| &**label)
    }

    pub(crate) fn targets(&self, label: &str) -> Option<&[tine_engine::Target]> {
        self.labels.get(label).map(Vec::as_slice)
    }
}

/// What every node of the host gets beside its own spec.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// The id of the node.
    pub id: String,
    /// What it is for.
    pub description: Option<String>,
    /// The labels it maps.
    pub routes: Routes,
    /// The channels of the graph, for [`Scene::new`](crate::Scene::new).
    pub channels: Channels,
}

/// A `model` node.
#[derive(Clone, Debug)]
pub struct ModelSpec {
    /// The node.
    pub info: NodeInfo,
    /// Alias of the model.
    pub model: String,
    /// Standing instructions.
    pub system: Option<Template>,
    /// One user turn after the conversation.
    pub prompt: Option<Template>,
    /// Whether the turn is added at the first visit of a run only.
    pub prompt_once: bool,
    /// The channel of the conversation; the reply is written back to it.
    pub messages: Option<String>,
    /// Tools offered to the model, in the order of the file.
    pub tools: Vec<String>,
    /// Whether and which tool it has to use.
    pub tool_choice: ToolChoice,
    /// Structured output.
    pub returns: Option<ReturnsSpec>,
    /// Parameters of the request, such as `temperature`.
    pub params: Value,
    /// Whether to emit what the model says as it says it.
    pub stream: bool,
}

/// Whether a model has to use a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// It decides.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must use one.
    Required,
    /// It must use this one.
    Tool(String),
}

/// What a model node writes beside its reply.
#[derive(Clone, Debug)]
pub struct ReturnsSpec {
    /// The channel.
    pub into: String,
    /// What has to come out.
    pub shape: Shape,
}

/// A type of the file, ready to check values with.
#[derive(Clone, Debug)]
pub struct Shape {
    pub(crate) kind: Type,
    pub(crate) types: Arc<Types>,
}

impl Shape {
    /// Tells whether the shape is plain text, which needs no structured output.
    pub fn is_text(&self) -> bool {
        matches!(self.types.plain(&self.kind), Type::Text(_))
    }

    /// Returns the type as the file writes it.
    pub fn name(&self) -> String {
        self.kind.to_string()
    }

    /// Returns the shape as JSON Schema.
    pub fn schema(&self) -> serde_json::Value {
        self.kind.to_schema(&self.types)
    }

    /// Makes plain text what is wanted, so that an answer can be given in one line: `"yes"` becomes `{ text: "yes" }`
    /// for a record with one required text, and text that fits no other way but as JSON is read as that.
    #[must_use]
    pub fn from_text(&self, value: Value) -> Value {
        let Value::Text(text) = &value else {
            return value;
        };
        let fits = |value: &Value| self.types.check(&self.kind, value).is_ok();
        if fits(&value) {
            return value;
        }
        if let Some(data) = serde_json::from_str(text).ok().filter(fits) {
            return data;
        }
        let Type::Object(object) = self.types.plain(&self.kind) else {
            return value;
        };
        let mut required = object.fields.iter().filter(|(_, field)| field.required);
        match (required.next(), required.next()) {
            (Some((name, field)), None)
                if matches!(self.types.plain(&field.kind), Type::Text(_)) =>
            {
                Value::from_pairs([(name.as_str(), value)])
            }
            _ => value,
        }
    }

    /// Checks a value and fills in the defaults of fields that it leaves out.
    ///
    /// # Errors
    /// The first part that does not fit.
    pub fn accept(&self, value: Value) -> Result<Value, Mismatch> {
        self.types.check(&self.kind, &value)?;
        Ok(self.types.complete(&self.kind, value))
    }
}

/// A `tools` node.
#[derive(Clone, Debug)]
pub struct ToolsSpec {
    /// The node.
    pub info: NodeInfo,
    /// Tools allowed to run here, in the order of the file.
    pub tools: Vec<String>,
    /// The channel whose last message holds the calls.
    pub from: String,
    /// How many calls run at once.
    pub max_parallel: usize,
    /// Tools a person is asked before.
    pub ask_before: Vec<String>,
    /// What a tool's error does.
    pub on_tool_error: OnToolError,
}

/// What the error of a tool does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnToolError {
    /// The model is told.
    #[default]
    Reply,
    /// The node fails.
    Fail,
}

/// A `tool` node.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// The node.
    pub info: NodeInfo,
    /// The tool.
    pub tool: String,
    /// Its arguments; always a map.
    pub args: ValueExpr,
    /// The channel of the plain result.
    pub into: Option<String>,
}

/// A `call` node.
#[derive(Clone, Debug)]
pub struct CallSpec {
    /// The node.
    pub info: NodeInfo,
    /// The function.
    pub function: String,
    /// Its input; always a map.
    pub input: ValueExpr,
    /// The only channels it may write.
    pub writes: Vec<String>,
}

/// An expression or template failed: an error of class `expression`.
pub(crate) fn expression_error(error: &dyn std::error::Error) -> NodeError {
    NodeError::new(tine_engine::ErrorClass::Expression, error.to_string())
}
