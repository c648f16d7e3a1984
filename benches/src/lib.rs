//! A small harness for comparisons: candidates take turns in one process, so that the noise of the machine falls on
//! all of them alike, and what is reported is a ratio of medians.

use std::time::{Duration, Instant};

/// One thing to measure: a label and the work, which returns something the optimiser may not drop.
pub struct Candidate<'a> {
    label: String,
    work: Box<dyn FnMut() -> u64 + 'a>,
}

impl<'a> Candidate<'a> {
    /// A candidate called `label`.
    pub fn new(label: impl Into<String>, work: impl FnMut() -> u64 + 'a) -> Self {
        Self { label: label.into(), work: Box::new(work) }
    }
}

/// The median time of one call, per candidate, in the order given.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The candidate's label.
    pub label: String,
    /// The median time of one call.
    pub median: Duration,
}

/// Runs every candidate once per round, `rounds` times after one unmeasured round.
pub fn compare(rounds: usize, candidates: &mut [Candidate<'_>]) -> Vec<Measured> {
    let mut samples = vec![Vec::with_capacity(rounds); candidates.len()];
    for round in 0..=rounds {
        for (candidate, samples) in candidates.iter_mut().zip(&mut samples) {
            let start = Instant::now();
            std::hint::black_box((candidate.work)());
            let elapsed = start.elapsed();
            if round > 0 {
                samples.push(elapsed);
            }
        }
    }
    candidates
        .iter()
        .zip(samples)
        .map(|(candidate, mut samples)| {
            samples.sort_unstable();
            Measured { label: candidate.label.clone(), median: samples[samples.len() / 2] }
        })
        .collect()
}

/// Prints a Markdown table: time per call, throughput where `bytes` is known, and how much faster the first row is.
#[expect(clippy::print_stdout, reason = "a benchmark's product is what it prints")]
#[expect(clippy::cast_precision_loss, reason = "a throughput is read to three digits")]
pub fn print_table(title: &str, bytes: Option<usize>, rows: &[Measured]) {
    println!(
        "\n### {title}\n\n| candidate | median | throughput | first row is faster by |\n| --- | --- | --- | --- |"
    );
    for row in rows {
        let throughput = bytes.map_or_else(
            || "–".to_owned(),
            |bytes| format!("{:.0} MB/s", bytes as f64 / row.median.as_secs_f64() / 1e6),
        );
        let ratio = row.median.as_secs_f64() / rows[0].median.as_secs_f64();
        println!("| {} | {:?} | {throughput} | {ratio:.2}× |", row.label, row.median);
    }
}

/// Prints whether `row` takes at most `limit` times as long as `than`.
#[expect(clippy::print_stdout, reason = "a benchmark's product is what it prints")]
pub fn print_verdict(row: &Measured, than: &Measured, limit: f64) {
    let ratio = row.median.as_secs_f64() / than.median.as_secs_f64();
    let held = if ratio <= limit { "held" } else { "MISSED" };
    println!("\n{}: {ratio:.2}× of {}, limit {limit}×: {held}", row.label, than.label);
}
