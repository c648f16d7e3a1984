//! Modal editing: which mode keys are read in, and what complete commands do. The rules are Vim's; `vim_oracle_cases` holds
//! them against what real editors did.

mod command;
mod ex;
mod insert;
mod motion;
mod objects;
mod operate;
mod put;
mod words;

use std::time::Duration;

use super::buffer::Pos;
use super::key::Key;
use super::{Editor, HistoryStep, Host, Mode, Outcome};
use command::{Action, Command, Fed, Find, Motion, Operator, Pending, Reading, Shape, Target};
use insert::{InsertRun, Typed};
use motion::{Arrival, For, Want};

/// Which mode keys are read in.
#[derive(Debug, Clone)]
enum VimMode {
    Insert(InsertRun),
    Normal,
    Visual(Shape),
    Command,
}

/// Whether the last thing in insert mode was typing or moving; vertical moves in a row keep their column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Typed,
    Moved,
}

/// What `.` does again.
#[derive(Debug, Clone)]
struct Change {
    command: Command,
    typed: Vec<Typed>,
}

/// The modal state of one input widget.
#[derive(Debug, Clone)]
pub(super) struct Vim {
    mode: VimMode,
    pending: Pending,
    pending_since: Duration,
    pub anchor: Pos,
    want: Want,
    find: Option<Find>,
    last_change: Option<Change>,
    last_selection: Option<(Pos, Pos, Shape)>,
    repeating: bool,
    state: State,
    pub command_line: String,
}

impl Default for Vim {
    /// A prompt begins in insert mode, or its user could not type.
    fn default() -> Self {
        Self {
            mode: VimMode::Insert(InsertRun::default()),
            pending: Pending::default(),
            pending_since: Duration::ZERO,
            anchor: Pos::default(),
            want: Want::Column(0),
            find: None,
            last_change: None,
            last_selection: None,
            repeating: false,
            state: State::Typed,
            command_line: String::new(),
        }
    }
}

impl Vim {
    pub fn shown_mode(&self) -> Mode {
        match &self.mode {
            VimMode::Insert(_) => Mode::Insert,
            VimMode::Normal if self.pending.has_operator() => Mode::OperatorPending,
            VimMode::Normal => Mode::Normal,
            VimMode::Visual(Shape::Characters) => Mode::Visual,
            VimMode::Visual(Shape::Lines) => Mode::VisualLine,
            VimMode::Command => Mode::Command,
        }
    }

    pub fn pending_keys(&self) -> String {
        self.pending.keys.iter().map(ToString::to_string).collect()
    }

    pub fn waiting_since(&self) -> Option<Duration> {
        (!self.pending.is_empty()).then_some(self.pending_since)
    }

    pub fn drop_pending(&mut self) {
        self.pending = Pending::default();
    }

    fn selected_shape(&self) -> Option<Shape> {
        match self.mode {
            VimMode::Visual(shape) => Some(shape),
            _ => None,
        }
    }

    fn leave_visual(&mut self) {
        if self.selected_shape().is_some() {
            self.mode = VimMode::Normal;
        }
    }
}

impl Editor {
    pub(super) fn vim_key(&mut self, key: Key, now: Duration) -> Outcome {
        match self.vim.mode {
            VimMode::Insert(_) => self.insert_key(key),
            VimMode::Command => self.command_key(key),
            VimMode::Normal => self.feed(key, Reading::Normal, now),
            VimMode::Visual(_) => self.feed(key, Reading::Visual, now),
        }
    }

    pub(super) fn vim_paste(&mut self, text: &str) {
        self.vim.drop_pending();
        match self.vim.mode {
            VimMode::Insert(_) => self.type_text(text),
            VimMode::Command => self.vim.command_line.extend(text.lines().next()),
            VimMode::Normal | VimMode::Visual(_) => {
                if self.vim.selected_shape().is_some() {
                    self.operate(Operator::Change, Target::Selection(None), None, Some('_'));
                } else {
                    self.start_insert();
                }
                self.type_text(text);
                self.leave_insert();
            }
        }
    }

    pub(super) fn vim_text_replaced(&mut self) {
        self.vim.drop_pending();
        self.vim.leave_visual();
        self.vim.want = Want::Column(0);
        self.vim.last_selection = None;
        match self.vim.mode {
            VimMode::Insert(_) => self.start_insert(),
            _ => self.cursor = self.buffer.clamp_on(self.cursor),
        }
        self.vim.want = self.column_here();
    }

    pub(super) fn vim_cursor_placed(&mut self) {
        if self.settings.input != super::InputMode::Vim {
            return;
        }
        self.vim.drop_pending();
        match self.vim.mode {
            VimMode::Insert(_) => {
                self.history.close(&self.buffer);
                self.start_insert();
            }
            VimMode::Normal | VimMode::Command => self.cursor = self.buffer.clamp_on(self.cursor),
            VimMode::Visual(_) => {}
        }
        self.vim.want = self.column_here();
    }

    fn feed(&mut self, key: Key, reading: Reading, now: Duration) -> Outcome {
        self.tick(now);
        self.vim.pending_since = now;
        match self.vim.pending.feed(key, reading) {
            Fed::More | Fed::Dropped => Outcome::Done,
            Fed::Refused => Outcome::Beep,
            Fed::Foreign => Outcome::Ignored,
            Fed::Complete(command) => {
                let outcome = self.execute(command);
                self.after_command();
                outcome
            }
        }
    }

    /// What holds between commands: undo steps end with a command, and in normal mode the cursor is on a character.
    fn after_command(&mut self) {
        match self.vim.mode {
            VimMode::Insert(_) => self.vim.state = State::Typed,
            VimMode::Normal => {
                self.history.close(&self.buffer);
                self.cursor = self.buffer.clamp_on(self.cursor);
            }
            VimMode::Visual(_) | VimMode::Command => self.history.close(&self.buffer),
        }
    }

    fn execute(&mut self, command: Command) -> Outcome {
        let Command { register, count, action } = command;
        let area = self.vim.selected_shape().map(|shape| self.area(shape));
        if let Some(shape) = self.vim.selected_shape() {
            self.vim.last_selection = Some((self.vim.anchor, self.cursor, shape));
        }
        let outcome = match action {
            Action::Move(motion) => return self.go(motion, count),
            Action::Select(extent, object) => return self.select(extent, object, count),
            Action::Undo => return self.go_through_history(count, Self::undo_once),
            Action::Redo => return self.go_through_history(count, Self::redo_once),
            Action::Repeat => return self.repeat(count),
            Action::Visual(shape) => return self.visual(shape, count),
            Action::Reselect => return self.reselect(),
            Action::SwapEnds => {
                std::mem::swap(&mut self.vim.anchor, &mut self.cursor);
                self.vim.want = self.column_here();
                return Outcome::Done;
            }
            Action::CommandLine => {
                self.vim.leave_visual();
                self.vim.mode = VimMode::Command;
                return Outcome::Done;
            }
            Action::Search if self.settings.host == Host::Prompt => return Outcome::SearchHistory,
            Action::Search => return Outcome::Beep,
            Action::Submit if self.settings.host == Host::Prompt => return Outcome::Submit,
            Action::Submit => return self.go(Motion::NextLine, count),
            Action::Escape => return self.escape(),
            Action::Operate(operator, target) => self.operate(operator, target, count, register),
            Action::Enter(entry) => {
                self.enter_insert(entry, count);
                Outcome::Done
            }
            Action::Put(side) => self.put(side, count, register),
            Action::Replace(with) => self.replace(with, count),
            Action::ReplaceWithBreak => self.replace_with_break(count),
            Action::SwapCaseHere => self.swap_case_here(count),
            Action::Join(joint) => self.join(joint, count),
        };
        // A `J` with nothing to join is still what `.` repeats when it ended a selection.
        let ended_selection = matches!(action, Action::Join(_)) && area.is_some();
        if outcome == Outcome::Beep && !ended_selection {
            return outcome;
        }
        if !matches!(action, Action::Operate(Operator::Yank, _)) && !self.vim.repeating {
            let action = match (action, area) {
                (Action::Operate(operator, Target::Selection(shape)), Some(area)) => {
                    let area = command::Area { shape: shape.unwrap_or(area.shape), ..area };
                    Action::Operate(operator, Target::Area(area))
                }
                // What `.` repeats of a put over a selection is, in Vim, the deletion.
                (Action::Put(_), Some(area)) => Action::Operate(Operator::Delete, Target::Area(area)),
                _ => action,
            };
            let count = match (action, area) {
                (Action::Join(_), Some(area)) => u32::try_from(area.lines).ok(),
                _ => count,
            };
            // `P` over a selection keeps the registers, and so does its repetition.
            let register = match command.action {
                Action::Put(command::Side::Before) if area.is_some() => Some('_'),
                Action::Put(_) if area.is_some() => None,
                _ => register,
            };
            let command = Command { register, count, action };
            self.vim.last_change = Some(Change { command, typed: Vec::new() });
        }
        if !matches!(self.vim.mode, VimMode::Insert(_)) {
            self.cursor = self.buffer.clamp_on(self.cursor);
            self.vim.want = self.column_here();
        }
        outcome
    }

    fn go(&mut self, motion: Motion, count: Option<u32>) -> Outcome {
        let who = if self.vim.selected_shape().is_some() { For::Selection } else { For::Cursor };
        self.remember_find(motion);
        let Some(reach) = self.reach(motion, count, who) else {
            return self.at_the_edge(motion);
        };
        self.cursor = if who == For::Selection { reach.to } else { self.buffer.clamp_on(reach.to) };
        self.vim.want = reach.want.unwrap_or_else(|| self.column_here());
        match reach.arrival {
            Arrival::There => Outcome::Done,
            Arrival::Short => Outcome::Beep,
        }
    }

    /// `;` repeats the last search typed, found or not; not one that `.` made.
    fn remember_find(&mut self, motion: Motion) {
        if let Motion::Find(find) = motion
            && !self.vim.repeating
        {
            self.vim.find = Some(find);
        }
    }

    /// `j` and `k` with nowhere to go lead to the prompt's history.
    fn at_the_edge(&self, motion: Motion) -> Outcome {
        let prompt = self.settings.host == Host::Prompt && self.vim.selected_shape().is_none();
        match motion {
            Motion::Up if prompt => Outcome::History(HistoryStep::Older),
            Motion::Down if prompt => Outcome::History(HistoryStep::Newer),
            _ => Outcome::Beep,
        }
    }

    fn select(&mut self, extent: command::Extent, object: command::Object, count: Option<u32>) -> Outcome {
        let covered = match self.covered(extent, object, count) {
            Ok(covered) => covered,
            Err(missing) => {
                if let Some((anchor, cursor)) = missing.stopped {
                    self.vim.anchor = anchor;
                    self.cursor = cursor;
                }
                return Outcome::Beep;
            }
        };
        self.vim.anchor = covered.start;
        self.cursor = covered.end;
        self.vim.mode = VimMode::Visual(covered.shape);
        self.vim.want = self.column_here();
        Outcome::Done
    }

    fn visual(&mut self, shape: Shape, count: Option<u32>) -> Outcome {
        match self.vim.selected_shape() {
            Some(before) if before == shape => return self.escape(),
            Some(_) => {}
            None => {
                self.vim.anchor = self.cursor;
                if let Some(more) = count.filter(|count| *count > 1) {
                    self.vim.mode = VimMode::Visual(shape);
                    let motion = if shape == Shape::Lines { Motion::Down } else { Motion::Right };
                    return self.go(motion, Some(more - 1));
                }
            }
        }
        self.vim.mode = VimMode::Visual(shape);
        Outcome::Done
    }

    fn reselect(&mut self) -> Outcome {
        let Some((anchor, cursor, shape)) = self.vim.last_selection else { return Outcome::Beep };
        self.vim.anchor = self.buffer.clamp(anchor);
        self.cursor = self.buffer.clamp(cursor);
        self.vim.mode = VimMode::Visual(shape);
        self.vim.want = self.column_here();
        Outcome::Done
    }

    fn escape(&mut self) -> Outcome {
        if self.vim.selected_shape().is_none() {
            return Outcome::Ignored;
        }
        self.vim.leave_visual();
        let before = self.cursor;
        self.cursor = self.buffer.clamp_on(self.cursor);
        if before != self.cursor {
            self.vim.want = self.column_here();
        }
        Outcome::Done
    }

    fn go_through_history(&mut self, count: Option<u32>, step: fn(&mut Self) -> Option<Pos>) -> Outcome {
        if self.vim.selected_shape().is_some() {
            return Outcome::Beep;
        }
        let mut outcome = Outcome::Beep;
        for _ in 0..count.unwrap_or(1).max(1) {
            let Some(at) = step(self) else { break };
            self.cursor = self.buffer.clamp_on(at);
            outcome = Outcome::Done;
        }
        self.vim.want = self.column_here();
        outcome
    }

    pub(super) fn undo_once(&mut self) -> Option<Pos> {
        self.history.undo(&mut self.buffer)
    }

    pub(super) fn redo_once(&mut self) -> Option<Pos> {
        self.history.redo(&mut self.buffer)
    }

    fn repeat(&mut self, count: Option<u32>) -> Outcome {
        let Some(change) = &mut self.vim.last_change else { return Outcome::Beep };
        if count.is_some() {
            change.command.count = count;
        }
        let Change { command, typed } = change.clone();
        self.vim.repeating = true;
        let outcome = self.execute(command);
        if matches!(self.vim.mode, VimMode::Insert(_)) {
            self.type_again(&typed);
            if let VimMode::Insert(run) = &mut self.vim.mode {
                run.typed = typed;
            }
            self.leave_insert();
        }
        self.vim.repeating = false;
        outcome
    }
}
