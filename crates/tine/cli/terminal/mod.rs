//! What a run shows while it goes on.
//!
//! Events reach a thread of their own, which does nothing but show them: a slow terminal does not slow the run's tasks
//! one by one, and a spinner turns while they work.

pub(crate) mod line;
mod narration;
pub(crate) mod prompt;
pub(crate) mod question;
mod spinner;

use super::Cx;
use super::output::Stream;
use narration::Narration;
pub(crate) use narration::arguments;
use spinner::Spinner;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tine::engine::{Event, Listener};
use tokio_util::sync::CancellationToken;

/// How many events may wait to be shown before the run waits for them.
const BACKLOG: usize = 4096;
/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(90);

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// For people.
    Text,
    /// One event a line.
    Json,
}

/// Shows one run; standard output is its own until it ends.
pub(crate) struct Screen {
    events: Arc<Mutex<Option<SyncSender<Event>>>>,
    thread: JoinHandle<Stream>,
}

impl Screen {
    /// Takes standard output. `closed` is cancelled when nobody reads it any more.
    pub(crate) fn open(cx: &mut Cx, mode: Mode, graph: &str, closed: CancellationToken) -> Self {
        let (events, inbox) = sync_channel(BACKLOG);
        let stdout = cx.take_stdout();
        let both = cx.env.stdout.terminal && cx.env.stderr.terminal;
        let spinner = (both && mode == Mode::Text).then(Spinner::new);
        let graph = graph.to_owned();
        let thread = std::thread::spawn(move || match mode {
            Mode::Json => show_json(&inbox, stdout, &closed),
            Mode::Text => show_text(&inbox, Narration::new(stdout, &graph), spinner, &closed),
        });
        Self {
            events: Arc::new(Mutex::new(Some(events))),
            thread,
        }
    }

    /// Hears the events that are to be shown.
    pub(crate) fn listener(&self) -> Arc<dyn Listener> {
        let events = self.events.clone();
        Arc::new(move |event: &Event| {
            let sender = events.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(sender) = &*sender {
                // The other side is gone only if it panicked, which `close` tells.
                drop(sender.send(event.clone()));
            }
        })
    }

    /// Shows what is left and gives standard output back.
    pub(crate) fn close(self, cx: &mut Cx) {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match self.thread.join() {
            Ok(stdout) => cx.return_stdout(stdout),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn show_json(inbox: &Receiver<Event>, mut stdout: Stream, closed: &CancellationToken) -> Stream {
    for event in inbox {
        match serde_json::to_string(&event) {
            Ok(line) => stdout.line(&line),
            // Every event is made of JSON; should one not be, the line says which.
            Err(error) => stdout.line(&format!(
                "{{\"event\":\"unprintable\",\"step\":{},\"error\":{:?}}}",
                event.step,
                error.to_string()
            )),
        }
        if stdout.closed() {
            closed.cancel();
        }
    }
    stdout
}

fn show_text(
    inbox: &Receiver<Event>,
    mut narration: Narration,
    mut spinner: Option<Spinner>,
    closed: &CancellationToken,
) -> Stream {
    loop {
        let event = match &mut spinner {
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => inbox.recv_timeout(TICK),
        };
        match event {
            Ok(event) => {
                if let Some(spinner) = &mut spinner {
                    spinner.hide();
                }
                narration.tell(&event);
                if narration.closed() {
                    closed.cancel();
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                if let (Some(spinner), Some(work)) = (&mut spinner, narration.waits_for()) {
                    spinner.turn(work);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                if let Some(spinner) = &mut spinner {
                    spinner.hide();
                }
                return narration.end();
            }
        }
    }
}
