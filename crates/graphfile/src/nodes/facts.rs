//! The state of a running task, as expressions see it.

use tine_engine::{NodeCx, StateView, Value};

use crate::expr::Facts;

/// Facts of a task: its frozen state and its run.
///
/// ```no_run
/// # fn f(cx: &tine_engine::NodeCx, spec: &tine_graphfile::ToolSpec) {
/// use tine_graphfile::{CxFacts, Scene};
///
/// let facts = CxFacts::new(cx);
/// let args = spec.args.eval(&Scene::new(&facts, &spec.info.channels));
/// # }
/// ```
#[derive(Debug)]
pub struct CxFacts<'c> {
    cx: &'c NodeCx,
    state: StateView,
}

impl<'c> CxFacts<'c> {
    /// Takes the facts of a task; in a router these are with the task's own writes.
    pub fn new(cx: &'c NodeCx) -> Self {
        Self {
            cx,
            state: cx.state(),
        }
    }
}

impl Facts for CxFacts<'_> {
    fn channel(&self, name: &str) -> Option<Value> {
        self.state.value(name).cloned()
    }

    fn run(&self) -> Value {
        let cx = self.cx;
        let depth = cx.path().matches('/').count();
        Value::from_pairs([
            ("thread", Value::from(cx.thread().to_string())),
            ("id", cx.run().to_string().into()),
            ("step", cx.step().into()),
            ("visits", cx.visits().into()),
            ("now", date_time(cx.now().0).into()),
            ("depth", depth.into()),
        ])
    }
}

/// Writes milliseconds since 1970 as `2026-12-01T04:11:56.000Z`.
fn date_time(millis: u64) -> String {
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    // Counts from 1 March of the year 0, so that a leap day ends its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1_000 % 60, rest % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(date_time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(date_time(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(date_time(1_796_098_316_789), "2026-12-01T04:11:56.789Z");
        assert_eq!(date_time(4_107_542_399_999), "2100-02-28T23:59:59.999Z");
    }
}
