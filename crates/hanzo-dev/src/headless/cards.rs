//! What a run looks like to a person who watches: a line for each call, or a card with what it returned.

use std::borrow::Cow;

use hanzo_protocol::item::{ToolCallItem, ToolCallStatus};
use hanzo_tui::transcript::{duration, exit_code, shown, subject};

use crate::output::printable;

/// The longest subject of a call that is shown, in characters.
const SUBJECT: usize = 72;

/// The most lines of a result that a card shows.
const CARD_LINES: usize = 16;

/// The terminal's own colours, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Escape sequences.
    Colour,
    /// Plain text.
    Plain,
}

impl Paint {
    /// What suits a stream that is a terminal, or is not.
    pub fn suited(stream: &impl std::io::IsTerminal) -> Self {
        // https://no-color.org: set and not empty means no.
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if stream.is_terminal() && !refused { Self::Colour } else { Self::Plain }
    }

    fn wrap<'t>(self, code: &str, text: &'t str) -> Cow<'t, str> {
        match self {
            Self::Colour => Cow::Owned(format!("\u{1b}[{code}m{text}\u{1b}[0m")),
            Self::Plain => Cow::Borrowed(text),
        }
    }

    /// Secondary text.
    pub fn dim(self, text: &str) -> Cow<'_, str> {
        self.wrap("2", text)
    }

    /// What matters.
    pub fn bold(self, text: &str) -> Cow<'_, str> {
        self.wrap("1", text)
    }

    /// Success, and lines that were added.
    pub fn green(self, text: &str) -> Cow<'_, str> {
        self.wrap("32", text)
    }

    /// Failure, and lines that were removed.
    pub fn red(self, text: &str) -> Cow<'_, str> {
        self.wrap("31", text)
    }
}

/// Draws calls.
#[derive(Debug, Clone, Copy)]
pub struct Cards {
    paint: Paint,
}

impl Cards {
    /// In these colours.
    pub fn new(paint: Paint) -> Self {
        Self { paint }
    }

    /// A finished call in one line.
    pub fn line(&self, call: &ToolCallItem) -> String {
        let subject = short(&subject(&call.arguments), SUBJECT);
        let time = call.duration_ms.map(duration).unwrap_or_default();
        let end = match call.status {
            ToolCallStatus::Completed => {
                let code = call.result.as_ref().and_then(exit_code).filter(|code| *code != 0);
                let code = code.map(|code| format!("{} ", self.paint.red(&format!("exit code {code}"))));
                format!("{}{}", code.unwrap_or_default(), self.paint.dim(&time))
            }
            ToolCallStatus::Failed => {
                let why = call.result.as_ref().and_then(|result| result.error.as_deref()).unwrap_or("failed");
                format!("{} {}", self.paint.dim(&time), self.paint.red(&short(why, SUBJECT)))
            }
            ToolCallStatus::Denied => {
                let why = call.result.as_ref().and_then(|result| result.error.as_deref()).unwrap_or_default();
                format!("{} {}", self.paint.red("refused:"), short(why, 2 * SUBJECT))
            }
            ToolCallStatus::Interrupted => self.paint.red("interrupted").into_owned(),
            _ => String::new(),
        };
        let name = self.paint.bold(&call.tool).into_owned();
        [name, subject, end].into_iter().filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join("  ")
    }

    /// A finished call with what it returned.
    pub fn card(&self, call: &ToolCallItem) -> Vec<String> {
        let mut lines = vec![self.line(call)];
        let output = call.result.as_ref().map(shown).unwrap_or_default();
        let output = printable(&output);
        let all: Vec<&str> = output.lines().collect();
        for line in all.iter().take(CARD_LINES) {
            let line = short(line, 110);
            let painted = match line.as_bytes() {
                [b'+', ..] => self.paint.green(&line),
                [b'-', ..] => self.paint.red(&line),
                _ => self.paint.dim(&line),
            };
            lines.push(format!("  {} {painted}", self.paint.dim("│")));
        }
        if all.len() > CARD_LINES {
            let more = format!("  │ … {} more lines", all.len() - CARD_LINES);
            lines.push(self.paint.dim(&more).into_owned());
        }
        lines
    }
}

/// At most `most` characters of a text that is safe to print.
fn short(text: &str, most: usize) -> String {
    let text = printable(text);
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= most && text.lines().count() <= 1 {
        return line.to_owned();
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use hanzo_protocol::ids::{ToolCallId, TraceId};
    use hanzo_protocol::tool::ToolResult;
    use serde_json::json;

    use super::*;

    fn call(tool: &str, arguments: &str, status: ToolCallStatus, result: ToolResult) -> ToolCallItem {
        ToolCallItem {
            call_id: ToolCallId::new("c"),
            tool: tool.to_owned(),
            called_as: None,
            arguments: arguments.to_owned(),
            effect: None,
            status,
            result: Some(result),
            full_output: None,
            trace_id: TraceId::new(),
            duration_ms: Some(1234),
        }
    }

    #[test]
    fn a_line_names_the_call_its_subject_and_its_end() {
        let cards = Cards::new(Paint::Plain);
        let ran = call(
            "proc.exec",
            r#"{"command":"make\ntest"}"#,
            ToolCallStatus::Completed,
            ToolResult::success(""),
        );
        assert_eq!(cards.line(&ran), "proc.exec  make test  1.2 s");
        let refused = call(
            "fs.write",
            r#"{"path":"/etc/x"}"#,
            ToolCallStatus::Denied,
            ToolResult::failure("no\u{1b}[2J"),
        );
        assert_eq!(cards.line(&refused), "fs.write  /etc/x  refused: no\u{fffd}[2J");
        let patch = r#"{"patch":"--- a/x\n+++ b/src/x.rs\n"}"#;
        let failed =
            call("fs.apply_patch", patch, ToolCallStatus::Failed, ToolResult::failure("CONFLICT: stale"));
        assert_eq!(cards.line(&failed), "fs.apply_patch  src/x.rs  1.2 s CONFLICT: stale");
        let garbage = call("fs.read", "{\"", ToolCallStatus::Interrupted, ToolResult::success(""));
        assert_eq!(cards.line(&garbage), "fs.read  interrupted");
    }

    #[test]
    fn a_card_is_bounded_and_marks_a_diff() {
        let long = "+line\n".repeat(40);
        let ran = call("vcs.diff", "{}", ToolCallStatus::Completed, ToolResult::success(long));
        let card = Cards::new(Paint::Colour).card(&ran);
        assert_eq!(card.len(), 2 + CARD_LINES);
        assert!(card[1].contains("\u{1b}[32m+line\u{1b}[0m"), "{card:?}");
        assert!(card[CARD_LINES + 1].contains("24 more lines"), "{card:?}");
    }

    #[test]
    fn a_card_says_what_was_printed_and_how_it_ended() {
        let data = json!({"exit_code": 3, "stdout": "out\n", "stderr": "err\n"});
        let result = ToolResult { envelope: Some(json!({"data": data})), ..ToolResult::success("long") };
        let ran = call("proc.exec", r#"{"command":"make"}"#, ToolCallStatus::Completed, result);
        let card = Cards::new(Paint::Plain).card(&ran);
        assert_eq!(card, ["proc.exec  make  exit code 3 1.2 s", "  │ out", "  │ err"]);
    }
}
