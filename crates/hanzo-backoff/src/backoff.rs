//! How long to wait before the next try.

use std::time::Duration;

use crate::{Jitter, RandomJitter};

/// Exponential backoff with full jitter: attempt *n* (counted from zero) waits a random time between nothing and
/// `min(max, base × 2ⁿ)`, both included.
///
/// Full jitter, because callers that failed together would otherwise come back together. All arithmetic saturates:
/// no base, maximum or number of attempts can overflow it.
///
/// ```
/// use std::time::Duration;
/// use hanzo_backoff::Backoff;
///
/// let mut backoff = Backoff::new(500, 8_000);
/// assert_eq!(backoff.ceiling(), Duration::from_millis(500));
/// assert!(backoff.next_delay() <= Duration::from_millis(500));
/// assert_eq!(backoff.ceiling(), Duration::from_millis(1_000));
/// ```
#[derive(Debug, Clone)]
pub struct Backoff<J = RandomJitter> {
    base_ms: u64,
    max_ms: u64,
    attempt: u32,
    jitter: J,
}

impl Backoff {
    /// Delays that start below `base_ms` milliseconds and double up to `max_ms`.
    pub fn new(base_ms: u64, max_ms: u64) -> Self {
        Self::with_jitter(base_ms, max_ms, RandomJitter::new())
    }
}

impl<J: Jitter> Backoff<J> {
    /// Like [`new`](Backoff::new), with another source of randomness.
    pub fn with_jitter(base_ms: u64, max_ms: u64, jitter: J) -> Self {
        Self { base_ms, max_ms, attempt: 0, jitter }
    }

    /// The same backoff as it would be after `attempt` delays, for callers that remember the count elsewhere.
    #[must_use]
    pub fn starting_at(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// How long to wait now. The next call may return up to twice as much.
    pub fn next_delay(&mut self) -> Duration {
        self.next_delay_after(None)
    }

    /// Like [`next_delay`](Self::next_delay), but not shorter than the server asked for.
    ///
    /// The server's wish counts up to the maximum and no further: a header cannot park the caller for a day.
    pub fn next_delay_after(&mut self, retry_after: Option<Duration>) -> Duration {
        let ceiling = self.ceiling_ms();
        // A jitter written by somebody else may be wrong; the bound is promised by this type.
        let drawn = Duration::from_millis(self.jitter.pick(ceiling).min(ceiling));
        self.attempt = self.attempt.saturating_add(1);
        let wish = retry_after.unwrap_or_default().min(Duration::from_millis(self.max_ms));
        drawn.max(wish)
    }

    /// The longest that [`next_delay`](Self::next_delay) can return now.
    pub fn ceiling(&self) -> Duration {
        Duration::from_millis(self.ceiling_ms())
    }

    /// How many delays were handed out since the start or the last reset.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Starts over, after a success.
    pub fn reset(&mut self) {
        self.attempt = 0;
    }

    fn ceiling_ms(&self) -> u64 {
        self.base_ms.saturating_mul(2u64.saturating_pow(self.attempt)).min(self.max_ms)
    }
}
