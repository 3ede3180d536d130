//! Channels: the named, typed slots of state.

mod fold;
mod list;
mod map;
mod messages;
mod scalar;

pub(crate) use fold::Slot;
pub use fold::{Effect, EffectError, Fold, Identity, ReduceError};
pub use list::{Append, Dedupe, Upsert};
pub use map::{Merge, Promoted};
pub use messages::Messages;
pub use scalar::{Add, Extreme, Last, Newest, Same};

use crate::command::{ChannelRef, Op, Write};
use crate::value::Value;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// How the writes to a channel become its value.
///
/// A reducer gets one write at a time, in task order, and changes the value through [`Fold`], which records
/// each change for the checkpoint. Loading a checkpoint replays the records and never calls a reducer.
///
/// ```
/// use tine_engine::channel::{Fold, ReduceError, custom};
/// use tine_engine::{Graph, Reducer, Value};
///
/// /// Keeps the first write.
/// #[derive(Debug)]
/// struct First;
///
/// impl Reducer for First {
///     fn name(&self) -> &str {
///         "first"
///     }
///
///     fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError> {
///         if channel.value().is_none() {
///             channel.set(write.clone());
///         }
///         Ok(())
///     }
/// }
///
/// let mut graph = Graph::builder("race");
/// graph.channel("winner", custom::<String>(First));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reducer",
    note = "implement `tine_engine::Reducer`, or use one of `last()`, `append()`, `merge()`, ..."
)]
pub trait Reducer: fmt::Debug + Send + Sync + 'static {
    /// The reducer's name, as graph files write it.
    fn name(&self) -> &str;

    /// The value of a channel nobody wrote to; `None` leaves it unset.
    fn empty(&self) -> Option<Value> {
        None
    }

    /// Whether a second write in one step is a conflict.
    fn single_write(&self) -> bool {
        false
    }

    /// Completes a write before it is recorded and folded, for reducers that need ids: `new_id` gives one that is the
    /// same whenever the task runs again.
    fn prepare(&self, write: Write, new_id: &mut dyn FnMut() -> Arc<str>) -> Write {
        let _ = new_id;
        write
    }

    /// Folds one write into the channel.
    ///
    /// # Errors
    /// If the write does not fit; the step then fails and nothing of it is applied.
    fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError>;

    /// Folds one write of additions and removals.
    ///
    /// # Errors
    /// Unless a reducer says otherwise, removals are an error.
    fn fold_ops(&self, channel: &mut Fold<'_>, ops: &[Op]) -> Result<(), ReduceError> {
        for op in ops {
            match op {
                Op::Add(value) => self.fold(channel, value)?,
                Op::Remove(_) | Op::Clear => {
                    return Err(ReduceError::new(format!(
                        "the reducer `{}` has no removal",
                        self.name()
                    )));
                }
            }
        }
        Ok(())
    }
}

/// How long a channel keeps its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// As long as the thread; checkpointed.
    #[default]
    Thread,
    /// Until new input starts another run; checkpointed.
    Run,
    /// For the next step only; checkpointed with it.
    Step,
    /// During one invocation, in memory; never checkpointed.
    Untracked,
}

/// A check of every write to a channel, for example against a JSON Schema. Closures are checks.
///
/// ```
/// use tine_engine::channel::last;
/// use tine_engine::{Graph, Value};
///
/// let mut graph = Graph::builder("rate");
/// let positive = |write: &Value| match write.as_i64() {
///     Some(1..) => Ok(()),
///     _ => Err("must be above zero".to_owned()),
/// };
/// graph.channel("rate", last::<i64>().check(positive));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not check writes",
    note = "closures `|write: &Value| -> Result<(), String>` do; or implement `tine_engine::Check`"
)]
pub trait Check: Send + Sync {
    /// Says what is wrong with a write.
    ///
    /// # Errors
    /// The reason, without the channel's name.
    fn check(&self, write: &Value) -> Result<(), String>;
}

impl<F: Fn(&Value) -> Result<(), String> + Send + Sync> Check for F {
    fn check(&self, write: &Value) -> Result<(), String> {
        self(write)
    }
}

/// The definition of one channel.
#[derive(Clone)]
pub struct ChannelSpec {
    /// How writes merge.
    pub reducer: Arc<dyn Reducer>,
    /// How long the value is kept.
    pub keep: Keep,
    /// The value at thread start, instead of the reducer's empty value.
    pub default: Option<Value>,
    /// A check of every write.
    pub check: Option<Arc<dyn Check>>,
    /// The name of the type, for people and for the structure hash.
    pub type_name: Arc<str>,
}

impl ChannelSpec {
    /// A channel with this reducer, kept with the thread.
    pub fn new(reducer: impl Reducer) -> Self {
        Self {
            reducer: Arc::new(reducer),
            keep: Keep::Thread,
            default: None,
            check: None,
            type_name: "any".into(),
        }
    }

    /// The value of the channel before the first write.
    pub(crate) fn initial(&self) -> Option<Value> {
        self.default.clone().or_else(|| self.reducer.empty())
    }
}

impl fmt::Debug for ChannelSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ChannelSpec")
            .field("reducer", &self.reducer)
            .field("keep", &self.keep)
            .field("default", &self.default)
            .field("checked", &self.check.is_some())
            .field("type_name", &self.type_name)
            .finish()
    }
}

/// The definition of a channel whose Rust type is known.
#[derive(Debug)]
pub struct Definition<T> {
    spec: ChannelSpec,
    of: PhantomData<fn() -> T>,
}

impl<T> Definition<T> {
    fn of(reducer: impl Reducer) -> Self {
        let spec = ChannelSpec {
            type_name: std::any::type_name::<T>().into(),
            ..ChannelSpec::new(reducer)
        };
        Self {
            spec,
            of: PhantomData,
        }
    }

    /// Sets how long the value is kept.
    #[must_use]
    pub fn keep(mut self, keep: Keep) -> Self {
        self.spec.keep = keep;
        self
    }

    /// Sets the value at thread start.
    #[must_use]
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.spec.default = Some(value.into());
        self
    }

    /// Checks every write.
    #[must_use]
    pub fn check(mut self, check: impl Check + 'static) -> Self {
        self.spec.check = Some(Arc::new(check));
        self
    }

    pub(crate) fn into_spec(self) -> ChannelSpec {
        self.spec
    }
}

impl From<ChannelSpec> for Definition<Value> {
    fn from(spec: ChannelSpec) -> Self {
        Self {
            spec,
            of: PhantomData,
        }
    }
}

/// One write a step replaces the value; two are a conflict.
#[doc(alias = "LastValue")]
#[must_use]
pub fn last<T>() -> Definition<T> {
    Definition::of(Last)
}

/// The write of the later task wins; null keeps the value.
#[must_use]
pub fn newest<T>() -> Definition<T> {
    Definition::of(Newest)
}

/// All writes must agree with each other and with the value; null keeps it.
#[must_use]
pub fn same<T>() -> Definition<T> {
    Definition::of(Same)
}

/// Appends one value or a list of them.
#[must_use]
pub fn append<T>() -> Definition<Vec<T>> {
    Definition::of(Append)
}

/// Appends what is not there yet.
#[must_use]
pub fn dedupe<T>() -> Definition<Vec<T>> {
    Definition::of(Dedupe::default())
}

/// Replaces or appends objects by the field `key`.
#[must_use]
pub fn upsert<T>(key: impl Into<Arc<str>>) -> Definition<Vec<T>> {
    Definition::of(Upsert::by(key))
}

/// Merges maps, key by key.
#[must_use]
pub fn merge<T>() -> Definition<T> {
    Definition::of(Merge)
}

/// Adds numbers.
#[must_use]
pub fn add<T>() -> Definition<T> {
    Definition::of(Add)
}

/// Keeps the greatest value.
#[must_use]
pub fn max<T>() -> Definition<T> {
    Definition::of(Extreme::Max)
}

/// Keeps the least value.
#[must_use]
pub fn min<T>() -> Definition<T> {
    Definition::of(Extreme::Min)
}

/// Keeps a conversation, by message id.
#[doc(alias("add_messages", "MessagesState"))]
#[must_use]
pub fn messages() -> Definition<Vec<crate::message::Message>> {
    Definition::of(Messages)
}

/// Keeps the names of promoted tools, per catalogue.
#[must_use]
pub fn promoted() -> Definition<Value> {
    Definition::of(Promoted)
}

/// A channel with a reducer of the user's own.
#[doc(alias = "BinaryOperatorAggregate")]
#[must_use]
pub fn custom<T>(reducer: impl Reducer) -> Definition<T> {
    Definition::of(reducer)
}

/// The typed handle of a channel, made by [`GraphBuilder::channel`](crate::GraphBuilder::channel).
pub struct Channel<T> {
    reference: ChannelRef,
    of: PhantomData<fn() -> T>,
}

impl<T> Channel<T> {
    pub(crate) fn new(name: Arc<str>, hint: u32) -> Self {
        Self {
            reference: ChannelRef { name, hint },
            of: PhantomData,
        }
    }

    pub(crate) fn reference(&self) -> &ChannelRef {
        &self.reference
    }

    /// The channel's name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.reference.name
    }
}

impl<T> Clone for Channel<T> {
    fn clone(&self) -> Self {
        Self {
            reference: self.reference.clone(),
            of: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Channel<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Channel({})", self.reference.name)
    }
}
