//! What the engine is made of. The composition root fills these in: it knows vendors, tools, sandboxes and settings files,
//! the engine only knows what it may ask of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hanzo_config::Settings;
use hanzo_hooks::Hooks;
use hanzo_permissions::Policy;
use hanzo_protocol::BoxFuture;
use hanzo_protocol::blob::BlobStore;
use hanzo_protocol::engine::{EngineError, EngineErrorKind, ThreadOptions, WorkspaceTrust};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::message::ApiError;
use hanzo_protocol::narrowing::Narrowing;
use hanzo_protocol::roles::ApiClient;
use hanzo_protocol::tool::{ToolCaller, ToolSet};
use hanzo_protocol::usage::Price;
use hanzo_sandbox::paths::Workspace;
use hanzo_store::{Checkpointer, Store};
use serde::Serialize;

use crate::agents::{Manifest, ProjectTrust};
use crate::capability::Capabilities;
use crate::commands::CommandSource;
pub use crate::gate::{RuleSaver, SandboxState};
use crate::references::ResourceReader;

/// What the engine works with.
#[derive(Clone)]
pub struct EngineParts {
    /// Keeps threads. Ephemeral ones are kept in memory instead.
    pub store: Arc<dyn Store>,
    /// Keeps content.
    pub blobs: Arc<dyn BlobStore>,
    /// Makes what an open thread needs.
    pub threads: Arc<dyn ThreadFactory>,
    /// Remembers which workspaces the user trusts.
    pub trust: Arc<dyn TrustKeeper>,
    /// What the user would call this process, for others who want the same thread: `hanzo-dev run`.
    pub program: String,
}

/// Makes what one open thread needs. Called once each time a thread is opened, also for a subagent's.
pub trait ThreadFactory: Send + Sync {
    /// Loads settings and builds models, tools, sandbox and hooks. It is on the way to the first request, so whatever can
    /// be made later, such as the jail, is made later.
    fn open<'a>(&'a self, request: OpenThread<'a>) -> BoxFuture<'a, Result<ThreadParts, EngineError>>;
}

/// The thread that is being opened.
#[derive(Debug, Clone, Copy)]
pub struct OpenThread<'a> {
    /// Its id.
    pub thread: ThreadId,
    /// The directory it works in.
    pub workspace: &'a Path,
    /// The name of its agent manifest; the default one when absent.
    pub agent: Option<&'a str>,
    /// Who calls its tools.
    pub caller: ToolCaller,
    /// How it is to work. Rules in it are added by the engine.
    pub options: &'a ThreadOptions,
    /// The thread that began it, for a subagent.
    pub parent: Option<ThreadId>,
}

/// What one open thread works with.
pub struct ThreadParts {
    /// The settings in force in its workspace.
    pub settings: Arc<Settings>,
    /// The rules of those settings.
    pub policy: Policy,
    /// The models it can talk to.
    pub models: Arc<dyn Models>,
    /// The tools of its workspace. The engine adds its own.
    pub tools: ToolSet,
    /// Says when another set of tools is to be advertised; `None` where that never happens.
    pub tool_changes: Option<Arc<dyn ToolChanges>>,
    /// What confines its processes.
    pub sandbox: Arc<dyn SandboxState>,
    /// What its tools confine it to while it runs.
    pub narrowing: Arc<dyn Narrowing>,
    /// Programs before and after calls.
    pub hooks: Arc<Hooks>,
    /// The manifest of its agent.
    pub manifest: Manifest,
    /// What a remote caller may use beside the agent's own set; nothing unless they have shown who they are.
    pub remote: Capabilities,
    /// Opens the files of the workspace.
    pub workspace: Arc<Workspace>,
    /// Whether what the project brings along may be used.
    pub trust: ProjectTrust,
    /// Reads what `@server:uri` means, where there are MCP servers.
    pub resources: Option<Arc<dyn ResourceReader>>,
    /// Gives commands beside the built-in ones and files: the prompts of MCP servers.
    pub commands: Vec<Arc<dyn CommandSource>>,
    /// The processes its tools started; [`NoJobs`] where they start none.
    pub jobs: Arc<dyn Jobs>,
    /// The MCP servers it can call; [`NoMcpServers`] where there are none.
    pub mcp_servers: Arc<dyn McpServers>,
    /// Keeps the files of the workspace for each turn; `None` where they need not be taken back.
    pub checkpoints: Option<Checkpointer>,
    /// Where things are.
    pub places: Places,
    /// Keeps the rules the user grants for good.
    pub rules: Arc<dyn RuleSaver>,
    /// What the user should know about how the thread was set up, such as a setting that is not in force.
    pub notices: Vec<String>,
}

/// Where the files are that a thread looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The user's settings, commands and agents.
    pub config: PathBuf,
    /// What is kept between runs.
    pub data: PathBuf,
    /// The root of the workspace.
    pub workspace: PathBuf,
    /// The user's home, where there is one.
    pub home: Option<PathBuf>,
}

/// The models that are configured.
pub trait Models: Send + Sync {
    /// The model a reference means; the default one when absent.
    fn resolve(&self, reference: Option<&str>) -> Result<Model, EngineError>;

    /// All of them.
    fn list(&self) -> Vec<ModelInfo>;

    /// Tells `listener` from now on when a client sends a request again by itself.
    fn on_retry(&self, listener: RetryListener) {
        let _ = listener;
    }
}

/// Is told when a client sends a request again by itself. It is called while the answer is awaited and must not block.
pub type RetryListener = Arc<dyn Fn(&Retry<'_>) + Send + Sync>;

/// A request that is about to be sent again.
#[derive(Debug, Clone, Copy)]
pub struct Retry<'a> {
    /// The provider's configured name.
    pub provider: &'a str,
    /// The model that was asked.
    pub model: &'a str,
    /// The number of the coming attempt; the first retry is the second attempt.
    pub attempt: u32,
    /// How many attempts there are at most.
    pub attempts: u32,
    /// How long until then.
    pub delay: Duration,
    /// What went wrong.
    pub error: &'a ApiError,
}

/// A model that can be asked.
#[derive(Clone)]
pub struct Model {
    /// How it is referred to, as `provider/model`.
    pub reference: String,
    /// The vendor's name of it.
    pub name: String,
    /// Talks to it.
    pub client: Arc<dyn ApiClient>,
    /// How many tokens a request may have; `None` or 0 when that is not known, and then nothing is folded by itself.
    pub context_window: Option<u64>,
    /// What it costs, where that is known.
    pub price: Option<Price>,
    /// The most tokens of an answer.
    pub max_tokens: Option<u64>,
}

/// A model in a listing.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// How it is referred to.
    pub reference: String,
    /// How many tokens a request may have.
    pub context_window: Option<u64>,
    /// What it costs.
    pub price: Option<Price>,
    /// Whether it is the one used when nothing else is said.
    pub default: bool,
}

/// Says when a thread's tools are other ones, such as when an MCP server's list has changed. Taken between turns only.
pub trait ToolChanges: Send + Sync {
    /// The tools from now on, when they differ from those given last.
    fn take(&self) -> Option<ToolSet>;

    /// Whether there are other tools to take.
    fn is_due(&self) -> bool;

    /// Waits for tools that are about to be there: a server seen for the first time should be of use in its first turn. Whoever
    /// waits here bounds it themselves, for every turn begins with this.
    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The processes a thread's tools started.
pub trait Jobs: Send + Sync {
    /// Those that are remembered, in the order in which they were started.
    fn list(&self) -> Vec<JobInfo>;
}

/// A process in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobInfo {
    /// What the tools call it.
    pub id: String,
    /// What runs, in a line.
    pub command: String,
    /// How it is.
    pub status: JobStatus,
    /// The code it ended with; 128 + n when signal n ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How long it has run.
    pub duration_ms: u64,
    /// How much it wrote.
    pub output_bytes: u64,
    /// Whether it outlives its thread.
    pub detached: bool,
}

/// How a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum JobStatus {
    /// It runs.
    Running,
    /// It ended by itself.
    Exited,
    /// It reached its time limit and was killed.
    TimedOut,
    /// It was killed, by us or by a signal.
    Killed,
}

/// A thread without processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoJobs;

impl Jobs for NoJobs {
    fn list(&self) -> Vec<JobInfo> {
        Vec::new()
    }
}

/// The MCP servers a thread can call.
pub trait McpServers: Send + Sync {
    /// All that are configured, connected or not. It tells what is known and waits for no server.
    fn list(&self) -> Vec<McpServerInfo>;

    /// Does something with one of them and tells how it is then, once that is known. The error is a sentence.
    fn control<'a>(
        &'a self,
        name: &'a str,
        what: McpControl,
    ) -> BoxFuture<'a, Result<McpServerInfo, String>> {
        let _ = what;
        Box::pin(async move { Err(format!("there is no MCP server `{name}`")) })
    }
}

/// What can be done with an MCP server while threads use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum McpControl {
    /// Use it, until the process ends.
    Enable,
    /// Do not use it, until the process ends.
    Disable,
    /// End the connection and make another.
    Reconnect,
}

/// An MCP server in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServerInfo {
    /// What the settings call it.
    pub name: String,
    /// How it is reached: `stdio`, `http`, `sse`, `websocket`.
    pub transport: String,
    /// How it is.
    pub status: McpServerStatus,
    /// Why it last failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How many tools it has, once that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_count: Option<usize>,
    /// How many prompts it has, once that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts_count: Option<usize>,
    /// How many resources it has, once that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_count: Option<usize>,
    /// How long its last answer took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
}

impl McpServerInfo {
    /// How much it has, in words, once that is known.
    pub fn counts(&self) -> Option<String> {
        let counted = |count: Option<usize>, what: &str| {
            let count = count.unwrap_or_default();
            format!("{count} {what}{}", if count == 1 { "" } else { "s" })
        };
        let tools = counted(Some(self.tools_count?), "tool");
        let (prompts, resources) =
            (counted(self.prompts_count, "prompt"), counted(self.resources_count, "resource"));
        Some(format!("{tools}, {prompts}, {resources}"))
    }
}

/// How an MCP server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum McpServerStatus {
    /// The settings name it, and nothing was tried yet.
    Configured,
    /// It is being started or greeted.
    Connecting,
    /// It answers.
    Connected,
    /// It does not answer, and the error says why.
    Failed,
    /// The settings turn it off, or the workspace is not trusted to start it.
    Disabled,
}

/// A thread without MCP servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMcpServers;

impl McpServers for NoMcpServers {
    fn list(&self) -> Vec<McpServerInfo> {
        Vec::new()
    }
}

/// Remembers which workspaces the user trusts.
pub trait TrustKeeper: Send + Sync {
    /// Trusts or distrusts what a workspace would run. Threads that are open keep what they were opened with.
    fn set<'a>(&'a self, decision: &'a WorkspaceTrust) -> BoxFuture<'a, Result<(), EngineError>>;
}

/// An [`EngineError`] of a kind.
pub(crate) fn refuse(kind: EngineErrorKind, message: impl Into<String>) -> EngineError {
    EngineError { kind, message: message.into() }
}
