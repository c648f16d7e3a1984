//! `proc.ps`, `proc.kill`, `proc.logs` and `proc.write`.

use std::time::Duration;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::tool::{Effect, TimeLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::job::{Close, Job, Order, Phase};
use super::report::{self, Standing};
use super::summary::JobSummary;
use super::{Seconds, Source, text};
use crate::contract::{Action, Answer, Call};

/// How long a kill is waited for; the kernel needs milliseconds.
const DEATH: Duration = Duration::from_secs(2);

/// Lists processes.
pub(super) struct Ps;

/// The arguments of `proc.ps`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PsInput {
    /// Part of a command, or a status
    filter: Option<String>,
}

/// The answer of `proc.ps`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PsOutput {
    /// The thread's processes, in the order in which they were started.
    processes: Vec<Listed>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    #[serde(flatten)]
    standing: Standing,
    command: String,
    /// How long it has run.
    seconds: u64,
    /// Whether it outlives its thread.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    detached: bool,
    /// How much it wrote.
    output_bytes: u64,
}

impl Action for Ps {
    const NAME: &'static str = "ps";
    const SUMMARY: &'static str = "list processes";
    const EXAMPLE: &'static str = r#"{"filter":"running"}"#;
    const HIDDEN: &'static [&'static str] = &["filter"];
    type Input = PsInput;
    type Output = PsOutput;

    fn effect(&self, _: &PsInput) -> Effect {
        Effect::Read
    }

    async fn run(&self, call: &Call<'_>, input: PsInput) -> Result<Answer<PsOutput>, ToolError> {
        let mut processes = Vec::new();
        for job in call.host.jobs.list() {
            let standing = Standing::of(&job);
            let status = serde_json::to_value(standing.status).unwrap_or_default();
            let fits = |filter: &String| {
                job.command.contains(filter.as_str())
                    || status == filter.as_str()
                    || standing.proc_id == *filter
            };
            if input.filter.as_ref().is_none_or(fits) {
                let JobSummary { command, duration, output_bytes, detached, .. } = job.summary();
                let seconds = duration.as_secs();
                processes.push(Listed { standing, command, seconds, detached, output_bytes });
            }
        }
        Ok(Answer::new(PsOutput { processes }))
    }
}

/// Ends a process.
pub(super) struct Kill;

/// The arguments of `proc.kill`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KillInput {
    /// As exec gave it
    proc_id: String,
    /// Default KILL
    signal: Option<String>,
}

/// How a process is after something was done to it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StandingOutput {
    #[serde(flatten)]
    standing: Standing,
    /// Where its output goes on, for `since`.
    next: u64,
}

impl StandingOutput {
    fn of(job: &Job) -> Self {
        Self { standing: Standing::of(job), next: job.state().stdout.total() }
    }
}

impl Action for Kill {
    const NAME: &'static str = "kill";
    const SUMMARY: &'static str = "end one and all it started";
    const EXAMPLE: &'static str = r#"{"proc_id":"proc_1_qkzvx"}"#;
    const WORST: Effect = Effect::Execute;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[("pid", "proc_id"), ("ref", "proc_id")];
    const HIDDEN: &'static [&'static str] = &["signal"];
    const QUIET: &'static [&'static str] = &["proc_id"];
    type Input = KillInput;
    type Output = StandingOutput;

    fn effect(&self, _: &KillInput) -> Effect {
        Effect::Execute
    }

    async fn run(&self, call: &Call<'_>, input: KillInput) -> Result<Answer<StandingOutput>, ToolError> {
        let job = report::find(&call.host.jobs, &input.proc_id)?;
        let signal = signal_number(input.signal.as_deref().unwrap_or("KILL"))?;
        match signal {
            Signal::Kill => {
                job.order(Order::Kill).await;
                let _ = tokio::time::timeout(DEATH, job.over()).await;
            }
            Signal::Other(number) => {
                let (sender, answer) = oneshot::channel();
                if job.phase() == Phase::Running && job.order(Order::Signal(number, sender)).await {
                    let failed = |text| ToolError::new(ErrorCode::Unsupported, text);
                    answer.await.unwrap_or(Ok(())).map_err(failed)?;
                    // Most programs end at once, and then the caller should not have to ask again.
                    let _ = tokio::time::timeout(Duration::from_millis(500), job.over()).await;
                }
            }
        }
        Ok(Answer::new(StandingOutput::of(&job)))
    }
}

enum Signal {
    Kill,
    Other(i32),
}

fn signal_number(name: &str) -> Result<Signal, ToolError> {
    let upper = name.to_uppercase();
    let plain = upper.strip_prefix("SIG").unwrap_or(&upper);
    if plain == "KILL" || plain == "9" {
        return Ok(Signal::Kill);
    }
    #[cfg(unix)]
    {
        use rustix::process::Signal as Known;
        let known = [
            ("HUP", Known::HUP),
            ("INT", Known::INT),
            ("QUIT", Known::QUIT),
            ("TERM", Known::TERM),
            ("USR1", Known::USR1),
            ("USR2", Known::USR2),
            ("STOP", Known::STOP),
            ("CONT", Known::CONT),
            ("WINCH", Known::WINCH),
        ];
        let found = known
            .iter()
            .find(|(name, signal)| *name == plain || plain.parse() == Ok(signal.as_raw()))
            .map(|(_, signal)| Signal::Other(signal.as_raw()));
        if let Some(signal) = found {
            return Ok(signal);
        }
    }
    let text = format!("`{name}` is no signal; KILL, TERM, INT, HUP, QUIT, USR1, USR2, STOP and CONT are");
    Err(ToolError::new(ErrorCode::InvalidArguments, text))
}

/// Reads what a process wrote.
pub(super) struct Logs;

/// The arguments of `proc.logs`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LogsInput {
    /// As exec gave it
    proc_id: String,
    /// Last lines
    tail: Option<u32>,
    /// From this byte
    since: Option<u64>,
    stream: Option<StreamName>,
    /// Seconds
    wait: Option<Seconds>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StreamName {
    Stdout,
    Stderr,
}

/// The answer of `proc.logs`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LogsOutput {
    #[serde(flatten)]
    standing: Standing,
    /// Where the text begins in the stream, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    /// Where to read on: `since` of the next call.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// How much the stream has in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Whether something was left out of the texts here.
    truncated: bool,
    /// What it wrote, without escape sequences.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<String>,
    /// Its errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
}

impl Action for Logs {
    const NAME: &'static str = "logs";
    const SUMMARY: &'static str = "all its output";
    const EXAMPLE: &'static str = r#"{"proc_id":"proc_1_qkzvx","tail":50}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[("pid", "proc_id"), ("ref", "proc_id")];
    const QUIET: &'static [&'static str] = &["proc_id"];
    type Input = LogsInput;
    type Output = LogsOutput;

    fn effect(&self, _: &LogsInput) -> Effect {
        Effect::Read
    }

    fn time_limit(&self, _: &LogsInput) -> TimeLimit {
        TimeLimit::Own
    }

    async fn run(&self, call: &Call<'_>, input: LogsInput) -> Result<Answer<LogsOutput>, ToolError> {
        let job = report::find(&call.host.jobs, &input.proc_id)?;
        if let Some(wait) = input.wait {
            let _ = tokio::time::timeout(wait.at_least_zero()?, job.over()).await;
        }
        // `stderr_ref:proc_1_qkzvx` says which stream it means.
        let named = input.proc_id.starts_with("stderr_ref:").then_some(StreamName::Stderr);
        let stream = input.stream.or(named);
        let budget = call.host.options.proc.output_limit;
        let standing = Standing::of(&job);
        let since = input.since;
        if stream.is_none() && since.is_none() && input.tail.is_none() {
            let (stdout, stderr) = report::outputs(&job, budget);
            let truncated = stdout.truncated || stderr.truncated;
            return Ok(Answer::new(LogsOutput {
                standing,
                from: None,
                next: Some(job.state().stdout.total()),
                size: None,
                truncated,
                stdout: Some(stdout.text),
                stderr: Some(stderr.text),
            }));
        }
        let stream = stream.unwrap_or(StreamName::Stdout);
        let page = page(&job, stream, since, input.tail, budget)?;
        let (stdout, stderr) = match stream {
            StreamName::Stdout => (Some(page.text), None),
            StreamName::Stderr => (None, Some(page.text)),
        };
        Ok(Answer::new(LogsOutput {
            standing,
            from: Some(page.from),
            next: Some(page.next),
            size: Some(page.size),
            truncated: page.next < page.size || since.is_some_and(|since| page.from > since),
            stdout,
            stderr,
        }))
    }
}

struct Page {
    from: u64,
    next: u64,
    size: u64,
    text: String,
}

fn page(
    job: &Job,
    stream: StreamName,
    since: Option<u64>,
    tail: Option<u32>,
    budget: usize,
) -> Result<Page, ToolError> {
    let io = |error: std::io::Error| {
        ToolError::new(ErrorCode::Io, format!("cannot read the output of {}: {error}", job.id()))
    };
    let state = job.state();
    let capture = state.capture(match stream {
        StreamName::Stdout => Source::Stdout,
        StreamName::Stderr => Source::Stderr,
    });
    let size = capture.total();
    let start = match (since, tail) {
        (Some(since), _) => since,
        (None, Some(lines)) => {
            capture.offset_of_last_lines(usize::try_from(lines).unwrap_or(usize::MAX), budget).map_err(io)?
        }
        (None, None) => size.saturating_sub(budget as u64),
    };
    let mut piece = capture.read(start, budget).map_err(io)?;
    let end = piece.offset + piece.bytes.len() as u64;
    // A page ends with a line where it can: the next one then begins with one, and no character is cut.
    if end < size {
        let cut = piece.bytes.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        let cut = cut.filter(|cut| *cut > piece.bytes.len() / 2);
        piece.bytes.truncate(cut.unwrap_or_else(|| character_end(&piece.bytes)));
    }
    let next = piece.offset + piece.bytes.len() as u64;
    Ok(Page { from: piece.offset, next, size, text: text::clean(&piece.bytes) })
}

/// Where the last complete character ends.
fn character_end(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    }
}

/// Writes to a process.
pub(super) struct Write;

/// The arguments of `proc.write`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteInput {
    /// As exec gave it
    proc_id: String,
    stdin: String,
    /// Then end the input
    close: Option<bool>,
}

impl Action for Write {
    const NAME: &'static str = "write";
    const SUMMARY: &'static str = "to a background or pty one";
    const EXAMPLE: &'static str = r#"{"proc_id":"proc_1_qkzvx","stdin":"yes\n"}"#;
    const WORST: Effect = Effect::Execute;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[("input", "stdin"), ("text", "stdin")];
    const HIDDEN: &'static [&'static str] = &["close"];
    const QUIET: &'static [&'static str] = &["proc_id"];
    type Input = WriteInput;
    type Output = StandingOutput;

    fn effect(&self, _: &WriteInput) -> Effect {
        Effect::Execute
    }

    async fn run(&self, call: &Call<'_>, input: WriteInput) -> Result<Answer<StandingOutput>, ToolError> {
        let job = report::find(&call.host.jobs, &input.proc_id)?;
        let before = StandingOutput::of(&job);
        let close = if input.close == Some(true) { Close::After } else { Close::Never };
        let (sender, answer) = oneshot::channel();
        let taken = job.phase() == Phase::Running
            && job.order(Order::Write(input.stdin.into_bytes(), close, sender)).await;
        let written =
            if taken { answer.await.unwrap_or(Err("it is over".into())) } else { Err("it is over".into()) };
        written.map_err(|why| {
            let text = format!(
                "cannot write to {}: {why}; start it with `background` or `pty` to write to it",
                job.id()
            );
            ToolError::new(ErrorCode::Unavailable, text)
        })?;
        Ok(Answer::new(StandingOutput { standing: Standing::of(&job), next: before.next }))
    }
}
