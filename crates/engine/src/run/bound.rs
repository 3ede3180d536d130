//! Bounding attempts in time.

use super::task::TaskCx;
use crate::error::{NodeError, NodeErrorKind, RunError};
use crate::graph::Patience;
use futures_util::future::{Either, select};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Why an attempt was broken off.
enum Late {
    Whole,
    Idle,
}

/// Runs an attempt within the limits of its node; the error says which it met.
///
/// # Errors
/// If it took too long, or showed no progress for too long.
pub(super) async fn bounded<T>(
    task: &TaskCx,
    patience: &Patience,
    attempt: impl Future<Output = T>,
) -> Result<T, NodeError> {
    let limits = pin!(late(task, patience));
    match select(pin!(attempt), limits).await {
        Either::Left((result, _)) => Ok(result),
        Either::Right((late, _)) => {
            let location = task.location();
            let error = match late {
                Late::Whole => RunError::NodeTimeout {
                    location,
                    millis: millis(patience.timeout.unwrap_or_default()),
                },
                Late::Idle => RunError::IdleTimeout {
                    location,
                    millis: millis(patience.idle_timeout.unwrap_or_default()),
                },
            };
            Err(NodeError::from_kind(NodeErrorKind::Run(Box::new(error))))
        }
    }
}

/// Waits until the attempt of a task takes too long.
async fn late(task: &TaskCx, patience: &Patience) -> Late {
    let whole = async {
        match patience.timeout {
            Some(limit) => task.run.world.sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let Some(limit) = patience.idle_timeout else {
        whole.await;
        return Late::Whole;
    };
    match select(pin!(whole), pin!(idle(task, limit))).await {
        Either::Left(_) => Late::Whole,
        Either::Right(_) => Late::Idle,
    }
}

/// Waits until a task has shown no progress for this long.
///
/// This is polled whenever the task is, so what the task shows while it runs here begins the wait anew at once. What it
/// shows on another thread does so when the wait is over: later than it could be, and never too early.
async fn idle(task: &TaskCx, limit: Duration) {
    let mut seen = task.progress();
    let mut sleep = task.run.world.sleep(limit);
    poll_fn(|cx| {
        loop {
            let progress = task.progress();
            if progress != seen {
                seen = progress;
                sleep = task.run.world.sleep(limit);
            }
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if task.progress() == seen {
                return Poll::Ready(());
            }
        }
    })
    .await;
}

/// A duration in errors.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
