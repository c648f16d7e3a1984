//! Tool calls: a line that says what was done and how it went, and below it what a person wants to see of the result.

use hanzo_md_render::plain;
use hanzo_protocol::item::{Taint, ToolCallItem, ToolCallStatus};
use hanzo_protocol::tool::ToolResult;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::call::{data, duration, exit_code, shown, title};
use super::diff::Diff;
use super::rows::{Rows, grouped};
use super::{Detail, RenderContext, markdown};
use crate::text;

/// How many rows of a result are shown below its card.
const RESULT_ROWS: usize = 6;

/// How many rows of a change are shown: it is what the user is asked to trust.
const DIFF_ROWS: usize = 24;

/// How many rows of a failure are shown, from its end.
const FAILURE_ROWS: usize = 12;

/// A failure of so few lines is a sentence to be read to its end.
const SHORT_FAILURE: usize = 3;

/// Below this many columns the beginning of a sentence says nothing.
const LEAST_SENTENCE: usize = 12;

/// Below this width nothing is drawn beside the output.
const BAR_WIDTH: usize = 40;

pub(super) fn card(call: &ToolCallItem, taint: Option<Taint>, context: &RenderContext) -> Vec<Line<'static>> {
    let theme = &context.theme;
    // What became of the plan, the plan shows, and the question its answer.
    let is_shown = call.tool.starts_with("plan.") || call.tool == "ask";
    if is_shown && call.status == ToolCallStatus::Completed {
        return Vec::new();
    }
    let mut rows = Rows::new(context);
    rows.line(card_line(call, context));
    let Some(result) = &call.result else { return rows.into_lines() };
    let taint = taint.or(result.taint);
    if let Some(from) = taint {
        let words = match from {
            Taint::Network => "untrusted: from the network",
            Taint::Mcp => "untrusted: from an MCP server",
            Taint::Outside => "untrusted: from outside the workspace",
        };
        rows.indent("  ", "  ", theme.warn);
        rows.paragraph(words, theme.warn);
    }
    if call.status == ToolCallStatus::Denied {
        // The rule and what to do instead stand in the message: all of it is shown.
        rows.indent("  ", "  ", theme.bad);
        rows.paragraph(&error_text(call), theme.bad);
        return rows.into_lines();
    }
    let output = shown(result);
    if let Some(diff) = diff_text(result).and_then(Diff::parse) {
        let most = if context.results == Detail::Full { usize::MAX } else { DIFF_ROWS };
        diff.draw(most, &mut rows, context);
        more(diff.len().saturating_sub(most), &mut rows, context);
    } else if call.tool == "agent.run" && call.status == ToolCallStatus::Completed {
        report(&output, &mut rows, context);
    } else {
        preview(&output, call, &mut rows, context);
    }
    if let Some(denial) = &result.denial {
        rows.indent("  ", "  ", theme.warn);
        rows.paragraph(&format!("The sandbox was probably in the way: {}", plain::clean(denial)), theme.warn);
    }
    for attachment in &result.attachments {
        let name = attachment.name.as_deref().unwrap_or(&attachment.media_type);
        rows.indent("  ", "  ", theme.dim);
        rows.cut(&format!("{}{name}{}", context.mark("[", "Attached: "), context.mark("]", "")), theme.dim);
    }
    rows.into_lines()
}

/// What a subagent reports: it writes as the agent does.
fn report(output: &str, rows: &mut Rows<'_>, context: &RenderContext) {
    // On a narrow screen every column is for the words.
    let indent = if context.columns() < BAR_WIDTH { "" } else { context.mark("  │ ", "  ") };
    let inner = RenderContext { width: context.columns() - plain::width(indent), ..*context };
    let lines = markdown(output, &inner);
    let most = if context.results == Detail::Full { lines.len() } else { RESULT_ROWS };
    let hidden = lines.len().saturating_sub(most);
    for line in lines.into_iter().take(most) {
        let indent = if line.spans.is_empty() { indent.trim_end() } else { indent };
        let mut spans = vec![Span::styled(indent, context.theme.dim)];
        spans.extend(line.spans);
        rows.line(Line::from(spans));
    }
    more(hidden, rows, context);
}

/// Whether it failed, or ran a command that says that it did.
fn went_wrong(call: &ToolCallItem) -> bool {
    let code = call.result.as_ref().and_then(exit_code);
    call.status == ToolCallStatus::Failed || code.is_some_and(|code| code != 0)
}

fn preview(output: &str, call: &ToolCallItem, rows: &mut Rows<'_>, context: &RenderContext) {
    let wrong = went_wrong(call);
    let style = if wrong { Style::new() } else { context.theme.dim };
    let total = output.lines().count();
    let most = match (context.results, wrong) {
        (Detail::Full, _) => total,
        (Detail::Folded, true) => FAILURE_ROWS,
        // The user knows the file, or opens it.
        (Detail::Folded, _) if call.tool == "fs.read" => 0,
        // What these return, the plan and the question show.
        (Detail::Folded, _) if call.tool.starts_with("plan.") || call.tool.starts_with("ask") => 0,
        (Detail::Folded, _) => RESULT_ROWS,
    };
    let hidden = total.saturating_sub(most);
    // What a failure says last is what matters.
    let from_end = wrong;
    if from_end {
        more(hidden, rows, context);
    }
    let bar = if context.in_words() || context.columns() < BAR_WIDTH { "  " } else { "  │ " };
    rows.indent(bar, bar, context.theme.dim);
    let skipped = if from_end { hidden } else { 0 };
    for line in output.lines().skip(skipped).take(most) {
        match context.results {
            _ if from_end && total <= SHORT_FAILURE => rows.paragraph(line, style),
            Detail::Full => rows.output(line, style),
            Detail::Folded => rows.cut(line, style),
        }
    }
    if !from_end && most > 0 {
        more(hidden, rows, context);
    }
}

fn more(hidden: usize, rows: &mut Rows<'_>, context: &RenderContext) {
    if hidden == 0 {
        return;
    }
    let lines = if hidden == 1 { "line" } else { "lines" };
    let count = grouped(u64::try_from(hidden).unwrap_or(u64::MAX));
    rows.indent("  ", "  ", context.theme.dim);
    let words = if context.in_words() {
        format!("{count} more {lines}, Ctrl+O shows them")
    } else {
        format!("… +{count} {lines} (Ctrl+O shows)")
    };
    rows.cut(&words, context.theme.dim);
}

/// A call in one line.
pub fn card_line(call: &ToolCallItem, context: &RenderContext) -> Line<'static> {
    let theme = &context.theme;
    let (shape, word, style) = match call.status {
        ToolCallStatus::Completed if went_wrong(call) => ("● ", "Done: ", theme.warn),
        ToolCallStatus::Completed => ("● ", "Done: ", theme.good),
        ToolCallStatus::Failed => ("● ", "Failed: ", theme.bad),
        ToolCallStatus::Denied => ("✗ ", "Denied: ", theme.bad),
        ToolCallStatus::Interrupted => ("■ ", "Interrupted: ", theme.warn),
        ToolCallStatus::AwaitingApproval => ("○ ", "Waits for your consent: ", theme.warn),
        // That it runs is known only of what prints something.
        ToolCallStatus::Pending => ("○ ", "Under way: ", theme.accent),
        ToolCallStatus::Running => ("○ ", "Running: ", theme.accent),
    };
    let columns = context.columns();
    let mark = plain::clip(context.mark(shape, word), columns).into_owned();
    let mut room = columns - plain::width(&mark);
    let (name, subject) = title(call);
    let name = plain::clip(&name, room).into_owned();
    room -= plain::width(&name);
    // Half of what is left is for what the call is about, whatever there is to say about its end.
    let least = plain::width(&subject).min(room / 2);
    let ending = ending(call, room.saturating_sub(least + 3), context);
    let tail = if ending.is_empty() { 0 } else { plain::width(&ending) + 2 };
    let left = room.saturating_sub(tail + 1);
    // The end of a path says more than its beginning.
    let subject = if call.tool.starts_with("fs.") {
        text::clip_left(&subject, left)
    } else {
        plain::clip(&subject, left).into_owned()
    };
    let mut spans = vec![Span::styled(mark, style), Span::styled(name, theme.strong)];
    if !subject.is_empty() {
        spans.push(Span::raw(format!(" {subject}")));
    }
    if !ending.is_empty() {
        let quiet = matches!(call.status, ToolCallStatus::Completed | ToolCallStatus::Running);
        spans.push(Span::raw("  "));
        spans.push(Span::styled(ending, if quiet { theme.dim } else { style }));
    }
    spans.retain(|span| !span.content.is_empty());
    Line::from(spans)
}

/// How it went: changes, counts, the exit code, the time; as much of it as fits into `most` columns.
fn ending(call: &ToolCallItem, most: usize, context: &RenderContext) -> String {
    let mut parts: Vec<String> = Vec::new();
    let data = call.result.as_ref().and_then(data);
    if let Some(diff) = call.result.as_ref().and_then(diff_text).and_then(Diff::parse) {
        parts.push(if context.in_words() {
            format!("{} added, {} removed", diff.added, diff.removed)
        } else {
            format!("+{} −{}", diff.added, diff.removed)
        });
    }
    let number = |name: &str| data.and_then(|data| data.get(name)).and_then(Value::as_i64);
    match call.status {
        ToolCallStatus::Completed => match call.result.as_ref().and_then(exit_code) {
            Some(code) if code != 0 => parts.push(format!("exit code {code}")),
            _ => {
                if let Some(lines) = number("lines").and_then(|lines| u64::try_from(lines).ok()) {
                    parts.push(format!("{} {}", grouped(lines), if lines == 1 { "line" } else { "lines" }));
                }
            }
        },
        ToolCallStatus::Failed => parts.push(match call.result.as_ref().and_then(exit_code) {
            Some(code) => format!("exit code {code}"),
            None if data.and_then(|data| data.get("status")).and_then(Value::as_str) == Some("timed_out") => {
                "timed out".to_owned()
            }
            // The reason stands below.
            None => "failed".to_owned(),
        }),
        ToolCallStatus::Interrupted if !context.in_words() => parts.push("interrupted".to_owned()),
        ToolCallStatus::AwaitingApproval if !context.in_words() => {
            parts.push("waits for your consent".to_owned());
        }
        _ => {}
    }
    if let Some(time) = call.duration_ms.map(duration) {
        parts.push(time);
    }
    parts.retain(|part| !part.is_empty());
    let between = context.mark(" · ", ", ");
    // A number that is cut says something else. What was said first matters most, and may be a sentence.
    while parts.len() > 1 && plain::width(&parts.join(between)) > most {
        parts.pop();
    }
    let whole = parts.join(between);
    let is_sentence = whole.contains(' ') && most >= LEAST_SENTENCE;
    match plain::width(&whole) <= most {
        true => whole,
        false if is_sentence => plain::clip(&whole, most).into_owned(),
        false => String::new(),
    }
}

fn error_text(call: &ToolCallItem) -> String {
    let result = call.result.as_ref();
    result.map(|result| result.error.clone().unwrap_or_else(|| result.output.clone())).unwrap_or_default()
}

fn diff_text(result: &ToolResult) -> Option<&str> {
    data(result)?.get("diff")?.as_str()
}
