//! One thread of one graph, and what its runs tell.

use serde_json::json;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tine_engine::checkpoint::Source;
use tine_engine::event::ChannelWrite;
use tine_engine::run::Snapshot;
use tine_engine::value::Map;
use tine_engine::{
    Checkpointer, Event, EventKind, Graph, Input, MemoryCheckpointer, Op, Outcome, Resume,
    RunError, RunOptions, Runner, SimWorld, ThreadKey, Update, Value, Write,
};

/// A thread `t` of a graph, kept in memory.
pub(crate) struct Scene {
    pub(crate) runner: Runner,
    pub(crate) world: Arc<SimWorld>,
    transcript: Arc<Mutex<String>>,
}

impl Scene {
    pub(crate) fn new(graph: Graph) -> Self {
        Self::over(graph, Arc::new(MemoryCheckpointer::new()))
    }

    pub(crate) fn over(graph: Graph, checkpointer: Arc<dyn Checkpointer>) -> Self {
        let world = Arc::new(SimWorld::new(7));
        Self {
            runner: Runner::new(graph, world.clone()).with_checkpointer(checkpointer),
            world,
            transcript: Arc::default(),
        }
    }

    /// The run of an input, to be awaited.
    pub(crate) async fn run(
        &self,
        input: impl Into<Input>,
        options: RunOptions,
    ) -> Result<Outcome, RunError> {
        let transcript = self.transcript.clone();
        let listen = move |event: &Event| note(&mut transcript.lock().unwrap(), event);
        let options = RunOptions {
            listener: Some(Arc::new(listen)),
            ..options
        };
        self.runner.invoke(&thread(), input, options).await
    }

    /// Runs an input to its end.
    pub(crate) fn invoke(&self, input: impl Into<Input>) -> Result<Outcome, RunError> {
        block_on(self.run(input, RunOptions::default()))
    }

    pub(crate) fn state(&self) -> Snapshot {
        block_on(self.runner.state(&thread())).unwrap().unwrap()
    }

    pub(crate) fn history(&self) -> Vec<Snapshot> {
        block_on(self.runner.history(&thread(), None)).unwrap()
    }

    /// What the runs told since this was called last.
    pub(crate) fn transcript(&self) -> String {
        std::mem::take(&mut self.transcript.lock().unwrap())
    }
}

/// Counts what nodes do.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicU64>);

impl Count {
    /// One more; gives how many there are now.
    pub(crate) fn up(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) fn thread() -> ThreadKey {
    ThreadKey::local("t")
}

/// New input, as JSON.
pub(crate) fn input(values: serde_json::Value) -> Input {
    let values: Map = Value::from_json(values).as_map().cloned().unwrap();
    Input::New(Update::from(values))
}

/// No input.
pub(crate) fn nothing() -> Input {
    input(json!({}))
}

pub(crate) fn answer(value: impl Into<Value>) -> Input {
    Input::Resume(Resume::value(value))
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(work)
}

/// Polls `work` at most `polls` times, then drops it.
pub(crate) fn poll_some<T>(work: impl Future<Output = T>, polls: usize) -> Option<T> {
    poll_until(work, polls, || false)
}

/// Polls `work` at most `polls` times and until something has come true, then drops it.
pub(crate) fn poll_until<T>(
    work: impl Future<Output = T>,
    polls: usize,
    reached: impl Fn() -> bool,
) -> Option<T> {
    let mut work = Box::pin(work);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        match work.as_mut().poll(&mut cx) {
            Poll::Ready(result) => return Some(result),
            Poll::Pending if reached() => return None,
            Poll::Pending => {}
        }
    }
    None
}

/// Waits for some polls, more than the engine makes at once: a place at which a run can be dropped.
pub(crate) async fn pause() {
    struct Pause(u8);
    impl Future for Pause {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            if self.0 == 0 {
                return Poll::Ready(());
            }
            self.0 -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    }
    Pause(3).await;
}

/// Writes an event into a transcript: what ran, what was written, what comes next.
fn note(out: &mut String, event: &Event) {
    let written = match &event.kind {
        EventKind::Step { tasks } => {
            writeln!(out, "step {}\n  ran    {}", event.step, tasks.join(" "))
        }
        EventKind::TaskFinished {
            task,
            writes,
            cached,
            ..
        } => {
            let stored = if *cached { " (stored)" } else { "" };
            writes
                .iter()
                .try_for_each(|ChannelWrite { channel, write }| {
                    writeln!(out, "  wrote  {task}{stored}: {channel} {}", shown(write))
                })
        }
        EventKind::TaskInterrupted {
            task, interrupts, ..
        } => interrupts
            .iter()
            .try_for_each(|question| writeln!(out, "  asked  {task}: {}", question.payload)),
        EventKind::TaskFailed {
            task,
            error,
            retried,
            ..
        } => {
            let then = if *retried { ", tried again" } else { "" };
            writeln!(out, "  failed {task}: {error}{then}")
        }
        EventKind::Checkpoint { next, source, .. } if *source != Source::Input => {
            let next = if next.is_empty() {
                "nothing".to_owned()
            } else {
                next.join(" ")
            };
            writeln!(out, "  next   {next}")
        }
        EventKind::Breakpoint { nodes } => writeln!(out, "  stops  at {}", nodes.join(" ")),
        EventKind::Ended { exit } => writeln!(out, "{}", exit.name()),
        _ => Ok(()),
    };
    written.unwrap();
}

fn shown(write: &Write) -> String {
    match write {
        Write::Value(value) => format!("<- {value}"),
        Write::Overwrite(value) => format!("= {value}"),
        Write::Ops(ops) => ops
            .iter()
            .map(|op| match op {
                Op::Add(value) => format!("+ {value}"),
                Op::Remove(key) => format!("- {key}"),
                Op::Clear => "- all".to_owned(),
            })
            .collect::<Vec<_>>()
            .join(" "),
    }
}
