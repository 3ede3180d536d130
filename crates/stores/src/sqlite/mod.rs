//! Threads in a SQLite file.

mod database;
mod fault;
mod health;
mod lease;
mod read;
mod track;
mod write;

use async_trait::async_trait;
use database::Database;
pub use health::Health;
use lease::Lease;
use rusqlite::{OptionalExtension, params};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tine_engine::StoreError;
use tine_engine::checkpoint::{
    Advance, Checkpoint, Checkpointer, Scope, ThreadInfo, ThreadKey, ThreadWriter,
};
use tine_engine::world::Id;
use write::Writer;

/// When a commit is safe from what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// A commit outlives the death of the process, and takes tens of microseconds. After a power cut the last commits
    /// may be missing, never half of one.
    #[default]
    Normal,
    /// A commit outlives a power cut too, and waits for the disk.
    Full,
}

/// How a SQLite file is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// When a commit is safe from what.
    pub synchronous: Synchronous,
    /// How long a commit waits, and its thread with it, while another process writes to the file. Processes that use
    /// this crate write for microseconds at a time.
    pub busy_timeout: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            synchronous: Synchronous::default(),
            busy_timeout: Duration::from_secs(5),
        }
    }
}

/// Keeps threads in a SQLite file.
///
/// A checkpoint stores what its step changed. Where loading a channel would read more than twice its value's bytes,
/// or more rows than half its items, the commit that makes it so stores the whole value beside the change.
///
/// # Writers
/// A thread has one writer among all processes that use the file: it holds a lock file in the folder `<file>.locks`,
/// which the kernel frees when the process dies. Should a writer lose its lock all the same (a lock file that was
/// deleted by hand), the next one's token shuts it out: [`StoreError::Fenced`].
///
/// # Blocking
/// What a run does ([`open`](Checkpointer::open), [`load`](Checkpointer::load), and all of [`ThreadWriter`]) happens
/// at once on the caller's thread: a commit takes less time than handing it to another thread and back, it can not be
/// dropped half-way, and the order of a run's tasks does not depend on a pool of threads. What reads across a whole
/// thread or across threads (`history`, `thread`, `threads`, `delete`) goes to tokio's blocking pool, if there is a
/// runtime. Writers share one connection, one commit at a time; each reader has its own and waits for no writer.
#[doc(alias = "SqliteSaver")]
#[derive(Clone, Debug)]
pub struct SqliteCheckpointer {
    database: Arc<Database>,
}

impl SqliteCheckpointer {
    /// Opens a file, making it and its folder if they are missing, and brings its schema up to date.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the file is not such a database, [`StoreError::Newer`] if a newer program made it,
    /// [`StoreError::Unavailable`] if it can not be read and written.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, StoreError> {
        Ok(Self {
            database: Arc::new(Database::open(path.as_ref(), options)?),
        })
    }

    fn wishes(&self, error: &std::io::Error) -> StoreError {
        StoreError::Unavailable {
            place: self.database.locks().display().to_string(),
            message: error.to_string(),
        }
    }

    /// Runs what may take long where it stops nobody.
    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Database>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let database = self.database.clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return work(&database);
        };
        let place = database.path().display().to_string();
        match runtime.spawn_blocking(move || work(&database)).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => Err(StoreError::Unavailable {
                    place,
                    message: format!("the program is ending: {error}"),
                }),
            },
        }
    }
}

fn delete(database: &Database, key: &ThreadKey) -> Result<bool, StoreError> {
    let there: bool = database.read(Some(key), |connection| {
        Ok(connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM thread WHERE tenant = ?1 AND id = ?2)",
            params![key.tenant, key.thread],
            |row| row.get(0),
        )?)
    })?;
    // No lock file is made for a thread that is not there.
    if !there {
        return Ok(false);
    }
    let _lease = Lease::take(database.locks(), key)?;
    database.write("a deletion", key, |connection| {
        // A thread that was opened and never stored has a row and nothing else.
        let stored: Option<bool> = connection
            .query_row(
                "SELECT meta <> '{}' OR EXISTS (SELECT 1 FROM graph WHERE graph.thread = thread.number)
                 FROM thread WHERE tenant = ?1 AND id = ?2",
                params![key.tenant, key.thread],
                |row| row.get(0),
            )
            .optional()?;
        connection.execute(
            "DELETE FROM thread WHERE tenant = ?1 AND id = ?2",
            params![key.tenant, key.thread],
        )?;
        Ok(stored.unwrap_or(false))
    })
}

fn rename(database: &Database, key: &ThreadKey, to: &ThreadKey) -> Result<bool, StoreError> {
    let _from = Lease::take(database.locks(), key)?;
    let _to = Lease::take(database.locks(), to)?;
    database.write("a thread's name", key, |connection| {
        let stored: Option<bool> = connection
            .query_row(
                "SELECT meta <> '{}' OR EXISTS (SELECT 1 FROM graph WHERE graph.thread = thread.number)
                 FROM thread WHERE tenant = ?1 AND id = ?2",
                params![to.tenant, to.thread],
                |row| row.get(0),
            )
            .optional()?;
        match stored {
            Some(true) => {
                let thread = to.to_string().into();
                return Err(StoreError::Exists { thread }.into());
            }
            // One that was opened and never stored.
            Some(false) => {
                connection.execute(
                    "DELETE FROM thread WHERE tenant = ?1 AND id = ?2",
                    params![to.tenant, to.thread],
                )?;
            }
            None => {}
        }
        let renamed = connection.execute(
            "UPDATE thread SET tenant = ?3, id = ?4, token = token + 1 WHERE tenant = ?1 AND id = ?2",
            params![key.tenant, key.thread, to.tenant, to.thread],
        )?;
        Ok(renamed > 0)
    })
}

#[async_trait]
impl Checkpointer for SqliteCheckpointer {
    async fn open(&self, thread: &ThreadKey) -> Result<Arc<dyn ThreadWriter>, StoreError> {
        Ok(Arc::new(Writer::open(self.database.clone(), thread)?))
    }

    async fn load(&self, scope: &Scope, id: Option<Id>) -> Result<Option<Checkpoint>, StoreError> {
        self.database.read(Some(&scope.thread), |connection| {
            read::load(connection, scope, id)
        })
    }

    async fn history(
        &self,
        scope: &Scope,
        before: Option<Id>,
        limit: Option<usize>,
    ) -> Result<Vec<Checkpoint>, StoreError> {
        let scope = scope.clone();
        self.apart(move |database| {
            database.read(Some(&scope.thread), |connection| {
                read::history(connection, &scope, before, limit)
            })
        })
        .await
    }

    async fn thread(&self, thread: &ThreadKey) -> Result<Option<ThreadInfo>, StoreError> {
        let key = thread.clone();
        self.apart(move |database| {
            let infos = database.read(Some(&key), |connection| {
                read::infos(connection, &key.tenant, Some(&key.thread))
            })?;
            Ok(infos.into_iter().next())
        })
        .await
    }

    async fn threads(&self, tenant: &str) -> Result<Vec<ThreadInfo>, StoreError> {
        let tenant = tenant.to_owned();
        self.apart(move |database| {
            database.read(None, |connection| read::infos(connection, &tenant, None))
        })
        .await
    }

    async fn delete(&self, thread: &ThreadKey) -> Result<bool, StoreError> {
        let key = thread.clone();
        self.apart(move |database| delete(database, &key)).await
    }

    async fn namespaces(&self, thread: &ThreadKey) -> Result<Vec<Arc<str>>, StoreError> {
        let key = thread.clone();
        self.apart(move |database| {
            database.read(Some(&key), |connection| read::namespaces(connection, &key))
        })
        .await
    }

    async fn advances(
        &self,
        scope: &Scope,
        from: u64,
        limit: Option<usize>,
    ) -> Result<Vec<Advance>, StoreError> {
        let scope = scope.clone();
        self.apart(move |database| {
            database.read(Some(&scope.thread), |connection| {
                read::advances(connection, &scope, from, limit)
            })
        })
        .await
    }

    async fn rename(&self, thread: &ThreadKey, to: &ThreadKey) -> Result<bool, StoreError> {
        let (key, to) = (thread.clone(), to.clone());
        self.apart(move |database| rename(database, &key, &to))
            .await
    }

    async fn ask_to_stop(&self, thread: &ThreadKey) -> Result<Option<String>, StoreError> {
        let asked = lease::ask_to_stop(self.database.locks(), thread);
        asked.map_err(|error| self.wishes(&error))
    }

    async fn ask_again_to_stop(
        &self,
        thread: &ThreadKey,
        holder: &str,
    ) -> Result<bool, StoreError> {
        let asked = lease::ask_again_to_stop(self.database.locks(), thread, holder);
        asked.map_err(|error| self.wishes(&error))
    }

    async fn is_asked_to_stop(&self, thread: &ThreadKey) -> Result<bool, StoreError> {
        let asked = lease::is_asked_to_stop(self.database.locks(), thread);
        asked.map_err(|error| self.wishes(&error))
    }
}

#[cfg(test)]
mod tests;
