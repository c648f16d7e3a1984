//! What goes into the gate and comes out of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hanzo_hooks::Hooks;
use hanzo_permissions::{BoxState, Policy};
use hanzo_protocol::BoxFuture;
use hanzo_protocol::blob::BlobStore;
use hanzo_protocol::engine::{ApprovalAnswer, Attendance, Mode, Posture};
use hanzo_protocol::envelope::ToolError;
use hanzo_protocol::ids::{ItemId, ThreadId, ToolCallId, TraceId};
use hanzo_protocol::item::{Approval, Taint, ToolCallStatus};
use hanzo_protocol::narrowing::Narrowing;
use hanzo_protocol::primitives::Ref;
use hanzo_protocol::tool::{Reach, Tool, ToolCaller, ToolResult, ToolSet};
use hanzo_store::AuditEntry;
use serde_json::Value;

use crate::capability::Capabilities;

/// What a gate is made of. One gate serves one open thread.
pub struct GateParts {
    /// The thread.
    pub thread: ThreadId,
    /// The workspace, absolute, to which relative paths and rules refer.
    pub workspace: PathBuf,
    /// The tools that can be called, aliases included.
    pub tools: ToolSet,
    /// The rules.
    pub policy: Policy,
    /// What the thread's agent may use.
    pub capabilities: Capabilities,
    /// What a remote caller may use, beside the agent's set; nothing unless they have shown who they are.
    pub remote: Capabilities,
    /// What the thread has been confined to since, such as by a mode of the `mode` tool.
    pub narrowing: Arc<dyn Narrowing>,
    /// Programs before and after calls.
    pub hooks: Arc<Hooks>,
    /// What confines calls.
    pub sandbox: Arc<dyn SandboxState>,
    /// Keeps what is answered with "always".
    pub rules: Arc<dyn RuleSaver>,
    /// Keeps the whole of outputs that are cut.
    pub blobs: Arc<dyn BlobStore>,
    /// How long and how large.
    pub limits: GateLimits,
}

/// How long a call may take and how large its output may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateLimits {
    /// The time a call has that does not keep its own ([`TimeLimit::Standard`](hanzo_protocol::tool::TimeLimit)).
    pub timeout: Duration,
    /// The most characters of a result.
    pub output: usize,
}

impl Default for GateLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_mins(1), output: 50_000 }
    }
}

/// What confines a thread's processes.
pub trait SandboxState: Send + Sync {
    /// Whether the kernel confines them. Answered without starting the jail where that can be known.
    fn state(&self) -> BoxState;

    /// The level in force: `full`, `landlock+seccomp`, `path-check` or `off`.
    fn level(&self) -> String;

    /// Whether processes in it reach the network.
    fn network(&self) -> bool;
}

/// Keeps the rules the user grants for good.
pub trait RuleSaver: Send + Sync {
    /// Adds an `allow` rule to the user's settings; the error is a sentence.
    fn save<'a>(&'a self, rule: &'a str) -> BoxFuture<'a, Result<(), String>>;
}

/// What holds for the calls of one model request. Part of the immutable step context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateStep {
    /// How the thread collaborates.
    pub mode: Mode,
    /// How it asks for consent.
    pub posture: Posture,
    /// Who answers.
    pub attendance: Attendance,
    /// Who calls.
    pub caller: ToolCaller,
    /// What makes the call.
    pub origin: CallOrigin,
    /// Who is responsible, for the audit, where that is known.
    pub user: Option<String>,
    /// The untrusted content this turn has seen, if any.
    pub taint: Option<Taint>,
}

/// What makes a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CallOrigin {
    /// A model, which may go round in circles.
    #[default]
    Agent,
    /// A face, on behalf of somebody who knows what they do: the loop guard looks away.
    Face,
}

/// A call, looked at: what it is and what it is going to reach, or why it cannot be told.
#[derive(Clone)]
pub struct Classified {
    /// The vendor's id.
    pub call: ToolCallId,
    /// The id its item is to have; requests for consent name it.
    pub item: ItemId,
    /// Ties results, logs and audit together.
    pub trace: TraceId,
    /// The name as it was called.
    pub name: String,
    /// The tool, its arguments and its reach; or what to tell the model, who made a mistake in the call.
    pub target: Result<Target, Unclassified>,
}

/// A call that can be run.
#[derive(Clone)]
pub struct Target {
    /// Who runs it.
    pub tool: Arc<dyn Tool>,
    /// The arguments.
    pub arguments: Value,
    /// What it reaches.
    pub reach: Reach,
}

/// A call that cannot be run, whatever anybody allows: there is no such tool, or its arguments are no JSON object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Unclassified {
    /// What to tell the model.
    pub error: ToolError,
}

impl Classified {
    /// What the item and the audit call the tool: the canonical action where it is known.
    pub fn action(&self) -> &str {
        self.target.as_ref().map_or(self.name.as_str(), |target| target.reach.action.as_str())
    }

    /// What it reaches, where that is known.
    pub fn reach(&self) -> Option<&Reach> {
        self.target.as_ref().ok().map(|target| &target.reach)
    }

    /// Whether it may run beside others.
    pub fn is_parallel(&self) -> bool {
        self.reach().is_none_or(|reach| reach.effect.is_read_only())
    }
}

/// Asks a person. The engine emits `approval.requested` and waits for `approval/respond`.
pub trait Asker: Send + Sync {
    /// Asks, and waits for as long as it takes. Dropping the future withdraws the question.
    fn ask(&self, approval: Approval) -> BoxFuture<'_, Answered>;
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// Somebody answered.
    By {
        /// The answer.
        answer: ApprovalAnswer,
        /// The face that answered.
        face: String,
    },
    /// Nobody watches the thread any more: the rule for headless threads decides.
    Nobody,
}

/// Watches one call, for the engine.
pub trait CallWatch: Send + Sync {
    /// The call is allowed and about to run: the engine commits its item and `audit`, its audit entry, before the effect. An error
    /// stops the call. A call that is run again outside the sandbox comes here twice.
    fn about_to_run<'a>(&'a self, reach: &'a Reach, audit: AuditEntry) -> BoxFuture<'a, Result<(), String>>;

    /// The call's status changed to one that is not final.
    fn status(&self, status: ToolCallStatus);

    /// More output, to show.
    fn output(&self, text: &str);
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Gated {
    /// How it ended; always final.
    pub status: ToolCallStatus,
    /// What the model reads, within its budget.
    pub result: ToolResult,
    /// The whole output, where the result was cut.
    pub full_output: Option<Ref>,
    /// How long it ran; none when it did not.
    pub duration: Option<Duration>,
    /// The audit entries of what was refused. That of a call that ran was given to [`CallWatch::about_to_run`], so that it is kept also
    /// when the call is cancelled; each evaluation has exactly one, here or there.
    pub audit: Vec<AuditEntry>,
    /// Who refused it, when it was refused.
    pub refusal: Option<Refusal>,
    /// Whether the turn can go on.
    pub pace: Pace,
    /// What the user should know and the model need not: a hook that failed, a rule that could not be saved.
    pub notices: Vec<String>,
}

/// Who refused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The agent or the caller was not given the tool.
    Capability,
    /// The thread is in plan mode.
    PlanMode,
    /// It came to the same too often.
    LoopGuard,
    /// A rule denies it.
    Rule,
    /// A person said no.
    Person,
    /// It needs a person and nobody is there. A run that cannot go on because of it ends with code 56.
    NeedsPerson,
    /// A hook said no, or failed.
    Hook,
    /// The sandbox's wall is in the way.
    Sandbox,
    /// The engine could not record the call, so it was not run.
    NotRecorded,
}

/// Whether a turn gets anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pace {
    /// It does, as far as can be told.
    Moving,
    /// It keeps coming to the same in spite of having been told: the engine ends the turn with
    /// [`NoProgress`](hanzo_protocol::item::TurnEnd::NoProgress).
    Stuck,
}
