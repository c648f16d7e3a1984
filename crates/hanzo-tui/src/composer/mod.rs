//! The composer: the text being written, what was pasted or attached, and what was written before.

mod history;

use std::time::Duration;

use hanzo_protocol::engine::Posture;
use hanzo_protocol::message::Attachment;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;

pub use history::PromptHistory;

use crate::edit::{Editor, HistoryStep, InputMode, Key, Mode, Outcome, Pos, Settings};
use crate::text::{self, wrap_line};
use crate::theme::Theme;

/// From how many lines or bytes on a paste is shown as a chip.
const CHIP_LINES: usize = 6;
const CHIP_BYTES: usize = 1_000;

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    /// The text, chips replaced by what they stand for.
    pub text: String,
    /// Images and documents.
    pub attachments: Vec<Attachment>,
    /// The text as it was typed, for the history and for showing it while it waits.
    pub typed: String,
    /// The posture until the turn that it begins ends.
    pub posture: Option<Posture>,
}

impl Prompt {
    /// Words that are sent as they are shown.
    pub fn of(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { typed: text.clone(), text, ..Self::default() }
    }
}

/// What a chip stands for.
#[derive(Debug, Clone)]
enum Held {
    Text(String),
    Attachment(Attachment),
}

/// A word of the text that `/` or `@` begins, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// What follows the sign, up to the cursor.
    pub typed: String,
    /// The byte at which the sign stands.
    pub start: usize,
    /// The byte of the cursor.
    pub end: usize,
}

/// The composer.
#[derive(Debug, Clone)]
pub struct Composer {
    editor: Editor,
    chips: Vec<(String, Held)>,
    /// Numbers the chips of one draft.
    pasted: usize,
    /// What was asked before.
    pub history: PromptHistory,
}

impl Composer {
    /// An empty composer.
    pub fn new(input: InputMode, history: PromptHistory) -> Self {
        let settings = Settings { input, ..Settings::default() };
        Self { editor: Editor::new("", settings), chips: Vec::new(), pasted: 0, history }
    }

    /// The editor, for its state.
    pub fn editor(&self) -> &Editor {
        &self.editor
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.editor.is_empty()
    }

    /// The text as it is shown.
    pub fn text(&self) -> String {
        self.editor.text()
    }

    /// Whether what is written is a command for the shell.
    pub fn is_shell(&self) -> bool {
        self.editor.line(0).is_some_and(|line| line.starts_with('!'))
    }

    /// A key. History steps are dealt with here.
    pub fn key(&mut self, key: Key, now: Duration) -> Outcome {
        let before = self.editor.text();
        let outcome = self.editor.key(key, now);
        match outcome {
            Outcome::History(step) => {
                self.step(step);
                Outcome::Done
            }
            outcome => {
                if self.editor.text() != before {
                    self.history.stop_browsing();
                }
                outcome
            }
        }
    }

    /// Goes through the prompts of before.
    pub fn step(&mut self, step: HistoryStep) {
        let text = match step {
            HistoryStep::Older => self.history.older(&self.editor.text()).map(str::to_owned),
            HistoryStep::Newer => self.history.newer(),
        };
        if let Some(text) = text {
            self.editor.set_text(&text);
        }
    }

    /// Drops an unfinished command of the vim keys whose time is over.
    pub fn tick(&mut self, now: Duration) -> bool {
        self.editor.tick(now)
    }

    /// Text from the clipboard. Much of it becomes a chip.
    pub fn paste(&mut self, pasted: &str) {
        let pasted = without_controls(pasted);
        let lines = pasted.lines().count();
        if lines < CHIP_LINES && pasted.len() < CHIP_BYTES {
            self.editor.paste(&pasted);
            return;
        }
        self.pasted += 1;
        let size = if lines > 1 {
            format!("{lines} lines")
        } else {
            format!("{} characters", pasted.chars().count())
        };
        let label = format!("[Pasted #{}: {size}]", self.pasted);
        self.editor.paste(&label);
        self.chips.push((label, Held::Text(pasted)));
    }

    /// Attaches an image or a document.
    pub fn attach(&mut self, attachment: Attachment) {
        self.pasted += 1;
        let name = attachment.name.clone().unwrap_or_else(|| attachment.media_type.clone());
        let label = format!("[Image #{}: {}]", self.pasted, text::one_line(&name));
        let space = if self.editor.is_empty() { "" } else { " " };
        self.editor.paste(&format!("{space}{label} "));
        self.chips.push((label, Held::Attachment(attachment)));
    }

    /// Puts text in at the cursor.
    pub fn insert(&mut self, text: &str) {
        self.editor.paste(text);
    }

    /// Replaces the whole text.
    pub fn set_text(&mut self, text: &str) {
        self.editor.set_text(text);
    }

    /// Begins anew, remembering what was written.
    pub fn clear_to_history(&mut self) {
        let text = self.editor.text();
        self.history.add(&text);
        self.reset();
    }

    /// Takes what is written, to be sent.
    pub fn take(&mut self) -> Prompt {
        let typed = self.editor.text();
        let mut prompt = Prompt::of(typed.clone());
        for (label, held) in self.chips.drain(..) {
            if !typed.contains(&label) {
                continue;
            }
            match held {
                Held::Text(whole) => prompt.text = prompt.text.replacen(&label, &whole, 1),
                Held::Attachment(attachment) => prompt.attachments.push(attachment),
            }
        }
        self.history.add(&prompt.text);
        self.reset();
        prompt
    }

    /// The text with every chip opened, for an editor.
    pub fn opened(&self) -> String {
        let mut whole = self.editor.text();
        for (label, held) in &self.chips {
            if let Held::Text(text) = held {
                whole = whole.replacen(label, text, 1);
            }
        }
        whole
    }

    fn reset(&mut self) {
        let settings = *self.editor.settings();
        self.editor = Editor::new("", settings);
        self.chips.clear();
        self.pasted = 0;
    }

    /// Other keys from now on.
    pub fn set_input(&mut self, input: InputMode) {
        let settings = Settings { input, ..*self.editor.settings() };
        self.editor.configure(settings);
    }

    /// How long an unfinished command of the vim keys waits from now on.
    pub fn set_pending_timeout(&mut self, pending_timeout: Duration) {
        let settings = Settings { pending_timeout, ..*self.editor.settings() };
        self.editor.configure(settings);
    }

    /// The command being typed: the text begins with `/` and the cursor is in its first word.
    pub fn slash_word(&self) -> Option<Word> {
        let end = self.editor.byte_offset(self.editor.cursor());
        let before = self.before_cursor(end);
        let typed = before.strip_prefix('/')?;
        (!typed.contains(char::is_whitespace)).then(|| Word { typed: typed.to_owned(), start: 0, end })
    }

    /// The reference being typed: a word that begins with `@`, up to the cursor.
    pub fn at_word(&self) -> Option<Word> {
        let end = self.editor.byte_offset(self.editor.cursor());
        let before = self.before_cursor(end);
        let start = before.rfind('@')?;
        let begins = before[..start].chars().next_back().is_none_or(|c| c.is_whitespace() || c == '(');
        let typed = &before[start + 1..];
        let quoted = typed.starts_with('"');
        let open = if quoted { !typed[1..].contains('"') } else { !typed.contains(char::is_whitespace) };
        (begins && open).then(|| Word { typed: typed.to_owned(), start, end })
    }

    fn before_cursor(&self, end: usize) -> String {
        let mut text = self.editor.text();
        text.truncate(end);
        text
    }

    /// Puts `with` in the place of a word; the cursor goes behind it.
    pub fn replace(&mut self, word: &Word, with: &str) {
        let text = self.editor.text();
        let (before, after) = (&text[..word.start], &text[word.end..]);
        let place = before.len() + with.len();
        let whole = format!("{before}{with}{after}");
        self.editor.set_text(&whole);
        let ahead = &whole[..place];
        let line = ahead.matches('\n').count();
        let col = ahead.rsplit('\n').next().unwrap_or_default().graphemes(true).count();
        self.editor.set_cursor(Pos::new(line, col));
    }

    /// The rows of the text in `width` columns, at most `most` of them round the caret, and the caret in them.
    pub fn rows(
        &self,
        width: usize,
        most: usize,
        theme: &Theme,
        hint: &str,
    ) -> (Vec<Line<'static>>, (usize, usize)) {
        let shell = self.is_shell();
        let (sign, style) = if shell { ("! ", theme.warn) } else { ("› ", theme.accent) };
        let sign = if theme.shapes() || shell { sign } else { "> " };
        if self.editor.is_empty() && self.editor.command_line().is_none() {
            let hint = text::clip(hint, width.saturating_sub(2));
            let line = Line::from(vec![Span::styled(sign, style), Span::styled(hint, theme.dim)]);
            return (vec![line], (0, 2));
        }
        let inner = width.saturating_sub(2).max(1);
        let cursor = self.editor.cursor();
        let mut rows: Vec<String> = Vec::new();
        let mut caret = (0, 0);
        for number in 0..self.editor.line_count() {
            let line = self.editor.line(number).unwrap_or_default();
            let skip = usize::from(shell && number == 0);
            let line: String =
                line.graphemes(true).skip(skip).map(|g| if g == "\t" { "    " } else { g }).collect();
            let original = self.editor.line(number).unwrap_or_default();
            let wrapped = wrap_line(&line, inner);
            if number == cursor.line {
                let ahead: String = original
                    .graphemes(true)
                    .take(cursor.col)
                    .skip(skip)
                    .map(|g| if g == "\t" { "    " } else { g })
                    .collect();
                caret = place(&wrapped, ahead.len(), inner);
                caret.0 += rows.len();
            }
            rows.extend(wrapped);
        }
        if caret.0 >= rows.len() {
            rows.push(String::new());
        }
        // Only a window of a long text is shown, the caret in it.
        let most = most.max(1);
        let first = (caret.0 + 1).saturating_sub(most);
        let shown = rows.into_iter().enumerate().skip(first).take(most);
        let lines = shown
            .map(|(number, row)| {
                let sign = if number == 0 { Span::styled(sign, style) } else { Span::raw("  ") };
                Line::from(vec![sign, Span::raw(row)])
            })
            .collect();
        (lines, (caret.0 - first, caret.1 + 2))
    }

    /// What the vim keys are waiting for, for the status line.
    pub fn mode_word(&self) -> Option<String> {
        if self.editor.settings().input != InputMode::Vim {
            return None;
        }
        let pending = self.editor.pending_keys();
        Some(match self.editor.mode() {
            Mode::Insert => "INSERT".to_owned(),
            Mode::Visual => "VISUAL".to_owned(),
            Mode::VisualLine => "V-LINE".to_owned(),
            Mode::Command => format!(":{}", self.editor.command_line().unwrap_or_default()),
            _ if pending.is_empty() => "NORMAL".to_owned(),
            _ => format!("NORMAL {pending}"),
        })
    }
}

/// Row and column of the byte `at` of a line that was broken into `rows`.
fn place(rows: &[String], at: usize, width: usize) -> (usize, usize) {
    let mut before = 0;
    for (number, row) in rows.iter().enumerate() {
        let last = number + 1 == rows.len();
        if at < before + row.len() || last {
            let column = text::width(&row[..(at - before).min(row.len())]);
            // At the very edge the caret is at the start of the next row.
            return if column >= width { (number + 1, 0) } else { (number, column) };
        }
        before += row.len();
    }
    (0, 0)
}

fn without_controls(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}
