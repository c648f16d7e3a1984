//! Undo and redo. A step holds the lines that changed, before and after, and where the cursor was when it began.

use std::sync::Arc;

use super::buffer::{Buffer, Pos};
use super::cell::Line;

/// Older steps are forgotten, so that a day of typing does not grow without end.
const MOST_STEPS: usize = 1_000;

#[derive(Debug, Clone)]
struct Step {
    /// The first line that differs.
    first: usize,
    old: Vec<Arc<Line>>,
    new: Vec<Arc<Line>>,
    cursor: Pos,
    /// Whether the text had been emptied, before and after.
    emptied: [bool; 2],
}

#[derive(Debug, Clone)]
struct Open {
    lines: Vec<Arc<Line>>,
    cursor: Pos,
    emptied: bool,
    /// The first line that was worked on, even if it came out the same.
    touched: usize,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    open: Option<Open>,
    done: Vec<Step>,
    undone: Vec<Step>,
}

impl History {
    /// To be called before a change; the first call since [`Self::close`] begins a step.
    pub fn before_change(&mut self, buffer: &Buffer, cursor: Pos) {
        if self.open.is_none() {
            self.open = Some(Open {
                lines: buffer.lines().to_vec(),
                cursor,
                emptied: buffer.is_emptied(),
                touched: usize::MAX,
            });
        }
    }

    /// Counts lines from `line` on as part of the open step, whether they change or not.
    pub fn touch(&mut self, line: usize) {
        if let Some(open) = &mut self.open {
            open.touched = open.touched.min(line);
        }
    }

    /// Ends the step, if one is open; a step that changed nothing leaves no trace.
    pub fn close(&mut self, buffer: &Buffer) {
        let Some(open) = self.open.take() else { return };
        let (old, new) = (&open.lines, buffer.lines());
        let same = |(a, b): &(&Arc<Line>, &Arc<Line>)| Arc::ptr_eq(a, b) || a == b;
        let first = old.iter().zip(new).take_while(same).count();
        if first == old.len() && first == new.len() {
            return;
        }
        let first = first.min(open.touched);
        let most = old.len().min(new.len()) - first;
        let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();
        self.undone.clear();
        if self.done.len() == MOST_STEPS {
            self.done.remove(0);
        }
        self.done.push(Step {
            first,
            old: old[first..old.len() - tail].to_vec(),
            new: new[first..new.len() - tail].to_vec(),
            cursor: open.cursor,
            emptied: [open.emptied, buffer.is_emptied()],
        });
    }

    /// Takes the newest step back; returns where Vim puts the cursor.
    pub fn undo(&mut self, buffer: &mut Buffer) -> Option<Pos> {
        self.close(buffer);
        let step = self.done.pop()?;
        let at = apply(buffer, &step, &step.new, &step.old, step.emptied[0]);
        self.undone.push(step);
        Some(at)
    }

    /// Does the last undone step again.
    pub fn redo(&mut self, buffer: &mut Buffer) -> Option<Pos> {
        self.close(buffer);
        let step = self.undone.pop()?;
        let at = apply(buffer, &step, &step.old, &step.new, step.emptied[1]);
        self.done.push(step);
        Some(at)
    }
}

fn apply(buffer: &mut Buffer, step: &Step, from: &[Arc<Line>], to: &[Arc<Line>], emptied: bool) -> Pos {
    let mut lines = buffer.lines().to_vec();
    lines.splice(step.first..step.first + from.len(), to.iter().cloned());
    buffer.set_lines(lines, emptied);
    // Where the cursor was when the change began, if that is in or right above what changed; otherwise the first line
    // that differs, at its first character that is no blank.
    let remembered = step.cursor.line;
    if remembered + 1 >= step.first && remembered <= step.first + to.len() {
        return buffer.clamp_on(step.cursor);
    }
    let line = step.first.min(buffer.last_line());
    if step.first > buffer.last_line() {
        return Pos::new(line, 0);
    }
    buffer.first_nonblank(line)
}
