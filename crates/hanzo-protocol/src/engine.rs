//! The engine API: what a face asks of the engine. A face holds a `dyn EngineClient`, in-process or remote, and never
//! names the engine itself.

use std::path::PathBuf;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{Event, EventCursor};
use crate::ids::{ApprovalId, CheckpointId, ItemId, QuestionId, ThreadId, TurnId};
use crate::item::Item;
use crate::message::{Attachment, Effort};
use crate::tool::{ToolCaller, ToolResult};
use crate::usage::Cost;
use crate::{BoxFuture, BoxStream};

/// The engine as a face sees it.
pub trait EngineClient: Send + Sync {
    /// Sends one request and waits for what happened.
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, EngineError>>;

    /// Watches a thread from just after `cursor`: first what was missed, then what happens. The stream is bounded; a
    /// slow reader gets deltas joined together, never fewer completed items.
    fn subscribe(&self, thread: ThreadId, cursor: EventCursor) -> BoxStream<'_, Event>;
}

// Faces hold it as `dyn`; this stops compiling when it no longer can be.
const _: Option<&dyn EngineClient> = None;

macro_rules! engine_api {
    ($($(#[doc = $doc:literal])+ $name:ident($params:ty) -> $result:ty = $method:literal),+ $(,)?) => {
        /// A request, as JSON-RPC has it: a method and its parameters.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "method", content = "params")]
        pub enum Request {
            $($(#[doc = $doc])+ #[serde(rename = $method)] $name($params),)+
        }

        /// What a request led to, under the same method name.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "method", content = "result")]
        pub enum Response {
            $($(#[doc = $doc])+ #[serde(rename = $method)] $name($result),)+
        }

        impl Request {
            /// Every method's name.
            pub const METHODS: &[&str] = &[$($method),+];

            /// The name of this request's method.
            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => $method,)+
                }
            }
        }
    };
}

engine_api! {
    /// Begins a thread in a workspace.
    ThreadStart(ThreadStart) -> ThreadSummary = "thread/start",
    /// Opens a stored thread to go on with it.
    ThreadResume(ThreadResume) -> ThreadSummary = "thread/resume",
    /// Copies a thread up to an item; the copy goes its own way.
    ThreadFork(ThreadFork) -> ThreadSummary = "thread/fork",
    /// Lists threads, newest first.
    ThreadList(ThreadList) -> Page<ThreadSummary> = "thread/list",
    /// Reads a thread's items, oldest first.
    ThreadRead(ThreadRead) -> Page<Item> = "thread/read",
    /// Gives a thread another title.
    ThreadRename(ThreadRename) -> ThreadSummary = "thread/rename",
    /// Deletes a thread for good.
    ThreadDelete(ThreadAt) -> Done = "thread/delete",
    /// Folds earlier items into a digest now.
    ThreadCompact(ThreadAt) -> Done = "thread/compact",
    /// Takes conversation, files or both back to a checkpoint.
    ThreadRewind(ThreadRewind) -> ThreadSummary = "thread/rewind",
    /// Says which files a rewind would change and what it could not bring back; changes nothing.
    ThreadPreview(ThreadPreview) -> RewindPreview = "thread/preview",
    /// Writes a thread out as a document.
    ThreadExport(ThreadExport) -> Exported = "thread/export",
    /// Asks for a thread's notifications; they follow on the connection.
    ThreadSubscribe(ThreadSubscribe) -> Done = "thread/subscribe",
    /// Changes model, mode, posture or effort from the next turn on.
    ThreadConfigure(ThreadConfigure) -> ThreadSummary = "thread/configure",
    /// Says something to the agent.
    TurnStart(TurnStart) -> TurnStarted = "turn/start",
    /// Adds to the running turn, to be read before its next step.
    TurnSteer(TurnStart) -> TurnStarted = "turn/steer",
    /// Stops the running turn and everything it started.
    TurnInterrupt(ThreadAt) -> Done = "turn/interrupt",
    /// Runs one tool call through the gate.
    ToolCall(ToolCallRequest) -> ToolResult = "tool/call",
    /// Answers a request for consent.
    ApprovalRespond(ApprovalRespond) -> Done = "approval/respond",
    /// Answers a question.
    QuestionRespond(QuestionRespond) -> Done = "question/respond",
    /// Runs a slash command.
    CommandRun(CommandRun) -> CommandOutcome = "command/run",
    /// Trusts or distrusts what a workspace would run.
    WorkspaceTrust(WorkspaceTrust) -> Done = "workspace/trust",
    /// Lists models, agents, tools, commands and the like.
    List(List) -> Listed = "list",
}

/// A request that asks for nothing back was carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}

/// A part of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The entries.
    pub entries: Vec<T>,
    /// What to pass to get the next page; none at the end.
    #[serde(default = "no_cursor", skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

fn no_cursor() -> Option<String> {
    None
}

/// A thread in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSummary {
    /// Its id.
    pub id: ThreadId,
    /// What it is called.
    pub title: String,
    /// The workspace it works in.
    pub workspace: PathBuf,
    /// The agent manifest it runs.
    pub agent: String,
    /// The model it talks to, as `provider/model`.
    pub model: String,
    /// How it collaborates.
    pub mode: Mode,
    /// How it asks for consent.
    pub posture: Posture,
    /// The thread that began it, for a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ThreadId>,
    /// When it began.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The last notification so far.
    pub cursor: EventCursor,
}

/// How a thread collaborates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Turn by turn.
    #[default]
    Normal,
    /// Looks and plans; every writer is refused.
    Plan,
    /// Goes on by itself towards a goal.
    Goal,
}

/// How a thread asks for consent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Posture {
    /// Follows the policy and asks where it says so.
    #[default]
    Ask,
    /// Allows writers no rule speaks of; explicit rules still count.
    Auto,
    /// Asks nothing; what is denied stays denied.
    Yolo,
}

/// Parameters of `thread/start`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStart {
    /// The directory to work in.
    pub workspace: PathBuf,
    /// The agent manifest; the default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Whether the thread is forgotten when its connection ends.
    #[serde(default)]
    pub ephemeral: bool,
    /// How it works.
    #[serde(flatten)]
    pub options: ThreadOptions,
}

/// Parameters of `thread/resume`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadResume {
    /// The thread.
    pub thread_id: ThreadId,
    /// How it works from now on; what is absent stays as it was.
    #[serde(flatten)]
    pub options: ThreadOptions,
}

/// How a thread works while this engine has it open. What is absent is as the thread had it, or else as configured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ThreadOptions {
    /// A model reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How to collaborate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How to ask for consent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub posture: Option<Posture>,
    /// How hard to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Who answers when consent is needed.
    pub attendance: Attendance,
    /// Who calls its tools. A face that serves others says so here: such a thread lists every tool its agent may use and may begin every
    /// agent, within its own agent's capabilities.
    pub caller: ToolCaller,
    /// The most model requests of one turn; 0 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// The most the thread may cost from now on, subagents included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Cost>,
    /// More rules for calls that need no consent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// More rules for calls that are blocked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// Who answers when consent is needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Attendance {
    /// A person, through a face that watches the thread.
    #[default]
    Attended,
    /// Nobody: allowed inside the sandbox, refused at its edge.
    Headless,
}

/// Parameters of the requests that only name a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadAt {
    /// The thread.
    pub thread_id: ThreadId,
}

/// Parameters of `thread/fork`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadFork {
    /// The thread to copy.
    pub thread_id: ThreadId,
    /// The last item to copy; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<ItemId>,
}

/// Parameters of `thread/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ThreadList {
    /// Only threads of this workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// Only threads in which this text occurs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The most entries to return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Parameters of `thread/read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRead {
    /// The thread.
    pub thread_id: ThreadId,
    /// Where to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The most items to return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Parameters of `thread/rename`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRename {
    /// The thread.
    pub thread_id: ThreadId,
    /// Its new title.
    pub title: String,
}

/// Parameters of `thread/rewind`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRewind {
    /// The thread.
    pub thread_id: ThreadId,
    /// The checkpoint to go back to.
    pub checkpoint: CheckpointId,
    /// What to take back.
    pub what: RewindWhat,
}

/// What a rewind takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RewindWhat {
    /// The conversation.
    Conversation,
    /// The files.
    Files,
    /// Both.
    Both,
}

/// Parameters of `thread/preview`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadPreview {
    /// The thread.
    pub thread_id: ThreadId,
    /// The checkpoint a rewind would go back to.
    pub checkpoint: CheckpointId,
}

/// What a rewind of the files would do. Paths are relative to the workspace, with `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RewindPreview {
    /// Files that would be written as they were.
    pub written: Vec<String>,
    /// Files that were not there then and would be removed.
    pub removed: Vec<String>,
    /// Files that would be left as they are, and why.
    pub kept: Vec<NotRewound>,
    /// What the checkpoint does not have, so that no rewind brings it back: at most a hundred of them.
    pub left_out: Vec<NotRewound>,
    /// How many more it does not have.
    pub left_out_more: u64,
}

/// A file a rewind does not take back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotRewound {
    /// The file; a directory ends with `/`.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// Parameters of `thread/export`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadExport {
    /// The thread.
    pub thread_id: ThreadId,
    /// As what.
    pub format: ExportFormat,
}

/// What a thread can be written out as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// To read.
    Markdown,
    /// One item per line, to process.
    Jsonl,
}

/// A thread written out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exported {
    /// The document.
    pub text: String,
}

/// Parameters of `thread/subscribe`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadSubscribe {
    /// The thread.
    pub thread_id: ThreadId,
    /// The last notification seen; the beginning when absent.
    #[serde(default)]
    pub cursor: EventCursor,
}

/// Parameters of `thread/configure`: what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadConfigure {
    /// The thread.
    pub thread_id: ThreadId,
    /// A model reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How to collaborate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How to ask for consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posture: Option<Posture>,
    /// How hard to think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

/// Parameters of `turn/start` and `turn/steer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnStart {
    /// The thread.
    pub thread_id: ThreadId,
    /// What the user says, `@` references and `/` commands not yet resolved.
    pub text: String,
    /// Images and documents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The posture until the turn that this begins ends; the thread's own when absent. What joins a running turn has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posture: Option<Posture>,
}

/// What became of the user's input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TurnStarted {
    /// It began a turn.
    Started {
        /// The turn.
        turn_id: TurnId,
    },
    /// It joined the running turn.
    Steered {
        /// The turn.
        turn_id: TurnId,
    },
    /// It waits until the running turn is over.
    Queued {
        /// How many inputs are before it.
        ahead: u32,
    },
}

/// Parameters of `tool/call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallRequest {
    /// The thread the call belongs to.
    pub thread_id: ThreadId,
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// The id the call's item is to have, so that the face knows its notifications. Only where the thread is forgotten: ids of what is
    /// stored are the engine's to give. There the item itself is told only while somebody listens; what it writes and asks always is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_id: Option<ItemId>,
}

/// Parameters of `approval/respond`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRespond {
    /// The request.
    pub approval_id: ApprovalId,
    /// The answer.
    pub answer: ApprovalAnswer,
    /// The face that answers, for the others to see.
    pub by: String,
}

/// An answer to a request for consent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ApprovalAnswer {
    /// Yes, this once.
    Once,
    /// Yes, and whatever `rule` covers until the thread ends.
    Session {
        /// One of the rules offered.
        rule: String,
    },
    /// Yes, and whatever `rule` covers from now on; it is saved.
    Always {
        /// One of the rules offered.
        rule: String,
    },
    /// No.
    Deny {
        /// Why, for the model to read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// Parameters of `question/respond`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionRespond {
    /// The question.
    pub question_id: QuestionId,
    /// The user's answer.
    pub text: String,
}

/// Parameters of `command/run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandRun {
    /// The thread it acts on.
    pub thread_id: ThreadId,
    /// Its name, without the slash.
    pub name: String,
    /// What followed the name.
    #[serde(default)]
    pub arguments: String,
    /// What is wanted of it.
    #[serde(default)]
    pub purpose: CommandPurpose,
}

/// What is wanted of a slash command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CommandPurpose {
    /// That it does what it does.
    #[default]
    Run,
    /// Only its text: what it would say to the agent is shown, and nothing happens. For commands that become a turn.
    Expand,
}

/// What a slash command did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CommandOutcome {
    /// It acted, and this is to be shown.
    Shown {
        /// Markdown.
        text: String,
    },
    /// It became the user's input.
    Turn(TurnStarted),
}

/// Parameters of `workspace/trust`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceTrust {
    /// The workspace.
    pub workspace: PathBuf,
    /// The hash of what the user was shown; trust is refused when it has changed since.
    pub digest: String,
    /// Whether to trust it.
    pub trusted: bool,
}

/// Parameters of `list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct List {
    /// What to list.
    pub kind: ListKind,
    /// The thread whose view counts, where that matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ListKind {
    /// Models.
    Models,
    /// Agent manifests.
    Agents,
    /// Tools.
    Tools,
    /// Slash commands.
    Commands,
    /// MCP servers and their state.
    McpServers,
    /// Running processes.
    Jobs,
    /// Audit records.
    Audit,
    /// Checkpoints.
    Checkpoints,
}

/// A listing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The entries, each of the shape its kind has.
    pub entries: Vec<Value>,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct EngineError {
    /// The sort of failure.
    pub kind: EngineErrorKind,
    /// What happened and what to try.
    pub message: String,
}

/// The sorts of failure of an engine request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum EngineErrorKind {
    /// What was named does not exist.
    NotFound,
    /// The parameters make no sense.
    InvalidParams,
    /// Somebody else was first, or the state does not allow it now.
    Conflict,
    /// The caller may not do this.
    Denied,
    /// The store failed.
    Store,
    /// The engine is shutting down or the connection is gone.
    Closed,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_a_method_and_its_parameters() {
        let id = ThreadId::new();
        let request = Request::TurnStart(TurnStart {
            thread_id: id,
            text: "hi".into(),
            attachments: vec![],
            posture: None,
        });
        assert_eq!(request.method(), "turn/start");
        let wire = serde_json::to_value(&request).unwrap();
        assert_eq!(wire, json!({"method": "turn/start", "params": {"threadId": id, "text": "hi"}}));
        assert_eq!(serde_json::from_value::<Request>(wire).unwrap(), request);
    }

    #[test]
    fn the_api_stays_small() {
        assert!(Request::METHODS.len() < 25, "the engine API is kept under 25 requests");
    }

    #[test]
    fn an_input_is_answered_with_what_happened() {
        let response = Response::TurnStart(TurnStarted::Queued { ahead: 2 });
        assert_eq!(
            serde_json::to_value(&response).unwrap(),
            json!({"method": "turn/start", "result": {"outcome": "queued", "ahead": 2}})
        );
    }
}
