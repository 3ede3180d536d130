//! Running the tasks of a step side by side.

use super::attempt::{Work, run_task};
use super::context::RunCx;
use super::ends::{Ends, TaskEnd, end_records};
use super::limits::StepBound;
use super::schedule::Running;
use super::task::{Asked, TaskCx};
use crate::error::RunError;
use crate::event::{ChannelWrite, EventKind};
use crate::step::{Done, Task, TaskKind};
use futures_util::task::AtomicWaker;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Runs the one task of a step to its end; `None` if a cancellation stopped it. It needs no record of its own: the
/// checkpoint of the step says it all.
pub(crate) async fn run_alone(
    run: &RunCx,
    cx: &Arc<TaskCx>,
    kind: &TaskKind,
    bound: Option<StepBound>,
) -> Option<TaskEnd> {
    let mut work = pin!(run_task(cx.clone(), Work::Whole(kind)));
    let first = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
    let end = match first {
        Poll::Ready(end) => end,
        Poll::Pending => {
            let mut late = bound.map(|bound| run.world.sleep(bound.after));
            match Box::pin(or_stopped(run, &mut late, work)).await {
                Ok(end) => end,
                Err(stop) => return stop_task(cx, stop, bound),
            }
        }
    };
    if run.listener.is_some() {
        announce(run, cx, &end);
    }
    Some(end)
}

/// Runs tasks to their ends. What finishes while others still wait is recorded at once, so that no crash loses it.
///
/// # Errors
/// If a record could not be stored.
pub(crate) async fn run_tasks(
    run: &RunCx,
    contexts: &[Arc<TaskCx>],
    tasks: &[Task],
    bound: Option<StepBound>,
) -> Result<Ends, RunError> {
    if let ([cx], [task]) = (contexts, tasks) {
        return Ok(vec![run_alone(run, cx, &task.kind, bound).await]);
    }
    let mut late = bound.map(|bound| run.world.sleep(bound.after));
    let mut ends: Ends = tasks.iter().map(|_| None).collect();
    let mut waiting = contexts.iter().zip(tasks).enumerate();
    let mut running = Running::new(&run.world);
    let at_once = run.max_parallel.max(1);
    let mut unrecorded: Vec<usize> = Vec::new();
    loop {
        while running.len() < at_once
            && let Some((at, (cx, task))) = waiting.next()
        {
            let work = async |(at, task, kind)| (at, run_task(task, Work::Whole(kind)).await);
            let ended = poll_fn(|waker| {
                let task = (at, cx.clone(), &task.kind);
                Poll::Ready(running.start(|| work(task), waker))
            });
            if let Some((at, end)) = ended.await {
                announce(run, &contexts[at], &end);
                ends[at] = Some(end);
                unrecorded.push(at);
            }
        }
        let ready = poll_fn(|cx| Poll::Ready(running.poll_next(cx))).await;
        let next = match ready {
            Poll::Ready(next) => next,
            Poll::Pending => {
                let mut ops = Vec::new();
                if !run.records_early() {
                    unrecorded.clear();
                }
                for at in unrecorded.drain(..) {
                    let cx = &contexts[at];
                    ops.extend(
                        ends[at]
                            .as_ref()
                            .map(|end| end_records(run, cx, end))
                            .unwrap_or_default(),
                    );
                }
                run.record(contexts[0].info.checkpoint, ops).await?;
                let next = poll_fn(|cx| running.poll_next(cx));
                match or_stopped(run, &mut late, next).await {
                    Ok(next) => next,
                    Err(stop) => {
                        // Nothing runs any more when it is said how that ended.
                        drop(running);
                        for (end, cx) in ends.iter_mut().zip(contexts) {
                            if end.is_none() {
                                *end = stop_task(cx, stop, bound);
                            }
                        }
                        return Ok(ends);
                    }
                }
            }
        };
        let Some((at, end)) = next else {
            return Ok(ends);
        };
        announce(run, &contexts[at], &end);
        ends[at] = Some(end);
        unrecorded.push(at);
    }
}

/// Why the tasks of a step were stopped.
#[derive(Clone, Copy, Debug)]
enum Stop {
    /// Their run was cancelled.
    Cancelled,
    /// The time of their step is over.
    Late,
}

/// Ends a task that was stopped. Gives how; `None` if it was cancelled.
fn stop_task(cx: &TaskCx, stop: Stop, bound: Option<StepBound>) -> Option<TaskEnd> {
    cx.end_attempts();
    let (Stop::Late, Some(bound)) = (stop, bound) else {
        return None;
    };
    let error = bound.error(cx);
    if !error.stops_run() {
        let (node, task) = cx.finisher();
        cx.run.emit(cx.info.step, || EventKind::TaskFailed {
            node,
            task,
            error: error.to_string(),
            retried: false,
        });
    }
    Some(TaskEnd::failed(error))
}

/// A sleep that ends with the time of a step, if that is bounded.
type Late<'a> = Option<Pin<Box<dyn Future<Output = ()> + Send + 'a>>>;

/// Waits for work that belongs to no step, unless the run is cancelled first: then there is no result.
pub(super) async fn beside_steps<T>(run: &RunCx, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let first = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
    match first {
        Poll::Ready(result) => Some(result),
        Poll::Pending => or_stopped(run, &mut None, work).await.ok(),
    }
}

/// Waits for `work`, unless the run is cancelled or the time of the step is over first. Moves a simulated clock on when
/// everything waits.
async fn or_stopped<T>(
    run: &RunCx,
    late: &mut Late<'_>,
    work: impl Future<Output = T>,
) -> Result<T, Stop> {
    let mut work = pin!(work);
    // The clock belongs to the root: only there it is known that everything waits.
    let moves_clock = run.graph_path.is_empty();
    let mut cancelled = pin!(run.cancel.cancelled());
    let mut calls: Option<Arc<Calls>> = None;
    loop {
        let turn = poll_fn(|cx| {
            if cancelled.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Turn::Cancelled);
            }
            let polled = match &calls {
                None => work.as_mut().poll(cx),
                Some(calls) => calls.poll(work.as_mut(), cx),
            };
            let called = calls.as_ref().is_some_and(|calls| calls.any());
            match polled {
                Poll::Ready(result) => Poll::Ready(Turn::Ended(result)),
                Poll::Pending if is_over(late, cx) => Poll::Ready(Turn::Late),
                Poll::Pending if moves_clock && !called && run.world.has_sleepers() => {
                    Poll::Ready(Turn::Waits)
                }
                Poll::Pending => Poll::Pending,
            }
        });
        match turn.await {
            Turn::Ended(result) => return Ok(result),
            Turn::Cancelled => return Err(Stop::Cancelled),
            Turn::Late => return Err(Stop::Late),
            Turn::Waits => match &calls {
                None => calls = Some(Arc::default()),
                Some(calls) => {
                    // A runtime may call those who let others go first no sooner than it has nothing else to do.
                    tokio::task::yield_now().await;
                    if !calls.any() {
                        run.world.advance();
                    }
                }
            },
        }
    }
}

/// What a turn of the work came to.
enum Turn<T> {
    Ended(T),
    /// Every task waits, some of them asleep.
    Waits,
    Cancelled,
    Late,
}

fn is_over(late: &mut Late<'_>, cx: &mut Context<'_>) -> bool {
    late.as_mut()
        .is_some_and(|late| late.as_mut().poll(cx).is_ready())
}

/// Whether anything called for another turn since the last: who did lets others go first, and does not wait.
#[derive(Default)]
struct Calls {
    any: AtomicBool,
    /// Who is to hear of them.
    outer: AtomicWaker,
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.any.store(true, Ordering::Release);
        self.outer.wake();
    }
}

impl Calls {
    fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    fn poll<F: Future>(self: &Arc<Self>, work: Pin<&mut F>, cx: &Context<'_>) -> Poll<F::Output> {
        self.outer.register(cx.waker());
        self.any.store(false, Ordering::Release);
        work.poll(&mut Context::from_waker(&Waker::from(self.clone())))
    }
}

fn announce(run: &RunCx, cx: &TaskCx, end: &TaskEnd) {
    match end {
        TaskEnd::Done(done) => announce_done(run, cx, done, cx.came_from_cache()),
        // Questions are told once they are recorded, failures when the attempt failed.
        TaskEnd::Asked(_) | TaskEnd::Failed(_) | TaskEnd::ToParent(_) => {}
    }
}

/// Tells what a task asks.
pub(crate) fn announce_asked(run: &RunCx, cx: &TaskCx, asked: &[Asked]) {
    run.emit(cx.info.step, || EventKind::TaskInterrupted {
        node: cx.asker().node_name().clone(),
        task: cx.asker().path.clone(),
        interrupts: asked.iter().map(|asked| asked.interrupt.clone()).collect(),
    });
}

/// Tells that a task finished. The start of a run is not shown as one.
pub(crate) fn announce_done(run: &RunCx, cx: &TaskCx, done: &Done, cached: bool) {
    if cx.is_start() {
        return;
    }
    run.emit(cx.info.step, || {
        let (node, task) = cx.finisher();
        EventKind::TaskFinished {
            node,
            task,
            writes: channel_writes(run, done),
            cached,
        }
    });
}

/// What a task wrote, by channel name.
pub(crate) fn channel_writes(run: &RunCx, done: &Done) -> Vec<ChannelWrite> {
    let table = &run.graph.0.channels;
    done.writes
        .iter()
        .map(|(ix, write)| ChannelWrite {
            channel: table.name(*ix).clone(),
            write: write.clone(),
        })
        .collect()
}
