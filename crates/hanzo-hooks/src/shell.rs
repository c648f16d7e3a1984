//! Starts hooks with nothing but the standard library: no runtime, no sandbox.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::BoxFuture;
use crate::spawner::{HookOutput, HookRun, HookSpawner, StartError};

/// The variables of this process that hooks get as well. Keys and tokens are usually in others.
const PASSED_ON: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "TZ"];

/// Runs hooks with `/bin/sh`, each in a process group of its own, on a thread of its own.
///
/// Whatever is left of the group is killed at the time limit, at the end of the command and when the future is dropped. A
/// process that leaves the group on purpose (`setsid`) is not found again; the hook does not wait for it either. Where that
/// matters, pass a [`HookSpawner`] that confines processes. Only Unix has this shell; elsewhere no hook starts.
#[derive(Debug, Clone, Default)]
pub struct Shell {
    directory: Option<PathBuf>,
    env: Vec<(OsString, OsString)>,
}

impl Shell {
    /// In the current directory, with a handful of harmless variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, in `directory`.
    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// The same, with one more variable.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }
}

impl HookSpawner for Shell {
    #[cfg(unix)]
    fn run(&self, run: HookRun) -> BoxFuture<'_, Result<HookOutput, StartError>> {
        Box::pin(unix::Watched::begin(self, run))
    }

    #[cfg(not(unix))]
    fn run(&self, _: HookRun) -> BoxFuture<'_, Result<HookOutput, StartError>> {
        Box::pin(async {
            Err(StartError { reason: "hooks need a POSIX shell, which this system does not have".to_owned() })
        })
    }
}

#[cfg(unix)]
mod unix {
    use std::io::{self, Read, Write};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::pin::Pin;
    use std::process::{Child, Command, ExitStatus, Stdio};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::task::{Context, Poll, Waker};
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

    use super::{PASSED_ON, Shell};
    use crate::spawner::{Captured, HookEnd, HookOutput, HookRun, StartError};

    /// How often the thread looks whether the command is over, where nothing else tells it. A command normally closes its
    /// outputs when it ends, which is noticed at once.
    const GLANCE: Duration = Duration::from_millis(10);

    /// The longest a hook may take, whatever it was given: far beyond use, and a number that clocks can add.
    const LONGEST: Duration = Duration::from_hours(24);

    type Ended = Result<HookOutput, StartError>;

    /// What the thread and the future share.
    #[derive(Default)]
    struct Shared {
        ended: Option<Ended>,
        waker: Option<Waker>,
        abandoned: bool,
    }

    /// A command that runs on a thread.
    pub(super) struct Watched(Arc<Mutex<Shared>>);

    impl Watched {
        pub(super) fn begin(shell: &Shell, run: HookRun) -> Self {
            let shared = Arc::new(Mutex::new(Shared::default()));
            let theirs = Arc::clone(&shared);
            let shell = shell.clone();
            let thread = std::thread::Builder::new().name("hook".to_owned()).spawn(move || {
                let ended = see_through(&shell, run, &theirs).map_err(start_error);
                let mut shared = lock(&theirs);
                shared.ended = Some(ended);
                if let Some(waker) = shared.waker.take() {
                    waker.wake();
                }
            });
            if let Err(error) = thread {
                lock(&shared).ended = Some(Err(start_error(error)));
            }
            Self(shared)
        }
    }

    impl Future for Watched {
        type Output = Ended;

        fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ended> {
            let mut shared = lock(&self.0);
            if let Some(ended) = shared.ended.take() {
                return Poll::Ready(ended);
            }
            shared.waker = Some(context.waker().clone());
            Poll::Pending
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            lock(&self.0).abandoned = true;
        }
    }

    fn lock(shared: &Mutex<Shared>) -> std::sync::MutexGuard<'_, Shared> {
        shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
    fn start_error(error: io::Error) -> StartError {
        StartError { reason: error.to_string() }
    }

    /// A child whose whole group dies with this value.
    struct Group(Child);

    /// Who ended a command.
    enum Ending {
        Own,
        Ours,
    }

    impl Group {
        /// Whether the command has ended. It is not yet collected, so that its number still means its group.
        fn is_over(&self) -> io::Result<bool> {
            let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) else { return Ok(true) };
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            Ok(waitid(WaitId::Pid(pid), options)?.is_some())
        }

        fn kill(&self) {
            if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            // Once it was collected its number may be somebody else's.
            if !matches!(self.0.try_wait(), Ok(Some(_))) {
                self.kill();
                let _ = self.0.wait();
            }
        }
    }

    fn see_through(shell: &Shell, run: HookRun, shared: &Mutex<Shared>) -> io::Result<HookOutput> {
        let deadline = Instant::now() + run.timeout.min(LONGEST);
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(&run.command).env_clear();
        command.envs(PASSED_ON.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
        command.envs(shell.env.iter().map(|(name, value)| (name, value))).envs(run.env);
        if let Some(directory) = &shell.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut group = Group(command.spawn()?);
        let mut stdin = group.0.stdin.take();
        let (mut stdout, mut stderr) = (group.0.stdout.take(), group.0.stderr.take());
        for end in [stdin.as_ref().map(AsFd::as_fd), stdout.as_ref().map(AsFd::as_fd)] {
            end.map(no_waiting).transpose()?;
        }
        stderr.as_ref().map(|end| no_waiting(end.as_fd())).transpose()?;

        let (mut kept_out, mut kept_err) = (Captured::default(), Captured::default());
        let mut unwritten = run.stdin.as_slice();
        let ending = loop {
            if unwritten.is_empty() {
                stdin = None;
            }
            if group.is_over()? {
                break Ending::Own;
            }
            let now = Instant::now();
            if now >= deadline || lock(shared).abandoned {
                break Ending::Ours;
            }
            wait_for_any(
                [
                    stdin.as_ref().map(|end| (end.as_fd(), PollFlags::OUT)),
                    stdout.as_ref().map(|end| (end.as_fd(), PollFlags::IN)),
                    stderr.as_ref().map(|end| (end.as_fd(), PollFlags::IN)),
                ],
                GLANCE.min(deadline - now),
                // Both outputs are closed: the end is a moment away.
                stdout.is_none() && stderr.is_none(),
            )?;
            if let Some(end) = &mut stdin {
                match end.write(unwritten) {
                    Ok(written) => unwritten = &unwritten[written..],
                    Err(error) if is_later(&error) => {}
                    // It does not want to read, or not all: its business.
                    Err(_) => unwritten = &[],
                }
            }
            drain(&mut stdout, &mut kept_out, run.most_output);
            drain(&mut stderr, &mut kept_err, run.most_output);
        };
        // Whatever it left running goes now; then what it had written is all there is.
        group.kill();
        drain(&mut stdout, &mut kept_out, run.most_output);
        drain(&mut stderr, &mut kept_err, run.most_output);
        let status = group.0.wait()?;
        let end = match ending {
            Ending::Own => end_of(status),
            Ending::Ours => HookEnd::TimedOut,
        };
        Ok(HookOutput { end, stdout: kept_out, stderr: kept_err })
    }

    fn no_waiting(end: BorrowedFd<'_>) -> io::Result<()> {
        let flags = rustix::fs::fcntl_getfl(end)?;
        Ok(rustix::fs::fcntl_setfl(end, flags | rustix::fs::OFlags::NONBLOCK)?)
    }

    fn wait_for_any(
        ends: [Option<(BorrowedFd<'_>, PollFlags)>; 3],
        at_most: Duration,
        ending: bool,
    ) -> io::Result<()> {
        if ending {
            std::thread::sleep(at_most.min(Duration::from_micros(200)));
            return Ok(());
        }
        let mut ends: Vec<PollFd<'_>> =
            ends.into_iter().flatten().map(|(end, flags)| PollFd::from_borrowed_fd(end, flags)).collect();
        let at_most = Timespec::try_from(at_most).map_err(io::Error::other)?;
        match poll(&mut ends, Some(&at_most)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what is there, within reason: a flood must not keep us from looking at the clock.
    fn drain<R: Read>(end: &mut Option<R>, kept: &mut Captured, most: usize) {
        let mut buffer = [0; 16 * 1024];
        for _ in 0..64 {
            let Some(open) = end else { return };
            match open.read(&mut buffer) {
                Ok(0) => *end = None,
                Ok(length) => kept.push(&buffer[..length], most),
                Err(error) if is_later(&error) => return,
                Err(_) => *end = None,
            }
        }
    }

    fn is_later(error: &io::Error) -> bool {
        matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
    }

    fn end_of(status: ExitStatus) -> HookEnd {
        match (status.code(), status.signal()) {
            (Some(code), _) => HookEnd::Exited(code),
            (None, Some(signal)) => HookEnd::Signalled(signal),
            (None, None) => HookEnd::Exited(-1),
        }
    }
}
