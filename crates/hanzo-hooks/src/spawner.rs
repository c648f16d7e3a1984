//! Who starts hooks.

use std::time::Duration;

use crate::BoxFuture;

/// Starts the command of a hook and sees it to its end.
pub trait HookSpawner: Send + Sync {
    /// Runs `run.command` in a shell, with `run.env` beside what the spawner lets through and `run.stdin` as its input, and
    /// keeps at most `run.most_output` bytes of each of its outputs (the rest is read and thrown away, so that the command is
    /// never stuck on a full pipe). At `run.timeout`, and when the future is dropped, the command and all it started are
    /// killed; what it leaves running at its end is killed too. A command that does not read its input is no error.
    fn run(&self, run: HookRun) -> BoxFuture<'_, Result<HookOutput, StartError>>;
}

// Held as `dyn`; this stops compiling when it no longer can be.
const _: Option<&dyn HookSpawner> = None;

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRun {
    /// For the shell.
    pub command: String,
    /// Variables, without NUL characters.
    pub env: Vec<(String, String)>,
    /// What it reads.
    pub stdin: Vec<u8>,
    /// When to kill it and all it started.
    pub timeout: Duration,
    /// The most bytes to keep of each output.
    pub most_output: usize,
}

/// How a command ended and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookOutput {
    /// How it ended.
    pub end: HookEnd,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookEnd {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It was killed at its time limit.
    TimedOut,
}

/// The beginning of an output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How many more there were.
    pub dropped: u64,
}

impl Captured {
    /// Keeps what fits of `bytes` under `most`.
    pub fn push(&mut self, bytes: &[u8], most: usize) {
        let fits = bytes.len().min(most.saturating_sub(self.bytes.len()));
        self.bytes.extend_from_slice(&bytes[..fits]);
        self.dropped += (bytes.len() - fits) as u64;
    }
}

/// A command could not be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot start the hook: {reason}")]
pub struct StartError {
    /// What the system said.
    pub reason: String,
}
