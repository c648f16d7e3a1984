//! The limit of tries and the budget of time, on a clock that stands still unless told to move.

use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hanzo_backoff::{Backoff, Clock, Retries, is_transient_status};

struct TestClock {
    origin: Instant,
    passed: Cell<Duration>,
}

impl TestClock {
    fn new() -> Self {
        Self { origin: Instant::now(), passed: Cell::default() }
    }

    fn advance(&self, by: Duration) {
        self.passed.set(self.passed.get() + by);
    }
}

impl Clock for TestClock {
    fn instant(&self) -> Instant {
        self.origin + self.passed.get()
    }

    /// 6 November 1994, 08:49:37 GMT when the test begins.
    fn wall(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(784_111_777) + self.passed.get()
    }
}

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn longest(base_ms: u64, max_ms: u64) -> Backoff<fn(u64) -> u64> {
    Backoff::with_jitter(base_ms, max_ms, |ceiling| ceiling)
}

#[test]
fn there_are_at_most_one_and_max_tries() {
    for max_retries in [0, 1, 5] {
        let mut retries = Retries::new(longest(0, 0), max_retries);
        let granted = std::iter::from_fn(|| retries.next_delay(None)).take(100).count();
        assert_eq!(granted, max_retries as usize);
        assert_eq!(retries.used(), max_retries);
        assert_eq!(retries.next_delay(Some("0")), None, "the server cannot ask for more tries");
    }
}

#[test]
fn a_reset_gives_everything_back() {
    let clock = TestClock::new();
    let mut retries = Retries::with_clock(longest(1_000, 8_000), 2, &clock).with_budget(seconds(10));
    assert_eq!(retries.next_delay(None), Some(seconds(1)));
    assert_eq!(retries.next_delay(None), Some(seconds(2)));
    assert_eq!(retries.next_delay(None), None);
    clock.advance(seconds(60));
    retries.reset();
    assert_eq!(retries.next_delay(None), Some(seconds(1)));
}

#[test]
fn the_budget_counts_the_time_spent_and_the_delay_to_come() {
    let clock = TestClock::new();
    let mut retries = Retries::with_clock(longest(1_000, 60_000), 10, &clock).with_budget(seconds(10));
    assert_eq!(retries.next_delay(None), Some(seconds(1)));
    clock.advance(seconds(8));
    assert_eq!(retries.next_delay(None), Some(seconds(2)), "ends exactly at the budget");
    clock.advance(seconds(1));
    assert_eq!(retries.next_delay(None), None, "four seconds more would end after it");
    assert_eq!(retries.used(), 2);
}

#[test]
fn the_header_is_read_by_the_clock_given() {
    let clock = TestClock::new();
    let mut retries = Retries::with_clock(longest(1_000, 30_000), 5, &clock);
    assert_eq!(retries.next_delay(Some("Sun, 06 Nov 1994 08:49:57 GMT")), Some(seconds(20)));
    clock.advance(seconds(15));
    assert_eq!(retries.next_delay(Some("Sun, 06 Nov 1994 08:49:57 GMT")), Some(seconds(5)));
    assert_eq!(retries.next_delay(Some("3600")), Some(seconds(30)), "capped by the maximum");
    assert_eq!(retries.next_delay(Some("whenever")), Some(seconds(8)), "unreadable counts as absent");
}

#[test]
fn only_statuses_that_may_change_are_retried() {
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
        assert!(is_transient_status(status), "{status}");
    }
    for status in [200, 301, 400, 401, 403, 404, 413, 422, 501, 505, 600] {
        assert!(!is_transient_status(status), "{status}");
    }
}
