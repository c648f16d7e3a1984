//! `proc`: running programs. All of them go through the thread's spawner; their output is kept in bounded memory and, when it
//! is long, in a file behind a ref; a command that takes long goes on in the background with nothing lost.
//!
//! [`Jobs`] keeps the processes of a thread and is used by `vcs` too. The actions are `exec`, `ps`, `kill`, `logs` and `write`.

use std::borrow::Cow;
use std::time::Duration;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::contract::{ToolBuilder, UnifiedTool};

mod capture;
mod exec;
mod job;
mod jobs;
mod manage;
mod report;
mod shell;
mod stream;
mod summary;
mod text;

pub(crate) use exec::directory;
pub use job::{Job, Over, Phase, ProcId, RunTag, Source};
pub use jobs::{JobError, JobOptions, Jobs, Launch, LaunchInput, Lifetime, Wait};
pub(crate) use report::{Standing, Status, failure, handle};
pub(crate) use shell::{Shell, on_path, plain_words};
pub use shell::{ShellChoice, ShellKind};
pub use summary::JobSummary;
pub(crate) use text::clean;

/// How programs are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcOptions {
    /// When a command goes to the background.
    pub background_after: Duration,
    /// The same for the `bash` of other vocabularies; zero waits for the end.
    pub bash_wait: Duration,
    /// The shell for commands that are a line of text.
    pub shell: ShellChoice,
    /// How many bytes of output a result has at most.
    pub output_limit: usize,
    /// How processes are kept.
    pub jobs: JobOptions,
}

impl ProcOptions {
    /// How long `bash` waits: without a limit, as long as anything waits.
    pub(crate) fn bash_wait(&self) -> Duration {
        if self.bash_wait.is_zero() { exec::LONGEST } else { self.bash_wait }
    }
}

impl Default for ProcOptions {
    fn default() -> Self {
        Self {
            background_after: Duration::from_secs(45),
            bash_wait: Duration::from_mins(2),
            shell: ShellChoice::default(),
            output_limit: 30_000,
            jobs: JobOptions::default(),
        }
    }
}

/// The tool, to be given a host.
pub fn tool() -> ToolBuilder {
    UnifiedTool::builder("proc", "Programs, in a sandbox: they write the workspace and /tmp only.")
        .action(exec::Exec)
        .action(manage::Ps)
        .action(manage::Kill)
        .action(manage::Logs)
        .action(manage::Write)
        .example_of("exec")
}

/// A number of seconds, as JSON has it.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Seconds(f64);

impl JsonSchema for Seconds {
    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0})
    }
}

impl Seconds {
    pub(crate) fn is_zero(self) -> bool {
        self.0 == 0.0
    }

    pub(crate) fn at_least_zero(self) -> Result<Duration, ToolError> {
        let wrong =
            || ToolError::new(ErrorCode::InvalidArguments, format!("{} is no number of seconds", self.0));
        Duration::try_from_secs_f64(self.0).map(|time| time.min(exec::LONGEST)).map_err(|_| wrong())
    }

    pub(crate) fn positive(self) -> Result<Duration, ToolError> {
        match self.at_least_zero()? {
            Duration::ZERO => {
                Err(ToolError::new(ErrorCode::InvalidArguments, "a time limit of 0 seconds leaves no time"))
            }
            time => Ok(time),
        }
    }
}
