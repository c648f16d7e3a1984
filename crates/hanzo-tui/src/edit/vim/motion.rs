//! Where motions lead, and what an operator would take with them.

use super::super::Editor;
use super::super::buffer::{Buffer, Pos};
use super::super::cell::{Class, Words};
use super::command::{Direction, Find, Landing, Motion, Operator};
use super::words::{AtLineEnd, EmptyLines, HereCounts, Moved};

/// How an operator reads the way from the cursor to a motion's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// Characters, without the last.
    Exclusive,
    /// Characters, with the last.
    Inclusive,
    /// Whole lines.
    Lines,
}

/// The column `j` and `k` try to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    Column(usize),
    /// The line's end, whatever its length (after `$`).
    End,
}

/// Where a motion leads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    pub to: Pos,
    pub span: Span,
    /// The column to keep from now on; `None` is that of `to`.
    pub want: Option<Want>,
    /// Vim keeps what these motions delete in `"1` even within a line.
    pub numbered: bool,
    /// The end stays where it is although it is in column 0.
    pub end_fixed: bool,
    pub arrival: Arrival,
}

/// Whether a motion got where it was asked to. Like Vim, one that falls short still moves the cursor as far as it came, but
/// an operator that waited for it is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    There,
    Short,
}

impl From<Moved> for Arrival {
    fn from(moved: Moved) -> Self {
        match moved {
            Moved::Fully => Self::There,
            Moved::Short => Self::Short,
        }
    }
}

impl Reach {
    fn new(to: Pos, span: Span) -> Self {
        Self { to, span, want: None, numbered: false, end_fixed: false, arrival: Arrival::There }
    }
}

/// For whom a motion is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    Cursor,
    Selection,
    Operator(Operator),
}

impl For {
    fn operator(self) -> Option<Operator> {
        match self {
            Self::Operator(operator) => Some(operator),
            Self::Cursor | Self::Selection => None,
        }
    }
}

impl Editor {
    /// Where the motion leads from the cursor; `None` when it fails.
    pub(super) fn reach(&self, motion: Motion, count: Option<u32>, who: For) -> Option<Reach> {
        let buffer = &self.buffer;
        let times = count.unwrap_or(1).max(1);
        let lines = times as usize;
        let from = self.cursor;
        let last = buffer.last_line();
        let char_start = |to| Some(Reach::new(to, Span::Exclusive));
        let line_start = |line| Some(Reach::new(buffer.first_nonblank(line), Span::Lines));
        match motion {
            Motion::Left => {
                // With an operator even no step at all is a motion: `ch` in column 0 changes nothing and types.
                let stuck = from.col == 0 && who.operator().is_none();
                (!stuck)
                    .then(|| Reach::new(Pos::new(from.line, from.col.saturating_sub(lines)), Span::Exclusive))
            }
            Motion::Right | Motion::RightOverLines => self.right(motion, times, who),
            Motion::LeftOverLines => self.left_over_lines(times, who),
            Motion::Up | Motion::Down => {
                let line = if motion == Motion::Up {
                    (from.line > 0).then(|| from.line.saturating_sub(lines))?
                } else {
                    (from.line < last).then(|| from.line.saturating_add(lines).min(last))?
                };
                let to = self.kept_column(line, who);
                Some(Reach { want: Some(self.vim.want), ..Reach::new(to, Span::Lines) })
            }
            Motion::NextWord(words) => Some(self.word(words, times, who)),
            Motion::PreviousWord(words) => {
                let mut to = from;
                let moved = buffer.previous_word(&mut to, times, words, HereCounts::No);
                Some(Reach { arrival: moved.into(), ..Reach::new(to, Span::Exclusive) })
            }
            Motion::WordEnd(words) => {
                let mut to = from;
                let moved = buffer.word_end(&mut to, times, words, HereCounts::No, EmptyLines::Skip);
                Some(self.after_word(to, moved, Span::Inclusive, who))
            }
            Motion::PreviousWordEnd(words) => {
                let mut to = from;
                let moved = buffer.previous_word_end(&mut to, times, words, AtLineEnd::Cross);
                Some(Reach { arrival: moved.into(), ..Reach::new(to, Span::Inclusive) })
            }
            Motion::LineStart => char_start(Pos::new(from.line, 0)),
            Motion::FirstNonblank => char_start(buffer.first_nonblank(from.line)),
            Motion::LineEnd => {
                let line = from.line + lines - 1;
                if lines > 1 && from.line == last {
                    return None;
                }
                let line = line.min(last);
                let to = Pos::new(line, end_of_line(buffer, line, who));
                Some(Reach { want: Some(Want::End), ..Reach::new(to, Span::Inclusive) })
            }
            Motion::LastNonblank => {
                if lines > 1 && from.line == last {
                    return None;
                }
                let line = (from.line + lines - 1).min(last);
                let blanks = buffer.line(line).iter().rev().take_while(|cell| cell.is_blank()).count();
                let col = buffer.len(line).saturating_sub(blanks + 1);
                Some(Reach::new(Pos::new(line, col), Span::Inclusive))
            }
            Motion::Column => {
                let wanted = lines - 1;
                let to = buffer.at_display_column(from.line, wanted, self.settings.tab_width);
                let to = if who == For::Selection { to } else { buffer.clamp_on(to) };
                Some(Reach { want: Some(Want::Column(wanted)), ..Reach::new(to, Span::Exclusive) })
            }
            Motion::FirstLine => line_start(count.map_or(0, |line| line.max(1) as usize - 1).min(last)),
            Motion::LastLine => line_start(count.map_or(last, |line| line.max(1) as usize - 1).min(last)),
            Motion::ThisLine => {
                if lines > 1 && from.line == last {
                    return None;
                }
                let line = (from.line + lines - 1).min(last);
                if who == For::Operator(Operator::Yank) {
                    return Some(Reach::new(self.kept_column(line, who), Span::Lines));
                }
                line_start(line)
            }
            Motion::NextLine => line_start((from.line < last).then(|| (from.line + lines).min(last))?),
            Motion::PreviousLine => line_start((from.line > 0).then(|| from.line.saturating_sub(lines))?),
            Motion::Find(find) => self.find(find, times, Adjacent::Counts),
            Motion::FindAgain => self.find(self.vim.find?, times, Adjacent::Skipped),
            Motion::FindBack => {
                let find = self.vim.find?;
                let back = Find { direction: find.direction.reversed(), ..find };
                self.find(back, times, Adjacent::Skipped)
            }
            Motion::Matching => {
                let to = buffer.matching(from)?;
                Some(Reach { numbered: true, ..Reach::new(to, Span::Inclusive) })
            }
            Motion::Paragraph(direction) => self.paragraph(direction, times),
        }
    }

    fn right(&self, motion: Motion, times: u32, who: For) -> Option<Reach> {
        let buffer = &self.buffer;
        let mut to = self.cursor;
        let mut span = Span::Exclusive;
        let past_line = who == For::Selection;
        for done in 0..times {
            let length = buffer.len(to.line);
            let can_step = if past_line { to.col < length } else { to.col + 1 < length };
            if can_step {
                to.col += 1;
                continue;
            }
            if motion == Motion::RightOverLines && to.line < buffer.last_line() {
                // To an operator the line break is a character of its own.
                if who.operator().is_some() && span == Span::Exclusive && to.col < length {
                    span = Span::Inclusive;
                } else {
                    to = Pos::new(to.line + 1, 0);
                    span = Span::Exclusive;
                }
                continue;
            }
            if who.operator().is_none() && done == 0 {
                return None;
            }
            if who.operator().is_some() && length > 0 {
                span = Span::Inclusive;
            }
            break;
        }
        Some(Reach::new(to, span))
    }

    fn left_over_lines(&self, times: u32, who: For) -> Option<Reach> {
        let buffer = &self.buffer;
        let mut reach = Reach::new(self.cursor, Span::Exclusive);
        for _ in 0..times {
            if reach.to.col > 0 {
                reach.to.col -= 1;
            } else if reach.to.line > 0 {
                let line = reach.to.line - 1;
                reach.to = Pos::new(line, end_of_line(buffer, line, who));
                let cuts = matches!(who, For::Operator(Operator::Delete | Operator::Change));
                if cuts && buffer.len(line) > 0 {
                    reach.to.col = buffer.len(line);
                    reach.end_fixed = true;
                }
            } else {
                break;
            }
        }
        let stuck = reach.to == self.cursor && who.operator().is_none();
        (!stuck).then_some(reach)
    }

    fn word(&self, words: Words, times: u32, who: For) -> Reach {
        let buffer = &self.buffer;
        let mut to = self.cursor;
        let changing_a_word = who == For::Operator(Operator::Change)
            && buffer.cell(to).is_some()
            && buffer.class(to, Words::Small) != Class::Blank;
        if changing_a_word {
            let moved = buffer.word_end(&mut to, times, words, HereCounts::Yes, EmptyLines::Skip);
            return self.after_word(to, moved, Span::Inclusive, who);
        }
        let end = if who.operator().is_some() { AtLineEnd::Stop } else { AtLineEnd::Cross };
        let moved = buffer.next_word(&mut to, times, words, end);
        self.after_word(to, moved, Span::Exclusive, who)
    }

    /// A word motion never leaves the cursor past a line's end, and fails only when no operator waits for it.
    fn after_word(&self, to: Pos, moved: Moved, span: Span, who: For) -> Reach {
        let past_end = to > self.cursor && to.col > 0 && self.buffer.cell(to).is_none();
        let mut reach = Reach::new(to, span);
        if past_end && who != For::Selection {
            reach.to.col -= 1;
            reach.span = Span::Inclusive;
        }
        if who.operator().is_none() {
            reach.arrival = moved.into();
        }
        reach
    }

    fn find(&self, find: Find, times: u32, adjacent: Adjacent) -> Option<Reach> {
        let line = self.buffer.line(self.cursor.line);
        let mut col = self.cursor.col;
        let mut skip = adjacent == Adjacent::Skipped && times == 1 && find.landing == Landing::Before;
        for _ in 0..times {
            loop {
                col = match find.direction {
                    Direction::Forward => col + 1,
                    Direction::Backward => col.checked_sub(1)?,
                };
                let hit = line.get(col)?.first() == find.target;
                if hit && !skip {
                    break;
                }
                skip = false;
            }
        }
        let (col, span) = match (find.direction, find.landing) {
            (Direction::Forward, Landing::On) => (col, Span::Inclusive),
            (Direction::Forward, Landing::Before) => (col - 1, Span::Inclusive),
            (Direction::Backward, Landing::On) => (col, Span::Exclusive),
            (Direction::Backward, Landing::Before) => (col + 1, Span::Exclusive),
        };
        Some(Reach::new(Pos::new(self.cursor.line, col), span))
    }

    fn paragraph(&self, direction: Direction, times: u32) -> Option<Reach> {
        let buffer = &self.buffer;
        let mut line = self.cursor.line;
        let last = buffer.last_line();
        for left in (0..times).rev() {
            let mut text_seen = false;
            let mut first = true;
            loop {
                text_seen |= buffer.len(line) > 0;
                if !first && text_seen && buffer.len(line) == 0 {
                    break;
                }
                first = false;
                let next = match direction {
                    Direction::Forward => (line < last).then_some(line + 1),
                    Direction::Backward => line.checked_sub(1),
                };
                match next {
                    Some(next) => line = next,
                    None if left > 0 => return None,
                    None => break,
                }
            }
        }
        let mut reach = Reach { numbered: true, ..Reach::new(Pos::new(line, 0), Span::Exclusive) };
        if line == last && direction == Direction::Forward && buffer.len(line) > 0 {
            reach.to.col = buffer.len(line) - 1;
            reach.span = Span::Inclusive;
        }
        Some(reach)
    }

    /// The place in `line` that keeps the column of earlier vertical motions.
    pub(super) fn kept_column(&self, line: usize, who: For) -> Pos {
        let to = match self.vim.want {
            Want::End => Pos::new(line, self.buffer.len(line)),
            Want::Column(column) => self.buffer.at_display_column(line, column, self.settings.tab_width),
        };
        if who == For::Selection { to } else { self.buffer.clamp_on(to) }
    }

    /// The column a vertical motion from the cursor would keep. On a tab the cursor is shown at its end.
    pub(super) fn column_here(&self) -> Want {
        let tab = self.settings.tab_width;
        let start = self.buffer.display_column(self.cursor, tab);
        let at_tab_end = match self.vim.selected_shape() {
            None => true,
            Some(_) => self.cursor > self.vim.anchor,
        };
        match self.buffer.cell(self.cursor) {
            Some(cell) if cell.first() == '\t' && at_tab_end => {
                Want::Column(start + cell.width(start, tab) - 1)
            }
            _ => Want::Column(start),
        }
    }
}

/// Whether a `t` that already stands before its target counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adjacent {
    Counts,
    Skipped,
}

fn end_of_line(buffer: &Buffer, line: usize, who: For) -> usize {
    let length = buffer.len(line);
    if who == For::Selection { length } else { length.saturating_sub(1) }
}
