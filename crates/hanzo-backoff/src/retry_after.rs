//! The `Retry-After` header.

use std::time::{Duration, SystemTime};

use crate::http_date;

/// What a `Retry-After` header asks for.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use hanzo_backoff::RetryAfter;
///
/// let now = UNIX_EPOCH + Duration::from_secs(784_111_777); // 6 November 1994, 08:49:37 GMT
/// let wish = RetryAfter::parse("Sun, 06 Nov 1994 08:49:40 GMT", now).expect("a valid date");
/// assert_eq!(wish.delay(now), Duration::from_secs(3));
/// assert_eq!(RetryAfter::parse("120", now), Some(RetryAfter::Delay(Duration::from_secs(120))));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// To wait so long.
    Delay(Duration),
    /// To wait until then.
    At(SystemTime),
}

impl RetryAfter {
    /// Reads the header's value: seconds, or a date in one of the three forms HTTP knows.
    ///
    /// `now` is needed for the oldest of them, whose year has two digits. A value that is neither gives `None`, and
    /// the caller goes on as if there were no header.
    pub fn parse(value: &str, now: SystemTime) -> Option<Self> {
        let value = value.trim_matches([' ', '\t']);
        if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
            // More digits than fit mean "very long", not "no wish".
            return Some(Self::Delay(Duration::from_secs(value.parse().unwrap_or(u64::MAX))));
        }
        http_date::parse(value, now).map(Self::At)
    }

    /// How long that is from `now`. A date in the past asks for no wait.
    pub fn delay(self, now: SystemTime) -> Duration {
        match self {
            Self::Delay(delay) => delay,
            Self::At(date) => date.duration_since(now).unwrap_or_default(),
        }
    }
}
