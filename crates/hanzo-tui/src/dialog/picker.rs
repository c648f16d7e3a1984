//! A list to choose from, narrowed by typing.

use ratatui::text::{Line, Span};

use super::{Panel, Reply};
use crate::edit::{Key, KeyCode, Modifiers};
use crate::text;
use crate::theme::Theme;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<T> {
    /// What it is called.
    pub label: String,
    /// What else there is to know.
    pub detail: String,
    /// What choosing it means.
    pub value: T,
}

/// The list.
#[derive(Debug, Clone)]
pub struct Picker<T> {
    title: String,
    /// Sentences between the title and the list.
    notes: Vec<String>,
    entries: Vec<Entry<T>>,
    filter: String,
    selected: usize,
}

impl<T: Clone> Picker<T> {
    /// A list called `title`; the first entry is chosen.
    pub fn new(title: impl Into<String>, entries: Vec<Entry<T>>) -> Self {
        Self { title: title.into(), notes: Vec::new(), entries, filter: String::new(), selected: 0 }
    }

    /// The same list with sentences above it.
    #[must_use]
    pub fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.notes = notes;
        self
    }

    /// The same list with the first entry chosen that `is` so.
    #[must_use]
    pub fn starting_at(mut self, is: impl Fn(&T) -> bool) -> Self {
        self.selected = self.entries.iter().position(|entry| is(&entry.value)).unwrap_or(0);
        self
    }

    /// The same list, narrowed already.
    #[must_use]
    pub fn filtered(mut self, filter: &str) -> Self {
        filter.clone_into(&mut self.filter);
        self
    }

    /// Whether an entry is so.
    pub fn offers(&self, is: impl Fn(&T) -> bool) -> bool {
        self.entries.iter().any(|entry| is(&entry.value))
    }

    fn matching(&self) -> Vec<&Entry<T>> {
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let fits = |entry: &&Entry<T>| {
            let whole = format!("{} {}", entry.label, entry.detail).to_lowercase();
            words.iter().all(|word| whole.contains(word.as_str()))
        };
        self.entries.iter().filter(fits).collect()
    }

    /// A key.
    pub fn key(&mut self, key: Key) -> Reply<T> {
        let count = self.matching().len();
        match key.code {
            KeyCode::Escape => return Reply::Closed,
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected = (self.selected + 1).min(count.saturating_sub(1)),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(8),
            KeyCode::PageDown => self.selected = (self.selected + 8).min(count.saturating_sub(1)),
            KeyCode::Enter => {
                return self
                    .matching()
                    .get(self.selected)
                    .map_or(Reply::Stay, |entry| Reply::Done(entry.value.clone()));
            }
            KeyCode::Backspace => {
                self.filter.pop();
                self.selected = 0;
            }
            KeyCode::Char('p') if key.modifiers == Modifiers::CONTROL => {
                self.selected = self.selected.saturating_sub(1);
            }
            KeyCode::Char('n' | 'r') if key.modifiers == Modifiers::CONTROL => {
                self.selected = (self.selected + 1).min(count.saturating_sub(1));
            }
            KeyCode::Char('u') if key.modifiers == Modifiers::CONTROL => self.filter.clear(),
            _ => match key.typed() {
                Some(c) => {
                    self.filter.push(c);
                    self.selected = 0;
                }
                None => return Reply::Ignored,
            },
        }
        Reply::Stay
    }

    /// Chooses an entry by its place among those that fit; whether it was chosen already.
    pub fn select(&mut self, index: usize) -> bool {
        std::mem::replace(&mut self.selected, index) == index
    }

    /// Pasted text narrows the list too.
    pub fn paste(&mut self, text: &str) {
        self.filter.push_str(&text::one_line(text));
        self.selected = 0;
    }

    /// The panel. Its height depends on the number of entries, not on the filter, so that it does not jump about.
    pub fn panel(&self, width: usize, height: usize, theme: &Theme) -> Panel {
        let matching = self.matching();
        let mut rows = vec![Line::from(vec![
            Span::styled(text::clip(&self.title, width), theme.strong),
            Span::styled(
                if self.filter.is_empty() { String::new() } else { format!("  {}", self.filter) },
                theme.accent,
            ),
        ])];
        for note in &self.notes {
            let wrapped = text::wrap(&text::clean(note), width.saturating_sub(2).max(8));
            rows.extend(wrapped.into_iter().map(|row| Line::styled(format!("  {row}"), theme.dim)));
        }
        rows.truncate(height.saturating_sub(4).max(1));
        let room = height.saturating_sub(rows.len() + 1).clamp(1, 12);
        let shown = self.entries.len().clamp(1, room);
        let first = (self.selected + 1).saturating_sub(shown);
        let mut list: Vec<Line<'static>> = matching
            .iter()
            .enumerate()
            .skip(first)
            .take(shown)
            .map(|(index, entry)| row(entry, index == self.selected, &self.filter, width, theme))
            .collect();
        if list.is_empty() {
            list.push(Line::styled("  nothing fits", theme.dim));
        }
        list.resize(shown, Line::default());
        let answers = list.len() + 1;
        let seen = matching.len().saturating_sub(first).min(shown);
        let entries = (0..seen).map(|row| (rows.len() + row, first + row)).collect();
        rows.extend(list);
        let count = format!("  {}/{}", matching.len(), self.entries.len());
        let ways = [
            format!("{count} · type to narrow · Enter chooses · Esc closes"),
            format!("{count} · Enter chooses · Esc closes"),
            format!("{count} · Enter · Esc"),
        ];
        rows.push(Line::styled(text::fitting(&ways.each_ref().map(String::as_str), width), theme.dim));
        Panel { rows, answers, entries, ..Panel::default() }
    }
}

fn row<T>(entry: &Entry<T>, chosen: bool, filter: &str, width: usize, theme: &Theme) -> Line<'static> {
    let mark = match (chosen, theme.shapes()) {
        (true, true) => "❯ ",
        (true, false) => "* ",
        (false, _) => "  ",
    };
    let label = text::clip(&around(&text::one_line(&entry.label), filter, width), width.saturating_sub(2));
    let left = width.saturating_sub(4 + text::width(&label));
    let detail = if left > 8 { text::clip(&text::one_line(&entry.detail), left) } else { String::new() };
    let style = if chosen { theme.accent } else { ratatui::style::Style::new() };
    Line::from(vec![
        Span::styled(mark, theme.accent),
        Span::styled(label, style),
        Span::raw("  "),
        Span::styled(detail, theme.dim),
    ])
}

/// `label` from a little before the first word that was looked for, when that would not be in sight otherwise.
fn around(label: &str, filter: &str, width: usize) -> String {
    let Some(word) = filter.split_whitespace().next().map(str::to_lowercase) else { return label.to_owned() };
    // Where lower case has other lengths, the start is shown: better than a wrong place.
    let lower = label.to_lowercase();
    let Some(at) = lower.find(&word).filter(|_| lower.len() == label.len()) else { return label.to_owned() };
    if text::width(&label[..label.floor_char_boundary(at)]) + word.len() + 4 < width {
        return label.to_owned();
    }
    let start = label.floor_char_boundary(at.saturating_sub(width / 3));
    format!("…{}", &label[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_for_is_in_sight() {
        let label = format!("{} needle {}", "hay ".repeat(50), "hay ".repeat(50));
        assert!(around(&label, "Needle", 40).contains("needle"));
        assert_eq!(around("a needle", "needle", 40), "a needle");
        assert_eq!(around(&label, "", 40), label);
    }
}
