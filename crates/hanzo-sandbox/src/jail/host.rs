//! The host's side: starting a supervisor, giving it commands, waiting for them. Nothing here needs a runtime; an async host
//! polls [`JailedChild::exit_fd`] and the pipes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::child::{JailedChild, Output, report};
use super::config::{JailConfig, Limits, Protected};
use super::error::JailError;
use super::git::lexically_clean;
use super::ladder::{Facilities, Level, LimitMechanism, Missing};
use super::nursery::{self, Namespaces, Supervisor};
use super::orders::{Answer, Order, PtySize, Setup};
use super::rundir::RunDir;
use super::supervisor::{self, PATIENCE, Standing};
use super::wire;

/// A running jail. Dropping it kills every command in it.
#[derive(Debug)]
pub struct Jail {
    /// Commands are started one at a time: the answer to one must not be taken for another's.
    socket: Mutex<OwnedFd>,
    supervisor: Supervisor,
    /// Until the jail is dropped.
    run_dir: Option<RunDir>,
    setup: Setup,
    standing: Standing,
    missing: Vec<Missing>,
    config: JailConfig,
    /// Commands of which something may be alive.
    alive: Arc<AtomicUsize>,
}

/// What becomes of processes that outlive a command's main process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leftovers {
    /// They are killed; when the report arrives, nothing of the command is alive.
    #[default]
    Kill,
    /// They run on until they are killed through the [`JailedChild`], time out, or the jail ends.
    Keep,
}

/// Where a standard descriptor of a command leads.
#[derive(Debug, Default)]
pub enum Io {
    /// `/dev/null`.
    #[default]
    Null,
    /// A pipe whose other end is in the [`JailedChild`].
    Pipe,
    /// This descriptor.
    Fd(OwnedFd),
}

/// A command to run in a jail.
#[derive(Debug)]
pub struct Command {
    /// Program and arguments. The program is looked up in the command's `PATH`.
    pub argv: Vec<OsString>,
    /// The file to execute when it is not `argv[0]`.
    pub program: Option<PathBuf>,
    /// The working directory; the workspace when `None`.
    pub cwd: Option<PathBuf>,
    /// Variables on top of the jail's [`EnvPolicy`](super::EnvPolicy).
    pub env: Vec<(OsString, OsString)>,
    /// Standard input.
    pub stdin: Io,
    /// Standard output.
    pub stdout: Io,
    /// Standard error.
    pub stderr: Io,
    /// A terminal of this size for all three instead.
    pub pty: Option<PtySize>,
    /// Limits that differ from the jail's.
    pub limits: Limits,
    /// What becomes of background processes.
    pub leftovers: Leftovers,
}

impl Command {
    /// A command with piped output and no input.
    pub fn new(argv: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        Self {
            argv: argv.into_iter().map(|arg| arg.as_ref().to_owned()).collect(),
            program: None,
            cwd: None,
            env: Vec::new(),
            stdin: Io::Null,
            stdout: Io::Pipe,
            stderr: Io::Pipe,
            pty: None,
            limits: Limits::default(),
            leftovers: Leftovers::Kill,
        }
    }

    /// A line for `sh`.
    pub fn shell(line: impl AsRef<OsStr>) -> Self {
        Self::new([OsStr::new("sh"), OsStr::new("-c"), line.as_ref()])
    }

    /// Bounds the wall clock.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.limits.wall_clock = Some(timeout);
        self
    }
}

impl Jail {
    /// Starts a supervisor and builds the jail's walls, as high as this machine lets it.
    pub fn start(config: JailConfig) -> Result<Self, JailError> {
        let base = config.run_dir.clone();
        Self::start_in(config, || RunDir::create(base.as_deref()))
    }

    /// As [`start`](Self::start), in a directory that is made, or was, by `run_dir`.
    pub(super) fn start_in(
        config: JailConfig,
        run_dir: impl FnOnce() -> Result<RunDir, JailError>,
    ) -> Result<Self, JailError> {
        let namespaces = config.facilities.namespaces;
        let first = Launched::new(&config, namespaces)?; // starts while the rest is prepared
        let run_dir = run_dir()?;
        let mut setup = resolve(&config, &run_dir)?;
        let mut missing = Vec::new();
        match first.settle(&config, &setup, &run_dir) {
            Ok(started) => {
                if !namespaces {
                    missing.push(no_namespaces("switched off"));
                }
                return Self::finish(config, setup, run_dir, started, missing);
            }
            Err(JailError::Step { step, source }) if namespaces => {
                missing.push(no_namespaces(&format!("{step}: {source}")));
            }
            Err(error) => return Err(error),
        }
        setup.facilities.namespaces = false;
        let started = Launched::new(&config, false)?.settle(&config, &setup, &run_dir)?;
        Self::finish(config, setup, run_dir, started, missing)
    }

    fn finish(
        config: JailConfig,
        setup: Setup,
        run_dir: RunDir,
        started: Started,
        mut missing: Vec<Missing>,
    ) -> Result<Self, JailError> {
        let Started { supervisor, socket, standing } = started;
        missing.extend(gaps(standing, setup.facilities));
        let jail = Self {
            socket: Mutex::new(socket),
            supervisor,
            run_dir: Some(run_dir),
            setup,
            standing,
            missing,
            config,
            alive: Arc::default(),
        };
        let (reached, required) = (jail.level(), jail.config.require.max(Level::LandlockSeccomp));
        if reached < required {
            let hint = jail.missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            return Err(JailError::BelowRequired { required, reached, hint });
        }
        Ok(jail)
    }

    /// What the kernel enforces in this jail.
    pub fn level(&self) -> Level {
        let Standing { namespaces, landlock, seccomp, .. } = self.standing;
        match (namespaces, landlock > 0, seccomp) {
            (true, true, true) => Level::Full,
            (true, _, true) | (_, true, true) => Level::LandlockSeccomp,
            _ => Level::PathCheck,
        }
    }

    /// What this jail lacks.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Whether commands live in namespaces of their own.
    pub fn has_namespaces(&self) -> bool {
        self.standing.namespaces
    }

    /// What bounds the number of a command's processes.
    pub fn process_limit(&self) -> LimitMechanism {
        let bounded =
            self.standing.private_proc && self.setup.facilities.pid_max && pid_max_is_per_namespace();
        if bounded { LimitMechanism::PidNamespace } else { LimitMechanism::Counted }
    }

    /// The host's name for the directory that commands see as `/tmp`: built-in file tools use it for the same files.
    pub fn tmp_dir(&self) -> PathBuf {
        self.run_dir().tmp()
    }

    /// The directories commands may write, besides `/tmp`.
    pub fn writable(&self) -> &[PathBuf] {
        &self.setup.roots
    }

    /// The supervisor's process id.
    pub fn supervisor_pid(&self) -> u32 {
        self.supervisor.id()
    }

    /// Starts a command; returns when its program is running.
    pub fn spawn(&self, command: Command) -> Result<JailedChild, JailError> {
        let pair = || socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (socket, theirs) = pair().map_err(io::Error::from).map_err(JailError::io("make a socket"))?;
        let mut child = JailedChild {
            stdin: None,
            stdout: None,
            stderr: None,
            terminal: None,
            socket,
            report: None,
            network: self.config.network,
            writable: Arc::from(self.setup.roots.clone()),
            alive: Some(Arc::clone(&self.alive)),
        };
        let mut given = Vec::new();
        if command.pty.is_none() {
            let (theirs, ours) = plumb(command.stdin, Direction::In)?;
            given.push(theirs);
            child.stdin = ours;
            let (theirs, ours) = plumb(command.stdout, Direction::Out)?;
            given.push(theirs);
            child.stdout = ours;
            let (theirs, ours) = plumb(command.stderr, Direction::Out)?;
            given.push(theirs);
            child.stderr = ours;
        }
        let tmp = if self.standing.namespaces { Path::new("/tmp").to_path_buf() } else { self.tmp_dir() };
        let mut env = self.config.env.apply(std::env::vars_os(), &command.env);
        if !env.iter().any(|(name, _)| name == "TMPDIR") {
            env.push(("TMPDIR".into(), tmp.into_os_string()));
        }
        let program =
            command.argv.first().map(|first| first.to_string_lossy().into_owned()).unwrap_or_default();
        let order = Order {
            program: command.program,
            argv: command.argv,
            env,
            cwd: command.cwd.unwrap_or_else(|| self.config.workspace.clone()),
            limits: self.config.limits.overridden_by(&command.limits),
            keep_leftovers: command.leftovers == Leftovers::Keep,
            pty: command.pty,
        };
        let mut fds = vec![theirs.as_fd()];
        fds.extend(given.iter().map(AsFd::as_fd));
        self.alive.fetch_add(1, Ordering::Relaxed);
        {
            let supervisor = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
            wire::send(supervisor.as_fd(), &order.encode(), &fds).map_err(|_| JailError::SupervisorGone)?;
        }
        drop((theirs, given)); // or the end of the supervisor, and of the output, would go unseen
        loop {
            match child.receive()? {
                (Answer::Master, mut fds) => child.terminal = fds.pop(),
                (Answer::Started, _) => return Ok(child),
                (Answer::Failed { errno, exec: true, .. }, _) => {
                    child.count_out();
                    return Err(JailError::Exec { program, source: io::Error::from_raw_os_error(errno) });
                }
                (Answer::Failed { step, errno, .. }, _) => {
                    child.count_out();
                    return Err(JailError::Step { step, source: io::Error::from_raw_os_error(errno) });
                }
                (Answer::Ended(ending), _) => {
                    child.over(report(&ending)); // killed before it ran
                    return Ok(child);
                }
            }
        }
    }

    /// Runs a command to its end and keeps the first `head` and last `tail` bytes of each stream.
    pub fn run(&self, command: Command, head: usize, tail: usize) -> Result<Output, JailError> {
        self.spawn(command)?.wait_with_output(head, tail)
    }

    /// Kills every command. The jail stays.
    pub fn kill_all(&mut self) -> Result<(), JailError> {
        let fresh = Launched::new(&self.config, self.setup.facilities.namespaces)?;
        let fresh = fresh.settle(&self.config, &self.setup, self.run_dir())?;
        self.dismiss();
        self.supervisor.wait();
        self.supervisor = fresh.supervisor;
        *self.socket.get_mut().unwrap_or_else(PoisonError::into_inner) = fresh.socket;
        self.standing = fresh.standing;
        Ok(())
    }

    /// Ends the supervisor: it kills, waits and tidies when its socket closes. If it cannot, the kernel does the first two.
    /// Its own end of the socket closes when that is done; the kernel then takes a while to free the namespaces.
    fn dismiss(&mut self) {
        let socket = self.socket.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = rustix::net::shutdown(&*socket, rustix::net::Shutdown::Write);
        if !readable(socket.as_fd(), PATIENCE) {
            self.supervisor.kill();
        }
    }

    fn run_dir(&self) -> &RunDir {
        self.run_dir.as_ref().expect("only the destructor takes it")
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        let socket = self.socket.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = rustix::net::shutdown(&*socket, rustix::net::Shutdown::Write);
        if self.alive.load(Ordering::Relaxed) == 0 {
            // Every command has been reported dead, so there is nothing to wait for: the supervisor ends by itself, and what
            // the kernel takes to free its namespaces (half a millisecond) need not be our caller's time.
            self.run_dir = None;
            return;
        }
        self.run_dir().empty_tmp(); // while the supervisor ends; what dying commands add is removed below
        self.dismiss();
        self.run_dir = None;
        self.supervisor.wait();
    }
}

pub(super) fn readable(fd: BorrowedFd<'_>, patience: Duration) -> bool {
    let limit = Timespec { tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX), tv_nsec: 0 };
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    loop {
        match poll(&mut fds, Some(&limit)) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.is_ok_and(|ready| ready > 0),
        }
    }
}

fn resolve(config: &JailConfig, run_dir: &RunDir) -> Result<Setup, JailError> {
    let mut roots: Vec<PathBuf> = Vec::new();
    for path in std::iter::once(&config.workspace).chain(&config.writable) {
        let bad =
            |reason: String| JailError::BadPath { path: path.clone(), role: "a writable directory", reason };
        let path = path.canonicalize().map_err(|error| bad(error.to_string()))?;
        if path == Path::new("/") || ["/proc", "/sys", "/dev"].iter().any(|system| path.starts_with(system)) {
            return Err(bad("a jail that can write the system itself is none".into()));
        }
        if !roots.contains(&path) {
            roots.push(path);
        }
    }
    let absolute = |path: &Path| lexically_clean(&config.workspace.join(path));
    let mut unreadable: Vec<PathBuf> = config.unreadable.iter().map(|path| absolute(path)).collect();
    unreadable.push(run_dir.base().to_path_buf());
    let mut protected: Vec<Protected> = config
        .protected
        .iter()
        .map(|protected| Protected {
            path: absolute(&protected.path),
            placeholder: protected.placeholder.clone(),
        })
        .collect();
    // What may not be read may not be planted either: `~/.ssh/config` runs programs.
    let planted =
        unreadable.iter().filter(|path| roots.iter().any(|root| path.starts_with(root) && *path != root));
    protected.extend(planted.map(Protected::new));
    Ok(Setup {
        roots,
        protected,
        unreadable,
        network: config.network,
        unix_sockets: config.unix_sockets,
        facilities: config.facilities,
        proc_is_covered: proc_has_mounts(),
        cores: config.cores,
        tmp: run_dir.tmp(),
    })
}

/// A supervisor that has been started and not yet been told what to build. Dropping it ends it.
struct Launched {
    socket: OwnedFd,
}

impl Launched {
    fn new(config: &JailConfig, namespaces: bool) -> Result<Self, JailError> {
        let namespaces = if namespaces { Namespaces::All(config.network) } else { Namespaces::None };
        let socket = nursery::order(&config.host_binary, namespaces)
            .map_err(|source| JailError::Supervisor { binary: config.host_binary.clone(), source })?;
        Ok(Self { socket })
    }

    /// Hands over the setup and waits for the walls to stand.
    fn settle(self, config: &JailConfig, setup: &Setup, run_dir: &RunDir) -> Result<Started, JailError> {
        let failed = |source: io::Error| JailError::Supervisor { binary: config.host_binary.clone(), source };
        let silent = || failed(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended without a word"));
        let socket = self.socket.as_fd();
        let supervisor = match Supervisor::meet(socket, PATIENCE) {
            Ok(Some(supervisor)) => supervisor,
            nobody => {
                nursery::give_up(&config.host_binary);
                return Err(nobody.map_or_else(failed, |_| silent()));
            }
        };
        let record = File::options().create(true).append(true).open(run_dir.record()).map_err(failed)?;
        wire::send(socket, &setup.encode(), &[run_dir.lock.as_fd(), record.as_fd()]).map_err(failed)?;
        if !readable(socket, PATIENCE) {
            supervisor.kill();
            return Err(failed(io::ErrorKind::TimedOut.into()));
        }
        let (message, _) = wire::receive(socket).map_err(failed)?.ok_or_else(silent)?;
        let standing = supervisor::decode_ready(&message)
            .map_err(failed)?
            .map_err(|error| JailError::Step { step: error.step, source: error.source })?;
        Ok(Started { supervisor, socket: self.socket, standing })
    }
}

/// A supervisor that is ready for commands.
struct Started {
    supervisor: Supervisor,
    socket: OwnedFd,
    standing: Standing,
}

fn no_namespaces(why: &str) -> Missing {
    Missing {
        facility: "user namespaces",
        why: why.to_owned(),
        how_to_get_it: "set user.max_user_namespaces above 0 and, where they exist, kernel.unprivileged_userns_clone=1 \
                        and kernel.apparmor_restrict_unprivileged_userns=0; in a container allow `unshare` and `mount`",
    }
}

fn gaps(standing: Standing, facilities: Facilities) -> Vec<Missing> {
    let mut out = Vec::new();
    let mut add = |facility, why: &str, how_to_get_it| {
        out.push(Missing { facility, why: why.to_owned(), how_to_get_it });
    };
    if standing.landlock == 0 {
        let why = if facilities.landlock { "this kernel has none" } else { "switched off" };
        add("Landlock", why, "Linux 5.13 with `landlock` in the `lsm=` boot parameter");
    } else if standing.landlock < 6 && !standing.namespaces {
        add("Landlock scopes", "signals and abstract sockets are not confined", "Linux 6.12");
    }
    if !standing.seccomp {
        add("seccomp", "switched off", "allow system-call filters");
    }
    if standing.namespaces && !standing.private_proc {
        let why = "the kernel refuses a fresh `/proc`, so names of other processes can be seen";
        add("private /proc", why, "start the container without masked paths in /proc");
    }
    if !standing.namespaces {
        let why = "commands can change modes, times and attributes of the user's own files outside, write protected \
                   paths, see other processes and have no loopback network; background processes \
                   are killed as well as can be";
        add("what namespaces give", why, "see user namespaces");
    }
    out
}

/// A container that hides parts of `/proc` does it with mounts on it. Reading the list is cheaper than a trial.
fn proc_has_mounts() -> bool {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.is_empty()
        || text.lines().any(|line| line.split(' ').nth(4).is_some_and(|at| at.starts_with("/proc/")))
}

/// Linux 6.14 gave each pid namespace its own bound.
fn pid_max_is_per_namespace() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map(|part| part.trim().parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 14)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

fn plumb(io: Io, direction: Direction) -> Result<(OwnedFd, Option<OwnedFd>), JailError> {
    match io {
        Io::Fd(fd) => Ok((fd, None)),
        Io::Null => {
            let file = File::options()
                .read(direction == Direction::In)
                .write(direction == Direction::Out)
                .open("/dev/null");
            Ok((file.map_err(JailError::io("open `/dev/null`"))?.into(), None))
        }
        Io::Pipe => {
            let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                .map_err(io::Error::from)
                .map_err(JailError::io("make a pipe"))?;
            Ok(if direction == Direction::In { (read, Some(write)) } else { (write, Some(read)) })
        }
    }
}
