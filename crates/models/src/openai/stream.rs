//! The bytes of a reply, read into its pieces.

use super::failure;
use super::reply::{MOST_CALLS, Reader, Unread, too_many_calls};
use super::settings::Settings;
use super::wire::Deadline;
use crate::accumulate::Accumulator;
use crate::delta::{Delta, DeltaSink};
use crate::error::{ModelError, shown};
use crate::model::ModelCx;
use crate::reply::{FinishReason, ModelReply};
use crate::request::ModelRequest;
use async_trait::async_trait;
use futures_util::stream::{self, Stream, StreamExt};
use serde_json::Value;
use sse_stream::{Sse, SseByteStream};
use std::io::Cursor;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

/// The most bytes of one piece of a stream.
pub(crate) const MOST_PIECE: usize = 8 << 20;
/// The most bytes of a reply.
pub(crate) const MOST_REPLY: usize = 64 << 20;
/// The most bytes of space before a reply.
const MOST_SPACE: usize = 64 << 10;
/// How much of a body is shown that can not be read, in bytes.
const MOST_SHOWN: usize = 300;
/// How much of it is looked at, so that nothing secret is cut before it is found.
const MOST_CLEANED: usize = 4 << 10;
/// How long more is waited for once a reply has ended: what it cost comes last, and is worth no more than this.
const GRACE: Duration = Duration::from_secs(5);
/// After how many events others have their turn.
const TURN: usize = 64;

/// What some texts in UTF-8 begin with.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Where the bytes of a reply come from.
#[async_trait]
pub(crate) trait Body: Send {
    /// The next bytes, however many; none at the end. The error says what went wrong on the way.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, String>;
}

/// Whether anything of a reply was told already.
#[derive(Debug, Default)]
pub(crate) struct Told(pub(crate) bool);

fn timeout(settings: &Settings, limit: Duration) -> ModelError {
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
            let room = (MOST_CLEANED + 1).saturating_sub(head.len());
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
        let mut seen = 0;
        loop {
            // A part of the mark that some texts begin with tells nothing yet.
            let is_part = self.ahead.len() < MARK.len() && MARK.starts_with(&self.ahead);
            if !is_part {
                let begin = if self.ahead.starts_with(MARK) {
                    MARK.len()
                } else {
                    0
                };
                let new = self.ahead.get(begin.max(seen)..).unwrap_or_default();
                if let Some(byte) = new.iter().find(|byte| !byte.is_ascii_whitespace()) {
                    return Ok(Some(*byte));
                }
                seen = self.ahead.len();
            }
            if seen > MOST_SPACE {
                let message = format!("it begins with {} KiB of nothing", MOST_SPACE >> 10);
                return Err(invalid(self.settings, &message));
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
pub(crate) struct Reply<'a> {
    settings: &'a Settings,
    reader: Reader,
    accumulator: Accumulator,
    sink: &'a mut dyn DeltaSink,
    told: &'a mut Told,
}

impl<'a> Reply<'a> {
    pub(crate) fn new(
        settings: &'a Settings,
        sink: &'a mut dyn DeltaSink,
        told: &'a mut Told,
    ) -> Self {
        Self {
            settings,
            reader: Reader::new(settings.profile),
            accumulator: Accumulator::new(),
            sink,
            told,
        }
    }

    /// Reads a reply: a stream of events, or one JSON object from those endpoints that do not stream. The deadline is
    /// for the beginning of a stream, and all of an object.
    pub(crate) async fn read(
        mut self,
        cx: &ModelCx,
        request: &ModelRequest,
        body: &mut dyn Body,
        deadline: &mut Deadline<'_>,
    ) -> Result<ModelReply, ModelError> {
        let settings = self.settings;
        let late = || Err(timeout(settings, settings.timeout));
        let mut source = Source::new(settings, body);
        let first = deadline.or(source.first()).await;
        match first.unwrap_or_else(late)? {
            Some(b'{' | b'[') => {
                let all = deadline.or(source.all()).await;
                let all = all.unwrap_or_else(|| Err(timeout(settings, settings.timeout)))?;
                self.whole(&all)?;
            }
            _ => self.events(cx, source).await?,
        }
        Ok(self.accumulator.finish(&settings.model, request))
    }

    fn push(&mut self, delta: &Delta) {
        self.told.0 = true;
        self.sink.push(delta);
        self.accumulator.push(delta);
    }

    fn piece(&mut self, piece: &Value) -> Result<(), ModelError> {
        let deltas = self.reader.read(piece).map_err(|unread| match unread {
            Unread::Failed(error) => failure::in_reply(self.settings, &error),
            Unread::Wrong(message) => {
                let shown = self.settings.start(piece.to_string().as_bytes());
                invalid(self.settings, &format!("{message}: {shown}"))
            }
        })?;
        for delta in &deltas {
            self.push(delta);
            if self.accumulator.calls() > MOST_CALLS {
                return Err(invalid(self.settings, &too_many_calls()));
            }
        }
        Ok(())
    }

    /// A reply in one piece.
    fn whole(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            let shown = self.settings.start(bytes);
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
            let message = format!("it has no `choices`: {}", self.settings.start(bytes));
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
        let mut stream = Seen::default();
        let mut deadline = Deadline::after(&*cx.world, settings.chunk_timeout);
        for nth in 1_usize.. {
            let event = match deadline.or(events.next()).await {
                Some(None) => break,
                Some(Some(Ok(event))) => Ok(event),
                Some(Some(Err(error))) => {
                    Err(unreadable(settings, error, ended.load(Ordering::Relaxed)))
                }
                None => Err(late(settings, stream.pieces)),
            };
            let heard = match event {
                Ok(event) => self.event(&event, &mut stream, ended.load(Ordering::Relaxed)),
                Err(error) => Err(Unheard::Lost(error)),
            };
            match heard {
                Ok(Heard::Nothing) => {}
                Ok(Heard::Done) => break,
                // Only what says something has the time for the next begin anew.
                Ok(Heard::Piece) => {
                    let limit = match self.reader.finished {
                        true => GRACE.min(settings.chunk_timeout),
                        false => settings.chunk_timeout,
                    };
                    deadline = Deadline::after(&*cx.world, limit);
                }
                Err(Unheard::Told(error)) => return Err(error),
                Err(Unheard::Lost(error)) if self.reader.finished => {
                    // The reply is whole; what is lost is no part of it.
                    tracing::debug!(model = %settings.alias, %error, "nothing more behind the end");
                    break;
                }
                Err(Unheard::Lost(error)) => return Err(error),
            }
            if nth % TURN == 0 {
                yield_now().await;
            }
        }
        let head = head.lock().map(|head| settings.start(&head));
        self.ended(&stream, &head.unwrap_or_default())
    }

    /// An event of a stream.
    fn event(&mut self, event: &Sse, seen: &mut Seen, ended: bool) -> Result<Heard, Unheard> {
        let settings = self.settings;
        let data = event.data.as_deref().unwrap_or_default().trim();
        if data.is_empty() {
            return Ok(Heard::Nothing);
        }
        seen.pieces += 1;
        if data == "[DONE]" {
            seen.done = true;
            return Ok(Heard::Done);
        }
        if seen.pieces == 1 {
            seen.beginning = settings.start(data.as_bytes());
        }
        let piece: Value = serde_json::from_str(data).map_err(|error| {
            Unheard::Lost(match ended {
                true => broke_off(settings, "it ends in the middle of a piece"),
                false => {
                    let shown = settings.start(data.as_bytes());
                    let message = format!("a piece of it is not JSON ({error}): {shown}");
                    invalid(settings, &message)
                }
            })
        })?;
        if event.event.as_deref() == Some("error") && piece.get("error").is_none() {
            return Err(Unheard::Told(failure::in_reply(settings, &piece)));
        }
        self.piece(&piece).map_err(Unheard::Told)?;
        Ok(Heard::Piece)
    }

    /// Judges the end of a stream.
    fn ended(&mut self, seen: &Seen, head: &str) -> Result<(), ModelError> {
        let settings = self.settings;
        if seen.pieces == 0 {
            return Err(match head.is_empty() {
                true => broke_off(settings, "it is empty"),
                false => invalid(
                    settings,
                    &format!("it is neither JSON nor a stream: {head}"),
                ),
            });
        }
        if !self.reader.known && !seen.done {
            let beginning = &seen.beginning;
            let message = format!("no piece of it is one of a chat completion: {beginning}");
            return Err(invalid(settings, &message));
        }
        if !self.reader.known {
            return Err(invalid(settings, "it ends without a piece"));
        }
        if !self.reader.finished {
            if !seen.done {
                let pieces = seen.pieces;
                let noun = if pieces == 1 { "piece" } else { "pieces" };
                let message = format!("it ends after {pieces} {noun} without saying why");
                return Err(broke_off(settings, &message));
            }
            // The endpoint says that this is all. A text may be taken at that; a call, which may be the first of
            // several or lack half of what it is to write, is not made.
            let finish = match self.accumulator.calls() {
                0 => FinishReason::Stop,
                _ => FinishReason::Incomplete,
            };
            self.push(&Delta::Finish(finish));
        }
        Ok(())
    }
}

/// What was seen of a stream.
#[derive(Debug, Default)]
struct Seen {
    /// How many events with data.
    pieces: usize,
    /// The first of them.
    beginning: String,
    /// Whether the endpoint said that this is all.
    done: bool,
}

/// What an event is.
enum Heard {
    Nothing,
    Piece,
    Done,
}

/// Why there is no event, or none that can be read.
enum Unheard {
    /// The endpoint says or sends something wrong.
    Told(ModelError),
    /// It is lost on the way.
    Lost(ModelError),
}

fn late(settings: &Settings, pieces: usize) -> ModelError {
    let limit = settings.chunk_timeout;
    match pieces {
        0 => timeout(settings, limit),
        _ => broke_off(
            settings,
            &format!("its next piece did not come within {}", shown(limit)),
        ),
    }
}

fn unreadable(settings: &Settings, error: sse_stream::Error, ended: bool) -> ModelError {
    match error {
        sse_stream::Error::Body(error) => match error.downcast::<ModelError>() {
            Ok(error) => *error,
            Err(error) => broke_off(settings, &error.to_string()),
        },
        sse_stream::Error::Utf8Parse(error) if ended && error.error_len().is_none() => {
            broke_off(settings, "it ends in the middle of a character")
        }
        error => invalid(settings, &format!("a piece of it is not UTF-8: {error}")),
    }
}

/// Lets others have their turn.
async fn yield_now() {
    let mut has = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut has, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Settings {
    /// The beginning of a body in one line, without what must not be shown.
    pub(crate) fn start(&self, bytes: &[u8]) -> String {
        let looked = bytes.get(..MOST_CLEANED).unwrap_or(bytes);
        let text = self.clean(&String::from_utf8_lossy(looked));
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut text = words.join(" ");
        let is_cut = looked.len() < bytes.len() || text.len() > MOST_SHOWN;
        text.truncate(text.floor_char_boundary(MOST_SHOWN));
        text.truncate(text.trim_end().len());
        if is_cut {
            text.push('…');
        }
        text
    }
}
