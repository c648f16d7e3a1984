//! `[permissions]`, `[sandbox]` and `[[hooks]]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An answer of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PermissionMode {
    /// Run it.
    Allow,
    /// Ask first. `prompt` is another spelling.
    #[default]
    #[serde(alias = "prompt")]
    Ask,
    /// Never run it.
    Deny,
}

/// What the agent may do without asking, must ask about, and may never do.
///
/// `deny` wins over `ask`, `ask` over `allow`. Tiers add to the lists; none removes what another wrote. A table of
/// patterns (`{ "mcp__*" = "prompt" }`) and a list of rules are other ways of writing `rules`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct Permissions {
    /// For tools that change something, when no rule matches.
    pub mode: PermissionMode,
    /// Rules for calls that are never asked about, such as `Bash(go test:*)`.
    pub allow: Vec<RuleEntry>,
    /// Rules for calls that are always asked about.
    pub ask: Vec<RuleEntry>,
    /// Rules for calls that are blocked in every mode.
    pub deny: Vec<RuleEntry>,
    /// Rules with a pattern over tool names, in order.
    pub rules: Vec<PermissionRule>,
}

/// An entry of `allow`, `ask` or `deny`: the rule, or a table with the rule and examples that are checked when it is
/// loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RuleEntry {
    /// The rule alone.
    Text(String),
    /// The rule with its examples.
    Full {
        /// The rule.
        rule: String,
        /// What it must match, such as a command.
        #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
        matches: Vec<String>,
        /// What it must not match.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        not_match: Vec<String>,
        /// Why it exists; given to the model when the rule denies.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl RuleEntry {
    /// The rule's text.
    pub fn rule(&self) -> &str {
        match self {
            Self::Text(rule) | Self::Full { rule, .. } => rule,
        }
    }
}

impl PartialEq<&str> for RuleEntry {
    fn eq(&self, other: &&str) -> bool {
        matches!(self, Self::Text(rule) if rule == other)
    }
}

/// A rule with a pattern over tool names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PermissionRule {
    /// A glob over tool names, such as `mcp__*` or `fs.write`.
    pub tool_pattern: String,
    /// What the rule answers.
    pub mode: PermissionMode,
    /// Shown to the user and given to the model when the rule denies.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Containment: what tools and commands can touch whatever the rules say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct Sandbox {
    /// How far tools reach.
    pub mode: Isolation,
    /// Paths tools may touch in mode `allowlist`.
    pub allowed_paths: Vec<PathBuf>,
    /// The directory writes are confined to. Unset: the workspace.
    pub workspace_root: Option<PathBuf>,
    /// More directories that may be written.
    pub allow_write: Vec<PathBuf>,
    /// Whether commands reach the network.
    pub network: bool,
    /// Where tools may read.
    pub reads: ReadScope,
    /// Refuse to run commands when the machine offers less than this.
    pub require: SandboxLevel,
    /// Whether commands run in the jail.
    pub bash: BashJail,
    /// Limits for commands.
    pub limits: Limits,
}

/// How far tools reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Isolation {
    /// No restrictions.
    Off,
    /// Writes stay in the workspace.
    Workspace,
    /// Only `allowed_paths`.
    Allowlist,
    /// Like `workspace`, with the strongest jail that passes a self-test on this machine.
    #[default]
    Auto,
}

/// Where tools may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReadScope {
    /// Anywhere except keys and credentials.
    #[default]
    Any,
    /// In the workspace.
    Workspace,
}

/// How strong the jail is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub enum SandboxLevel {
    /// Paths are checked, processes are not confined.
    #[default]
    #[serde(rename = "path-check")]
    PathCheck,
    /// The kernel confines processes by Landlock and seccomp.
    #[serde(rename = "landlock+seccomp")]
    LandlockSeccomp,
    /// Namespaces as well.
    #[serde(rename = "full")]
    Full,
}

/// Whether commands run in the jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BashJail {
    /// They do.
    #[default]
    Enforce,
    /// They do not.
    Off,
}

/// Limits for commands.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct Limits {
    /// Memory in MiB. Unset: no limit.
    pub memory_mb: Option<u64>,
    /// Processor time of one process, in seconds. Unset: no limit.
    pub cpu_seconds: Option<u64>,
    /// Processes and threads alive at once. Unset: 4096, which stops a fork bomb.
    pub processes: Option<u64>,
    /// The size of a file a command may write, in MiB. Unset: no limit.
    pub file_size_mb: Option<u64>,
    /// Open files of one process. Unset: the system's limit.
    pub open_files: Option<u64>,
}

/// A program run before or after tool calls, or while a person is asked about one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Hook {
    /// When.
    pub event: HookEvent,
    /// The shell command. Exit code 0 lets the call go on, 2 denies it with the reason on stderr.
    pub command: String,
    /// A glob over tool names.
    #[serde(default = "every_tool")]
    pub tool_pattern: String,
    /// Milliseconds it may take.
    #[serde(default = "five_seconds")]
    pub timeout_ms: u64,
    /// What happens when it ends with another code, takes too long or cannot start.
    #[serde(default)]
    pub on_error: HookFailure,
}

fn every_tool() -> String {
    "*".to_owned()
}

fn five_seconds() -> u64 {
    5000
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookEvent {
    /// After the rules have spoken, before the tool runs.
    PreToolUse,
    /// After the tool has run. Failures never block.
    PostToolUse,
    /// While a person is being asked about a call, so that they can be told. The answer does not wait for it.
    Notification,
}

/// What a failing hook means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookFailure {
    /// The call is blocked.
    #[default]
    Block,
    /// The call goes on and the failure is reported.
    Warn,
}
