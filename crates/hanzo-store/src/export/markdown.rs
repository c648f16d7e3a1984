//! A thread to read.

use std::fmt::Write as _;

use hanzo_protocol::item::{
    AnsweredBy, Item, ItemContent, PlanStatus, ToolCallItem, ToolCallStatus, Visibility,
};

use crate::ThreadRecord;

/// The thread as Markdown: what was said, what was called and what came of it, diffs as diffs.
pub fn markdown<'i>(record: &ThreadRecord, items: impl IntoIterator<Item = &'i Item>) -> String {
    let summary = &record.summary;
    let title = if summary.title.trim().is_empty() { "Untitled thread" } else { summary.title.trim() };
    let mut text = format!("# {}\n\n", plain(&title.replace('\n', " ")));
    let _ = writeln!(text, "- Thread: `{}`", summary.id);
    let _ = writeln!(text, "- Workspace: `{}`", plain(&summary.workspace.to_string_lossy()));
    let _ = writeln!(text, "- Model: `{}`", plain(&summary.model));
    let _ = writeln!(text, "- Begun: {:.0}", summary.created_at);
    if let Some(cost) = record.cost {
        let _ = writeln!(text, "- Cost: {cost}");
    }
    for item in items {
        add(&mut text, item);
    }
    text
}

fn add(text: &mut String, item: &Item) {
    let aside = match item.visibility {
        Visibility::Active => "",
        Visibility::Folded => " *(folded)*",
        Visibility::Rewound => " *(rewound)*",
    };
    match &item.content {
        ItemContent::UserMessage { text: said, attachments } => {
            let _ = write!(text, "\n## User{aside}\n\n{}\n", plain(said));
            for attachment in attachments {
                let name = attachment.name.as_deref().unwrap_or(&attachment.media_type);
                let _ = writeln!(text, "\n*Attached: {}*", plain(name));
            }
        }
        ItemContent::AgentMessage { text: said } => {
            let _ = write!(text, "\n## Agent{aside}\n\n{}\n", plain(said));
        }
        ItemContent::Reasoning(reasoning) if !reasoning.text.trim().is_empty() => {
            let _ = write!(text, "\n*Thought{aside}:*\n\n{}\n", quote(&reasoning.text));
        }
        ItemContent::ToolCall(call) => add_call(text, call, aside),
        ItemContent::Plan { steps } => {
            let _ = write!(text, "\n### Plan{aside}\n\n");
            for step in steps {
                let mark = match step.status {
                    PlanStatus::Done => "[x]",
                    PlanStatus::Pending => "[ ]",
                    PlanStatus::Active => "[ ] **now:**",
                    PlanStatus::Dropped => "[ ] *dropped:*",
                };
                let _ = writeln!(text, "- {mark} {}", plain(&step.text.replace('\n', " ")));
            }
        }
        ItemContent::Question(question) => {
            let _ = write!(text, "\n### Question{aside}\n\n{}\n", plain(&question.text));
            if let Some(answer) = &question.answer {
                let by = match answer.by {
                    AnsweredBy::User => "Answer",
                    AnsweredBy::ModelAssumption => "Assumed by the model",
                };
                let _ = write!(text, "\n*{by}:* {}\n", plain(&answer.text));
            }
        }
        ItemContent::Compaction { digest, folded, .. } => {
            let _ = write!(text, "\n### Digest of {folded} earlier items{aside}\n\n{}\n", quote(digest));
        }
        ItemContent::Notice { text: notice, .. } => {
            let _ = write!(text, "\n> **Note:** {}\n", plain(&notice.replace('\n', " ")));
        }
        // What the host added for the model, and breaks of the prompt, tell a reader nothing.
        _ => {}
    }
}

fn add_call(text: &mut String, call: &ToolCallItem, aside: &str) {
    let status = match call.status {
        ToolCallStatus::Completed => "",
        ToolCallStatus::Failed => ": failed",
        ToolCallStatus::Denied => ": denied",
        ToolCallStatus::Interrupted => ": interrupted",
        ToolCallStatus::Pending | ToolCallStatus::AwaitingApproval | ToolCallStatus::Running => {
            ": not finished"
        }
    };
    let _ = write!(text, "\n### `{}`{status}{aside}\n", plain(&call.tool));
    if !matches!(call.arguments.trim(), "" | "{}") {
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(&call.arguments);
        let pretty = parsed.ok().and_then(|value| serde_json::to_string_pretty(&value).ok());
        fence(text, "json", pretty.as_deref().unwrap_or(&call.arguments));
    }
    if let Some(result) = &call.result
        && !result.output.trim().is_empty()
    {
        fence(text, if is_diff(&result.output) { "diff" } else { "" }, &result.output);
    }
}

fn is_diff(output: &str) -> bool {
    output.lines().any(|line| line.starts_with("@@ ")) && output.lines().any(|line| line.starts_with("+++ "))
}

/// A block of code whose fence is longer than any in it.
fn fence(text: &mut String, language: &str, content: &str) {
    let longest = content.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = write!(text, "\n{fence}{language}\n{}\n{fence}\n", plain(content).trim_end_matches('\n'));
}

fn quote(content: &str) -> String {
    let quoted: Vec<String> = plain(content).lines().map(|line| format!("> {line}")).collect();
    quoted.join("\n")
}

/// The text without what would steer a terminal that shows the document.
fn plain(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect()
}
