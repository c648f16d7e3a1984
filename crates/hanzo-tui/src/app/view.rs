//! What the viewport shows: what is under way, what waits, the dialog or the composer, the status line.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{App, Armed, Dialog};
use crate::status;
use crate::terminal::View;
use crate::text;
use crate::transcript;

const SPINNER: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇", "⠏", "⠛"];

/// The parts of the viewport from top to bottom, for the tests of who owns the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What is under way.
    Live,
    /// The plan.
    Plan,
    /// What the agent does, what waits to be said.
    Activity,
    /// A dialog, a menu, the help.
    Panel,
    /// The status line.
    Status,
    /// The composer, or the input of a dialog.
    Composer,
}

/// The viewport, which rows belong to what, and in which rows there are entries to choose.
struct Arranged {
    view: View,
    parts: Vec<(Part, usize)>,
    entries: Vec<(usize, usize)>,
}

/// The panel and the composer.
struct Bottom {
    panel: Vec<Line<'static>>,
    /// In which rows of the panel there are entries to choose.
    entries: Vec<(usize, usize)>,
    composer: Vec<Line<'static>>,
    caret: Option<(usize, usize)>,
}

impl App {
    /// The viewport as it is now.
    pub fn view(&self) -> View {
        self.layout().0
    }

    /// The viewport, and which rows belong to what.
    pub fn layout(&self) -> (View, Vec<(Part, usize)>) {
        let Arranged { view, parts, .. } = self.arranged();
        (view, parts)
    }

    /// The entry of the dialog or the menu that stands in a row of the viewport.
    pub(super) fn entry_at(&self, row: usize) -> Option<usize> {
        self.arranged().entries.into_iter().find(|(at, _)| *at == row).map(|(_, index)| index)
    }

    fn arranged(&self) -> Arranged {
        let (width, height) = (self.size.0.max(1), self.size.1.max(2));
        let most = height.saturating_sub(1).max(2);
        let status = self.status(width);

        // From below: what must be in sight comes first.
        let mut left = most.saturating_sub(status.len());
        let Bottom { panel, entries, composer, caret } = self.bottom(width, left);
        left = left.saturating_sub(panel.len() + composer.len());
        let activity = self.activity(width, left.min(6));
        left = left.saturating_sub(activity.len());
        let context = self.context();
        let mut plan = Vec::new();
        if self.plan_shown && self.turn.is_some() && !self.plan.is_empty() && left > 4 {
            plan = transcript::plan(&self.plan, &context);
            if plan.len() > (left / 2).max(2) {
                plan = vec![transcript::plan_line(&self.plan, &context)];
            }
            plan.insert(0, Line::default());
        }
        left = left.saturating_sub(plan.len());
        let live = self.live.rows(&context, left.saturating_sub(1));
        let shown = live.len() + plan.len() + activity.len();
        // Air between the transcript and what is ours, where there is room for it.
        let air = usize::from(left > live.len() && live.is_empty() && plan.is_empty());
        let mut parts = vec![(Part::Live, live.len()), (Part::Plan, plan.len())];
        let mut rows: Vec<Line<'static>> = live;
        rows.extend(plan);
        let between = usize::from(!activity.is_empty() && left > rows.len());
        let before_activity = air.max(between);
        rows.extend(std::iter::repeat_n(Line::default(), before_activity));
        parts.push((Part::Activity, activity.len() + before_activity));
        rows.extend(activity);
        let before_panel = usize::from(!panel.is_empty() && shown > 0);
        rows.extend(std::iter::repeat_n(Line::default(), before_panel));
        parts.push((Part::Panel, panel.len() + before_panel));
        let entries = entries.into_iter().map(|(row, index)| (rows.len() + row, index)).collect();
        rows.extend(panel);
        // Nothing below the caret: some terminals lose track of the cursor when rows below it are broken anew.
        parts.push((Part::Status, status.len()));
        rows.extend(status);
        let top = rows.len();
        parts.push((Part::Composer, composer.len()));
        rows.extend(composer);
        let caret = caret.map(|(row, column)| (top + row, column));
        Arranged { view: View { rows, caret }, parts, entries }
    }

    /// The panel and the composer, of which a modal panel hides the latter.
    fn bottom(&self, width: usize, most: usize) -> Bottom {
        let theme = &self.setup.theme;
        // The user may be in the middle of a word: the keys still go there, so it is in sight.
        let is_writing = self.strays().is_some() && !self.composer.is_empty();
        let (draft, caret) = if is_writing {
            let (rows, caret) = self.composer.rows(width, 3, theme, "");
            (rows, Some(caret))
        } else {
            (Vec::new(), None)
        };
        // On a small screen the dialog needs every row.
        let above = if most < 20 { 0 } else { 2 };
        let room = most.saturating_sub(draft.len().max(above)).max(3);
        let modal = match self.dialogs.front() {
            Some(Dialog::Approval(dialog)) => {
                let waiting =
                    self.dialogs.iter().skip(1).filter(|d| matches!(d, Dialog::Approval(_))).count();
                Some(dialog.panel(width, room, waiting, theme))
            }
            Some(Dialog::Question(dialog)) => Some(dialog.panel(width, room, theme)),
            Some(Dialog::Pick(picker)) => Some(picker.panel(width, room, theme)),
            None => None,
        };
        if let Some(panel) = modal {
            return match self.strays() {
                None => Bottom {
                    panel: panel.rows,
                    entries: panel.entries,
                    composer: panel.input,
                    caret: panel.caret,
                },
                Some(_) => Bottom {
                    panel: panel.waiting(width, theme).rows,
                    entries: Vec::new(),
                    composer: draft,
                    caret,
                },
            };
        }
        let hint = match (&self.thread, self.is_busy()) {
            (None, _) => "opening…",
            (_, true) => "Enter adds to the turn · Tab sends after it",
            _ => "what shall be done?",
        };
        let (composer, caret) = self.composer.rows(width, (most / 2).max(1), theme, hint);
        let left = most.saturating_sub(composer.len() + 1);
        let (mut panel, mut entries) = (Vec::new(), Vec::new());
        if let Some(menu) = &self.menu {
            let (shown, first) = menu.sight(left);
            entries = (0..shown).map(|row| (row, first + row)).collect();
            panel = menu.rows(width, left, theme);
        } else if self.help {
            panel = self.help_rows(width);
            panel.truncate(left.max(1));
        }
        Bottom { panel, entries, composer, caret: Some(caret) }
    }

    /// The keys, and what they do.
    pub(super) fn help_rows(&self, width: usize) -> Vec<Line<'static>> {
        let theme = &self.setup.theme;
        let help = self.key_help();
        if width < 60 {
            let entry =
                |(keys, about): &(String, &str)| text::wrap(&format!("{keys}: {about}"), width.max(8));
            return help.iter().flat_map(entry).map(Line::raw).collect();
        }
        let column = help.iter().map(|(keys, _)| text::width(keys)).max().unwrap_or(0).min(width / 2) + 2;
        help.into_iter()
            .map(|(keys, about)| {
                let keys = text::clip(&keys, column - 1);
                let gap = " ".repeat(column.saturating_sub(text::width(&keys)));
                Line::from(vec![
                    Span::styled(keys, theme.accent),
                    Span::raw(gap),
                    Span::raw(text::clip(about, width.saturating_sub(column))),
                ])
            })
            .collect()
    }

    /// What the agent does, and what waits to be said.
    fn activity(&self, width: usize, most: usize) -> Vec<Line<'static>> {
        let theme = &self.setup.theme;
        let mut rows = Vec::new();
        if let Some(turn) = &self.turn {
            let seconds = self.now.saturating_sub(turn.began).as_secs();
            let doing = match (turn.stopping, self.dialogs.is_empty()) {
                (true, _) => "Stopping…",
                (false, false) => "Waiting for you",
                (false, true) => "Working…",
            };
            let mark = if theme.shapes() { format!("{} ", self.spinner()) } else { String::new() };
            let time = if theme.shapes() { format!(" {seconds} s") } else { String::new() };
            // In a dialog the key means what the dialog says.
            let hint = if turn.stopping || !self.dialogs.is_empty() { "" } else { " · Esc stops" };
            rows.push(Line::from(vec![
                Span::styled(mark, theme.accent),
                Span::raw(doing),
                Span::styled(text::clip(&format!("{time}{hint}"), width.saturating_sub(20)), theme.dim),
            ]));
        } else if self.shell > 0 {
            let mark = if theme.shapes() { format!("{} ", self.spinner()) } else { String::new() };
            rows.push(Line::from(vec![
                Span::styled(mark, theme.accent),
                Span::raw("Your command runs"),
                Span::styled(" · Esc stops", theme.dim),
            ]));
        }
        for steering in &self.steering {
            let line = format!("  ↳ for this turn: {}", text::one_line(steering));
            rows.push(Line::styled(text::clip(&line, width), theme.dim));
        }
        for prompt in &self.queue {
            let line = format!("  ↓ after it: {}  (Alt+Up takes it back)", text::one_line(&prompt.typed));
            rows.push(Line::styled(text::clip(&line, width), theme.dim));
        }
        rows.truncate(most);
        rows
    }

    fn spinner(&self) -> &'static str {
        let frame = self.now.as_millis() / super::FRAME.as_millis();
        SPINNER[usize::try_from(frame % SPINNER.len() as u128).unwrap_or(0)]
    }

    fn status(&self, width: usize) -> Vec<Line<'static>> {
        let theme = &self.setup.theme;
        let armed = match self.armed {
            Some((Armed::Leave, _)) => Some("Ctrl+C again leaves"),
            Some((Armed::Escape, _)) if self.composer.is_empty() => {
                Some("Esc again goes back to an earlier point")
            }
            Some((Armed::Escape, _)) => Some("Esc again clears the draft"),
            None => None,
        };
        if let Some(words) = armed {
            return vec![status::said(words, theme.warn, width, theme)];
        }
        if let Some(remark) = &self.remark {
            return vec![status::said(&text::one_line(&remark.text), Style::new(), width, theme)];
        }
        let Some(thread) = &self.thread else { return vec![status::said("…", theme.dim, width, theme)] };
        let hint = if self.is_busy() || !self.dialogs.is_empty() { String::new() } else { self.hint_keys() };
        let posture = self.window.unwrap_or(thread.posture);
        let keys = self.composer.mode_word();
        vec![status::line(thread, posture, &self.figures, keys.as_deref(), &hint, width, theme)]
    }
}
