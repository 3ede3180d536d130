//! Asking a run to stop where it can go on later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a run to stop at its next step boundary. Clones ask the same run.
///
/// The step under way ends as it would; then, if more is planned, the run ends with [`Exit::Drained`](super::Exit), and
/// [`Input::Continue`](super::Input) goes on. A run that was in its last step is done. A child graph whose state is
/// stored stops at a boundary of its own, and its task goes on inside it.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<AtomicBool>);

impl Drain {
    /// Nothing is asked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks.
    pub fn request(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was asked.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
