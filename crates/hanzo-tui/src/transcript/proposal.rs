//! What a call would do, for whoever is asked to allow it: the change itself, before it is made.

use std::time::Duration;

use ratatui::text::Line;
use serde_json::{Map, Value};
use similar::TextDiff;

use super::RenderContext;
use super::rows::{Rows, grouped};

/// How many lines of it are shown: more than anybody reads, and few enough to be drawn again and again.
const MOST: usize = 2_000;

/// How long texts may be compared.
const PATIENCE: Duration = Duration::from_millis(50);

/// What a text to be replaced, and the one instead of it, may be called.
const OLD: [&str; 5] = ["old_text", "old_string", "oldText", "old_str", "search"];
const NEW: [&str; 5] = ["new_text", "new_string", "newText", "new_str", "replace"];

/// The lines a call would change; none for calls that change no text. Found once, drawn often.
#[derive(Debug, Clone, Default)]
pub struct Proposal {
    /// Each with the sign of what would become of it.
    lines: Vec<String>,
    hidden: usize,
}

impl Proposal {
    /// What a call of `tool` with these arguments would change.
    pub fn of(tool: &str, arguments: &str) -> Self {
        let Ok(Value::Object(arguments)) = serde_json::from_str(arguments) else { return Self::default() };
        let mut lines: Vec<String> = if let Some(patch) = text(&arguments, &["patch", "diff"]) {
            patch.lines().filter(|line| !is_frame(line)).map(str::to_owned).collect()
        } else if let Some(whole) = text(&arguments, &["content", "text"]).filter(|_| tool == "fs.write") {
            whole.lines().map(|line| format!("+{line}")).collect()
        } else {
            edits(&arguments)
        };
        let hidden = lines.len().saturating_sub(MOST);
        lines.truncate(MOST);
        Self { lines, hidden }
    }

    /// Its rows.
    pub fn draw(&self, context: &RenderContext) -> Vec<Line<'static>> {
        let mut rows = Rows::new(context);
        for line in &self.lines {
            change(line, &mut rows, context);
        }
        rest(self.hidden, &mut rows, context);
        rows.into_lines()
    }
}

fn text<'a>(arguments: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| arguments.get(*name)?.as_str())
}

/// Texts that are replaced by others, line by line.
fn edits(arguments: &Map<String, Value>) -> Vec<String> {
    let listed = arguments.get("edits").and_then(Value::as_array).into_iter().flatten();
    let pairs = listed.filter_map(Value::as_object).chain([arguments]);
    let pairs = pairs.filter_map(|edit| Some((text(edit, &OLD)?, text(edit, &NEW)?)));
    let mut lines = Vec::new();
    for (old, new) in pairs {
        if !lines.is_empty() {
            lines.push("…".to_owned());
        }
        // What takes too long to compare is shown as taken away and put there.
        let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
        for change in diff.iter_all_changes() {
            lines.push(format!("{}{}", change.tag(), change.value().trim_end_matches(['\n', '\r'])));
        }
    }
    lines
}

fn rest(hidden: usize, rows: &mut Rows<'_>, context: &RenderContext) {
    if hidden > 0 {
        let count = grouped(u64::try_from(hidden).unwrap_or(u64::MAX));
        rows.indent("    ", "    ", context.theme.warn);
        rows.cut(&format!("and {count} more lines that are not shown"), context.theme.warn);
    }
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
    // What is consented to is not cut.
    let first = format!("    {}", context.mark(sign, word));
    let after = " ".repeat(if context.in_words() { 4 } else { 4 + sign.len() });
    rows.indent(&first, &after, style);
    rows.output(rest, style);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::theme::Theme;

    fn shown(tool: &str, arguments: &Value) -> Vec<String> {
        let context = RenderContext::new(80, Theme::plain());
        let lines = Proposal::of(tool, &arguments.to_string()).draw(&context);
        lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn every_way_to_say_a_change_is_shown_as_one() {
        let edit = json!({"old_text": "a\nb\n", "new_text": "a\nc\n"});
        let expected = ["      a", "    - b", "    + c"];
        assert_eq!(shown("fs.apply_patch", &json!({"path": "x", "edits": [edit]})), expected);
        let single = json!({"file_path": "x", "old_string": "a\nb", "new_string": "a\nc"});
        assert_eq!(shown("fs.apply_patch", &single), expected);
        let patch = "*** Begin Patch\n*** Update File: x\n@@\n a\n-b\n+c\n*** End Patch\n";
        assert_eq!(shown("fs.apply_patch", &json!({"patch": patch})), expected);
        assert_eq!(shown("fs.write", &json!({"path": "x", "content": "a\n"})), ["    + a"]);
        assert!(shown("proc.exec", &json!({"command": "rm x", "text": "a"})).is_empty());
        assert!(shown("fs.write", &json!("nonsense")).is_empty());
    }

    #[test]
    fn what_is_not_shown_is_said() {
        let lines = shown("fs.write", &json!({"content": "x\n".repeat(2_500)}));
        assert_eq!(lines.len(), MOST + 1);
        assert_eq!(lines[MOST], "    and 500 more lines that are not shown");
    }
}
