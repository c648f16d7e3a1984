//! Items: what a thread is made of. The same type goes over the wire, into the store and out as JSON lines.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ApprovalId, CheckpointId, ItemId, QuestionId, ThreadId, ToolCallId, TraceId, TurnId};
use crate::message::{Attachment, Reasoning};
use crate::primitives::Ref;
use crate::tool::{Effect, ToolResult};
use crate::usage::{Cost, Usage};

/// One entry of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Its id.
    pub id: ItemId,
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn that made it; none for what happened between turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether the model still sees it.
    #[serde(default)]
    pub visibility: Visibility,
    /// Where untrusted content in it came from; none for what the user and the model said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taint: Option<Taint>,
    /// What it is.
    #[serde(flatten)]
    pub content: ItemContent,
}

/// Whether the model still sees an item. Nothing is deleted: an original stays readable whatever happens to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Visibility {
    /// It is part of the next request.
    #[default]
    Active,
    /// A digest stands in its place.
    Folded,
    /// The thread was rewound to before it.
    Rewound,
}

/// Where untrusted content came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Taint {
    /// Another machine.
    Network,
    /// An MCP server.
    Mcp,
    /// A file outside the workspace.
    Outside,
}

/// What an item is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "most items are calls; a box would cost an allocation each and save nothing"
)]
pub enum ItemContent {
    /// What the user said, references already resolved.
    UserMessage {
        /// The text.
        text: String,
        /// Images and documents.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// What the agent said.
    AgentMessage {
        /// The text, in Markdown.
        text: String,
    },
    /// What the model thought.
    Reasoning(Reasoning),
    /// A tool call, from request to result.
    ToolCall(ToolCallItem),
    /// The agent's plan as it now stands; the newest one counts.
    Plan {
        /// The steps in order.
        steps: Vec<PlanStep>,
    },
    /// A question the agent put to the user.
    Question(Question),
    /// Earlier items were folded into a digest.
    Compaction {
        /// What stands in their place.
        digest: String,
        /// How many items were folded.
        folded: u64,
        /// How many tokens smaller the next request is.
        tokens_saved: u64,
        /// The item before which the digest is told to the model: the first of those that were recent enough to keep.
        /// None puts it where it stands in the thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<ItemId>,
    },
    /// The prompt's prefix changed, so the vendor's cache starts anew.
    PrefixBreak {
        /// Why.
        reason: BreakReason,
    },
    /// Text added for the model by the host: diagnostics, git state, the date, a goal.
    Fragment {
        /// What sort of text, which also is its tag.
        kind: String,
        /// The text.
        text: String,
    },
    /// Something the user should know, and the model need not.
    Notice {
        /// How grave it is.
        level: NoticeLevel,
        /// The sentence to show.
        text: String,
    },
}

/// A tool call, from request to result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallItem {
    /// The vendor's id of the call.
    pub call_id: ToolCallId,
    /// The canonical `tool.action`, or the namespaced name of an MCP tool.
    pub tool: String,
    /// The name it was called by, where that is not the part of `tool` before the dot. A model has to see its own words
    /// again, and nothing else, in the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_as: Option<String>,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// What the call does to the world, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// How far it got.
    pub status: ToolCallStatus,
    /// What it returned, shortened to the budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// Where the whole output is, when the result was shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output: Option<Ref>,
    /// The id in logs and audit records.
    pub trace_id: TraceId,
    /// How long it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl ToolCallItem {
    /// The name the model called.
    pub fn called_name(&self) -> &str {
        let plain = || self.tool.split_once('.').map_or(self.tool.as_str(), |(tool, _)| tool);
        self.called_as.as_deref().unwrap_or_else(plain)
    }
}

/// How far a tool call got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolCallStatus {
    /// The gate has not decided yet.
    Pending,
    /// The user is being asked.
    AwaitingApproval,
    /// It runs.
    Running,
    /// It ran and succeeded.
    Completed,
    /// It ran and failed.
    Failed,
    /// The gate refused it.
    Denied,
    /// It was stopped, or the process died under it. It is never run again by itself.
    Interrupted,
}

impl ToolCallStatus {
    /// Whether nothing more will happen to the call.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Denied | Self::Interrupted)
    }
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: PlanStatus,
}

/// How far a step of a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PlanStatus {
    /// Not begun.
    Pending,
    /// Being done.
    Active,
    /// Done.
    Done,
    /// Given up, with the reason in the text.
    Dropped,
}

/// A question the agent puts to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Its id.
    pub question_id: QuestionId,
    /// What is asked.
    pub text: String,
    /// Answers to choose from; none means free text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The answer, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

/// An answer, and who gave it: what a model assumed in a headless run must never pass for the user's word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The answer.
    pub text: String,
    /// Who gave it.
    pub by: AnsweredBy,
}

/// Who gave an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AnsweredBy {
    /// The user.
    User,
    /// Nobody was there; the model goes on with this assumption.
    ModelAssumption,
}

/// Why the prompt's prefix changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BreakReason {
    /// Earlier items were folded.
    Compaction,
    /// Another model goes on.
    ModelSwitch,
    /// An MCP server's tool list changed.
    ToolListChanged,
    /// The standing instructions are other ones than when the thread was last open: a file or a setting was edited.
    InstructionsChanged,
    /// Something the vendor is told beside the text changed: the effort, the temperature, the longest answer.
    SettingsChanged,
    /// The conversation was taken back to an earlier point.
    Rewind,
}

/// How grave a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something did not go as asked.
    Warning,
    /// Something failed.
    Error,
}

/// A request for the user's consent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Its id.
    pub approval_id: ApprovalId,
    /// The call that waits.
    pub item_id: ItemId,
    /// The canonical `tool.action`.
    pub tool: String,
    /// What will happen, in words.
    pub summary: String,
    /// Why it is asked: the rule, its file, the simple command.
    pub reason: String,
    /// The rules the user may grant, from narrow to wide, exactly as they would be saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// How a turn came to rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSummary {
    /// Why it ended.
    pub ended: TurnEnd,
    /// How many model requests it took.
    pub steps: u64,
    /// Their tokens.
    pub usage: Usage,
    /// Their price, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The state of the files at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointId>,
    /// Calls that were refused because nobody could be asked.
    #[serde(default)]
    pub refused: u32,
    /// Requests whose prompt did not begin with the one before, so that the vendor's cache could not help.
    #[serde(default)]
    pub prefix_breaks: u32,
    /// About how many tokens the next request will have before anything new is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// How many a request may have, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum TurnEnd {
    /// The agent has nothing more to do.
    Completed,
    /// The user stopped it.
    Interrupted,
    /// It reached the most steps it may take.
    StepLimit,
    /// It reached its budget.
    BudgetReached,
    /// It kept repeating itself without progress.
    NoProgress,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_item_is_flat_on_the_wire_and_reads_back() {
        let item = Item {
            id: ItemId::new(),
            thread_id: ThreadId::new(),
            turn_id: Some(TurnId::new()),
            created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            visibility: Visibility::Active,
            taint: None,
            content: ItemContent::ToolCall(ToolCallItem {
                call_id: ToolCallId::new("call_1"),
                tool: "fs.read".into(),
                called_as: None,
                arguments: "{}".into(),
                effect: Some(Effect::Read),
                status: ToolCallStatus::Completed,
                result: Some(ToolResult::success("text")),
                full_output: None,
                trace_id: TraceId::new(),
                duration_ms: Some(3),
            }),
        };
        let wire = serde_json::to_value(&item).unwrap();
        assert_eq!(wire["type"], json!("toolCall"));
        assert_eq!(wire["createdAt"], json!("2026-01-02T03:04:05Z"));
        assert_eq!(wire["callId"], json!("call_1"));
        assert_eq!(wire["result"], json!({"output": "text", "isError": false}));
        assert_eq!(serde_json::from_value::<Item>(wire).unwrap(), item);
    }

    #[test]
    fn a_call_is_over_only_when_nothing_more_can_happen_to_it() {
        use ToolCallStatus::{AwaitingApproval, Completed, Denied, Failed, Interrupted, Pending, Running};
        assert!([Completed, Failed, Denied, Interrupted].into_iter().all(ToolCallStatus::is_final));
        assert!(![Pending, AwaitingApproval, Running].into_iter().any(ToolCallStatus::is_final));
    }
}
