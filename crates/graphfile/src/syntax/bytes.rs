//! Characters to bytes.

/// The places of characters in bytes: the YAML reader counts characters.
pub(super) struct Bytes {
    /// Empty if all characters are one byte long.
    starts: Vec<usize>,
    len: usize,
}

impl Bytes {
    pub(super) fn new(text: &str) -> Self {
        let starts = match text.is_ascii() {
            true => Vec::new(),
            false => text.char_indices().map(|(at, _)| at).collect(),
        };
        Self {
            starts,
            len: text.len(),
        }
    }

    pub(super) fn at(&self, character: usize) -> usize {
        match self.starts.is_empty() {
            true => character.min(self.len),
            false => self.starts.get(character).copied().unwrap_or(self.len),
        }
    }
}
