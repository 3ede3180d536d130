//! The file: opening it, its schema, its connections.

use super::fault::Fault;
use super::lease;
use super::{SqliteOptions, Synchronous};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tine_engine::checkpoint::ThreadKey;
use tine_engine::{StoreError, failpoint};

/// Marks the file as ours: `tine` in ASCII.
const APPLICATION: i64 = 0x7469_6e65;

/// What brings the schema from each version to the next. Entries are only ever added.
const MIGRATIONS: [&str; 2] = [
    include_str!("migrations/1_threads.sql"),
    include_str!("migrations/2_invocations.sql"),
];

/// The newest schema version known here.
const SCHEMA: i64 = MIGRATIONS.len() as i64;

/// The smallest page that SQLite knows, in bytes.
const SHORTEST: u64 = 512;

/// How many idle reading connections are kept.
const IDLE_READERS: usize = 4;

/// More than there are statements, so that each is compiled once.
const STATEMENTS: usize = 64;

/// One database file, open: a connection that writes, and others that read beside it.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    locks: PathBuf,
    options: SqliteOptions,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
}

impl Database {
    /// Opens the file, making it and its folder where they are missing, and brings its schema up to date.
    pub(super) fn open(path: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        let failed = |error: io::Error| StoreError::Unavailable {
            place: path.display().to_string(),
            message: error.to_string(),
        };
        let path = locate(path).map_err(failed)?;
        // SQLite takes a file this short for an empty one, and would write over it.
        let length = fs::metadata(&path).map_err(failed)?.len();
        if (1..SHORTEST).contains(&length) {
            return Err(StoreError::Damaged {
                place: path.display().to_string(),
                message: "it is not a SQLite database".to_owned(),
            });
        }
        let mut locks = OsString::from(&path);
        locks.push(".locks");
        let locks = PathBuf::from(locks);
        make_folder(&locks, "the folder of the locks").map_err(failed)?;
        // Two processes must not both turn a new file into a database: the change to WAL gives up at once when it
        // meets another.
        let _alone = lease::wait_for(&locks.join(lease::OPENING)).map_err(failed)?;
        let writer = open_writer(&path, &options).map_err(|fault| fault.told(&path, None))?;
        Ok(Self {
            path,
            locks,
            options,
            writer: Mutex::new(writer),
            readers: Mutex::default(),
        })
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the lock files.
    pub(super) fn locks(&self) -> &Path {
        &self.locks
    }

    /// Runs `work` in a write transaction, which is committed only if all of it worked. `what` says what it writes.
    pub(super) fn write<T>(
        &self,
        what: &str,
        thread: &ThreadKey,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let mut writer = lock(&self.writer);
        let done = || -> Result<T, Fault> {
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = work(&transaction)?;
            commit(transaction, what)?;
            Ok(result)
        }();
        done.map_err(|fault| fault.told(&self.path, Some(thread)))
    }

    /// Runs `work` in a read transaction: it sees one state of the database, and waits for no writer.
    pub(super) fn read<T>(
        &self,
        thread: Option<&ThreadKey>,
        work: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let done = || -> Result<T, Fault> {
            let idle = lock(&self.readers).pop();
            let mut reader = match idle {
                Some(reader) => reader,
                None => open_reader(&self.path, &self.options)?,
            };
            let transaction = reader.transaction()?;
            let result = work(&transaction)?;
            drop(transaction);
            let mut readers = lock(&self.readers);
            if readers.len() < IDLE_READERS {
                readers.push(reader);
            }
            Ok(result)
        }();
        done.map_err(|fault| fault.told(&self.path, thread))
    }

    #[cfg(test)]
    pub(super) fn with_writer<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        work(&lock(&self.writer))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file behind `path`, made if it is missing: all who open it must agree on where its locks are.
fn locate(path: &Path) -> io::Result<PathBuf> {
    // Never opened here once it exists: closing it would drop the locks that SQLite has on it in this process.
    if !path.exists() {
        if let Some(folder) = path.parent() {
            make_folder(folder, "the folder of the database")?;
        }
        failpoint::pass("before", "the database file");
        match fs::File::create_new(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        failpoint::pass("after", "the database file");
    }
    fs::canonicalize(path)
}

/// Makes a folder that is not there yet.
fn make_folder(path: &Path, what: &str) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    failpoint::pass("before", what);
    fs::create_dir_all(path)?;
    failpoint::pass("after", what);
    Ok(())
}

fn commit(transaction: Transaction<'_>, what: &str) -> rusqlite::Result<()> {
    failpoint::pass("before", what);
    transaction.commit()?;
    failpoint::pass("after", what);
    Ok(())
}

fn connect(path: &Path, options: &SqliteOptions) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Otherwise each statement is planned anew when its arguments change, which takes longer than running it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

fn open_reader(path: &Path, options: &SqliteOptions) -> Result<Connection, Fault> {
    let connection = connect(path, options)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn open_writer(path: &Path, options: &SqliteOptions) -> Result<Connection, Fault> {
    let mut connection = connect(path, options)?;
    // Before anything is changed: the file may be anything.
    version(&connection, path)?;
    if connection.is_readonly(rusqlite::MAIN_DB)? {
        return Err(StoreError::Unavailable {
            place: path.display().to_string(),
            message: "the file can not be written to".to_owned(),
        }
        .into());
    }
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::Unavailable {
            place: path.display().to_string(),
            message: "its file system can not do write-ahead logging; use a local disk".to_owned(),
        }
        .into());
    }
    let synchronous = match options.synchronous {
        Synchronous::Normal => "normal",
        Synchronous::Full => "full",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// The schema version of the file; 0 if it is empty.
fn version(connection: &Connection, path: &Path) -> Result<i64, Fault> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get(0));
    let (application, found): (i64, i64) = (number("application_id")?, number("user_version")?);
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION && (application, found, tables) != (0, 0, 0) {
        return Err(StoreError::Damaged {
            place: path.display().to_string(),
            message: "it is the database of another program".to_owned(),
        }
        .into());
    }
    if found > SCHEMA {
        return Err(StoreError::Newer {
            place: path.display().to_string(),
            found,
            known: SCHEMA,
        }
        .into());
    }
    Ok(found)
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Fault> {
    // Who only reads must not wait for somebody who writes.
    if version(connection, path)? == SCHEMA {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction, path)?;
    let done = usize::try_from(found)
        .map_err(|_| Fault::damaged("its schema version", &format_args!("it is {found}")))?;
    for migration in &MIGRATIONS[done..] {
        transaction.execute_batch(migration)?;
    }
    if found < SCHEMA {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", SCHEMA)?;
        commit(transaction, "the schema")?;
    }
    Ok(())
}
