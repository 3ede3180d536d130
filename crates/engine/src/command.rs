//! What nodes, tools and clients return: updates of channels and places to go.

use crate::channel::Channel;
use crate::value::{Map, Value, ValueError, to_value};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// The name under which a graph starts; a source of edges, never a target.
pub const START: &str = "__start__";
/// The target that stands for "nowhere further".
pub const END: &str = "__end__";

/// One write to one channel.
///
/// Overwriting and removing are kinds of writes of their own, never a magic key inside a value, so data that
/// comes from a model or a user can not become one by accident.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Write {
    /// A value for the channel's reducer.
    Value(Value),
    /// A value in place of everything the channel holds and of all other writes of the step.
    Overwrite(Value),
    /// Additions and removals, in order.
    Ops(Vec<Op>),
}

/// One operation of a [`Write::Ops`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Adds a message, an item, or the keys of a map.
    Add(Value),
    /// Removes the message with this id, or the map key of this name.
    Remove(Arc<str>),
    /// Removes everything that is there.
    Clear,
}

/// A channel by name, with the place it had in the builder that made its handle.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChannelRef {
    pub(crate) name: Arc<str>,
    pub(crate) hint: u32,
}

impl ChannelRef {
    pub(crate) fn named(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            hint: u32::MAX,
        }
    }
}

/// Writes to channels, in order: by typed handles with [`write`](Self::write), by name with the others.
///
/// Only [`write`](Self::write) knows the channel's Rust type. A value written by name, or given as input, is looked at by
/// the reducer and the channel's [`Check`](crate::Check) alone: if it is of another type, the node that reads it fails.
///
/// ```
/// use tine_engine::{Update, to_value};
///
/// # fn main() -> Result<(), tine_engine::value::ValueError> {
/// // By name, numbers, texts and lists of them go as they are; a type of one's own becomes a value first.
/// let update = Update::new().set("tries", 3).set("spot", to_value(&(1, "left"))?);
/// # assert_eq!(update.iter().count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    // Most updates write one channel.
    pub(crate) writes: SmallVec<[(ChannelRef, Write); 1]>,
    /// The first value that is none of JSON's, with its channel.
    pub(crate) error: Option<Box<(Arc<str>, ValueError)>>,
}

impl Update {
    /// An update that writes nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a typed value, to an `append` channel a list. What cannot be a JSON value fails the task when it returns the
    /// update.
    #[must_use]
    pub fn write<T: Serialize + 'static>(mut self, channel: &Channel<T>, value: T) -> Self {
        match to_value(&value) {
            Ok(value) => self
                .writes
                .push((channel.reference().clone(), Write::Value(value))),
            Err(error) => {
                self.error
                    .get_or_insert_with(|| Box::new((channel.reference().name.clone(), error)));
            }
        }
        self
    }

    /// Writes a value to the channel of this name.
    #[must_use]
    pub fn set(self, channel: impl Into<Arc<str>>, value: impl Into<Value>) -> Self {
        self.with(channel, Write::Value(value.into()))
    }

    /// Replaces what the channel of this name holds, reducer or not.
    #[must_use]
    pub fn overwrite(self, channel: impl Into<Arc<str>>, value: impl Into<Value>) -> Self {
        self.with(channel, Write::Overwrite(value.into()))
    }

    /// Adds and removes in the channel of this name.
    #[must_use]
    pub fn ops(self, channel: impl Into<Arc<str>>, ops: impl IntoIterator<Item = Op>) -> Self {
        self.with(channel, Write::Ops(ops.into_iter().collect()))
    }

    /// Adds any kind of write.
    #[must_use]
    pub fn with(mut self, channel: impl Into<Arc<str>>, write: Write) -> Self {
        self.writes.push((ChannelRef::named(channel), write));
        self
    }

    /// Appends the writes of another update.
    #[must_use]
    pub fn and(mut self, mut other: Self) -> Self {
        self.writes.append(&mut other.writes);
        self.error = self.error.or(other.error);
        self
    }

    /// Whether nothing is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.error.is_none()
    }

    /// The writes in order, by channel name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Write)> {
        self.writes
            .iter()
            .map(|(channel, write)| (&channel.name, write))
    }
}

impl From<Map> for Update {
    fn from(values: Map) -> Self {
        values
            .into_iter()
            .fold(Self::new(), |update, (channel, value)| {
                update.set(channel, value)
            })
    }
}

impl<K: Into<Arc<str>>, V: Into<Value>, const N: usize> From<[(K, V); N]> for Update {
    fn from(values: [(K, V); N]) -> Self {
        values
            .into_iter()
            .fold(Self::new(), |update, (channel, value)| {
                update.set(channel, value)
            })
    }
}

/// Where a task goes next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A node, run once in the next step however often it is named, with the whole state as its input.
    Node(Arc<str>),
    /// A task of its own, with an input of its own.
    Dispatch(Dispatch),
    /// Nowhere.
    End,
}

impl Target {
    /// A dispatch of `input` to `node`. A type of one's own goes with [`to_value`], and comes out of
    /// [`NodeCx::dispatched`](crate::NodeCx::dispatched) with [`from_value`](crate::from_value).
    #[doc(alias = "Send")]
    pub fn dispatch(node: impl Into<Arc<str>>, input: impl Into<Value>) -> Self {
        Self::Dispatch(Dispatch {
            node: node.into(),
            input: input.into(),
        })
    }
}

impl From<&str> for Target {
    fn from(name: &str) -> Self {
        if name == END {
            Self::End
        } else {
            Self::Node(name.into())
        }
    }
}

impl From<String> for Target {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<Arc<str>> for Target {
    fn from(name: Arc<str>) -> Self {
        if &*name == END {
            Self::End
        } else {
            Self::Node(name)
        }
    }
}

/// A node together with the input it is to get instead of the state (LangGraph: `Send`).
#[doc(alias = "Send")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dispatch {
    /// The node to run.
    pub node: Arc<str>,
    /// What it gets as its input.
    pub input: Value,
}

/// Which graph a [`Command`] addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphScope {
    /// The graph that the task belongs to.
    #[default]
    Here,
    /// The graph that contains this one.
    #[doc(alias = "PARENT")]
    Parent,
}

/// An update and targets that belong together.
///
/// ```
/// use tine_engine::{Command, Target, Update};
///
/// let command = Command::goto("review")
///     .and_goto(Target::dispatch("search", "tea"))
///     .update(Update::from([("status", "searching")]));
/// assert_eq!(command.goto.len(), 2);
/// ```
///
/// Its targets take the place of the default edges of the task; all other edges fire as well.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Command {
    /// What to write.
    pub update: Update,
    /// Where to go; empty leaves the way to the edges.
    pub goto: Vec<Target>,
    /// Which graph this is for.
    pub scope: GraphScope,
}

impl Command {
    /// A command that goes to one target. Several are added with [`and_goto`](Self::and_goto), or set as the field `goto`.
    pub fn goto(target: impl Into<Target>) -> Self {
        Self {
            goto: vec![target.into()],
            ..Self::default()
        }
    }

    /// Adds an update.
    #[must_use]
    pub fn update(mut self, update: impl Into<Update>) -> Self {
        self.update = self.update.and(update.into());
        self
    }

    /// The command, for the graph that it came to.
    pub(crate) fn here(self) -> Self {
        Self {
            scope: GraphScope::Here,
            ..self
        }
    }

    /// Adds a target.
    #[must_use]
    pub fn and_goto(mut self, target: impl Into<Target>) -> Self {
        self.goto.push(target.into());
        self
    }
}

/// What a node returns: its own update first, then commands in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The node's own update.
    pub update: Update,
    /// Commands, applied after the update.
    pub commands: Vec<Command>,
}

impl From<Update> for Output {
    fn from(update: Update) -> Self {
        Self {
            update,
            commands: Vec::new(),
        }
    }
}

impl From<Command> for Output {
    fn from(command: Command) -> Self {
        Self {
            update: Update::new(),
            commands: vec![command],
        }
    }
}

impl From<()> for Output {
    fn from((): ()) -> Self {
        Self::default()
    }
}

/// What a client may send to a thread instead of input.
#[derive(Clone, Debug, Default)]
pub struct ClientCommand {
    /// What to write before the pending tasks run.
    pub update: Update,
    /// Nodes and dispatches to run beside the pending tasks.
    pub goto: Vec<Target>,
    /// Answers to open questions.
    pub resume: Option<crate::interrupt::Resume>,
}
