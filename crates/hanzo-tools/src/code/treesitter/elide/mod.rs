//! Which parts of a file need not be parsed to know what it defines: the bodies of functions, mostly, which are most of a file.
//!
//! A body is left out when nothing in it can define a symbol. To know that, it is gone through by a scanner that tells strings
//! and comments from code, at a hundred times the speed of a parser ([`braces`] and [`python`]). What is left is parsed as a text
//! of its own, and the places in it are turned into places of the file. (The parser could be told which parts to read, but it
//! looks through the list of parts for every token.)

use std::ops::Range;

use super::super::language::Language;

mod braces;
mod c;
mod conditionals;
mod lexer;
mod python;
mod rules;

/// Something shorter is parsed as quickly as it is left out.
const LEAST: usize = 6;
/// As that, for a comment.
const LEAST_COMMENT: usize = 12;
/// As that, for what is in a string: a short one may be the name of a member.
const LEAST_TEXT: usize = 48;

/// A stretch that is not parsed, and what the parser sees in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Gap {
    range: Range<usize>,
    instead: &'static [u8],
}

/// What is left of a file.
#[derive(Debug)]
pub(super) struct Squeezed {
    pub(super) text: Vec<u8>,
    /// Where each stretch that was kept begins in `text` and in the file, in order.
    kept: Vec<(usize, usize)>,
    /// Where each gap's replacement begins in `text`, and where the gap ends in the file.
    gaps: Vec<(usize, usize)>,
}

/// What of a file is worth parsing; `None` when that is all.
pub(super) fn squeezed(language: Language, bytes: &[u8]) -> Option<Squeezed> {
    let gaps = match language {
        Language::Python => python::gaps(bytes),
        _ => braces::gaps(rules::Rules::of(language)?, bytes)?,
    };
    (!gaps.is_empty()).then(|| Squeezed::new(bytes, &gaps))
}

impl Squeezed {
    fn new(bytes: &[u8], gaps: &[Gap]) -> Self {
        let mut squeezed =
            Self { text: Vec::with_capacity(bytes.len() / 2), kept: vec![(0, 0)], gaps: Vec::new() };
        let mut from = 0;
        for gap in gaps {
            squeezed.text.extend_from_slice(&bytes[from..gap.range.start]);
            squeezed.gaps.push((squeezed.text.len(), gap.range.end));
            squeezed.text.extend_from_slice(gap.instead);
            squeezed.kept.push((squeezed.text.len(), gap.range.end));
            from = gap.range.end;
        }
        squeezed.text.extend_from_slice(&bytes[from..]);
        squeezed
    }

    /// The place in the file of something that begins at `at` in the text.
    pub(super) fn start(&self, at: usize) -> usize {
        let number = self.kept.partition_point(|(begins, _)| *begins <= at).saturating_sub(1);
        let (begins, original) = self.kept[number];
        let place = original + (at - begins);
        // In a replacement: where the gap begins.
        match self.gaps.get(number) {
            Some((replaced, _)) if at > *replaced => original + (replaced - begins),
            _ => place,
        }
    }

    /// The place in the file of something that ends at `at` in the text; behind a replacement, the gap has ended.
    pub(super) fn end(&self, at: usize) -> usize {
        let number = self.kept.partition_point(|(begins, _)| *begins < at).saturating_sub(1);
        let (begins, original) = self.kept[number];
        match self.gaps.get(number) {
            Some((replaced, ends)) if at > *replaced => *ends,
            _ => original + (at - begins),
        }
    }
}

/// In order and without those that are part of another.
fn in_order(mut gaps: Vec<Gap>) -> Vec<Gap> {
    gaps.sort_unstable_by_key(|gap| (gap.range.start, std::cmp::Reverse(gap.range.end)));
    let mut end = 0;
    gaps.retain(|gap| {
        let is_outer = gap.range.start >= end;
        end = end.max(gap.range.end);
        is_outer
    });
    gaps
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests;
