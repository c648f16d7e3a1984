//! Cost in proportion to the input, whatever it holds and however it comes.

use std::time::Duration;

use hanzo_md_render::MdRenderer;
use rustix::time::{ClockId, clock_gettime};

use crate::support::{FEATURES, options};

/// The processor time of this thread: what else the machine does is not in it.
fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}

fn time(document: &str, chunk: usize) -> Duration {
    // The best of three: caches start cold.
    (0..3)
        .map(|_| {
            let mut renderer = MdRenderer::new(options(80));
            let start = now();
            for bytes in document.as_bytes().chunks(chunk) {
                renderer.render_bytes(bytes);
            }
            renderer.flush();
            now().saturating_sub(start)
        })
        .min()
        .unwrap()
}

/// Twenty times the input may take twenty times the time, and as much again and more for what other threads do to the
/// caches; a quadratic cost would take four hundred times.
const MOST: f64 = 80.0;

fn assert_proportional(name: &str, small: &str, large: &str, chunk: usize) {
    let (short, long) = (time(small, chunk), time(large, chunk));
    let ratio = long.as_secs_f64() / short.as_secs_f64().max(1e-5);
    assert!(ratio < MOST, "{name} in chunks of {chunk}: {short:?} for 1×, {long:?} for 20×");
}

fn assert_linear(name: &str, unit: &str, chunk: usize) {
    let small = unit.repeat((4_000 / unit.len()).max(1));
    assert_proportional(name, &small, &small.repeat(20), chunk);
}

#[test]
fn twenty_times_the_document_takes_twenty_times_the_time() {
    for chunk in [16, 4096] {
        assert_linear("features", FEATURES, chunk);
    }
}

#[test]
fn one_endless_block_costs_no_more_than_many() {
    for (name, unit) in [
        ("a paragraph", "words and **bold** words\n"),
        ("a list", "- item with `code`\n"),
        ("a nested list", "- a\n  - b\n\n"),
        ("a quote", "> quoted text\n"),
        ("table rows", "| a | b |\n"),
        ("a line without end", "word "),
        ("open brackets", "[a "),
        ("open emphasis", "*a _b "),
        ("definitions", "[a]: /b\n\n[a]\n\n"),
        ("blank lines", "\n"),
        ("ideographs", "汉字，"),
    ] {
        assert_linear(name, unit, 64);
    }
}

#[test]
fn an_open_block_is_not_read_again_for_each_delta() {
    for opener in ["```\n", "- item\n\n  ```\n", "<pre>\n", "| a | b |\n|---|---|\n", "> quote\n> "] {
        let line = if opener.starts_with("- ") { "  text\n" } else { "> | x | y |\n" };
        let small = opener.to_owned() + &line.repeat(300);
        let large = opener.to_owned() + &line.repeat(6000);
        assert_proportional(opener, &small, &large, 8);
    }
}
