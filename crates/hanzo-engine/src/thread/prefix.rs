//! What every request of a thread begins with, and when that changes. A vendor's cache helps only as far as a request repeats
//! the one before, so each change is an item with its reason, and each turn counts the requests that did not repeat theirs.
//!
//! The beginning of the last answered request is kept with the thread: when it is opened again, perhaps days later with
//! another model or an edited `AGENTS.md`, the break is known and told like any other.

use hanzo_protocol::item::{BreakReason, Item, ItemContent};
use hanzo_protocol::message::ModelRequest;
use hanzo_protocol::primitives::{ContentHash, ContentHasher};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What stands before the conversation in a request, by what changes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Prefix {
    /// The model's reference.
    model: String,
    instructions: ContentHash,
    tools: ContentHash,
    settings: String,
}

/// What the last answered request began with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) prefix: Prefix,
    /// Grows whenever the conversation is told anew instead of being appended to.
    pub(crate) telling: u64,
}

impl Prefix {
    /// What `request` begins with when it is sent to the model called `reference`.
    pub(crate) fn of(reference: &str, request: &ModelRequest) -> Self {
        let system = request.messages.first().map(|message| message.content.as_str()).unwrap_or_default();
        let mut tools = ContentHasher::default();
        for tool in &request.tools {
            for part in [tool.name.as_str(), &tool.description, tool.parameters.get()] {
                tools.update(part.as_bytes());
                tools.update(&[0]);
            }
        }
        let settings = json!([request.temperature, request.max_tokens, request.effort]);
        Self {
            model: reference.to_owned(),
            instructions: ContentHash::of(system.as_bytes()),
            tools: tools.finish(),
            settings: settings.to_string(),
        }
    }

    /// Why a request that begins with this does not repeat one that began with `before`.
    pub(crate) fn breaks_since(&self, before: &Self) -> Vec<BreakReason> {
        let mut reasons = Vec::new();
        if self.model != before.model {
            reasons.push(BreakReason::ModelSwitch);
        }
        if self.instructions != before.instructions {
            reasons.push(BreakReason::InstructionsChanged);
        }
        if self.tools != before.tools {
            reasons.push(BreakReason::ToolListChanged);
        }
        // Another model has other limits, which is not another reason.
        if self.settings != before.settings && self.model == before.model {
            reasons.push(BreakReason::SettingsChanged);
        }
        reasons
    }
}

/// What is kept with the thread about its last answered request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastRequest {
    /// What it began with.
    pub(crate) prefix: Prefix,
    /// How many tokens its prompt had, as the vendor counted: whether a fold is due is known in the next process too.
    #[serde(default)]
    pub(crate) reported: u64,
}

impl LastRequest {
    /// As it is kept.
    pub(crate) fn to_state(&self) -> Value {
        json!({ "lastRequest": self })
    }

    /// What was kept, where something was and can be read.
    pub(crate) fn from_state(state: &Value) -> Option<Self> {
        serde_json::from_value(state.get("lastRequest")?.clone()).ok()
    }
}

/// Whether the conversation was made shorter after its last answer, so that the next request cannot repeat the last. `items`
/// are in the order in which they were appended.
pub(crate) fn was_cut_since(items: &[Item]) -> bool {
    let is_answer = |item: &Item| {
        item.turn_id.is_some()
            && matches!(
                item.content,
                ItemContent::AgentMessage { .. } | ItemContent::Reasoning(_) | ItemContent::ToolCall(_)
            )
    };
    let cuts = |item: &Item| {
        let cut = [BreakReason::Compaction, BreakReason::Rewind];
        matches!(&item.content, ItemContent::PrefixBreak { reason } if cut.contains(reason))
    };
    items.iter().rev().take_while(|item| !is_answer(item)).any(cuts)
}

#[cfg(test)]
mod tests {
    use hanzo_protocol::ids::{ThreadId, TurnId};
    use hanzo_protocol::message::{Effort, Message};

    use super::super::state::new_item;
    use super::*;

    fn request(system: &str) -> ModelRequest {
        ModelRequest { messages: vec![Message::system(system)], ..ModelRequest::default() }
    }

    #[test]
    fn each_change_has_its_reason_and_survives_being_kept() {
        let before = Prefix::of("a/one", &request("Be kind"));
        let last = LastRequest { prefix: before.clone(), reported: 7 };
        let kept = LastRequest::from_state(&last.to_state()).unwrap();
        assert_eq!(kept, last);
        let kept = kept.prefix;
        assert_eq!(kept.breaks_since(&before), []);
        let other = ModelRequest { max_tokens: Some(7), ..request("Be kind") };
        assert_eq!(Prefix::of("a/two", &other).breaks_since(&kept), [BreakReason::ModelSwitch]);
        assert_eq!(Prefix::of("a/one", &other).breaks_since(&kept), [BreakReason::SettingsChanged]);
        let changed = ModelRequest { effort: Some(Effort::High), ..request("Be brief") };
        assert_eq!(
            Prefix::of("a/one", &changed).breaks_since(&kept),
            [BreakReason::InstructionsChanged, BreakReason::SettingsChanged]
        );
        assert_eq!(LastRequest::from_state(&json!({"lastRequest": {"prefix": 1}})), None);
    }

    #[test]
    fn a_cut_counts_until_the_next_answer() {
        let (thread, turn) = (ThreadId::new(), Some(TurnId::new()));
        let said = || new_item(thread, turn, ItemContent::AgentMessage { text: "x".into() });
        let cut = |reason| new_item(thread, None, ItemContent::PrefixBreak { reason });
        assert!(!was_cut_since(&[said()]));
        assert!(was_cut_since(&[said(), cut(BreakReason::Compaction)]));
        assert!(was_cut_since(&[said(), cut(BreakReason::Rewind)]));
        assert!(!was_cut_since(&[said(), cut(BreakReason::Compaction), said()]));
        assert!(
            !was_cut_since(&[said(), cut(BreakReason::ToolListChanged)]),
            "that is compared, not remembered"
        );
    }
}
