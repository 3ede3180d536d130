//! The bytes of a reply, read into its pieces.

use super::failure;
use super::reply::{Reader, Unread};
use super::settings::Settings;
use super::wire::within;
use crate::accumulate::Accumulator;
use crate::delta::{Delta, DeltaSink};
use crate::error::{ModelError, shown};
use crate::model::ModelCx;
use crate::reply::{FinishReason, ModelReply};
use crate::request::ModelRequest;
use async_trait::async_trait;
use futures_util::stream::{self, Stream, StreamExt};
use serde_json::Value;
use sse_stream::SseByteStream;
use std::io::Cursor;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The most bytes of one piece of a stream.
pub(crate) const MOST_PIECE: usize = 8 << 20;
/// The most bytes of a reply.
pub(crate) const MOST_REPLY: usize = 64 << 20;
/// How much of a body is shown that can not be read, in bytes.
const MOST_SHOWN: usize = 300;

/// Where the bytes of a reply come from.
#[async_trait]
pub(crate) trait Body: Send {
    /// The next bytes, however many; none at the end. The error says what went wrong on the way.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, String>;
}

/// Whether anything of a reply was told already.
#[derive(Debug, Default)]
pub(crate) struct Told(pub(crate) bool);

/// Reads a reply: a stream of events, or one JSON object from those endpoints that do not stream.
pub(crate) async fn read(
    settings: &Settings,
    cx: &ModelCx,
    request: &ModelRequest,
    body: &mut dyn Body,
    sink: &mut dyn DeltaSink,
    told: &mut Told,
) -> Result<ModelReply, ModelError> {
    let mut source = Source::new(settings, body);
    let mut reply = Reply {
        settings,
        reader: Reader::new(settings.profile),
        accumulator: Accumulator::new(),
        sink,
        told,
    };
    let first = within(&*cx.world, settings.timeout, source.first());
    let first = first
        .await
        .unwrap_or_else(|| Err(timeout(settings, settings.timeout)))?;
    match first {
        Some(b'{' | b'[') => {
            let all = within(&*cx.world, settings.timeout, source.all());
            let all = all
                .await
                .unwrap_or_else(|| Err(timeout(settings, settings.timeout)))?;
            reply.whole(&all)?;
        }
        _ => reply.events(cx, source).await?,
    }
    Ok(reply.accumulator.finish(&settings.model, request))
}

fn timeout(settings: &Settings, limit: std::time::Duration) -> ModelError {
    ModelError::Timeout {
        model: settings.alias.clone(),
        limit,
    }
}

fn invalid(settings: &Settings, message: &str) -> ModelError {
    ModelError::InvalidOutput {
        model: settings.alias.clone(),
        message: settings.clean(message),
    }
}

fn broke_off(settings: &Settings, message: &str) -> ModelError {
    ModelError::BrokeOff {
        model: settings.alias.clone(),
        message: settings.clean(message),
    }
}

/// The bytes of a body, counted.
struct Source<'a> {
    settings: &'a Settings,
    body: &'a mut dyn Body,
    /// What was looked at and not taken yet.
    ahead: Vec<u8>,
    /// The beginning of the body.
    head: Arc<Mutex<Vec<u8>>>,
    read: usize,
    piece: usize,
    line: usize,
    after_return: bool,
    /// Set when the end has come, and what follows is only what an unfinished last event lacked.
    ended: Arc<AtomicBool>,
}

impl<'a> Source<'a> {
    fn new(settings: &'a Settings, body: &'a mut dyn Body) -> Self {
        Self {
            settings,
            body,
            ahead: Vec::new(),
            head: Arc::default(),
            read: 0,
            piece: 0,
            line: 0,
            after_return: false,
            ended: Arc::default(),
        }
    }

    /// The next bytes of the body.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, ModelError> {
        let Some(bytes) = self.body.next().await.map_err(|error| {
            let message = format!("after {} bytes: {error}", self.read);
            broke_off(self.settings, &message)
        })?
        else {
            return Ok(None);
        };
        self.read += bytes.len();
        if let Ok(mut head) = self.head.lock() {
            let room = (MOST_SHOWN + 1).saturating_sub(head.len());
            head.extend(bytes.iter().take(room));
        }
        if self.read > MOST_REPLY {
            let message = format!("it is longer than {} MiB", MOST_REPLY >> 20);
            return Err(invalid(self.settings, &message));
        }
        Ok(Some(bytes))
    }

    /// The first byte that is no space, without taking it.
    async fn first(&mut self) -> Result<Option<u8>, ModelError> {
        loop {
            let bytes = self.ahead.strip_prefix(b"\xef\xbb\xbf");
            let bytes = bytes.unwrap_or(&self.ahead);
            // A part of the mark that some texts begin with tells nothing yet.
            let is_mark = b"\xef\xbb\xbf".starts_with(bytes);
            if let Some(byte) = bytes.iter().find(|byte| !byte.is_ascii_whitespace())
                && !is_mark
            {
                return Ok(Some(*byte));
            }
            match self.next().await? {
                Some(more) => self.ahead.extend(more),
                None => return Ok(None),
            }
        }
    }

    /// The whole body.
    async fn all(mut self) -> Result<Vec<u8>, ModelError> {
        let mut all = std::mem::take(&mut self.ahead);
        while let Some(more) = self.next().await? {
            all.extend(more);
        }
        Ok(all)
    }

    /// Counts the bytes of the event that they belong to. One without an end would fill the memory.
    fn count(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        for byte in bytes {
            let is_rest_of_line_end = *byte == b'\n' && self.after_return;
            self.after_return = *byte == b'\r';
            match byte {
                _ if is_rest_of_line_end => {}
                b'\n' | b'\r' => {
                    if self.line == 0 {
                        self.piece = 0;
                    }
                    self.line = 0;
                }
                _ => {
                    self.line += 1;
                    self.piece += 1;
                }
            }
            if self.piece > MOST_PIECE {
                let message = format!("a piece of it is longer than {} MiB", MOST_PIECE >> 20);
                return Err(invalid(self.settings, &message));
            }
        }
        Ok(())
    }

    /// The next bytes for the reader of events.
    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, ModelError> {
        if self.ended.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let bytes = match std::mem::take(&mut self.ahead) {
            ahead if !ahead.is_empty() => ahead,
            _ => match self.next().await? {
                Some(bytes) => bytes,
                None => {
                    // Some endpoints leave out the empty line after the last event.
                    self.ended.store(true, Ordering::Relaxed);
                    return Ok(Some(b"\n\n".to_vec()));
                }
            },
        };
        self.count(&bytes)?;
        Ok(Some(bytes))
    }

    fn chunks(self) -> impl Stream<Item = Result<Cursor<Vec<u8>>, ModelError>> + Send + 'a {
        stream::try_unfold(self, |mut source| async move {
            let bytes = source.chunk().await?;
            Ok(bytes.map(|bytes| (Cursor::new(bytes), source)))
        })
    }
}

/// A reply while it is read.
struct Reply<'a> {
    settings: &'a Settings,
    reader: Reader,
    accumulator: Accumulator,
    sink: &'a mut dyn DeltaSink,
    told: &'a mut Told,
}

impl Reply<'_> {
    fn push(&mut self, delta: &Delta) {
        self.told.0 = true;
        self.sink.push(delta);
        self.accumulator.push(delta);
    }

    fn piece(&mut self, piece: &Value) -> Result<(), ModelError> {
        let deltas = self.reader.read(piece).map_err(|unread| match unread {
            Unread::Failed(error) => failure::in_reply(self.settings, &error),
            Unread::Wrong(message) => {
                let shown = start(piece.to_string().as_bytes());
                invalid(self.settings, &format!("{message}: {shown}"))
            }
        })?;
        for delta in &deltas {
            self.push(delta);
        }
        Ok(())
    }

    /// A reply in one piece.
    fn whole(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            let shown = start(bytes);
            match error.is_eof() {
                true => broke_off(
                    self.settings,
                    &format!("it ends in the middle after {} bytes: {shown}", bytes.len()),
                ),
                false => invalid(self.settings, &format!("it is not JSON ({error}): {shown}")),
            }
        })?;
        self.piece(&value)?;
        let has_choice = value
            .get("choices")
            .and_then(Value::as_array)
            .is_some_and(|choices| !choices.is_empty());
        if !has_choice {
            let message = format!("it has no `choices`: {}", start(bytes));
            return Err(invalid(self.settings, &message));
        }
        if !self.reader.finished {
            // It came whole, so it is whole.
            self.push(&Delta::Finish(FinishReason::Stop));
        }
        Ok(())
    }

    /// A reply as a stream of events.
    async fn events(&mut self, cx: &ModelCx, source: Source<'_>) -> Result<(), ModelError> {
        let settings = self.settings;
        let ended = source.ended.clone();
        let head = source.head.clone();
        let mut events = Box::pin(SseByteStream::new(Box::pin(source.chunks())));
        let mut done = false;
        let mut seen = 0_usize;
        let mut beginning = String::new();
        while !done {
            let next = within(&*cx.world, settings.chunk_timeout, events.next());
            let Some(next) = next.await else {
                return Err(match seen {
                    0 => timeout(settings, settings.chunk_timeout),
                    _ => broke_off(
                        settings,
                        &format!(
                            "its next piece did not come within {}",
                            shown(settings.chunk_timeout)
                        ),
                    ),
                });
            };
            let event = match next {
                None => break,
                Some(Ok(event)) => event,
                Some(Err(error)) => return Err(unreadable(settings, error)),
            };
            let data = event.data.as_deref().unwrap_or_default().trim();
            if data.is_empty() {
                continue;
            }
            seen += 1;
            if data == "[DONE]" {
                done = true;
                continue;
            }
            if seen == 1 {
                beginning = start(data.as_bytes());
            }
            let piece: Value = match serde_json::from_str(data) {
                Ok(piece) => piece,
                Err(_) if ended.load(Ordering::Relaxed) => {
                    return Err(broke_off(settings, "it ends in the middle of a piece"));
                }
                Err(error) => {
                    let shown = start(data.as_bytes());
                    let message = format!("a piece of it is not JSON ({error}): {shown}");
                    return Err(invalid(settings, &message));
                }
            };
            if event.event.as_deref() == Some("error") && piece.get("error").is_none() {
                return Err(failure::in_reply(settings, &piece));
            }
            self.piece(&piece)?;
        }
        let head = head.lock().map(|head| start(&head)).unwrap_or_default();
        self.ended(done, seen, &head, &beginning)
    }

    /// Judges the end of a stream.
    fn ended(
        &mut self,
        done: bool,
        seen: usize,
        head: &str,
        beginning: &str,
    ) -> Result<(), ModelError> {
        let settings = self.settings;
        if seen == 0 {
            return Err(match head.is_empty() {
                true => broke_off(settings, "it is empty"),
                false => invalid(
                    settings,
                    &format!("it is neither JSON nor a stream: {head}"),
                ),
            });
        }
        if !self.reader.known && !done {
            let message = format!("no piece of it is one of a chat completion: {beginning}");
            return Err(invalid(settings, &message));
        }
        if !self.reader.known {
            return Err(invalid(settings, "it ends without a piece"));
        }
        if !self.reader.finished {
            if !done {
                let pieces = if seen == 1 { "piece" } else { "pieces" };
                let message = format!("it ends after {seen} {pieces} without saying why");
                return Err(broke_off(settings, &message));
            }
            // The endpoint says that this is all.
            self.push(&Delta::Finish(FinishReason::Stop));
        }
        Ok(())
    }
}

fn unreadable(settings: &Settings, error: sse_stream::Error) -> ModelError {
    match error {
        sse_stream::Error::Body(error) => match error.downcast::<ModelError>() {
            Ok(error) => *error,
            Err(error) => broke_off(settings, &error.to_string()),
        },
        error => invalid(settings, &format!("a piece of it is not UTF-8: {error}")),
    }
}

/// The beginning of a body, in one line.
pub(crate) fn start(bytes: &[u8]) -> String {
    let shown = bytes.get(..MOST_SHOWN).unwrap_or(bytes);
    let text = String::from_utf8_lossy(shown);
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut text = words.join(" ");
    if bytes.len() > MOST_SHOWN {
        text.push('…');
    }
    text
}
