//! What a case file says.

use serde::Deserialize;
use std::collections::BTreeMap;
use tine_engine::Value;
use tine_engine::value::Map;

/// One case: a graph, what is done to it, and what must be seen.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The name; that of the file.
    pub name: String,
    /// What the case shows, in a sentence.
    pub about: String,
    /// Words to search by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// How binding the case is.
    pub label: Label,
    /// Where the expected value was decided and not recorded.
    pub decision: Option<Decision>,
    /// Whether threads are stored.
    #[serde(default = "yes")]
    pub checkpointer: bool,
    /// What is recorded.
    #[serde(default = "default_observe")]
    pub observe: Vec<Observe>,
    /// The root graph.
    pub graph: GraphSpec,
    /// Child graphs by name.
    #[serde(default)]
    pub graphs: BTreeMap<String, GraphSpec>,
    /// The actions, in order.
    pub run: Vec<Action>,
}

/// How binding a case is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Label {
    /// A contract.
    C,
    /// A contract that older versions of the oracle broke.
    F,
    /// An accident of the oracle.
    Q,
}

/// A decision against what the oracle does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// What was decided.
    pub text: String,
    /// What the oracle does.
    pub langgraph: String,
    /// The fields of `expect` that were written by hand.
    pub fields: Vec<String>,
}

/// One thing that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the format")]
pub enum Observe {
    Result,
    Calls,
    Values,
    Updates,
    Tasks,
    Checkpoints,
    Custom,
    State,
    Subgraphs,
    CompletionOrder,
}

fn yes() -> bool {
    true
}

fn default_observe() -> Vec<Observe> {
    vec![
        Observe::Result,
        Observe::Calls,
        Observe::Values,
        Observe::Updates,
        Observe::State,
    ]
}

/// A graph.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphSpec {
    /// The channels by name.
    pub channels: BTreeMap<String, Option<ChannelSpec>>,
    /// The input channels; all if absent.
    pub input: Option<Vec<String>>,
    /// The output channels; all if absent.
    pub output: Option<Vec<String>>,
    /// The nodes by name.
    pub nodes: BTreeMap<String, NodeSpec>,
    /// Edges and joins.
    #[serde(default)]
    pub edges: Vec<(OneOrMany, String)>,
    /// Routers.
    #[serde(default)]
    pub branches: Vec<BranchSpec>,
    /// Where the graph stops before nodes.
    pub interrupt_before: Option<OneOrMany>,
    /// Where the graph stops after nodes.
    pub interrupt_after: Option<OneOrMany>,
}

/// A name, or a list of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One name.
    One(String),
    /// Several.
    Many(Vec<String>),
}

/// A channel.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelSpec {
    /// How writes merge.
    #[serde(default)]
    pub reducer: ReducerName,
    /// How long the value is kept.
    #[serde(default)]
    pub lifetime: Lifetime,
    /// The value at thread start.
    pub default: Option<Value>,
    /// How the channel is stored: a hint, nothing that is observed.
    pub storage: Option<String>,
    /// The same.
    pub snapshot_every: Option<u64>,
}

/// The reducers of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the format")]
pub enum ReducerName {
    #[default]
    Last,
    Append,
    Add,
    Max,
    Merge,
    Dedupe,
    Messages,
}

/// How long a channel keeps its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the format")]
pub enum Lifetime {
    #[default]
    Thread,
    Ephemeral,
    Untracked,
}

/// A node: a body, or a child graph.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// The body.
    #[serde(rename = "do")]
    pub body: Option<Vec<Op>>,
    /// The child graph.
    pub subgraph: Option<String>,
    /// How long the child graph keeps its state.
    #[serde(default)]
    pub persistence: Persistence,
    /// The only channels that the node sees.
    pub reads: Option<Vec<String>>,
    /// Whether the node waits for everything else.
    #[serde(default)]
    pub defer: bool,
    /// How often the node is tried.
    pub retry: Option<RetrySpec>,
    /// What runs when the node has failed.
    pub error_handler: Option<Vec<Op>>,
    /// How long an attempt may take.
    pub timeout_ms: Option<u64>,
    /// Whether results are kept by input.
    #[serde(default)]
    pub cache: bool,
}

/// How long a child graph keeps its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the format")]
pub enum Persistence {
    None,
    #[default]
    Invocation,
    Thread,
}

/// How often a node is tried.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrySpec {
    /// Attempts in all.
    pub max_attempts: u32,
}

/// A router.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchSpec {
    /// The node it belongs to.
    pub from: String,
    /// The body.
    #[serde(rename = "do")]
    pub body: Vec<Op>,
    /// What its routes stand for.
    pub path_map: Option<BTreeMap<String, String>>,
}

/// One operation of a body.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Op {
    /// A choice.
    If {
        /// What is tested.
        #[serde(rename = "if")]
        condition: Condition,
        /// What is done if it holds.
        #[serde(default)]
        then: Vec<Self>,
        /// What is done if not.
        #[serde(default, rename = "else")]
        otherwise: Vec<Self>,
    },
    /// Anything else.
    Plain(PlainOp),
}

/// An operation with one key.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the format")]
pub enum PlainOp {
    Write(Map),
    Goto(Value),
    Command(CommandSpec),
    Interrupt {
        value: Value,
        #[serde(rename = "as")]
        bind: Option<String>,
    },
    Fail(FailSpec),
    Set(Map),
    SleepMs(u64),
    Emit(Value),
    Call(CallSpec),
    Route(Value),
}

/// A command of a node, an update or a client.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names of the format")]
pub struct CommandSpec {
    pub update: Option<Map>,
    pub goto: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    pub resume: Option<Value>,
    #[serde(default)]
    pub parent: bool,
}

/// A failure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names of the format")]
pub struct FailSpec {
    pub message: Value,
    #[serde(default)]
    pub kind: FailKind,
    pub visits: Option<Vec<u64>>,
}

/// Whether a failure may be retried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the format")]
pub enum FailKind {
    #[default]
    Fatal,
    Retryable,
}

/// A child graph run inside a body.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names of the format")]
pub struct CallSpec {
    pub graph: String,
    pub input: Value,
    #[serde(rename = "as")]
    pub bind: Option<String>,
    #[serde(default)]
    pub persistence: Persistence,
}

/// What an `if` tests.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names of the format")]
pub enum Condition {
    Eq(Value, Value),
    Lt(Value, Value),
    In(Value, Value),
    Not(Box<Self>),
}

/// One action on the graph.
#[derive(Clone, Debug, Deserialize)]
pub struct Action {
    /// What is done.
    #[serde(flatten)]
    pub kind: ActionKind,
    /// On which thread.
    #[serde(default = "default_thread")]
    pub thread: String,
    /// At which checkpoint.
    pub at: Option<At>,
    /// In which pending child.
    #[serde(rename = "in")]
    pub child: Option<String>,
    /// How many steps may be made.
    pub recursion_limit: Option<i64>,
    /// When checkpoints become durable.
    pub durability: Option<String>,
    /// Where the run stops before nodes.
    pub interrupt_before: Option<OneOrMany>,
    /// Where the run stops after nodes.
    pub interrupt_after: Option<OneOrMany>,
    /// The id of the run.
    pub run_id: Option<String>,
    /// What must be seen.
    pub expect: Map,
}

/// A checkpoint of the thread.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum At {
    /// By a word.
    Word(AtWord),
    /// The newest that matches.
    Matching {
        /// Its number.
        step: i64,
        /// What made it.
        source: tine_engine::checkpoint::Source,
    },
}

/// A checkpoint by a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtWord {
    /// The newest, by its id.
    Head,
    /// One that the thread does not have.
    Unknown,
}

fn default_thread() -> String {
    "t".to_owned()
}

/// What an action does.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum ActionKind {
    /// Runs with new input.
    Invoke {
        /// The input.
        input: Map,
    },
    /// Runs with an answer.
    Resume {
        /// The answer to the one question.
        #[serde(default, deserialize_with = "present")]
        value: Option<Value>,
        /// Answers by question.
        answers: Option<Vec<Answer>>,
    },
    /// Goes on.
    Continue,
    /// Runs with a client's command.
    Command {
        /// The command.
        command: CommandSpec,
    },
    /// Updates the state.
    Update(UpdateSpec),
    /// Updates the state several times.
    BulkUpdate {
        /// One list of updates a superstep.
        steps: Vec<Vec<UpdateSpec>>,
    },
    /// Reads the state.
    State {
        /// Whether the states of children are read too.
        #[serde(default)]
        subgraphs: bool,
    },
    /// Reads all checkpoints.
    History {
        /// How many are shown.
        limit: Option<usize>,
    },
}

/// A null that was written is a value; a key that is absent is none.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// An answer to one question.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The payload of the question.
    #[serde(default, deserialize_with = "present")]
    pub to: Option<Value>,
    /// The answer.
    pub value: Value,
    /// The action that reported the question; the pending ones if absent.
    pub seen: Option<usize>,
    /// Whether the id belongs to nothing.
    #[serde(default)]
    pub unknown: bool,
}

/// An update.
#[derive(Clone, Debug, Deserialize)]
pub struct UpdateSpec {
    /// What to write.
    #[serde(default)]
    pub values: Option<Map>,
    /// What to write and where to go.
    pub command: Option<CommandSpec>,
    /// As which node.
    pub as_node: Option<String>,
}

impl Case {
    /// Reads the text of a case file.
    ///
    /// # Errors
    /// If it is not YAML, or not a case; with the place.
    pub fn parse(text: &str) -> Result<Self, String> {
        // By way of JSON: that has externally tagged enums as maps with one key, which is how operations are written.
        let json: serde_json::Value =
            serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        serde_json::from_value(json).map_err(|error| error.to_string())
    }

    /// The root graph and all child graphs.
    pub fn all_graphs(&self) -> impl Iterator<Item = &GraphSpec> {
        std::iter::once(&self.graph).chain(self.graphs.values())
    }

    /// Whether this is recorded.
    #[must_use]
    pub fn observes(&self, what: Observe) -> bool {
        self.observe.contains(&what)
    }

    /// Whether an engine may differ from the case, if it says so.
    #[must_use]
    pub fn may_differ(&self) -> bool {
        self.label == Label::Q && self.decision.is_none()
    }
}
