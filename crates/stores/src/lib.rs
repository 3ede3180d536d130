//! Durable stores behind the engine's [`Checkpointer`](tine_engine::Checkpointer) trait.
//!
//! This crate owns serialisation, schema and migrations, effects and snapshots, and leases. It knows nothing of
//! messages, tools or models: to it, state is channels with values.
//!
#![cfg_attr(
    feature = "sqlite",
    doc = r#"
```
use tine_engine::checkpoint::{Checkpointer, ThreadKey};
use tine_stores::{SqliteCheckpointer, SqliteOptions};

# let folder = tempfile::tempdir()?;
# let path = folder.path().join("threads.db");
# let runtime = tokio::runtime::Builder::new_current_thread().build()?;
let threads = SqliteCheckpointer::open(&path, SqliteOptions::default())?;
# runtime.block_on(async {
let writer = threads.open(&ThreadKey::local("../../x")).await?;
assert!(threads.open(&ThreadKey::local("../../x")).await.is_err(), "it has a writer");
drop(writer);
# Ok::<(), tine_engine::StoreError>(())
# })?;
# Ok::<(), Box<dyn std::error::Error>>(())
```
"#
)]
//!
//! [`archive`] writes any store's threads to files, and takes them in again.
//!
//! # Features
//! - `sqlite` (default): [`SqliteCheckpointer`], with SQLite built in.

pub mod archive;
mod json;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "sqlite")]
pub use sqlite::{Health, SqliteCheckpointer, SqliteOptions, Synchronous};
