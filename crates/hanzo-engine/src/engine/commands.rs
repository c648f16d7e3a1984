//! Slash commands: what the engine does about those that are not the face's own.

use std::fmt::Write as _;
use std::sync::Arc;

use hanzo_protocol::engine::{
    CommandOutcome, CommandPurpose, CommandRun, EngineError, EngineErrorKind, ExportFormat, Mode, Posture,
    ThreadConfigure, ThreadExport, ThreadFork,
};
use hanzo_protocol::message::Effort;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Handle, Inner};
use crate::commands::{self, Action, Directories, Dispatch, Invocation, Origin, Registry};
use crate::instructions::{self, Scope};
use crate::parts::{McpControl, McpServerInfo, McpServerStatus, refuse};
use crate::text::one_line;
use crate::thread::actor::{Command, When};
use crate::thread::open::store_failed;
use crate::thread::state::Input;

/// The commands a thread has.
pub(super) fn registry(handle: &Handle) -> Registry {
    let config = Some(handle.places.config.as_path());
    let directories = Directories { config, project: Some((&handle.workspace, handle.trust)) };
    let (custom, notices) = commands::load(&directories);
    for notice in notices {
        handle.calls.journal.notice(notice.level, notice.text);
    }
    let mut registry = Registry::with_custom(custom);
    for source in &handle.commands {
        registry.register_source(Arc::clone(source));
    }
    registry
}

impl Inner {
    /// What an input says once a command in it is expanded.
    pub(super) async fn expand(&self, handle: &Handle, text: String) -> Result<String, EngineError> {
        let Some(invocation) = commands::parse(&text) else { return Ok(text) };
        match self.dispatch(handle, invocation).await? {
            Dispatch::Turn { text, .. } => Ok(text),
            Dispatch::Act { action, .. } => {
                let message = format!(
                    "`/{}` is a command, not an input\n\nhint: send it with `command/run`",
                    action.name()
                );
                Err(refuse(EngineErrorKind::InvalidParams, message))
            }
        }
    }

    async fn dispatch(&self, handle: &Handle, invocation: Invocation<'_>) -> Result<Dispatch, EngineError> {
        let dispatched = registry(handle).dispatch(invocation).await;
        let dispatched = dispatched.map_err(|error| refuse(EngineErrorKind::NotFound, error.to_string()))?;
        if let Dispatch::Turn { origin: Origin::UntrustedProject, .. } = &dispatched {
            let notice = commands::untrusted_notice(invocation.name);
            handle.calls.journal.notice(notice.level, notice.text);
        }
        Ok(dispatched)
    }

    pub(super) async fn run_command(&self, run: CommandRun) -> Result<CommandOutcome, EngineError> {
        let handle = self.handle(run.thread_id)?;
        let invocation = Invocation { name: &run.name, arguments: &run.arguments };
        let text = match self.dispatch(&handle, invocation).await? {
            Dispatch::Turn { text, .. } if run.purpose == CommandPurpose::Expand => text,
            Dispatch::Act { action, .. } if run.purpose == CommandPurpose::Expand => {
                let message = format!("`/{}` acts and says nothing to the agent", action.name());
                return Err(refuse(EngineErrorKind::InvalidParams, message));
            }
            Dispatch::Turn { text, .. } => {
                let input = Input::text(text);
                return Ok(CommandOutcome::Turn(self.say(&handle, input, When::Afterwards).await?));
            }
            Dispatch::Act { action, arguments } => self.act(&handle, action, arguments.trim()).await?,
        };
        Ok(CommandOutcome::Shown { text })
    }

    async fn act(&self, handle: &Handle, action: Action, argument: &str) -> Result<String, EngineError> {
        let thread_id = handle.id;
        let nothing = ThreadConfigure { thread_id, model: None, mode: None, posture: None, effort: None };
        let wish = (!argument.is_empty()).then_some(argument);
        match action {
            Action::Help => Ok(registry(handle).help()),
            Action::Compact => {
                let folded = handle.ask(|reply| Command::Compact { reply }).await?;
                let text = if folded {
                    "Earlier work was folded into a digest."
                } else {
                    "There is nothing to fold yet."
                };
                Ok(text.to_owned())
            }
            Action::Fork => {
                let until = wish.map(str::parse).transpose();
                let until = until.map_err(|error: hanzo_protocol::ids::IdError| {
                    refuse(EngineErrorKind::InvalidParams, error.to_string())
                })?;
                let copy = self.fork(ThreadFork { thread_id, until }).await?;
                Ok(format!("The copy is thread `{}`.", copy.id))
            }
            Action::Export => {
                let format = wish.map_or(Ok(ExportFormat::Markdown), word)?;
                Ok(self.export(ThreadExport { thread_id, format }).await?.text)
            }
            Action::Model | Action::Effort | Action::Mode | Action::Permissions => {
                if let Some(wish) = wish {
                    let change = match action {
                        Action::Model => ThreadConfigure { model: Some(wish.to_owned()), ..nothing },
                        Action::Effort => ThreadConfigure { effort: Some(word::<Effort>(wish)?), ..nothing },
                        Action::Mode => ThreadConfigure { mode: Some(word::<Mode>(wish)?), ..nothing },
                        _ => ThreadConfigure { posture: Some(word::<Posture>(wish)?), ..nothing },
                    };
                    handle.ask(|reply| Command::Configure { change, reply }).await?;
                }
                let now = handle.ask(|reply| Command::Describe { reply }).await?;
                Ok(match action {
                    Action::Model => format!("The model is `{}`.", now.summary.model),
                    Action::Effort => match now.effort {
                        Some(effort) => format!("The effort is `{}`.", shown(&effort)),
                        None => "The effort is left to the model's vendor.".to_owned(),
                    },
                    Action::Mode => format!("The mode is `{}`.", shown(&now.summary.mode)),
                    _ => permissions(handle, now.summary.posture),
                })
            }
            Action::Context => {
                let (used, window) = handle.ask(|reply| Command::Describe { reply }).await?.context;
                Ok(match window {
                    Some(window) if window > 0 => {
                        format!("About {used} of {window} tokens ({} %) are in use.", used * 100 / window)
                    }
                    _ => format!(
                        "About {used} tokens are in use; the size of the model's window is not known."
                    ),
                })
            }
            Action::Cost => {
                let record = handle.store.thread(thread_id).await.map_err(store_failed)?;
                let record = record.ok_or_else(|| super::no_thread(thread_id))?;
                let hits = record
                    .usage
                    .cache_hit_ratio()
                    .map_or_else(String::new, |ratio| format!(", {:.1} % from the cache", ratio * 100.0));
                let cost =
                    record.cost.map_or_else(|| "at an unknown price".to_owned(), |cost| cost.to_string());
                let (sent, received) = (record.usage.prompt_tokens(), record.usage.output_tokens);
                Ok(format!("{sent} tokens sent{hits}, {received} received, {cost}."))
            }
            Action::Mcp => mcp(handle, argument).await,
            Action::Memory => Ok(memory(handle)),
            other => {
                let message = format!("`/{}` is for the face to carry out", other.name());
                Err(refuse(EngineErrorKind::InvalidParams, message))
            }
        }
    }
}

/// The MCP servers, or what became of one.
async fn mcp(handle: &Handle, argument: &str) -> Result<String, EngineError> {
    let wrong = |message: String| refuse(EngineErrorKind::InvalidParams, message);
    let Some((what, name)) = argument.split_once(char::is_whitespace) else {
        if !argument.is_empty() {
            let hint = "hint: `/mcp reconnect NAME`, `/mcp enable NAME` or `/mcp disable NAME`";
            return Err(wrong(format!("`/mcp {argument}` names no server\n\n{hint}")));
        }
        let servers = handle.mcp_servers.list();
        if servers.is_empty() {
            return Ok(
                "No MCP server is configured. `hanzo-dev mcp add NAME -- COMMAND` adds one.".to_owned()
            );
        }
        let lines: Vec<String> = servers.iter().map(server_line).collect();
        return Ok(lines.join("\n"));
    };
    let what = match what {
        "enable" => McpControl::Enable,
        "disable" => McpControl::Disable,
        "reconnect" => McpControl::Reconnect,
        other => return Err(wrong(format!("`{other}` is nothing that can be done with an MCP server"))),
    };
    let server = handle.mcp_servers.control(name.trim(), what).await.map_err(wrong)?;
    Ok(server_line(&server))
}

/// A server in a line of Markdown.
fn server_line(server: &McpServerInfo) -> String {
    let status = match server.status {
        McpServerStatus::Configured => "not tried yet",
        McpServerStatus::Connecting => "connecting",
        McpServerStatus::Connected => "connected",
        McpServerStatus::Failed => "failed",
        McpServerStatus::Disabled => "disabled",
    };
    let mut text = format!("- `{}` ({}): {status}", server.name, server.transport);
    if let Some(counts) = server.counts() {
        let _ = write!(text, ", {counts}");
    }
    if let Some(latency) = server.latency_ms {
        let _ = write!(text, ", {latency} ms");
    }
    if let Some(error) = &server.error {
        let _ = write!(text, ": {}", one_line(error));
    }
    text
}

/// The instruction files of the workspace and of the user.
fn memory(handle: &Handle) -> String {
    let config = Some(handle.places.config.as_path());
    let search = instructions::Search { workspace: &handle.workspace, cwd: std::path::Path::new(""), config };
    let found = instructions::find(&search);
    if found.files.is_empty() {
        return "There is no instruction file. `/init` has the agent write `AGENTS.md`.".to_owned();
    }
    let mut text = "The agent is told what stands in these files, the last one counting most:\n".to_owned();
    for file in &found.files {
        let scope = match &file.scope {
            Scope::User => "for everything you do".to_owned(),
            Scope::Directory(directory) if directory.as_os_str().is_empty() => "this workspace".to_owned(),
            Scope::Directory(directory) => format!("`{}`", directory.display()),
        };
        let _ = write!(text, "\n- `{}`: {scope}, {} lines", file.label, file.text.lines().count());
    }
    for notice in found.notices {
        let _ = write!(text, "\n- {}", one_line(&notice.text));
    }
    text.push_str("\n\nFiles of other directories are told when the agent works there.");
    text
}

/// The posture and the rules.
fn permissions(handle: &Handle, posture: Posture) -> String {
    let policy = handle.calls.gate.policy();
    let mut text = format!("The posture is `{}`.", shown(&posture));
    for (name, rules) in [("deny", &policy.deny), ("ask", &policy.ask), ("allow", &policy.allow)] {
        for rule in rules {
            let from = rule.origin().map_or_else(String::new, |origin| format!(" ({origin})"));
            let _ = write!(text, "\n- {name} `{}`{from}", rule.text());
        }
    }
    text
}

/// A word of the user as the value it names.
fn word<T: DeserializeOwned>(word: &str) -> Result<T, EngineError> {
    serde_json::from_value(Value::String(word.to_owned())).map_err(|error| {
        refuse(EngineErrorKind::InvalidParams, format!("`{word}` cannot be chosen: {error}"))
    })
}

fn shown(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
