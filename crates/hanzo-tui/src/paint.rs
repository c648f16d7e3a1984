//! Items as lines. What a thread's items look like is decided here and nowhere else.

use hanzo_protocol::item::{Item, ItemContent, NoticeLevel, PlanStatus, PlanStep, ToolCallItem, ToolCallStatus};
use hanzo_protocol::tool::ToolResult;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;

use crate::look::Look;
use crate::text;

/// How many rows of a result are shown below its card.
const RESULT_ROWS: usize = 6;

/// Whether something long is shown in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// A line that says how much there is.
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
    /// The styles.
    pub look: Look,
    /// What the model thinks.
    pub reasoning: Detail,
    /// What tools return.
    pub results: Detail,
}

/// The lines of an item; none for what is only for the model.
pub fn render_item(item: &Item, context: &RenderContext) -> Vec<Line<'static>> {
    let look = &context.look;
    let inner = context.width.saturating_sub(2).max(4);
    match &item.content {
        ItemContent::UserMessage { text, attachments } => {
            let mut lines = Vec::new();
            let sign = if look.shapes { "› " } else { "You: " };
            let said = said(text);
            for (index, row) in text::wrap(&text::clean(&said), inner).into_iter().enumerate() {
                let sign = if index == 0 { sign } else { "  " };
                lines.push(Line::from(vec![Span::styled(sign, look.accent), Span::styled(row, look.strong)]));
            }
            for attachment in attachments {
                let name = attachment.name.as_deref().unwrap_or(&attachment.media_type);
                lines.push(Line::styled(format!("  [{}]", text::one_line(name)), look.dim));
            }
            lines
        }
        ItemContent::AgentMessage { text } => message(text, inner),
        ItemContent::Reasoning(reasoning) => thought(&reasoning.text, context),
        ItemContent::ToolCall(call) => card(call, context),
        ItemContent::Plan { steps } => plan(steps, context),
        ItemContent::Question(question) => {
            let asked = text::wrap(&format!("? {}", text::clean(&question.text)), inner);
            let mut lines: Vec<Line<'static>> = asked.into_iter().map(Line::raw).collect();
            if let Some(answer) = &question.answer {
                lines.push(Line::styled(format!("  → {}", text::one_line(&answer.text)), look.accent));
            }
            lines
        }
        ItemContent::Compaction { folded, tokens_saved, .. } => {
            let words = format!("Earlier work was folded into a digest: {folded} items, {tokens_saved} tokens less");
            vec![Line::styled(text::clip(&words, context.width), look.dim)]
        }
        ItemContent::PrefixBreak { reason } => {
            let words = format!("The prompt's beginning changed ({reason:?}), so the vendor's cache starts anew");
            vec![Line::styled(text::clip(&words, context.width), look.dim)]
        }
        ItemContent::Notice { level, text } => notice(*level, text, context),
        _ => Vec::new(),
    }
}

/// A sentence to the user.
pub fn notice(level: NoticeLevel, words: &str, context: &RenderContext) -> Vec<Line<'static>> {
    let look = &context.look;
    let (sign, style) = match level {
        NoticeLevel::Info => ("", look.dim),
        NoticeLevel::Warning => ("warning: ", look.warn),
        NoticeLevel::Error => ("error: ", look.bad),
    };
    let rows = text::wrap(&format!("{sign}{}", text::clean(words)), context.width.saturating_sub(2).max(4));
    rows.into_iter().map(|row| Line::styled(row, style)).collect()
}

/// What the user said, without the blocks of what it refers to: those are for the model.
pub fn said(text: &str) -> String {
    let mut rest = text;
    let mut blocks = 0;
    while let Some(name) = rest.strip_prefix('<').and_then(|rest| rest.split([' ', '>']).next()) {
        let known = ["file", "directory", "resource", "shell", "image"];
        if !known.iter().any(|tag| name == *tag || name.strip_prefix(tag).is_some_and(|n| n.starts_with('-'))) {
            break;
        }
        let end = format!("</{name}>");
        let Some(at) = rest.find(&end) else { break };
        rest = rest[at + end.len()..].trim_start();
        blocks += 1;
    }
    if blocks == 0 || rest.is_empty() { text.to_owned() } else { rest.to_owned() }
}

/// The agent's words as plain text.
fn message(words: &str, width: usize) -> Vec<Line<'static>> {
    text::wrap(text::clean(words).trim_end(), width).into_iter().map(Line::raw).collect()
}

fn thought(words: &str, context: &RenderContext) -> Vec<Line<'static>> {
    let words = text::clean(words);
    if words.trim().is_empty() {
        return Vec::new();
    }
    match context.reasoning {
        Detail::Full => text::wrap(words.trim(), context.width.saturating_sub(2).max(4))
            .into_iter()
            .map(|row| Line::styled(format!("  {row}"), context.look.dim))
            .collect(),
        Detail::Folded => {
            let count = words.split_whitespace().count();
            let line = format!("Thought: {} ({count} words, Alt+T shows)", text::one_line(&words));
            vec![Line::styled(text::clip(&line, context.width), context.look.dim)]
        }
    }
}

/// The plan.
pub fn plan(steps: &[PlanStep], context: &RenderContext) -> Vec<Line<'static>> {
    let look = &context.look;
    let done = steps.iter().filter(|step| step.status == PlanStatus::Done).count();
    let mut lines = vec![Line::styled(format!("Plan ({done} of {} done)", steps.len()), look.strong)];
    for step in steps {
        let (mark, style) = match (step.status, look.shapes) {
            (PlanStatus::Pending, true) => ("☐ ", Style::new()),
            (PlanStatus::Active, true) => ("▸ ", look.accent),
            (PlanStatus::Done, true) => ("✓ ", look.dim),
            (PlanStatus::Dropped, true) => ("✗ ", look.dim),
            (PlanStatus::Pending, false) => ("to do: ", Style::new()),
            (PlanStatus::Active, false) => ("now: ", look.accent),
            (PlanStatus::Done, false) => ("done: ", look.dim),
            (PlanStatus::Dropped, false) => ("dropped: ", look.dim),
        };
        let words = format!("  {mark}{}", text::one_line(&step.text));
        lines.push(Line::styled(text::clip(&words, context.width), style));
    }
    lines
}

fn card(call: &ToolCallItem, context: &RenderContext) -> Vec<Line<'static>> {
    let mut lines = vec![card_line(call, context)];
    let Some(result) = &call.result else { return lines };
    let output = text::clean(&shown(result));
    let all: Vec<&str> = output.lines().collect();
    let (most, from_end) = match (context.results, call.status) {
        (Detail::Full, _) => (usize::MAX, false),
        // What a failure says last is what matters.
        (Detail::Folded, ToolCallStatus::Failed) => (RESULT_ROWS * 2, true),
        (Detail::Folded, _) => (if call.tool.starts_with("fs.read") { 0 } else { RESULT_ROWS }, false),
    };
    let look = &context.look;
    let bar = if look.shapes { "  │ " } else { "    " };
    let hidden = all.len().saturating_sub(most);
    let chosen: Vec<&&str> =
        if from_end { all.iter().skip(hidden).collect() } else { all.iter().take(most).collect() };
    let more = |lines: &mut Vec<Line<'static>>| {
        if hidden > 0 && most > 0 {
            let words = format!("{bar}… {hidden} more lines (Ctrl+O shows)");
            lines.push(Line::styled(text::clip(&words, context.width), look.dim));
        }
    };
    if from_end {
        more(&mut lines);
    }
    for row in chosen {
        let style = match row.as_bytes() {
            [b'+', ..] if call.tool.starts_with("fs.") => look.good,
            [b'-', ..] if call.tool.starts_with("fs.") => look.bad,
            _ => look.dim,
        };
        let words = text::clip(row, context.width.saturating_sub(4));
        lines.push(Line::from(vec![Span::styled(bar.to_owned(), look.dim), Span::styled(words, style)]));
    }
    if !from_end {
        more(&mut lines);
    }
    lines
}

/// A call in one line.
pub fn card_line(call: &ToolCallItem, context: &RenderContext) -> Line<'static> {
    let look = &context.look;
    let (mark, style, word) = match call.status {
        ToolCallStatus::Completed => ("● ", look.good, String::new()),
        ToolCallStatus::Failed => ("● ", look.bad, exit_word(call)),
        ToolCallStatus::Denied => ("● ", look.bad, format!("refused: {}", error(call))),
        ToolCallStatus::Interrupted => ("● ", look.warn, "interrupted".to_owned()),
        ToolCallStatus::AwaitingApproval => ("○ ", look.warn, "waits for your consent".to_owned()),
        ToolCallStatus::Pending | ToolCallStatus::Running => ("○ ", look.accent, String::new()),
    };
    let time = call.duration_ms.map(duration).unwrap_or_default();
    let ending = [word, time].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
    let mark = if look.shapes { mark } else { "" };
    let name = text::clip(&call.tool, context.width.saturating_sub(2));
    let used = text::width(mark) + text::width(&name) + 1;
    let ending = text::clip(&ending, context.width.saturating_sub(used + 2));
    let room = context.width.saturating_sub(used + text::width(&ending) + 2);
    let subject = text::clip(&subject(&call.arguments), room);
    Line::from(vec![
        Span::styled(mark.to_owned(), style),
        Span::styled(name, look.strong),
        Span::raw(format!(" {subject}")),
        Span::raw(if ending.is_empty() { "" } else { "  " }),
        Span::styled(ending, if call.status == ToolCallStatus::Completed { look.dim } else { style }),
    ])
}

fn error(call: &ToolCallItem) -> String {
    let result = call.result.as_ref();
    text::one_line(result.and_then(|result| result.error.as_deref().or(Some(&result.output))).unwrap_or_default())
}

fn exit_word(call: &ToolCallItem) -> String {
    let data = call.result.as_ref().and_then(|result| result.envelope.as_ref()).map(|envelope| &envelope["data"]);
    match data.and_then(|data| data["exit_code"].as_i64()) {
        Some(code) => format!("exit code {code}"),
        None => error(call),
    }
}

/// What a person wants to see of a result.
pub fn shown(result: &ToolResult) -> String {
    let data = result.envelope.as_ref().map(|envelope| &envelope["data"]);
    let Some(data) = data.and_then(Value::as_object) else { return result.output.clone() };
    let mut parts: Vec<String> = Vec::new();
    for name in ["text", "diff", "stdout", "stderr"] {
        let words = data.get(name).and_then(Value::as_str).unwrap_or_default().trim_end();
        if !words.is_empty() {
            parts.push(words.to_owned());
        }
    }
    let known = ["text", "diff", "stdout"].iter().any(|name| data.contains_key(*name));
    if known { parts.join("\n") } else { result.output.clone() }
}

/// What a call is about, from its arguments: a command, a file, a query.
pub fn subject(arguments: &str) -> String {
    let Ok(Value::Object(arguments)) = serde_json::from_str(arguments) else { return String::new() };
    let words = |value: &Value| match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Array(list) => {
            let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            (!words.is_empty()).then(|| words.join(" "))
        }
        _ => None,
    };
    let telling = ["command", "argv", "query", "pattern", "uri", "path", "file", "url", "message", "task", "name"];
    let found = telling.iter().find_map(|name| words(arguments.get(*name)?));
    let found = text::one_line(&found.unwrap_or_default());
    found.strip_prefix("file://").unwrap_or(&found).to_owned()
}

/// A duration in the unit people think in.
pub fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds % 60_000 / 1_000),
    }
}

/// The agent's words while they arrive: whole lines are final, the last one is not.
#[derive(Debug, Clone, Default)]
pub struct StreamingMessage {
    /// What is not final yet.
    rest: String,
}

impl StreamingMessage {
    /// Takes in more; returns the lines that are final now.
    pub fn push(&mut self, delta: &str, context: &RenderContext) -> Vec<Line<'static>> {
        self.rest.push_str(delta);
        let Some(end) = self.rest.rfind('\n') else { return Vec::new() };
        let whole: String = self.rest.drain(..=end).collect();
        let inner = context.width.saturating_sub(2).max(4);
        text::wrap(text::clean(&whole).strip_suffix('\n').unwrap_or_default(), inner).into_iter().map(Line::raw).collect()
    }

    /// What is not final yet.
    pub fn tail(&self, context: &RenderContext) -> Vec<Line<'static>> {
        if self.rest.is_empty() { Vec::new() } else { message(&self.rest, context.width.saturating_sub(2).max(4)) }
    }

    /// Nothing more comes; returns what was not final.
    pub fn finish(self, context: &RenderContext) -> Vec<Line<'static>> {
        self.tail(context)
    }
}

/// Markdown the engine wrote, such as the answer of a command.
pub fn markdown(text: &str, context: &RenderContext) -> Vec<Line<'static>> {
    message(text, context.width.saturating_sub(2).max(4))
}
