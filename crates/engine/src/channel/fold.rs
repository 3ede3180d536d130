//! Changing a channel's value, and recording each change.

use crate::value::{List, Map, Value};
use rpds::HashTrieMapSync;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// One change of a channel's value: what a checkpoint stores, and all that loading it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The value became this.
    Set(Value),
    /// The channel has no value any more.
    Unset,
    /// An item was appended to the list.
    Append(Value),
    /// A key of the map got this value.
    Put(Arc<str>, Value),
    /// A key of the map went.
    RemoveKey(Arc<str>),
    /// The item at this place of the list became this.
    Replace(usize, Value),
    /// The item at this place of the list went.
    Remove(usize),
}

/// A stored effect that does not fit the value it is to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored change does not fit: it wants {wanted}, and there is {found}")]
pub struct EffectError {
    wanted: &'static str,
    found: &'static str,
}

impl Effect {
    /// Applies the effect to a value.
    ///
    /// # Errors
    /// If the value is not of the kind that was changed: the stored data is damaged.
    pub fn apply(self, value: &mut Option<Value>) -> Result<(), EffectError> {
        match self {
            Self::Set(new) => *value = Some(new),
            Self::Unset => *value = None,
            Self::Append(item) => list_of(value)?.push(item),
            Self::Put(key, item) => {
                map_of(value)?.insert(key, item);
            }
            Self::RemoveKey(key) => {
                map_of(value)?.remove(&key);
            }
            Self::Replace(place, item) => {
                if !list_of(value)?.set(place, item) {
                    return Err(EffectError {
                        wanted: "a longer list",
                        found: "a shorter one",
                    });
                }
            }
            Self::Remove(place) => {
                if !list_of(value)?.remove(place) {
                    return Err(EffectError {
                        wanted: "a longer list",
                        found: "a shorter one",
                    });
                }
            }
        }
        Ok(())
    }
}

fn list_of(value: &mut Option<Value>) -> Result<&mut List, EffectError> {
    match value {
        Some(Value::List(items)) => Ok(items),
        other => Err(EffectError {
            wanted: "a list",
            found: other.as_ref().map_or("nothing", Value::kind),
        }),
    }
}

fn map_of(value: &mut Option<Value>) -> Result<&mut Map, EffectError> {
    match value {
        Some(Value::Map(entries)) => Ok(Arc::make_mut(entries)),
        other => Err(EffectError {
            wanted: "a map",
            found: other.as_ref().map_or("nothing", Value::kind),
        }),
    }
}

/// Why a write could not be folded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReduceError(String);

impl ReduceError {
    /// An error with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    pub(crate) fn wants(reducer: &str, wanted: &str, found: &Value) -> Self {
        Self(format!(
            "`{reducer}` takes {wanted}, and got {}",
            found.kind()
        ))
    }
}

/// What identifies an item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The whole item.
    Item,
    /// A field of it.
    Field(Arc<str>),
}

impl Identity {
    /// The identity of `item`; `None` if it has none.
    #[must_use]
    pub fn of<'a>(&self, item: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Item => Some(item),
            Self::Field(field) => item.get(field).filter(|value| !value.is_null()),
        }
    }
}

/// Where the items of a list are, by identity. Made on first use, shared with copies, never stored.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    by: Identity,
    places: HashTrieMapSync<Value, usize>,
}

impl Index {
    fn build(by: &Identity, items: &List) -> Self {
        let mut places = HashTrieMapSync::new_sync();
        for (place, item) in items.iter().enumerate() {
            if let Some(key) = by.of(item) {
                places.insert_mut(key.clone(), place);
            }
        }
        Self {
            by: by.clone(),
            places,
        }
    }
}

/// One channel's place in the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    pub(crate) value: Option<Value>,
    index: Option<Index>,
    decoded: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Slot {
    pub(crate) fn new(value: Option<Value>) -> Self {
        Self {
            value,
            index: None,
            decoded: OnceLock::new(),
        }
    }

    /// The value decoded as `T`, kept until the next write.
    pub(crate) fn decoded<T: Any + Send + Sync, E>(
        &self,
        decode: impl FnOnce(&Value) -> Result<T, E>,
    ) -> Option<Result<Arc<T>, E>> {
        let value = self.value.as_ref()?;
        if let Some(Ok(known)) = self
            .decoded
            .get()
            .map(|known| known.clone().downcast::<T>())
        {
            return Some(Ok(known));
        }
        Some(decode(value).map(|data| {
            let data = Arc::new(data);
            // Another type may have been decoded first; then this one is not kept.
            self.decoded.get_or_init(|| data.clone());
            data
        }))
    }
}

/// A channel in the hands of its reducer: reads its value, changes it, records each change.
#[derive(Debug)]
pub struct Fold<'a> {
    slot: &'a mut Slot,
    effects: Option<&'a mut Vec<Effect>>,
}

impl<'a> Fold<'a> {
    pub(crate) fn new(slot: &'a mut Slot, effects: Option<&'a mut Vec<Effect>>) -> Self {
        slot.decoded.take();
        Self { slot, effects }
    }

    /// The value now.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        self.slot.value.as_ref()
    }

    /// The value as a list; an unset one counts as empty.
    #[must_use]
    pub fn items(&self) -> List {
        self.value()
            .and_then(Value::as_list)
            .cloned()
            .unwrap_or_default()
    }

    /// How many items the list has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.value().and_then(Value::as_list).map_or(0, List::len)
    }

    /// Whether the list has no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the value.
    pub fn set(&mut self, value: Value) {
        self.slot.index = None;
        self.record(|| Effect::Set(value.clone()));
        self.slot.value = Some(value);
    }

    /// Leaves the channel without a value. Only for channels that have none at thread start: others would get that
    /// one back when the thread is loaded.
    pub(crate) fn unset(&mut self) {
        self.slot.index = None;
        self.slot.value = None;
        self.record(|| Effect::Unset);
    }

    /// Appends an item to the list; an unset channel becomes a list.
    pub fn append(&mut self, item: Value) {
        if !matches!(self.slot.value, Some(Value::List(_))) {
            self.set(Value::list());
        }
        if let Some(Value::List(items)) = &mut self.slot.value {
            if let Some(index) = &mut self.slot.index
                && let Some(key) = index.by.of(&item)
            {
                index.places.insert_mut(key.clone(), items.len());
            }
            items.push(item.clone());
        }
        self.record(|| Effect::Append(item));
    }

    /// Puts a key into the map; an unset channel becomes a map.
    pub fn put(&mut self, key: Arc<str>, item: Value) {
        if !matches!(self.slot.value, Some(Value::Map(_))) {
            self.set(Value::map());
        }
        if let Some(Value::Map(entries)) = &mut self.slot.value {
            Arc::make_mut(entries).insert(key.clone(), item.clone());
        }
        self.record(|| Effect::Put(key, item));
    }

    /// Removes a key from the map; false if it is not there.
    pub fn remove_key(&mut self, key: &Arc<str>) -> bool {
        let Some(Value::Map(entries)) = &mut self.slot.value else {
            return false;
        };
        if !entries.contains_key(key) {
            return false;
        }
        Arc::make_mut(entries).remove(key);
        self.record(|| Effect::RemoveKey(key.clone()));
        true
    }

    /// Replaces the item at `place`; false if there is none.
    pub fn replace(&mut self, place: usize, item: Value) -> bool {
        let Some(Value::List(items)) = &mut self.slot.value else {
            return false;
        };
        let Some(old) = items.get(place) else {
            return false;
        };
        if self
            .slot
            .index
            .as_ref()
            .is_some_and(|index| index.by.of(old) != index.by.of(&item))
        {
            self.slot.index = None;
        }
        items.set(place, item.clone());
        self.record(|| Effect::Replace(place, item));
        true
    }

    /// Takes the item at `place` out; false if there is none. Copies the list.
    pub fn remove(&mut self, place: usize) -> bool {
        let Some(Value::List(items)) = &mut self.slot.value else {
            return false;
        };
        if !items.remove(place) {
            return false;
        }
        // Every later item moved.
        self.slot.index = None;
        self.record(|| Effect::Remove(place));
        true
    }

    /// Where the item with this identity is; of several, the last.
    pub fn find(&mut self, by: &Identity, key: &Value) -> Option<usize> {
        let items = self.slot.value.as_ref().and_then(Value::as_list)?;
        if self.slot.index.as_ref().is_none_or(|index| index.by != *by) {
            self.slot.index = Some(Index::build(by, items));
        }
        self.slot.index.as_ref()?.places.get(key).copied()
    }

    fn record(&mut self, effect: impl FnOnce() -> Effect) {
        if let Some(effects) = &mut self.effects {
            effects.push(effect());
        }
    }
}
