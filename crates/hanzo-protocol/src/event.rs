//! Notifications: what a face sees while it watches a thread. The headless JSON lines and the server-sent events are
//! exactly these.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::ThreadSummary;
use crate::ids::{ApprovalId, ItemId, ThreadId, TurnId};
use crate::item::{Approval, Item, NoticeLevel, Question, TurnSummary};
use crate::message::ApiError;

/// A place in a thread's notifications. Reconnecting with the last one seen replays what was missed.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct EventCursor(pub u64);

/// One notification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Its place; it grows by one with each notification of the thread.
    pub cursor: EventCursor,
    /// The thread it is about.
    pub thread_id: ThreadId,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub content: EventContent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum EventContent {
    /// The thread exists.
    #[serde(rename = "thread.started")]
    ThreadStarted {
        /// The thread.
        thread: ThreadSummary,
    },
    /// The thread works differently from now on: another mode.
    #[serde(rename = "thread.changed")]
    ThreadChanged {
        /// The thread as it is now.
        thread: ThreadSummary,
    },
    /// A turn began.
    #[serde(rename = "turn.started")]
    TurnStarted {
        /// The turn.
        turn_id: TurnId,
    },
    /// An item exists; it may still grow.
    #[serde(rename = "item.started")]
    ItemStarted {
        /// The item as it begins.
        item: Item,
    },
    /// An item grew. A slow reader gets several of these as one.
    #[serde(rename = "item.delta")]
    ItemDelta {
        /// The item.
        item_id: ItemId,
        /// The text to append.
        delta: String,
    },
    /// An item is final and stored.
    #[serde(rename = "item.completed")]
    ItemCompleted {
        /// The item as it will stay.
        item: Item,
    },
    /// The agent rests.
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        /// The turn.
        turn_id: TurnId,
        /// How it came to rest.
        summary: TurnSummary,
    },
    /// The turn could not go on.
    #[serde(rename = "turn.failed")]
    TurnFailed {
        /// The turn.
        turn_id: TurnId,
        /// Why.
        error: ApiError,
    },
    /// The user's consent is needed.
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        /// What is asked.
        approval: Approval,
    },
    /// Somebody answered; the first answer counts.
    #[serde(rename = "approval.resolved")]
    ApprovalResolved {
        /// The request.
        approval_id: ApprovalId,
        /// Whether the call may run.
        allowed: bool,
        /// The face that answered.
        by: String,
    },
    /// The agent asks the user something.
    #[serde(rename = "question.asked")]
    QuestionAsked {
        /// The question.
        question: Question,
    },
    /// Something the user should know.
    #[serde(rename = "notice")]
    Notice {
        /// How grave it is.
        level: NoticeLevel,
        /// The sentence to show.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_one_flat_line_with_a_dotted_type() {
        let event = Event {
            cursor: EventCursor(7),
            thread_id: ThreadId::new(),
            at: "2026-01-02T03:04:05Z".parse().unwrap(),
            content: EventContent::ItemDelta { item_id: ItemId::new(), delta: "hel".into() },
        };
        let wire = serde_json::to_value(&event).unwrap();
        assert_eq!(wire["type"], json!("item.delta"));
        assert_eq!(wire["cursor"], json!(7));
        assert_eq!(wire["delta"], json!("hel"));
        assert!(wire["itemId"].is_string() && wire["threadId"].is_string());
        assert_eq!(serde_json::from_value::<Event>(wire).unwrap(), event);
    }
}
