//! Runs `test-vectors/backoff-timing.json`.

use std::time::Duration;

use hanzo_backoff::{Backoff, RandomJitter};
use hanzo_testkit::vectors;
use serde::Deserialize;

/// Draws with the real generator per attempt: enough to meet a bound that is off by one in a small range.
const DRAWS: u64 = 200;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(rename = "note")]
    _note: Option<String>,
    base_ms: u64,
    max_ms: u64,
    #[serde(default)]
    first_attempt: u32,
    attempts: usize,
    ceilings_ms: Vec<u64>,
    jitter: Option<Vec<f64>>,
    retry_after_ms: Option<Vec<Option<u64>>>,
    delays_ms: Option<Vec<u64>>,
}

/// The rounding that the vectors define: down, to a whole millisecond.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the schema keeps ceilings within what a float holds exactly, and fractions within 0 to 1"
)]
fn part_of(ceiling: u64, fraction: f64) -> u64 {
    (ceiling as f64 * fraction).floor() as u64
}

#[test]
fn every_case_gives_its_ceilings_and_delays() {
    for case in &vectors::cases::<Case>("backoff-timing.json", 15) {
        let name = &case.name;
        assert_eq!(case.ceilings_ms.len(), case.attempts, "`{name}` has a ceiling per attempt");

        let mut fractions = case.jitter.clone().unwrap_or_else(|| vec![1.0; case.attempts]).into_iter();
        let jitter = |ceiling| part_of(ceiling, fractions.next().expect("a fraction per attempt"));
        let mut backoff =
            Backoff::with_jitter(case.base_ms, case.max_ms, jitter).starting_at(case.first_attempt);
        let expected = case.delays_ms.as_ref().unwrap_or(&case.ceilings_ms);
        assert_eq!(expected.len(), case.attempts, "`{name}` has a delay per attempt");
        for (index, (ceiling, delay)) in case.ceilings_ms.iter().zip(expected).enumerate() {
            let wish = case.retry_after_ms.as_ref().and_then(|wishes| wishes[index]);
            assert_eq!(backoff.ceiling(), Duration::from_millis(*ceiling), "ceiling {index} of `{name}`");
            assert_eq!(
                backoff.next_delay_after(wish.map(Duration::from_millis)),
                Duration::from_millis(*delay),
                "delay {index} of `{name}`"
            );
        }
    }
}

#[test]
fn random_delays_stay_within_the_ceilings_and_the_wishes_of_every_case() {
    for case in &vectors::cases::<Case>("backoff-timing.json", 15) {
        for seed in 0..DRAWS {
            let jitter = RandomJitter::from_seed(seed);
            let mut backoff =
                Backoff::with_jitter(case.base_ms, case.max_ms, jitter).starting_at(case.first_attempt);
            for (index, ceiling) in case.ceilings_ms.iter().enumerate() {
                let wish = case.retry_after_ms.as_ref().and_then(|wishes| wishes[index]).unwrap_or(0);
                let least = wish.min(case.max_ms);
                let delay = backoff.next_delay_after(Some(Duration::from_millis(wish)));
                let bounds = Duration::from_millis(least)..=Duration::from_millis(least.max(*ceiling));
                assert!(
                    bounds.contains(&delay),
                    "{delay:?} is not in {bounds:?}, attempt {index} of `{}`",
                    case.name
                );
            }
        }
    }
}
