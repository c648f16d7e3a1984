//! Items as lines: what a thread's items look like is decided here and nowhere else. Pure functions, no terminal.
//!
//! [`render_item`] draws what is final; [`StreamingMessage`] the agent's words while they arrive; the other functions what is no
//! item: a plan panel, an answer to a request for consent, the end of a turn. No line is wider than the context says, and none
//! holds a control character, whatever a model or a tool wrote.

mod ask;
mod call;
mod card;
mod convert;
mod diff;
mod message;
mod proposal;
mod rows;

use std::fmt::Write as _;

use hanzo_protocol::item::{BreakReason, Item, ItemContent, NoticeLevel, TurnEnd, TurnSummary};
use hanzo_protocol::message::{ApiError, ApiErrorKind};
use ratatui::text::Line;

pub use ask::{Verdict, approval, plan, plan_line, question};
pub use call::{duration, exit_code, shown, subject};
pub use card::card_line;
pub use diff::diff;
pub use message::{StreamingMessage, markdown, said, thought};
pub use proposal::Proposal;

use crate::theme::{Marks, Theme};
use rows::{Rows, grouped};

/// Whether something long is shown in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// A line or a few that say how much there is.
    #[default]
    Folded,
    /// All of it.
    Full,
}

/// How items are drawn.
#[derive(Debug, Clone, Copy)]
pub struct RenderContext {
    /// How many columns there are.
    pub width: usize,
    /// The styles, and whether there are shapes.
    pub theme: Theme,
    /// What the model thinks.
    pub reasoning: Detail,
    /// What tools return, and digests.
    pub results: Detail,
}

impl RenderContext {
    /// Everything folded.
    pub fn new(width: usize, theme: Theme) -> RenderContext {
        RenderContext { width, theme, reasoning: Detail::Folded, results: Detail::Folded }
    }

    fn columns(&self) -> usize {
        self.width.max(1)
    }

    fn in_words(&self) -> bool {
        self.theme.marks == Marks::Words
    }

    /// One of two ways to say something: with a shape, or in words.
    fn mark<'a>(&self, shape: &'a str, words: &'a str) -> &'a str {
        if self.in_words() { words } else { shape }
    }
}

/// The lines of an item; none for what is only for the model.
pub fn render_item(item: &Item, context: &RenderContext) -> Vec<Line<'static>> {
    match &item.content {
        ItemContent::UserMessage { text, attachments } => message::user(text, attachments, context),
        ItemContent::AgentMessage { text } => message::agent(text, context),
        ItemContent::Reasoning(reasoning) => thought(&reasoning.text, context),
        ItemContent::ToolCall(call) => card::card(call, item.taint, context),
        ItemContent::Plan { steps } => plan(steps, context),
        ItemContent::Question(asked) => question(asked, context),
        ItemContent::Compaction { digest, folded, tokens_saved, .. } => {
            compaction(digest, *folded, *tokens_saved, context)
        }
        ItemContent::PrefixBreak { reason } => {
            let why = match reason {
                BreakReason::Compaction => "earlier work was folded",
                BreakReason::ModelSwitch => "another model goes on",
                BreakReason::ToolListChanged => "the list of tools changed",
                BreakReason::InstructionsChanged => "the instructions changed",
                BreakReason::SettingsChanged => "a setting of the model changed",
                BreakReason::Rewind => "the thread went back to an earlier turn",
            };
            marker(&format!("The vendor's cache starts anew: {why}"), context)
        }
        ItemContent::Notice { level, text } => notice(*level, text, context),
        _ => Vec::new(),
    }
}

/// A sentence to the user. What follows `hint:` after a blank line stands apart.
pub fn notice(level: NoticeLevel, words: &str, context: &RenderContext) -> Vec<Line<'static>> {
    let theme = &context.theme;
    let (sign, style) = match level {
        NoticeLevel::Info => ("", theme.dim),
        NoticeLevel::Warning => ("warning: ", theme.warn),
        NoticeLevel::Error => ("error: ", theme.bad),
    };
    let (words, hint) = match words.split_once("\n\nhint:") {
        Some((words, hint)) => (words, Some(hint.trim())),
        None => (words, None),
    };
    let mut rows = Rows::new(context);
    rows.paragraph(&format!("{sign}{}", words.trim()), style);
    if let Some(hint) = hint.filter(|hint| !hint.is_empty()) {
        rows.paragraph(&format!("hint: {hint}"), theme.accent);
    }
    rows.into_lines()
}

/// A turn that could not go on, with what to try.
pub fn failure(error: &ApiError, context: &RenderContext) -> Vec<Line<'static>> {
    let mut words = error.message.clone();
    if let Some(status) = error.status {
        let _ = write!(words, " (HTTP {status})");
    }
    let hint = match error.kind {
        ApiErrorKind::Auth => Some("check the provider's key; `hanzo-dev doctor` says which one is used"),
        ApiErrorKind::Quota => Some("the account has no credit left; choose another model with `/model`"),
        ApiErrorKind::Rate | ApiErrorKind::Overloaded => Some("wait a little, then send the message again"),
        _ => None,
    };
    if let Some(hint) = hint.filter(|_| !words.contains("hint:")) {
        let _ = write!(words, "\n\nhint: {hint}");
    }
    notice(NoticeLevel::Error, &words, context)
}

/// How a turn ended, where that is not simply because the agent was done.
pub fn turn_end(summary: &TurnSummary, context: &RenderContext) -> Vec<Line<'static>> {
    let words = match summary.ended {
        TurnEnd::Completed => return Vec::new(),
        TurnEnd::Interrupted => "Interrupted\n\nhint: say what to do differently, or `/rewind` to go back",
        TurnEnd::StepLimit => "The turn reached the most steps it may take\n\nhint: send `continue` to go on",
        TurnEnd::BudgetReached => {
            "The turn reached its budget\n\nhint: raise the budget in the settings to go on"
        }
        TurnEnd::NoProgress => {
            "The agent kept repeating itself and was stopped\n\nhint: say what it should try instead"
        }
        _ => "The turn ended early",
    };
    notice(NoticeLevel::Warning, words, context)
}

fn compaction(digest: &str, folded: u64, saved: u64, context: &RenderContext) -> Vec<Line<'static>> {
    let items = if folded == 1 { "item" } else { "items" };
    let words = format!(
        "Earlier work was folded into a digest: {} {items}, {} tokens less",
        grouped(folded),
        grouped(saved)
    );
    let mut lines = marker(&words, context);
    if context.results == Detail::Full {
        let mut rows = Rows::new(context);
        rows.block(digest, context.theme.dim);
        lines.extend(rows.into_lines());
    }
    lines
}

/// A line between two parts of the transcript.
fn marker(words: &str, context: &RenderContext) -> Vec<Line<'static>> {
    let mut rows = Rows::new(context);
    rows.indent(context.mark("── ", ""), context.mark("   ", ""), context.theme.dim);
    rows.paragraph(words, context.theme.dim);
    rows.into_lines()
}
