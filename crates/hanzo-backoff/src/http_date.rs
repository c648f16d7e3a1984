//! Dates as HTTP writes them (RFC 9110, section 5.6.7): one form that is sent today and two that must still be read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const SHORT_DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const LONG_DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

/// Reads a date. The name of the weekday has to be one, but is not compared with the date: being early or late by
/// nothing is worth more than being strict.
pub(crate) fn parse(text: &str, now: SystemTime) -> Option<SystemTime> {
    let Some((weekday, rest)) = text.split_once(", ") else { return parse_asctime(text) };
    let (date, time) = if SHORT_DAYS.contains(&weekday) {
        parse_current(rest)?
    } else if LONG_DAYS.contains(&weekday) {
        parse_rfc850(rest, now)?
    } else {
        return None;
    };
    to_system_time(date, time)
}

/// Year, month (1 to 12) and day of month.
type Date = (i64, i64, i64);

/// `06 Nov 1994 08:49:37 GMT`
fn parse_current(text: &str) -> Option<(Date, &str)> {
    let mut parts = text.split(' ');
    let day = digits(parts.next()?, 2)?;
    let month = month(parts.next()?)?;
    let year = digits(parts.next()?, 4)?;
    let time = parts.next()?;
    (parts.next() == Some("GMT") && parts.next().is_none()).then_some(((year, month, day), time))
}

/// `06-Nov-94 08:49:37 GMT`
fn parse_rfc850(text: &str, now: SystemTime) -> Option<(Date, &str)> {
    let mut parts = text.split(' ');
    let mut date = parts.next()?.split('-');
    let day = digits(date.next()?, 2)?;
    let month = month(date.next()?)?;
    let year = full_year(digits(date.next()?, 2)?, year_of(now)?);
    let time = parts.next()?;
    let complete = date.next().is_none() && parts.next() == Some("GMT") && parts.next().is_none();
    complete.then_some(((year, month, day), time))
}

/// `Sun Nov  6 08:49:37 1994`: columns of a fixed width, the day padded with a space.
fn parse_asctime(text: &str) -> Option<SystemTime> {
    if !text.is_ascii() || text.len() != 24 {
        return None;
    }
    let (weekday, rest) = text.split_at(3);
    let (month_name, rest) = rest.strip_prefix(' ')?.split_at(3);
    let (day, rest) = rest.strip_prefix(' ')?.split_at(2);
    let (time, year) = rest.strip_prefix(' ')?.split_at(8);
    let day = day.strip_prefix(' ').map_or_else(|| digits(day, 2), |day| digits(day, 1))?;
    let year = digits(year.strip_prefix(' ')?, 4)?;
    if !SHORT_DAYS.contains(&weekday) {
        return None;
    }
    to_system_time((year, month(month_name)?, day), time)
}

fn month(name: &str) -> Option<i64> {
    (1..).zip(MONTHS).find_map(|(number, month)| (month == name).then_some(number))
}

/// Exactly `count` ASCII digits: `parse` alone would take a sign.
fn digits(text: &str, count: usize) -> Option<i64> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// The year with these last two digits that lies nearest, up to fifty years ahead as the RFC asks.
fn full_year(two_digits: i64, this_year: i64) -> i64 {
    let year = this_year - this_year.rem_euclid(100) + two_digits;
    if year > this_year + 50 {
        year - 100
    } else if year <= this_year - 50 {
        year + 100
    } else {
        year
    }
}

fn to_system_time((year, month, day): Date, time: &str) -> Option<SystemTime> {
    let mut fields = time.split(':').map(|field| digits(field, 2));
    let (hour, minute, second) = (fields.next()??, fields.next()??, fields.next()??);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    // 60 is a leap second, and means the second after 59.
    let valid = fields.next().is_none()
        && (1..=days_in_month).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !valid {
        return None;
    }
    let seconds = days_since_epoch(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
    let distance = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
}

/// Days from 1 January 1970 in the Gregorian calendar. Years are counted from March, so that the leap day is the
/// last day of its year and the lengths of the months before it follow one line.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let months_since_march = (month + 9) % 12;
    let day_of_year = (153 * months_since_march + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + day_of_year - 719_468
}

/// The year of `now`. A clock before 1970 is unset, and 1970 as good as any other year for it.
fn year_of(now: SystemTime) -> Option<i64> {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let days = i64::try_from(seconds).ok()? / SECONDS_PER_DAY;
    // The mean length of a year gives the year or a neighbour of it; the calendar decides.
    let guess = 1970 + days * 400 / 146_097;
    (guess - 1..=guess + 1).rev().find(|year| days_since_epoch(*year, 1, 1) <= days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_eight_centuries_has_its_number() {
        let mut expected = days_since_epoch(1600, 1, 1);
        assert_eq!(days_since_epoch(1970, 1, 1), 0);
        for year in 1600..2400 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, length) in (1..).zip(lengths) {
                for day in 1..=length {
                    assert_eq!(days_since_epoch(year, month, day), expected, "{year}-{month}-{day}");
                    expected += 1;
                }
            }
        }
    }

    #[test]
    fn the_year_of_its_first_and_last_second() {
        for year in 1970..2470 {
            let start = days_since_epoch(year, 1, 1) * SECONDS_PER_DAY;
            let end = days_since_epoch(year + 1, 1, 1) * SECONDS_PER_DAY - 1;
            for second in [start, end] {
                let time = UNIX_EPOCH + Duration::from_secs(second.unsigned_abs());
                assert_eq!(year_of(time), Some(year), "{second} s");
            }
        }
        assert_eq!(year_of(UNIX_EPOCH - Duration::from_secs(1)), Some(1970));
    }

    #[test]
    fn two_digits_mean_the_nearest_year() {
        assert_eq!(full_year(94, 1994), 1994);
        assert_eq!(full_year(94, 2026), 1994);
        assert_eq!(full_year(76, 2026), 2076);
        assert_eq!(full_year(77, 2026), 1977);
        assert_eq!(full_year(0, 2099), 2100);
    }
}
