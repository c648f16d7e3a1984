//! The text: lines of cells, at least one line, positions by cell. Lines are shared, so that undo keeps old ones for the
//! price of a pointer.

use std::sync::Arc;

use super::cell::{Cell, Line, Stepping, cells, may_merge, text_of};

/// A place in the text: a line and a cell of it, both from 0. The cell may be one past the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pos {
    /// The line.
    pub line: usize,
    /// The cell in the line (a grapheme, see [`Stepping`]).
    pub col: usize,
}

impl Pos {
    /// The place at `line` and `col`.
    pub const fn new(line: usize, col: usize) -> Self {
        Self { line, col }
    }
}

/// What a step over the text passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stepped {
    /// To another cell of the same line.
    Within,
    /// To the place after a line's last cell.
    LineEnd,
    /// To another line.
    Line,
    /// Nowhere: the text ends here.
    Stuck,
}

#[derive(Debug, Clone)]
pub(crate) struct Buffer {
    lines: Vec<Arc<Line>>,
    stepping: Stepping,
    /// Every line was deleted and nothing typed since: then Vim finds nothing to delete, not even an empty line.
    emptied: bool,
}

impl Buffer {
    pub fn new(text: &str, stepping: Stepping) -> Self {
        let lines = split(text).map(|line| Arc::new(cells(line, stepping))).collect();
        Self { lines, stepping, emptied: false }
    }

    pub fn stepping(&self) -> Stepping {
        self.stepping
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for (index, line) in self.lines.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            for cell in line.iter() {
                cell.push_to(&mut text);
            }
        }
        text
    }

    pub fn is_empty(&self) -> bool {
        self.lines.len() == 1 && self.lines[0].is_empty()
    }

    pub fn lines(&self) -> &[Arc<Line>] {
        &self.lines
    }

    pub fn set_lines(&mut self, lines: Vec<Arc<Line>>, emptied: bool) {
        self.lines = lines;
        self.keep_one();
        self.emptied = emptied;
    }

    pub fn is_emptied(&self) -> bool {
        self.emptied
    }

    pub fn last_line(&self) -> usize {
        self.lines.len() - 1
    }

    pub fn line(&self, line: usize) -> &[Cell] {
        &self.lines[line]
    }

    pub fn len(&self, line: usize) -> usize {
        self.lines[line].len()
    }

    pub fn end(&self) -> Pos {
        Pos::new(self.last_line(), self.len(self.last_line()))
    }

    pub fn cell(&self, at: Pos) -> Option<&Cell> {
        self.lines[at.line].get(at.col)
    }

    pub fn char(&self, at: Pos) -> Option<char> {
        self.cell(at).map(Cell::first)
    }

    /// The column of a line's first character that is no blank; the length of the line when all are.
    pub fn indent(&self, line: usize) -> usize {
        self.line(line).iter().take_while(|cell| cell.is_blank()).count()
    }

    /// Where `^` goes: the first character that is no blank, else the last blank.
    pub fn first_nonblank(&self, line: usize) -> Pos {
        Pos::new(line, self.indent(line).min(self.len(line).saturating_sub(1)))
    }

    pub fn is_blank_line(&self, line: usize) -> bool {
        self.indent(line) == self.len(line)
    }

    /// The nearest place that exists, the end of a line included.
    pub fn clamp(&self, at: Pos) -> Pos {
        let line = at.line.min(self.last_line());
        Pos::new(line, at.col.min(self.len(line)))
    }

    /// The nearest place with a cell under it (or column 0 of an empty line).
    pub fn clamp_on(&self, at: Pos) -> Pos {
        let line = at.line.min(self.last_line());
        Pos::new(line, at.col.min(self.len(line).saturating_sub(1)))
    }

    pub fn forward(&self, at: &mut Pos) -> Stepped {
        let length = self.len(at.line);
        if at.col < length {
            at.col += 1;
            return if at.col < length { Stepped::Within } else { Stepped::LineEnd };
        }
        if at.line < self.last_line() {
            *at = Pos::new(at.line + 1, 0);
            return Stepped::Line;
        }
        Stepped::Stuck
    }

    /// Like [`Self::forward`], but never rests on a line's end unless the line is empty.
    pub fn forward_over_end(&self, at: &mut Pos) -> Stepped {
        let stepped = self.forward(at);
        if stepped == Stepped::LineEnd || (stepped == Stepped::Line && at.col > 0) {
            return self.forward(at);
        }
        stepped
    }

    pub fn backward(&self, at: &mut Pos) -> Stepped {
        if at.col > 0 {
            at.col -= 1;
            return Stepped::Within;
        }
        if at.line > 0 {
            *at = Pos::new(at.line - 1, self.len(at.line - 1));
            return Stepped::Line;
        }
        Stepped::Stuck
    }

    /// Like [`Self::backward`], but never rests on a line's end unless the line is empty.
    pub fn backward_over_end(&self, at: &mut Pos) -> Stepped {
        let stepped = self.backward(at);
        if stepped == Stepped::Line && at.col > 0 {
            return self.backward(at);
        }
        stepped
    }

    /// The text from `start` up to and without `end`.
    pub fn slice(&self, start: Pos, end: Pos) -> String {
        let (start, end) = (self.clamp(start), self.clamp(end));
        if start >= end {
            return String::new();
        }
        if start.line == end.line {
            return text_of(&self.line(start.line)[start.col..end.col]);
        }
        let mut text = text_of(&self.line(start.line)[start.col..]);
        for line in start.line + 1..end.line {
            text.push('\n');
            text.push_str(&text_of(self.line(line)));
        }
        text.push('\n');
        text.push_str(&text_of(&self.line(end.line)[..end.col]));
        text
    }

    /// Whole lines, each with its line break.
    pub fn slice_lines(&self, first: usize, last: usize) -> String {
        let mut text = String::new();
        for line in first..=last.min(self.last_line()) {
            text.push_str(&text_of(self.line(line)));
            text.push('\n');
        }
        text
    }

    /// Puts text in and returns where it ends. Line breaks of any kind become `\n`.
    pub fn insert(&mut self, at: Pos, text: &str) -> Pos {
        self.emptied &= text.is_empty();
        let at = self.clamp(at);
        let mut parts = split(text).map(|part| cells(part, self.stepping));
        let first = parts.next().unwrap_or_default();
        let middle: Vec<Line> = parts.collect();
        let line = Arc::make_mut(&mut self.lines[at.line]);
        let rest = line.split_off(at.col);
        line.extend(first);
        let count = middle.len();
        let mut end = Pos::new(at.line, line.len());
        if count == 0 {
            line.extend(rest);
        } else {
            let mut new: Vec<Arc<Line>> = middle.into_iter().map(Arc::new).collect();
            if let Some(last) = new.last_mut() {
                let last = Arc::make_mut(last);
                end = Pos::new(at.line + count, last.len());
                last.extend(rest);
            }
            let below = at.line + 1;
            self.lines.splice(below..below, new);
        }
        let end = self.heal(end);
        if at.line == end.line && self.needs_healing(at) {
            // The first cell of the text may merge with what stands before it.
            let scalars = self.scalars(end);
            self.heal(at);
            return self.at_scalar(end.line, scalars);
        }
        self.heal(at);
        end
    }

    /// Takes out the text from `start` up to and without `end`; returns where `start` is now.
    pub fn delete(&mut self, start: Pos, end: Pos) -> Pos {
        let (start, end) = (self.clamp(start), self.clamp(end));
        if start >= end {
            return start;
        }
        let tail = self.lines[end.line][end.col..].to_vec();
        let line = Arc::make_mut(&mut self.lines[start.line]);
        line.truncate(start.col);
        line.extend(tail);
        self.lines.drain(start.line + 1..=end.line);
        self.heal(start)
    }

    /// Takes out whole lines; one empty line stays when it was all of them.
    pub fn delete_lines(&mut self, first: usize, last: usize) {
        let last = last.min(self.last_line());
        if first <= last {
            self.lines.drain(first..=last);
            self.emptied = self.lines.is_empty();
            self.keep_one();
        }
    }

    pub fn insert_line(&mut self, at: usize, text: &str) {
        let line = cells(text, self.stepping);
        self.emptied = false;
        self.lines.insert(at.min(self.lines.len()), Arc::new(line));
    }

    pub fn set_line(&mut self, line: usize, text: &str) {
        self.emptied = false;
        self.lines[line] = Arc::new(cells(text, self.stepping));
    }

    fn keep_one(&mut self) {
        if self.lines.is_empty() {
            self.lines.push(Arc::default());
        }
    }

    /// Cuts the line anew when the cells on both sides of `at` could belong together; returns the place of `at` after it.
    fn heal(&mut self, at: Pos) -> Pos {
        if !self.needs_healing(at) {
            return at;
        }
        let scalars = self.scalars(at);
        self.lines[at.line] = Arc::new(cells(&text_of(&self.lines[at.line]), self.stepping));
        self.at_scalar(at.line, scalars)
    }

    fn needs_healing(&self, at: Pos) -> bool {
        let line = &self.lines[at.line];
        at.col > 0 && at.col < line.len() && may_merge(&line[at.col - 1], &line[at.col])
    }

    /// How many Unicode scalar values stand before `at` in its line.
    pub fn scalars(&self, at: Pos) -> usize {
        let line = self.line(at.line);
        line[..at.col.min(line.len())].iter().map(Cell::scalars).sum()
    }

    /// The cell that holds a line's `scalar`th scalar value; the line's end when there are fewer.
    pub fn at_scalar(&self, line: usize, scalar: usize) -> Pos {
        let mut passed = 0;
        for (col, cell) in self.line(line).iter().enumerate() {
            passed += cell.scalars();
            if passed > scalar {
                return Pos::new(line, col);
            }
        }
        Pos::new(line, self.len(line))
    }

    /// The terminal column at which the cell at `at` starts.
    pub fn display_column(&self, at: Pos, tab: usize) -> usize {
        let line = self.line(at.line);
        line[..at.col.min(line.len())].iter().fold(0, |column, cell| column + cell.width(column, tab))
    }

    /// The cell that covers terminal column `wanted`; the line's end when it is shorter.
    pub fn at_display_column(&self, line: usize, wanted: usize, tab: usize) -> Pos {
        let mut column = 0;
        for (col, cell) in self.line(line).iter().enumerate() {
            column += cell.width(column, tab);
            if column > wanted {
                return Pos::new(line, col);
            }
        }
        Pos::new(line, self.len(line))
    }
}

/// Lines of a text whose breaks may be `\n`, `\r\n` or `\r`, as pastes from other systems have them.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(at) = text.find(['\n', '\r']) else {
            rest = None;
            return Some(text);
        };
        let skip = if text[at..].starts_with("\r\n") { 2 } else { 1 };
        rest = Some(&text[at + skip..]);
        Some(&text[..at])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_combining_mark_joins_the_letter_it_is_typed_after() {
        let mut buffer = Buffer::new("ea", Stepping::Grapheme);
        assert_eq!(buffer.insert(Pos::new(0, 1), "\u{301}"), Pos::new(0, 1));
        assert_eq!(buffer.len(0), 2);
    }

    #[test]
    fn deleting_what_stood_between_joins_the_halves_of_a_cluster() {
        let mut buffer = Buffer::new("\u{1f1e9}x\u{1f1ea}", Stepping::Grapheme);
        assert_eq!(buffer.len(0), 3);
        buffer.delete(Pos::new(0, 1), Pos::new(0, 2));
        assert_eq!(buffer.len(0), 1, "a flag is one cell");
    }

    #[test]
    fn any_kind_of_line_break_ends_a_line() {
        assert_eq!(Buffer::new("a\r\nb\rc\n", Stepping::Grapheme).text(), "a\nb\nc\n");
    }

    #[test]
    fn a_step_knows_what_it_passed() {
        let buffer = Buffer::new("ab\n\nc", Stepping::Grapheme);
        let mut at = Pos::new(0, 1);
        assert_eq!(buffer.forward(&mut at), Stepped::LineEnd);
        assert_eq!(buffer.forward(&mut at), Stepped::Line);
        assert_eq!(buffer.forward_over_end(&mut at), Stepped::Line);
        assert_eq!(at, Pos::new(2, 0));
        assert_eq!(buffer.forward_over_end(&mut at), Stepped::Stuck);
    }
}
