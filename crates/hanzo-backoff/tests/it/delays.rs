//! Bounds, saturation and distribution of the delays.

use std::time::Duration;

use hanzo_backoff::{Backoff, Jitter, RandomJitter};

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The longest delay a backoff can give, which is what `|ceiling| ceiling` draws.
fn longest(base_ms: u64, max_ms: u64) -> Backoff<fn(u64) -> u64> {
    Backoff::with_jitter(base_ms, max_ms, |ceiling| ceiling)
}

#[test]
fn the_ceiling_doubles_up_to_the_maximum_and_starts_over_after_a_reset() {
    let mut backoff = longest(100, 1_000);
    let delays: Vec<Duration> = (0..6).map(|_| backoff.next_delay()).collect();
    assert_eq!(delays, [ms(100), ms(200), ms(400), ms(800), ms(1_000), ms(1_000)]);
    assert_eq!(backoff.attempt(), 6);
    backoff.reset();
    assert_eq!((backoff.attempt(), backoff.ceiling()), (0, ms(100)));
}

#[test]
fn random_delays_stay_within_their_ceiling() {
    for seed in 0..1_000 {
        let mut backoff = Backoff::with_jitter(100, 5_000, RandomJitter::from_seed(seed));
        for _ in 0..12 {
            let ceiling = backoff.ceiling();
            assert!(backoff.next_delay() <= ceiling);
        }
    }
}

#[test]
fn nothing_overflows() {
    let mut backoff = longest(u64::MAX, u64::MAX).starting_at(u32::MAX);
    assert_eq!(backoff.next_delay(), ms(u64::MAX));
    assert_eq!(backoff.attempt(), u32::MAX);
    assert_eq!(backoff.next_delay_after(Some(Duration::MAX)), ms(u64::MAX));

    // 2⁶³ still fits, 2⁶⁴ does not.
    let mut backoff = longest(1, u64::MAX).starting_at(63);
    assert_eq!([backoff.next_delay(), backoff.next_delay()], [ms(1 << 63), ms(u64::MAX)]);

    // The real generator has a special case at the top of its range.
    let mut backoff = Backoff::new(u64::MAX, u64::MAX).starting_at(u32::MAX);
    assert!((0..64).any(|_| backoff.next_delay() > ms(u64::MAX / 2)));
}

#[test]
fn a_base_of_zero_never_waits() {
    let mut backoff = Backoff::new(0, 60_000).starting_at(40);
    assert_eq!([backoff.next_delay(), backoff.next_delay()], [Duration::ZERO; 2]);
}

#[test]
fn a_base_above_the_maximum_is_cut_to_it() {
    let mut backoff = longest(10_000, 1_000);
    assert_eq!(backoff.next_delay(), ms(1_000));
}

#[test]
fn a_jitter_that_breaks_its_promise_is_held_to_the_ceiling() {
    let mut backoff = Backoff::with_jitter(100, 1_000, |_| u64::MAX);
    assert_eq!(backoff.next_delay(), ms(100));
}

#[test]
fn the_wish_of_the_server_is_a_lower_bound_cut_at_the_maximum() {
    let mut backoff = longest(100, 1_000);
    assert_eq!(backoff.next_delay_after(Some(ms(700))), ms(700), "longer than the 100 ms of our own");
    assert_eq!(backoff.next_delay_after(Some(ms(50))), ms(200), "our own delay is longer");
    assert_eq!(backoff.next_delay_after(Some(ms(99_000))), ms(1_000), "no longer than the maximum");
    assert_eq!(backoff.attempt(), 3);
}

/// A χ² test of the draws against the uniform distribution over `0..=ceiling`, in `ceiling + 1` cells.
fn chi_squared(ceiling: u64, draws: u32, seed: u64) -> f64 {
    let mut jitter = RandomJitter::from_seed(seed);
    let cells = usize::try_from(ceiling).expect("a small ceiling") + 1;
    let mut counts = vec![0u32; cells];
    for _ in 0..draws {
        counts[usize::try_from(jitter.pick(ceiling)).expect("within the ceiling")] += 1;
    }
    let expected = f64::from(draws) / f64::from(u32::try_from(cells).expect("few cells"));
    counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
}

#[test]
fn random_delays_are_uniform_and_reach_both_ends() {
    // 99.99 % of uniform samples stay below these values for 1, 9 and 100 degrees of freedom. Leaving out either
    // end, or one cell in a hundred, gives thousands.
    for (ceiling, bound) in [(1, 15.2), (9, 33.8), (100, 161.4)] {
        for seed in 0..5 {
            let statistic = chi_squared(ceiling, 200_000, seed);
            assert!(statistic < bound, "χ² = {statistic:.1} for 0..={ceiling}, seed {seed}");
        }
    }
}

#[test]
fn large_ranges_are_not_biased() {
    // Four 64-bit numbers for every three of this range: a plain remainder would draw from the lower third twice as
    // often as from the others, a plain product every third number twice as often as its neighbours.
    let ceiling = 3 * (1 << 62) - 1;
    let mut jitter = RandomJitter::from_seed(7);
    let drawn: Vec<u64> = (0..30_000).map(|_| jitter.pick(ceiling)).collect();
    let low = drawn.iter().filter(|number| **number < 1 << 62).count();
    assert!((9_500..10_500).contains(&low), "{low} of 30000 in the lower third");
    for rest in 0..3 {
        let count = drawn.iter().filter(|number| **number % 3 == rest).count();
        assert!((9_500..10_500).contains(&count), "{count} of 30000 leave {rest} when divided by 3");
    }
}
