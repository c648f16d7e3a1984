//! What operators do to a region of text, and what they leave in the registers.

use super::super::Editor;
use super::super::Outcome;
use super::super::buffer::Pos;
use super::super::cell::text_of;
use super::super::registers::{Origin, RegisterText, TextKind};
use super::command::{Area, Operator, Shape, Target};
use super::motion::{Arrival, For, Span};

/// The text an operator works on: from `start` to `end`, read as `span` says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region {
    pub start: Pos,
    pub end: Pos,
    pub span: Span,
    pub selected: bool,
    pub numbered: bool,
    pub end_fixed: bool,
    /// How far `>` and `<` shift.
    pub amount: usize,
}

impl Region {
    fn lines(&self) -> usize {
        self.end.line - self.start.line + 1
    }

    fn new(a: Pos, b: Pos, span: Span) -> Self {
        Self {
            start: a.min(b),
            end: a.max(b),
            span,
            selected: false,
            numbered: false,
            end_fixed: false,
            amount: 1,
        }
    }
}

impl Editor {
    /// Finds the region and works on it. `Beep` when there is none.
    pub(super) fn operate(
        &mut self,
        operator: Operator,
        target: Target,
        count: Option<u32>,
        register: Option<char>,
    ) -> Outcome {
        let Some(region) = self.region(operator, target, count) else { return Outcome::Beep };
        self.vim.leave_visual();
        self.operate_on(operator, region, register)
    }

    fn region(&mut self, operator: Operator, target: Target, count: Option<u32>) -> Option<Region> {
        match target {
            Target::Motion(motion) => {
                self.remember_find(motion);
                let reach = self.reach(motion, count, For::Operator(operator))?;
                if reach.arrival == Arrival::Short {
                    self.stop_at_place(reach.to);
                    return None;
                }
                let region = Region::new(self.cursor, reach.to, reach.span);
                Some(Region { numbered: reach.numbered, end_fixed: reach.end_fixed, ..region })
            }
            Target::Object(extent, object) => {
                let covered = match self.covered(extent, object, count) {
                    Ok(covered) => covered,
                    Err(missing) => {
                        if let Some((_, stopped)) = missing.stopped {
                            self.stop_at_place(stopped);
                        }
                        return None;
                    }
                };
                Some(Region::new(covered.start, covered.end, covered.span))
            }
            Target::Lines => {
                let more = count.unwrap_or(1).max(1) as usize - 1;
                let last = self.buffer.last_line();
                if more > 0 && self.cursor.line == last {
                    return None;
                }
                let line = (self.cursor.line + more).min(last);
                // All but a yank also go to the first character that is no blank, which undo remembers.
                let end = match operator {
                    Operator::Yank => self.kept_column(line, For::Operator(operator)),
                    _ => self.buffer.first_nonblank(line),
                };
                Some(Region::new(self.cursor, end, Span::Lines))
            }
            Target::Selection(shape) => {
                let shape = shape.or(self.vim.selected_shape())?;
                let region = self.selected_region(operator, self.vim.anchor, self.cursor, shape);
                Some(Region { amount: count.unwrap_or(1) as usize, ..region })
            }
            Target::Area(area) => {
                let end = self.area_end(area);
                let region = self.selected_region(operator, self.cursor, end, area.shape);
                Some(Region { amount: count.unwrap_or(1) as usize, ..region })
            }
        }
    }

    /// Where a motion stopped that could not go all the way.
    fn stop_at_place(&mut self, at: Pos) {
        self.cursor = self.buffer.clamp_on(at);
        self.vim.want = self.column_here();
    }

    fn selected_region(&self, operator: Operator, anchor: Pos, cursor: Pos, shape: Shape) -> Region {
        let mut region = Region { selected: true, ..Region::new(anchor, cursor, Span::Lines) };
        if shape == Shape::Lines {
            // Only a selection made upwards leaves the cursor in its column.
            if cursor.line >= anchor.line {
                region.start.col = 0;
            }
            return region;
        }
        region.span = Span::Inclusive;
        if self.buffer.cell(region.end).is_none() {
            // The selection covers the line break too.
            region.span = Span::Exclusive;
            let works_on_lines = matches!(operator, Operator::ShiftLeft | Operator::ShiftRight);
            if region.end.line < self.buffer.last_line() && !works_on_lines {
                region.end = Pos::new(region.end.line + 1, 0);
            }
        }
        region
    }

    /// How large the selection is.
    pub(super) fn area(&self, shape: Shape) -> Area {
        let (start, end) = (self.vim.anchor.min(self.cursor), self.vim.anchor.max(self.cursor));
        let tab = self.settings.tab_width;
        let column = |at: Pos| self.buffer.display_column(at, tab);
        let last = self.buffer.cell(end).map_or(0, |cell| cell.width(column(end), tab).saturating_sub(1));
        let columns = match self.vim.want {
            super::motion::Want::End => None,
            super::motion::Want::Column(_) if start.line == end.line => {
                Some(column(end) + last - column(start) + 1)
            }
            super::motion::Want::Column(_) => Some(column(end) + last),
        };
        Area { shape, lines: end.line - start.line + 1, columns }
    }

    fn area_end(&self, area: Area) -> Pos {
        let line = (self.cursor.line + area.lines - 1).min(self.buffer.last_line());
        let tab = self.settings.tab_width;
        let Some(columns) = area.columns else { return Pos::new(line, self.buffer.len(line)) };
        let wanted = if area.lines == 1 {
            (self.buffer.display_column(self.cursor, tab) + columns).saturating_sub(1)
        } else {
            columns
        };
        self.buffer.at_display_column(line, wanted, tab)
    }

    pub(super) fn operate_on(
        &mut self,
        operator: Operator,
        region: Region,
        register: Option<char>,
    ) -> Outcome {
        let mut region = region;
        self.cursor = region.start;
        let ends_in_column_0 = region.span == Span::Exclusive
            && region.end.col == 0
            && region.lines() > 1
            && !region.selected
            && !region.end_fixed;
        if ends_in_column_0 {
            region.end.line -= 1;
            if self.in_indent() {
                region.span = Span::Lines;
            } else {
                let length = self.buffer.len(region.end.line);
                region.end.col = length.saturating_sub(1);
                if length > 0 {
                    region.span = Span::Inclusive;
                }
            }
        }
        let empty = region.start == region.end
            && (region.span == Span::Exclusive
                || (region.span == Span::Inclusive
                    && operator == Operator::Yank
                    && self.buffer.cell(region.end).is_none()));
        match operator {
            Operator::Yank => self.yank(&region, register),
            Operator::Delete => {
                let outcome = self.delete(operator, region, register, empty);
                self.cursor = self.buffer.clamp_on(self.cursor);
                outcome
            }
            Operator::Change => {
                let outcome = self.delete(operator, region, register, empty);
                self.start_insert();
                outcome
            }
            Operator::ShiftLeft | Operator::ShiftRight => self.shift(operator, &region),
            Operator::Lower | Operator::Upper | Operator::SwapCase => {
                if !empty {
                    self.change_case(operator, &region);
                }
                Outcome::Done
            }
        }
    }

    fn in_indent(&self) -> bool {
        self.cursor.col <= self.buffer.indent(self.cursor.line)
    }

    /// The region's text as a register keeps it.
    fn taken(&self, region: &Region) -> RegisterText {
        let ends_with_a_line = region.span == Span::Exclusive
            && region.start.col == 0
            && region.end.col == 0
            && region.lines() > 1
            && !region.selected;
        if region.span == Span::Lines || ends_with_a_line {
            let last = region.end.line - usize::from(region.span != Span::Lines);
            let text = self.buffer.slice_lines(region.start.line, last);
            return RegisterText { text, kind: TextKind::Lines };
        }
        let text = self.buffer.slice(region.start, Self::after(region));
        RegisterText { text, kind: TextKind::Characters }
    }

    /// The first place after the region.
    fn after(region: &Region) -> Pos {
        match region.span {
            Span::Inclusive => Pos::new(region.end.line, region.end.col + 1),
            _ => region.end,
        }
    }

    fn keep(&mut self, register: Option<char>, text: RegisterText, origin: Origin) -> Outcome {
        match self.registers.write(register, text, origin) {
            Some(copied) => Outcome::Copy(copied),
            None => Outcome::Done,
        }
    }

    fn yank(&mut self, region: &Region, register: Option<char>) -> Outcome {
        let text = self.taken(region);
        self.cursor = self.buffer.clamp_on(region.start);
        self.keep(register, text, Origin::Yanked)
    }

    fn delete(&mut self, operator: Operator, region: Region, register: Option<char>, empty: bool) -> Outcome {
        let mut region = region;
        if empty || self.buffer.is_emptied() {
            return Outcome::Done;
        }
        let deletes = operator == Operator::Delete;
        if region.span != Span::Lines && !region.selected && region.lines() > 1 && deletes {
            let rest = &self.buffer.line(region.end.line);
            let from = Self::after(&region).col.min(rest.len());
            if rest[from..].iter().all(super::super::cell::Cell::is_blank) && self.in_indent() {
                region.span = Span::Lines;
            }
        }
        if region.span != Span::Lines
            && region.lines() == 1
            && deletes
            && self.buffer.len(region.start.line) == 0
        {
            return Outcome::Done;
        }
        let numbered = region.numbered || region.span == Span::Lines || region.lines() > 1;
        let outcome = self.keep(register, self.taken(&region), Origin::Deleted { numbered });
        // Vim begins to change several lines with the second, and undo goes back there.
        let second = region.span == Span::Lines && operator == Operator::Change && region.lines() > 1;
        let begin = Pos::new(self.cursor.line + usize::from(second), self.cursor.col);
        self.history.before_change(&self.buffer, begin);
        match (region.span, operator) {
            (Span::Lines, Operator::Change) => {
                if region.lines() > 1 {
                    self.buffer.delete_lines(region.start.line + 1, region.end.line);
                }
                self.buffer.set_line(region.start.line, "");
                self.cursor = Pos::new(region.start.line, 0);
            }
            (Span::Lines, _) => {
                self.buffer.delete_lines(region.start.line, region.end.line);
                let line = region.start.line.min(self.buffer.last_line());
                self.cursor = self.buffer.first_nonblank(line);
            }
            _ => {
                self.cursor = self.buffer.delete(region.start, Self::after(&region));
            }
        }
        outcome
    }

    fn shift(&mut self, operator: Operator, region: &Region) -> Outcome {
        let step = self.settings.shift_width * region.amount.max(1);
        self.history.before_change(&self.buffer, self.cursor);
        self.history.touch(region.start.line);
        let tab = self.settings.tab_width;
        for line in region.start.line..=region.end.line {
            if self.buffer.len(line) == 0 {
                continue;
            }
            let indent = self.buffer.indent(line);
            let columns = self.buffer.display_column(Pos::new(line, indent), tab);
            let columns = if operator == Operator::ShiftRight {
                (columns + step).min(1_000)
            } else {
                columns.saturating_sub(step)
            };
            let rest = text_of(&self.buffer.line(line)[indent..]);
            let text = format!("{}{}{rest}", "\t".repeat(columns / tab), " ".repeat(columns % tab));
            self.buffer.set_line(line, &text);
        }
        self.cursor = self.buffer.first_nonblank(region.start.line);
        Outcome::Done
    }

    fn change_case(&mut self, operator: Operator, region: &Region) {
        self.history.before_change(&self.buffer, self.cursor);
        self.history.touch(region.start.line);
        for line in region.start.line..=region.end.line {
            let whole = region.span == Span::Lines;
            let length = self.buffer.len(line);
            let from = if line == region.start.line && !whole { region.start.col.min(length) } else { 0 };
            let to =
                if line == region.end.line && !whole { Self::after(region).col.min(length) } else { length };
            self.map_cells(line, from, to, |c| cased(c, operator));
        }
        self.cursor = self.buffer.clamp_on(self.cursor);
    }

    /// Replaces the first character of each cell of a part of a line.
    pub(super) fn map_cells(&mut self, line: usize, from: usize, to: usize, map: impl Fn(char) -> char) {
        if from >= to {
            return;
        }
        let cells = self.buffer.line(line);
        let mut text = text_of(&cells[..from]);
        for cell in &cells[from..to] {
            let part = text_of(std::slice::from_ref(cell));
            let mut characters = part.chars();
            text.extend(characters.next().map(&map));
            text.push_str(characters.as_str());
        }
        text.push_str(&text_of(&cells[to..]));
        self.buffer.set_line(line, &text);
    }
}

/// One character in the other case; those whose other case is several characters stay.
pub(super) fn cased(c: char, operator: Operator) -> char {
    let only = |mut other: Box<dyn Iterator<Item = char>>| match (other.next(), other.next()) {
        (Some(one), None) => one,
        _ => c,
    };
    match operator {
        Operator::Lower => only(Box::new(c.to_lowercase())),
        Operator::Upper => only(Box::new(c.to_uppercase())),
        _ if c.is_lowercase() => only(Box::new(c.to_uppercase())),
        _ => only(Box::new(c.to_lowercase())),
    }
}
