//! Time, ids and randomness, and the one place they come from.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A point in time: milliseconds since 1970, UTC. Prints as `2026-12-01T04:11:56.789Z`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_millisecond(millis) {
            Ok(time) => write!(out, "{time:.3}"),
            Err(_) => write!(out, "{} ms after 1970", self.0),
        }
    }
}

/// An id of 128 bits; those of one world sort in the order they were made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u128);

impl Id {
    /// Parses the form that [`Display`](fmt::Display) prints.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        uuid::Uuid::parse_str(text)
            .ok()
            .map(|id| Self(id.as_u128()))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_u128(self.0).fmt(out)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom(format_args!("`{text}` is not an id")))
    }
}

/// Clock, ids and randomness of a runner.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a world",
    note = "use `TokioWorld` to run for real, `SimWorld` for runs that repeat to the byte"
)]
pub trait World: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// A new id, greater than every earlier one of this world.
    fn new_id(&self) -> Id;

    /// The time now and a new id: what every step needs, for one look at the clock.
    fn stamp(&self) -> (Timestamp, Id) {
        (self.now(), self.new_id())
    }

    /// A random number, for jitter and the like.
    fn random(&self) -> u64;

    /// Waits.
    async fn sleep(&self, duration: Duration);

    /// Whether somebody sleeps until time is moved on by [`advance`](Self::advance). Never so in real worlds.
    fn has_sleepers(&self) -> bool {
        false
    }

    /// Moves time to the next sleeper; called when every task of a step waits and [`has_sleepers`](Self::has_sleepers).
    ///
    /// True if a sleeper was woken. Real worlds have nothing to do here.
    fn advance(&self) -> bool {
        false
    }

    /// Which of `ready` tasks of a step goes on next, counted from 0. `None`, as in real worlds, takes them in the order
    /// in which they were woken. No answer may change what a run leaves behind.
    fn choose(&self, ready: usize) -> Option<usize> {
        let _ = ready;
        None
    }
}

/// A shared world: what runners and their surroundings both hold.
#[async_trait]
impl<W: World + ?Sized> World for Arc<W> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn new_id(&self) -> Id {
        (**self).new_id()
    }

    fn stamp(&self) -> (Timestamp, Id) {
        (**self).stamp()
    }

    fn random(&self) -> u64 {
        (**self).random()
    }

    async fn sleep(&self, duration: Duration) {
        (**self).sleep(duration).await;
    }

    fn has_sleepers(&self) -> bool {
        (**self).has_sleepers()
    }

    fn advance(&self) -> bool {
        (**self).advance()
    }

    fn choose(&self, ready: usize) -> Option<usize> {
        (**self).choose(ready)
    }
}

/// The real world: the system clock, tokio's timer, ids by time.
#[derive(Debug)]
pub struct TokioWorld {
    /// Tells the ids of this world from those that others make in the same millisecond.
    salt: u128,
    last: Mutex<u128>,
}

impl Default for TokioWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl TokioWorld {
    /// The real world.
    #[must_use]
    pub fn new() -> Self {
        // Everything below the 48 bits of time, the version and variant of the format included.
        let salt = uuid::Uuid::now_v7().as_u128() & ((1 << 80) - 1);
        Self {
            salt,
            last: Mutex::new(0),
        }
    }
}

#[async_trait]
impl World for TokioWorld {
    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let millis = since.as_secs().saturating_mul(1000);
        Timestamp(millis.saturating_add(since.subsec_millis().into()))
    }

    fn new_id(&self) -> Id {
        self.stamp().1
    }

    fn stamp(&self) -> (Timestamp, Id) {
        let now = self.now();
        let id = (u128::from(now.0) << 80) | self.salt;
        // Within a millisecond, and when the clock is set back, ids count on.
        let mut last = self
            .last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *last = id.max(*last + 1);
        (now, Id(*last))
    }

    fn random(&self) -> u64 {
        // Each half has some fixed bits, in different places.
        let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
        high ^ low
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is where waiting comes from"
    )]
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A world without surprises: its clock starts at 0 and moves only when every task waits.
#[derive(Debug)]
pub struct SimWorld {
    ids: AtomicU64,
    seed: AtomicU64,
    /// Where the order of tasks comes from, if it is not that of their waking.
    order: Option<AtomicU64>,
    clock: Mutex<Clock>,
}

#[derive(Debug, Default)]
struct Clock {
    now: u64,
    /// Sleepers by due time, then by the order in which they fell asleep.
    sleepers: BTreeMap<(u64, u64), Waker>,
    slept: u64,
}

impl SimWorld {
    /// A world whose random numbers follow from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            ids: AtomicU64::new(0),
            seed: AtomicU64::new(seed),
            order: None,
            clock: Mutex::new(Clock::default()),
        }
    }

    /// Has the tasks of a step go on in a random order that follows from `seed`. Random numbers stay what they are.
    #[must_use]
    pub fn shuffled(self, seed: u64) -> Self {
        Self {
            order: Some(AtomicU64::new(seed)),
            ..self
        }
    }

    fn clock(&self) -> std::sync::MutexGuard<'_, Clock> {
        self.clock
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The next number of a sequence (splitmix64).
fn splitmix(state: &AtomicU64) -> u64 {
    let mut z = state
        .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One who sleeps. Nobody waits any more for one that was dropped, and the clock does not stop there.
struct Sleeper<'a> {
    world: &'a SimWorld,
    due: (u64, u64),
}

impl Sleeper<'_> {
    fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        let mut clock = self.world.clock();
        if clock.now >= self.due.0 {
            return Poll::Ready(());
        }
        clock.sleepers.insert(self.due, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.world.clock().sleepers.remove(&self.due);
    }
}

#[async_trait]
impl World for SimWorld {
    fn now(&self) -> Timestamp {
        Timestamp(self.clock().now / 1000)
    }

    fn new_id(&self) -> Id {
        Id(u128::from(self.ids.fetch_add(1, Ordering::Relaxed)) + 1)
    }

    fn random(&self) -> u64 {
        splitmix(&self.seed)
    }

    async fn sleep(&self, duration: Duration) {
        let due = {
            let mut clock = self.clock();
            clock.slept += 1;
            let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
            (clock.now.saturating_add(micros), clock.slept)
        };
        let sleeper = Sleeper { world: self, due };
        std::future::poll_fn(|cx| sleeper.poll(cx)).await;
    }

    fn has_sleepers(&self) -> bool {
        !self.clock().sleepers.is_empty()
    }

    fn advance(&self) -> bool {
        let mut clock = self.clock();
        let Some(((due, _), waker)) = clock.sleepers.pop_first() else {
            return false;
        };
        clock.now = clock.now.max(due);
        drop(clock);
        waker.wake();
        true
    }

    fn choose(&self, ready: usize) -> Option<usize> {
        let order = self.order.as_ref()?;
        let ready = u64::try_from(ready.max(1)).unwrap_or(u64::MAX);
        usize::try_from(splitmix(order) % ready).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::Pin;

    type Sleep<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

    /// Falls asleep, or wakes up; true if it woke.
    fn poll(sleep: &mut Sleep<'_>) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        sleep.as_mut().poll(&mut cx).is_ready()
    }

    #[test]
    fn real_random_numbers_use_all_their_bits() {
        let world = TokioWorld::new();
        let (mut any, mut all) = (0, u64::MAX);
        for _ in 0..1000 {
            let number = world.random();
            any |= number;
            all &= number;
        }
        assert_eq!((any, all), (u64::MAX, 0));
    }

    #[test]
    fn a_shared_world_is_the_world_itself() {
        let world: Arc<dyn World> = Arc::new(SimWorld::new(1));
        let shared = world.clone();
        let first = shared.new_id();
        assert!(world.new_id() > first);
        let mut sleep = World::sleep(&shared, Duration::from_secs(1));
        assert!(!poll(&mut sleep));
        assert!(shared.has_sleepers() && shared.advance() && poll(&mut sleep));
        assert_eq!(world.now(), Timestamp(1000));
    }

    #[test]
    fn the_longest_sleep_ends_at_the_end_of_time() {
        let world = SimWorld::new(1);
        let mut short = world.sleep(Duration::from_secs(1));
        assert!(!poll(&mut short));
        assert!(world.advance() && poll(&mut short));
        let mut long = world.sleep(Duration::MAX);
        assert!(!poll(&mut long));
        assert!(world.advance() && poll(&mut long));
        assert!(poll(&mut world.sleep(Duration::from_secs(1))));
    }

    #[test]
    fn the_clock_does_not_stop_for_a_sleeper_that_was_dropped() {
        let world = SimWorld::new(1);
        let mut gone = world.sleep(Duration::from_secs(1));
        let mut stays = world.sleep(Duration::from_secs(5));
        assert!(!poll(&mut gone) && !poll(&mut stays));
        drop(gone);
        assert!(world.advance() && poll(&mut stays));
        assert_eq!(world.now(), Timestamp(5000));
        assert!(!world.advance());
    }
}
