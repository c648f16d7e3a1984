//! The part of a text that one answer has room for: whole lines where possible, and of a line that is too long as much as fits, with
//! the rest on the next page.

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::{Position, Range};
use serde::{Deserialize, Serialize};

/// Lines of one answer, unless the caller says otherwise.
pub(super) const DEFAULT_LINES: u32 = 2000;
/// Bytes of text in one answer: what is below the cap of every tool result, so that nothing is cut afterwards.
pub(super) const MAX_BYTES: usize = 40_000;

/// Which part a call asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Where the answer begins; where the range does, when absent.
    pub(super) start: Option<Position>,
    /// Most lines.
    pub(super) limit: Option<u32>,
    /// What is wanted in all, over as many pages as it takes.
    pub(super) range: Option<Range>,
}

impl Wanted {
    /// Where the answer begins.
    pub(super) fn first(&self) -> Position {
        self.start.or(self.range.map(|range| range.start)).unwrap_or(Position { line: 0, col: 0 })
    }
}

/// Where the next page begins, as a cursor says it: nearly always with a line.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Next {
    Line(u32),
    Within(Position),
}

impl From<Position> for Next {
    fn from(position: Position) -> Self {
        if position.col == 0 { Self::Line(position.line) } else { Self::Within(position) }
    }
}

impl From<Next> for Position {
    fn from(next: Next) -> Self {
        match next {
            Next::Line(line) => Self { line, col: 0 },
            Next::Within(position) => position,
        }
    }
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) bytes: std::ops::Range<usize>,
    pub(super) range: Range,
    /// The lines of the whole text.
    pub(super) lines: u32,
    /// Where the next page begins.
    pub(super) next: Option<Position>,
}

impl Part {
    pub(super) fn of(text: &str, wanted: Wanted) -> Result<Self, ToolError> {
        let starts = line_starts(text);
        let lines = count(starts.len());
        let at = |line: u32| starts.get(line as usize).copied().unwrap_or(text.len());
        let start = wanted.first();
        if start.line > 0 && start.line >= lines {
            return Err(past_the_end(start.line, Some(lines)));
        }
        if wanted.range.is_some_and(|range| range.end < range.start) {
            return Err(backwards());
        }
        let begin = column(text, at(start.line), start.col);
        // A range may end within a line; everything else ends with one.
        let (last, stop) = match wanted.range.map(|range| range.end) {
            Some(end) if end.col > 0 => (end.line.saturating_add(1), column(text, at(end.line), end.col)),
            Some(end) => (end.line, at(end.line)),
            None => (lines, text.len()),
        };
        let last = last.min(lines);
        let limit = wanted.limit.unwrap_or(DEFAULT_LINES).max(1);
        let capped = last.min(start.line.saturating_add(limit)).max(start.line);
        // Whole lines up to the byte limit, and at least one, cut if it has to be.
        let fits = |line: u32| at(line).saturating_sub(begin) <= MAX_BYTES;
        let mut end_line = capped;
        while end_line > start.line + 1 && !fits(end_line) {
            end_line -= (end_line - start.line).div_ceil(2).min(end_line - start.line - 1).max(1);
        }
        while end_line < capped && fits(end_line + 1) {
            end_line += 1;
        }
        let mut end = at(end_line).min(stop).max(begin);
        let mut next = (end_line < last).then_some(Position { line: end_line, col: 0 });
        let position = |byte: usize, line: u32| {
            let line_start = at(line).min(byte);
            Position { line, col: count(text[line_start..byte].chars().count()) }
        };
        if end - begin > MAX_BYTES {
            end = text.floor_char_boundary(begin + MAX_BYTES);
            next = Some(position(end, start.line));
        }
        let ends_within = end < at(end_line) || (end_line == lines && !text.ends_with('\n') && lines > 0);
        let end_position = if ends_within {
            position(end, end_line.saturating_sub(1).max(start.line))
        } else {
            Position { line: end_line, col: 0 }
        };
        let range = Range { start: position(begin, start.line), end: end_position };
        Ok(Self { bytes: begin..end, range, lines, next })
    }
}

pub(super) fn past_the_end(line: u32, lines: Option<u32>) -> ToolError {
    let has = lines.map_or_else(String::new, |lines| format!(": the file has {lines} lines, counted from 0"));
    ToolError::new(ErrorCode::InvalidArguments, format!("line {line} is past the end{has}"))
        .with_details(serde_json::json!({ "lines": lines }))
}

pub(super) fn backwards() -> ToolError {
    ToolError::new(ErrorCode::InvalidArguments, "`range` ends before it starts")
}

/// Where the column is, no further than the end of its line.
fn column(text: &str, line_start: usize, col: u32) -> usize {
    let line = &text[line_start..];
    let line = &line[..line.find('\n').unwrap_or(line.len())];
    line_start + line.char_indices().nth(col as usize).map_or(line.len(), |(at, _)| at)
}

fn line_starts(text: &str) -> Vec<usize> {
    let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
    std::iter::once(0).chain(after_breaks).filter(|at| *at < text.len()).collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn position(line: u32, col: u32) -> Position {
        Position { line, col }
    }

    /// All pages of a text, put together, with where each ended.
    fn pages(text: &str, mut wanted: Wanted) -> (String, usize) {
        let (mut all, mut count) = (String::new(), 0);
        loop {
            let part = Part::of(text, wanted).unwrap();
            assert!(part.bytes.len() <= MAX_BYTES);
            all.push_str(&text[part.bytes.clone()]);
            count += 1;
            match part.next {
                Some(next) => {
                    assert!(!part.bytes.is_empty(), "each page has something");
                    assert_eq!(Position::from(Next::from(next)), next);
                    wanted.start = Some(next);
                }
                None => return (all, count),
            }
        }
    }

    const ALL: Wanted = Wanted { start: None, limit: None, range: None };

    #[test]
    fn a_line_that_is_too_long_goes_on_on_the_next_page() {
        let text = format!("first\n{}\nlast", "é".repeat(50_000));
        let (all, count) = pages(&text, ALL);
        assert!(all == text, "{} of {} bytes", all.len(), text.len());
        assert_eq!(count, 4);
        let part = Part::of(&text, Wanted { start: Some(position(1, 20_000)), ..ALL }).unwrap();
        assert_eq!(part.range, Range { start: position(1, 20_000), end: position(1, 40_000) });
        assert_eq!(part.next, Some(position(1, 40_000)));
    }

    #[test]
    fn a_range_begins_and_ends_within_long_lines() {
        let text = "x".repeat(150_000);
        let range = Range { start: position(0, 50_000), end: position(0, 120_000) };
        let (all, count) = pages(&text, Wanted { range: Some(range), ..ALL });
        assert_eq!((all.len(), count), (70_000, 2));
        let range = Range { start: position(0, 50_000), end: position(1, 0) };
        assert_eq!(pages(&text, Wanted { range: Some(range), ..ALL }).0.len(), 100_000);
    }

    proptest! {
        /// Whatever is asked for comes out once, in order.
        #[test]
        fn pages_put_together_are_what_was_wanted(
            lines in proptest::collection::vec((0_usize..8_000, "[aé\u{10348}]{1,3}"), 0..8),
            ends in any::<bool>(),
            limit in proptest::option::of(1_u32..4),
            range in proptest::option::of(((0_u32..9, 0_u32..24_000), (0_u32..9, 0_u32..24_000))),
        ) {
            let mut text = lines.iter().map(|(times, unit)| unit.repeat(*times)).collect::<Vec<_>>().join("\n");
            if ends && !text.is_empty() {
                text.push('\n');
            }
            let range = range.map(|(a, b)| Range { start: position(a.0, a.1), end: position(b.0, b.1) });
            let wanted = Wanted { start: None, limit, range };
            if Part::of(&text, wanted).is_err() {
                prop_assert!(range.is_some());
                return Ok(());
            }
            let expected = match range {
                None => text.clone(),
                Some(Range { start, end }) => {
                    let starts = line_starts(&text);
                    let at = |p: Position| starts.get(p.line as usize).map_or(text.len(), |s| column(&text, *s, p.col));
                    text[at(start)..at(end).max(at(start))].to_owned()
                }
            };
            let (all, _) = pages(&text, wanted);
            prop_assert!(all == expected, "{} of {} bytes", all.len(), expected.len());
        }
    }
}
