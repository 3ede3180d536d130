//! What goes wrong inside, before it is told with its place.

use crate::json::JsonError;
use rusqlite::ErrorCode;
use std::fmt::Display;
use std::path::Path;
use tine_engine::StoreError;
use tine_engine::channel::EffectError;
use tine_engine::checkpoint::ThreadKey;

/// Why something inside the store did not work.
#[derive(Debug)]
pub(super) enum Fault {
    /// SQLite said no.
    Sqlite(rusqlite::Error),
    /// A stored row makes no sense.
    Damaged { what: String, message: String },
    /// What was to be stored can not be.
    Refused { what: String, message: String },
    /// An error of the trait, as it is.
    Store(StoreError),
}

impl Fault {
    /// A stored row that makes no sense.
    pub(super) fn damaged(what: impl Into<String>, message: &dyn Display) -> Self {
        Self::Damaged {
            what: what.into(),
            message: message.to_string(),
        }
    }

    /// Something that can not be stored.
    pub(super) fn refused(what: impl Into<String>, error: &JsonError) -> Self {
        Self::Refused {
            what: what.into(),
            message: error.to_string(),
        }
    }

    /// A change that does not fit the stored value of its channel.
    pub(super) fn misfit(channel: &str, error: &EffectError) -> Self {
        Self::damaged(format!("channel `{channel}`"), error)
    }

    /// The error as callers see it.
    pub(super) fn told(self, file: &Path, thread: Option<&ThreadKey>) -> StoreError {
        let place = match thread {
            Some(thread) => format!("thread `{thread}` in {}", file.display()),
            None => file.display().to_string(),
        };
        match self {
            Self::Store(error) => error,
            Self::Damaged { what, message } => StoreError::Damaged {
                place,
                message: format!("{what}: {message}"),
            },
            Self::Refused { what, message } => StoreError::Unavailable {
                place,
                message: format!("{what} can not be stored: {message}"),
            },
            Self::Sqlite(error) => told(&error, file),
        }
    }
}

fn told(error: &rusqlite::Error, file: &Path) -> StoreError {
    let place = file.display().to_string();
    let unavailable = |message: String| StoreError::Unavailable {
        place: place.clone(),
        message,
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::Damaged {
            place,
            message: "it is not a SQLite database".to_owned(),
        },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged {
            place,
            message: format!("{error}; take it from a backup, or try `sqlite3 {} .recover`", file.display()),
        },
        Some(ErrorCode::DiskFull) => unavailable(
            "the disk is full; nothing of this write was stored and nothing older is lost, so free some space and go on"
                .to_owned(),
        ),
        Some(ErrorCode::SystemIoFailure) => unavailable(format!(
            "the system could not read or write it ({error}); nothing older is lost, so see whether the disk has room and is sound, and go on"
        )),
        Some(ErrorCode::ReadOnly) => {
            unavailable("the file or its folder can not be written to".to_owned())
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => unavailable(
            "another process was writing to it all the while; nothing of this write was stored".to_owned(),
        ),
        Some(_) => unavailable(error.to_string()),
        // Not from SQLite itself: a column of another type than the schema says, or a row that is missing.
        None => StoreError::Damaged {
            place,
            message: error.to_string(),
        },
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
