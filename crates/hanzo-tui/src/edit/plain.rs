//! The default and the emacs keys: no modes, a kill ring, undo by the word.

use super::buffer::{Buffer, Pos};
use super::cell::{Cell, Class, Words, class};
use super::key::{Key, KeyCode, Modifiers};
use super::registers::Kill;
use super::{Editor, HistoryStep, Host, InputMode, Outcome};

/// What the key before did, where that changes what a key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Last {
    #[default]
    Other,
    Typed,
    Killed,
    /// Put the text between the two places.
    Yanked(Pos, Pos),
    /// Up or down, which keep the column they began in.
    Vertical(usize),
    /// Ctrl+X, which waits for a second key.
    ControlX,
}

/// The state of the keys that have no modes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Plain {
    last: Last,
}

impl Plain {
    pub fn forget(&mut self) {
        self.last = Last::Other;
    }
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Left,
    Right,
    Up,
    Down,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    TextStart,
    TextEnd,
    Newline,
    Enter,
    DeleteLeft,
    DeleteRight,
    KillWordLeft,
    KillBlankWordLeft,
    KillWordRight,
    KillLineLeft,
    KillLineRight,
    Yank,
    YankPop,
    Undo,
    Redo,
    Transpose,
    UpperWord,
    LowerWord,
    CapitalWord,
}

impl Editor {
    pub(super) fn plain_key(&mut self, key: Key) -> Outcome {
        let before = std::mem::take(&mut self.plain.last);
        let emacs = self.settings.input == InputMode::Emacs;
        if emacs && key == Key::ctrl('x') {
            self.plain.last = Last::ControlX;
            // The face looks at the pair too: Ctrl+X Ctrl+E opens the external editor.
            return Outcome::Ignored;
        }
        if before == Last::ControlX {
            return if key == Key::ctrl('u') { self.edit(Edit::Undo, before) } else { Outcome::Ignored };
        }
        let edit = default_key(key).or_else(|| emacs.then(|| emacs_key(key)).flatten());
        if let Some(edit) = edit {
            return self.edit(edit, before);
        }
        match key.typed() {
            Some(c) => self.type_plain(c, before),
            None => return Outcome::Ignored,
        }
        Outcome::Done
    }

    /// A run of typed characters is one undo step until a blank ends a word.
    fn type_plain(&mut self, c: char, before: Last) {
        if before != Last::Typed {
            self.history.close(&self.buffer);
        }
        self.history.before_change(&self.buffer, self.cursor);
        let mut utf8 = [0; 4];
        self.cursor = self.buffer.insert(self.cursor, c.encode_utf8(&mut utf8));
        self.plain.last = if c.is_whitespace() { Last::Other } else { Last::Typed };
    }

    fn edit(&mut self, edit: Edit, before: Last) -> Outcome {
        self.history.close(&self.buffer);
        let outcome = self.apply(edit, before);
        self.history.close(&self.buffer);
        outcome
    }

    fn apply(&mut self, edit: Edit, before: Last) -> Outcome {
        let at = self.cursor;
        match edit {
            Edit::Left => return self.moved(|buffer, at| _ = buffer.backward(at)),
            Edit::Right => return self.moved(|buffer, at| _ = buffer.forward(at)),
            Edit::WordLeft => return self.moved(|buffer, at| *at = word_left(buffer, *at, Words::Small)),
            Edit::WordRight => return self.moved(|buffer, at| *at = word_right(buffer, *at)),
            Edit::LineStart => return self.moved(|_, at| at.col = 0),
            Edit::LineEnd => return self.moved(|buffer, at| at.col = buffer.len(at.line)),
            Edit::TextStart => return self.moved(|_, at| *at = Pos::default()),
            Edit::TextEnd => return self.moved(|buffer, at| *at = buffer.end()),
            Edit::Up | Edit::Down => return self.vertical(edit, before),
            Edit::Newline => self.replace_range(at, at, "\n"),
            Edit::Enter if self.settings.host == Host::Text => self.replace_range(at, at, "\n"),
            Edit::Enter => {
                let backslash = Pos::new(at.line, at.col.saturating_sub(1));
                if at.col == 0 || self.buffer.char(backslash) != Some('\\') {
                    return Outcome::Submit;
                }
                self.replace_range(backslash, at, "\n");
            }
            Edit::DeleteLeft => {
                let mut start = at;
                self.buffer.backward(&mut start);
                self.replace_range(start, at, "");
            }
            Edit::DeleteRight => {
                let mut end = at;
                self.buffer.forward(&mut end);
                self.replace_range(at, end, "");
            }
            Edit::KillWordLeft => {
                self.kill(word_left(&self.buffer, at, Words::Small), at, before, Kill::Before);
            }
            Edit::KillBlankWordLeft => {
                self.kill(word_left(&self.buffer, at, Words::Big), at, before, Kill::Before);
            }
            Edit::KillWordRight => self.kill(at, word_right(&self.buffer, at), before, Kill::After),
            Edit::KillLineLeft => {
                let mut start = Pos::new(at.line, 0);
                if at.col == 0 {
                    self.buffer.backward(&mut start);
                }
                self.kill(start, at, before, Kill::Before);
            }
            Edit::KillLineRight => {
                let mut end = Pos::new(at.line, self.buffer.len(at.line));
                if at == end {
                    self.buffer.forward(&mut end);
                }
                self.kill(at, end, before, Kill::After);
            }
            Edit::Yank => {
                let Some(text) = self.kills.newest().map(str::to_owned) else { return Outcome::Beep };
                self.replace_range(at, at, &text);
                self.plain.last = Last::Yanked(at, self.cursor);
            }
            Edit::YankPop => {
                let Last::Yanked(start, end) = before else { return Outcome::Beep };
                let Some(text) = self.kills.turn().map(str::to_owned) else { return Outcome::Beep };
                self.replace_range(start, end, &text);
                self.plain.last = Last::Yanked(start, self.cursor);
            }
            Edit::Undo => return self.through(Self::undo_once),
            Edit::Redo => return self.through(Self::redo_once),
            Edit::Transpose => return self.transpose(),
            Edit::UpperWord => self.case_word(|_, c| c.to_uppercase().collect()),
            Edit::LowerWord => self.case_word(|_, c| c.to_lowercase().collect()),
            Edit::CapitalWord => self.case_word(capital),
        }
        Outcome::Done
    }

    fn moved(&mut self, step: impl Fn(&Buffer, &mut Pos)) -> Outcome {
        step(&self.buffer, &mut self.cursor);
        Outcome::Done
    }

    fn through(&mut self, step: fn(&mut Self) -> Option<Pos>) -> Outcome {
        // Without modes the cursor belongs where the text changed, not on a cell of it.
        let before = self.buffer.clone();
        if step(self).is_none() {
            return Outcome::Beep;
        }
        self.cursor = change_end(&before, &self.buffer);
        Outcome::Done
    }

    fn vertical(&mut self, edit: Edit, before: Last) -> Outcome {
        let tab = self.settings.tab_width;
        let line = self.cursor.line;
        let next = if edit == Edit::Up { line.checked_sub(1) } else { Some(line + 1) };
        let Some(next) = next.filter(|next| *next <= self.buffer.last_line()) else {
            return match (self.settings.host, edit) {
                (Host::Text, _) => Outcome::Beep,
                (Host::Prompt, Edit::Up) => Outcome::History(HistoryStep::Older),
                (Host::Prompt, _) => Outcome::History(HistoryStep::Newer),
            };
        };
        let column = match before {
            Last::Vertical(column) => column,
            _ => self.buffer.display_column(self.cursor, tab),
        };
        self.cursor = self.buffer.at_display_column(next, column, tab);
        self.plain.last = Last::Vertical(column);
        Outcome::Done
    }

    fn replace_range(&mut self, start: Pos, end: Pos, text: &str) {
        self.history.before_change(&self.buffer, self.cursor);
        let start = self.buffer.delete(start, end);
        self.cursor = self.buffer.insert(start, text);
    }

    fn kill(&mut self, start: Pos, end: Pos, before: Last, side: Kill) {
        if start < end {
            let how = if before == Last::Killed { side } else { Kill::New };
            self.kills.kill(&self.buffer.slice(start, end), how);
            self.replace_range(start, end, "");
        }
        self.plain.last = Last::Killed;
    }

    fn transpose(&mut self) -> Outcome {
        let Pos { line, col } = self.cursor;
        let length = self.buffer.len(line);
        if length < 2 || col == 0 {
            return Outcome::Beep;
        }
        let second = col.min(length - 1);
        let at = |col| Pos::new(line, col);
        let left = self.buffer.slice(at(second - 1), at(second));
        let right = self.buffer.slice(at(second), at(second + 1));
        self.replace_range(at(second - 1), at(second + 1), &format!("{right}{left}"));
        Outcome::Done
    }

    fn case_word(&mut self, map: impl Fn(bool, char) -> String) {
        let start = self.cursor;
        let end = word_right(&self.buffer, start);
        let mut first = true;
        let mut text = String::new();
        for c in self.buffer.slice(start, end).chars() {
            text.push_str(&map(first, c));
            first &= !c.is_alphanumeric();
        }
        self.replace_range(start, end, &text);
    }
}

fn default_key(key: Key) -> Option<Edit> {
    let control = key.modifiers == Modifiers::CONTROL;
    let alt = key.modifiers == Modifiers::ALT;
    let plain = key.modifiers == Modifiers::NONE;
    Some(match key.code {
        KeyCode::Left if control || alt => Edit::WordLeft,
        KeyCode::Right if control || alt => Edit::WordRight,
        KeyCode::Left => Edit::Left,
        KeyCode::Right => Edit::Right,
        KeyCode::Up if plain => Edit::Up,
        KeyCode::Down if plain => Edit::Down,
        KeyCode::Home if plain => Edit::LineStart,
        KeyCode::End if plain => Edit::LineEnd,
        KeyCode::Enter if plain => Edit::Enter,
        // Alt+Enter, Shift+Enter and, where the terminal can tell it apart, Ctrl+Enter.
        KeyCode::Enter => Edit::Newline,
        KeyCode::Backspace if control || alt => Edit::KillWordLeft,
        KeyCode::Backspace => Edit::DeleteLeft,
        KeyCode::Delete if control || alt => Edit::KillWordRight,
        KeyCode::Delete => Edit::DeleteRight,
        KeyCode::Char(c) if control => match c {
            'j' => Edit::Newline,
            'a' => Edit::LineStart,
            'e' => Edit::LineEnd,
            'h' => Edit::DeleteLeft,
            'w' => Edit::KillBlankWordLeft,
            'u' => Edit::KillLineLeft,
            'k' => Edit::KillLineRight,
            'y' => Edit::Yank,
            '_' | '/' | '7' => Edit::Undo,
            _ => return None,
        },
        KeyCode::Char(c) if alt => match c {
            'b' => Edit::WordLeft,
            'f' => Edit::WordRight,
            'd' => Edit::KillWordRight,
            'y' => Edit::YankPop,
            '_' | '/' => Edit::Redo,
            _ => return None,
        },
        _ => return None,
    })
}

/// What emacs and readline add. Several of these have another meaning in the default keys, where the face has them.
fn emacs_key(key: Key) -> Option<Edit> {
    let KeyCode::Char(c) = key.code else { return None };
    if key.modifiers == Modifiers::CONTROL {
        return Some(match c {
            'b' => Edit::Left,
            'f' => Edit::Right,
            'p' => Edit::Up,
            'n' => Edit::Down,
            'd' => Edit::DeleteRight,
            't' => Edit::Transpose,
            _ => return None,
        });
    }
    if key.modifiers == Modifiers::ALT {
        return Some(match c {
            '<' => Edit::TextStart,
            '>' => Edit::TextEnd,
            'u' => Edit::UpperWord,
            'l' => Edit::LowerWord,
            'c' => Edit::CapitalWord,
            _ => return None,
        });
    }
    None
}

fn capital(first: bool, c: char) -> String {
    if first { c.to_uppercase().collect() } else { c.to_lowercase().collect() }
}

fn is_word(cell: Option<&Cell>, words: Words) -> bool {
    match class(cell, words) {
        Class::Blank => false,
        // For `Words::Big` all that is no blank is of this class.
        Class::Punctuation => words == Words::Big,
        _ => true,
    }
}

fn word_left(buffer: &Buffer, at: Pos, words: Words) -> Pos {
    let mut to = at;
    let mut inside = false;
    loop {
        let mut before = to;
        if buffer.backward(&mut before) == super::buffer::Stepped::Stuck {
            return to;
        }
        let word = is_word(buffer.cell(before), words);
        if inside && !word {
            return to;
        }
        inside |= word;
        to = before;
    }
}

fn word_right(buffer: &Buffer, at: Pos) -> Pos {
    let mut to = at;
    let mut inside = false;
    loop {
        let word = is_word(buffer.cell(to), Words::Small);
        if inside && !word {
            return to;
        }
        inside |= word;
        if buffer.forward(&mut to) == super::buffer::Stepped::Stuck {
            return to;
        }
    }
}

/// Where the part of `after` ends that differs from `before`.
fn change_end(before: &Buffer, after: &Buffer) -> Pos {
    let (old, new) = (before.lines(), after.lines());
    let most = old.len().min(new.len());
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(most - head.min(most))
        .take_while(|(a, b)| a == b)
        .count();
    let line = (new.len() - tail).saturating_sub(1);
    if new.len() - tail <= head {
        // Only whole lines went away.
        let line = head.saturating_sub(1).min(after.last_line());
        return Pos::new(line, after.len(line));
    }
    let old_line = old
        .len()
        .checked_sub(tail + 1)
        .filter(|line| *line >= head)
        .map_or(&[][..], |line| before.line(line));
    let cells = after.line(line);
    let same = cells.iter().rev().zip(old_line.iter().rev()).take_while(|(a, b)| a == b).count();
    Pos::new(line, cells.len() - same)
}
