//! A look at a whole database, for those who doubt it.

use super::SqliteCheckpointer;
use super::lease;
use tine_engine::StoreError;

/// The most problems that SQLite is asked to list.
const MOST_PROBLEMS: u32 = 10;

/// What a look at a whole database found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The version of its schema.
    pub schema: i64,
    /// What is wrong with its pages and rows, as SQLite says it; empty if nothing is.
    pub problems: Vec<String>,
    /// Who writes a thread at the moment, one entry for each thread.
    pub holders: Vec<String>,
}

impl SqliteCheckpointer {
    /// Names the version of SQLite that is built in.
    #[must_use]
    pub fn sqlite_version() -> &'static str {
        rusqlite::version()
    }

    /// Reads the whole file and says what is wrong with it. Takes time in proportion to its size; runs go on beside it.
    ///
    /// # Errors
    /// If it can not be read at all.
    pub async fn health(&self) -> Result<Health, StoreError> {
        self.apart(|database| {
            let (schema, found) = database.read(None, |connection| {
                let schema =
                    connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
                let mut check =
                    connection.prepare(&format!("PRAGMA quick_check({MOST_PROBLEMS})"))?;
                let rows = check.query_map([], |row| row.get(0))?;
                let found: Vec<String> = rows.collect::<Result<_, _>>()?;
                Ok((schema, found))
            })?;
            Ok(Health {
                schema,
                problems: found.into_iter().filter(|line| line != "ok").collect(),
                holders: lease::holders(database.locks()),
            })
        })
        .await
    }
}
