//! What the actions of `proc` say about a process: the same words everywhere.

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::Ref;
use hanzo_protocol::spawn::{ProcessStatus, SpawnError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::job::{Job, Phase, ProcId, Source};
use super::jobs::{JobError, Jobs};
use super::text::{self, Shown};

/// How a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// It runs, in the background.
    Running,
    /// It ended by itself.
    Exited,
    /// It reached its time limit and was killed.
    TimedOut,
    /// It was killed, by us or by a signal.
    Killed,
}

/// What the sandbox was probably in the way of.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct DenialReport {
    /// Such as `write to /etc/hosts` or `network`.
    what: String,
    /// The line the guess rests on.
    evidence: String,
}

/// How a process is and how it ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Standing {
    pub(crate) proc_id: String,
    pub(crate) status: Status,
    /// The code it ended with; 128 + n when signal n ended it.
    pub(crate) exit_code: Option<i32>,
    /// The limit it ran into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<String>,
    /// Whether something it started goes on in the background; `kill` ends it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) leftovers: bool,
    /// What the sandbox was probably in the way of; a guess.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) denial: Option<DenialReport>,
}

impl Standing {
    pub(crate) fn of(job: &Job) -> Self {
        let proc_id = job.id().to_string();
        let Phase::Over(over) = job.phase() else {
            let status = Status::Running;
            return Self { proc_id, status, exit_code: None, limit: None, leftovers: false, denial: None };
        };
        let (status, exit_code, limit) = match over.status {
            ProcessStatus::Exited(code) => (Status::Exited, Some(code), None),
            ProcessStatus::Signalled(signal) => (Status::Killed, Some(128 + signal), None),
            ProcessStatus::TimedOut => (Status::TimedOut, None, None),
            ProcessStatus::LimitReached(limit) => (Status::Killed, None, Some(limit)),
            _ => (Status::Killed, None, None),
        };
        let denial = over.denial.map(|denial| DenialReport { what: denial.what, evidence: denial.evidence });
        Self { proc_id, status, exit_code, limit, leftovers: over.leftovers, denial }
    }

    pub(crate) fn denied(&self) -> Option<String> {
        self.denial.as_ref().map(|denial| denial.what.clone())
    }
}

/// The handle of a stream's whole output.
pub(crate) fn handle(id: ProcId, source: Source) -> Ref {
    match source {
        Source::Stdout => Ref::new(format!("stdout_ref:{id}")),
        Source::Stderr => Ref::new(format!("stderr_ref:{id}")),
    }
}

/// Both outputs, shortened together to `budget` bytes.
pub(crate) fn outputs(job: &Job, budget: usize) -> (Shown, Shown) {
    let state = job.state();
    let (first, second) = text::share(budget, state.stdout.total(), state.stderr.total());
    let one = |source: Source, budget: usize| {
        let capture = state.capture(source);
        let (id, stream) = (job.id(), if source == Source::Stdout { "stdout" } else { "stderr" });
        let mut elsewhere = format!("`logs` with proc_id={id}, stream={stream}, since=0 has them");
        if capture.dropped() > 0 {
            elsewhere = format!("{elsewhere}, except {} that were not kept", capture.dropped());
        }
        if let Some(fault) = capture.fault() {
            elsewhere = format!("{elsewhere} ({fault})");
        }
        capture.with_view(|view| text::show(view, budget, &elsewhere))
    };
    (one(Source::Stdout, first), one(Source::Stderr, second))
}

/// The process a caller names.
pub(crate) fn find(jobs: &Jobs, name: &str) -> Result<std::sync::Arc<Job>, ToolError> {
    let id = ProcId::parse(name);
    id.and_then(|id| jobs.get(id)).ok_or_else(|| {
        let known: Vec<String> = jobs.list().iter().map(|job| job.id().to_string()).collect();
        let why = match id {
            Some(id) if jobs.gave(id) => "it ended long ago and is forgotten",
            Some(_) => {
                "its name is from before this thread was opened, when processes ended and their output went"
            }
            None => "a name is like `proc_1_qkzvx`",
        };
        let hint = if known.is_empty() { "nothing was started since" } else { "`ps` lists them" };
        ToolError::new(ErrorCode::NotFound, format!("there is no process `{name}`: {why}; {hint}"))
            .with_details(json!({ "known": known }))
    })
}

/// Why a process was not started, for a model.
pub(crate) fn failure(error: &JobError) -> ToolError {
    let code = match error {
        JobError::TooMany { .. } => ErrorCode::RateLimited,
        JobError::Spawn(SpawnError::Program { .. }) => ErrorCode::NotFound,
        JobError::Spawn(SpawnError::Unsupported(_)) => ErrorCode::Unsupported,
        JobError::Spawn(_) => ErrorCode::Unavailable,
        JobError::Watch(_) => ErrorCode::Io,
    };
    ToolError::new(code, error.to_string())
}
