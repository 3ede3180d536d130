//! Running the tasks of a step side by side.

use super::attempt::{TaskEnd, run_task};
use super::context::RunCx;
use super::steps::end_records;
use super::task::TaskCx;
use crate::error::RunError;
use crate::event::{ChannelWrite, EventKind};
use crate::step::{Done, Task};
use futures_util::stream::{FuturesUnordered, Stream};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

/// How the tasks of a step ended; `None` for those that a cancellation stopped.
pub(crate) type Ends = Vec<Option<TaskEnd>>;

/// Runs tasks to their ends. What finishes while others still wait is recorded at once, so that no crash loses it.
///
/// # Errors
/// If a record could not be stored.
pub(crate) async fn run_tasks(
    run: &RunCx,
    contexts: &[Arc<TaskCx>],
    tasks: &[Task],
) -> Result<Ends, RunError> {
    if let ([cx], [task]) = (contexts, tasks) {
        // The one task of a step needs no record of its own: the checkpoint of the step says it all.
        let end = or_cancelled(run, run_task(cx.clone(), &task.kind)).await;
        if let Some(end) = &end {
            announce(run, cx, end);
        }
        return Ok(vec![end]);
    }
    let mut ends: Ends = tasks.iter().map(|_| None).collect();
    let mut waiting = contexts.iter().zip(tasks).enumerate();
    let mut running = FuturesUnordered::new();
    let mut start = |running: &mut FuturesUnordered<_>| {
        if let Some((at, (cx, task))) = waiting.next() {
            running.push(async move { (at, run_task(cx.clone(), &task.kind).await) });
        }
    };
    for _ in 0..run.max_parallel.max(1) {
        start(&mut running);
    }
    let mut unrecorded: Vec<usize> = Vec::new();
    loop {
        let ready = poll_fn(|cx| Poll::Ready(Pin::new(&mut running).poll_next(cx))).await;
        let next = match ready {
            Poll::Ready(next) => next,
            Poll::Pending => {
                let mut ops = Vec::new();
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
                let next = poll_fn(|cx| Pin::new(&mut running).poll_next(cx));
                match or_cancelled(run, next).await {
                    Some(next) => next,
                    None => return Ok(ends),
                }
            }
        };
        let Some((at, end)) = next else {
            return Ok(ends);
        };
        announce(run, &contexts[at], &end);
        ends[at] = Some(end);
        unrecorded.push(at);
        start(&mut running);
    }
}

/// Waits for `work`, unless the run is cancelled first. Moves a simulated clock on when everything waits.
async fn or_cancelled<T>(run: &RunCx, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    // The clock belongs to the root: only there it is known that everything waits.
    let moves_clock = run.graph_path.is_empty();
    let first = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await;
    if let Poll::Ready(result) = first {
        return Some(result);
    }
    let mut cancelled = pin!(run.cancel.cancelled());
    poll_fn(|cx| {
        loop {
            if cancelled.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            match work.as_mut().poll(cx) {
                Poll::Ready(result) => return Poll::Ready(Some(result)),
                Poll::Pending if moves_clock && run.world.advance() => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await
}

fn announce(run: &RunCx, cx: &TaskCx, end: &TaskEnd) {
    match end {
        TaskEnd::Done(done) => announce_done(run, cx, done, false),
        TaskEnd::Asked(asked) => run.emit(cx.info.step, || EventKind::TaskInterrupted {
            node: cx.node_name().clone(),
            task: cx.path.clone(),
            interrupts: asked.iter().map(|asked| asked.interrupt.clone()).collect(),
        }),
        // Said when the attempt failed.
        TaskEnd::Failed(_) | TaskEnd::ToParent(_) => {}
    }
}

/// Tells that a task finished. The start of a run is not shown as one.
pub(crate) fn announce_done(run: &RunCx, cx: &TaskCx, done: &Done, cached: bool) {
    if cx.is_start() {
        return;
    }
    run.emit(cx.info.step, || EventKind::TaskFinished {
        node: cx.node_name().clone(),
        task: cx.path.clone(),
        writes: channel_writes(run, done),
        cached,
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
