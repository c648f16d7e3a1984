//! A process in a line, for whoever lists them.

use std::time::Duration;

use super::job::{Job, Phase, ProcId};
use super::text;

/// The longest command that is shown, in characters.
const COMMAND: usize = 200;

/// A process in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSummary {
    /// What it is called.
    pub id: ProcId,
    /// What runs, without control characters and shortened.
    pub command: String,
    /// Whether it runs, or how it ended.
    pub phase: Phase,
    /// How long it has run.
    pub duration: Duration,
    /// How much it wrote to both its streams.
    pub output_bytes: u64,
    /// Whether it outlives its thread.
    pub detached: bool,
}

impl Job {
    /// The process in a line.
    pub fn summary(&self) -> JobSummary {
        let state = self.state();
        let output_bytes = state.stdout.total() + state.stderr.total();
        drop(state);
        JobSummary {
            id: self.id(),
            command: text::clean(self.command.as_bytes()).chars().take(COMMAND).collect(),
            phase: self.phase(),
            duration: self.duration(),
            output_bytes,
            detached: self.detached,
        }
    }
}
