//! A question of the agent: answers to choose from, or the user's own words.

use std::time::Duration;

use hanzo_protocol::item::Question;
use ratatui::text::Line;

use super::{Field, Panel, Reply, choice};
use crate::edit::{InputMode, Key, KeyCode};
use crate::text;
use crate::theme::Theme;

/// The card.
#[derive(Debug, Clone)]
pub struct QuestionDialog {
    /// What is asked.
    pub question: Question,
    selected: usize,
    own_words: Option<Field>,
    input: InputMode,
}

impl QuestionDialog {
    /// A card for `question`.
    pub fn new(question: Question, input: InputMode) -> Self {
        let own_words = question.choices.is_empty().then(|| Field::new(input));
        Self { question, selected: 0, own_words, input }
    }

    /// A key.
    pub fn key(&mut self, key: Key, now: Duration) -> Reply<String> {
        let choices = self.question.choices.len();
        if let Some(field) = &mut self.own_words {
            return match field.key(key, now) {
                Reply::Done(text) if text.trim().is_empty() => Reply::Stay,
                Reply::Done(text) => Reply::Done(text),
                Reply::Closed if choices > 0 => {
                    self.own_words = None;
                    Reply::Stay
                }
                // A question has to be answered; stopping the turn is the way out.
                Reply::Closed => Reply::Closed,
                _ => Reply::Stay,
            };
        }
        match key.code {
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected = (self.selected + 1).min(choices),
            KeyCode::Char(digit @ '1'..='9') => {
                let index = digit as usize - '1' as usize;
                if let Some(answer) = self.question.choices.get(index) {
                    return Reply::Done(answer.clone());
                }
            }
            KeyCode::Char('o') => self.own_words = Some(Field::new(self.input)),
            KeyCode::Enter => match self.question.choices.get(self.selected) {
                Some(answer) => return Reply::Done(answer.clone()),
                None => self.own_words = Some(Field::new(self.input)),
            },
            KeyCode::Escape => return Reply::Closed,
            _ => return Reply::Ignored,
        }
        Reply::Stay
    }

    /// Chooses an answer by its place; whether it was chosen already.
    pub fn select(&mut self, index: usize) -> bool {
        std::mem::replace(&mut self.selected, index) == index
    }

    /// Pasted text.
    pub fn paste(&mut self, text: &str) {
        if let Some(field) = &mut self.own_words {
            field.paste(text);
        }
    }

    /// The panel.
    pub fn panel(&self, width: usize, height: usize, theme: &Theme) -> Panel {
        let inner = width.saturating_sub(2).max(8);
        let mut rows = vec![Line::styled("The agent asks", theme.warn)];
        let asked = text::wrap(&text::clean(&self.question.text), inner);
        // An answer that is cut is another one: it is wrapped, unless the question would have no room then.
        let column = width.saturating_sub(5).max(8);
        let wrap = |answer: &str| text::wrap(&text::one_line(answer), column);
        let own = "something else, in my own words";
        let choices = self.question.choices.iter().map(String::as_str).chain([own]);
        let mut answers: Vec<Vec<String>> = choices.map(wrap).collect();
        if answers.iter().map(Vec::len).sum::<usize>() + 4 > height {
            for answer in &mut answers {
                *answer = vec![text::clip(&answer.join(" "), column)];
            }
        }
        let room = height.saturating_sub(answers.iter().map(Vec::len).sum::<usize>() + 3).max(2);
        rows.extend(asked.into_iter().take(room).map(|row| Line::raw(format!("  {row}"))));
        if let Some(field) = &self.own_words {
            let (input, caret) = field.rows(width, theme, "your answer (Enter sends)");
            return Panel { rows, input, caret: Some(caret), ..Panel::default() };
        }
        let asked = rows.len();
        let mut entries = Vec::new();
        let last = answers.len() - 1;
        for (index, answer) in answers.into_iter().enumerate() {
            let key = match index {
                _ if index == last => "o".to_owned(),
                0..9 => (index + 1).to_string(),
                _ => " ".to_owned(),
            };
            entries.push((rows.len(), index));
            let mut answer = answer.into_iter();
            rows.push(choice(theme, index == self.selected, &key, answer.next().unwrap_or_default()));
            rows.extend(answer.map(|row| Line::raw(format!("     {row}"))));
        }
        let keys = ["  Enter chooses · Esc stops the turn", "  Enter · Esc stops"];
        rows.push(Line::styled(text::fitting(&keys, width), theme.dim));
        Panel { answers: rows.len() - asked, rows, entries, ..Panel::default() }
    }
}
