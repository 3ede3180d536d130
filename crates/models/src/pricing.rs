//! What a model costs.

use crate::reply::Usage;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The prices of a model: the `pricing` of an entry of `models:`, as DeerFlow writes it.
///
/// ```
/// use tine_models::{Pricing, Usage};
///
/// let pricing = serde_json::json!({"currency": "USD", "input_per_million": 2.5, "output_per_million": 10});
/// let pricing: Pricing = serde_json::from_value(pricing)?;
/// let used = Usage { input_tokens: 1_000, output_tokens: 200, ..Usage::default() };
/// // 1,000 at 2.5 and 200 at 10 for a million, in millionths of a dollar.
/// assert_eq!(pricing.cost_micros(&used), 4_500);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pricing {
    /// What money: `USD`, `CNY`. All models of a configuration should have one, for sums are made of them.
    pub currency: Arc<str>,
    /// The price of a million tokens of requests.
    #[serde(deserialize_with = "price")]
    pub input_per_million: f64,
    /// The price of a million tokens of replies.
    #[serde(deserialize_with = "price")]
    pub output_per_million: f64,
    /// The price of a million tokens of requests that the provider had in its cache; that of others if not given.
    #[serde(
        default,
        deserialize_with = "some_price",
        skip_serializing_if = "Option::is_none"
    )]
    pub input_cache_hit_per_million: Option<f64>,
}

impl Pricing {
    /// What a request and its reply cost, in millionths of the currency, rounded.
    #[must_use]
    pub fn cost_micros(&self, usage: &Usage) -> u64 {
        // A price for a million is the price of one in millionths.
        let hit_price = self.input_cache_hit_per_million;
        let hits = usage.cached_input_tokens.min(usage.input_tokens);
        let misses = usage.input_tokens - hits;
        let cost = misses as f64 * self.input_per_million
            + hits as f64 * hit_price.unwrap_or(self.input_per_million)
            + usage.output_tokens as f64 * self.output_per_million;
        cost.round() as u64 // which saturates
    }
}

fn price<'de, D: serde::Deserializer<'de>>(value: D) -> Result<f64, D::Error> {
    let price = f64::deserialize(value)?;
    match price.is_finite() && price >= 0.0 {
        true => Ok(price),
        false => Err(serde::de::Error::custom(format!(
            "a price must be 0 or more, not {price}"
        ))),
    }
}

fn some_price<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<f64>, D::Error> {
    price(value).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn prices_are_read_strictly() {
        let check = |pricing: Value, expected: &str| {
            let read = serde_json::from_value::<Pricing>(pricing);
            assert_eq!(read.unwrap_err().to_string(), expected);
        };
        let with = |key: &str, value: Value| {
            let mut pricing =
                json!({"currency": "USD", "input_per_million": 1, "output_per_million": 2});
            pricing[key] = value;
            pricing
        };
        check(
            with("input_per_million", json!(-1)),
            "a price must be 0 or more, not -1",
        );
        check(
            with("input_per_milion", json!(1)),
            "unknown field `input_per_milion`, expected one of `currency`, `input_per_million`, `output_per_million`, `input_cache_hit_per_million`",
        );
        check(
            json!({"currency": "USD"}),
            "missing field `input_per_million`",
        );
        check(
            with("output_per_million", json!("2")),
            "invalid type: string \"2\", expected f64",
        );
        assert!(
            serde_json::from_value::<Pricing>(with("input_cache_hit_per_million", json!(0.1)))
                .is_ok()
        );
    }

    #[test]
    fn what_the_provider_had_in_its_cache_has_its_own_price() {
        let check = |hit_price, cached_input_tokens, expected| {
            let pricing = Pricing {
                currency: "CNY".into(),
                input_per_million: 8.0,
                output_per_million: 32.0,
                input_cache_hit_per_million: hit_price,
            };
            let used = Usage {
                input_tokens: 1_000,
                output_tokens: 10,
                cached_input_tokens,
                ..Usage::default()
            };
            assert_eq!(pricing.cost_micros(&used), expected);
        };
        check(Some(0.8), 0, 8_320);
        check(Some(0.8), 600, 4_000);
        check(None, 600, 8_320);
        // More than there were is nonsense, and counts as all.
        check(Some(0.8), 5_000, 1_120);
    }

    #[test]
    fn a_cost_beyond_all_numbers_is_the_largest() {
        let pricing = Pricing {
            currency: "USD".into(),
            input_per_million: 1e300,
            output_per_million: 0.0,
            input_cache_hit_per_million: None,
        };
        let used = Usage {
            input_tokens: u64::MAX,
            ..Usage::default()
        };
        assert_eq!(pricing.cost_micros(&used), u64::MAX);
    }
}
