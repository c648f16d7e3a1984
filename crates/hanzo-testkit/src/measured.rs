//! Numbers a test has measured and judged: shown beside its outcome, past what the harness holds back.

use std::io::Write as _;

/// Shows a sentence with numbers.
pub fn measured(sentence: &str) {
    let line = format!("measured: {sentence}\n");
    // Nobody is left to tell when it is closed.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
