//! What can go wrong, by boundary.

use crate::command::Command;
use crate::value::Value;
use crate::world::Id;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The class of an error: what retry policies and error handlers go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// An attempt took too long.
    Timeout,
    /// A peer could not be reached, or broke off.
    Transport,
    /// A peer asked for fewer requests.
    RateLimited,
    /// A model's output does not fit what was asked for.
    InvalidOutput,
    /// A tool failed and the failure was not to be a message.
    ToolFailed,
    /// A policy or a person said no.
    Denied,
    /// An expression of a graph file failed.
    Expression,
    /// Too many steps or visits, or a budget used up.
    StepLimit,
    /// The run was cancelled.
    Canceled,
    /// Everything else; what `?` makes of an error.
    Internal,
}

/// Why a node or a router did not finish.
///
/// Make one with [`NodeError::new`], or let `?` turn any [`std::error::Error`] into one, of the class
/// [`Internal`](ErrorClass::Internal). A `String`, a `Box<dyn Error>` and an `anyhow::Error` are no such errors, so `?`
/// does not take them:
///
/// ```
/// use tine_engine::{ErrorClass, NodeError};
///
/// fn fetch() -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
///     Err("no network".into())
/// }
///
/// fn node() -> Result<String, NodeError> {
///     fetch().map_err(|error| NodeError::new(ErrorClass::Transport, error.to_string()))
/// }
/// assert_eq!(node().unwrap_err().to_string(), "no network");
/// ```
///
/// An interrupt travels as one too: a node that catches errors must hand on those for which
/// [`NodeError::is_interrupt`] is true.
pub struct NodeError(Box<NodeErrorKind>);

pub(crate) enum NodeErrorKind {
    Interrupted,
    Failed {
        class: ErrorClass,
        message: String,
    },
    UnknownNode {
        target: Arc<str>,
    },
    UnmappedRoute {
        label: Arc<str>,
    },
    InvalidUpdate {
        message: String,
    },
    NoParent,
    /// A command for the graph that contains this one.
    ToParent(Box<Command>),
    /// Commands that a child graph sent: the task that runs the child is to carry them out.
    FromChild(Vec<Command>),
    Run(Box<RunError>),
}

impl NodeError {
    /// An error of this class.
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self::from_kind(NodeErrorKind::Failed {
            class,
            message: message.into(),
        })
    }

    /// What went wrong, in words: for errors that `?` can not take, such as a text or a `Box<dyn Error>`.
    ///
    /// ```
    /// let error = tine_engine::NodeError::msg("the file is empty");
    /// assert_eq!(error.to_string(), "the file is empty");
    /// ```
    pub fn msg(message: impl fmt::Display) -> Self {
        Self::new(ErrorClass::Internal, message.to_string())
    }

    /// A label, a route or a key that maps to no node.
    pub fn unmapped_route(label: impl Into<Arc<str>>) -> Self {
        Self::from_kind(NodeErrorKind::UnmappedRoute {
            label: label.into(),
        })
    }

    /// The error of a node that asked with [`NodeCx::interrupt`](crate::NodeCx::interrupt) in this attempt and lost the
    /// error that gave it: one of several calls asked, for example, and the others had to finish first.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::from_kind(NodeErrorKind::Interrupted)
    }

    pub(crate) fn from_kind(kind: NodeErrorKind) -> Self {
        Self(Box::new(kind))
    }

    pub(crate) fn kind(&self) -> &NodeErrorKind {
        &self.0
    }

    pub(crate) fn into_kind(self) -> NodeErrorKind {
        *self.0
    }

    /// Whether this is no failure but a question that waits for its answer.
    #[must_use]
    pub fn is_interrupt(&self) -> bool {
        matches!(*self.0, NodeErrorKind::Interrupted)
    }

    /// Whether this is no failure of the node but stops its run: a child that stopped as asked, a budget used up. Like an
    /// interrupt it must be handed on.
    #[must_use]
    pub fn stops_run(&self) -> bool {
        matches!(&*self.0, NodeErrorKind::Run(error) if error.stops_run())
    }

    /// The class, for retry policies.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match &*self.0 {
            NodeErrorKind::Failed { class, .. } => *class,
            NodeErrorKind::Run(error) => error.class(),
            _ => ErrorClass::Internal,
        }
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            NodeErrorKind::Interrupted => out.write_str("waits for an answer"),
            NodeErrorKind::Failed { message, .. } | NodeErrorKind::InvalidUpdate { message } => {
                out.write_str(message)
            }
            NodeErrorKind::UnknownNode { target } => {
                write!(out, "there is no node `{target}` to go to")
            }
            NodeErrorKind::UnmappedRoute { label } => {
                write!(out, "the route `{label}` is not mapped to a node")
            }
            NodeErrorKind::NoParent => {
                out.write_str("a command for the parent graph, and there is no parent")
            }
            NodeErrorKind::ToParent(_) => out.write_str("sends a command to the parent graph"),
            NodeErrorKind::FromChild(_) => out.write_str("a child graph sent a command"),
            NodeErrorKind::Run(error) => error.fmt(out),
        }
    }
}

impl fmt::Debug for NodeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "NodeError({self})")
    }
}

impl<E: std::error::Error> From<E> for NodeError {
    fn from(error: E) -> Self {
        Self::new(ErrorClass::Internal, chain(&error))
    }
}

/// An error with its causes, one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Where in a graph something went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The graph.
    pub graph: Arc<str>,
    /// The path of the node: names from the root down, joined with `/`; empty if no node is to blame.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub node: Arc<str>,
}

/// Why a run was refused, or failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunError {
    /// A node failed.
    #[error("node `{}` failed: {message}", location.node)]
    Node {
        /// Where.
        location: Location,
        /// The class of the error.
        class: ErrorClass,
        /// What the node said.
        message: String,
    },
    /// A node's attempt took longer than it may.
    #[error("node `{}` took longer than {millis} ms", location.node)]
    NodeTimeout {
        /// Where.
        location: Location,
        /// How long it may take.
        millis: u64,
    },
    /// A node's attempt showed no progress for longer than it may.
    #[error("node `{}` showed no progress for {millis} ms, which is its idle timeout", location.node)]
    IdleTimeout {
        /// Where.
        location: Location,
        /// How long it may show none.
        millis: u64,
    },
    /// A task was not finished when the time of its step was over.
    #[error("node `{}` was not finished after {millis} ms, which is the time limit of a step", location.node)]
    StepTimeout {
        /// Where.
        location: Location,
        /// How long the step may take.
        millis: u64,
    },
    /// A node, a router or a client's command went to a node that does not exist, or an update was to be made as one.
    #[error("{}", unknown_node(location, target))]
    UnknownNode {
        /// Where.
        location: Location,
        /// The name that nobody has.
        target: Arc<str>,
    },
    /// A router or a tool gave a label that is not mapped.
    #[error("node `{}` takes the route `{label}`, which is not mapped to a node", location.node)]
    UnmappedRoute {
        /// Where.
        location: Location,
        /// The label.
        label: Arc<str>,
    },
    /// Two tasks of one step wrote a channel that takes one write.
    #[error(
        "{} wrote `{channel}` in the same step, and its reducer `{reducer}` takes one write; \
         give it one that merges, or write two channels",
        both(writers)
    )]
    ConcurrentUpdate {
        /// Where.
        location: Location,
        /// The channel.
        channel: Arc<str>,
        /// Its reducer.
        reducer: Arc<str>,
        /// The paths of the tasks that wrote, in task order.
        writers: Vec<Arc<str>>,
    },
    /// A write to a channel that is not declared, or of another shape than an update.
    #[error("{}{message}", at_node(location))]
    InvalidUpdate {
        /// Where.
        location: Location,
        /// What is wrong.
        message: String,
    },
    /// A reducer refused a write.
    #[error(
        "channel `{channel}`{} could not be written: {message}",
        by_writer(location)
    )]
    Reducer {
        /// Where.
        location: Location,
        /// The channel.
        channel: Arc<str>,
        /// What the reducer said.
        message: String,
    },
    /// An update does not say as which node it is made, and several are possible.
    #[error(
        "an update must say as which node it is made: {} ran last, in one step",
        list(candidates)
    )]
    AmbiguousUpdate {
        /// The nodes that may be meant.
        candidates: Vec<Arc<str>>,
    },
    /// An input key that is no input channel.
    #[error("graph `{}` takes no input `{key}`; its inputs are {}", location.graph, list(known))]
    UnknownInput {
        /// Where.
        location: Location,
        /// The key.
        key: Arc<str>,
        /// The input channels.
        known: Vec<Arc<str>>,
    },
    /// More steps than allowed.
    #[error("stopped at the limit of {limit} steps")]
    StepLimit {
        /// The limit.
        limit: u64,
    },
    /// One node ran more often than allowed.
    #[error("stopped: node `{}` ran {limit} times in this run, which is its limit", location.node)]
    VisitLimit {
        /// Where.
        location: Location,
        /// The limit.
        limit: u64,
    },
    /// A run spent, or wanted to spend, more than it may.
    #[error("{}", over_budget(location, budget, *limit, *spent, *asked))]
    Budget {
        /// Where: the node that asked for more, if one did.
        location: Location,
        /// Which budget: `tokens`, `cost_micros` or `wall_millis`.
        budget: Arc<str>,
        /// How much may be spent.
        limit: u64,
        /// How much was, with what is set aside.
        spent: u64,
        /// How much more was asked for; 0 if the run was found over its budget between two steps.
        asked: u64,
    },
    /// Nothing to start from and nothing to go on with.
    #[error("thread `{thread}` has nothing to go on with; give it an input")]
    EmptyInput {
        /// The thread.
        thread: Arc<str>,
    },
    /// An id map without an answer.
    #[error("no answer was given")]
    EmptyResume,
    /// A plain answer while several questions are open.
    #[error("{} questions are open; answer by id: {}", open.len(), list(open))]
    MultipleInterrupts {
        /// The ids of the open questions.
        open: Vec<Arc<str>>,
    },
    /// An answer to a question that is not open.
    #[error("`{id}` is no open question of the thread; open are {}", list(open))]
    UnknownInterrupt {
        /// The id that was answered.
        id: Arc<str>,
        /// The ids of the open questions.
        open: Vec<Arc<str>>,
    },
    /// An answer that its question does not take. None of the answers that came with it is recorded.
    #[error(
        "node `{}` does not take the answer to its question `{id}`: {message}; nothing was recorded, and the question \
         can be answered again",
        location.node
    )]
    InvalidAnswer {
        /// Where: the node that asks.
        location: Location,
        /// The id of the question.
        id: Arc<str>,
        /// What is wrong with the answer.
        message: String,
    },
    /// A checkpoint that the thread does not have.
    #[error("thread `{thread}` has no checkpoint `{id}`; its history lists those it has")]
    UnknownCheckpoint {
        /// The thread.
        thread: Arc<str>,
        /// The id.
        id: Id,
    },
    /// Something that needs stored threads, without a checkpointer.
    #[error("{what} needs a checkpointer")]
    NoCheckpointer {
        /// What was asked for.
        what: Arc<str>,
    },
    /// A command for the parent of a graph that has none.
    #[error("node `{}` sent a command to the parent graph, and there is none", location.node)]
    NoParent {
        /// Where.
        location: Location,
    },
    /// An option that makes no sense.
    #[error("{message}")]
    InvalidOption {
        /// What is wrong.
        message: String,
    },
    /// A journaled call is not the one that was recorded under its key.
    #[error("node `{}` did another call under the key `{key}` than the one recorded there", location.node)]
    JournalMismatch {
        /// Where.
        location: Location,
        /// The key.
        key: Arc<str>,
    },
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A call that waits ([`blocking`](crate::blocking)) got no thread or no timer from the system; nothing ran.
    #[error("nothing ran, for the system gives no thread or no timer to run it on: {message}")]
    Runtime {
        /// What the system said.
        message: String,
    },
    /// A child graph was asked to stop, and did between two steps.
    #[error("stopped between two steps, as asked")]
    Drained,
    /// The checkpointer failed.
    #[error("the thread could not be stored or read: {0}")]
    Store(StoreError),
    /// A stored thread does not fit the graph.
    #[error("the stored thread does not fit graph `{}`: {message}", location.graph)]
    Mismatch {
        /// Where.
        location: Location,
        /// What does not fit.
        message: String,
    },
}

impl RunError {
    /// The class, for retry policies and error handlers.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Node { class, .. } => *class,
            Self::NodeTimeout { .. } | Self::IdleTimeout { .. } | Self::StepTimeout { .. } => {
                ErrorClass::Timeout
            }
            Self::StepLimit { .. } | Self::VisitLimit { .. } | Self::Budget { .. } => {
                ErrorClass::StepLimit
            }
            Self::Cancelled | Self::Drained => ErrorClass::Canceled,
            _ => ErrorClass::Internal,
        }
    }

    /// Whether the run stops with this, and no task of it has failed: it goes on where it was.
    pub(crate) fn stops_run(&self) -> bool {
        matches!(self, Self::Drained | Self::Budget { .. })
    }

    /// The error as the graph above sees it: the path of its node begins with `above`.
    pub(crate) fn within(mut self, above: &str) -> Self {
        if above.is_empty() {
            return self;
        }
        match &mut self {
            Self::ConcurrentUpdate { location, .. }
            | Self::Reducer { location, .. }
            | Self::VisitLimit { location, .. } => {
                location.node = if location.node.is_empty() {
                    above.into()
                } else {
                    format!("{above}/{}", location.node).into()
                };
            }
            _ => {}
        }
        self
    }

    /// The stable code: the `code` of the JSON form.
    #[must_use]
    pub fn code(&self) -> String {
        let json = serde_json::to_value(self).unwrap_or_default();
        json.get("code")
            .and_then(serde_json::Value::as_str)
            .unwrap_or("unknown")
            .to_owned()
    }

    /// The node to blame: its path, if there is one.
    #[must_use]
    pub fn node(&self) -> Option<&Arc<str>> {
        let (Self::Node { location, .. }
        | Self::NodeTimeout { location, .. }
        | Self::IdleTimeout { location, .. }
        | Self::StepTimeout { location, .. }
        | Self::UnknownNode { location, .. }
        | Self::UnmappedRoute { location, .. }
        | Self::ConcurrentUpdate { location, .. }
        | Self::InvalidUpdate { location, .. }
        | Self::Reducer { location, .. }
        | Self::UnknownInput { location, .. }
        | Self::InvalidAnswer { location, .. }
        | Self::VisitLimit { location, .. }
        | Self::Budget { location, .. }
        | Self::NoParent { location }
        | Self::JournalMismatch { location, .. }
        | Self::Mismatch { location, .. }) = self
        else {
            return None;
        };
        (!location.node.is_empty()).then_some(&location.node)
    }
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn unknown_node(location: &Location, target: &str) -> String {
    let Location { graph, node } = location;
    if node.is_empty() {
        format!("graph `{graph}` has no node `{target}`")
    } else {
        format!("node `{node}` goes to `{target}`, and graph `{graph}` has no such node")
    }
}

fn over_budget(location: &Location, budget: &str, limit: u64, spent: u64, asked: u64) -> String {
    let (what, unit) = match budget {
        "wall_millis" => ("take", "ms"),
        "tokens" => ("spend", "tokens"),
        "cost_micros" => ("spend", "millionths"),
        other => ("spend", other),
    };
    let more = match asked {
        0 => String::new(),
        asked => format!(", and node `{}` asks for {asked} more", location.node),
    };
    format!(
        "the run may {what} {limit} {unit}; {spent} are used up{more}; it can go on with a larger budget"
    )
}

/// Names for a message: all, unless nobody would read them.
pub(crate) fn list(names: &[Arc<str>]) -> String {
    const READ: usize = 50;
    if names.is_empty() {
        return "none".to_owned();
    }
    let quoted = names.iter().take(READ).map(|name| format!("`{name}`"));
    let mut text = quoted.collect::<Vec<_>>().join(", ");
    if names.len() > READ {
        text.push_str(&format!(" and {} more", names.len() - READ));
    }
    text
}

fn both(writers: &[Arc<str>]) -> String {
    match writers {
        [one, rest @ ..] if !rest.is_empty() && rest.iter().all(|other| other == one) => {
            format!("node `{one}` twice")
        }
        _ => writers
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(" and "),
    }
}

fn at_node(location: &Location) -> String {
    if location.node.is_empty() {
        String::new()
    } else {
        format!("node `{}`: ", location.node)
    }
}

fn by_writer(location: &Location) -> String {
    if location.node.is_empty() {
        String::new()
    } else {
        format!(" by `{}`", location.node)
    }
}

/// Why a store could not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StoreError {
    /// Another writer holds the thread.
    #[error("thread `{thread}` is being run by {holder}")]
    Held {
        /// The thread.
        thread: Arc<str>,
        /// Who holds it, as far as is known.
        holder: String,
    },
    /// This writer lost the thread to another one.
    #[error("thread `{thread}` was taken over by another process; nothing more is written here")]
    Fenced {
        /// The thread.
        thread: Arc<str>,
    },
    /// A run that is over tried to write.
    #[error("the run on thread `{thread}` is over; nothing more is written here")]
    Over {
        /// The thread.
        thread: Arc<str>,
    },
    /// A checkpoint that is not there.
    #[error("thread `{thread}` has no checkpoint `{id}`")]
    UnknownCheckpoint {
        /// The thread.
        thread: Arc<str>,
        /// The id.
        id: String,
    },
    /// A thread is there already.
    #[error("there is a thread `{thread}` already")]
    Exists {
        /// The thread.
        thread: Arc<str>,
    },
    /// Something that this store can not do.
    #[error("this store can not do that: {what}")]
    Unsupported {
        /// What was asked of it.
        what: String,
    },
    /// Stored data that can not be right.
    #[error("{place} is damaged: {message}")]
    Damaged {
        /// The file, table or row.
        place: String,
        /// What is wrong with it.
        message: String,
    },
    /// A store made by a newer program.
    #[error(
        "{place} has schema version {found}, and this program knows up to {known}; use a newer program"
    )]
    Newer {
        /// The file.
        place: String,
        /// Its version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// The disk, the database or the connection failed.
    #[error("{place}: {message}")]
    Unavailable {
        /// The file or server.
        place: String,
        /// What it said.
        message: String,
    },
}

/// The failure that an error handler handles.
#[derive(Clone, Debug, PartialEq)]
pub struct HandledError {
    node: Arc<str>,
    error: RunError,
}

impl HandledError {
    pub(crate) fn new(node: Arc<str>, error: RunError) -> Self {
        Self { node, error }
    }

    /// The path of the node that failed: names from the root graph down, joined with `/`.
    #[must_use]
    pub fn node(&self) -> &Arc<str> {
        &self.node
    }

    /// The class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        self.error.class()
    }

    /// What the node said, without its name.
    #[must_use]
    pub fn message(&self) -> String {
        match &self.error {
            RunError::Node { message, .. } => message.clone(),
            error => error.to_string(),
        }
    }

    /// The error.
    #[must_use]
    pub fn error(&self) -> &RunError {
        &self.error
    }

    /// The error as data: its `code`, and what belongs to that.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::from(&self.error)
    }
}

/// What a panic carried, as text.
pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no message"))
}

/// A value that stands for an error, in the form handlers and events show it.
impl From<&RunError> for Value {
    fn from(error: &RunError) -> Self {
        crate::value::to_value(error).unwrap_or_else(|_| Self::from(error.to_string()))
    }
}
