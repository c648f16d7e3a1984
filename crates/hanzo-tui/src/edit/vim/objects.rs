//! Text objects: what `iw`, `a"`, `i(` and `ip` cover, seen from the cursor or from a selection that grows.

use super::super::Editor;
use super::super::buffer::{Buffer, Pos, Stepped};
use super::super::cell::{Cell, Class, Words};
use super::command::{Direction, Extent, Object, Shape};
use super::motion::Span;
use super::words::{AtLineEnd, EmptyLines, HereCounts, Moved};

/// What an object covers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Covered {
    pub start: Pos,
    pub end: Pos,
    pub span: Span,
    /// What a selection that takes the object is made of.
    pub shape: Shape,
}

/// Why there is no object: like Vim, the search for words leaves the cursor where it stopped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Missing {
    pub stopped: Option<(Pos, Pos)>,
}

impl Missing {
    fn here() -> Self {
        Self { stopped: None }
    }
}

/// The selection an object is asked for in; its ends are the same cell outside visual mode or right after `v`.
#[derive(Debug, Clone, Copy)]
struct Asked {
    anchor: Pos,
    cursor: Pos,
    selecting: bool,
}

impl Asked {
    fn fresh(self) -> bool {
        !self.selecting || self.anchor == self.cursor
    }
}

impl Editor {
    /// What the object covers, if there is one.
    pub(super) fn covered(
        &self,
        extent: Extent,
        object: Object,
        count: Option<u32>,
    ) -> Result<Covered, Missing> {
        let selecting = self.vim.selected_shape().is_some();
        let anchor = if selecting { self.vim.anchor } else { self.cursor };
        let asked = Asked { anchor, cursor: self.cursor, selecting };
        let count = count.unwrap_or(1).max(1);
        let covered = match object {
            Object::Word(words) => return self.buffer.word_object(asked, extent, words, count),
            Object::Quote(quote) => self.buffer.quote_object(asked, extent, quote, count),
            Object::Block { open, close } => self.buffer.block_object(asked, extent, open, close, count),
            Object::Paragraph => {
                let shape = self.vim.selected_shape();
                return self.buffer.paragraph_object(asked, extent, count, shape);
            }
        };
        covered.ok_or_else(Missing::here)
    }
}

impl Buffer {
    fn word_object(
        &self,
        asked: Asked,
        extent: Extent,
        words: Words,
        count: u32,
    ) -> Result<Covered, Missing> {
        let (mut start, mut at) = (asked.anchor, asked.cursor);
        let span = self.extend_by_words(asked, extent, words, count, &mut start, &mut at);
        match span {
            Some(span) => Ok(Covered { start, end: at, span, shape: Shape::Characters }),
            None => Err(Missing { stopped: Some((start, at)) }),
        }
    }

    fn extend_by_words(
        &self,
        asked: Asked,
        extent: Extent,
        words: Words,
        count: u32,
        from: &mut Pos,
        to: &mut Pos,
    ) -> Option<Span> {
        let around = extent == Extent::Around;
        let mut left = count;
        let mut wants_blanks = false;
        let mut span = Span::Inclusive;
        if asked.fresh() {
            *to = self.run_start(*to, words);
            *from = *to;
            if (self.class(*to, words) == Class::Blank) == around {
                self.word_end(to, 1, words, HereCounts::Yes, EmptyLines::Stop).fully()?;
            } else {
                self.next_word(to, 1, words, AtLineEnd::Stop);
                if to.col == 0 {
                    self.backward_over_end(to);
                } else {
                    to.col -= 1;
                }
                wants_blanks = around;
            }
            left -= 1;
        }
        for remaining in (1..=left).rev() {
            span = Span::Inclusive;
            if asked.selecting && *to < *from {
                if self.backward_over_end(to) == Stepped::Stuck {
                    return None;
                }
                if around == (self.class(*to, words) == Class::Blank) {
                    self.previous_word(to, 1, words, HereCounts::Yes).fully()?;
                } else {
                    self.previous_word_end(to, 1, words, AtLineEnd::Stop).fully()?;
                    self.forward_over_end(to);
                }
                continue;
            }
            if self.forward_over_end(to) == Stepped::Stuck {
                return None;
            }
            if around == (self.class(*to, words) == Class::Blank) {
                self.word_end(to, 1, words, HereCounts::Yes, EmptyLines::Stop).fully()?;
            } else {
                let moved = self.next_word(to, 1, words, AtLineEnd::Stop);
                if moved == Moved::Short && remaining > 1 {
                    return None;
                }
                if to.col == 0 {
                    span = Span::Exclusive;
                } else {
                    to.col -= 1;
                }
            }
        }
        let no_blank_after =
            self.class(*to, words) != Class::Blank || (to.col == 0 && span == Span::Exclusive);
        if wants_blanks && no_blank_after && from.col > 0 {
            // Blanks before the word instead, but never a line's indent.
            let before = self.run_start(Pos::new(from.line, from.col - 1), words);
            if self.class(before, words) == Class::Blank && before.col > 0 {
                *from = before;
            }
        }
        Some(span)
    }

    fn quote_object(&self, asked: Asked, extent: Extent, quote: char, count: u32) -> Option<Covered> {
        let around = extent == Extent::Around;
        let line_number = asked.cursor.line;
        if asked.anchor.line != line_number {
            return None;
        }
        let line = Quoted { buffer: self, line: line_number, quote };
        let fresh = asked.fresh();
        let low = asked.anchor.col.min(asked.cursor.col);
        let high = asked.anchor.col.max(asked.cursor.col);
        let here = if fresh { asked.cursor.col } else { high };
        let just_inside = !fresh
            && low > 0
            && line.is_quote(low - 1)
            && high < self.len(line_number)
            && line.is_quote(high + 1);
        let quote_selected = !fresh && (low..=high).any(|col| line.is_quote(col));

        let (mut first, mut last);
        if !fresh && line.is_quote(here) {
            first = line.next(here + 1, Escapes::Ignored)?;
            if let Some(end) = line.next(first + 1, Escapes::Seen) {
                last = end;
            } else {
                (first, last) = (here, first);
            }
        } else if !fresh || line.is_quote(here) {
            let inside = if fresh { here } else { line.next(here, Escapes::Ignored)? };
            let mut from = 0;
            loop {
                first = line.next(from, Escapes::Ignored).filter(|first| *first <= inside)?;
                last = line.next(first + 1, Escapes::Seen)?;
                if inside <= last {
                    break;
                }
                from = last + 1;
            }
        } else {
            first = match line.previous(here) {
                Some(first) => first,
                None => line.next(0, Escapes::Ignored)?,
            };
            last = line.next(first + 1, Escapes::Seen)?;
        }
        if around {
            let blank = |col: usize| self.cell(Pos::new(line_number, col)).is_some_and(Cell::is_blank);
            if blank(last + 1) {
                while blank(last + 1) {
                    last += 1;
                }
            } else {
                while first > 0 && blank(first - 1) {
                    first -= 1;
                }
            }
        }
        if !around && count < 2 && !just_inside {
            first += 1;
        }
        // Without the quotes the end is the closing quote, exclusive; with them it is one further.
        let with_quotes = around || count > 1 || just_inside;
        let mut start = Pos::new(line_number, first);
        let mut end = Pos::new(line_number, if with_quotes { last + 1 } else { last });
        if asked.selecting {
            end.col = end.col.saturating_sub(1);
            let takes_start = fresh
                || (!quote_selected
                    && (just_inside || (!line.is_quote(low) && (low == 0 || !line.is_quote(low - 1)))));
            if !takes_start {
                start.col = low;
            }
        }
        Some(Covered { start, end, span: Span::Exclusive, shape: Shape::Characters })
    }

    fn block_object(
        &self,
        asked: Asked,
        extent: Extent,
        open: char,
        close: char,
        count: u32,
    ) -> Option<Covered> {
        let mut from = asked.cursor;
        if asked.fresh() {
            if open == '{' {
                while from.col < self.indent(from.line) {
                    if self.forward(&mut from) != Stepped::Within {
                        break;
                    }
                }
            }
            if self.char(from) == Some(open) {
                from.col += 1;
            }
        } else {
            from = asked.anchor.min(asked.cursor);
        }
        let (old_start, old_end) = (asked.anchor.min(asked.cursor), asked.anchor.max(asked.cursor));

        let direction = match self.unmatched(from, open, close, Direction::Backward) {
            Some(_) => Direction::Backward,
            None => Direction::Forward,
        };
        let mut opening = from;
        for _ in 0..count {
            opening = self.unmatched(opening, open, close, direction)?;
        }
        let mut closing = self.unmatched(opening, close, open, Direction::Forward)?;
        if extent == Extent::Around {
            let covered =
                Covered { start: opening, end: closing, span: Span::Inclusive, shape: Shape::Characters };
            return Some(covered);
        }
        loop {
            let mut start = opening;
            self.forward_over_end(&mut start);
            let mut own_line = closing.col == 0;
            let mut end = closing;
            self.backward_over_end(&mut end);
            if open == '{' {
                while end.col < self.len(end.line) && end.col < self.indent(end.line)
                    || (self.len(end.line) > 0 && self.is_blank_line(end.line))
                {
                    own_line = true;
                    if self.backward_over_end(&mut end) != Stepped::Within {
                        break;
                    }
                }
            }
            let no_bigger = start >= old_start && end <= old_end && start != end;
            if asked.selecting && no_bigger {
                let mut before = old_start;
                self.backward_over_end(&mut before);
                opening = self.unmatched(before, open, close, Direction::Backward)?;
                closing = self.unmatched(opening, close, open, Direction::Forward)?;
                continue;
            }
            let mut span = Span::Exclusive;
            if asked.selecting {
                if own_line && self.cell(end).is_some() {
                    self.forward(&mut end);
                }
            } else if own_line {
                self.forward_over_end(&mut end);
            } else if start <= end {
                span = Span::Inclusive;
            } else {
                end = start;
            }
            return Some(Covered { start, end, span, shape: Shape::Characters });
        }
    }

    fn paragraph_object(
        &self,
        asked: Asked,
        extent: Extent,
        count: u32,
        selected: Option<Shape>,
    ) -> Result<Covered, Missing> {
        let around = extent == Extent::Around;
        let last = self.last_line();
        let mut start = asked.cursor.line;
        if asked.selecting && start != asked.anchor.line {
            return self.more_paragraphs(asked, extent, count, selected);
        }
        let blank = |line: usize| self.is_blank_line(line);
        let starts_blank = blank(start);
        while start > 0 && blank(start - 1) == starts_blank {
            start -= 1;
        }
        // The line before the first one that is counted; may be "line -1".
        let mut next = start;
        while next <= last && blank(next) {
            next += 1;
        }
        let mut left = count;
        if !around && starts_blank {
            left -= 1;
        }
        while left > 0 {
            left -= 1;
            if next > last {
                return Err(Missing::here());
            }
            let on_blanks = !around && blank(next);
            if around || !on_blanks {
                next += 1;
                while next <= last && !blank(next) {
                    next += 1;
                }
            }
            if left == 0 && starts_blank && around {
                break;
            }
            if around || on_blanks {
                while next <= last && blank(next) {
                    next += 1;
                }
            }
        }
        let end = next.saturating_sub(1);
        if around && !starts_blank && !blank(end) {
            while start > 0 && blank(start - 1) {
                start -= 1;
            }
        }
        if asked.selecting && selected == Some(Shape::Lines) && start == asked.anchor.line && end == start {
            return self.more_paragraphs(asked, extent, count, selected);
        }
        Ok(Covered {
            start: Pos::new(start, 0),
            end: Pos::new(end, 0),
            span: Span::Lines,
            shape: Shape::Lines,
        })
    }

    /// A selection of several lines grows by paragraphs on the cursor's side.
    fn more_paragraphs(
        &self,
        asked: Asked,
        extent: Extent,
        count: u32,
        selected: Option<Shape>,
    ) -> Result<Covered, Missing> {
        let mut line = asked.cursor.line;
        let down = line >= asked.anchor.line;
        let edge = if down { self.last_line() } else { 0 };
        let step = |line: usize| if down { line + 1 } else { line - 1 };
        for _ in 0..count {
            if line == edge {
                return Err(Missing { stopped: Some((asked.anchor, Pos::new(line, 0))) });
            }
            let mut before = None;
            for _ in 0..2 {
                if line == edge {
                    break;
                }
                let blank = self.is_blank_line(step(line));
                if before == Some(blank) {
                    break;
                }
                line = step(line);
                while line != edge && self.is_blank_line(step(line)) == blank {
                    line = step(line);
                }
                if extent == Extent::Inner {
                    break;
                }
                before = Some(blank);
            }
        }
        Ok(Covered {
            start: asked.anchor,
            end: Pos::new(line, 0),
            span: Span::Lines,
            shape: selected.unwrap_or(Shape::Lines),
        })
    }

    /// The next `wanted` bracket that has no `other` of its own on the way, not counting the cell at `from`. A bracket
    /// after an odd number of backslashes does not count.
    pub(super) fn unmatched(
        &self,
        from: Pos,
        wanted: char,
        other: char,
        direction: Direction,
    ) -> Option<Pos> {
        let mut at = from;
        let mut depth = 0u32;
        loop {
            let stepped = match direction {
                Direction::Forward => self.forward(&mut at),
                Direction::Backward => self.backward(&mut at),
            };
            if stepped == Stepped::Stuck {
                return None;
            }
            let Some(c) = self.char(at) else { continue };
            if (c == wanted || c == other) && !self.is_escaped(at) {
                match (c == wanted, depth) {
                    (true, 0) => return Some(at),
                    (true, _) => depth -= 1,
                    (false, _) => depth += 1,
                }
            }
        }
    }

    /// `%`: the partner of the first bracket at or after `from` in its line.
    pub(super) fn matching(&self, from: Pos) -> Option<Pos> {
        const PAIRS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('{', '}')];
        let on_line = self.line(from.line).iter().enumerate().skip(from.col);
        for (col, cell) in on_line {
            let c = cell.first();
            let at = Pos::new(from.line, col);
            for (open, close) in PAIRS {
                if c == open {
                    return self.unmatched(at, close, open, Direction::Forward);
                }
                if c == close {
                    return self.unmatched(at, open, close, Direction::Backward);
                }
            }
        }
        None
    }

    fn is_escaped(&self, at: Pos) -> bool {
        let before = self.line(at.line)[..at.col].iter().rev();
        before.take_while(|cell| cell.first() == '\\').count() % 2 == 1
    }
}

/// Whether a backslash takes a quote's meaning away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escapes {
    Seen,
    Ignored,
}

struct Quoted<'a> {
    buffer: &'a Buffer,
    line: usize,
    quote: char,
}

impl Quoted<'_> {
    fn char(&self, col: usize) -> Option<char> {
        self.buffer.char(Pos::new(self.line, col))
    }

    fn is_quote(&self, col: usize) -> bool {
        self.char(col) == Some(self.quote)
    }

    fn next(&self, from: usize, escapes: Escapes) -> Option<usize> {
        let mut col = from;
        loop {
            let c = self.char(col)?;
            if c == self.quote {
                return Some(col);
            }
            col += if escapes == Escapes::Seen && c == '\\' { 2 } else { 1 };
        }
    }

    fn previous(&self, from: usize) -> Option<usize> {
        let mut col = from;
        while col > 0 {
            col -= 1;
            let backslashes = (0..col).rev().take_while(|before| self.char(*before) == Some('\\')).count();
            if backslashes % 2 == 1 {
                col -= backslashes;
            } else if self.is_quote(col) {
                return Some(col);
            }
        }
        None
    }
}

impl Moved {
    fn fully(self) -> Option<()> {
        (self == Self::Fully).then_some(())
    }
}
