//! The `Retry-After` header in its three forms of date, in seconds, and broken.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hanzo_backoff::RetryAfter;

/// 6 November 1994, 08:49:37 GMT: the example of RFC 9110.
const EXAMPLE: u64 = 784_111_777;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn delay(value: &str, now: u64) -> Option<Duration> {
    RetryAfter::parse(value, at(now)).map(|wish| wish.delay(at(now)))
}

#[test]
fn seconds() {
    assert_eq!(delay("0", EXAMPLE), Some(Duration::ZERO));
    assert_eq!(delay(" 120\t", EXAMPLE), Some(Duration::from_mins(2)));
    assert_eq!(delay("99999999999999999999999", EXAMPLE), Some(Duration::from_secs(u64::MAX)));
}

#[test]
fn the_three_forms_of_a_date_are_the_same_moment() {
    for value in
        ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
    {
        assert_eq!(RetryAfter::parse(value, at(EXAMPLE)), Some(RetryAfter::At(at(EXAMPLE))), "{value}");
        assert_eq!(delay(value, EXAMPLE - 90), Some(Duration::from_secs(90)), "{value}");
        assert_eq!(delay(value, EXAMPLE + 90), Some(Duration::ZERO), "{value} has passed");
    }
    assert_eq!(delay("Wed Nov 16 08:49:37 1994", EXAMPLE), Some(Duration::from_hours(10 * 24)));
}

#[test]
fn years_leap_days_and_leap_seconds() {
    // `date -u -d '2024-02-29 23:59:59' +%s`, and so on.
    assert_eq!(
        RetryAfter::parse("Thu, 29 Feb 2024 23:59:59 GMT", at(0)),
        Some(RetryAfter::At(at(1_709_251_199)))
    );
    assert_eq!(
        RetryAfter::parse("Sat, 31 Dec 2016 23:59:60 GMT", at(0)),
        Some(RetryAfter::At(at(1_483_228_800)))
    );
    assert_eq!(RetryAfter::parse("Tue, 19 Jan 2038 03:14:08 GMT", at(0)), Some(RetryAfter::At(at(1 << 31))));
    assert_eq!(
        RetryAfter::parse("Wed, 31 Dec 1969 23:59:00 GMT", at(0)),
        Some(RetryAfter::At(UNIX_EPOCH - Duration::from_mins(1)))
    );
    assert_eq!(RetryAfter::parse("Wed, 29 Feb 2023 00:00:00 GMT", at(0)), None);
    assert_eq!(RetryAfter::parse("Thu, 29 Feb 1900 00:00:00 GMT", at(0)), None);
}

#[test]
fn a_two_digit_year_is_the_nearest_one() {
    // In November 2026.
    let now = 1_794_000_000;
    let moment = |value| RetryAfter::parse(value, at(now));
    assert_eq!(moment("Sunday, 06-Nov-94 08:49:37 GMT"), Some(RetryAfter::At(at(EXAMPLE))));
    assert_eq!(
        moment("Friday, 06-Nov-76 00:00:00 GMT"),
        RetryAfter::parse("Fri, 06 Nov 2076 00:00:00 GMT", at(now))
    );
}

#[test]
fn what_is_no_wish_is_none() {
    for value in [
        "",
        " ",
        "soon",
        "-1",
        "+1",
        "1.5",
        "1 2",
        "0x10",
        "١٢",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMT and more",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Son, 06 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 1994 08:49:37:00 GMT",
        "Sun, 06 Nov 1994 +8:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 06-Nov-94-00 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov  6 08:49:37 94  ",
        "Sön Nov 6 08:49:37 1994",
        "1994-11-06T08:49:37Z",
    ] {
        assert_eq!(RetryAfter::parse(value, at(EXAMPLE)), None, "{value:?}");
    }
}
