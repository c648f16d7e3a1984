//! `proc.exec`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::Ref;
use hanzo_protocol::spawn::{Leftovers, SpawnError};
use hanzo_protocol::tool::{Effect, ReachConfinement, TimeLimit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::jobs::{JobError, Launch, LaunchInput, Lifetime, Wait};
use super::report::{self, Standing};
use super::shell::{Shell, on_path, plain_words};
use super::{Seconds, Source};
use crate::contract::place;
use crate::contract::{Action, Answer, Call};
use crate::host::Host;

/// The largest terminal anybody has.
const MAX_SIDE: u16 = 1000;

/// Runs a command.
pub(super) struct Exec;

/// The arguments of `proc.exec`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecInput {
    /// Shell line, or [program,args…]
    command: Command,
    cwd: Option<String>,
    env: Option<BTreeMap<String, String>>,
    stdin: Option<String>,
    /// Seconds until killed
    timeout: Option<Seconds>,
    /// true or {rows,cols}
    pty: Option<Pty>,
    /// Return at once
    background: Option<bool>,
    /// Seconds
    wait: Option<Seconds>,
    /// Outlive the thread
    detach: Option<bool>,
    /// Ask to run it outside the sandbox
    unconfined: Option<bool>,
}

/// A line for a shell, or a program and its arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Command {
    Line(String),
    Argv(Vec<String>),
}

impl JsonSchema for Command {
    fn schema_name() -> Cow<'static, str> {
        "Command".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "array"], "items": {"type": "string"}})
    }
}

/// A terminal, of the usual size or a given one.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(super) enum Pty {
    Wanted(bool),
    Size {
        #[serde(default = "usual_rows")]
        rows: u16,
        #[serde(default = "usual_columns", alias = "columns")]
        cols: u16,
    },
}

fn usual_rows() -> u16 {
    24
}

fn usual_columns() -> u16 {
    80
}

impl JsonSchema for Pty {
    fn schema_name() -> Cow<'static, str> {
        "Pty".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["boolean", "object"]})
    }
}

/// The answer of `proc.exec`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExecOutput {
    #[serde(flatten)]
    standing: Standing,
    /// How long it has run.
    duration_ms: u64,
    /// Whether something was left out of the texts here.
    truncated: bool,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The whole output.
    stdout_ref: Ref,
    /// All errors.
    stderr_ref: Ref,
    /// What it wrote, without escape sequences.
    stdout: String,
    /// Its errors.
    stderr: String,
}

impl Action for Exec {
    const NAME: &'static str = "exec";
    const SUMMARY: &'static str = "run; after 45 s it goes on in background";
    const EXAMPLE: &'static str = r#"{"command":"cargo test","timeout":300}"#;
    const WORST: Effect = Effect::Execute;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("cmd", "command"),
        ("argv", "command"),
        ("working_directory", "cwd"),
        ("workdir", "cwd"),
        ("run_in_background", "background"),
    ];
    const HIDDEN: &'static [&'static str] = &["env", "wait", "detach"];
    const QUIET: &'static [&'static str] = &["pty"];
    type Input = ExecInput;
    type Output = ExecOutput;

    fn effect(&self, _: &ExecInput) -> Effect {
        Effect::Execute
    }

    fn confinement(&self, input: &ExecInput) -> ReachConfinement {
        if input.unconfined == Some(true) { ReachConfinement::Outside } else { ReachConfinement::Inside }
    }

    fn time_limit(&self, _: &ExecInput) -> TimeLimit {
        TimeLimit::Own
    }

    async fn run(&self, call: &Call<'_>, input: ExecInput) -> Result<Answer<ExecOutput>, ToolError> {
        let host = call.host;
        let spawner = host.spawner_for(self.confinement(&input))?;
        let (launch, in_shell) = launch(host, input)?;
        let live = || call.context.output.clone();
        let job = match (host.jobs.run(spawner, launch, live()).await, in_shell) {
            // The shell has the better words for what is not there, and its own code.
            (Err(JobError::Spawn(SpawnError::Program { .. })), Some(launch)) => {
                host.jobs.run(spawner, launch, live()).await
            }
            (ran, _) => ran,
        };
        let job = job.map_err(|error| report::failure(&error))?;
        let standing = Standing::of(&job);
        let (stdout, stderr) = report::outputs(&job, host.options.proc.output_limit);
        let denial = standing.denied();
        let hint = if standing.status == report::Status::Running {
            Some(format!(
                "it goes on in the background: `logs` with proc_id={} reads on, `kill` ends it",
                job.id()
            ))
        } else if denial.is_some() && host.outside.is_some() {
            Some(
                "the sandbox was probably in the way; `unconfined`: true asks the user to run it outside"
                    .into(),
            )
        } else {
            None
        };
        let mut answer = Answer::new(ExecOutput {
            standing,
            duration_ms: u64::try_from(job.duration().as_millis()).unwrap_or(u64::MAX),
            truncated: stdout.truncated || stderr.truncated,
            hint,
            stdout_ref: report::handle(job.id(), Source::Stdout),
            stderr_ref: report::handle(job.id(), Source::Stderr),
            stdout: stdout.text,
            stderr: stderr.text,
        });
        answer.denial = denial;
        Ok(answer)
    }
}

fn invalid(what: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::InvalidArguments, what)
}

/// What to start, and what to start instead when a line that needs no shell names a program that is not there.
fn launch(host: &Host, input: ExecInput) -> Result<(Launch, Option<Launch>), ToolError> {
    let options = &host.options.proc;
    let shell = Shell::choose(&options.shell, on_path);
    let (title, argv) = command_line(&input.command, &shell)?;
    let direct = match &input.command {
        Command::Line(line) if shell.is_usual() => plain_words(line),
        _ => None,
    };
    let direct: Option<Vec<OsString>> = direct.map(|words| words.into_iter().map(OsString::from).collect());
    let terminal = terminal(input.pty)?;
    let background = input.background == Some(true);
    let stdin = input.stdin.map(String::into_bytes);
    let input_kept_open = terminal.is_some() || background;
    let mut env = variables(input.env.unwrap_or_default())?;
    if terminal.is_some() && !env.iter().any(|(name, _)| name == "TERM") {
        env.push(("TERM".into(), "xterm-256color".into()));
    }
    let cwd = input.cwd.map(|given| directory(host, &given)).transpose()?;
    let in_shell = Launch {
        title,
        argv,
        cwd,
        env,
        input: match stdin {
            None if input_kept_open => LaunchInput::Open(Vec::new()),
            None => LaunchInput::Empty,
            Some(bytes) if input_kept_open => LaunchInput::Open(bytes),
            Some(bytes) => LaunchInput::Bytes(bytes),
        },
        terminal,
        timeout: input.timeout.map(Seconds::positive).transpose()?,
        wait: match (background, input.wait) {
            (true, _) => Wait::None,
            (false, Some(seconds)) if seconds.is_zero() => Wait::None,
            (false, Some(seconds)) => Wait::For(seconds.positive()?),
            (false, None) => Wait::For(options.background_after),
        },
        lifetime: if input.detach == Some(true) { Lifetime::Detached } else { Lifetime::Thread },
        // `server &` is how a shell user starts a server; it must answer the next command.
        leftovers: Leftovers::Keep,
    };
    let Some(argv) = direct else { return Ok((in_shell, None)) };
    let mut launch = Launch { argv, ..in_shell.clone() };
    // What a shell tells the programs it starts.
    let directory = launch.cwd.clone().unwrap_or_else(|| host.workspace.path().to_owned());
    launch.env.push(("PWD".into(), directory.into_os_string()));
    Ok((launch, Some(in_shell)))
}

fn command_line(command: &Command, shell: &Shell) -> Result<(String, Vec<OsString>), ToolError> {
    let no_nul = |word: &str| {
        if word.contains('\0') { Err(invalid("`command` contains a NUL byte")) } else { Ok(()) }
    };
    match command {
        Command::Line(line) if line.trim().is_empty() => Err(invalid("`command` is empty")),
        Command::Line(line) => {
            no_nul(line)?;
            Ok((line.clone(), shell.argv(line)))
        }
        Command::Argv(words) => {
            words.iter().try_for_each(|word| no_nul(word))?;
            if words.first().is_none_or(String::is_empty) {
                return Err(invalid("`command` is an empty list; its first word is the program"));
            }
            let title = serde_json::to_string(words).unwrap_or_default();
            Ok((title, words.iter().map(OsString::from).collect()))
        }
    }
}

fn terminal(pty: Option<Pty>) -> Result<Option<(u16, u16)>, ToolError> {
    let (rows, cols) = match pty {
        None | Some(Pty::Wanted(false)) => return Ok(None),
        Some(Pty::Wanted(true)) => (usual_rows(), usual_columns()),
        Some(Pty::Size { rows, cols }) => (rows, cols),
    };
    if !(1..=MAX_SIDE).contains(&rows) || !(1..=MAX_SIDE).contains(&cols) {
        return Err(invalid(format!("`pty` has rows and cols from 1 to {MAX_SIDE}")));
    }
    Ok(Some((rows, cols)))
}

fn variables(env: BTreeMap<String, String>) -> Result<Vec<(OsString, OsString)>, ToolError> {
    let check = |(name, value): (String, String)| {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(invalid(format!("`env` has the variable `{name}`, which cannot be set")));
        }
        Ok((name.into(), value.into()))
    };
    env.into_iter().map(check).collect()
}

/// The directory a caller means, if it is there as far as we can see.
pub(crate) fn directory(host: &Host, given: &str) -> Result<PathBuf, ToolError> {
    let path = host.workspace.path().join(place::parse(given)?);
    let is_file = |path: &Path| {
        let kind = host.workspace.stat(path).map(|metadata| metadata.kind);
        matches!(kind, Ok(kind) if kind != hanzo_sandbox::paths::FileKind::Directory)
    };
    let missing = match host.workspace.stat(&path) {
        Err(error) => error.io_kind() == Some(std::io::ErrorKind::NotFound),
        Ok(_) => false,
    };
    if missing || is_file(&path) {
        let what = if missing { "does not exist" } else { "is not a directory" };
        return Err(ToolError::new(ErrorCode::NotFound, format!("`cwd` {what}: {}", path.display())));
    }
    Ok(path)
}

/// Nobody waits longer than a day.
pub(super) const LONGEST: Duration = Duration::from_hours(24);
