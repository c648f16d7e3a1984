//! Insert mode: typing, and what is remembered of it so that a count or `.` can type it again.

use super::super::buffer::Pos;
use super::super::cell::{Words, class};
use super::super::key::{Key, KeyCode, Modifiers};
use super::super::{Editor, Host, Outcome};
use super::command::{Action, Command, Entry};
use super::{State, VimMode};

/// What is typed again is cut here, like counts.
const MOST_TYPED: usize = 4 << 20;

/// One thing done while typing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    Text(String),
    Backspace,
    Delete,
    DeleteWord,
    DeleteLine,
}

/// One stay in insert mode.
#[derive(Debug, Clone, Default)]
pub(crate) struct InsertRun {
    pub typed: Vec<Typed>,
    /// How many more times to type it at the end.
    pub again: u32,
    /// `o` and `O` open a line for each of them.
    pub opens_lines: bool,
    /// Where it began; Ctrl-W and Ctrl-U stop here once.
    pub start: Pos,
}

impl Editor {
    pub(super) fn enter_insert(&mut self, entry: Entry, count: Option<u32>) {
        let Pos { line, col } = self.cursor;
        let length = self.buffer.len(line);
        let mut opens_lines = false;
        match entry {
            Entry::Before => {}
            Entry::After => self.cursor.col = (col + 1).min(length),
            Entry::LineStart => self.cursor.col = self.buffer.indent(line),
            Entry::LineEnd => self.cursor.col = length,
            Entry::Below | Entry::Above => {
                self.history.before_change(&self.buffer, self.cursor);
                let new = line + usize::from(entry == Entry::Below);
                self.buffer.insert_line(new, "");
                self.cursor = Pos::new(new, 0);
                opens_lines = true;
            }
        }
        self.start_insert();
        if let VimMode::Insert(run) = &mut self.vim.mode {
            run.again = count.unwrap_or(1).max(1) - 1;
            run.opens_lines = opens_lines;
        }
    }

    pub(super) fn start_insert(&mut self) {
        self.vim.mode = VimMode::Insert(InsertRun { start: self.cursor, ..InsertRun::default() });
    }

    pub(super) fn insert_key(&mut self, key: Key) -> Outcome {
        let plain = key.modifiers == Modifiers::NONE;
        let prompt = self.settings.host == Host::Prompt;
        match key.code {
            KeyCode::Escape => return self.leave_insert(),
            KeyCode::Char('[') if key == Key::ctrl('[') => return self.leave_insert(),
            KeyCode::Enter if plain && prompt => {
                if !self.backslash_before_cursor() {
                    return Outcome::Submit;
                }
                self.type_one(Typed::Backspace);
                self.type_one(Typed::Text("\n".to_owned()));
            }
            KeyCode::Enter => self.type_one(Typed::Text("\n".to_owned())),
            KeyCode::Char('j') if key == Key::ctrl('j') => self.type_one(Typed::Text("\n".to_owned())),
            KeyCode::Tab if plain && !prompt => self.type_one(Typed::Text("\t".to_owned())),
            KeyCode::Backspace if key.modifiers.contains(Modifiers::ALT) => self.type_one(Typed::DeleteWord),
            KeyCode::Backspace => self.type_one(Typed::Backspace),
            KeyCode::Char('h') if key == Key::ctrl('h') => self.type_one(Typed::Backspace),
            KeyCode::Char('w') if key == Key::ctrl('w') => self.type_one(Typed::DeleteWord),
            KeyCode::Char('u') if key == Key::ctrl('u') => self.type_one(Typed::DeleteLine),
            KeyCode::Delete if plain => self.type_one(Typed::Delete),
            KeyCode::Left | KeyCode::Right | KeyCode::Up | KeyCode::Down | KeyCode::Home | KeyCode::End
                if plain =>
            {
                return self.move_while_typing(key.code);
            }
            _ => match key.typed() {
                Some(c) => self.type_one(Typed::Text(c.to_string())),
                None => return Outcome::Ignored,
            },
        }
        Outcome::Done
    }

    pub(super) fn backslash_before_cursor(&self) -> bool {
        let Pos { line, col } = self.cursor;
        col > 0 && self.buffer.char(Pos::new(line, col - 1)) == Some('\\')
    }

    /// The arrow keys end what counts as one change; the rest is a new one.
    fn move_while_typing(&mut self, code: KeyCode) -> Outcome {
        let Pos { line, col } = self.cursor;
        let last = self.buffer.last_line();
        if !matches!(code, KeyCode::Up | KeyCode::Down) {
            self.vim.want = self.column_here();
        }
        let to = match code {
            KeyCode::Left if col > 0 => Pos::new(line, col - 1),
            KeyCode::Right if col < self.buffer.len(line) => Pos::new(line, col + 1),
            KeyCode::Home => Pos::new(line, 0),
            KeyCode::End => Pos::new(line, self.buffer.len(line)),
            KeyCode::Up | KeyCode::Down => {
                let next = if code == KeyCode::Up { line.checked_sub(1) } else { Some(line + 1) };
                let Some(next) = next.filter(|next| *next <= last) else { return self.edge(code) };
                if self.vim.state == State::Typed {
                    self.vim.want = self.column_here();
                }
                self.kept_column(next, super::motion::For::Selection)
            }
            _ => return Outcome::Beep,
        };
        // As in Vim, what was moved out of is not typed again, whatever its count; the place to go to was found without that.
        if let VimMode::Insert(run) = &mut self.vim.mode {
            run.again = 0;
        }
        self.finish_run();
        self.history.close(&self.buffer);
        self.vim.last_change = Some(super::Change {
            command: Command { register: None, count: None, action: Action::Enter(Entry::Before) },
            typed: Vec::new(),
        });
        self.cursor = to;
        self.vim.state = State::Moved;
        self.start_insert();
        Outcome::Done
    }

    fn type_one(&mut self, typed: Typed) {
        self.vim.state = State::Typed;
        if !self.apply_typed(&typed) {
            return;
        }
        if let VimMode::Insert(run) = &mut self.vim.mode {
            match (run.typed.last_mut(), &typed) {
                (Some(Typed::Text(before)), Typed::Text(more)) => before.push_str(more),
                _ => run.typed.push(typed),
            }
        }
    }

    /// Text that came from a paste, as if it were typed.
    pub(super) fn type_text(&mut self, text: &str) {
        self.type_one(Typed::Text(text.to_owned()));
    }

    /// Returns whether there was anything to do; what was refused is not remembered.
    fn apply_typed(&mut self, typed: &Typed) -> bool {
        self.history.before_change(&self.buffer, self.cursor);
        let at = self.cursor;
        let refused = match typed {
            Typed::Text(_) => false,
            Typed::Delete => at == self.buffer.end(),
            _ => at == Pos::default(),
        };
        match typed {
            Typed::Text(text) => self.cursor = self.buffer.insert(at, text),
            Typed::Backspace => self.delete_back(|_, at| Pos::new(at.line, at.col - 1)),
            Typed::DeleteWord => self.delete_back(Self::word_before),
            Typed::DeleteLine => self.delete_back(Self::line_before),
            Typed::Delete => {
                let mut after = at;
                self.buffer.forward(&mut after);
                self.cursor = self.buffer.delete(at, after);
            }
        }
        !refused
    }

    fn delete_back(&mut self, to: fn(&Self, Pos) -> Pos) {
        let at = self.cursor;
        let start = if at.col > 0 {
            to(self, at)
        } else if at.line > 0 {
            let joint = Pos::new(at.line - 1, self.buffer.len(at.line - 1));
            if let VimMode::Insert(run) = &mut self.vim.mode
                && run.start.line == at.line
            {
                run.start = joint;
            }
            joint
        } else {
            return;
        };
        self.cursor = self.buffer.delete(start, at);
    }

    /// Where this stay in insert mode began, if that is in the cursor's line and before it.
    fn stop_at(&self, at: Pos) -> usize {
        match &self.vim.mode {
            VimMode::Insert(run) if run.start.line == at.line && run.start.col < at.col => run.start.col,
            _ => 0,
        }
    }

    fn word_before(&self, at: Pos) -> Pos {
        let stop = self.stop_at(at);
        let cells = self.buffer.line(at.line);
        let mut col = at.col;
        while col > stop && cells[col - 1].is_blank() {
            col -= 1;
        }
        if col > stop {
            let kind = class(cells.get(col - 1), Words::Small);
            while col > stop && class(cells.get(col - 1), Words::Small) == kind {
                col -= 1;
            }
        }
        Pos::new(at.line, col)
    }

    fn line_before(&self, at: Pos) -> Pos {
        Pos::new(at.line, self.stop_at(at))
    }

    /// Types the run again as often as its count says, and remembers it for `.`.
    fn finish_run(&mut self) {
        let VimMode::Insert(run) = &self.vim.mode else { return };
        let run = run.clone();
        if let ([Typed::Text(text)], false) = (run.typed.as_slice(), run.opens_lines) {
            let times = (run.again as usize).min(MOST_TYPED / text.len().max(1));
            self.apply_typed(&Typed::Text(text.repeat(times)));
            self.remember_typed(&run.typed);
            return;
        }
        let size: usize =
            run.typed.iter().map(|typed| if let Typed::Text(text) = typed { text.len() } else { 1 }).sum();
        for done in 0..run.again {
            if size.max(1).saturating_mul(done as usize) > MOST_TYPED {
                break;
            }
            if run.opens_lines {
                let new = self.cursor.line + 1;
                self.buffer.insert_line(new, "");
                self.cursor = Pos::new(new, 0);
            }
            self.type_again(&run.typed);
        }
        self.remember_typed(&run.typed);
    }

    fn remember_typed(&mut self, typed: &[Typed]) {
        if let Some(change) = &mut self.vim.last_change
            && !self.vim.repeating
        {
            change.typed = typed.to_vec();
        }
    }

    pub(super) fn type_again(&mut self, typed: &[Typed]) {
        for one in typed {
            self.apply_typed(one);
        }
    }

    pub(super) fn leave_insert(&mut self) -> Outcome {
        self.finish_run();
        self.history.close(&self.buffer);
        self.vim.mode = VimMode::Normal;
        self.vim.state = State::Moved;
        self.cursor.col = self.cursor.col.saturating_sub(1);
        self.cursor = self.buffer.clamp_on(self.cursor);
        self.vim.want = self.column_here();
        Outcome::Done
    }

    /// A vertical key on the first or last line.
    fn edge(&self, code: KeyCode) -> Outcome {
        match (self.settings.host, code) {
            (Host::Prompt, KeyCode::Up) => Outcome::History(super::super::HistoryStep::Older),
            (Host::Prompt, _) => Outcome::History(super::super::HistoryStep::Newer),
            (Host::Text, _) => Outcome::Beep,
        }
    }
}
