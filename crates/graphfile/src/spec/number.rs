//! Numbers of which only some can work.

use std::fmt;
use std::num::NonZeroU32;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// Reads a count of which there must be at least one.
pub(super) fn above_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    NonZeroU32::deserialize(deserializer).map(NonZeroU32::get)
}

/// Reads what waits are multiplied with: they may grow, and never shrink.
pub(super) fn growth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(Option::<Growth>::deserialize(deserializer)?.map(|growth| growth.0))
}

struct Growth(f64);

impl<'de> Deserialize<'de> for Growth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GrowthVisitor).map(Self)
    }
}

struct GrowthVisitor;

impl Visitor<'_> for GrowthVisitor {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number that is 1 or more")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<f64, E> {
        match number {
            0 => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
            number => Ok(number as f64),
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<f64, E> {
        Err(E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<f64, E> {
        match number.is_finite() && number >= 1.0 {
            true => Ok(number),
            false => Err(E::invalid_value(Unexpected::Float(number), &self)),
        }
    }
}
