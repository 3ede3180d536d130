//! What is done about a failing node.

use crate::error::ErrorClass;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When a failed node is tried again.
///
/// The default tries nothing again: say `max_attempts`. It is for errors of transport, too many requests and timeouts,
/// where trying again helps; an error that `?` turned into a [`NodeError`](crate::NodeError) has the class
/// [`Internal`](ErrorClass::Internal), which is not among them. Give it its class, or name the class here:
///
/// ```
/// use tine_engine::node::from_fn;
/// use tine_engine::{ErrorClass, Graph, NodeError, RetryPolicy};
///
/// # fn fetch() -> Result<(), std::io::Error> { Ok(()) }
/// let mut graph = Graph::builder("news");
/// let lost = |error: std::io::Error| NodeError::new(ErrorClass::Transport, error.to_string());
/// graph
///     .node("fetch", from_fn(move |_| fetch().map_err(lost)))
///     .retry(RetryPolicy { max_attempts: 3, ..RetryPolicy::default() });
///
/// let any = RetryPolicy { max_attempts: 3, on: vec![ErrorClass::Internal], ..RetryPolicy::default() };
/// graph.node("parse", from_fn(|_| Ok("7".parse::<i64>().map(drop)?))).retry(any);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// How many attempts in all; 1, the default, means none is repeated.
    pub max_attempts: u32,
    /// How long to wait before the second attempt.
    pub initial: Duration,
    /// What each further wait is multiplied with.
    pub factor: f64,
    /// The longest wait.
    pub max: Duration,
    /// Whether a random part of up to one more `initial` is added to each wait.
    pub jitter: bool,
    /// Which errors are tried again.
    pub on: Vec<ErrorClass>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 1,
            initial: Duration::from_millis(500),
            factor: 2.0,
            max: Duration::from_secs(30),
            jitter: true,
            on: vec![
                ErrorClass::Transport,
                ErrorClass::RateLimited,
                ErrorClass::Timeout,
            ],
        }
    }
}

impl RetryPolicy {
    /// Up to so many attempts in all, with the waits and errors of the default policy.
    ///
    /// ```
    /// let policy = tine_engine::RetryPolicy::attempts(3);
    /// assert_eq!(policy.max_attempts, 3);
    /// ```
    #[must_use]
    pub fn attempts(max_attempts: u32) -> Self {
        Self {
            max_attempts,
            ..Self::default()
        }
    }

    /// How long to wait after `attempt` (counted from 1) failed with an error of this class; `None` if that was the
    /// last.
    #[must_use]
    pub fn delay(
        &self,
        attempt: u32,
        class: ErrorClass,
        random: impl FnOnce() -> u64,
    ) -> Option<Duration> {
        if attempt >= self.max_attempts || !self.on.contains(&class) {
            return None;
        }
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = (self.initial.as_secs_f64() * self.factor.powi(exponent))
            .clamp(0.0, self.max.as_secs_f64());
        let jitter = if self.jitter {
            let part = (random() >> 11) as f64 / (1_u64 << 53) as f64;
            self.initial.as_secs_f64() * part
        } else {
            0.0
        };
        // Rounding and jitter may go past the longest duration there is.
        Some(Duration::try_from_secs_f64(seconds + jitter).unwrap_or(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_longest() {
        let policy = RetryPolicy {
            max_attempts: 10,
            jitter: false,
            ..RetryPolicy::default()
        };
        let wait = |attempt| {
            policy
                .delay(attempt, ErrorClass::Timeout, || 0)
                .map(|wait| wait.as_millis())
        };
        assert_eq!(
            [1, 2, 3, 8, 10].map(wait),
            [Some(500), Some(1000), Some(2000), Some(30_000), None]
        );
        assert_eq!(policy.delay(1, ErrorClass::Denied, || 0), None);
    }

    #[test]
    fn odd_numbers_give_a_wait_and_no_panic() {
        let wait = |attempt, factor, max| {
            let policy = RetryPolicy {
                max_attempts: u32::MAX,
                factor,
                max,
                ..RetryPolicy::default()
            };
            policy.delay(attempt, ErrorClass::Timeout, || 0)
        };
        let first = Some(Duration::from_millis(500));
        assert_eq!(wait(0, 2.0, Duration::MAX), first);
        assert_eq!(wait(1, 2.0, Duration::MAX), first);
        assert_eq!(wait(9999, 2.0, Duration::MAX), Some(Duration::MAX));
        assert_eq!(wait(2, -2.0, Duration::MAX), Some(Duration::ZERO));
        let second = Duration::from_secs(1);
        assert_eq!(wait(2, f64::INFINITY, second), Some(second));
        assert_eq!(wait(2, f64::NAN, second), Some(second));
    }

    #[test]
    fn jitter_adds_less_than_the_first_wait() {
        let policy = RetryPolicy {
            max_attempts: 2,
            ..RetryPolicy::default()
        };
        let wait = policy
            .delay(1, ErrorClass::Transport, || u64::MAX / 2)
            .unwrap();
        assert!(wait >= Duration::from_millis(500) && wait < Duration::from_secs(1));
    }
}
