//! Rates: so many calls in so long.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// So many calls in so long, as in `100/min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    most: usize,
    within: Duration,
}

impl Rate {
    /// Reads `100/min`; also `/s` and `/h`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
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
        for odd in ["100", "x/min", "0/min", "5/year", "-1/s"] {
            assert!(Rate::parse(odd).is_none(), "{odd}");
        }
    }
}
