//! A command in a jail, as its caller holds it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::termios::Winsize;

use super::config::Network;
use super::drain::{Drained, drain_bounded};
use super::error::JailError;
use super::host::readable;
use super::orders::{Answer, EndKind, Ending, PtySize};
use super::report::{Denial, ExitReport, ExitStatus, Limit};
use super::wire;

/// What the caller is told about an ending.
pub(super) fn report(ending: &Ending) -> ExitReport {
    let by_status = |status: i32| match status {
        256.. => match status - 256 {
            libc::SIGXCPU => ExitStatus::LimitReached(Limit::CpuTime),
            libc::SIGXFSZ => ExitStatus::LimitReached(Limit::FileSize),
            signal => ExitStatus::Signalled(signal),
        },
        // What a shell makes of the same two signals.
        status if status == 128 + libc::SIGXCPU => ExitStatus::LimitReached(Limit::CpuTime),
        status if status == 128 + libc::SIGXFSZ => ExitStatus::LimitReached(Limit::FileSize),
        status => ExitStatus::Exited(status),
    };
    let status = match ending.kind {
        EndKind::Own => by_status(ending.status),
        EndKind::Timeout => ExitStatus::TimedOut,
        EndKind::Killed => ExitStatus::Killed,
        EndKind::Memory => ExitStatus::LimitReached(Limit::Memory),
        EndKind::Processes => ExitStatus::LimitReached(Limit::Processes),
    };
    ExitReport {
        status,
        cpu_time: ending.cpu,
        max_rss: ending.max_rss,
        leftovers: ending.leftovers,
        denial: None,
    }
}

/// A command that was started. Dropping it kills what is left of it, unless it is over and was told to keep leftovers.
#[derive(Debug)]
pub struct JailedChild {
    /// The write end of standard input, when it is a pipe.
    pub stdin: Option<OwnedFd>,
    /// The read end of standard output, when it is a pipe.
    pub stdout: Option<OwnedFd>,
    /// The read end of standard error, when it is a pipe.
    pub stderr: Option<OwnedFd>,
    /// The terminal's other end, when it has one.
    pub terminal: Option<OwnedFd>,
    pub(super) socket: OwnedFd,
    pub(super) report: Option<ExitReport>,
    pub(super) network: Network,
    pub(super) writable: Arc<[PathBuf]>,
    /// The jail's count of living commands, until this one is known to be dead.
    pub(super) alive: Option<Arc<AtomicUsize>>,
}

/// What a command left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// How it ended; `denial` is filled in from `stderr`.
    pub report: ExitReport,
    /// Standard output (or the terminal's).
    pub stdout: Drained,
    /// Standard error.
    pub stderr: Drained,
}

impl JailedChild {
    /// Readable when the command is over; then [`try_wait`](Self::try_wait) has the report.
    pub fn exit_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Keeps the report. What was left running still counts as alive.
    pub(super) fn over(&mut self, report: ExitReport) {
        if !report.leftovers {
            self.count_out();
        }
        self.report = Some(report);
    }

    /// Nothing of the command is alive.
    pub(super) fn count_out(&mut self) {
        if let Some(alive) = self.alive.take() {
            alive.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(super) fn receive(&mut self) -> Result<(Answer, Vec<OwnedFd>), JailError> {
        let received =
            wire::receive(self.socket.as_fd()).map_err(JailError::io("hear from the supervisor"))?;
        let (message, fds) = received.ok_or(JailError::SupervisorGone)?;
        let answer = Answer::decode(&message).map_err(JailError::io("understand the supervisor"))?;
        Ok((answer, fds))
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> Result<ExitReport, JailError> {
        loop {
            if let Some(report) = &self.report {
                return Ok(report.clone());
            }
            match self.receive() {
                Ok((Answer::Ended(ending), _)) => self.over(report(&ending)),
                Ok(_) => {}
                Err(JailError::SupervisorGone) => {
                    self.report = Some(ExitReport {
                        status: ExitStatus::SupervisorLost,
                        cpu_time: Duration::ZERO,
                        max_rss: 0,
                        leftovers: false,
                        denial: None,
                    });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The report, if the command is over.
    pub fn try_wait(&mut self) -> Result<Option<ExitReport>, JailError> {
        if self.report.is_some() || readable(self.socket.as_fd(), Duration::ZERO) {
            return self.wait().map(Some);
        }
        Ok(None)
    }

    /// Kills the command and everything it started. [`wait`](Self::wait) returns when all of it is dead.
    pub fn kill(&mut self) {
        let _ = rustix::net::send(&self.socket, b"kill", rustix::net::SendFlags::NOSIGNAL);
    }

    /// Sends a signal to the command and everything it started, which are free to ignore it. Numbers from 1 to 31.
    pub fn signal(&mut self, signal: u8) {
        let _ = rustix::net::send(&self.socket, &[0, signal], rustix::net::SendFlags::NOSIGNAL);
    }

    /// Tells a terminal its new size; does nothing without one.
    pub fn resize(&self, size: PtySize) -> Result<(), JailError> {
        let Some(terminal) = &self.terminal else { return Ok(()) };
        let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(terminal, size)
            .map_err(io::Error::from)
            .map_err(JailError::io("resize the terminal"))
    }

    /// Waits for the end while keeping the first `head` and last `tail` bytes of each stream.
    pub fn wait_with_output(mut self, head: usize, tail: usize) -> Result<Output, JailError> {
        self.stdin = None;
        let (first, second) = (self.stdout.take().or(self.terminal.take()), self.stderr.take());
        let drain = |fd: Option<OwnedFd>| {
            fd.map_or_else(|| Ok(Drained::default()), |fd| drain_bounded(File::from(fd), head, tail))
        };
        let (stdout, stderr) = thread::scope(|scope| {
            let other = scope.spawn(|| drain(second));
            let stdout = drain(first);
            (stdout, other.join().unwrap_or_else(|_| Ok(Drained::default())))
        });
        let stdout = stdout.map_err(JailError::io("read the output"))?;
        let stderr = stderr.map_err(JailError::io("read the output"))?;
        let mut report = self.wait()?;
        report.denial = self.guess_denial(report.status, &[stderr.head.as_slice(), &stderr.tail].concat());
        Ok(Output { report, stdout, stderr })
    }

    /// The guess for a caller that reads the output itself; see [`Denial::guess`].
    pub fn guess_denial(&self, status: ExitStatus, stderr_tail: &[u8]) -> Option<Denial> {
        Denial::guess(status, stderr_tail, self.network, &self.writable)
    }

    /// Something another thread can sleep on until the command is over, without taking the report.
    pub fn waiter(&self) -> Result<Waiter, JailError> {
        self.socket.try_clone().map(Waiter).map_err(JailError::io("copy a descriptor"))
    }
}

/// Knows when a command is over; see [`JailedChild::waiter`].
#[derive(Debug)]
pub struct Waiter(OwnedFd);

impl Waiter {
    /// Sleeps until the command is over or its supervisor is gone.
    pub fn block(&self) {
        while !readable(self.0.as_fd(), Duration::from_hours(1)) {}
    }
}
