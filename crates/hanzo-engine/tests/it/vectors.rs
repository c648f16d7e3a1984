//! The parity vectors: every platform folds the same conversation in the same way.

use hanzo_engine::compaction::{
    COMPACTED, CompactionResult, DEFAULT_RESERVE_RECENT, SessionCompactor, tokens_of, total_tokens,
};
use hanzo_protocol::message::{Message, Role};
use hanzo_testkit::vectors;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(rename = "note")]
    _note: Option<String>,
    max_tokens: u64,
    reserve_recent: Option<usize>,
    messages: Vec<Message>,
    summary: Option<String>,
    expected: Expected,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expected {
    messages: Vec<ExpectedMessage>,
    compacted_count: usize,
    tokens_saved: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ExpectedMessage {
    Unspecified {
        #[serde(rename = "contentUnspecified")]
        marker: bool,
    },
    Exact(Message),
}

/// What the schema says of a fold whose wording is the platform's own.
fn check_unspecified(case: &Case, index: usize, fold: &Message) {
    let name = &case.name;
    let folded = &case.messages[index..index + case.expected.compacted_count];
    let kept = total_tokens(&case.messages) - total_tokens(folded);
    let allowed = (case.max_tokens / 2).saturating_sub(kept).max(case.max_tokens / 20).max(16);
    let most = allowed.min(total_tokens(folded) - 1);

    assert_eq!(fold.role, Role::Assistant, "{name}");
    assert!(!fold.content.is_empty() && fold.tool_calls.is_empty(), "{name}");
    assert!(tokens_of(fold) <= most, "{name}: {} of {most} tokens", tokens_of(fold));
    let estimate = tokens_of(&Message { token_count: None, ..fold.clone() });
    assert_eq!(fold.token_count, Some(estimate), "{name}");
    let results = folded.iter().any(|message| message.role == Role::Tool);
    assert_eq!(fold.content.contains(COMPACTED), results, "{name}: {}", fold.content);
}

fn check(case: &Case) {
    let name = &case.name;
    let compactor = SessionCompactor::new(case.max_tokens)
        .reserve_recent(case.reserve_recent.unwrap_or(DEFAULT_RESERVE_RECENT));
    let CompactionResult { messages, compacted_count, tokens_saved } =
        compactor.compact_with(&case.messages, case.summary.as_deref());

    assert_eq!(compacted_count, case.expected.compacted_count, "{name}");
    assert_eq!(messages.len(), case.expected.messages.len(), "{name}");
    for (index, (message, expected)) in messages.iter().zip(&case.expected.messages).enumerate() {
        match expected {
            ExpectedMessage::Exact(expected) => assert_eq!(message, expected, "{name}, message {index}"),
            ExpectedMessage::Unspecified { marker } => {
                assert!(marker, "{name}: contentUnspecified is true or absent");
                check_unspecified(case, index, message);
            }
        }
    }
    let difference = total_tokens(&case.messages) - total_tokens(&messages);
    assert_eq!(tokens_saved, difference, "{name}");
    assert_eq!(tokens_saved, case.expected.tokens_saved.unwrap_or(difference), "{name}");
    assert_eq!(tokens_saved > 0, compacted_count > 0, "{name}");
}

#[test]
fn conversations_are_folded_as_in_the_vectors() {
    vectors::cases("session-compaction.json", 20).iter().for_each(check);
}
