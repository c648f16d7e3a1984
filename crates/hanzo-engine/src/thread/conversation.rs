//! The request, grown item by item. Nothing in it is ever changed, only appended to, so that each request begins with the
//! bytes of the one before and the vendor's cache helps; what makes it shorter is a break, and recorded as one.
//!
//! The same items always give the same messages, whether they are appended one by one while the thread runs or read from
//! the store when it is opened again:
//!
//! * reasoning, text and calls of one step are one assistant message; calls of one step have the same `created_at`,
//! * results follow in the order of the calls, whatever order they finished in,
//! * what the host adds is a tagged user message of its own, and never between a call and its result,
//! * an assistant message without text and calls does not exist, for vendors refuse it.

use hanzo_protocol::item::{BreakReason, Item, ItemContent, ToolCallItem, Visibility};
use hanzo_protocol::message::{Message, ToolCall};
use hanzo_protocol::tool::ToolResult;
use jiff::Timestamp;

use crate::answer::Answer;
use crate::fold;

/// What a call is answered with when it was stopped, or the process died under it.
pub(crate) const INTERRUPTED: &str =
    "interrupted: the turn was cancelled before this call was done; it may have run in part";

/// Turns items into messages.
#[derive(Debug, Default)]
pub(crate) struct Weaver {
    answer: Answer,
    results: Vec<Message>,
    /// When the calls of the open step were made.
    made: Option<Timestamp>,
    /// What waits until the open calls have their results.
    waiting: Vec<Message>,
}

impl Weaver {
    /// Adds an item; messages that are now complete go to `messages`.
    pub(crate) fn push(&mut self, item: &Item, messages: &mut Vec<Message>) {
        if item.visibility != Visibility::Active {
            return;
        }
        match &item.content {
            ItemContent::Reasoning(reasoning) => {
                self.begin_answer(messages);
                self.answer.reasoning.push(reasoning.clone());
            }
            ItemContent::AgentMessage { text } => {
                self.begin_answer(messages);
                self.answer.text.push_str(text);
            }
            // A call outside of a turn was somebody else's, and the model never made it.
            ItemContent::ToolCall(call) if item.turn_id.is_some() => {
                if self.made.is_some_and(|made| made != item.created_at) {
                    self.finish(messages);
                }
                self.made = Some(item.created_at);
                self.answer.calls.push(ToolCall {
                    id: call.call_id.clone(),
                    name: call.called_name().to_owned(),
                    arguments: call.arguments.clone(),
                });
                self.results.push(result_message(call));
            }
            ItemContent::UserMessage { text, attachments } => {
                let message = Message { attachments: attachments.clone(), ..Message::user(text) };
                self.say(message, messages);
            }
            ItemContent::Fragment { kind, text } => {
                let message = Message::user(tagged(kind, text));
                self.say(message, messages);
            }
            ItemContent::Compaction { digest, .. } => {
                let message = fold::digest_message(digest);
                self.say(message, messages);
            }
            ItemContent::PrefixBreak { reason: BreakReason::ModelSwitch } => {
                self.finish(messages);
                // A vendor takes no reasoning of another's, and the prefix is a new one anyway.
                for message in messages.iter_mut() {
                    message.reasoning.clear();
                }
            }
            _ => {}
        }
    }

    /// Ends the open step: whatever comes next is not part of it.
    pub(crate) fn finish(&mut self, messages: &mut Vec<Message>) {
        self.made = None;
        messages.extend(std::mem::take(&mut self.answer).message());
        messages.append(&mut self.results);
        messages.append(&mut self.waiting);
    }

    /// Text and reasoning begin an answer; after calls that is the next one.
    fn begin_answer(&mut self, messages: &mut Vec<Message>) {
        if self.made.is_some() {
            self.finish(messages);
        }
    }

    fn say(&mut self, message: Message, messages: &mut Vec<Message>) {
        if message.content.is_empty() && message.attachments.is_empty() {
            return;
        }
        self.waiting.push(message);
        self.finish(messages);
    }
}

fn result_message(call: &ToolCallItem) -> Message {
    let (text, attachments, is_error) = match &call.result {
        Some(result) => (text_of(result), result.attachments.clone(), result.is_error),
        None => (INTERRUPTED.to_owned(), Vec::new(), true),
    };
    Message { attachments, is_error, ..Message::tool(call.call_id.clone(), call.called_name(), text) }
}

/// What the model reads. The reason of a failure is always part of it, whatever the tool put into its output, and it is
/// never empty, for some vendors refuse that.
pub(crate) fn text_of(result: &ToolResult) -> String {
    match &result.error {
        Some(error) if result.output.is_empty() => error.clone(),
        Some(error) if !result.output.contains(error.as_str()) => format!("{error}\n{}", result.output),
        _ if result.output.is_empty() => "(no output)".to_owned(),
        _ => result.output.clone(),
    }
}

/// Text of the host, marked as such.
pub(crate) fn tagged(kind: &str, text: &str) -> String {
    format!("<{kind}>\n{}\n</{kind}>", text.trim_end())
}

/// The messages of all items.
pub(crate) fn messages_of<'a>(items: impl IntoIterator<Item = &'a Item>) -> Vec<Message> {
    let mut weaver = Weaver::default();
    let mut messages = Vec::new();
    for item in items {
        weaver.push(item, &mut messages);
    }
    weaver.finish(&mut messages);
    messages
}

#[cfg(test)]
mod tests {
    use hanzo_protocol::ids::{ItemId, ThreadId, ToolCallId, TraceId, TurnId};
    use hanzo_protocol::item::ToolCallStatus;
    use hanzo_protocol::message::{Reasoning, Role};
    use proptest::prelude::*;

    use super::*;

    fn item(at: i64, content: ItemContent) -> Item {
        Item {
            id: ItemId::new(),
            thread_id: ThreadId::new(),
            turn_id: Some(TurnId::new()),
            created_at: Timestamp::from_second(at).unwrap(),
            visibility: Visibility::Active,
            taint: None,
            content,
        }
    }

    fn call(at: i64, id: &str, result: Option<ToolResult>) -> Item {
        item(
            at,
            ItemContent::ToolCall(ToolCallItem {
                call_id: ToolCallId::new(id),
                tool: "fs.read".into(),
                called_as: None,
                arguments: "{}".into(),
                effect: None,
                status: ToolCallStatus::Completed,
                result,
                full_output: None,
                trace_id: TraceId::new(),
                duration_ms: None,
            }),
        )
    }

    fn user(text: &str) -> Item {
        item(0, ItemContent::UserMessage { text: text.into(), attachments: Vec::new() })
    }

    fn said(text: &str) -> Item {
        item(0, ItemContent::AgentMessage { text: text.into() })
    }

    fn shape(messages: &[Message]) -> Vec<String> {
        messages
            .iter()
            .map(|message| {
                let calls: Vec<&str> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
                let answers = message.tool_call_id.as_ref().map_or("", ToolCallId::as_str);
                format!("{:?} {} {calls:?} {answers}", message.role, message.content).to_lowercase()
            })
            .collect()
    }

    #[test]
    fn calls_of_one_step_are_one_message_and_calls_of_the_next_are_another() {
        let ok = || Some(ToolResult::success("ok"));
        let items = [
            user("go"),
            said("hm"),
            call(1, "a", ok()),
            call(1, "b", None),
            call(2, "c", ok()),
            said("done"),
        ];
        assert_eq!(
            shape(&messages_of(&items)),
            [
                "user go [] ",
                "assistant hm [\"a\", \"b\"] ",
                "tool ok [] a",
                &format!("tool {INTERRUPTED} [] b"),
                "assistant  [\"c\"] ",
                "tool ok [] c",
                "assistant done [] ",
            ]
        );
    }

    #[test]
    fn a_fragment_never_comes_between_a_call_and_its_result() {
        let fragment = item(1, ItemContent::Fragment { kind: "git-state".into(), text: "clean\n".into() });
        let items = [user("go"), call(1, "a", Some(ToolResult::success(""))), fragment, call(1, "b", None)];
        assert_eq!(
            shape(&messages_of(&items))[1..4],
            [
                "assistant  [\"a\"] ".to_owned(),
                "tool (no output) [] a".to_owned(),
                "user <git-state>\nclean\n</git-state> [] ".to_owned()
            ]
        );
    }

    #[test]
    fn what_the_model_no_longer_sees_is_left_out_and_so_is_an_empty_answer() {
        let mut gone = said("gone");
        gone.visibility = Visibility::Folded;
        let thought = item(0, ItemContent::Reasoning(Reasoning { text: "hm".into(), signature: None }));
        assert_eq!(
            shape(&messages_of(&[user("a"), gone, thought, said(" \n"), user("b")])),
            ["user a [] ", "user b [] "]
        );
    }

    fn any_item() -> impl Strategy<Value = Item> {
        let text = prop_oneof![Just(String::new()), "[a-c]{0,3}"];
        prop_oneof![
            text.clone().prop_map(|text| user(&text)),
            text.clone().prop_map(|text| said(&text)),
            text.clone()
                .prop_map(|text| item(0, ItemContent::Reasoning(Reasoning { text, signature: None }))),
            text.prop_map(|text| item(0, ItemContent::Fragment { kind: "k".into(), text })),
            (0i64..3, 0u32..1000, any::<bool>()).prop_map(|(at, id, done)| call(
                at,
                &id.to_string(),
                done.then(|| ToolResult::success("r"))
            )),
        ]
    }

    proptest! {
        #[test]
        fn any_items_make_a_request_vendors_take(items in proptest::collection::vec(any_item(), 0..20)) {
            let messages = messages_of(&items);
            let mut open: Vec<ToolCallId> = Vec::new();
            for message in &messages {
                if message.role == Role::Tool {
                    let first = open.remove(0);
                    prop_assert_eq!(Some(first), message.tool_call_id.clone());
                } else {
                    prop_assert!(open.is_empty(), "a call without its result");
                    open = message.tool_calls.iter().map(|call| call.id.clone()).collect();
                }
                prop_assert!(!message.content.is_empty() || !message.tool_calls.is_empty());
            }
            prop_assert!(open.is_empty());
        }

        #[test]
        fn growing_never_changes_what_is_there(items in proptest::collection::vec(any_item(), 0..20)) {
            let mut weaver = Weaver::default();
            let mut messages = Vec::new();
            let mut before: Vec<Message> = Vec::new();
            for item in &items {
                weaver.push(item, &mut messages);
                prop_assert!(messages.starts_with(&before));
                before.clone_from(&messages);
            }
        }
    }
}
