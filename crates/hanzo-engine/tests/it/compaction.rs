//! What compaction promises, beyond the vectors.

use hanzo_engine::compaction::{
    COMPACTED, DEFAULT_RESERVE_RECENT, SessionCompactor, tokens_of, total_tokens, transcript,
};
use hanzo_protocol::ids::ToolCallId;
use hanzo_protocol::message::{Message, Role, ToolCall};
use proptest::prelude::*;

fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: ToolCallId::new("1"), name: name.into(), arguments: arguments.into() }
}

fn turns(count: usize) -> Vec<Message> {
    let mut messages = vec![Message::system("Be brief.")];
    for number in 1..=count {
        messages.push(Message::user(format!("question {number} {}", "q".repeat(200))));
        messages.push(Message::assistant("").with_tool_calls(vec![call("fs", "{}"), call("shell", "{}")]));
        messages.push(Message::tool(ToolCallId::new("1"), "fs", format!("secret {}", "r".repeat(400))));
        messages.push(Message::assistant(format!("answer {number}")));
    }
    messages
}

#[test]
fn three_turns_are_kept_unless_told_otherwise() {
    let messages = turns(6);
    let result = SessionCompactor::new(800).compact(&messages);
    assert_eq!(DEFAULT_RESERVE_RECENT, 3);
    assert_eq!(result.compacted_count, 12);
    assert_eq!(result.messages[0], messages[0]);
    assert_eq!(result.messages[2..], messages[13..]);
    assert_eq!(result, SessionCompactor::new(800).reserve_recent(3).compact(&messages));
}

#[test]
fn without_a_limit_there_is_no_compaction() {
    assert_eq!(SessionCompactor::from_limit(None), None);
    assert_eq!(SessionCompactor::from_limit(Some(0)), None, "a window of 0 is how it is switched off");
    assert_eq!(SessionCompactor::from_limit(Some(800)), Some(SessionCompactor::new(800)));
}

#[test]
fn the_line_is_nine_tenths_exactly_and_without_overflow() {
    let at = |tokens: u64, limit: u64| {
        SessionCompactor::new(limit).needs_compaction(&[Message::user("x").with_token_count(tokens)])
    };
    assert!(!at(900, 1000) && at(901, 1000));
    assert!(!at(9, 11) && at(10, 11), "9.9 lies between");
    assert!(!at(0, 0) && at(1, 0));
    assert!(!at(u64::MAX / 10 * 9, u64::MAX) && at(u64::MAX, u64::MAX));
    let two = [Message::user("x").with_token_count(u64::MAX), Message::user("x").with_token_count(9)];
    assert_eq!(total_tokens(&two), u64::MAX);
}

#[test]
fn what_is_to_be_summarised_names_calls_and_hides_results() {
    let messages = turns(4);
    let range = SessionCompactor::new(600).foldable(&messages).unwrap();
    assert_eq!(range, 1..5);
    let text = transcript(&messages[range]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("user: question 1 qqq"));
    assert_eq!(lines[1..], ["assistant: [called fs, shell]", "fs: [compacted]", "assistant: answer 1"]);
    assert_eq!(SessionCompactor::new(100_000).foldable(&messages), None);
}

#[test]
fn a_fold_without_a_model_says_what_was_said_and_called_but_not_what_tools_returned() {
    let result = SessionCompactor::new(1000).reserve_recent(1).compact(&turns(6));
    let fold = &result.messages[1];
    assert_eq!(fold.role, Role::Assistant);
    for part in ["question 1", "question 5", "answer 5", "[called fs, shell]", COMPACTED] {
        assert!(fold.content.contains(part), "{part}: {}", fold.content);
    }
    assert!(!fold.content.contains("secret") && !fold.content.contains("question 6"), "{}", fold.content);
}

#[test]
fn a_summary_is_taken_as_it_is_and_a_missing_one_changes_nothing_else() {
    let messages = turns(6);
    let compactor = SessionCompactor::new(800);
    let with = compactor.compact_with(&messages, Some("  They asked three questions.\n"));
    let without = compactor.compact_with(&messages, None);
    assert_eq!(with.messages[1].content, "  They asked three questions.\n");
    assert_eq!(with.messages[1].token_count, Some(8));
    assert_eq!(with.messages[2..], without.messages[2..]);
    assert_eq!(with.compacted_count, without.compacted_count);
    assert_eq!(without, compactor.compact(&messages));
}

#[test]
fn a_session_that_goes_on_for_long_stays_in_its_window_and_remembers_the_fold_before() {
    let compactor = SessionCompactor::new(1200);
    let mut messages = vec![Message::system("Be brief.")];
    let mut folds = 0;
    for turn in turns(60)[1..].chunks(4) {
        messages.extend_from_slice(turn);
        let result = compactor.compact(&messages);
        folds += usize::from(result.compacted_count > 0);
        messages = result.messages;
        assert!(!compactor.needs_compaction(&messages), "{} tokens", total_tokens(&messages));
        assert!(messages.len() <= 2 + 4 * 60);
    }
    assert!((2..30).contains(&folds), "{folds} folds in 60 turns: neither never nor each time");
    let assistants_before_the_tail = messages[1..].iter().take_while(|m| m.role != Role::User).count();
    assert_eq!(assistants_before_the_tail, 1, "the earlier fold went into the later one");
}

/// A text of characters of one to four bytes. Not from a pattern, which takes most of a test's time to generate.
fn any_text(longest: usize) -> impl Strategy<Value = String> {
    (0..=longest, 0_usize..6)
        .prop_map(|(length, from)| "ab é\n😀".chars().cycle().skip(from).take(length).collect())
}

fn any_message() -> impl Strategy<Value = Message> {
    let text = prop_oneof![4 => any_text(40), 1 => any_text(2000)];
    let calls = prop::collection::vec((any_text(80), any_text(60)), 0..3);
    (0_usize..5, text, calls, prop::option::weighted(0.3, 0_u64..300)).prop_map(
        |(role, text, calls, tokens)| {
            let mut message = match role {
                0 | 1 => Message::user(text),
                2 => Message::assistant(text)
                    .with_tool_calls(calls.iter().map(|(name, arguments)| call(name, arguments)).collect()),
                3 => Message::tool(ToolCallId::new("1"), "fs", text),
                _ => Message::system(text),
            };
            message.token_count = tokens;
            message
        },
    )
}

fn any_conversation() -> impl Strategy<Value = Vec<Message>> {
    (any::<bool>(), prop::collection::vec(any_message(), 0..60)).prop_map(|(system, mut messages)| {
        if system {
            messages.insert(0, Message::system("Be brief."));
        }
        messages
    })
}

proptest! {
    #[test]
    fn any_conversation_is_folded_by_the_rules(
        messages in any_conversation(),
        limit in 0_u64..3000,
        reserve in 0_usize..6,
        summary in prop::option::of(any_text(3000)),
    ) {
        let compactor = SessionCompactor::new(limit).reserve_recent(reserve);
        let result = compactor.compact_with(&messages, summary.as_deref());
        let (before, after) = (total_tokens(&messages), total_tokens(&result.messages));
        prop_assert_eq!(before - after, result.tokens_saved, "and never larger");
        if result.compacted_count == 0 {
            prop_assert_eq!(&result.messages, &messages);
            prop_assert_eq!(result.tokens_saved, 0);
            return Ok(());
        }
        prop_assert!(compactor.needs_compaction(&messages) && result.tokens_saved > 0);
        prop_assert_eq!(result.messages.len(), messages.len() - result.compacted_count + 1);

        let start = usize::from(messages[0].role == Role::System);
        let (head, rest) = result.messages.split_at(start);
        let (fold, tail) = (&rest[0], &rest[1..]);
        prop_assert_eq!(head, &messages[..start]);
        prop_assert!(messages.ends_with(tail));
        let turns = tail.iter().filter(|message| message.role == Role::User).count();
        let all_turns = messages[start..].iter().filter(|message| message.role == Role::User).count();
        prop_assert_eq!(turns, all_turns.min(reserve));
        prop_assert!(tail.first().is_none_or(|first| first.role == Role::User), "no orphan result");

        prop_assert!(fold.role == Role::Assistant && fold.tool_calls.is_empty() && !fold.content.is_empty());
        prop_assert_eq!(tokens_of(fold), (fold.content.chars().count() as u64).div_ceil(4));
        if summary.as_deref().is_none_or(|summary| summary.trim().is_empty()) {
            let folded = &messages[start..start + result.compacted_count];
            let results = folded.iter().any(|message| message.role == Role::Tool);
            prop_assert_eq!(fold.content.contains(COMPACTED), results);
        }
    }

    #[test]
    fn folding_what_has_just_been_folded_changes_nothing(
        messages in any_conversation(),
        limit in 0_u64..1500,
        reserve in 0_usize..4,
    ) {
        let compactor = SessionCompactor::new(limit).reserve_recent(reserve);
        let once = compactor.compact(&messages);
        prop_assume!(once.compacted_count > 0);
        prop_assert_eq!(compactor.foldable(&once.messages), None);
        prop_assert_eq!(compactor.compact(&once.messages).messages, once.messages);
    }
}
