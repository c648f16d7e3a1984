//! Whether to try again at all.

use std::time::{Duration, Instant};

use crate::{Backoff, Clock, Jitter, RandomJitter, RetryAfter, SystemClock};

/// Limits the tries of one request: the first and at most `max_retries` more, and optionally a total time.
///
/// ```
/// use hanzo_backoff::{Backoff, Retries, is_transient_status};
///
/// let mut retries = Retries::new(Backoff::new(0, 0), 2);
/// let mut tries = 0;
/// let outcome = loop {
///     tries += 1;
///     let status = 503; // stands for the request
///     if !is_transient_status(status) {
///         break Ok(status);
///     }
///     match retries.next_delay(Some("0")) {
///         Some(delay) => std::thread::sleep(delay),
///         None => break Err(status),
///     }
/// };
/// assert_eq!((tries, outcome), (3, Err(503)));
/// ```
#[derive(Debug, Clone)]
pub struct Retries<J = RandomJitter, C = SystemClock> {
    backoff: Backoff<J>,
    clock: C,
    limit: u32,
    used: u32,
    budget: Option<Duration>,
    started: Instant,
}

impl<J: Jitter> Retries<J> {
    /// At most `max_retries` tries after the first one, with the delays of `backoff`.
    pub fn new(backoff: Backoff<J>, max_retries: u32) -> Self {
        Self::with_clock(backoff, max_retries, SystemClock)
    }
}

impl<J: Jitter, C: Clock> Retries<J, C> {
    /// Like [`new`](Retries::new), with another clock.
    pub fn with_clock(backoff: Backoff<J>, max_retries: u32, clock: C) -> Self {
        let started = clock.instant();
        Self { backoff, clock, limit: max_retries, used: 0, budget: None, started }
    }

    /// Gives up as well when a delay would end later than `budget` after the first try began.
    #[must_use]
    pub fn with_budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// How long to wait before trying again, or `None` to give up.
    ///
    /// `retry_after` is the value of that header, if the failed reply had one; see
    /// [`Backoff::next_delay_after`]. A value that cannot be read counts as none.
    pub fn next_delay(&mut self, retry_after: Option<&str>) -> Option<Duration> {
        if self.used >= self.limit {
            return None;
        }
        let wish = retry_after.and_then(|value| {
            let now = self.clock.wall();
            RetryAfter::parse(value, now).map(|wish| wish.delay(now))
        });
        let delay = self.backoff.next_delay_after(wish);
        if let Some(budget) = self.budget {
            let spent = self.clock.instant().saturating_duration_since(self.started);
            if spent.saturating_add(delay) > budget {
                return None;
            }
        }
        self.used += 1;
        Some(delay)
    }

    /// How many retries were granted.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Starts over, after a success: all retries, the whole budget and the shortest delay again.
    pub fn reset(&mut self) {
        self.backoff.reset();
        self.used = 0;
        self.started = self.clock.instant();
    }
}

/// Whether a reply with this HTTP status may be different next time.
///
/// Timeouts, conflicts with a lock, rate limits and failures of the server may. A request that was wrong (400), not
/// allowed (401, 403) or aimed at nothing (404) stays so, and repeating it only adds load.
pub const fn is_transient_status(status: u16) -> bool {
    match status {
        408 | 409 | 425 | 429 => true,
        // Not implemented, and version not supported: facts about the server, not accidents.
        501 | 505 => false,
        _ => status >= 500 && status <= 599,
    }
}
