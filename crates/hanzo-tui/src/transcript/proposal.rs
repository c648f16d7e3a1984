//! What a call would do, for whoever is asked to allow it: the change itself, before it is made.

use hanzo_protocol::item::ToolCallItem;
use ratatui::text::Line;
use serde_json::Value;

use super::RenderContext;
use super::card::more;
use super::rows::Rows;

/// How many rows of it are shown; the dialog needs room as well.
const MOST: usize = 16;

/// The lines a call would change; none for calls that change no text.
pub fn proposal(call: &ToolCallItem, context: &RenderContext) -> Vec<Line<'static>> {
    let Ok(Value::Object(arguments)) = serde_json::from_str(&call.arguments) else { return Vec::new() };
    let text = |names: &[&str]| names.iter().find_map(|name| arguments.get(*name)?.as_str());
    let mut rows = Rows::new(context);
    if let Some(patch) = text(&["patch", "diff"]) {
        let lines: Vec<&str> = patch.lines().filter(|line| !is_frame(line)).collect();
        for line in lines.iter().take(MOST) {
            change(line, &mut rows, context);
        }
        more(lines.len().saturating_sub(MOST), &mut rows, context);
    } else if let Some(whole) = text(&["content", "text"]).filter(|_| call.tool == "fs.write") {
        let total = whole.lines().count();
        for line in whole.lines().take(MOST) {
            change(&format!("+{line}"), &mut rows, context);
        }
        more(total.saturating_sub(MOST), &mut rows, context);
    }
    rows.into_lines()
}

/// What holds a patch together and says nothing to a person.
fn is_frame(line: &str) -> bool {
    let frames = ["*** Begin Patch", "*** End Patch", "*** Update File: ", "--- ", "diff --git ", "index "];
    line == "@@" || frames.iter().any(|frame| line.starts_with(frame))
}

fn change(line: &str, rows: &mut Rows<'_>, context: &RenderContext) {
    let theme = &context.theme;
    let (sign, word, style, rest) = match (line.get(..1), line.get(1..)) {
        _ if line.starts_with("+++ ") || line.starts_with("***") => ("", "", theme.strong, line),
        (Some("+"), Some(rest)) => ("+ ", "added: ", theme.added, rest),
        (Some("-"), Some(rest)) => ("- ", "removed: ", theme.removed, rest),
        (Some(" "), Some(rest)) => ("  ", "", theme.dim, rest),
        _ => ("", "", theme.dim, line),
    };
    rows.indent("    ", "    ", theme.dim);
    rows.cut(&format!("{}{rest}", context.mark(sign, word)), style);
}
