//! A whole thread as one file.
//!
//! An archive holds a thread with all its checkpoints, of all branches and of child graphs, what was recorded at them,
//! what the host noted, and the files that belong to it. Any store can write one and take one in. It takes as much space
//! as the thread, for it holds what each checkpoint changed and no state twice.
//!
//! # Format
//! JSON lines in UTF-8, each ended by a line feed. Each is in canonical form (no spaces, keys in code point order), so
//! equal threads give equal bytes, and `jq` and `diff` can be used. In order:
//!
//! | line | times | holds |
//! |---|---|---|
//! | `{"format":"tine thread","thread":{…},"version":1}` | first | the name of the thread |
//! | `{"notes":{…}}` | once | what the host noted |
//! | `{"checkpoint":{…},"graph":"…"}` | once each | an [`Advance`] with its records as they stood, and the namespace of its graph; graph by graph, the root first, the oldest first |
//! | `{"folder":"…"}` | once each | an empty folder |
//! | `{"at":0,"file":"…","text":"…"}` | one or more each | a part of a file from this byte on, or the whole of it; `base64` in place of `text` if it is not UTF-8; `"executable":true` if it is |
//! | `{"end":{"blake3":"…","lines":N}}` | last | how many lines came before, and a hash of all their bytes |
//!
//! Paths have `/` between their parts, and are relative to the thread's folder.
//!
//! ```
//! use tine_engine::{MemoryCheckpointer, ThreadKey};
//! use tine_stores::archive::{ArchiveError, ArchiveReader, ArchiveWriter, restore};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! # let (store, other) = (MemoryCheckpointer::new(), MemoryCheckpointer::new());
//! let (key, copy) = (ThreadKey::local("t"), ThreadKey::local("copy"));
//! let mut archive = ArchiveWriter::new(Vec::new(), &key)?;
//! archive.thread(&store, &key).await?;
//! let bytes = archive.finish()?;
//!
//! let mut archive = ArchiveReader::open(&bytes[..])?;
//! let done = restore(&other, &copy, || archive.next(), |_| Ok(())).await;
//! // Nothing was in it.
//! assert!(matches!(done, Err(ArchiveError::Empty)));
//! # Ok::<(), ArchiveError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod read;
mod restore;
mod write;

pub use read::ArchiveReader;
pub use restore::{Restored, restore, staged_as};
pub use write::ArchiveWriter;

use crate::json::{JsonError, MAX_DEPTH};
use std::io;
use std::sync::Arc;
use tine_engine::StoreError;
use tine_engine::checkpoint::Advance;
use tine_engine::value::Map;

/// What the first line calls the format.
const FORMAT: &str = "tine thread";

/// The newest version of the format known here.
const VERSION: u64 = 1;

/// The longest line of a checkpoint, in bytes. What is longer is neither written nor read.
const LONGEST: usize = 64 << 20;

/// The longest line of anything else.
const LONGEST_OTHER: usize = 8 << 20;

/// How a line of a checkpoint begins.
const CHECKPOINT: &[u8] = br#"{"checkpoint":"#;

/// The most values and keys in one line. Small ones take much more memory than room in the line.
const MOST_VALUES: usize = 2 << 20;

/// How long a line that begins so may be.
fn longest(line: &[u8]) -> usize {
    match line.starts_with(CHECKPOINT) {
        true => LONGEST,
        false => LONGEST_OTHER,
    }
}

/// Refuses a line that would take too much memory.
fn check_line(line: &[u8], number: u64) -> Result<(), ArchiveError> {
    let most = longest(line);
    if line.len() > most {
        return Err(ArchiveError::TooLong { line: number, most });
    }
    // No line has more values than signs between them.
    if line.len() > MOST_VALUES && values(line) > MOST_VALUES {
        return Err(ArchiveError::TooMany { line: number });
    }
    Ok(())
}

/// About how many values and keys a line of JSON has.
fn values(line: &[u8]) -> usize {
    let (mut found, mut in_text, mut escaped) = (1, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b',' | b':' | b'[' | b'{' if !in_text => found += 1,
            _ => {}
        }
    }
    found
}

/// How deep a line may be nested: as deep as what is stored, and what stands around it.
const DEEPEST: usize = MAX_DEPTH + 8;

/// The greatest part of a file in one line, in bytes.
const PART: usize = 48 << 10;

/// One part of an archive.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// What the host noted.
    Notes(Map),
    /// A checkpoint.
    Checkpoint {
        /// The graph that it is of, by its namespace.
        graph: Arc<str>,
        /// What it changed, and what stood at it.
        advance: Box<Advance>,
    },
    /// Something that is kept beside the thread.
    File(FileEntry),
}

/// Something in the folder of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEntry {
    /// A folder with nothing in it.
    Folder {
        /// Its path below the thread's folder.
        path: String,
    },
    /// A part of a file. The parts of a file follow each other; the first is at 0.
    Part {
        /// Its path below the thread's folder.
        path: String,
        /// Where in the file the bytes begin.
        at: u64,
        /// Whether the file is a program.
        executable: bool,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// Why an archive can not be written or taken in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It is something else.
    #[error("it is no archive of a thread: {message}")]
    Foreign {
        /// What it is instead.
        message: String,
    },
    /// A newer program wrote it.
    #[error("it is of version {found}, and this program knows up to {known}; use a newer program")]
    Newer {
        /// Its version.
        found: u64,
        /// The newest known here.
        known: u64,
    },
    /// It ends in the middle.
    #[error("it is cut off after line {lines}")]
    CutOff {
        /// How many whole lines there are.
        lines: u64,
    },
    /// A line makes no sense.
    #[error("line {line} is damaged: {message}")]
    Damaged {
        /// The number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        message: String,
    },
    /// It is not what was written.
    #[error("it was changed: its hash is not the one that it ends with")]
    Changed,
    /// A line is too long.
    #[error("line {line} is longer than {most} bytes")]
    TooLong {
        /// The number of the line, from 1.
        line: u64,
        /// How long it may be.
        most: usize,
    },
    /// A line has too many values.
    #[error("line {line} has more than {MOST_VALUES} values")]
    TooMany {
        /// The number of the line, from 1.
        line: u64,
    },
    /// It has no checkpoint of the root graph.
    #[error("there is no checkpoint in it")]
    Empty,
    /// A file can not be kept.
    #[error("{path}: {message}")]
    File {
        /// The path as the archive has it.
        path: String,
        /// Why not.
        message: String,
    },
    /// It can not be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ArchiveError {
    fn damaged(line: u64, error: &dyn std::fmt::Display) -> Self {
        Self::Damaged {
            line,
            message: error.to_string(),
        }
    }
}

impl From<JsonError> for ArchiveError {
    fn from(error: JsonError) -> Self {
        Self::Io(io::Error::other(error))
    }
}
