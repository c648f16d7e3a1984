//! What a hook is, and what it is told.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookEvent {
    /// After the rules have spoken, before the tool runs. The hook may refuse the call.
    PreToolUse,
    /// After the tool has run. Nothing a hook does here has an effect on the call.
    PostToolUse,
    /// While a person is being asked, so that they can be told. The answer does not wait for it.
    Notification,
}

impl HookEvent {
    /// The word used in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "pre_tool_use",
            Self::PostToolUse => "post_tool_use",
            Self::Notification => "notification",
        }
    }
}

/// What a hook that fails (another exit code than 0 and 2, a timeout, a program that cannot start) means for the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnError {
    /// The call is blocked.
    #[default]
    Block,
    /// The call goes on, and the failure is reported.
    Warn,
}

/// A program run at one sort of event.
///
/// ```
/// use hanzo_hooks::Hook;
/// let hook: Hook = serde_json::from_str(r#"{"event": "pre_tool_use", "command": "./check.sh", "tool_pattern": "fs.*"}"#).unwrap();
/// assert_eq!(hook.timeout().as_millis(), 5000);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// When it runs.
    pub event: HookEvent,
    /// The shell command.
    pub command: String,
    /// A [`Glob`](crate::Glob) over tool names. Empty is every tool.
    #[serde(default = "every_tool")]
    pub tool_pattern: String,
    /// The milliseconds it may take.
    #[serde(default = "five_seconds")]
    pub timeout_ms: u64,
    /// What its failure means.
    #[serde(default)]
    pub on_error: OnError,
}

fn every_tool() -> String {
    "*".to_owned()
}

fn five_seconds() -> u64 {
    5000
}

impl Hook {
    /// A hook for every tool that has five seconds and blocks when it fails.
    pub fn new(event: HookEvent, command: impl Into<String>) -> Self {
        Self {
            event,
            command: command.into(),
            tool_pattern: every_tool(),
            timeout_ms: five_seconds(),
            on_error: OnError::default(),
        }
    }

    /// The same hook for tools whose name fits `pattern`.
    #[must_use]
    pub fn for_tools(mut self, pattern: impl Into<String>) -> Self {
        self.tool_pattern = pattern.into();
        self
    }

    /// How long it may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}

/// A tool call, as hooks are told about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolEvent<'a> {
    /// The tool's name, which is what `HANZO_TOOL_NAME` says.
    pub tool: &'a str,
    /// Other names of the same tool. A hook runs when its pattern fits any of them, so that a call cannot get past it by
    /// another name.
    pub aliases: Vec<&'a str>,
    /// The arguments.
    pub input: &'a Value,
    /// The session, which is what `HANZO_SESSION_ID` says.
    pub session: &'a str,
}

impl ToolEvent<'_> {
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.tool).chain(self.aliases.iter().copied())
    }
}

/// Somebody is being asked about a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// Other names of the same tool.
    pub aliases: Vec<&'a str>,
    /// The session.
    pub session: &'a str,
    /// What is asked, in words. Leave it out where the content is nobody else's business, as with what is remembered about the
    /// user: hooks are then told the tool's name and nothing more.
    pub summary: Option<&'a str>,
}
