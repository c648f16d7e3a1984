//! Rates: so many calls in so long.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// So many calls in so long, as in `100/min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    most: usize,
    within: Duration,
}

/// A text that is no rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no rate\n\nhint: write `600/min`, `10/s` or `1000/h`, with a number from 1 to 100000")]
pub struct ParseRateError(String);

impl Rate {
    /// Reads `100/min`; also `/s` and `/h`.
    pub fn parse(text: &str) -> Option<Self> {
        let (most, per) = text.split_once('/')?;
        let within = match per.trim() {
            "s" | "sec" | "second" => Duration::from_secs(1),
            "min" | "minute" => Duration::from_mins(1),
            "h" | "hour" => Duration::from_hours(1),
            _ => return None,
        };
        let most = most.trim().parse().ok().filter(|most| (1..=100_000).contains(most))?;
        Some(Self { most, within })
    }
}

impl FromStr for Rate {
    type Err = ParseRateError;

    fn from_str(text: &str) -> Result<Self, ParseRateError> {
        Self::parse(text).ok_or_else(|| ParseRateError(text.to_owned()))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per = match self.within.as_secs() {
            1 => "s",
            60 => "min",
            _ => "h",
        };
        write!(f, "{}/{per}", self.most)
    }
}

/// Holds calls to a rate.
#[derive(Debug)]
pub(crate) struct Limit {
    rate: Rate,
    made: VecDeque<Instant>,
}

impl Limit {
    /// Nothing has been called yet.
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, made: VecDeque::new() }
    }

    /// Whether another call may be made now; when not, how long to wait.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let Rate { most, within } = self.rate;
        while self.made.front().is_some_and(|first| now.duration_since(*first) >= within) {
            self.made.pop_front();
        }
        if let Some(first) = self.made.front().filter(|_| self.made.len() >= most) {
            return Err(within.saturating_sub(now.duration_since(*first)));
        }
        self.made.push_back(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_and_its_window_moves() {
        let mut limit = Limit::new(Rate::parse("2/min").unwrap());
        let start = Instant::now();
        assert!(limit.take(start).is_ok() && limit.take(start).is_ok());
        assert_eq!(limit.take(start + Duration::from_secs(20)), Err(Duration::from_secs(40)));
        assert!(limit.take(start + Duration::from_mins(1)).is_ok());
        for text in ["2/min", "10/s", "1000/h"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        assert!("fast".parse::<Rate>().unwrap_err().to_string().contains("hint: write `600/min`"));
        for odd in ["100", "x/min", "0/min", "5/year", "-1/s"] {
            assert!(Rate::parse(odd).is_none(), "{odd}");
        }
    }
}
