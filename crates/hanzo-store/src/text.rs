//! What of an item can be searched for, and how a user's words become a query that cannot be malformed.

use hanzo_protocol::item::{Item, ItemContent, ToolCallItem};

/// The most text of one item that is indexed: beyond it a commit would take noticeably longer.
const INDEXED_BYTES: usize = 64 * 1024;

/// The most of a tool call's arguments that is indexed. A patch is found by the file it names, not by its lines.
const ARGUMENT_BYTES: usize = 1024;

/// How much text an excerpt shows on each side of what was found.
const EXCERPT_SIDE: usize = 80;

/// The text under which an item is found; `None` for items nobody searches for, and for calls that are not over yet: those are
/// written again when they are.
pub(crate) fn searchable(item: &Item) -> Option<String> {
    let text = readable(item)?;
    let text = cut(&text, INDEXED_BYTES);
    (!text.trim().is_empty()).then(|| text.to_owned())
}

fn readable(item: &Item) -> Option<String> {
    Some(match &item.content {
        ItemContent::UserMessage { text, .. } | ItemContent::AgentMessage { text } => text.clone(),
        ItemContent::ToolCall(call) if call.status.is_final() => call_summary(call),
        ItemContent::Plan { steps } => {
            steps.iter().map(|step| step.text.as_str()).collect::<Vec<_>>().join("\n")
        }
        ItemContent::Question(question) => match &question.answer {
            Some(answer) => format!("{}\n{}", question.text, answer.text),
            None => question.text.clone(),
        },
        ItemContent::Compaction { digest, .. } => digest.clone(),
        _ => return None,
    })
}

fn call_summary(call: &ToolCallItem) -> String {
    let error = call.result.as_ref().and_then(|result| result.error.as_deref()).unwrap_or_default();
    format!("{} {}\n{}", call.tool, cut(&call.arguments, ARGUMENT_BYTES), cut(error, ARGUMENT_BYTES))
}

/// At most `most` bytes of `text`, cut between characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The FTS5 query for words as a user typed them: every word quoted, so that no word is syntax, the last one as a prefix, so that
/// typing on narrows. `None` when there is no word in it.
pub(crate) fn query(typed: &str) -> Option<String> {
    // More words than this narrow nothing and only cost time.
    let quoted: Vec<String> = words(typed).take(32).map(|word| format!("\"{word}\"")).collect();
    (!quoted.is_empty()).then(|| quoted.join(" ") + "*")
}

/// The text around the first of the typed words, on one line.
pub(crate) fn excerpt(text: &str, typed: &str) -> String {
    let lower = text.to_lowercase();
    // Lower case may have another length; then the excerpt is a little off, and never out of range.
    let found = words(typed).filter_map(|word| lower.find(&word.to_lowercase())).min().unwrap_or(0);
    let start = text.floor_char_boundary(found.saturating_sub(EXCERPT_SIDE).min(text.len()));
    let end = text.floor_char_boundary(found.saturating_add(EXCERPT_SIDE).min(text.len())).max(start);
    let middle = text[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
    let before = if start > 0 { "… " } else { "" };
    let after = if end < text.len() { " …" } else { "" };
    format!("{before}{middle}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_and_the_last_is_a_prefix() {
        assert_eq!(query("foo AND (bar").as_deref(), Some("\"foo\" \"AND\" \"bar\"*"));
        assert_eq!(query("a\"b*").as_deref(), Some("\"a\" \"b\"*"));
        assert_eq!(query(" \"*( "), None);
    }

    #[test]
    fn an_excerpt_is_one_line_around_the_word() {
        let text = format!("{} the needle\nlies here {}", "hay ".repeat(100), "hay ".repeat(100));
        let excerpt = excerpt(&text, "NEEDLE");
        assert!(excerpt.contains("the needle lies here"), "{excerpt}");
        assert!(excerpt.starts_with("… ") && excerpt.ends_with(" …"), "{excerpt}");
    }

    #[test]
    fn an_excerpt_of_text_whose_lower_case_is_longer_stays_in_range() {
        let text = "İ".repeat(300) + "needle";
        assert!(!excerpt(&text, "needle").is_empty());
    }
}
