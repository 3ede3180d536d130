//! Numbers as JSON has them.

use super::ValueError;
use serde::de::Visitor;
use serde::{Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A JSON number: an integer of 64 bits, signed or not, or a finite float.
///
/// Integers stay integers: `1` and `1.0` are two numbers, as they are two texts. Each number has one form, so equal ones
/// compare, hash and print alike.
#[derive(Clone, Copy)]
pub struct Number(Form);

#[derive(Clone, Copy)]
enum Form {
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
        // Adding nothing turns -0.0 into 0.0: they are equal, so they must print alike.
        value.is_finite().then_some(Self(Form::Float(value + 0.0)))
    }

    pub(super) fn from_json(number: &serde_json::Number) -> Option<Self> {
        if let Some(value) = number.as_i64() {
            Some(value.into())
        } else if let Some(value) = number.as_u64() {
            Some(value.into())
        } else {
            Self::from_f64(number.as_f64()?)
        }
    }

    pub(super) fn to_json(self) -> serde_json::Value {
        match self.0 {
            Form::Int(value) => value.into(),
            Form::Uint(value) => value.into(),
            Form::Float(value) => value.into(),
        }
    }

    pub(super) fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.0 {
            Form::Int(value) => visitor.visit_i64(value),
            Form::Uint(value) => visitor.visit_u64(value),
            Form::Float(value) => visitor.visit_f64(value),
        }
    }

    /// Whether this is an integer; `1.0` is none.
    #[must_use]
    pub fn is_integer(self) -> bool {
        !matches!(self.0, Form::Float(_))
    }

    /// The integer, if this is one and fits.
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        match self.0 {
            Form::Int(value) => Some(value),
            Form::Uint(_) | Form::Float(_) => None,
        }
    }

    /// The integer, if this is one and not negative.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        match self.0 {
            Form::Int(value) => u64::try_from(value).ok(),
            Form::Uint(value) => Some(value),
            Form::Float(_) => None,
        }
    }

    /// The number as a float, rounded where it must be.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        match self.0 {
            Form::Int(value) => value as f64,
            Form::Uint(value) => value as f64,
            Form::Float(value) => value,
        }
    }

    /// The integer, if this is one: wide enough for all.
    fn as_i128(self) -> Option<i128> {
        match self.0 {
            Form::Int(value) => Some(value.into()),
            Form::Uint(value) => Some(value.into()),
            Form::Float(_) => None,
        }
    }

    fn from_i128(value: i128) -> Option<Self> {
        let int = i64::try_from(value).map(Self::from);
        int.or_else(|_| u64::try_from(value).map(Self::from)).ok()
    }

    /// The sum: an integer if both are. `None` if there is no such number.
    pub(crate) fn checked_add(self, other: Self) -> Option<Self> {
        match (self.as_i128(), other.as_i128()) {
            (Some(a), Some(b)) => Self::from_i128(a + b),
            _ => Self::from_f64(self.as_f64() + other.as_f64()),
        }
    }

    /// The order by value, in which `1` and `1.0` are at the same place.
    pub(crate) fn order(self, other: Self) -> Ordering {
        match (self.as_i128(), other.as_i128()) {
            (Some(a), Some(b)) => a.cmp(&b),
            // Floats are finite, so all compare.
            _ => (self.as_f64().partial_cmp(&other.as_f64())).unwrap_or(Ordering::Equal),
        }
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self(Form::Int(value))
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self(i64::try_from(value).map_or(Form::Uint(value), Form::Int))
    }
}

impl From<i32> for Number {
    fn from(value: i32) -> Self {
        i64::from(value).into()
    }
}

impl From<u32> for Number {
    fn from(value: u32) -> Self {
        i64::from(value).into()
    }
}

impl TryFrom<f64> for Number {
    type Error = ValueError;

    /// # Errors
    /// If the float is not finite, for JSON has no such number.
    fn try_from(value: f64) -> Result<Self, ValueError> {
        Self::from_f64(value)
            .ok_or_else(|| serde::de::Error::custom(format_args!("JSON has no number {value}")))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        match (self.0, other.0) {
            (Form::Int(a), Form::Int(b)) => a == b,
            (Form::Uint(a), Form::Uint(b)) => a == b,
            (Form::Float(a), Form::Float(b)) => a == b,
            _ => false,
        }
    }
}

// Floats are finite, so equality is reflexive.
impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.0 {
            Form::Int(value) => value.hash(state),
            Form::Uint(value) => value.hash(state),
            Form::Float(value) => value.to_bits().hash(state),
        }
    }
}

/// As JSON writes it.
impl fmt::Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(out)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Form::Int(value) => serializer.serialize_i64(value),
            Form::Uint(value) => serializer.serialize_u64(value),
            Form::Float(value) => serializer.serialize_f64(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_form_however_it_is_made() {
        assert_eq!(Number::from(3_u64), Number::from(3_i64));
        assert_eq!(Number::from(3_u32), Number::from(3_i32));
        assert_ne!(Number::from(3_i64), Number::from_f64(3.0).unwrap());
        assert_eq!(Number::from_f64(0.0), Number::from_f64(-0.0));
        assert_eq!(Number::from_f64(-0.0).unwrap().to_string(), "0.0");
        assert_eq!(Number::from_f64(f64::NAN), None);
        let error = Number::try_from(f64::INFINITY).unwrap_err();
        assert_eq!(error.to_string(), "JSON has no number inf");
    }

    #[test]
    fn numbers_are_read_as_what_they_are() {
        let read = |number: Number| (number.as_i64(), number.as_u64(), number.is_integer());
        assert_eq!(read((-1_i64).into()), (Some(-1), None, true));
        assert_eq!(read(7_u64.into()), (Some(7), Some(7), true));
        assert_eq!(read(u64::MAX.into()), (None, Some(u64::MAX), true));
        assert_eq!(read(Number::from_f64(7.0).unwrap()), (None, None, false));
    }

    #[test]
    fn sums_and_order_cross_the_border_of_signed_integers() {
        let (big, one) = (Number::from(u64::MAX), Number::from(1_i64));
        assert_eq!(big.checked_add(one), None);
        let sum = big.checked_add(i64::MIN.into());
        assert_eq!(sum, Some(i64::MAX.into()));
        assert_eq!(
            Number::from(i64::MAX).checked_add(one),
            Some((1_u64 << 63).into())
        );
        assert_eq!(one.order(big), Ordering::Less);
        assert_eq!(one.order(Number::from_f64(1.0).unwrap()), Ordering::Equal);
    }
}
