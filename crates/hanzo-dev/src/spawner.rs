//! The [`Spawner`] everything that runs a program is given: processes in a jail.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use hanzo_protocol::BoxFuture;
use hanzo_protocol::spawn::{
    Confinement, Denial, Leftovers, Process, ProcessEnd, ProcessStatus, ProcessStreams, SpawnError,
    SpawnRequest, Spawner, Stdin, Streams,
};
use hanzo_sandbox::Network;
use hanzo_sandbox::jail::{
    self, Command, DenialKind, ExitReport, ExitStatus, Io, Jail, JailConfig, JailError, JailSite,
    JailedChild, Limit, PtySize, Waiter,
};
use tokio::net::unix::pipe;

/// Starts processes in one jail: they share its loopback and its `/tmp`, and end with it.
pub struct JailSpawner {
    jail: Jail,
    network: Network,
}

impl JailSpawner {
    /// Builds the jail.
    pub fn start(config: JailConfig) -> Result<Self, SpawnError> {
        let network = config.network;
        Ok(Self { jail: Jail::start(config).map_err(spawn_error)?, network })
    }

    /// Builds the jail at a place that was made before.
    pub fn build(site: JailSite) -> Result<Self, SpawnError> {
        let network = site.config().network;
        Ok(Self { jail: site.build().map_err(spawn_error)?, network })
    }

    fn start_process(&self, request: SpawnRequest) -> Result<JailProcess, SpawnError> {
        let mut command = Command::new(request.argv);
        command.cwd = request.cwd;
        command.env = request.env;
        command.limits.wall_clock = request.timeout;
        command.leftovers = match request.leftovers {
            Leftovers::Kill => jail::Leftovers::Kill,
            Leftovers::Keep => jail::Leftovers::Keep,
        };
        match request.streams {
            Streams::Pipes { stdin: Stdin::Empty } => {}
            Streams::Pipes { stdin: Stdin::Pipe } => command.stdin = Io::Pipe,
            Streams::Terminal { rows, columns } => command.pty = Some(PtySize { rows, columns }),
        }
        let mut child = self.jail.spawn(command).map_err(spawn_error)?;
        let file = |end: Option<OwnedFd>| end.map(File::from);
        let streams = ProcessStreams {
            stdin: file(child.stdin.take()),
            stdout: file(child.stdout.take()),
            stderr: file(child.stderr.take()),
            terminal: child.terminal.as_ref().and_then(|end| end.try_clone().ok()).map(File::from),
        };
        Ok(JailProcess { child, streams, watch: None })
    }
}

impl Spawner for JailSpawner {
    fn confinement(&self) -> Confinement {
        Confinement {
            level: self.jail.level().to_string(),
            writable: self.jail.writable().to_vec(),
            network: self.network == Network::On,
            tmp: Some(self.jail.tmp_dir()),
        }
    }

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'_, Result<Box<dyn Process>, SpawnError>> {
        // Starting takes about a millisecond, less than handing it to another thread is worth.
        Box::pin(async move { Ok(Box::new(self.start_process(request)?) as Box<dyn Process>) })
    }
}

struct JailProcess {
    child: JailedChild,
    streams: ProcessStreams,
    /// Made by the first wait and kept: whoever watches several things at once waits again and again.
    watch: Option<Watch>,
}

/// Knows when a process is over.
enum Watch {
    /// The runtime listens to the process's socket. It is no pipe, but it is never read through this: the runtime only has
    /// to tell that there is something.
    Runtime(pipe::Receiver),
    /// Where there is no runtime, a thread sleeps on the descriptor.
    Thread(Signal),
}

impl Watch {
    fn new(child: &JailedChild) -> Result<Self, SpawnError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return child.waiter().map(|waiter| Self::Thread(Signal::when(waiter))).map_err(spawn_error);
        }
        let socket = child.exit_fd().try_clone_to_owned();
        let listener = socket.and_then(pipe::Receiver::from_owned_fd_unchecked);
        listener.map(Self::Runtime).map_err(|error| SpawnError::Confinement(error.to_string()))
    }

    async fn over(&self) -> Result<(), SpawnError> {
        match self {
            Self::Runtime(socket) => {
                socket.readable().await.map_err(|error| SpawnError::Confinement(error.to_string()))
            }
            Self::Thread(signal) => {
                signal.clone().await;
                Ok(())
            }
        }
    }
}

impl Process for JailProcess {
    fn streams(&mut self) -> &mut ProcessStreams {
        &mut self.streams
    }

    fn wait(&mut self) -> BoxFuture<'_, Result<ProcessEnd, SpawnError>> {
        Box::pin(async move {
            if self.child.try_wait().map_err(spawn_error)?.is_none() {
                let watch = match self.watch.take() {
                    Some(watch) => watch,
                    None => Watch::new(&self.child)?,
                };
                self.watch.insert(watch).over().await?;
            }
            self.child.wait().map(|report| process_end(&report)).map_err(spawn_error)
        })
    }

    fn kill(&mut self) {
        self.child.kill();
    }

    fn signal(&mut self, signal: i32) -> Result<(), SpawnError> {
        match u8::try_from(signal) {
            Ok(number @ 1..=31) => {
                self.child.signal(number);
                Ok(())
            }
            _ => Err(SpawnError::Unsupported(format!("sending signal {signal}"))),
        }
    }

    fn resize(&mut self, rows: u16, columns: u16) -> Result<(), SpawnError> {
        self.child.resize(PtySize { rows, columns }).map_err(spawn_error)
    }

    fn denial(&self, end: &ProcessEnd, stderr_tail: &[u8]) -> Option<Denial> {
        let status = match end.status {
            ProcessStatus::Exited(code) => ExitStatus::Exited(code),
            ProcessStatus::Signalled(signal) => ExitStatus::Signalled(signal),
            // What we ended ourselves was not ended by a wall.
            _ => return None,
        };
        let denial = self.child.guess_denial(status, stderr_tail)?;
        let what = match denial.kind {
            DenialKind::Write(Some(path)) => format!("write to {}", path.display()),
            DenialKind::Write(None) => "write".to_owned(),
            DenialKind::Network => "network".to_owned(),
            _ => "operation".to_owned(),
        };
        Some(Denial { what, evidence: denial.evidence })
    }
}

fn process_end(report: &ExitReport) -> ProcessEnd {
    let status = match report.status {
        ExitStatus::Exited(code) => ProcessStatus::Exited(code),
        ExitStatus::Signalled(signal) => ProcessStatus::Signalled(signal),
        ExitStatus::TimedOut => ProcessStatus::TimedOut,
        ExitStatus::LimitReached(limit) => ProcessStatus::LimitReached(limit_name(limit).to_owned()),
        _ => ProcessStatus::Killed,
    };
    ProcessEnd { status, cpu_time: report.cpu_time, max_rss: report.max_rss, leftovers: report.leftovers }
}

/// What a limit is called on screen.
pub fn limit_name(limit: Limit) -> &'static str {
    match limit {
        Limit::CpuTime => "processor time",
        Limit::FileSize => "the size of a file",
        Limit::Memory => "memory",
        Limit::Processes => "processes",
    }
}

fn spawn_error(error: JailError) -> SpawnError {
    match error {
        JailError::Exec { program, source } => SpawnError::Program { program, reason: source.to_string() },
        other => SpawnError::Confinement(other.to_string()),
    }
}

/// A future that is done when a process is, on any runtime: a thread sleeps on the process's descriptor and wakes it.
#[derive(Clone, Default)]
struct Signal(Arc<Mutex<SignalState>>);

#[derive(Default)]
struct SignalState {
    done: bool,
    waker: Option<Waker>,
}

impl Signal {
    fn when(waiter: Waiter) -> Self {
        let signal = Self::default();
        let theirs = signal.clone();
        std::thread::spawn(move || {
            waiter.block();
            theirs.set();
        });
        signal
    }

    fn set(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.done = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl Future for Signal {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.done {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
