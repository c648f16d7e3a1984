//! The status line: what is in force and what it costs. What does not fit is left out from the end, never cut in half.

use hanzo_protocol::engine::{Mode, Posture, ThreadSummary};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::app::Figures;
use crate::look::Look;
use crate::text;

/// The line.
pub(crate) fn line(
    thread: &ThreadSummary,
    figures: &Figures,
    keys: Option<&str>,
    hint: &str,
    width: usize,
    look: &Look,
) -> Line<'static> {
    let mut parts: Vec<(String, Style)> = Vec::new();
    if let Some(keys) = keys {
        parts.push((keys.to_owned(), look.strong));
    }
    // How much the agent may do by itself comes first: it must be in sight at any width.
    parts.push(match (thread.mode, thread.posture) {
        (Mode::Plan, _) => ("plan".to_owned(), look.accent),
        (Mode::Goal, _) => ("goal".to_owned(), look.accent),
        (Mode::Normal, Posture::Ask) => ("ask".to_owned(), Style::new()),
        (Mode::Normal, Posture::Auto) => ("auto".to_owned(), look.warn),
        (Mode::Normal, Posture::Yolo) => ("yolo".to_owned(), look.bad),
    });
    parts.push((text::one_line(&thread.model), look.dim));
    if let Some((used, window)) = figures.context {
        let words = match window.filter(|window| *window > 0) {
            Some(window) => format!("context {} %", used.saturating_mul(100) / window),
            None => format!("context {}", tokens(used)),
        };
        let full = window.is_some_and(|window| used.saturating_mul(10) > window.saturating_mul(8));
        parts.push((words, if full { look.warn } else { look.dim }));
    }
    if let Some(cost) = figures.cost {
        parts.push((cost.to_string(), look.dim));
    }
    if let Some(ratio) = figures.usage.cache_hit_ratio() {
        parts.push((format!("cache {:.0} %", ratio * 100.0), look.dim));
    }
    if let Some(sandbox) = &figures.sandbox {
        let style = if sandbox == "off" { look.warn } else { look.dim };
        parts.push((format!("sandbox {sandbox}"), style));
    }
    if let Some(branch) = &figures.branch {
        parts.push((text::one_line(branch), look.dim));
    }
    let mut spans = vec![Span::raw("  ")];
    let mut used = 2;
    for (index, (words, style)) in parts.into_iter().enumerate() {
        let between = if index == 0 { "" } else { " · " };
        let more = text::width(between) + text::width(&words);
        if used + more > width {
            break;
        }
        used += more;
        spans.push(Span::styled(between, look.dim));
        spans.push(Span::styled(words, style));
    }
    // The hint goes to the right where there is room for all of it.
    let gap = width.saturating_sub(used + text::width(hint) + 1);
    if !hint.is_empty() && gap >= 4 {
        spans.push(Span::raw(" ".repeat(gap)));
        spans.push(Span::styled(hint.to_owned(), look.dim));
    } else if !hint.is_empty() && width >= used + 10 {
        let short = "? keys";
        spans.push(Span::raw(" ".repeat(width - used - text::width(short) - 1)));
        spans.push(Span::styled(short, look.dim));
    }
    Line::from(spans)
}

fn tokens(count: u64) -> String {
    if count < 1_000 { count.to_string() } else { format!("{}k", count / 1_000) }
}
