//! Reducers of lists.

use super::fold::Identity;
use super::{Fold, ReduceError, Reducer};
use crate::command::Op;
use crate::value::Value;
use std::sync::Arc;

/// Calls `each` for every item of a write that is one value or a list of them.
fn each_item(
    reducer: &str,
    write: &Value,
    mut each: impl FnMut(&Value) -> Result<(), ReduceError>,
) -> Result<(), ReduceError> {
    match write {
        Value::List(items) => items.iter().try_for_each(each),
        // A null is far more often a forgotten value than an item; `[null]` says the latter.
        Value::Null => Err(ReduceError::wants(
            reducer,
            "an item or a list of them",
            write,
        )),
        item => each(item),
    }
}

/// Appends one value or a list.
#[derive(Clone, Copy, Debug)]
pub struct Append;

impl Reducer for Append {
    fn name(&self) -> &'static str {
        "append"
    }
    fn empty(&self) -> Option<Value> {
        Some(Value::list())
    }
    fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError> {
        each_item(self.name(), write, |item| {
            channel.append(item.clone());
            Ok(())
        })
    }
    fn fold_ops(&self, channel: &mut Fold<'_>, ops: &[Op]) -> Result<(), ReduceError> {
        fold_ops(self, channel, ops)
    }
}

/// Additions, and the one removal every list knows: all of it.
fn fold_ops(reducer: &dyn Reducer, channel: &mut Fold<'_>, ops: &[Op]) -> Result<(), ReduceError> {
    ops.iter().try_for_each(|op| match op {
        Op::Add(value) => reducer.fold(channel, value),
        Op::Clear => {
            channel.set(Value::list());
            Ok(())
        }
        Op::Remove(key) => Err(ReduceError::new(format!(
            "`{}` can not remove `{key}`: its items have no names",
            reducer.name()
        ))),
    })
}

/// Appends what is not there yet, and keeps the first place of what is.
#[derive(Clone, Debug)]
pub struct Dedupe {
    by: Identity,
}

impl Default for Dedupe {
    fn default() -> Self {
        Self { by: Identity::Item }
    }
}

impl Dedupe {
    /// Items are equal if this field of them is.
    pub fn by(field: impl Into<Arc<str>>) -> Self {
        Self {
            by: Identity::Field(field.into()),
        }
    }
}

impl Reducer for Dedupe {
    fn name(&self) -> &'static str {
        "dedupe"
    }
    fn empty(&self) -> Option<Value> {
        Some(Value::list())
    }
    fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError> {
        each_item(self.name(), write, |item| {
            let key = identity(self.name(), &self.by, item)?;
            if channel.find(&self.by, key).is_none() {
                channel.append(item.clone());
            }
            Ok(())
        })
    }
    fn fold_ops(&self, channel: &mut Fold<'_>, ops: &[Op]) -> Result<(), ReduceError> {
        fold_ops(self, channel, ops)
    }
}

fn identity<'a>(reducer: &str, by: &Identity, item: &'a Value) -> Result<&'a Value, ReduceError> {
    by.of(item).ok_or_else(|| {
        let field = if let Identity::Field(field) = by {
            field
        } else {
            ""
        };
        ReduceError::new(format!(
            "`{reducer}` needs the field `{field}` in every item, and {item} has none"
        ))
    })
}

/// Replaces or appends objects by key.
#[derive(Clone, Debug)]
pub struct Upsert {
    by: Identity,
    /// Whether a replaced object moves to the end.
    pub move_to_end: bool,
    /// How many objects are kept; the oldest go first.
    pub max: Option<usize>,
    /// A field and the values of it that are final: an object that has one is not replaced by one that has none.
    pub final_when: Option<(Arc<str>, Vec<Value>)>,
}

impl Upsert {
    /// Objects are the same if this field of them is.
    pub fn by(key: impl Into<Arc<str>>) -> Self {
        Self {
            by: Identity::Field(key.into()),
            move_to_end: false,
            max: None,
            final_when: None,
        }
    }

    fn is_final(&self, item: &Value) -> bool {
        self.final_when.as_ref().is_some_and(|(field, values)| {
            item.get(field).is_some_and(|value| values.contains(value))
        })
    }
}

impl Reducer for Upsert {
    fn name(&self) -> &'static str {
        "upsert"
    }
    fn empty(&self) -> Option<Value> {
        Some(Value::list())
    }
    fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError> {
        each_item(self.name(), write, |item| {
            let key = identity(self.name(), &self.by, item)?;
            match channel.find(&self.by, key) {
                None => channel.append(item.clone()),
                Some(place) => {
                    let known = channel
                        .value()
                        .and_then(Value::as_list)
                        .and_then(|items| items.get(place));
                    if known.is_some_and(|known| self.is_final(known)) && !self.is_final(item) {
                        return Ok(());
                    }
                    if self.move_to_end {
                        channel.remove(place);
                        channel.append(item.clone());
                    } else {
                        channel.replace(place, item.clone());
                    }
                }
            }
            while self.max.is_some_and(|max| channel.len() > max) {
                channel.remove(0);
            }
            Ok(())
        })
    }
    fn fold_ops(&self, channel: &mut Fold<'_>, ops: &[Op]) -> Result<(), ReduceError> {
        ops.iter().try_for_each(|op| match op {
            Op::Remove(key) => {
                let place = channel.find(&self.by, &Value::Text(key.clone()));
                place
                    .map(|place| channel.remove(place))
                    .map(|_| ())
                    .ok_or_else(|| {
                        ReduceError::new(format!(
                            "`upsert` can not remove `{key}`: there is no such item"
                        ))
                    })
            }
            other => fold_ops(self, channel, std::slice::from_ref(other)),
        })
    }
}
