//! Text to a tree of plain data, and an index that knows where each part of it stands.

mod at;
mod bytes;
mod index;
mod plain;
mod read;
mod scalar;

pub(crate) use at::At;
pub(crate) use index::Index;
pub(crate) use read::read;

use serde_yaml::Value;

/// A file that was read: its data and where each part of it stands.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) root: Value,
    pub(crate) index: Index,
}
