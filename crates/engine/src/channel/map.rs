//! Reducers of maps.

use super::{Fold, ReduceError, Reducer};
use crate::command::Op;
use crate::value::{List, Value};

/// Merges maps, shallowly: each key of a write replaces that key. Null is a value like any other.
#[derive(Clone, Copy, Debug)]
pub struct Merge;

impl Reducer for Merge {
    fn name(&self) -> &'static str {
        "merge"
    }
    fn empty(&self) -> Option<Value> {
        Some(Value::map())
    }
    fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError> {
        let Value::Map(entries) = write else {
            return Err(ReduceError::wants("merge", "a map", write));
        };
        for (key, value) in entries.iter() {
            channel.put(key.clone(), value.clone());
        }
        Ok(())
    }
    fn fold_ops(&self, channel: &mut Fold<'_>, ops: &[Op]) -> Result<(), ReduceError> {
        ops.iter().try_for_each(|op| match op {
            Op::Add(value) => self.fold(channel, value),
            Op::Clear => {
                channel.set(Value::map());
                Ok(())
            }
            Op::Remove(key) if channel.remove_key(key) => Ok(()),
            Op::Remove(key) => Err(ReduceError::new(format!(
                "`merge` can not remove `{key}`: there is no such key"
            ))),
        })
    }
}

/// Keeps the names of promoted tools: more names for the same catalogue join, another catalogue starts anew.
///
/// A write is `{catalog_hash: text, names: [text]}`.
#[derive(Clone, Copy, Debug)]
pub struct Promoted;

impl Reducer for Promoted {
    fn name(&self) -> &'static str {
        "promoted"
    }
    fn empty(&self) -> Option<Value> {
        Some(Value::Null)
    }
    fn fold(&self, channel: &mut Fold<'_>, write: &Value) -> Result<(), ReduceError> {
        let (Some(hash), Some(names)) = (
            write
                .get("catalog_hash")
                .filter(|hash| hash.as_str().is_some()),
            write.get("names").and_then(Value::as_list),
        ) else {
            return Err(ReduceError::wants(
                "promoted",
                "a map with `catalog_hash` and `names`",
                write,
            ));
        };
        if let Some(name) = names.iter().find(|name| name.as_str().is_none()) {
            return Err(ReduceError::wants(
                "promoted",
                "a list of texts as `names`",
                name,
            ));
        }
        let known = channel
            .value()
            .filter(|value| value.get("catalog_hash") == Some(hash));
        let known: Vec<&Value> = known
            .and_then(|value| value.get("names")?.as_list())
            .map(|names| names.iter().collect())
            .unwrap_or_default();
        // Sorted, so that the order of promotions never shows.
        let mut all: Vec<&Value> = known.into_iter().chain(names.iter()).collect();
        all.sort_by_key(|name| name.as_str());
        all.dedup();
        let names: List = all.into_iter().cloned().collect();
        channel.set(Value::from_pairs([
            ("catalog_hash", hash.clone()),
            ("names", names.into()),
        ]));
        Ok(())
    }
}
