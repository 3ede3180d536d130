//! Persistent lists.

use super::Value;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

type Items = rpds::VectorSync<Value>;

/// A list of values that shares its structure with its copies.
///
/// Cloning is O(1), appending and replacing O(log n); taking out of the middle copies the list.
#[derive(Clone)]
pub struct List(Form);

/// How the items are kept. Short lists are common, and a tree would make them dear.
#[derive(Clone)]
enum Form {
    /// None.
    Empty,
    /// Up to [`FEW`] of them, copied when one of those who share them changes them.
    Few(Arc<SmallVec<[Value; 2]>>),
    /// More. Behind a pointer of its own, so that every value is smaller for it.
    Many(Arc<Items>),
}

/// How many items are kept side by side.
const FEW: usize = 32;

impl List {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self(Form::Empty)
    }

    /// How many items.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Empty => 0,
            Form::Few(items) => items.len(),
            Form::Many(items) => items.len(),
        }
    }

    /// Whether there is no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Value> {
        match &self.0 {
            Form::Empty => None,
            Form::Few(items) => items.get(index),
            Form::Many(items) => items.get(index),
        }
    }

    /// The first item.
    #[must_use]
    pub fn first(&self) -> Option<&Value> {
        self.get(0)
    }

    /// The last item.
    #[must_use]
    pub fn last(&self) -> Option<&Value> {
        self.get(self.len().checked_sub(1)?)
    }

    /// The items in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter(match &self.0 {
            Form::Empty => Walk::Few([].iter()),
            Form::Few(items) => Walk::Few(items.iter()),
            Form::Many(items) => Walk::Many(items.iter()),
        })
    }

    /// Appends an item.
    pub fn push(&mut self, value: Value) {
        match &mut self.0 {
            Form::Empty => {
                let mut items = SmallVec::new();
                items.push(value);
                self.0 = Form::Few(Arc::new(items));
            }
            Form::Few(items) if items.len() < FEW => Arc::make_mut(items).push(value),
            Form::Few(items) => {
                let mut all: Items = items.iter().cloned().collect();
                all.push_back_mut(value);
                self.0 = Form::Many(Arc::new(all));
            }
            Form::Many(items) => Arc::make_mut(items).push_back_mut(value),
        }
    }

    /// Replaces the item at `index`; false if there is none.
    pub fn set(&mut self, index: usize, value: Value) -> bool {
        match &mut self.0 {
            Form::Empty => false,
            Form::Few(items) if index < items.len() => {
                Arc::make_mut(items)[index] = value;
                true
            }
            Form::Few(_) => false,
            Form::Many(items) => Arc::make_mut(items).set_mut(index, value),
        }
    }

    /// Takes the item at `index` out; false if there is none. Copies the list.
    pub fn remove(&mut self, index: usize) -> bool {
        if index >= self.len() {
            return false;
        }
        let items = self.iter().enumerate();
        let left = items.filter(|(at, _)| *at != index);
        *self = left.map(|(_, item)| item.clone()).collect();
        true
    }
}

/// The items of a [`List`] in order.
pub struct Iter<'a>(Walk<'a>);

enum Walk<'a> {
    Few(std::slice::Iter<'a, Value>),
    Many(<&'a Items as IntoIterator>::IntoIter),
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Value;

    fn next(&mut self) -> Option<&'a Value> {
        match &mut self.0 {
            Walk::Few(items) => items.next(),
            Walk::Many(items) => items.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Walk::Few(items) => items.size_hint(),
            Walk::Many(items) => items.size_hint(),
        }
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Walk::Few(items) => items.next_back(),
            Walk::Many(items) => items.next_back(),
        }
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl std::fmt::Debug for Iter<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Iter({} items)", self.len())
    }
}

impl<'a> IntoIterator for &'a List {
    type Item = &'a Value;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.0, &other.0) {
            (Form::Few(a), Form::Few(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        same || self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for List {}

impl Hash for List {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        self.iter().for_each(|item| item.hash(state));
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::hash_map::DefaultHasher;

    fn numbers(items: std::ops::Range<i64>) -> List {
        items.map(Value::from).collect()
    }

    fn hash(list: &List) -> u64 {
        let mut hasher = DefaultHasher::new();
        list.hash(&mut hasher);
        hasher.finish()
    }

    /// Two lists with these items, however they came about.
    fn check(list: &List, expected: &[i64]) {
        let items: Vec<i64> = list.iter().filter_map(Value::as_i64).collect();
        assert_eq!(items, expected);
        let backwards: Vec<i64> = list.iter().rev().filter_map(Value::as_i64).collect();
        assert!(backwards.iter().eq(expected.iter().rev()));
        assert_eq!(
            (list.len(), list.iter().len()),
            (expected.len(), expected.len())
        );
        assert_eq!(list.is_empty(), expected.is_empty());
        let end = |item: Option<&i64>| item.copied().map(Value::from);
        assert_eq!(list.first(), end(expected.first()).as_ref());
        assert_eq!(list.last(), end(expected.last()).as_ref());
        let other: List = expected.iter().copied().map(Value::from).collect();
        assert_eq!(*list, other);
        assert_eq!(hash(list), hash(&other));
    }

    #[test]
    fn a_list_is_the_same_at_every_length_and_in_either_form() {
        for length in [0, 1, 2, 3, 31, 32, 33, 34, 100] {
            let expected: Vec<i64> = (0..length).collect();
            let list = numbers(0..length);
            check(&list, &expected);
            // A copy keeps what the other loses, and the other way round.
            let mut longer = list.clone();
            longer.push(length.into());
            check(&list, &expected);
            check(&longer, &(0..=length).collect::<Vec<i64>>());
            assert!(longer.remove(0));
            check(&longer, &(1..=length).collect::<Vec<i64>>());
            if length > 0 {
                let mut changed = list.clone();
                assert!(changed.set(0, 7.into()));
                assert_ne!(changed, list);
                assert_eq!(changed.get(0), Some(&7.into()));
                check(&list, &expected);
            }
            let mut same = list.clone();
            let end = usize::try_from(length).unwrap();
            assert!(!same.set(end, 7.into()) && !same.remove(end));
            assert_eq!((same.get(end), &same), (None, &list));
        }
    }

    #[test]
    fn a_list_that_was_long_equals_one_that_never_was() {
        let mut list = numbers(0..34);
        for _ in 0..30 {
            assert!(list.remove(0));
        }
        check(&list, &[30, 31, 32, 33]);
        assert_eq!(numbers(0..3), numbers(0..3));
        assert_ne!(numbers(0..3), numbers(1..4));
        assert_ne!(numbers(0..3), numbers(0..40));
    }
}
