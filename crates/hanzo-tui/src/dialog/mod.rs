//! What asks the user something: consent, questions, lists to choose from. A dialog that owns the keys hides the composer; one
//! that is being typed in has an input of its own (seed 004 §3.8).

mod approval;
mod picker;
mod question;

use std::time::Duration;

use ratatui::text::{Line, Span};

pub use approval::{ApprovalDialog, Verdict};
pub use picker::{Entry, Picker};
pub use question::QuestionDialog;

use crate::composer::{Composer, PromptHistory};
use crate::edit::{InputMode, Key, KeyCode, Outcome};
use crate::text;
use crate::theme::Theme;

/// What became of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<T> {
    /// It is dealt with; the dialog stays.
    Stay,
    /// The dialog is answered.
    Done(T),
    /// The dialog is closed without an answer.
    Closed,
    /// The key is nothing to the dialog.
    Ignored,
}

/// How a dialog looks: its panel, and the input below it when it is typed in.
#[derive(Debug, Clone, Default)]
pub struct Panel {
    /// The rows of the panel.
    pub rows: Vec<Line<'static>>,
    /// How many of them, the last ones, are answers and the keys for them.
    pub answers: usize,
    /// Which row is which entry, for those who point at one.
    pub entries: Vec<(usize, usize)>,
    /// The rows of the input.
    pub input: Vec<Line<'static>>,
    /// The caret in the rows of the input.
    pub caret: Option<(usize, usize)>,
}

impl Panel {
    /// The same as it looks while it cannot be answered yet: the answers are dim, and instead of their keys it says why.
    #[must_use]
    pub fn waiting(mut self, width: usize, theme: &Theme) -> Self {
        let from = self.rows.len().saturating_sub(self.answers);
        for row in &mut self.rows[from..] {
            row.style = theme.dim;
            for span in &mut row.spans {
                span.style = theme.dim;
            }
        }
        if self.answers > 0 {
            self.rows.pop();
        }
        let words = if width < 40 { "  stop typing first" } else { "  (stop typing for a moment to answer)" };
        self.rows.push(Line::styled(text::clip(words, width), theme.warn));
        self.input.clear();
        self.caret = None;
        self
    }
}

/// A line of text being typed in a dialog, with the user's own keys and a state of its own.
#[derive(Debug, Clone)]
pub struct Field {
    composer: Composer,
}

impl Field {
    /// An empty field.
    pub fn new(input: InputMode) -> Self {
        Self { composer: Composer::new(input, PromptHistory::default()) }
    }

    /// A key: `Done` with the text on Enter, `Closed` on Escape.
    pub fn key(&mut self, key: Key, now: Duration) -> Reply<String> {
        let vim_inserts = self.composer.mode_word().is_some_and(|word| word != "NORMAL");
        if key.code == KeyCode::Escape && !vim_inserts {
            return Reply::Closed;
        }
        match self.composer.key(key, now) {
            Outcome::Submit | Outcome::SubmitAndQuit => Reply::Done(self.composer.take().text),
            Outcome::Quit => Reply::Closed,
            _ => Reply::Stay,
        }
    }

    /// Pasted text.
    pub fn paste(&mut self, text: &str) {
        self.composer.paste(text);
    }

    /// Its rows and caret.
    pub fn rows(&self, width: usize, theme: &Theme, hint: &str) -> (Vec<Line<'static>>, (usize, usize)) {
        self.composer.rows(width, 6, theme, hint)
    }
}

/// A row of a choice: a mark when it is chosen, its key, its text.
pub(crate) fn choice(theme: &Theme, chosen: bool, key: &str, text: String) -> Line<'static> {
    let mark = match (chosen, theme.shapes()) {
        (true, true) => "❯ ",
        (true, false) => "* ",
        (false, _) => "  ",
    };
    let style = if chosen { theme.accent } else { ratatui::style::Style::new() };
    Line::from(vec![
        Span::styled(mark, theme.accent),
        Span::styled(format!("{key}  "), theme.strong),
        Span::styled(text, style),
    ])
}
