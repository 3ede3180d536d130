//! The reducer of conversations.

use super::fold::Identity;
use super::{Fold, ReduceError, Reducer};
use crate::command::{Op, Write};
use crate::message;
use crate::value::{List, Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Keeps a list of messages by id: a known id is replaced in place, a new one appended.
///
/// Within one write a removal is undone by a later message of that id, and [`Op::Clear`] drops what came before it.
/// Removing an unknown id is an error, and so is what no node could read as a message. Messages without an id get one
/// before they come here.
#[derive(Clone, Copy, Debug)]
pub struct Messages;

impl Reducer for Messages {
    fn name(&self) -> &'static str {
        "messages"
    }
    fn empty(&self) -> Option<Value> {
        Some(Value::list())
    }
    fn prepare(&self, write: Write, new_id: &mut dyn FnMut() -> Arc<str>) -> Write {
        let mut complete = |item: &Value| match item {
            Value::List(items) => items
                .iter()
                .map(|item| with_id(item, new_id))
                .collect::<List>()
                .into(),
            item => with_id(item, new_id),
        };
        match write {
            Write::Value(value) => Write::Value(complete(&value)),
            Write::Overwrite(value) => Write::Overwrite(complete(&value)),
            Write::Ops(ops) => Write::Ops(
                ops.into_iter()
                    .map(|op| match op {
                        Op::Add(item) => Op::Add(complete(&item)),
                        other => other,
                    })
                    .collect(),
            ),
        }
    }
    fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError> {
        match write {
            Value::List(items) => {
                let ops: Vec<Op> = items.iter().cloned().map(Op::Add).collect();
                self.fold_ops(channel, &ops)
            }
            message => self.fold_ops(channel, &[Op::Add(message.clone())]),
        }
    }
    fn fold_ops(&self, channel: &mut Fold<'_>, ops: &[Op]) -> Result<(), ReduceError> {
        let by = Identity::Field("id".into());
        let mut ops = ops;
        if let Some(clear) = ops.iter().rposition(|op| matches!(op, Op::Clear)) {
            channel.set(Value::list());
            ops = &ops[clear + 1..];
        }
        let mut removed = BTreeSet::new();
        for op in ops {
            match op {
                Op::Add(item) => {
                    let message = message::normalise(item)
                        .map_err(|error| ReduceError::new(error.to_string()))?;
                    let Some(id) = by.of(&message) else {
                        return Err(ReduceError::new(
                            "`messages` needs an `id` in every message",
                        ));
                    };
                    if let Some(place) = channel.find(&by, id) {
                        removed.remove(&place);
                        channel.replace(place, message);
                    } else {
                        channel.append(message);
                    }
                }
                Op::Remove(id) => {
                    let Some(place) = channel.find(&by, &Value::Text(id.clone())) else {
                        return Err(ReduceError::new(format!(
                            "`messages` can not remove `{id}`: there is no such message"
                        )));
                    };
                    removed.insert(place);
                }
                Op::Clear => {}
            }
        }
        for place in removed.into_iter().rev() {
            channel.remove(place);
        }
        Ok(())
    }
}

/// The message in the form the state keeps, with an id. What is no message is left for the fold to refuse.
fn with_id(item: &Value, new_id: &mut dyn FnMut() -> Arc<str>) -> Value {
    let Ok(message) = message::shape(item) else {
        return item.clone();
    };
    match &message {
        Value::Map(entries) if !entries.contains_key("id") => {
            let mut entries = Map::clone(entries);
            entries.insert("id".into(), Value::Text(new_id()));
            entries.into()
        }
        _ => message,
    }
}
