//! Tokens and money. Vendors count differently; what stands here is the one way we count, and a provider converts.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tokens of one or more model requests. The three input counts do not overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Input tokens the vendor processed in full: neither read from its cache nor written to it.
    pub input_tokens: u64,
    /// Input tokens read from the vendor's prompt cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to the vendor's prompt cache.
    pub cache_write_tokens: u64,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: u64,
    /// The part of the answer that was reasoning, where the vendor tells.
    pub reasoning_tokens: u64,
}

impl Usage {
    /// The size of the prompt: what counts against the context window before the model answers.
    pub fn prompt_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.cache_read_tokens).saturating_add(self.cache_write_tokens)
    }

    /// The share of the prompt that came from the cache, from 0 to 1; `None` when nothing was sent.
    #[expect(clippy::cast_precision_loss, reason = "a percentage is shown with at most one decimal")]
    pub fn cache_hit_ratio(&self) -> Option<f64> {
        match self.prompt_tokens() {
            0 => None,
            total => Some(self.cache_read_tokens as f64 / total as f64),
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_add(other.cache_read_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), Add::add)
    }
}

/// What a model costs, in US dollars per million tokens. Written in settings files, hence with their snake_case names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Price {
    /// Input that is not cached.
    pub input: f64,
    /// Output, reasoning included.
    pub output: f64,
    /// Input read from the cache; the input price when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input written to the cache; the input price when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Price {
    /// What `usage` costs at this price.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let part = |tokens, price| Cost::of(tokens, price);
        part(usage.input_tokens, self.input)
            + part(usage.output_tokens, self.output)
            + part(usage.cache_read_tokens, self.cache_read.unwrap_or(self.input))
            + part(usage.cache_write_tokens, self.cache_write.unwrap_or(self.input))
    }
}

/// An amount of money: whole billionths of a US dollar, so that adding thousands of small costs stays exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    /// `nanos` billionths of a dollar.
    pub fn from_nano_usd(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The amount in billionths of a dollar.
    pub fn nano_usd(self) -> u64 {
        self.0
    }

    /// The amount in dollars, for display and comparison with a limit the user typed.
    #[expect(clippy::cast_precision_loss, reason = "exact up to nine million dollars")]
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e9
    }

    #[expect(clippy::cast_precision_loss, reason = "a request of 2^53 tokens does not exist")]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, NaN becomes 0"
    )]
    fn of(tokens: u64, usd_per_million: f64) -> Self {
        Self((tokens as f64 * usd_per_million * 1e3).round() as u64)
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Cost {
    /// Two decimals for amounts people think of in cents, four below that, so that a cheap turn is not shown as free.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 || self.0 >= 100_000_000 {
            write!(f, "${:.2}", self.usd())
        } else {
            write!(f, "${:.4}", self.usd())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_is_the_sum_of_the_three_input_counts() {
        let usage =
            Usage { input_tokens: 10, cache_read_tokens: 80, cache_write_tokens: 10, ..Usage::default() };
        assert_eq!(usage.prompt_tokens(), 100);
        assert_eq!(usage.cache_hit_ratio(), Some(0.8));
        assert_eq!(Usage::default().cache_hit_ratio(), None);
    }

    #[test]
    fn a_cost_follows_the_price_of_each_kind_of_token() {
        let usage = Usage {
            input_tokens: 1_000_000,
            cache_read_tokens: 2_000_000,
            cache_write_tokens: 100_000,
            output_tokens: 10_000,
            reasoning_tokens: 9_000,
        };
        let price = Price { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: Some(3.75) };
        assert_eq!(
            price.cost(&usage),
            Cost::from_nano_usd(3_000_000_000 + 600_000_000 + 375_000_000 + 150_000_000)
        );
        let plain = Price { cache_read: None, cache_write: None, ..price };
        assert_eq!(
            plain.cost(&usage),
            Cost::from_nano_usd(9_450_000_000),
            "cached input costs what input costs"
        );
    }

    #[test]
    fn ten_thousand_cheap_requests_add_up_exactly() {
        let price = Price { input: 0.0028, output: 0.0, cache_read: None, cache_write: None };
        let one = price.cost(&Usage { input_tokens: 1000, ..Usage::default() });
        assert_eq!(std::iter::repeat_n(one, 10_000).sum::<Cost>(), Cost::from_nano_usd(28_000_000));
    }

    #[test]
    fn money_is_shown_so_that_small_is_not_free() {
        assert_eq!(Cost::from_nano_usd(0).to_string(), "$0.00");
        assert_eq!(Cost::from_nano_usd(1_230_000).to_string(), "$0.0012");
        assert_eq!(Cost::from_nano_usd(1_234_000_000).to_string(), "$1.23");
    }

    #[test]
    fn absurd_counts_saturate() {
        let all = Usage { input_tokens: u64::MAX, cache_read_tokens: 1, ..Usage::default() };
        assert_eq!((all + all).prompt_tokens(), u64::MAX);
        let price = Price { input: f64::MAX, output: f64::NAN, cache_read: None, cache_write: None };
        assert_eq!(price.cost(&all), Cost::from_nano_usd(u64::MAX));
    }
}
