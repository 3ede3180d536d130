//! Durations as files write them: `500ms`, `30s`, `5m`, `1h`.

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// A duration read from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DurationText(pub(crate) Duration);

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DurationVisitor)
    }
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = DurationText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as `500ms`, `30s` or `5m`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<DurationText, E> {
        let wrong = Unexpected::Str(text);
        match parse(text) {
            Some(Duration::ZERO) => Err(E::invalid_value(
                wrong,
                &"a duration above zero, such as `500ms`, `30s` or `5m`",
            )),
            Some(duration) => Ok(DurationText(duration)),
            None => Err(E::invalid_value(wrong, &self)),
        }
    }
}

fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let millis = match unit {
        "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => None,
    }?;
    Some(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_a_unit_is_a_duration() {
        let ms = |text| parse(text).map(|duration| duration.as_millis());
        assert_eq!(ms("500ms"), Some(500));
        assert_eq!(ms("30s"), Some(30_000));
        assert_eq!(ms("5m"), Some(300_000));
        assert_eq!(ms("0s"), Some(0));
        for wrong in [
            "",
            "5",
            "s",
            "1.5s",
            "-1s",
            "5 m",
            "99999999999999999999s",
            "5d",
        ] {
            assert_eq!(ms(wrong), None, "{wrong}");
        }
    }
}
