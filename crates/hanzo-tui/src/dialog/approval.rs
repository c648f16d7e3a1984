//! A request for consent: what will happen, why it is asked, and exactly what each answer grants.

use std::cell::Cell;
use std::time::Duration;

use hanzo_protocol::engine::ApprovalAnswer;
use hanzo_protocol::item::Approval;
use ratatui::text::{Line, Span};

use super::{Field, Panel, Reply, choice};
use crate::edit::{InputMode, Key, KeyCode};
use crate::text;
use crate::theme::Theme;
use crate::transcript::{Proposal, RenderContext};

/// What the user said.
pub type Verdict = ApprovalAnswer;

/// Where the rule an answer grants is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Beside,
    Above,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Once,
    Session,
    Always,
    Deny,
}

/// How far what is asked can be scrolled, and by how much at once so that no row is missed.
#[derive(Debug, Clone, Copy, Default)]
struct Sight {
    furthest: usize,
    page: usize,
}

/// The dialog.
#[derive(Debug, Clone)]
pub struct ApprovalDialog {
    /// What is asked.
    pub approval: Approval,
    /// The arguments of the call, for those who want to see them.
    pub arguments: Option<String>,
    proposal: Proposal,
    selected: usize,
    scope: usize,
    explained: bool,
    scroll: usize,
    /// On the screen it was last drawn on.
    sight: Cell<Sight>,
    reason: Option<Field>,
    input: InputMode,
}

impl ApprovalDialog {
    /// A dialog about `approval`.
    pub fn new(approval: Approval, arguments: Option<String>, input: InputMode) -> Self {
        let proposal = Proposal::of(&approval.tool, arguments.as_deref().unwrap_or_default());
        Self {
            approval,
            arguments,
            proposal,
            selected: 0,
            scope: 0,
            explained: false,
            scroll: 0,
            sight: Cell::default(),
            reason: None,
            input,
        }
    }

    fn options(&self) -> Vec<Answer> {
        if self.approval.scopes.is_empty() {
            return vec![Answer::Once, Answer::Deny];
        }
        vec![Answer::Once, Answer::Session, Answer::Always, Answer::Deny]
    }

    fn rule(&self) -> String {
        self.approval.scopes.get(self.scope).cloned().unwrap_or_default()
    }

    /// A key.
    pub fn key(&mut self, key: Key, now: Duration) -> Reply<Verdict> {
        if let Some(field) = &mut self.reason {
            return match field.key(key, now) {
                Reply::Done(text) => {
                    let reason = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
                    Reply::Done(ApprovalAnswer::Deny { reason })
                }
                Reply::Closed => {
                    self.reason = None;
                    Reply::Stay
                }
                _ => Reply::Stay,
            };
        }
        let options = self.options();
        let offered = !self.approval.scopes.is_empty();
        match key.code {
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected = (self.selected + 1).min(options.len() - 1),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(self.sight.get().page),
            KeyCode::PageDown => {
                self.scroll = (self.scroll + self.sight.get().page).min(self.sight.get().furthest);
            }
            KeyCode::Left | KeyCode::Right | KeyCode::Tab if offered => {
                let count = self.approval.scopes.len();
                let step = if key.code == KeyCode::Left { count - 1 } else { 1 };
                self.scope = (self.scope + step) % count;
            }
            KeyCode::Char('?') => self.explained = !self.explained,
            KeyCode::Char('y') => return Reply::Done(ApprovalAnswer::Once),
            KeyCode::Char('a') if offered => {
                return Reply::Done(ApprovalAnswer::Session { rule: self.rule() });
            }
            KeyCode::Char('p') if offered => {
                return Reply::Done(ApprovalAnswer::Always { rule: self.rule() });
            }
            KeyCode::Char('n') => self.reason = Some(Field::new(self.input)),
            KeyCode::Escape => return Reply::Done(ApprovalAnswer::Deny { reason: None }),
            KeyCode::Enter => match options[self.selected.min(options.len() - 1)] {
                Answer::Once => return Reply::Done(ApprovalAnswer::Once),
                Answer::Session => return Reply::Done(ApprovalAnswer::Session { rule: self.rule() }),
                Answer::Always => return Reply::Done(ApprovalAnswer::Always { rule: self.rule() }),
                Answer::Deny => self.reason = Some(Field::new(self.input)),
            },
            _ => return Reply::Ignored,
        }
        Reply::Stay
    }

    /// Pasted text goes into the reason.
    pub fn paste(&mut self, text: &str) {
        if let Some(field) = &mut self.reason {
            field.paste(text);
        }
    }

    /// Chooses an answer by its place; whether it was chosen already.
    pub fn select(&mut self, index: usize) -> bool {
        std::mem::replace(&mut self.selected, index) == index
    }

    /// The rows of the answers, and in which of them each begins.
    fn answers(&self, width: usize, place: Rule, theme: &Theme) -> (Vec<Line<'static>>, Vec<usize>) {
        let mut rows: Vec<Line<'static>> = Vec::new();
        let mut begins = Vec::new();
        let rule = text::one_line(&self.rule());
        let scopes = self.approval.scopes.len();
        let beside = match place {
            Rule::Beside => format!(": {rule}"),
            Rule::Above => String::new(),
        };
        if place == Rule::Above && scopes > 0 {
            let wrapped = text::wrap(&format!("Rule: {rule}"), width.saturating_sub(2).max(8));
            rows.extend(wrapped.into_iter().map(|row| Line::raw(format!("  {row}"))));
        }
        for (index, option) in self.options().into_iter().enumerate() {
            let (key, words) = match option {
                Answer::Once => ("y", "Yes, this once".to_owned()),
                Answer::Session => ("a", format!("Yes, until this thread ends{beside}")),
                Answer::Always => ("p", format!("Always, saved in your settings{beside}")),
                Answer::Deny => ("n", "No, and say why".to_owned()),
            };
            let inner = width.saturating_sub(5).max(8);
            let mut wrapped = match place {
                Rule::Beside => text::wrap(&words, inner),
                Rule::Above => vec![text::clip(&words, inner)],
            }
            .into_iter();
            begins.push(rows.len());
            rows.push(choice(theme, index == self.selected, key, wrapped.next().unwrap_or_default()));
            rows.extend(wrapped.map(|row| Line::raw(format!("     {row}"))));
        }
        let (other, short) = if scopes > 1 {
            let which = format!("{}/{scopes}", self.scope + 1);
            (format!("Tab other rule ({which}) · "), format!("Tab rule {which} · "))
        } else {
            (String::new(), String::new())
        };
        let ways = [
            format!("  {other}? explain · Esc no"),
            format!("  {short}? explain · Esc no"),
            "  ? · Esc no".to_owned(),
        ];
        let keys = text::fitting(&ways.each_ref().map(String::as_str), width);
        rows.push(Line::styled(keys, theme.dim));
        (rows, begins)
    }

    /// The panel. The answers are always in sight; what is asked scrolls.
    pub fn panel(&self, width: usize, height: usize, waiting: usize, theme: &Theme) -> Panel {
        let inner = width.saturating_sub(2).max(8);
        let title = if waiting > 0 {
            format!("Allow this?  ({waiting} more to answer)")
        } else {
            "Allow this?".to_owned()
        };
        let mut body: Vec<Line<'static>> = Vec::new();
        for row in text::wrap(&text::clean(&self.approval.summary), inner) {
            body.push(Line::raw(format!("  {row}")));
        }
        for row in text::wrap(&format!("Why it is asked: {}", text::clean(&self.approval.reason)), inner) {
            body.push(Line::from(vec![Span::raw("  "), Span::styled(row, theme.dim)]));
        }
        if self.explained {
            let call = self.arguments.as_deref().unwrap_or("{}");
            for row in text::wrap(&format!("The call: {} {}", self.approval.tool, text::clean(call)), inner) {
                body.push(Line::from(vec![Span::raw("  "), Span::styled(row, theme.dim)]));
            }
            let posture = "An answer for this thread or for ever covers every call its rule covers, and no other. \
                           `hanzo-dev permissions explain` says what a rule means; `/permissions` lists those in force.";
            for row in text::wrap(posture, inner) {
                body.push(Line::from(vec![Span::raw("  "), Span::styled(row, theme.dim)]));
            }
        }
        body.extend(self.proposal.draw(&RenderContext::new(width, *theme)));
        // What is granted is never cut. Where it does not fit beside both answers, it stands once above them.
        let (mut foot, mut begins) = (Vec::new(), Vec::new());
        if self.reason.is_none() {
            (foot, begins) = self.answers(width, Rule::Beside, theme);
            if foot.len() + 3 > height {
                (foot, begins) = self.answers(width, Rule::Above, theme);
            }
        }
        let room = height.saturating_sub(foot.len() + 1).max(1);
        let more = body.len() > room;
        // A row is for saying that there is more.
        let shown = if more { room.saturating_sub(1).max(1) } else { room };
        let furthest = body.len().saturating_sub(shown);
        self.sight.set(Sight { furthest, page: shown.saturating_sub(1).max(1) });
        let first = self.scroll.min(furthest);
        let mut rows = vec![Line::styled(text::clip(&title, width), theme.warn)];
        rows.extend(body.iter().skip(first).take(shown).cloned());
        if more {
            let left = body.len().saturating_sub(first + shown);
            let words = match left {
                0 => "  … this is the end, PgUp".to_owned(),
                1 => "  … 1 more row, PgDn".to_owned(),
                _ => format!("  … {left} more rows, PgDn"),
            };
            rows.push(Line::styled(text::clip(&words, width), theme.dim));
        }
        let answers = foot.len();
        let entries = begins.iter().enumerate().map(|(index, row)| (rows.len() + row, index)).collect();
        rows.extend(foot);
        let (input, caret) = match &self.reason {
            Some(field) => {
                let (rows, caret) = field.rows(width, theme, "why not? (Enter sends, Esc goes back)");
                (rows, Some(caret))
            }
            None => (Vec::new(), None),
        };
        Panel { rows, answers, entries, input, caret }
    }
}
