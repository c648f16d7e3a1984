//! The composer's editing core: text, a cursor, and what keys do to them, with vim, emacs or default keys. It draws nothing,
//! reads no clock and touches no terminal: the face gives it keys and the time, and does what the [`Outcome`] says.
//!
//! ```
//! use std::time::Duration;
//! use hanzo_tui::edit::{Editor, Key, Outcome, Settings, InputMode};
//!
//! let settings = Settings { input: InputMode::Vim, ..Settings::default() };
//! let mut editor = Editor::new("say \"hello\" now", settings);
//! let mut outcome = Outcome::Done;
//! for key in Key::parse_all("<Esc>0ci\"bye<Esc>:w<CR>").unwrap() {
//!     outcome = editor.key(key, Duration::ZERO);
//! }
//! assert_eq!(editor.text(), "say \"bye\" now");
//! assert_eq!(outcome, Outcome::Submit);
//! ```
//!
//! All state (mode, registers, pending operator, undo, kill ring) belongs to one [`Editor`], so two input widgets never see
//! each other's.
//!
//! Where the prompt differs from Vim on purpose, with [`Host::Prompt`]: Enter in normal mode submits; `j` and `k` on the last
//! and first line go through the prompt's history when no operator is pending; `/` searches that history; an operator that
//! waits longer than [`Settings::pending_timeout`] for its motion is dropped; and with [`Stepping::Grapheme`] an emoji made
//! of several code points is one stop. [`Settings::like_vim`] turns all of that off.

mod buffer;
mod cell;
mod history;
mod key;
mod plain;
mod registers;
mod vim;

use std::time::Duration;

pub use buffer::Pos;
pub use cell::Stepping;
pub use key::{Key, KeyCode, Modifiers, UnknownKey};
pub use registers::{RegisterText, TextKind};

use buffer::Buffer;
use history::History;
use plain::Plain;
use registers::{KillRing, Registers};
use vim::Vim;

/// Which keys the widget answers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum InputMode {
    /// What most programs share: arrows, Home and End, and the readline keys people try first.
    #[default]
    Default,
    /// The default keys, and what emacs and readline add to them (`M-f`, `C-t`, `C-_` …).
    Emacs,
    /// Modal editing.
    Vim,
}

impl InputMode {
    /// The mode's name in the settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Emacs => "emacs",
            Self::Vim => "vim",
        }
    }

    /// The mode with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Default, Self::Emacs, Self::Vim].into_iter().find(|mode| mode.name() == name)
    }
}

/// What surrounds the text, which decides what the keys at its edges mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Host {
    /// A prompt: Enter submits, the first and last line lead to the history, `/` in normal mode searches it.
    #[default]
    Prompt,
    /// A text of its own: Enter is a line break, nothing lies beyond the edges.
    Text,
}

/// How an editor behaves; may be changed at any time with [`Editor::configure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Which keys.
    pub input: InputMode,
    /// How long an unfinished command waits for its next key before it is dropped; zero waits for ever, as Vim does.
    pub pending_timeout: Duration,
    /// What one step of the cursor passes over. Taken when the editor is made.
    pub stepping: Stepping,
    /// What surrounds the text.
    pub host: Host,
    /// How many columns apart tab stops are; at least 1.
    pub tab_width: usize,
    /// How many columns `>` and `<` move.
    pub shift_width: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            input: InputMode::Default,
            pending_timeout: Duration::from_millis(500),
            stepping: Stepping::Grapheme,
            host: Host::Prompt,
            tab_width: 8,
            shift_width: 2,
        }
    }
}

impl Settings {
    /// Vim and nothing else: no timeout, no prompt around the text, Vim's idea of a character.
    pub fn like_vim() -> Self {
        Self {
            input: InputMode::Vim,
            pending_timeout: Duration::ZERO,
            stepping: Stepping::Character,
            host: Host::Text,
            ..Self::default()
        }
    }
}

/// The state a status line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Characters go into the text. Emacs and default keys are always here.
    Insert,
    /// Keys are commands.
    Normal,
    /// A command waits for the rest of its keys after an operator.
    OperatorPending,
    /// A selection of characters.
    Visual,
    /// A selection of lines.
    VisualLine,
    /// A line that begins with `:` is being typed.
    Command,
}

/// Which way to go through the prompt's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryStep {
    /// To the prompt before.
    Older,
    /// Back to the newer one.
    Newer,
}

/// What the face must do after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing but to draw: the key is dealt with.
    Done,
    /// The key means nothing to the editor; the face may have its own meaning for it.
    Ignored,
    /// The key was refused: a motion that cannot move, an operator that was cancelled.
    Beep,
    /// Send the text.
    Submit,
    /// Leave (`:q`): the face clears a draft or ends.
    Quit,
    /// Send the text, then leave (`:wq`).
    SubmitAndQuit,
    /// Put this text on the system's clipboard.
    Copy(String),
    /// Go through the prompt's history.
    History(HistoryStep),
    /// Open the search through the prompt's history.
    SearchHistory,
    /// The user chose other keys (`:set emacs`); already in force here, to be remembered by the face if it wishes.
    InputMode(InputMode),
    /// Something to tell the user, such as an unknown `:` command.
    Message(String),
}

/// One input widget's text, cursor and key state.
#[derive(Debug, Clone)]
pub struct Editor {
    buffer: Buffer,
    cursor: Pos,
    settings: Settings,
    history: History,
    registers: Registers,
    kills: KillRing,
    vim: Vim,
    plain: Plain,
}

impl Editor {
    /// An editor with `text`, the cursor at its end, ready to type.
    pub fn new(text: &str, settings: Settings) -> Self {
        let buffer = Buffer::new(text, settings.stepping);
        let cursor = buffer.end();
        Self {
            buffer,
            cursor,
            settings: Settings { tab_width: settings.tab_width.max(1), ..settings },
            history: History::default(),
            registers: Registers::default(),
            kills: KillRing::default(),
            vim: Vim::default(),
            plain: Plain::default(),
        }
    }

    /// Deals with one key. `now` is the time since any fixed moment; it only has to grow.
    pub fn key(&mut self, key: Key, now: Duration) -> Outcome {
        match self.settings.input {
            InputMode::Vim => self.vim_key(key, now),
            InputMode::Default | InputMode::Emacs => self.plain_key(key),
        }
    }

    /// Puts text in at the cursor, as one undo step; for pastes and completions. A selection is replaced.
    pub fn paste(&mut self, text: &str) {
        if self.settings.input == InputMode::Vim {
            self.vim_paste(text);
            return;
        }
        self.history.close(&self.buffer);
        self.history.before_change(&self.buffer, self.cursor);
        self.cursor = self.buffer.insert(self.cursor, text);
        self.history.close(&self.buffer);
        self.plain.forget();
    }

    /// The whole text.
    pub fn text(&self) -> String {
        self.buffer.text()
    }

    /// Replaces the whole text (a prompt from the history); one undo step, cursor at the end.
    pub fn set_text(&mut self, text: &str) {
        self.history.close(&self.buffer);
        self.history.before_change(&self.buffer, self.cursor);
        self.buffer = Buffer::new(text, self.buffer.stepping());
        self.history.close(&self.buffer);
        self.cursor = self.buffer.end();
        self.plain.forget();
        self.vim_text_replaced();
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// How many lines there are; never 0.
    pub fn line_count(&self) -> usize {
        self.buffer.last_line() + 1
    }

    /// The text of one line, without its break.
    pub fn line(&self, line: usize) -> Option<String> {
        (line <= self.buffer.last_line()).then(|| cell::text_of(self.buffer.line(line)))
    }

    /// Where the cursor is, by cell.
    pub fn cursor(&self) -> Pos {
        self.cursor
    }

    /// Moves the cursor (a mouse click) to the nearest place that exists; an unfinished command is dropped.
    pub fn set_cursor(&mut self, at: Pos) {
        self.cursor = self.buffer.clamp(at);
        self.plain.forget();
        self.vim_cursor_placed();
    }

    /// The cursor's column in Unicode scalar values, for callers that do not count in cells.
    pub fn cursor_scalar(&self) -> Pos {
        self.scalar(self.cursor)
    }

    /// The cell at a place given in Unicode scalar values.
    pub fn at_scalar(&self, at: Pos) -> Pos {
        let line = at.line.min(self.buffer.last_line());
        self.buffer.at_scalar(line, at.col)
    }

    /// The terminal column at which the cell at `at` starts.
    pub fn display_column(&self, at: Pos) -> usize {
        self.buffer.display_column(self.buffer.clamp(at), self.settings.tab_width)
    }

    /// The byte of [`Self::text`] at which the cell at `at` starts.
    pub fn byte_offset(&self, at: Pos) -> usize {
        let at = self.buffer.clamp(at);
        let bytes = |cells: &[cell::Cell]| cells.iter().map(cell::Cell::bytes).sum::<usize>();
        (0..at.line).map(|line| bytes(self.buffer.line(line)) + 1).sum::<usize>()
            + bytes(&self.buffer.line(at.line)[..at.col])
    }

    /// The other end of the selection, while there is one.
    pub fn anchor(&self) -> Option<Pos> {
        matches!(self.mode(), Mode::Visual | Mode::VisualLine).then_some(self.vim.anchor)
    }

    /// The other end of the selection in Unicode scalar values.
    pub fn anchor_scalar(&self) -> Option<Pos> {
        self.anchor().map(|anchor| self.scalar(anchor))
    }

    /// What the selection covers: from the first place up to and without the second.
    pub fn selection(&self) -> Option<(Pos, Pos)> {
        let anchor = self.anchor()?;
        let (start, end) = (anchor.min(self.cursor), anchor.max(self.cursor));
        Some(match self.mode() {
            Mode::VisualLine => (Pos::new(start.line, 0), Pos::new(end.line, self.buffer.len(end.line))),
            _ => (start, self.buffer.clamp(Pos::new(end.line, end.col + 1))),
        })
    }

    /// The state a status line shows.
    pub fn mode(&self) -> Mode {
        if self.settings.input == InputMode::Vim { self.vim.shown_mode() } else { Mode::Insert }
    }

    /// The keys of the unfinished command, for the status line; empty when none waits.
    pub fn pending_keys(&self) -> String {
        self.vim.pending_keys()
    }

    /// The line being typed in [`Mode::Command`], without its colon.
    pub fn command_line(&self) -> Option<&str> {
        (self.mode() == Mode::Command).then_some(self.vim.command_line.as_str())
    }

    /// A register's text; `None` names the unnamed one.
    pub fn register(&self, name: Option<char>) -> Option<&RegisterText> {
        self.registers.get(name)
    }

    /// Fills the unnamed register.
    pub fn set_register(&mut self, text: RegisterText) {
        self.registers.set_unnamed(text);
    }

    /// Tells the editor what the system's clipboard holds, for `"+p`.
    pub fn set_clipboard(&mut self, text: &str) {
        let kind = if text.ends_with('\n') { TextKind::Lines } else { TextKind::Characters };
        self.registers.set_clipboard(RegisterText { text: text.to_owned(), kind });
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Changes the settings; the text and its history stay, except that [`Settings::stepping`] is fixed.
    pub fn configure(&mut self, settings: Settings) {
        let stepping = self.settings.stepping;
        if settings.input != self.settings.input {
            self.history.close(&self.buffer);
            self.vim = Vim::default();
            self.plain.forget();
        }
        self.settings = Settings { stepping, tab_width: settings.tab_width.max(1), ..settings };
    }

    /// When an unfinished command will be dropped, so that the face can wake and call [`Self::tick`].
    pub fn deadline(&self) -> Option<Duration> {
        if self.settings.input != InputMode::Vim || self.settings.pending_timeout.is_zero() {
            return None;
        }
        self.vim.waiting_since().map(|since| since.saturating_add(self.settings.pending_timeout))
    }

    /// Drops the unfinished command when its time is over; returns whether anything changed.
    pub fn tick(&mut self, now: Duration) -> bool {
        let over = self.deadline().is_some_and(|deadline| now > deadline);
        if over {
            self.vim.drop_pending();
        }
        over
    }

    fn scalar(&self, at: Pos) -> Pos {
        Pos::new(at.line, self.buffer.scalars(at))
    }
}
