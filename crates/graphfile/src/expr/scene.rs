//! What an expression or template can see while it is evaluated.

use std::fmt::Debug;

use cel::ExecutionError;
use cel::common::traits::Indexer;
use cel::common::types::{self, CelString};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use tine_engine::Value;

use super::lazy::to_val;
use crate::graph::Channels;

/// Where a scene takes its state from.
///
/// Nothing is converted beforehand: a channel is asked for when an expression names it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not tell an expression about a state",
    note = "implement `Facts`: `channel` gives a channel's value, `run` what is known of the run"
)]
pub trait Facts: Debug + Send + Sync {
    /// Returns the value of a channel, if it has one.
    fn channel(&self, name: &str) -> Option<Value>;

    /// Returns what `run` holds: `thread`, `id`, `step`, `visits`, `now`, `depth`.
    fn run(&self) -> Value;
}

/// The names visible to one evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'s> {
    facts: &'s dyn Facts,
    channels: &'s Channels,
    locals: &'s [(&'s str, Value)],
}

impl<'s> Scene<'s> {
    /// Makes a scene with no names beside `state` and `run`.
    pub fn new(facts: &'s dyn Facts, channels: &'s Channels) -> Self {
        Self {
            facts,
            channels,
            locals: &[],
        }
    }

    /// Adds names such as `resume`.
    #[must_use]
    pub fn with(self, locals: &'s [(&'s str, Value)]) -> Self {
        Self { locals, ..self }
    }

    /// Returns the value of a channel; an optional channel that holds null has none.
    pub fn channel(&self, name: &str) -> Option<Value> {
        let value = self.facts.channel(name)?;
        match value.is_null() && self.channels.is_optional(name) {
            true => None,
            false => Some(value),
        }
    }

    pub(crate) fn channels(&self) -> &'s Channels {
        self.channels
    }

    pub(crate) fn facts(&self) -> &'s dyn Facts {
        self.facts
    }

    /// Returns the value of any name but `state`.
    pub(crate) fn local(&self, name: &str) -> Option<Value> {
        if name == "run" {
            return Some(self.facts.run());
        }
        self.locals
            .iter()
            .find(|(local, _)| *local == name)
            .map(|(_, value)| value.clone())
    }
}

impl VariableResolver for Scene<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        match variable {
            "state" => Some(CowVal::owned(StateVal(*self))),
            name => self.local(name).map(|value| CowVal::Owned(to_val(&value))),
        }
    }
}

/// `state` as the interpreter sees it: a map whose entries are looked up one by one.
#[derive(Clone, Copy, Debug)]
struct StateVal<'s>(Scene<'s>);

impl Val for StateVal<'_> {
    fn get_type(&self) -> &types::Type {
        &types::MAP_TYPE
    }

    fn cel_type() -> &'static types::Type {
        &types::MAP_TYPE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(*self)
    }
}

impl StateVal<'_> {
    fn look_up(&self, key: &dyn Val) -> Result<Value, ExecutionError> {
        let name = key
            .downcast_ref::<CelString<'_>>()
            .ok_or_else(|| ExecutionError::no_such_key("state"))?;
        self.0
            .channel(name.inner())
            .ok_or_else(|| ExecutionError::no_such_key(name.inner()))
    }
}

impl Indexer for StateVal<'_> {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.look_up(key).map(|value| CowVal::Owned(to_val(&value)))
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.look_up(key).map(|value| to_val(&value))
    }
}
