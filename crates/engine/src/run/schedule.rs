//! Which task of a step goes on next.

use crate::world::World;
use futures_util::stream::{FuturesUnordered, Stream};
use futures_util::task::AtomicWaker;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use tokio_util::sync::ReusableBoxFuture;

/// The tasks under way: polled in the order in which they were woken, unless the world chooses.
pub(super) enum Running<'a, T> {
    Woken {
        waiting: FuturesUnordered<ReusableBoxFuture<'a, T>>,
        /// The room of the last task that ended without waiting, for the next one.
        room: Option<ReusableBoxFuture<'a, T>>,
    },
    Chosen(Chosen<'a, T>),
}

impl<'a, T: 'a> Running<'a, T> {
    pub(super) fn new(world: &Arc<dyn World>) -> Self {
        match world.choose(1) {
            None => Self::Woken {
                waiting: FuturesUnordered::new(),
                room: None,
            },
            Some(_) => Self::Chosen(Chosen {
                world: world.clone(),
                tasks: Vec::new(),
            }),
        }
    }

    /// How many have not ended.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Woken { waiting, .. } => waiting.len(),
            Self::Chosen(chosen) => chosen.tasks.len(),
        }
    }

    /// Starts a task. Gives its result if it ends without waiting for anything.
    pub(super) fn start<F>(&mut self, work: impl FnOnce() -> F, cx: &mut Context<'_>) -> Option<T>
    where
        F: Future<Output = T> + Send + 'a,
    {
        match self {
            Self::Woken { waiting, room } => {
                let mut task = match room.take() {
                    None => ReusableBoxFuture::new(work()),
                    Some(mut room) => {
                        room.set(work());
                        room
                    }
                };
                if let Poll::Ready(result) = task.poll(cx) {
                    *room = Some(task);
                    return Some(result);
                }
                waiting.push(task);
            }
            Self::Chosen(chosen) => chosen.tasks.push(Seat {
                work: Box::pin(work()),
                call: Arc::new(Call {
                    came: AtomicBool::new(true),
                    outer: AtomicWaker::new(),
                }),
            }),
        }
        None
    }

    /// The next result; none if no task is left.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        match self {
            Self::Woken { waiting, .. } => Pin::new(waiting).poll_next(cx),
            Self::Chosen(chosen) => chosen.poll_next(cx),
        }
    }
}

/// Tasks of which the world chooses the next.
pub(super) struct Chosen<'a, T> {
    world: Arc<dyn World>,
    /// In the order in which they were started.
    tasks: Vec<Seat<'a, T>>,
}

struct Seat<'a, T> {
    work: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
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

impl<T> Chosen<'_, T> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
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
