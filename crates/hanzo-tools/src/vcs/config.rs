//! `vcs.config`, `vcs.fetch` and `vcs.push`: what leaves the box. A change of git's configuration can run programs later, so it
//! is closed to the sandbox and done outside it when the user agrees.

use std::ffi::OsString;

use hanzo_protocol::envelope::{ErrorCode, Intent, ToolError};
use hanzo_protocol::tool::{Effect, ReachConfinement, TimeLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::git::{Access, Git, failure, invalid, name, needed};
use super::op::Op;
use crate::contract::{Action, Answer, Call};

/// Git's configuration.
pub(super) struct Config;

/// The arguments of `vcs.config`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigInput {
    #[schemars(with = "Option<String>")]
    op: Option<Op>,
    name: Option<String>,
    value: Option<String>,
    cwd: Option<String>,
}

/// The answer of `vcs.config`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ConfigOutput {
    /// What is set, in the order in which git reads it: the last of a name counts.
    entries: Vec<ConfigEntry>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ConfigEntry {
    name: String,
    value: String,
}

impl Config {
    fn op(input: &ConfigInput) -> Op {
        input.op.unwrap_or(if input.value.is_some() { Op::Set } else { Op::Get })
    }
}

impl Action for Config {
    const NAME: &'static str = "config";
    const SUMMARY: &'static str = "get,set";
    const EXAMPLE: &'static str = r#"{"op":"get","name":"user.name"}"#;
    const WORST: Effect = Effect::Write;
    const HIDDEN: &'static [&'static str] = &["cwd", "value"];
    type Input = ConfigInput;
    type Output = ConfigOutput;

    fn effect(&self, input: &ConfigInput) -> Effect {
        Self::op(input).effect()
    }

    fn confinement(&self, input: &ConfigInput) -> ReachConfinement {
        match Self::op(input).effect() {
            Effect::Read => ReachConfinement::Inside,
            _ => ReachConfinement::Outside,
        }
    }

    async fn run(&self, call: &Call<'_>, input: ConfigInput) -> Result<Answer<ConfigOutput>, ToolError> {
        let git = Git::new(call, input.cwd.as_deref())?;
        match Self::op(&input) {
            Op::Get | Op::List => {}
            Op::Set => {
                let key = needed("name", input.name.as_ref())?;
                let value = input.value.as_deref().ok_or_else(|| invalid("`value` is missing"))?;
                if value.contains('\0') {
                    return Err(invalid("`value` contains a NUL byte"));
                }
                let git = Git::new(call, input.cwd.as_deref())?.outside()?;
                // By option where git has one: a value may begin with a dash.
                let arguments = ["config", "--local", "--replace-all", "--end-of-options", key, value];
                git.run(Access::Write, arguments, None).await?;
            }
            Op::Unset => {
                let key = needed("name", input.name.as_ref())?;
                let git = Git::new(call, input.cwd.as_deref())?.outside()?;
                git.run(Access::Write, ["config", "--local", "--unset-all", key], None).await?;
                return Ok(Answer::new(ConfigOutput { entries: Vec::new() }).by("git"));
            }
            other => return Err(other.unknown("get, list, set, unset")),
        }
        let entries = if let Some(key) = &input.name {
            let key = name("name", key)?;
            let ran = git.try_run(Access::Read, ["config", "--null", "--get-all", key], None).await?;
            if ran.code == 1 && ran.stderr.is_empty() {
                return Err(ToolError::new(ErrorCode::NotFound, format!("git has no setting `{key}` here")));
            }
            if ran.code != 0 {
                return Err(failure(&ran));
            }
            let text = String::from_utf8_lossy(&ran.stdout).into_owned();
            let entry = |value: &str| ConfigEntry { name: key.to_owned(), value: value.to_owned() };
            text.split_terminator('\0').map(entry).collect()
        } else {
            let text = git.text(Access::Read, ["config", "--null", "--list"]).await?;
            let entry = |record: &str| {
                let (name, value) = record.split_once('\n').unwrap_or((record, "true"));
                ConfigEntry { name: name.to_owned(), value: value.to_owned() }
            };
            // What we set ourselves on the command line comes last and is nobody's setting.
            let ours = super::git::hardened();
            let all: Vec<ConfigEntry> = text.split_terminator('\0').map(entry).collect();
            let own = all.len().saturating_sub(ours);
            all.into_iter().take(own).collect()
        };
        Ok(Answer::new(ConfigOutput { entries }).by("git"))
    }
}

/// The arguments of `vcs.fetch` and `vcs.push`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoteInput {
    /// Default origin
    remote: Option<String>,
    /// Commit, branch or a..b
    r#ref: Option<String>,
    cwd: Option<String>,
}

/// The answer of `vcs.fetch` and `vcs.push`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RemoteOutput {
    /// What git said.
    text: String,
}

/// Gets commits from another machine.
pub(super) struct Fetch;
/// Gives commits to another machine.
pub(super) struct Push;

async fn talk(call: &Call<'_>, input: RemoteInput, verb: &[&str]) -> Result<Answer<RemoteOutput>, ToolError> {
    if !call.host.spawner.confinement().network {
        let text = "the sandbox of this thread has no network\n\nhint: the user can allow it with `sandbox.network = true`";
        return Err(ToolError::new(ErrorCode::SandboxDenied, text));
    }
    let git = Git::new(call, input.cwd.as_deref())?;
    let mut arguments: Vec<OsString> = verb.iter().map(Into::into).collect();
    let remote = name("remote", input.remote.as_deref().unwrap_or("origin"))?;
    // An address could name a program, or another place than the user configured.
    let configured = git.text(Access::Read, ["remote"]).await?;
    if !configured.lines().any(|known| known == remote) {
        let known: Vec<&str> = configured.lines().collect();
        let text = format!("there is no remote `{remote}`; configured are: {}", known.join(", "));
        return Err(ToolError::new(ErrorCode::NotFound, text));
    }
    arguments.extend(["--".into(), remote.into()]);
    if let Some(revision) = &input.r#ref {
        arguments.push(name("ref", revision)?.into());
    }
    let ran = git.try_run(Access::Network, arguments, None).await?;
    if ran.code != 0 {
        return Err(failure(&ran));
    }
    let text = format!("{}{}", String::from_utf8_lossy(&ran.stdout), ran.stderr);
    Ok(Answer::new(RemoteOutput { text: text.chars().take(4000).collect() }).by("git"))
}

impl Action for Fetch {
    const NAME: &'static str = "fetch";
    const SUMMARY: &'static str = "from origin";
    const EXAMPLE: &'static str = r#"{"remote":"origin"}"#;
    const WORST: Effect = Effect::Network;
    const HIDDEN: &'static [&'static str] = &["cwd", "remote", "ref"];
    type Input = RemoteInput;
    type Output = RemoteOutput;

    fn effect(&self, _: &RemoteInput) -> Effect {
        Effect::Network
    }

    fn time_limit(&self, _: &RemoteInput) -> TimeLimit {
        TimeLimit::Own
    }

    async fn run(&self, call: &Call<'_>, input: RemoteInput) -> Result<Answer<RemoteOutput>, ToolError> {
        talk(call, input, &["fetch", "--no-recurse-submodules"]).await
    }
}

impl Action for Push {
    const NAME: &'static str = "push";
    const SUMMARY: &'static str = "to origin";
    const EXAMPLE: &'static str = r#"{"ref":"main"}"#;
    const WORST: Effect = Effect::Network;
    const INTENTS: Option<&'static [Intent]> = Some(&[Intent::Ship]);
    const HIDDEN: &'static [&'static str] = &["cwd", "remote"];
    const QUIET: &'static [&'static str] = &["ref"];
    type Input = RemoteInput;
    type Output = RemoteOutput;

    fn effect(&self, _: &RemoteInput) -> Effect {
        Effect::Network
    }

    fn time_limit(&self, _: &RemoteInput) -> TimeLimit {
        TimeLimit::Own
    }

    async fn run(&self, call: &Call<'_>, input: RemoteInput) -> Result<Answer<RemoteOutput>, ToolError> {
        if input.r#ref.as_ref().is_some_and(|revision| revision.starts_with(['+', ':'])) {
            return Err(invalid("`ref` neither forces nor deletes here; the user can do that"));
        }
        talk(call, input, &["push", "--porcelain", "--no-verify", "--recurse-submodules=no"]).await
    }
}
