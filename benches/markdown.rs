//! How long one megabyte of Markdown takes to become lines, beside the limit of 50 ms and beside the parser alone, and
//! whether the cost stays in proportion to the input when it comes in small chunks.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hanzo_benches::{Candidate, compare, print_table};
use hanzo_md_render::{Highlight, MdRenderer, Options};
use pulldown_cmark::{Options as Extensions, Parser};

const DOCUMENT_BYTES: usize = 1024 * 1024;
const ROUNDS: usize = 15;
const LIMIT: Duration = Duration::from_millis(50);

/// An answer of a model: prose, lists, code, a table, a quote.
const ANSWER: &str = include_str!("../crates/hanzo-md-render/tests/data/features.md");

const PROSE: &str = "The function returns an `Option<usize>`, so the caller decides what an absent value means. \
That is **not** the same as an error: see [the documentation](https://example.org/docs) for when each one fits, \
and keep the _old_ behaviour where callers depend on it.\n\n";

#[expect(clippy::print_stdout, reason = "a benchmark's product is what it prints")]
fn main() {
    let answers = ANSWER.repeat(DOCUMENT_BYTES / ANSWER.len() + 1);
    let prose = PROSE.repeat(DOCUMENT_BYTES / PROSE.len() + 1);
    for (title, document) in [("answers", &answers), ("prose", &prose)] {
        let rows = compare(
            ROUNDS,
            &mut [
                Candidate::new("hanzo-md-render, one chunk", || render(document, document.len())),
                Candidate::new("hanzo-md-render, chunks of 16 bytes", || render(document, 16)),
                Candidate::new("hanzo-md-render, a tenth, chunks of 16 bytes", || {
                    render(&document[..boundary(document, document.len() / 10)], 16)
                }),
                Candidate::new("pulldown-cmark, events only", || parse(document)),
            ],
        );
        print_table(&format!("1 MB of {title}, 80 columns, no highlighting"), Some(document.len()), &rows);
        for row in &rows[..2] {
            let verdict = if row.median <= LIMIT { "within" } else { "OVER" };
            println!("- {}: {:?}, {verdict} the limit of {LIMIT:?}", row.label, row.median);
        }
        let ratio = rows[1].median.as_secs_f64() / rows[2].median.as_secs_f64();
        println!("- ten times the input takes {ratio:.1} times the time");
        println!("- slowest of all 16-byte chunks: {:?}", slowest_delta(document));
    }
}

fn renderer() -> MdRenderer {
    MdRenderer::new(Options { highlight: Highlight::Off, ..Options::default() })
}

fn render(document: &str, chunk: usize) -> u64 {
    let mut renderer = renderer();
    let mut lines = 0;
    for bytes in document.as_bytes().chunks(chunk) {
        lines += black_box(renderer.render_bytes(bytes)).len();
    }
    (lines + renderer.flush().len()) as u64
}

fn slowest_delta(document: &str) -> Duration {
    let mut renderer = renderer();
    let mut slowest = Duration::ZERO;
    for bytes in document.as_bytes().chunks(16) {
        let start = Instant::now();
        black_box(renderer.render_bytes(bytes));
        slowest = slowest.max(start.elapsed());
    }
    slowest
}

fn parse(document: &str) -> u64 {
    let extensions = Extensions::ENABLE_TABLES
        | Extensions::ENABLE_FOOTNOTES
        | Extensions::ENABLE_STRIKETHROUGH
        | Extensions::ENABLE_TASKLISTS;
    Parser::new_ext(document, extensions).map(black_box).count() as u64
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}
