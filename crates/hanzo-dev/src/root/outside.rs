//! Processes without a jail: what a person allowed to run outside it, and everything when the sandbox is off.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::pipe;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::spawn::{
    Confinement, Denial, Leftovers, Process, ProcessEnd, ProcessStatus, ProcessStreams, SpawnError,
    SpawnRequest, Spawner, Stdin, Streams,
};
use hanzo_sandbox::jail::EnvPolicy;
use tokio::process::{Child, Command};

/// Starts processes as the user would, each in a group of its own. Even they do not get the environment as it is: keys
/// live there.
pub struct OutsideSpawner {
    workspace: PathBuf,
    env: EnvPolicy,
}

impl OutsideSpawner {
    /// Processes that start in `workspace`.
    pub fn new(workspace: PathBuf, env: EnvPolicy) -> Self {
        Self { workspace, env }
    }

    fn start(&self, request: &SpawnRequest) -> Result<OutsideProcess, SpawnError> {
        let program = request.argv.first().cloned().unwrap_or_default();
        let failed =
            |reason: String| SpawnError::Program { program: program.to_string_lossy().into_owned(), reason };
        let io = |error: std::io::Error| failed(error.to_string());
        let Streams::Pipes { stdin } = request.streams else {
            return Err(failed(
                "outside the sandbox there is no terminal for it; run it without `pty`".to_owned(),
            ));
        };
        let env: Vec<(OsString, OsString)> = self.env.apply(std::env::vars_os(), &request.env);
        // With its path the program is started without copying this process first, which costs more than the start.
        let mut command = Command::new(in_path(&program, &env).as_deref().unwrap_or(Path::new(&program)));
        command
            .arg0(&program)
            .args(request.argv.iter().skip(1))
            .current_dir(request.cwd.as_ref().unwrap_or(&self.workspace))
            .env_clear()
            .envs(env)
            .process_group(0)
            .kill_on_drop(true);
        let mut streams = ProcessStreams::default();
        let file = |end: OwnedFd| File::from(end);
        match stdin {
            Stdin::Empty => {
                command.stdin(Stdio::null());
            }
            Stdin::Pipe => {
                let (theirs, ours) = pipe().map_err(io)?;
                command.stdin(theirs);
                streams.stdin = Some(file(ours.into()));
            }
        }
        let (ours, theirs) = pipe().map_err(io)?;
        command.stdout(theirs);
        streams.stdout = Some(file(ours.into()));
        let (ours, theirs) = pipe().map_err(io)?;
        command.stderr(theirs);
        streams.stderr = Some(file(ours.into()));
        let child = command.spawn().map_err(io)?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        Ok(OutsideProcess {
            child,
            group,
            streams,
            timeout: request.timeout,
            leftovers: request.leftovers,
            killed: false,
            over: false,
        })
    }
}

/// Where the child's own `PATH` has a program that is given by its name.
fn in_path(program: &OsStr, env: &[(OsString, OsString)]) -> Option<PathBuf> {
    if Path::new(program).components().count() != 1 || program.as_encoded_bytes().contains(&b'/') {
        return None;
    }
    let (_, path) = env.iter().find(|(name, _)| name == "PATH")?;
    std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(program)).find(
        |candidate| candidate.is_file() && rustix::fs::access(candidate, rustix::fs::Access::EXEC_OK).is_ok(),
    )
}

impl Spawner for OutsideSpawner {
    fn confinement(&self) -> Confinement {
        Confinement { level: "off".to_owned(), writable: vec![PathBuf::from("/")], network: true, tmp: None }
    }

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'_, Result<Box<dyn Process>, SpawnError>> {
        Box::pin(async move { Ok(Box::new(self.start(&request)?) as Box<dyn Process>) })
    }
}

struct OutsideProcess {
    child: Child,
    /// The process group, which is the process's own id.
    group: Option<rustix::process::Pid>,
    streams: ProcessStreams,
    timeout: Option<Duration>,
    leftovers: Leftovers,
    killed: bool,
    over: bool,
}

impl OutsideProcess {
    fn kill_group(&self) {
        if let Some(group) = self.group {
            // It may be gone already.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

impl Process for OutsideProcess {
    fn streams(&mut self) -> &mut ProcessStreams {
        &mut self.streams
    }

    fn wait(&mut self) -> BoxFuture<'_, Result<ProcessEnd, SpawnError>> {
        Box::pin(async move {
            let lost = |error: std::io::Error| SpawnError::Confinement(format!("it was lost: {error}"));
            let limit = self.timeout.unwrap_or(Duration::MAX);
            let in_time = tokio::time::timeout(limit, self.child.wait()).await;
            let (status, timed_out) = if let Ok(status) = in_time {
                (status.map_err(lost)?, false)
            } else {
                self.kill_group();
                (self.child.wait().await.map_err(lost)?, true)
            };
            self.over = true;
            if self.leftovers == Leftovers::Kill {
                self.kill_group();
            }
            let signal = std::os::unix::process::ExitStatusExt::signal(&status);
            let status = match (timed_out, self.killed, status.code(), signal) {
                (true, ..) => ProcessStatus::TimedOut,
                (_, _, Some(code), _) => ProcessStatus::Exited(code),
                (_, false, None, Some(signal)) => ProcessStatus::Signalled(signal),
                (_, _, None, _) => ProcessStatus::Killed,
            };
            Ok(ProcessEnd { status, cpu_time: Duration::ZERO, max_rss: 0, leftovers: false })
        })
    }

    fn kill(&mut self) {
        self.killed = true;
        self.kill_group();
    }

    fn resize(&mut self, _: u16, _: u16) -> Result<(), SpawnError> {
        Ok(())
    }

    fn denial(&self, _: &ProcessEnd, _: &[u8]) -> Option<Denial> {
        None
    }
}

impl Drop for OutsideProcess {
    fn drop(&mut self) {
        // Once it is over its id may be somebody else's.
        if !self.over {
            self.kill_group();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_in_the_childs_path_and_a_path_is_left_alone() {
        let env = |path: &str| vec![(OsString::from("PATH"), OsString::from(path))];
        let sh = in_path(OsStr::new("sh"), &env("/nowhere:relative:/bin:/usr/bin"));
        assert_eq!(sh.as_deref(), Some(Path::new("/bin/sh")));
        assert_eq!(in_path(OsStr::new("sh"), &env("/nowhere:bin")), None);
        assert_eq!(in_path(OsStr::new("sh"), &[]), None);
        for path in ["/bin/sh", "./sh", "dir/sh", "..", ""] {
            assert_eq!(in_path(OsStr::new(path), &env("/bin")), None, "{path}");
        }
        assert_eq!(in_path(OsStr::new("passwd"), &env("/etc")), None, "it is no program");
    }
}
