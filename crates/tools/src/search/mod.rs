//! Local search: ranked full text over a folder, Chinese and English.

mod document;
mod folder;
mod front_matter;
mod html;
mod index;
mod markdown;
mod page;
mod segment;
mod snippet;
mod tool;

pub use folder::{FolderSearch, Found, SearchError};
pub use index::Hit;
pub(crate) use tool::{LocalWebSearch, MOST_RESULTS};
