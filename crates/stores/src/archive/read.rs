//! Reading an archive.

use super::{
    ArchiveError, CHECKPOINT, DEEPEST, Entry, FORMAT, FileEntry, LONGEST, LONGEST_OTHER, VERSION,
    check_line,
};
use crate::json;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use std::io::{BufRead, Read};
use std::sync::Arc;
use tine_engine::checkpoint::{Advance, ThreadKey};
use tine_engine::value::Map;

/// Reads an archive, entry by entry. Nothing of it may be believed before [`next`](Self::next) has given `None`: only
/// then the end was met, and the hash is right.
#[derive(Debug)]
pub struct ArchiveReader<R> {
    input: R,
    thread: ThreadKey,
    hasher: blake3::Hasher,
    lines: u64,
    ended: bool,
}

#[derive(Deserialize)]
struct Head {
    format: String,
    version: u64,
    thread: ThreadKey,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    notes: Option<Map>,
    checkpoint: Option<Box<Advance>>,
    graph: Option<Arc<str>>,
    folder: Option<String>,
    file: Option<String>,
    at: Option<u64>,
    text: Option<String>,
    base64: Option<String>,
    #[serde(default)]
    executable: bool,
    end: Option<End>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    blake3: String,
    lines: u64,
}

impl<R: BufRead> ArchiveReader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// If it is no archive, or one of a newer program.
    pub fn open(mut input: R) -> Result<Self, ArchiveError> {
        let foreign = |message: &str| ArchiveError::Foreign {
            message: message.to_owned(),
        };
        // Whatever it is, it need not be read whole.
        const HEAD: usize = 64 << 10;
        let mut line = Vec::new();
        (&mut input)
            .take(HEAD as u64)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(foreign("it is empty"));
        }
        let text = std::str::from_utf8(&line).map_err(|_| foreign("it is not text"))?;
        let of = json::decode::<serde_json::Value>(text)
            .map_err(|_| foreign("its first line is not JSON"))?;
        if of.get("format").and_then(serde_json::Value::as_str) != Some(FORMAT) {
            return Err(foreign("its first line does not say so"));
        }
        let version = of.get("version").and_then(serde_json::Value::as_u64);
        if let Some(found) = version.filter(|found| *found > VERSION) {
            return Err(ArchiveError::Newer {
                found,
                known: VERSION,
            });
        }
        if !line.ends_with(b"\n") {
            return Err(ArchiveError::CutOff { lines: 0 });
        }
        let head: Head = json::decode(text).map_err(|error| ArchiveError::damaged(1, &error))?;
        if (head.format.as_str(), head.version) != (FORMAT, VERSION) {
            return Err(ArchiveError::damaged(1, &"there is no such version"));
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&line);
        Ok(Self {
            input,
            thread: head.thread,
            hasher,
            lines: 1,
            ended: false,
        })
    }

    /// The name that the thread had.
    #[must_use]
    pub fn thread(&self) -> &ThreadKey {
        &self.thread
    }

    /// The next entry; `None` at the end, if all of it is as it was written.
    ///
    /// # Errors
    /// If it is cut off, damaged or changed.
    #[expect(
        clippy::should_implement_trait,
        reason = "one that failed must not go on"
    )]
    pub fn next(&mut self) -> Result<Option<Entry>, ArchiveError> {
        if self.ended {
            return Ok(None);
        }
        let mut line = Vec::new();
        let number = self.lines + 1;
        (&mut self.input)
            .take(LONGEST_OTHER as u64 + 1)
            .read_until(b'\n', &mut line)?;
        if line.len() > LONGEST_OTHER && line.starts_with(CHECKPOINT) && !line.ends_with(b"\n") {
            (&mut self.input)
                .take((LONGEST - LONGEST_OTHER) as u64)
                .read_until(b'\n', &mut line)?;
        }
        check_line(&line, number)?;
        if !line.ends_with(b"\n") {
            return Err(ArchiveError::CutOff { lines: self.lines });
        }
        let damaged = |message: &str| ArchiveError::damaged(number, &message);
        let text = std::str::from_utf8(&line).map_err(|_| damaged("it is not UTF-8"))?;
        let parsed: Line = json::decode_within(text, DEEPEST)
            .map_err(|error| ArchiveError::damaged(number, &error))?;
        if let Some(end) = &parsed.end {
            if end.lines != self.lines {
                return Err(damaged(&format!(
                    "it ends {} lines, and there are {}",
                    end.lines, self.lines
                )));
            }
            if self.hasher.finalize().to_hex().as_str() != end.blake3 {
                return Err(ArchiveError::Changed);
            }
            let mut more = [0];
            if self.input.read(&mut more)? > 0 {
                return Err(ArchiveError::damaged(number + 1, &"it comes after the end"));
            }
            self.ended = true;
            return Ok(None);
        }
        self.hasher.update(&line);
        self.lines = number;
        entry(parsed).map(Some).map_err(damaged)
    }
}

/// What a line says, if it says one thing.
fn entry(line: Line) -> Result<Entry, &'static str> {
    const NO_ENTRY: &str = "it is no entry";
    let is_part = line.at.is_some() || line.text.is_some() || line.base64.is_some();
    Ok(match line {
        Line {
            notes: Some(notes),
            checkpoint: None,
            graph: None,
            folder: None,
            file: None,
            executable: false,
            ..
        } if !is_part => Entry::Notes(notes),
        Line {
            notes: None,
            checkpoint: Some(advance),
            graph: Some(graph),
            folder: None,
            file: None,
            executable: false,
            ..
        } if !is_part => Entry::Checkpoint { graph, advance },
        Line {
            notes: None,
            checkpoint: None,
            graph: None,
            folder: Some(path),
            file: None,
            executable: false,
            ..
        } if !is_part => Entry::File(FileEntry::Folder { path }),
        Line {
            notes: None,
            checkpoint: None,
            graph: None,
            folder: None,
            file: Some(path),
            at: Some(at),
            text,
            base64,
            executable,
            ..
        } => {
            let bytes = match (text, base64) {
                (Some(text), None) => text.into_bytes(),
                (None, Some(text)) => match BASE64_STANDARD.decode(text) {
                    Ok(bytes) => bytes,
                    Err(_) => return Err("its bytes are not base64"),
                },
                _ => return Err(NO_ENTRY),
            };
            Entry::File(FileEntry::Part {
                path,
                at,
                executable,
                bytes,
            })
        }
        _ => return Err(NO_ENTRY),
    })
}
