//! Putting text back, and the small changes that are not operators: `r`, `~`, `J`.

use super::super::buffer::Pos;
use super::super::cell::text_of;
use super::super::registers::{RegisterText, TextKind};
use super::super::{Editor, Outcome};
use super::command::{Joint, Operator, Shape, Side, Target};
use super::operate::cased;

/// A put of more than this is refused: a count typed by mistake must not fill the memory.
const MOST_PUT: usize = 4 << 20;

impl Editor {
    pub(super) fn put(&mut self, side: Side, count: Option<u32>, register: Option<char>) -> Outcome {
        let count = count.unwrap_or(1).max(1) as usize;
        let Some(text) = self.registers.get(register).cloned() else {
            return self.put_nothing(side);
        };
        if text.text.len().saturating_mul(count) > MOST_PUT {
            let message = "the text to put is too large\n\nhint: use a smaller count".to_owned();
            return Outcome::Message(message);
        }
        let Some(shape) = self.vim.selected_shape() else {
            self.history.before_change(&self.buffer, self.cursor);
            self.put_text(&text, side, count);
            return Outcome::Done;
        };
        self.put_over_selection(&text, shape, side, count)
    }

    /// An empty register changes nothing, except that `p` over a selection still deletes it.
    fn put_nothing(&mut self, side: Side) -> Outcome {
        if self.vim.selected_shape().is_none() {
            return Outcome::Beep;
        }
        let keeps = (side == Side::Before).then_some('_');
        self.operate(Operator::Delete, Target::Selection(None), None, keeps)
    }

    fn put_over_selection(&mut self, text: &RegisterText, shape: Shape, side: Side, count: usize) -> Outcome {
        let start = self.vim.anchor.min(self.cursor);
        // `P` leaves the registers as they are.
        let register = (side == Side::Before).then_some('_');
        self.operate(Operator::Delete, Target::Selection(None), None, register);
        let emptied = self.buffer.is_emptied();
        self.history.before_change(&self.buffer, self.cursor);
        match (shape, text.kind) {
            (Shape::Lines, _) => {
                let lines = RegisterText { kind: TextKind::Lines, text: as_lines(text) };
                let side = if self.cursor.line < start.line { Side::After } else { Side::Before };
                self.put_text(&lines, side, count);
            }
            (Shape::Characters, TextKind::Lines) => {
                let at = if self.cursor.col < start.col { self.cursor.col + 1 } else { self.cursor.col };
                self.buffer.insert(Pos::new(self.cursor.line, at), "\n");
                self.put_text(text, Side::After, count);
            }
            (Shape::Characters, TextKind::Characters) => {
                let side = if self.cursor.col < start.col { Side::After } else { Side::Before };
                self.put_text(text, side, count);
            }
        }
        let last = self.buffer.last_line();
        if emptied && last > 0 && self.buffer.len(last) == 0 {
            // The line that stood for an empty text is not part of what was put.
            self.buffer.delete_lines(last, last);
            self.cursor = self.buffer.clamp_on(self.cursor);
        }
        Outcome::Done
    }

    fn put_text(&mut self, text: &RegisterText, side: Side, count: usize) {
        let at = self.cursor;
        if text.kind == TextKind::Lines {
            let first = at.line + usize::from(side == Side::After);
            let lines: Vec<&str> = text.text.strip_suffix('\n').unwrap_or(&text.text).split('\n').collect();
            for (index, line) in lines.iter().cycle().take(lines.len() * count).enumerate() {
                self.buffer.insert_line(first + index, line);
            }
            self.cursor = self.buffer.first_nonblank(first);
            return;
        }
        let col = if side == Side::After && self.buffer.len(at.line) > 0 { at.col + 1 } else { at.col };
        let start = self.buffer.clamp(Pos::new(at.line, col));
        let end = self.buffer.insert(start, &text.text.repeat(count));
        self.cursor = if text.text.is_empty() {
            at
        } else if text.text.contains('\n') || end.col == 0 {
            start
        } else {
            Pos::new(end.line, end.col - 1)
        };
        self.cursor = self.buffer.clamp_on(self.cursor);
    }

    /// `r`: in normal mode count characters of the line, in visual mode all that are selected.
    pub(super) fn replace(&mut self, with: char, count: Option<u32>) -> Outcome {
        if let Some(shape) = self.vim.selected_shape() {
            let (start, end) = (self.vim.anchor.min(self.cursor), self.vim.anchor.max(self.cursor));
            self.vim.leave_visual();
            self.cursor = if shape == Shape::Lines { Pos::new(start.line, 0) } else { start };
            self.history.before_change(&self.buffer, self.cursor);
            for line in start.line..=end.line {
                let length = self.buffer.len(line);
                let chars = shape == Shape::Characters;
                let from = if chars && line == start.line { start.col.min(length) } else { 0 };
                let to = if chars && line == end.line { (end.col + 1).min(length) } else { length };
                self.replace_cells(line, from, to, with);
            }
            self.cursor = self.buffer.clamp_on(self.cursor);
            return Outcome::Done;
        }
        let count = count.unwrap_or(1).max(1) as usize;
        let Pos { line, col } = self.cursor;
        if col + count > self.buffer.len(line) {
            return Outcome::Beep;
        }
        self.history.before_change(&self.buffer, self.cursor);
        self.replace_cells(line, col, col + count, with);
        self.cursor = self.buffer.clamp_on(Pos::new(line, col + count - 1));
        Outcome::Done
    }

    fn replace_cells(&mut self, line: usize, from: usize, to: usize, with: char) {
        let cells = self.buffer.line(line);
        let text: String = text_of(&cells[..from])
            .chars()
            .chain(std::iter::repeat_n(with, to.saturating_sub(from)))
            .chain(text_of(&cells[to.max(from)..]).chars())
            .collect();
        self.buffer.set_line(line, &text);
    }

    /// `r` with Enter: count characters become one line break.
    pub(super) fn replace_with_break(&mut self, count: Option<u32>) -> Outcome {
        let count = count.unwrap_or(1).max(1) as usize;
        let Pos { line, col } = self.cursor;
        if self.vim.selected_shape().is_some() || col + count > self.buffer.len(line) {
            return Outcome::Beep;
        }
        self.history.before_change(&self.buffer, self.cursor);
        self.buffer.delete(self.cursor, Pos::new(line, col + count));
        self.cursor = self.buffer.insert(self.cursor, "\n");
        Outcome::Done
    }

    /// `~`: turns the case and moves on.
    pub(super) fn swap_case_here(&mut self, count: Option<u32>) -> Outcome {
        let Pos { line, col } = self.cursor;
        let length = self.buffer.len(line);
        if length == 0 {
            return Outcome::Beep;
        }
        let end = (col + count.unwrap_or(1).max(1) as usize).min(length);
        self.history.before_change(&self.buffer, self.cursor);
        self.map_cells(line, col, end, |c| cased(c, Operator::SwapCase));
        self.cursor = self.buffer.clamp_on(Pos::new(line, end));
        Outcome::Done
    }

    /// `J` and `gJ`.
    pub(super) fn join(&mut self, joint: Joint, count: Option<u32>) -> Outcome {
        let last = self.buffer.last_line();
        let (first, lines) = if let Some(shape) = self.vim.selected_shape() {
            let (start, end) = (self.vim.anchor.min(self.cursor), self.vim.anchor.max(self.cursor));
            self.vim.leave_visual();
            self.cursor = if shape == Shape::Lines { Pos::new(start.line, 0) } else { start };
            (start.line, (end.line - start.line + 1).max(2))
        } else {
            let asked = count.unwrap_or(2).max(2) as usize;
            let there = last - self.cursor.line + 1;
            let lines = if asked > 2 { asked.min(there) } else { asked };
            (self.cursor.line, lines)
        };
        if first + lines - 1 > last {
            self.cursor = self.buffer.clamp_on(self.cursor);
            return Outcome::Beep;
        }
        self.history.before_change(&self.buffer, self.cursor);
        let mut text = text_of(self.buffer.line(first));
        let mut col = 0;
        let mut previous = text.clone();
        for line in first + 1..first + lines {
            let whole = text_of(self.buffer.line(line));
            let mut next = whole.as_str();
            let mut space = false;
            if joint == Joint::Space {
                next = whole.trim_start_matches([' ', '\t']);
                space = !next.is_empty()
                    && !next.starts_with(')')
                    && !text.is_empty()
                    && !previous.ends_with(['\t', ' ']);
            }
            col = super::super::cell::cells(&text, self.buffer.stepping()).len();
            if space {
                text.push(' ');
            }
            text.push_str(next);
            next.clone_into(&mut previous);
        }
        self.buffer.delete_lines(first + 1, first + lines - 1);
        self.buffer.set_line(first, &text);
        self.cursor = self.buffer.clamp_on(Pos::new(first, col));
        Outcome::Done
    }
}

fn as_lines(text: &RegisterText) -> String {
    match text.kind {
        TextKind::Lines => text.text.clone(),
        TextKind::Characters => format!("{}\n", text.text),
    }
}
