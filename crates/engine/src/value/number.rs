//! Numbers as JSON has them.

use std::hash::{Hash, Hasher};

/// A JSON number: integers stay integers.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// An integer of 64 bits.
    Int(i64),
    /// An integer above `i64::MAX`.
    Uint(u64),
    /// A finite float.
    Float(f64),
}

impl Number {
    /// Makes a float; `None` if it is not finite, for JSON has no such number.
    #[must_use]
    pub fn from_f64(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self::Float(value))
    }

    pub(super) fn from_json(number: &serde_json::Number) -> Option<Self> {
        if let Some(value) = number.as_i64() {
            Some(Self::Int(value))
        } else if let Some(value) = number.as_u64() {
            Some(Self::Uint(value))
        } else {
            Self::from_f64(number.as_f64()?)
        }
    }

    pub(super) fn to_json(self) -> serde_json::Value {
        match self {
            Self::Int(value) => value.into(),
            Self::Uint(value) => value.into(),
            Self::Float(value) => value.into(),
        }
    }

    /// The integer, if this is one and fits.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        if let Self::Int(value) = self {
            Some(value)
        } else {
            None
        }
    }

    /// The number as a float, rounded where it must be.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Uint(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or(Self::Uint(value), Self::Int)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Uint(a), Self::Uint(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            _ => false,
        }
    }
}

// Floats are finite, so equality is reflexive.
impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Int(value) => value.hash(state),
            Self::Uint(value) => value.hash(state),
            // 0.0 and -0.0 are equal, so they must hash alike.
            Self::Float(value) => (value + 0.0).to_bits().hash(state),
        }
    }
}
