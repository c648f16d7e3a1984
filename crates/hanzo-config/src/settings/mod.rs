//! The typed model of all settings. The doc comments of fields are the text of the reference page.
//!
//! Serialising masks every secret, so that no caller can print one by accident.

use std::path::PathBuf;

use hanzo_protocol::engine::Posture;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secret::{Secret, SecretTemplate};

mod providers;
mod safety;
mod servers;
mod terminal;

pub use providers::{Provider, ProviderOptions};
pub(crate) use providers::{mask, names_a_secret};
pub use safety::{
    BashJail, Hook, HookEvent, HookFailure, Isolation, Limits, PermissionMode, PermissionRule, Permissions,
    ReadScope, RuleEntry, Sandbox, SandboxLevel,
};
pub use servers::{McpServer, Transport};
pub use terminal::{Notifications, ScreenKind, TerminalSettings, ThemeName};

/// All settings, merged from every source.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct Settings {
    /// The model to use: a provider name (its default model), a model name, or `provider/model`.
    /// `default_model` is another spelling of this key. Unset: the first provider with a credential.
    pub model: Option<String>,
    /// The key for the Hanzo API. Read from the user tier only; `HANZO_API_KEY` or `hanzo-dev login` are better places.
    pub api_key: Option<Secret>,
    /// Tokens of an OAuth login. Read from the user tier only; `hanzo-dev login` keeps them in the credential store.
    pub oauth_credentials: Option<Secret>,
    /// Text added to the instructions of every conversation.
    pub custom_instructions: String,
    /// Keys of the input line.
    pub input_mode: InputMode,
    /// How long an unfinished command of the vim keys waits for its next key, in milliseconds; 0 waits for ever.
    /// Unset: 500.
    pub input_timeout_ms: Option<u32>,
    /// Language of the interface, such as `en` or `zh`. Unset or empty: taken from `HANZO_LANG` or the locale.
    pub language: Option<String>,
    /// Where credentials are kept.
    pub credentials_store: CredentialsStore,
    /// What happens to calls the rules say nothing about. A `deny` rule holds in every posture.
    pub approval: Posture,
    /// The agent itself.
    pub agent: Agent,
    /// Where models are served. A name may be given once per file; tiers add to it key by key.
    pub providers: Vec<Provider>,
    /// The built-in tools.
    pub tools: Tools,
    /// Skills: instructions the agent loads when a task calls for them.
    pub skills: Skills,
    /// What the agent may do without asking, must ask about, and may never do.
    pub permissions: Permissions,
    /// Containment: what tools and commands can touch whatever the rules say.
    pub sandbox: Sandbox,
    /// Programs run before and after tool calls. Tiers add to the list.
    pub hooks: Vec<Hook>,
    /// MCP servers by name. Also written as `[[mcp_servers]]` or `[[plugins]]` with a `name` in each entry.
    pub mcp_servers: IndexMap<String, McpServer>,
    /// Work exchanged with other agents over A2A.
    pub a2a: A2a,
    /// The WebSocket bridge for a web interface.
    pub bridge: Bridge,
    /// The terminal face.
    pub terminal: TerminalSettings,
    /// Variables for `${NAME}` in this configuration. The real environment wins over them.
    pub env: IndexMap<String, SecretTemplate>,
}

impl Settings {
    /// The settings as JSON, secrets shown as `***`.
    pub fn to_masked_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The MCP servers that are not disabled.
    pub fn enabled_servers(&self) -> impl Iterator<Item = &McpServer> {
        self.mcp_servers.values().filter(|server| !server.disabled)
    }
}

/// Keys of the input line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InputMode {
    /// What a text field usually does.
    #[default]
    Default,
    /// Modal editing.
    Vim,
    /// Emacs keys.
    Emacs,
}

/// Where credentials are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CredentialsStore {
    /// The store of the operating system if there is one, else the file.
    #[default]
    Auto,
    /// Only the store of the operating system.
    Os,
    /// Only `credentials.json` in the user's configuration directory, mode 0600.
    File,
}

/// The agent itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct Agent {
    /// Replaces the built-in system prompt. Not together with `system_prompt_file`.
    pub system_prompt: Option<String>,
    /// A file with the system prompt. Relative to the workspace, in the user tier to the configuration directory.
    pub system_prompt_file: Option<PathBuf>,
    /// Rounds of tool calls in one turn; 0 is no limit.
    pub max_steps: u32,
    /// A second model that plans before the executor works. Same forms as `model`.
    pub planner_model: Option<String>,
    /// Rounds of read-only tool calls the planner may use; 0 is no limit.
    pub planner_max_steps: u32,
    /// The model for skills that run as subagents.
    pub subagent_model: Option<String>,
    /// Models for named subagents; wins over `subagent_model`.
    pub subagent_models: IndexMap<String, String>,
    /// Sampling temperature, 0 to 2. Unset: the provider's own.
    pub temperature: Option<f64>,
    /// Language of visible reasoning: `auto`, or a tag such as `en` or `zh`.
    pub reasoning_language: String,
    /// Share of the context window at which older work is compacted before the next turn.
    pub compact_ratio: f64,
    /// Propose a plan first when a task looks large. Independent of `approval`.
    pub auto_plan: bool,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            system_prompt: None,
            system_prompt_file: None,
            max_steps: 0,
            planner_model: None,
            planner_max_steps: 12,
            subagent_model: None,
            subagent_models: IndexMap::new(),
            temperature: None,
            reasoning_language: "auto".to_owned(),
            compact_ratio: 0.8,
            auto_plan: false,
        }
    }
}

/// The built-in tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct Tools {
    /// The built-in tools to offer; empty is all of them.
    pub enabled: Vec<String>,
    /// The vocabulary shown to the model: `unified`, or `classic` (`read_file`, `bash`, …).
    pub profile: ToolProfile,
    /// Refuse the names of other vocabularies instead of translating them.
    pub strict: bool,
    /// Seconds a tool inside this process may take.
    pub timeout_seconds: u32,
    /// Seconds after which a running command goes to the background.
    pub background_after_seconds: u32,
    /// Seconds the `bash` tool waits for a command; 0 is no limit.
    pub bash_timeout_seconds: u32,
    /// The shell that runs commands.
    pub shell: Shell,
    /// What the `net` tool reaches.
    pub net: NetTool,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            enabled: Vec::new(),
            profile: ToolProfile::default(),
            strict: false,
            timeout_seconds: 60,
            background_after_seconds: 45,
            bash_timeout_seconds: 120,
            shell: Shell::default(),
            net: NetTool::default(),
        }
    }
}

/// The vocabulary of tools shown to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolProfile {
    /// `fs`, `proc`, `code`, `vcs`, `test`, …
    #[default]
    Unified,
    /// `read_file`, `edit_file`, `bash`, `grep`, …
    Classic,
}

/// What the `net` tool reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct NetTool {
    /// Hosts that callers from elsewhere may reach although they are private: names, `*.domain`, addresses, `10.0.0.0/8`.
    pub private_hosts: Vec<String>,
    /// Whether pages may be opened in the browser of a user who is there.
    pub browser: bool,
}

impl Default for NetTool {
    fn default() -> Self {
        Self { private_hosts: Vec::new(), browser: true }
    }
}

/// The shell that runs commands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct Shell {
    /// Which shell.
    pub prefer: ShellKind,
    /// The executable, when it is not the one on `PATH`.
    pub path: Option<PathBuf>,
}

/// Which shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ShellKind {
    /// What the platform usually has.
    #[default]
    Auto,
    /// bash.
    Bash,
    /// Windows PowerShell.
    Powershell,
    /// PowerShell 7 and later.
    Pwsh,
}

/// Skills: instructions the agent loads when a task calls for them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct Skills {
    /// More directories to look for skills in.
    pub paths: Vec<PathBuf>,
    /// Directories not to look in although they are usual places.
    pub excluded_paths: Vec<PathBuf>,
    /// Skills to hide everywhere, by name.
    pub disabled_skills: Vec<String>,
}

/// Work exchanged with other agents over A2A.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct A2a {
    /// Whether tasks are accepted and external agents are looked up.
    pub enabled: bool,
    /// Base path of the endpoints.
    pub listen_path: String,
    /// Agents elsewhere that may be given tasks.
    pub external_agents: Vec<ExternalAgent>,
}

impl Default for A2a {
    fn default() -> Self {
        Self { enabled: false, listen_path: "/a2a".to_owned(), external_agents: Vec::new() }
    }
}

/// An agent elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ExternalAgent {
    /// What to call it.
    pub name: String,
    /// Where its card is published.
    pub url: String,
}

/// The WebSocket bridge for a web interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct Bridge {
    /// Address the bridge listens on, such as `127.0.0.1:7411`.
    pub server: Option<String>,
    /// Address of the app server behind it.
    pub app_addr: Option<String>,
    /// Origins of web pages that may connect; all others get 403.
    pub allowed_origins: Vec<String>,
}
