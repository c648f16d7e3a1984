//! Gaps of Python: statements of functions that define nothing. The parser sees `pass` in their place, so that what is left has
//! the same blocks with the same ends.

use std::ops::Range;

use super::{Gap, LEAST, LEAST_TEXT, in_order, is_word};

/// A statement's first line with all that it goes on in, or the line that begins a block.
#[derive(Debug, Default)]
struct Line {
    range: Range<usize>,
    indent: usize,
    sort: Sort,
    begins_block: bool,
    /// `self.x = …`, or a function with a name.
    defines: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Sort {
    #[default]
    Simple,
    Function,
    Class,
    Decorator,
    /// `if`, `for`, …
    Compound,
    /// `else`, `except`, …: goes on with the compound statement before it.
    Continued,
}

/// A block that is open.
struct Block {
    /// Of the line that began it.
    indent: usize,
    sort: Sort,
    /// What of this function is to be left out so far.
    dropped: Option<Range<usize>>,
    /// A compound statement of this function that may be left out with all that is in it, or not.
    compound: Option<Compound>,
}

struct Compound {
    range: Range<usize>,
    is_kept: bool,
}

/// The gaps of a file, in order.
pub(super) fn gaps(bytes: &[u8]) -> Vec<Gap> {
    let mut lines = Lines { bytes, at: 0, gaps: Vec::new() };
    let mut blocks: Vec<Block> = Vec::new();
    let mut gaps = Vec::new();
    while let Some(line) = lines.next() {
        while let Some(mut block) = blocks.pop_if(|block| block.indent >= line.indent) {
            block.settle(&mut gaps);
            block.flush(&mut gaps);
        }
        let is_inner = blocks.last().is_some_and(|block| block.sort == Sort::Compound);
        let nearest = blocks.iter_mut().rev().find(|block| block.sort != Sort::Compound);
        if let Some(function) = nearest.filter(|block| block.sort == Sort::Function) {
            function.take(&line, is_inner, &mut gaps);
        }
        if line.begins_block {
            let sort = match line.sort {
                Sort::Function | Sort::Class => line.sort,
                _ => Sort::Compound,
            };
            blocks.push(Block { indent: line.indent, sort, dropped: None, compound: None });
        }
    }
    for mut block in blocks.into_iter().rev() {
        block.settle(&mut gaps);
        block.flush(&mut gaps);
    }
    gaps.append(&mut lines.gaps);
    in_order(gaps)
}

impl Block {
    /// Takes a line of this function.
    fn take(&mut self, line: &Line, is_inner: bool, gaps: &mut Vec<Gap>) {
        let is_kept = line.defines || matches!(line.sort, Sort::Function | Sort::Class | Sort::Decorator);
        if !is_inner && line.sort != Sort::Continued {
            self.settle(gaps);
            if line.sort == Sort::Compound {
                self.compound = Some(Compound { range: line.range.clone(), is_kept: false });
            }
        }
        match &mut self.compound {
            Some(compound) => {
                compound.range.end = line.range.end;
                compound.is_kept |= is_kept;
            }
            None if is_kept => self.flush(gaps),
            None => self.drop(line.range.clone()),
        }
    }

    /// The compound statement has ended.
    fn settle(&mut self, gaps: &mut Vec<Gap>) {
        match self.compound.take() {
            Some(Compound { is_kept: true, .. }) => self.flush(gaps),
            Some(Compound { range, .. }) => self.drop(range),
            None => {}
        }
    }

    fn drop(&mut self, range: Range<usize>) {
        let start = self.dropped.as_ref().map_or(range.start, |dropped| dropped.start);
        self.dropped = Some(start..range.end);
    }

    fn flush(&mut self, gaps: &mut Vec<Gap>) {
        if let Some(range) = self.dropped.take().filter(|range| range.len() >= LEAST) {
            gaps.push(Gap { range, instead: b"pass" });
        }
    }
}

struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Comments, and what is in long strings.
    gaps: Vec<Gap>,
}

impl Lines<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The next line that is neither blank nor a comment, with those it goes on in.
    fn next(&mut self) -> Option<Line> {
        let indent = self.indent()?;
        let start = self.at;
        let mut line = Line { indent, ..Line::default() };
        let mut depth = 0_usize;
        let mut end = start;
        let mut last = 0;
        let mut sees_self = false;
        let mut is_first = true;
        while let Some(byte) = self.bytes.get(self.at).copied() {
            match byte {
                b'\n' if depth == 0 => {
                    self.at += 1;
                    break;
                }
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.at += 1;
                    continue;
                }
                b'\\' => {
                    self.at += 2;
                    continue;
                }
                b'#' => {
                    self.comment();
                    continue;
                }
                b'"' | b'\'' => self.string(false),
                _ if is_word(byte) => {
                    let word_start = self.at;
                    self.at +=
                        self.rest().iter().position(|byte| !is_word(*byte)).unwrap_or(self.rest().len());
                    let word = &self.bytes[word_start..self.at];
                    let is_prefix = word.len() <= 2 && matches!(self.peek(0), b'"' | b'\'');
                    if is_first {
                        line.sort = sort_of(word, self.rest());
                    }
                    sees_self |= depth == 0 && word == b"self" && matches!(last, 0 | b'=' | b':');
                    line.defines |= depth == 0 && word == b"lambda" && last == b'=';
                    if is_prefix {
                        let is_formatted = word.iter().any(|letter| b"fFtT".contains(letter));
                        self.string(is_formatted);
                    }
                }
                _ => {
                    self.at += 1;
                    match byte {
                        b'@' if is_first => line.sort = Sort::Decorator,
                        b'(' | b'[' | b'{' => depth += 1,
                        b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                        b'=' if self.peek(0) == b'=' => self.at += 1,
                        b'=' if b"!<>+-*/%&|^@:".contains(&last) => {}
                        b'=' | b':' if depth == 0 => line.defines |= sees_self,
                        b';' => sees_self = false,
                        _ => {}
                    }
                }
            }
            is_first = false;
            last = if is_word(byte) { b'a' } else { byte };
            // After `;` a statement begins as on a line of its own.
            if last == b';' {
                last = 0;
            }
            end = self.at;
        }
        line.begins_block = last == b':' && depth == 0 && self.bytes.get(end - 1) == Some(&b':');
        line.range = start..end.min(self.bytes.len());
        Some(line)
    }

    /// Goes to the beginning of the next line with something on it. How far it is indented.
    fn indent(&mut self) -> Option<usize> {
        let mut indent = 0;
        loop {
            match *self.bytes.get(self.at)? {
                b' ' => indent += 1,
                b'\t' => indent += 8,
                b'\n' | b'\r' | 0x0C => indent = 0,
                b'#' => {
                    self.comment();
                    continue;
                }
                _ => return Some(indent),
            }
            self.at += 1;
        }
    }

    fn comment(&mut self) {
        let start = self.at;
        self.at += memchr::memchr(b'\n', self.rest()).unwrap_or(self.rest().len());
        self.gap(start..self.at);
    }

    fn gap(&mut self, range: Range<usize>) {
        if range.len() >= LEAST_TEXT {
            self.gaps.push(Gap { range, instead: b"" });
        }
    }

    /// Goes behind the string we are at. There is code in a formatted one, which is not left out.
    fn string(&mut self, is_formatted: bool) {
        let quote = self.peek(0);
        let is_long = self.peek(1) == quote && self.peek(2) == quote;
        self.at += if is_long { 3 } else { 1 };
        let start = self.at;
        while let Some(found) = memchr::memchr3(quote, b'\\', b'\n', self.rest()) {
            self.at += found;
            match self.peek(0) {
                b'\\' => self.at += 2,
                b'\n' if is_long => self.at += 1,
                // It does not end on its line: the quote was none.
                b'\n' => return,
                _ if is_long && !(self.peek(1) == quote && self.peek(2) == quote) => self.at += 1,
                _ => {
                    if !is_formatted {
                        self.gap(start..self.at);
                    }
                    self.at += if is_long { 3 } else { 1 };
                    return;
                }
            }
        }
        self.at = self.bytes.len();
    }
}

fn sort_of(word: &[u8], behind: &[u8]) -> Sort {
    match word {
        b"def" => Sort::Function,
        b"async" if behind.trim_ascii_start().starts_with(b"def") => Sort::Function,
        b"class" => Sort::Class,
        b"if" | b"for" | b"while" | b"with" | b"try" | b"match" | b"async" => Sort::Compound,
        b"elif" | b"else" | b"except" | b"finally" | b"case" => Sort::Continued,
        _ => Sort::Simple,
    }
}
