//! Persistent lists.

use super::Value;

type Items = rpds::VectorSync<Value>;

/// A list of values that shares its structure with its copies.
///
/// Cloning is O(1), appending and replacing O(log n); taking out of the middle copies the list.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct List(Items);

impl List {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self(Items::new_sync())
    }

    /// How many items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The item at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Value> {
        self.0.get(index)
    }

    /// The first item.
    #[must_use]
    pub fn first(&self) -> Option<&Value> {
        self.0.first()
    }

    /// The last item.
    #[must_use]
    pub fn last(&self) -> Option<&Value> {
        self.0.last()
    }

    /// The items in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.0.iter()
    }

    /// Appends an item.
    pub fn push(&mut self, value: Value) {
        self.0.push_back_mut(value);
    }

    /// Replaces the item at `index`; false if there is none.
    pub fn set(&mut self, index: usize, value: Value) -> bool {
        self.0.set_mut(index, value)
    }

    /// Takes the item at `index` out; false if there is none. Copies the list.
    pub fn remove(&mut self, index: usize) -> bool {
        if index >= self.len() {
            return false;
        }
        *self = self
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != index)
            .map(|(_, item)| item.clone())
            .collect();
        true
    }
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for List {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        let mut list = Self::new();
        list.extend(items);
        list
    }
}

impl Extend<Value> for List {
    fn extend<I: IntoIterator<Item = Value>>(&mut self, items: I) {
        for item in items {
            self.push(item);
        }
    }
}
