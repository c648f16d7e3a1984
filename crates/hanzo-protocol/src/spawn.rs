//! Starting processes. Everything that runs a program (commands, tests, git, hooks, servers) is given a [`Spawner`] by
//! the composition root and starts it through that, so that there is one place where a process is confined and no crate
//! can forget to.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use crate::BoxFuture;

/// Starts processes in the confinement the user asked for.
pub trait Spawner: Send + Sync {
    /// What confines the processes.
    fn confinement(&self) -> Confinement;

    /// Starts a process. It has begun, or could not, when the future is done.
    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'_, Result<Box<dyn Process>, SpawnError>>;
}

/// What confines processes, in words that can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// The level in force: `full`, `landlock+seccomp` or `path-check`.
    pub level: String,
    /// Where processes may write.
    pub writable: Vec<PathBuf>,
    /// Whether they reach the network.
    pub network: bool,
    /// The directory that is `/tmp` to them, for file tools to look in too.
    pub tmp: Option<PathBuf>,
}

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnRequest {
    /// The program and its arguments. No shell is involved unless the program is one.
    pub argv: Vec<OsString>,
    /// Where to run it; the workspace when absent.
    pub cwd: Option<PathBuf>,
    /// Variables beside those the confinement lets through.
    pub env: Vec<(OsString, OsString)>,
    /// What its standard streams are.
    pub streams: Streams,
    /// When to kill the process and all it started.
    pub timeout: Option<Duration>,
    /// What becomes of processes it leaves behind.
    pub leftovers: Leftovers,
}

impl SpawnRequest {
    /// `argv` with pipes, in the workspace, without a time limit.
    pub fn new(argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: None,
            env: Vec::new(),
            streams: Streams::Pipes { stdin: Stdin::Empty },
            timeout: None,
            leftovers: Leftovers::Kill,
        }
    }
}

/// What a process's standard streams are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Pipes for output and errors.
    Pipes {
        /// What it reads.
        stdin: Stdin,
    },
    /// One terminal for all three.
    Terminal {
        /// Its rows.
        rows: u16,
        /// Its columns.
        columns: u16,
    },
}

/// What a process reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing.
    Empty,
    /// What the caller writes.
    Pipe,
}

/// What becomes of processes that the main one leaves behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leftovers {
    /// They are killed with it.
    #[default]
    Kill,
    /// They go on until the spawner is dropped: a server started in the background.
    Keep,
}

/// A process that was started. Dropping it kills what is left of it, unless it is over and its leftovers are kept; dropping
/// its spawner kills everything.
pub trait Process: Send {
    /// Its streams. Each can be taken once.
    fn streams(&mut self) -> &mut ProcessStreams;

    /// Waits until the process and, unless they are kept, all it started are gone.
    fn wait(&mut self) -> BoxFuture<'_, Result<ProcessEnd, SpawnError>>;

    /// Kills it and all it started.
    fn kill(&mut self);

    /// Sends it and all it started a signal, by its number on this system. A process is free to ignore it.
    fn signal(&mut self, signal: i32) -> Result<(), SpawnError> {
        Err(SpawnError::Unsupported(format!("sending signal {signal}")))
    }

    /// Tells its terminal another size.
    fn resize(&mut self, rows: u16, columns: u16) -> Result<(), SpawnError>;

    /// Whether the confinement was probably in the way of a process that failed, judged by the end of what it wrote to
    /// standard error. A guess: good for offering to run it again outside, not for deciding anything.
    fn denial(&self, end: &ProcessEnd, stderr_tail: &[u8]) -> Option<Denial>;
}

/// The caller's ends of a process's streams.
#[derive(Debug, Default)]
pub struct ProcessStreams {
    /// Writes to its standard input.
    pub stdin: Option<File>,
    /// Reads its output.
    pub stdout: Option<File>,
    /// Reads its errors.
    pub stderr: Option<File>,
    /// Its terminal, to read and write.
    pub terminal: Option<File>,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEnd {
    /// Why it is over.
    pub status: ProcessStatus,
    /// Its processor time.
    pub cpu_time: Duration,
    /// The most memory one of its processes had, in bytes.
    pub max_rss: u64,
    /// Whether something of it goes on in the background.
    pub leftovers: bool,
}

/// Why a process is over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessStatus {
    /// It ended by itself with this code.
    Exited(i32),
    /// A signal ended it that was not ours.
    Signalled(i32),
    /// It reached its time limit.
    TimedOut,
    /// It was killed, by us or with its spawner.
    Killed,
    /// It ran into a limit, named here.
    LimitReached(String),
}

/// A guess at what the confinement denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// What: `write to /etc/hosts`, `network`, `operation`.
    pub what: String,
    /// The line the guess rests on.
    pub evidence: String,
}

/// Why a process could not be started or watched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The program is not there or cannot be run.
    #[error("cannot run `{program}`: {reason}")]
    Program {
        /// The program.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// The confinement could not be made, and nothing was run outside it instead.
    #[error("cannot confine the process: {0}")]
    Confinement(String),
    /// What starts the processes cannot do this.
    #[error("{0} is not supported here")]
    Unsupported(String),
}
