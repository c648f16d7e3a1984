//! What appears above the composer while a command or a reference is typed. It keeps the composer; only a key changes its
//! height, never what the engine says.

use ratatui::text::{Line, Span};
use serde::Deserialize;

use hanzo_protocol::engine::{List, ListKind, Request};

use super::{App, Asked, Command};
use crate::composer::Word;
use crate::edit::{Key, KeyCode, Modifiers};
use crate::host::Completion;
use crate::text;
use crate::theme::Theme;

/// The most entries in sight.
const ROWS: usize = 8;

/// A slash command as the engine's registry lists it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SlashCommand {
    /// Its name, without the slash.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// What may follow.
    #[serde(default)]
    pub argument_hint: Option<String>,
    /// Who acts on it: `local`, `engine` or `turn`.
    pub kind: String,
}

/// What a menu completes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Sort {
    Slash,
    Reference,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Offer {
    label: String,
    detail: String,
    insert: String,
    /// Whether more is typed behind it.
    goes_on: bool,
}

/// The menu.
#[derive(Debug, Clone)]
pub(crate) struct Menu {
    sort: Sort,
    word: Word,
    offers: Vec<Offer>,
    selected: usize,
}

/// What the menu made of a key.
pub(super) enum Taken {
    /// It is dealt with.
    Yes,
    /// A whole command was chosen: it is to be run.
    Run,
    /// It is not for the menu.
    No,
}

impl Menu {
    /// Chooses an entry by its place; whether it was chosen already.
    pub fn select(&mut self, index: usize) -> bool {
        std::mem::replace(&mut self.selected, index) == index
    }

    /// How many entries are in sight where there are `most` rows for them, and the first of those.
    pub fn sight(&self, most: usize) -> (usize, usize) {
        let shown = self.offers.len().min(ROWS).min(most.max(1));
        (shown, (self.selected + 1).saturating_sub(shown))
    }

    /// Its rows.
    pub fn rows(&self, width: usize, most: usize, theme: &Theme) -> Vec<Line<'static>> {
        let (shown, first) = self.sight(most);
        let widest = self.offers.iter().map(|offer| text::width(&offer.label)).max().unwrap_or(0);
        // The descriptions say more than the longest of the hints.
        let column = widest.min(width / 3) + 2;
        self.offers
            .iter()
            .enumerate()
            .skip(first)
            .take(shown)
            .map(|(index, offer)| {
                let chosen = index == self.selected;
                let mark = match (chosen, theme.shapes()) {
                    (true, true) => "❯ ",
                    (true, false) => "* ",
                    (false, _) => "  ",
                };
                let label = text::clip(&offer.label, width.saturating_sub(2));
                let gap = column.saturating_sub(text::width(&label)).max(1);
                let room = width.saturating_sub(2 + text::width(&label) + gap);
                let detail = if room > 6 { text::clip(&offer.detail, room) } else { String::new() };
                let style = if chosen { theme.accent } else { ratatui::style::Style::new() };
                Line::from(vec![
                    Span::styled(mark, theme.accent),
                    Span::styled(label, style),
                    Span::raw(" ".repeat(gap)),
                    Span::styled(detail, theme.dim),
                ])
            })
            .collect()
    }
}

impl App {
    /// Opens, changes or closes the menu after the text has changed.
    pub(super) fn refresh_menu(&mut self, commands: &mut Vec<Command>) {
        let text = self.composer.text();
        if self.menu_closed_for.as_deref() == Some(text.as_str()) {
            return;
        }
        self.menu_closed_for = None;
        if let Some(word) = self.composer.slash_word() {
            // Servers that came since may have brought commands.
            if word.typed.is_empty()
                && !self.menu.as_ref().is_some_and(|menu| menu.sort == Sort::Slash)
                && let Some(id) = self.thread_id()
            {
                let list = List { kind: ListKind::Commands, thread_id: Some(id) };
                commands.push(Command::Call(Asked::Commands, Request::List(list)));
            }
            let offers = self.slash_offers(&word.typed);
            self.menu = (!offers.is_empty()).then_some(Menu { sort: Sort::Slash, word, offers, selected: 0 });
        } else if let Some(word) = self.composer.at_word() {
            // What is there stays until the answer is, so that the menu does not flicker.
            let typed = word.typed.clone();
            match &mut self.menu {
                Some(menu) if menu.sort == Sort::Reference => menu.word = word,
                _ => self.menu = None,
            }
            commands.push(Command::Complete(typed));
        } else {
            self.menu = None;
        }
    }

    fn slash_offers(&self, typed: &str) -> Vec<Offer> {
        let mut found: Vec<(i64, usize, Offer)> = Vec::new();
        for (index, command) in self.commands.iter().enumerate() {
            let Some(mut score) = text::fuzzy(typed, &command.name) else { continue };
            if command.name.starts_with(typed) {
                score += 10_000;
            }
            let hint = command
                .argument_hint
                .as_deref()
                .map(|hint| format!(" {}", text::one_line(hint)))
                .unwrap_or_default();
            let offer = Offer {
                label: format!("/{}{hint}", command.name),
                detail: text::one_line(&command.description),
                insert: format!("/{}", command.name),
                goes_on: command.argument_hint.as_deref().is_some_and(|hint| !hint.starts_with('[')),
            };
            // With nothing typed they stand in the order of the registry.
            found.push((if typed.is_empty() { 0 } else { -score }, index, offer));
        }
        found.sort_by_key(|(score, index, _)| (*score, *index));
        found.into_iter().map(|(_, _, offer)| offer).collect()
    }

    /// The commands were listed anew: an open menu has them at once.
    pub(super) fn menu_listed(&mut self, commands: &mut Vec<Command>) {
        if let Some(menu) = self.menu.as_ref().filter(|menu| menu.sort == Sort::Slash) {
            let selected = menu.selected;
            self.refresh_menu(commands);
            if let Some(menu) = &mut self.menu {
                menu.selected = selected.min(menu.offers.len().saturating_sub(1));
            }
        }
    }

    /// What could be typed, found for `typed`.
    pub(super) fn completions(&mut self, typed: &str, found: Vec<Completion>) {
        let Some(word) = self.composer.at_word().filter(|word| word.typed == typed) else { return };
        let offers: Vec<Offer> = found
            .into_iter()
            .map(|completion| Offer {
                label: text::one_line(&completion.label),
                detail: String::new(),
                insert: format!("@{}", completion.insert),
                goes_on: completion.goes_on,
            })
            .collect();
        self.menu = (!offers.is_empty()).then_some(Menu { sort: Sort::Reference, word, offers, selected: 0 });
    }

    /// Gives a key to the menu.
    pub(super) fn menu_key(&mut self, key: Key, commands: &mut Vec<Command>) -> Taken {
        let Some(menu) = &mut self.menu else { return Taken::No };
        let last = menu.offers.len().saturating_sub(1);
        let control = key.modifiers == Modifiers::CONTROL;
        match key.code {
            KeyCode::Up => menu.selected = menu.selected.checked_sub(1).unwrap_or(last),
            KeyCode::Char('p') if control => menu.selected = menu.selected.checked_sub(1).unwrap_or(last),
            KeyCode::Down => menu.selected = if menu.selected == last { 0 } else { menu.selected + 1 },
            KeyCode::Char('n') if control => {
                menu.selected = if menu.selected == last { 0 } else { menu.selected + 1 }
            }
            KeyCode::Escape => {
                self.menu = None;
                self.menu_closed_for = Some(self.composer.text());
            }
            KeyCode::Tab if key.modifiers == Modifiers::NONE => self.accept(commands),
            KeyCode::Enter if key.modifiers == Modifiers::NONE => {
                let runs = menu.sort == Sort::Slash
                    && menu.offers.get(menu.selected).is_some_and(|offer| !offer.goes_on);
                self.accept(commands);
                return if runs { Taken::Run } else { Taken::Yes };
            }
            _ => return Taken::No,
        }
        Taken::Yes
    }

    /// Puts the chosen entry into the text.
    fn accept(&mut self, commands: &mut Vec<Command>) {
        let Some(menu) = self.menu.take() else { return };
        let Some(offer) = menu.offers.get(menu.selected) else { return };
        let space = if menu.sort == Sort::Reference && offer.goes_on { "" } else { " " };
        self.composer.replace(&menu.word, &format!("{}{space}", offer.insert));
        self.refresh_menu(commands);
    }
}
