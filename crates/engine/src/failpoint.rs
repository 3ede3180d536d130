//! Places where a process can be made to die, so that tests see what a crash leaves behind.
//!
//! Whatever writes something that outlives the process [`pass`]es a place before it and one after it; a file that is
//! written under another name and then put in its place has one more, in the middle. Debug builds have these places,
//! and release builds with the feature `failpoints`; elsewhere they are nothing.

/// Whether this build has the places.
pub const ENABLED: bool = cfg!(any(debug_assertions, feature = "failpoints"));

/// Where to die.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// At the place of this number, counted from 1 over all threads.
    Number(u64),
    /// At the first place of this name, such as `amid a file`.
    Name(String),
}

#[cfg(any(debug_assertions, feature = "failpoints"))]
mod places {
    use super::Target;
    use std::io::Write as _;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static TARGET: OnceLock<Target> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    /// Makes the process die somewhere. What is told first holds.
    pub fn arm(target: Target) {
        TARGET.get_or_init(|| target);
    }

    /// A place: the process is `before`, `amid` or `after` this write.
    pub fn pass(moment: &str, write: &str) {
        let Some(target) = TARGET.get() else {
            return;
        };
        let number = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
        let is_it = match target {
            Target::Number(target) => *target == number,
            Target::Name(name) => *name == format!("{moment} {write}"),
        };
        if is_it {
            let line = format!("failpoint {number}: {moment} {write}\n");
            drop(std::io::stderr().write_all(line.as_bytes()));
            // Nothing is unwound, flushed or dropped.
            std::process::abort();
        }
    }
}

#[cfg(not(any(debug_assertions, feature = "failpoints")))]
mod places {
    /// Does nothing.
    pub fn arm(_: super::Target) {}

    /// Does nothing.
    #[inline(always)]
    pub fn pass(_: &str, _: &str) {}
}

pub use places::{arm, pass};
