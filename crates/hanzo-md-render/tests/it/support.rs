//! Documents, ways to cut them, and ways to look at the result.

use hanzo_md_render::{Highlight, Line, MdRenderer, Options};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub struct Example {
    pub number: u32,
    pub section: String,
    pub markdown: String,
}

pub const FEATURES: &str = include_str!("../data/features.md");

/// The examples of the CommonMark specification.
pub fn spec() -> Vec<Example> {
    let examples: Vec<Example> =
        serde_json::from_str(include_str!("../data/commonmark-0.31.2.json")).unwrap();
    assert_eq!(examples.len(), 652);
    examples
}

pub fn options(width: u16) -> Options {
    Options { width, highlight: Highlight::Off, ..Options::default() }
}

/// The document in one chunk.
pub fn whole(text: &str, options: &Options) -> Vec<Line> {
    let mut renderer = MdRenderer::new(options.clone());
    let mut lines = renderer.render_chunk(text);
    lines.extend(renderer.flush());
    lines
}

/// The document cut at the given byte offsets, tails and all.
pub fn in_chunks(text: &[u8], cuts: &[usize], options: &Options) -> Vec<Line> {
    let mut renderer = MdRenderer::new(options.clone());
    let mut lines = Vec::new();
    let mut start = 0;
    for cut in cuts.iter().copied().filter(|cut| *cut <= text.len()).chain([text.len()]) {
        if cut >= start {
            lines.extend(renderer.render_bytes(&text[start..cut]));
            start = cut;
        }
    }
    lines.extend(renderer.flush());
    lines
}

pub fn texts(lines: &[Line]) -> Vec<String> {
    lines.iter().map(Line::text).collect()
}

/// A small generator for cuts: tests that fail are repeatable without a seed file.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % limit.max(1)
    }

    pub fn cuts(&mut self, len: usize) -> Vec<usize> {
        let count = 1 + self.below(12);
        let mut cuts: Vec<usize> = (0..count).map(|_| self.below(len + 1)).collect();
        cuts.sort_unstable();
        cuts
    }
}
