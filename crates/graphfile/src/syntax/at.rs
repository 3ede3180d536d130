//! Where something stands in the tree of a file.

use std::fmt;

/// A path into the tree, written as a JSON Pointer: `/nodes/agent/then/0/when`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At(String);

impl At {
    pub(crate) fn root() -> Self {
        Self::default()
    }

    pub(crate) fn key(&self, key: &str) -> Self {
        let mut path = self.0.clone();
        path.push('/');
        for c in key.chars() {
            match c {
                '~' => path.push_str("~0"),
                '/' => path.push_str("~1"),
                c => path.push(c),
            }
        }
        Self(path)
    }

    pub(crate) fn item(&self, index: usize) -> Self {
        Self(format!("{}/{index}", self.0))
    }

    /// Returns the path of what contains this one; the root contains itself.
    pub(crate) fn parent(&self) -> Self {
        Self(
            self.0
                .rsplit_once('/')
                .map_or_else(String::new, |(parent, _)| parent.to_owned()),
        )
    }

    /// Returns the last key or index, for messages.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(_, name)| name)
    }

    /// Returns the path with another beginning, if it lies below `from`.
    pub(crate) fn moved(&self, from: &Self, to: &Self) -> Option<Self> {
        let rest = self.0.strip_prefix(&from.0)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| Self(format!("{}{rest}", to.0)))
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
