//! A world in which short sleeps are over at once, and long ones when the test says so.

use async_trait::async_trait;
use std::sync::Mutex;
use std::time::Duration;
use tine_engine::world::Id;
use tine_engine::{SimWorld, Timestamp, World};
use tokio::sync::watch;

/// What is longer than any pause between two requests is the limit of a wait.
const LIMITS: Duration = Duration::from_secs(61);
/// How long more is waited for behind the end of a reply, which is no pause either.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

pub(crate) struct TestWorld {
    sim: SimWorld,
    now: Timestamp,
    paused: Mutex<Vec<Duration>>,
    limits: Mutex<Vec<Duration>>,
    over: watch::Sender<Duration>,
}

impl TestWorld {
    pub(crate) fn new() -> Self {
        Self::at(Timestamp(0))
    }

    pub(crate) fn at(now: Timestamp) -> Self {
        Self {
            sim: SimWorld::new(0),
            now,
            paused: Mutex::default(),
            limits: Mutex::default(),
            over: watch::channel(Duration::ZERO).0,
        }
    }

    /// So much time has gone by for everybody who waits.
    pub(crate) fn run_out(&self, time: Duration) {
        self.over.send_replace(time);
    }

    /// The limits of what was waited for.
    pub(crate) fn limits(&self) -> Vec<Duration> {
        self.limits.lock().unwrap().clone()
    }

    /// The pauses that were made, in milliseconds.
    pub(crate) fn paused(&self) -> Vec<u128> {
        let paused = self.paused.lock().unwrap();
        paused.iter().map(Duration::as_millis).collect()
    }
}

#[async_trait]
impl World for TestWorld {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn new_id(&self) -> Id {
        self.sim.new_id()
    }

    fn random(&self) -> u64 {
        0
    }

    async fn sleep(&self, duration: Duration) {
        if duration < LIMITS && duration != GRACE {
            self.paused.lock().unwrap().push(duration);
            return;
        }
        self.limits.lock().unwrap().push(duration);
        let mut over = self.over.subscribe();
        drop(over.wait_for(|over| *over >= duration).await);
    }
}
