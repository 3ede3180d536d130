//! Which task of a step goes on next.

use crate::world::World;
use futures_util::stream::{FuturesUnordered, Stream};
use futures_util::task::AtomicWaker;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// The tasks under way: polled in the order in which they were woken, unless the world chooses.
pub(super) enum Running<F> {
    Woken(FuturesUnordered<F>),
    Chosen(Chosen<F>),
}

impl<F: Future> Running<F> {
    pub(super) fn new(world: &Arc<dyn World>) -> Self {
        match world.choose(1) {
            None => Self::Woken(FuturesUnordered::new()),
            Some(_) => Self::Chosen(Chosen {
                world: world.clone(),
                tasks: Vec::new(),
            }),
        }
    }

    pub(super) fn push(&mut self, work: F) {
        match self {
            Self::Woken(tasks) => tasks.push(work),
            Self::Chosen(chosen) => chosen.tasks.push(Seat {
                work: Box::pin(work),
                call: Arc::new(Call {
                    came: AtomicBool::new(true),
                    outer: AtomicWaker::new(),
                }),
            }),
        }
    }

    /// The next result; none if no task is left.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        match self {
            Self::Woken(tasks) => Pin::new(tasks).poll_next(cx),
            Self::Chosen(chosen) => chosen.poll_next(cx),
        }
    }
}

/// Tasks of which the world chooses the next.
pub(super) struct Chosen<F> {
    world: Arc<dyn World>,
    /// In the order in which they were started.
    tasks: Vec<Seat<F>>,
}

struct Seat<F> {
    work: Pin<Box<F>>,
    call: Arc<Call>,
}

/// Whether a task was woken since it was polled last.
struct Call {
    came: AtomicBool,
    /// Who polls the tasks.
    outer: AtomicWaker,
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        self.came.store(true, Ordering::Release);
        self.outer.wake();
    }
}

impl<F: Future> Chosen<F> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if self.tasks.is_empty() {
            return Poll::Ready(None);
        }
        for seat in &self.tasks {
            seat.call.outer.register(cx.waker());
        }
        // Tasks that wake themselves must not keep everything else from its turn.
        for _ in 0..2 * self.tasks.len() {
            let came = |at: &usize| self.tasks[*at].call.came.load(Ordering::Acquire);
            let ready: Vec<usize> = (0..self.tasks.len()).filter(came).collect();
            if ready.is_empty() {
                return Poll::Pending;
            }
            let chosen = self.world.choose(ready.len()).unwrap_or(0);
            let at = ready[chosen % ready.len()];
            let seat = &mut self.tasks[at];
            seat.call.came.store(false, Ordering::Release);
            let waker = Waker::from(seat.call.clone());
            if let Poll::Ready(result) = seat.work.as_mut().poll(&mut Context::from_waker(&waker)) {
                self.tasks.remove(at);
                return Poll::Ready(Some(result));
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
