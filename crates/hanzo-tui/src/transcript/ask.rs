//! Plans, questions and requests for consent.

use hanzo_md_render::plain;
use hanzo_protocol::engine::ApprovalAnswer;
use hanzo_protocol::item::{AnsweredBy, Approval, PlanStatus, PlanStep, Question};
use ratatui::style::Style;
use ratatui::text::Line;

use super::RenderContext;
use super::rows::Rows;

/// The plan.
pub fn plan(steps: &[PlanStep], context: &RenderContext) -> Vec<Line<'static>> {
    let theme = &context.theme;
    let done = steps.iter().filter(|step| step.status == PlanStatus::Done).count();
    let mut rows = Rows::new(context);
    rows.paragraph(&format!("Plan ({done} of {} done)", steps.len()), theme.strong);
    for step in steps {
        let (shape, word, style) = match step.status {
            PlanStatus::Pending => ("☐ ", "To do: ", Style::new()),
            PlanStatus::Active => ("▸ ", "Now: ", theme.accent),
            PlanStatus::Done => ("✓ ", "Done: ", theme.dim),
            PlanStatus::Dropped => ("✗ ", "Dropped: ", theme.dim),
        };
        if context.in_words() {
            rows.indent("", "", style);
            rows.paragraph(&format!("{word}{}", plain::clean(&step.text)), style);
        } else {
            rows.indent(&format!("  {shape}"), "    ", style);
            rows.paragraph(&plain::clean(&step.text), style);
        }
    }
    rows.into_lines()
}

/// The plan in one line, where there is no room for more: how far it is, and what is being done.
pub fn plan_line(steps: &[PlanStep], context: &RenderContext) -> Line<'static> {
    let done = steps.iter().filter(|step| step.status == PlanStatus::Done).count();
    let of = |status| steps.iter().find(|step| step.status == status);
    let step = of(PlanStatus::Active).or_else(|| of(PlanStatus::Pending));
    let step = step.map(|step| format!(": {}", plain::clean(&step.text))).unwrap_or_default();
    let line = format!("Plan {done}/{}{step}", steps.len());
    Line::styled(plain::clip(&line, context.columns()).into_owned(), context.theme.strong)
}

/// A question of the agent, with its answer once there is one.
pub fn question(asked: &Question, context: &RenderContext) -> Vec<Line<'static>> {
    let theme = &context.theme;
    let mut rows = Rows::new(context);
    rows.indent(context.mark("? ", "Question: "), context.mark("  ", ""), theme.accent);
    rows.paragraph(asked.text.trim(), theme.strong);
    let chosen = asked.answer.as_ref().map(|answer| answer.text.as_str());
    for (index, choice) in asked.choices.iter().enumerate() {
        let style = if chosen == Some(choice) { theme.accent } else { theme.dim };
        rows.indent(&format!("  {}. ", index + 1), "     ", style);
        rows.paragraph(&plain::clean(choice), style);
    }
    if let Some(answer) = &asked.answer {
        let (words, style) = match answer.by {
            AnsweredBy::User => ("Answer: ", theme.accent),
            AnsweredBy::ModelAssumption => ("Assumed, as nobody was there to ask: ", theme.warn),
        };
        rows.indent(context.mark("  → ", ""), context.mark("    ", ""), style);
        let said = if answer.by == AnsweredBy::User && !context.in_words() { "" } else { words };
        rows.paragraph(&format!("{said}{}", answer.text.trim()), style);
    }
    rows.into_lines()
}

/// How a request for consent was answered.
#[derive(Debug, Clone, Copy)]
pub enum Verdict<'a> {
    /// Here, by this.
    Answered(&'a ApprovalAnswer),
    /// By another face.
    Elsewhere {
        /// Whether the call may run.
        allowed: bool,
        /// The face.
        by: &'a str,
    },
}

/// A request for consent as it is recorded: what was asked, what was said, and the exact rule where one was granted.
pub fn approval(asked: &Approval, verdict: Verdict<'_>, context: &RenderContext) -> Vec<Line<'static>> {
    let theme = &context.theme;
    let (allowed, words) = match verdict {
        Verdict::Answered(ApprovalAnswer::Once) => (true, "Allowed once".to_owned()),
        Verdict::Answered(ApprovalAnswer::Session { rule }) => {
            (true, format!("Allowed until the thread ends, by the rule `{rule}`"))
        }
        Verdict::Answered(ApprovalAnswer::Always { rule }) => {
            (true, format!("Allowed from now on, by the saved rule `{rule}`"))
        }
        Verdict::Answered(ApprovalAnswer::Deny { reason }) => match reason.as_deref().map(str::trim) {
            Some(reason) if !reason.is_empty() => (false, format!("Denied: {reason}")),
            _ => (false, "Denied".to_owned()),
        },
        Verdict::Elsewhere { allowed: true, by } => (true, format!("Allowed in {by}")),
        Verdict::Elsewhere { allowed: false, by } => (false, format!("Denied in {by}")),
    };
    let style = if allowed { theme.good } else { theme.bad };
    let mut rows = Rows::new(context);
    let shape = if allowed { "✓ " } else { "✗ " };
    rows.indent(context.mark(shape, ""), context.mark("  ", ""), style);
    rows.paragraph(&words, style);
    rows.indent(context.mark("  ", ""), context.mark("  ", ""), theme.dim);
    rows.paragraph(&format!("{}: {}", asked.tool, plain::clean(&asked.summary)), theme.dim);
    rows.into_lines()
}
