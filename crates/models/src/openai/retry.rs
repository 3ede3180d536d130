//! When a request is made again.

use super::failure::Again;
use std::time::{Duration, UNIX_EPOCH};
use tine_engine::{Timestamp, World};

/// The first wait.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait of one's own choice.
const LONGEST: Duration = Duration::from_secs(8);
/// The longest wait that a provider may ask for.
pub(crate) const MOST_ASKED: Duration = Duration::from_secs(60);

/// How long to wait before the request is made once more, after it was made again `retries` times. None if it would be
/// longer than anybody wants to wait.
pub(crate) fn pause(world: &dyn World, again: Again, retries: u64) -> Option<Duration> {
    match again {
        Again::No => None,
        // No wait at all is no answer of one that is overloaded.
        Again::After(Duration::ZERO) => pause(world, Again::Yes, retries),
        Again::After(wait) => (wait <= MOST_ASKED).then_some(wait),
        Again::Yes => {
            let doublings = u32::try_from(retries.min(8)).unwrap_or(8);
            let wait = FIRST.saturating_mul(1 << doublings).min(LONGEST);
            // Up to a quarter less, so that those who failed together do not come back together.
            let quarter = u64::try_from(wait.as_millis() / 4).unwrap_or_default();
            let less = world.random() % (quarter + 1);
            Some(wait - Duration::from_millis(less))
        }
    }
}

/// How long a provider asks to wait: in milliseconds or seconds, or until a time.
pub(crate) fn asked<'a>(
    header: impl Fn(&'static str) -> Option<&'a str>,
    now: Timestamp,
) -> Option<Duration> {
    let millis = header("retry-after-ms").and_then(|text| text.trim().parse::<f64>().ok());
    let wait = millis.and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok());
    if wait.is_some() {
        return wait;
    }
    let text = header("retry-after")?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let time = httpdate::parse_http_date(text).ok()?;
    let due = time.duration_since(UNIX_EPOCH).ok()?;
    Some(due.saturating_sub(Duration::from_millis(now.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tine_engine::SimWorld;

    #[test]
    fn a_provider_may_ask_to_wait_in_three_ways() {
        let check = |name: &'static str, value: &str, expected: Option<u64>| {
            let header = |asked: &'static str| (asked == name).then_some(value);
            let wait = asked(header, Timestamp(784_111_777_500));
            assert_eq!(wait, expected.map(Duration::from_millis), "{name}: {value}");
        };
        check("retry-after", "2", Some(2000));
        check("retry-after", " 1.5 ", Some(1500));
        check("retry-after", "0", Some(0));
        check("retry-after-ms", "120", Some(120));
        check("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT", Some(2500));
        check("retry-after", "Sunday, 06-Nov-94 08:49:40 GMT", Some(2500));
        check("retry-after", "Sun, 06 Nov 1994 08:49:30 GMT", Some(0));
        for nonsense in ["", "soon", "-1", "NaN", "inf", "1e400"] {
            check("retry-after", nonsense, None);
        }
        check("other", "2", None);
    }

    #[test]
    fn a_wait_in_milliseconds_that_says_nothing_leaves_the_other() {
        for nonsense in ["", "soon", "-1", "NaN", "inf", "1e400"] {
            let header = |asked: &'static str| match asked {
                "retry-after-ms" => Some(nonsense),
                _ => Some("7"),
            };
            let wait = asked(header, Timestamp(0));
            assert_eq!(wait, Some(Duration::from_secs(7)), "{nonsense}");
        }
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        let world = SimWorld::new(7);
        for (retries, longest) in [
            (0, 500),
            (1, 1000),
            (2, 2000),
            (4, 8000),
            (5, 8000),
            (u64::MAX, 8000),
        ] {
            let wait = pause(&world, Again::Yes, retries).unwrap().as_millis();
            assert!(
                wait <= longest && wait >= longest * 3 / 4,
                "{retries}: {wait}"
            );
        }
        let asked = |seconds| pause(&world, Again::After(Duration::from_secs(seconds)), 0);
        assert_eq!(asked(60), Some(MOST_ASKED));
        assert_eq!(asked(61), None);
        assert!(asked(0).unwrap() >= FIRST * 3 / 4, "never at once");
        assert_eq!(pause(&world, Again::No, 0), None);
    }
}
