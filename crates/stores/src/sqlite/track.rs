//! When a channel's whole value is to be stored again.

use crate::json;
use tine_engine::Value;
use tine_engine::channel::{Effect, EffectError};

/// Rows that may always be read, however small the value.
const ROWS: usize = 256;

/// A channel's newest value, and what loading it would read.
///
/// Kept by a thread's writer for channels that change piece by piece. Sizes are those of the JSON, give or take a
/// comma.
#[derive(Debug, Default)]
pub(super) struct Track {
    value: Option<Value>,
    /// Bytes of the value.
    size: usize,
    /// Bytes that loading reads: the last whole value and every change since.
    read: usize,
    /// Rows that loading reads.
    rows: usize,
}

impl Track {
    /// A channel whose last row holds its whole value.
    pub(super) fn of_snapshot(value: Option<Value>) -> Self {
        let size = value.as_ref().map_or(0, json::size);
        Self {
            value,
            size,
            read: size,
            rows: 1,
        }
    }

    /// Takes in one more row.
    pub(super) fn apply(&mut self, effects: &[Effect]) -> Result<(), EffectError> {
        self.rows += 1;
        for effect in effects {
            let weight = weight(effect);
            let gone = self.gone(effect);
            effect.clone().apply(&mut self.value)?;
            let came = match effect {
                Effect::Unset | Effect::RemoveKey(_) | Effect::Remove(_) => 0,
                _ => weight,
            };
            self.read += weight;
            self.size = (self.size + came).saturating_sub(gone);
        }
        Ok(())
    }

    /// The value to store whole with the last row, if loading would read more than twice its bytes, or more rows than
    /// half its items. From then on the row counts as holding it.
    ///
    /// Each of these writes as much as was written since the last, at most, so storage stays linear in what was
    /// written; and values that only grow by appending need one each time they have doubled.
    pub(super) fn snapshot(&mut self) -> Option<&Value> {
        let items = match &self.value {
            Some(Value::List(items)) => items.len(),
            Some(Value::Map(entries)) => entries.len(),
            _ => 1,
        };
        if self.read <= 2 * self.size && self.rows <= ROWS.max(items / 2) {
            return None;
        }
        self.read = self.size;
        self.rows = 1;
        self.value.as_ref()
    }

    pub(super) fn into_value(self) -> Option<Value> {
        self.value
    }

    /// Bytes of what the effect takes out of the value.
    fn gone(&self, effect: &Effect) -> usize {
        match effect {
            Effect::Set(_) | Effect::Unset => self.size,
            Effect::Append(_) => 0,
            Effect::Put(key, _) | Effect::RemoveKey(key) => {
                let old = self.value.as_ref().and_then(|value| value.get(key));
                old.map_or(0, |old| entry(key, old))
            }
            Effect::Replace(place, _) | Effect::Remove(place) => {
                let items = self.value.as_ref().and_then(Value::as_list);
                items.and_then(|items| items.get(*place)).map_or(0, item)
            }
        }
    }
}

/// Bytes of what the effect carries, without what says which effect it is: a list costs the same whether it is stored
/// whole or by appending.
fn weight(effect: &Effect) -> usize {
    match effect {
        Effect::Set(value) => json::size(value),
        Effect::Append(value) | Effect::Replace(_, value) => item(value),
        Effect::Put(key, value) => entry(key, value),
        Effect::RemoveKey(key) => key.len() + 2,
        Effect::Remove(_) => size_of::<u32>(),
        Effect::Unset => 0,
    }
}

/// Bytes of an item of a list, with its comma.
fn item(value: &Value) -> usize {
    json::size(value) + 1
}

/// Bytes of an entry of a map: key, quotes, colon, value, comma.
fn entry(key: &str, value: &Value) -> usize {
    key.len() + json::size(value) + 4
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many rows of this kind each snapshot was due.
    fn due(mut track: Track, rows: usize, effect: impl Fn(usize) -> Effect) -> Vec<usize> {
        (1..=rows)
            .filter(|row| {
                track.apply(&[effect(*row)]).unwrap();
                track.snapshot().is_some()
            })
            .collect()
    }

    #[test]
    fn appends_need_a_snapshot_when_the_list_has_doubled() {
        let due = due(Track::of_snapshot(Some(Value::list())), 10_000, |row| {
            Effect::Append(row.into())
        });
        assert_eq!(due, [256, 512, 1023, 2045, 4089, 8177]);
    }

    #[test]
    fn replacing_the_whole_list_once_over_needs_one() {
        let list = Value::from(vec![Value::from("x".repeat(100)); 10]);
        let due = due(Track::of_snapshot(Some(list)), 40, |row| {
            Effect::Replace(row % 10, "y".repeat(100).into())
        });
        assert_eq!(due, [11, 22, 33]);
    }

    #[test]
    fn a_large_map_that_shrinks_needs_one() {
        let map = Value::from_pairs((0..100).map(|key| (key.to_string(), "x".repeat(100).into())));
        let due = due(Track::of_snapshot(Some(map)), 100, |row| {
            Effect::RemoveKey((row - 1).to_string().into())
        });
        assert_eq!(due, [50, 75, 88, 94, 97, 99, 100]);
    }

    #[test]
    fn sizes_follow_the_value() {
        let mut track = Track::of_snapshot(Some(Value::map()));
        for row in 0..200_usize {
            let key: std::sync::Arc<str> = (row % 17).to_string().into();
            let effect = match row % 3 {
                2 => Effect::RemoveKey(key),
                _ => Effect::Put(key, "x".repeat(row).into()),
            };
            track.apply(&[effect]).unwrap();
            let exact = json::size(track.value.as_ref().unwrap());
            assert!(track.size.abs_diff(exact) <= 2, "{} {exact}", track.size);
        }
    }

    #[test]
    fn a_change_that_does_not_fit_is_an_error() {
        let mut track = Track::of_snapshot(Some(Value::from(1)));
        assert!(track.apply(&[Effect::Append(1.into())]).is_err());
    }
}
