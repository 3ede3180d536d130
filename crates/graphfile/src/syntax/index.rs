//! Where every key and value of a file stands.

use std::collections::BTreeMap;

use super::{At, scalar::Scalar};
use crate::diag::Span;

/// The places of one entry of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The key, for an entry of a mapping.
    pub(crate) key: Option<Span>,
    pub(crate) value: Span,
    pub(crate) scalar: Option<Scalar>,
}

/// Maps paths to places.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: BTreeMap<At, Entry>,
}

impl Index {
    pub(super) fn insert(&mut self, at: At, entry: Entry) {
        self.entries.insert(at, entry);
    }

    pub(super) fn entry_mut(&mut self, at: &At) -> Option<&mut Entry> {
        self.entries.get_mut(at)
    }

    fn entry(&self, at: &At) -> Option<&Entry> {
        self.entries.get(at)
    }

    /// Returns the span of the value, or of the nearest thing around it that stands in the file.
    pub(crate) fn value(&self, at: &At) -> Span {
        let mut at = at.clone();
        loop {
            if let Some(entry) = self.entry(&at) {
                return entry.value;
            }
            if at == At::root() {
                return Span::default();
            }
            at = at.parent();
        }
    }

    /// Returns the span of the key, else of the value.
    pub(crate) fn key(&self, at: &At) -> Span {
        self.entry(at)
            .and_then(|entry| entry.key)
            .unwrap_or_else(|| self.value(at))
    }

    /// Returns a span short enough to underline: the value if it is one line, else its key.
    pub(crate) fn brief(&self, at: &At, text: &str) -> Span {
        let value = self.value(at);
        match text.get(value.start..value.end) {
            Some(marked) if !marked.trim_end().contains('\n') && !marked.is_empty() => value,
            _ => self.key(at),
        }
    }

    /// Returns the place of bytes `start..end` of the decoded text of a scalar.
    ///
    /// Where the text was written with escapes or folding this is the whole scalar.
    pub(crate) fn inside(&self, at: &At, start: usize, end: usize) -> Span {
        match self.entry(at) {
            Some(Entry {
                value,
                scalar: Some(scalar),
                ..
            }) => scalar.locate(*value, start, end),
            Some(Entry { value, .. }) => *value,
            None => self.value(at),
        }
    }

    /// Lets everything below `from` be found below `to` as well, where nothing stands yet.
    pub(crate) fn alias(&mut self, from: &At, to: &At) {
        let copies: Vec<_> = self
            .entries
            .range(from..)
            .take_while(|(at, _)| at.to_string().starts_with(&from.to_string()))
            .filter_map(|(at, entry)| Some((at.moved(from, to)?, entry.clone())))
            .collect();
        for (at, entry) in copies {
            self.entries.entry(at).or_insert(entry);
        }
    }
}
