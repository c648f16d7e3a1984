//! A [`Spawner`] without a sandbox, for tests of what runs programs. It needs a tokio runtime.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::spawn::{
    Confinement, Denial, Leftovers, Process, ProcessEnd, ProcessStatus, ProcessStreams, SpawnError,
    SpawnRequest, Spawner, Stdin, Streams,
};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// Starts processes with nothing around them.
#[derive(Debug, Clone)]
pub struct PlainSpawner {
    workspace: PathBuf,
}

impl PlainSpawner {
    /// Processes run in `workspace` unless they are told otherwise.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self { workspace: workspace.into() }
    }

    fn start(&self, request: &SpawnRequest) -> Result<PlainProcess, SpawnError> {
        let Streams::Pipes { stdin } = request.streams else {
            return Err(SpawnError::Unsupported("a terminal".into()));
        };
        let program = request.argv.first().cloned().unwrap_or_default();
        let fault = |error: io::Error| SpawnError::Program {
            program: program.to_string_lossy().into_owned(),
            reason: error.to_string(),
        };
        let mut command = Command::new(&program);
        command.args(request.argv.iter().skip(1)).envs(request.env.iter().cloned());
        command.current_dir(request.cwd.as_ref().unwrap_or(&self.workspace)).process_group(0);
        let mut streams = ProcessStreams::default();
        let (reader, writer) = io::pipe().map_err(fault)?;
        command.stdout(writer);
        streams.stdout = Some(File::from(OwnedFd::from(reader)));
        let (reader, writer) = io::pipe().map_err(fault)?;
        command.stderr(writer);
        streams.stderr = Some(File::from(OwnedFd::from(reader)));
        match stdin {
            Stdin::Empty => {
                command.stdin(Stdio::null());
            }
            Stdin::Pipe => {
                let (reader, writer) = io::pipe().map_err(fault)?;
                command.stdin(reader);
                streams.stdin = Some(File::from(OwnedFd::from(writer)));
            }
        }
        let child = command.spawn().map_err(fault)?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let deadline = request.timeout.map(|limit| Instant::now() + limit);
        Ok(PlainProcess {
            child,
            group,
            streams,
            deadline,
            leftovers: request.leftovers,
            killed: None,
            over: false,
        })
    }
}

impl Spawner for PlainSpawner {
    fn confinement(&self) -> Confinement {
        Confinement { level: "path-check".into(), writable: vec!["/".into()], network: true, tmp: None }
    }

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'_, Result<Box<dyn Process>, SpawnError>> {
        Box::pin(async move { Ok(Box::new(self.start(&request)?) as Box<dyn Process>) })
    }
}

struct PlainProcess {
    child: Child,
    group: Option<Pid>,
    streams: ProcessStreams,
    deadline: Option<Instant>,
    leftovers: Leftovers,
    killed: Option<ProcessStatus>,
    over: bool,
}

impl PlainProcess {
    fn kill_as(&mut self, status: ProcessStatus) {
        self.killed.get_or_insert(status);
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Process for PlainProcess {
    fn streams(&mut self) -> &mut ProcessStreams {
        &mut self.streams
    }

    fn wait(&mut self) -> BoxFuture<'_, Result<ProcessEnd, SpawnError>> {
        Box::pin(async move {
            let deadline = self.deadline.filter(|_| self.killed.is_none());
            let limit = deadline.unwrap_or_else(|| Instant::now() + Duration::from_hours(24));
            let exit = if let Ok(exit) = tokio::time::timeout_at(limit, self.child.wait()).await {
                exit
            } else {
                self.kill_as(ProcessStatus::TimedOut);
                self.child.wait().await
            };
            self.over = true;
            let exit = exit.map_err(|error| SpawnError::Confinement(error.to_string()))?;
            let own = exit
                .code()
                .map_or_else(|| ProcessStatus::Signalled(exit.signal().unwrap_or(0)), ProcessStatus::Exited);
            let alive = |group| test_kill_process_group(group).is_ok();
            let leftovers =
                self.leftovers == Leftovers::Keep && self.killed.is_none() && self.group.is_some_and(alive);
            if self.leftovers == Leftovers::Kill
                && let Some(group) = self.group
            {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let status = self.killed.clone().unwrap_or(own);
            Ok(ProcessEnd { status, cpu_time: Duration::ZERO, max_rss: 0, leftovers })
        })
    }

    fn kill(&mut self) {
        self.kill_as(ProcessStatus::Killed);
    }

    fn signal(&mut self, signal: i32) -> Result<(), SpawnError> {
        let unknown = || SpawnError::Unsupported(format!("signal {signal}"));
        let signal = Signal::from_named_raw(signal).ok_or_else(unknown)?;
        let group = self.group.ok_or_else(unknown)?;
        kill_process_group(group, signal).map_err(|error| SpawnError::Confinement(error.to_string()))
    }

    fn resize(&mut self, _: u16, _: u16) -> Result<(), SpawnError> {
        Err(SpawnError::Unsupported("a terminal".into()))
    }

    fn denial(&self, end: &ProcessEnd, stderr_tail: &[u8]) -> Option<Denial> {
        // Nothing is denied here; a test says so itself.
        let line = String::from_utf8_lossy(stderr_tail);
        let line = line.lines().find(|line| line.contains("Read-only file system"))?;
        let failed = end.status != ProcessStatus::Exited(0);
        failed.then(|| Denial { what: "write".into(), evidence: line.to_owned() })
    }
}

impl Drop for PlainProcess {
    fn drop(&mut self) {
        if !(self.over && self.leftovers == Leftovers::Keep) {
            self.kill();
        }
    }
}
