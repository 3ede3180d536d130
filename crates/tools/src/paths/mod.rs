//! Virtual paths and the folders of a thread.
//!
//! The model sees `/mnt/user-data/{workspace,uploads,outputs}`. A string it
//! writes never reaches the file system: [`ThreadFolders::resolve`] turns it
//! into a [`ResolvedPath`] or a [`PathError`].

mod error;
mod folders;
mod name;
mod resolved;
mod whole;

#[cfg(test)]
mod tests;

pub use error::PathError;
pub use folders::misleads;
pub use folders::{Access, Folder, Home, HomeError, ThreadFolders};
pub use name::folder_name;
pub use resolved::ResolvedPath;
pub use whole::{Found, FoundKind, Refill};

/// The virtual folder that holds a thread's files.
pub const VIRTUAL_ROOT: &str = "/mnt/user-data";
