//! Writing an archive.

use super::{ArchiveError, DEEPEST, FORMAT, PART, VERSION, check_line};
use crate::json;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use std::io::{Read, Write};
use tine_engine::checkpoint::{Advance, Checkpointer, Scope, ThreadKey};
use tine_engine::value::Map;
use tine_engine::{StoreError, Value, to_value};

/// How many checkpoints are read at once.
const PIECE: usize = 16;

/// Writes an archive. It is one only when [`finish`](Self::finish) was called.
#[derive(Debug)]
pub struct ArchiveWriter<W> {
    out: W,
    hasher: blake3::Hasher,
    lines: u64,
}

impl<W: Write> ArchiveWriter<W> {
    /// Begins the archive of a thread.
    ///
    /// # Errors
    /// If nothing can be written to `out`.
    pub fn new(out: W, thread: &ThreadKey) -> Result<Self, ArchiveError> {
        let mut archive = Self {
            out,
            hasher: blake3::Hasher::new(),
            lines: 0,
        };
        let head = json!({"format": FORMAT, "thread": thread, "version": VERSION});
        archive.line(&Value::from_json(head))?;
        Ok(archive)
    }

    /// Writes what a store has of the thread. Nobody may write to the thread meanwhile: take its writer first.
    ///
    /// # Errors
    /// If the store can not be read, or `out` not written.
    pub async fn thread(
        &mut self,
        store: &dyn Checkpointer,
        thread: &ThreadKey,
    ) -> Result<(), ArchiveError> {
        let notes = store.thread(thread).await?.map(|info| info.meta);
        self.entry([("notes", notes.unwrap_or_default().into())])?;
        for graph in store.namespaces(thread).await? {
            let scope = Scope {
                thread: thread.clone(),
                namespace: graph.clone(),
            };
            let mut from = 0;
            loop {
                let piece = store.advances(&scope, from, Some(PIECE)).await?;
                let ended = piece.len() < PIECE;
                from += piece.len() as u64;
                for advance in piece {
                    let checkpoint = data(&advance)?;
                    self.entry([("checkpoint", checkpoint), ("graph", (*graph).into())])?;
                }
                if ended {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes an empty folder.
    ///
    /// # Errors
    /// If `out` can not be written.
    pub fn folder(&mut self, path: &str) -> Result<(), ArchiveError> {
        self.entry([("folder", path.into())])
    }

    /// Writes a file.
    ///
    /// # Errors
    /// If `content` can not be read, or `out` not written.
    pub fn file(
        &mut self,
        path: &str,
        executable: bool,
        content: &mut dyn Read,
    ) -> Result<(), ArchiveError> {
        let (mut at, mut part) = (0_u64, Vec::new());
        loop {
            let room = (PART - part.len()) as u64;
            Read::take(&mut *content, room).read_to_end(&mut part)?;
            if part.is_empty() && at > 0 {
                return Ok(());
            }
            let ended = part.len() < PART;
            // A letter that the part would cut in two begins the next one.
            let whole = match std::str::from_utf8(&part) {
                Ok(_) => part.len(),
                Err(error) if !ended && error.error_len().is_none() => error.valid_up_to(),
                Err(_) => part.len(),
            };
            let rest = part.split_off(whole);
            let bytes = match String::from_utf8(std::mem::take(&mut part)) {
                Ok(text) => ("text", Value::from(text)),
                Err(error) => {
                    let bytes = BASE64_STANDARD.encode(error.as_bytes());
                    ("base64", bytes.into())
                }
            };
            let mut line: Map = [("at", Value::from(at)), ("file", path.into()), bytes]
                .map(|(key, value)| (key.into(), value))
                .into();
            if executable && at == 0 {
                line.insert("executable".into(), true.into());
            }
            self.line(&line.into())?;
            at += whole as u64;
            part = rest;
            if ended {
                return Ok(());
            }
        }
    }

    /// Closes the archive. Gives back what it was written to, flushed.
    ///
    /// # Errors
    /// If `out` can not be written.
    pub fn finish(mut self) -> Result<W, ArchiveError> {
        let hash = self.hasher.finalize().to_hex();
        let end = json!({"blake3": hash.as_str(), "lines": self.lines});
        self.entry([("end", Value::from_json(end))])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn entry<const N: usize>(&mut self, fields: [(&str, Value); N]) -> Result<(), ArchiveError> {
        let fields: Map = fields.map(|(key, value)| (key.into(), value)).into();
        self.line(&fields.into())
    }

    fn line(&mut self, value: &Value) -> Result<(), ArchiveError> {
        let mut text = json::encode_within(value, DEEPEST)?;
        text.push('\n');
        self.lines += 1;
        check_line(text.as_bytes(), self.lines)?;
        self.hasher.update(text.as_bytes());
        self.out.write_all(text.as_bytes())?;
        Ok(())
    }
}

/// A checkpoint as a value, without changes that are overwritten in the same step: stores may leave those out.
fn data(advance: &Advance) -> Result<Value, ArchiveError> {
    use tine_engine::channel::Effect;
    let mut advance = advance.clone();
    advance
        .effects
        .retain(|channel| !channel.effects.is_empty());
    for channel in &mut advance.effects {
        let mut effects = channel.effects.iter();
        let whole = effects.rposition(|effect| matches!(effect, Effect::Set(_) | Effect::Unset));
        channel.effects.drain(..whole.unwrap_or(0));
    }
    to_value(&advance).map_err(|error| {
        ArchiveError::Store(StoreError::Damaged {
            place: format!("checkpoint `{}`", advance.id),
            message: error.to_string(),
        })
    })
}
