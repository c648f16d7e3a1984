//! The status line: what is in force and what it costs. What does not fit is left out from the end, never cut in half. It is
//! the rule between the transcript and the composer as well.

use hanzo_protocol::engine::{Mode, Posture, ThreadSummary};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::app::Figures;
use crate::text;
use crate::theme::Theme;

/// The line. `posture` is the one in force, which may be the running turn's.
pub(crate) fn line(
    thread: &ThreadSummary,
    posture: Posture,
    figures: &Figures,
    keys: Option<&str>,
    hint: &str,
    width: usize,
    theme: &Theme,
) -> Line<'static> {
    let is_hinting = !hint.is_empty();
    let mut parts: Vec<(String, Style)> = Vec::new();
    if let Some(keys) = keys {
        parts.push((keys.to_owned(), theme.strong));
    }
    // How much the agent may do by itself comes first: it must be in sight at any width.
    parts.push(match (thread.mode, posture) {
        (Mode::Plan, _) => ("plan".to_owned(), theme.accent),
        (Mode::Goal, _) => ("goal".to_owned(), theme.accent),
        (Mode::Normal, Posture::Ask) => ("ask".to_owned(), Style::new()),
        (Mode::Normal, Posture::Auto) => ("auto".to_owned(), theme.warn),
        (Mode::Normal, Posture::Yolo) => ("yolo".to_owned(), theme.bad),
    });
    parts.push((text::one_line(&thread.model), theme.dim));
    if let Some((used, window)) = figures.context {
        let words = match window.filter(|window| *window > 0) {
            Some(window) => format!("context {} %", used.saturating_mul(100) / window),
            None => format!("context {}", tokens(used)),
        };
        let full = window.is_some_and(|window| used.saturating_mul(10) > window.saturating_mul(8));
        parts.push((words, if full { theme.warn } else { theme.dim }));
    }
    if let Some(cost) = figures.cost {
        parts.push((cost.to_string(), theme.dim));
    }
    if let Some(ratio) = figures.usage.cache_hit_ratio() {
        parts.push((format!("cache {:.0} %", ratio * 100.0), theme.dim));
    }
    if let Some(sandbox) = &figures.sandbox {
        let style = if sandbox == "off" { theme.warn } else { theme.dim };
        parts.push((format!("sandbox {sandbox}"), style));
    }
    if let Some(branch) = &figures.branch {
        parts.push((text::one_line(branch), theme.dim));
    }
    let mut spans = vec![lead(theme)];
    let mut used = text::width(&spans[0].content);
    for (index, (words, style)) in parts.into_iter().enumerate() {
        let between = if index == 0 { "" } else { " · " };
        let more = text::width(between) + text::width(&words);
        if used + more > width {
            break;
        }
        used += more;
        spans.push(Span::styled(between, theme.dim));
        spans.push(Span::styled(words, style));
    }
    // The hint goes to the right where there is room for all of it.
    let hint = [hint, "? keys"].into_iter().find(|hint| used + text::width(hint) + 8 <= width);
    ruled(spans, used, hint.filter(|_| is_hinting).unwrap_or_default(), width, theme)
}

/// The line when there is something to say in passing instead.
pub(crate) fn said(words: &str, style: Style, width: usize, theme: &Theme) -> Line<'static> {
    let lead = lead(theme);
    let words = text::clip(words, width.saturating_sub(text::width(&lead.content)));
    let used = text::width(&lead.content) + text::width(&words);
    ruled(vec![lead, Span::styled(words, style)], used, "", width, theme)
}

fn lead(theme: &Theme) -> Span<'static> {
    if theme.shapes() { Span::styled("── ", theme.dim) } else { Span::raw("") }
}

/// The rest of the line, with `hint` near its end.
fn ruled(
    mut spans: Vec<Span<'static>>,
    used: usize,
    hint: &str,
    width: usize,
    theme: &Theme,
) -> Line<'static> {
    let left = width.saturating_sub(used);
    let fill = if theme.shapes() { "─" } else { " " };
    if !hint.is_empty() {
        // A blank and a dash on either side, and what is left between.
        let gap = left.saturating_sub(text::width(hint) + 5);
        spans.push(Span::styled(format!(" {} ", fill.repeat(gap)), theme.dim));
        spans.push(Span::styled(hint.to_owned(), theme.dim));
        spans.push(Span::styled(if theme.shapes() { " ──" } else { "" }, theme.dim));
    } else if theme.shapes() && left > 1 {
        spans.push(Span::styled(format!(" {}", fill.repeat(left - 1)), theme.dim));
    }
    Line::from(spans)
}

fn tokens(count: u64) -> String {
    if count < 1_000 { count.to_string() } else { format!("{}k", count / 1_000) }
}
