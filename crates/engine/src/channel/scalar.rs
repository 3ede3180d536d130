//! Reducers of single values.

use super::{Fold, ReduceError, Reducer};
use crate::value::{Number, Value};
use std::cmp::Ordering;

/// One write a step replaces the value.
#[derive(Clone, Copy, Debug)]
pub struct Last;

impl Reducer for Last {
    fn name(&self) -> &'static str {
        "last"
    }
    fn single_write(&self) -> bool {
        true
    }
    fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError> {
        channel.set(write.clone());
        Ok(())
    }
}

/// The write of the later task replaces the value; null keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Newest;

impl Reducer for Newest {
    fn name(&self) -> &'static str {
        "newest"
    }
    fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError> {
        if !write.is_null() {
            channel.set(write.clone());
        }
        Ok(())
    }
}

/// Every write must equal the value; null keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Same;

impl Reducer for Same {
    fn name(&self) -> &'static str {
        "same"
    }
    fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError> {
        match channel.value() {
            _ if write.is_null() => {}
            None => channel.set(write.clone()),
            Some(value) if value == write => {}
            Some(value) => {
                return Err(ReduceError::new(format!(
                    "`same` holds {value} and can not become {write}"
                )));
            }
        }
        Ok(())
    }
}

/// Adds numbers; integers stay integers.
#[derive(Clone, Copy, Debug)]
pub struct Add;

impl Reducer for Add {
    fn name(&self) -> &'static str {
        "add"
    }
    fn empty(&self) -> Option<Value> {
        Some(Value::from(0_i64))
    }
    fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError> {
        let Value::Number(more) = write else {
            return Err(ReduceError::wants("add", "a number", write));
        };
        let sum = match channel.value() {
            None => *more,
            Some(Value::Number(value)) => sum(*value, *more)?,
            Some(other) => return Err(ReduceError::wants("add", "a number to add to", other)),
        };
        channel.set(Value::Number(sum));
        Ok(())
    }
}

fn sum(a: Number, b: Number) -> Result<Number, ReduceError> {
    a.checked_add(b).ok_or_else(|| {
        ReduceError::new(if a.is_integer() && b.is_integer() {
            "`add`: the sum does not fit into a 64-bit integer"
        } else {
            "`add`: the sum is not a finite number"
        })
    })
}

/// Keeps the greatest or the least of numbers or texts.
#[derive(Clone, Copy, Debug)]
pub enum Extreme {
    /// The greatest.
    Max,
    /// The least.
    Min,
}

impl Reducer for Extreme {
    fn name(&self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Min => "min",
        }
    }
    fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError> {
        if !matches!(write, Value::Number(_) | Value::Text(_)) {
            return Err(ReduceError::wants(self.name(), "a number or a text", write));
        }
        let better = match channel.value() {
            None => true,
            Some(value) => {
                let order = compare(write, value).ok_or_else(|| {
                    ReduceError::new(format!(
                        "`{}` can not compare {} with {}",
                        self.name(),
                        write.kind(),
                        value.kind()
                    ))
                })?;
                order
                    == if matches!(self, Self::Max) {
                        Ordering::Greater
                    } else {
                        Ordering::Less
                    }
            }
        };
        if better {
            channel.set(write.clone());
        }
        Ok(())
    }
}

fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => Some(a.order(*b)),
        _ => None,
    }
}
