//! Where supervisors come from: one process per host, made by running the host's binary once, that forks a supervisor
//! whenever a jail is wanted. Starting a program costs more than all the walls of a jail together (relocation, and on a
//! virtual machine the processor questions that the C library asks), so it is done once.
//!
//! The nursery holds nothing: no variable of the host, no descriptor but its socket, no directory, no terminal. What it
//! forks is therefore as clean as a program just started. A supervisor is its child only for the kernel, which takes the
//! status of each by itself; it watches the host's life, not the nursery's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::config::Network;
use super::host::readable;
use super::sys::{self, Forked};
use super::wire::{Reader, Writer};
use super::{SUPERVISOR, supervisor, wire};

/// What a supervisor makes at once, while the host still prepares the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Namespaces {
    /// None: the machine has none, or they are switched off.
    None,
    /// All, and a network of its own if commands have none.
    All(Network),
}

impl Namespaces {
    fn number(self) -> u64 {
        match self {
            Self::None => 0,
            Self::All(Network::Off) => 1,
            Self::All(Network::On) => 2,
        }
    }

    fn from_number(number: u64) -> io::Result<Self> {
        match number {
            0 => Ok(Self::None),
            1 => Ok(Self::All(Network::Off)),
            2 => Ok(Self::All(Network::On)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// A supervisor as its host holds it.
#[derive(Debug)]
pub(crate) struct Supervisor {
    pid: u32,
    pidfd: OwnedFd,
}

impl Supervisor {
    /// Its first message.
    fn announce(socket: BorrowedFd<'_>) -> io::Result<()> {
        let own = rustix::process::getpid();
        let pidfd = pidfd_open(own, PidfdFlags::empty())?;
        let pid = u64::try_from(own.as_raw_pid()).unwrap_or(0);
        wire::send(socket, &Writer::default().number(0).number(pid).finish(), &[pidfd.as_fd()])
    }

    /// Waits for the first message on a jail's socket; `None` if there will not be one.
    pub(crate) fn meet(socket: BorrowedFd<'_>, patience: Duration) -> io::Result<Option<Self>> {
        if !readable(socket, patience) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let Some((message, mut fds)) = wire::receive(socket)? else { return Ok(None) };
        let mut reader = Reader::new(&message);
        if reader.number()? != 0 {
            return Err(io::Error::from_raw_os_error(reader.signed()?));
        }
        let pid = u32::try_from(reader.signed()?).unwrap_or(0);
        Ok(fds.pop().map(|pidfd| Self { pid, pidfd }))
    }

    pub(crate) fn id(&self) -> u32 {
        self.pid
    }

    pub(crate) fn kill(&self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Waits for its end.
    pub(crate) fn wait(&self) {
        while !readable(self.pidfd.as_fd(), Duration::from_hours(1)) {}
    }
}

/// The host's handle on a nursery.
struct Nursery {
    of: Origin,
    process: Child,
    socket: OwnedFd,
}

/// What a nursery passes on to its supervisors, so that another one is needed when it differs.
#[derive(PartialEq, Eq)]
struct Origin {
    binary: PathBuf,
    /// A host that was forked itself has to be watched as the process it is.
    host: u32,
    user: u32,
    group: u32,
}

impl Origin {
    fn new(binary: &Path) -> Self {
        Self {
            binary: binary.to_path_buf(),
            host: std::process::id(),
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
        }
    }
}

/// One for the process, hardly ever two.
static NURSERIES: Mutex<Vec<Nursery>> = Mutex::new(Vec::new());

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

impl Nursery {
    fn start(of: Origin) -> io::Result<Self> {
        let (socket, theirs) = pair()?;
        let process = std::process::Command::new(&of.binary)
            .arg0(SUPERVISOR)
            .env_clear()
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { of, process, socket })
    }

    fn order(&self, namespaces: Namespaces, socket: &OwnedFd) -> io::Result<()> {
        let message = Writer::default().number(namespaces.number()).finish();
        wire::send(self.socket.as_fd(), &message, &[socket.as_fd()])
    }
}

/// Orders a supervisor and returns the socket to it, on which it will announce itself.
pub(crate) fn order(binary: &Path, namespaces: Namespaces) -> io::Result<OwnedFd> {
    let (socket, theirs) = pair()?;
    let origin = Origin::new(binary);
    let mut nurseries = NURSERIES.lock().unwrap_or_else(PoisonError::into_inner);
    nurseries.retain_mut(|nursery| matches!(nursery.process.try_wait(), Ok(None)));
    if let Some(nursery) = nurseries.iter().find(|nursery| nursery.of == origin)
        && nursery.order(namespaces, &theirs).is_ok()
    {
        return Ok(socket);
    }
    let nursery = Nursery::start(origin)?;
    // A program that is no host of jails may have ended already; then the silence on `socket` tells.
    let _ = nursery.order(namespaces, &theirs);
    nurseries.push(nursery);
    Ok(socket)
}

/// Ends the nursery of a binary from which no supervisor came.
pub(crate) fn give_up(binary: &Path) {
    let origin = Origin::new(binary);
    let mut nurseries = NURSERIES.lock().unwrap_or_else(PoisonError::into_inner);
    nurseries.retain_mut(|nursery| {
        let keep = nursery.of != origin;
        if !keep {
            let _ = nursery.process.kill();
            let _ = nursery.process.wait();
        }
        keep
    });
}

/// The life of a nursery: the host's socket is its standard input.
pub(crate) fn main() -> ! {
    let _ = run();
    sys::exit_now(0)
}

fn run() -> io::Result<()> {
    // Whatever the host forgot to mark: a directory descriptor beats every mount namespace.
    sys::close_from(3);
    // Not the parent-death signal: it fires when the *thread* that started us ends, and a host's threads come and go.
    let host = pidfd_open(rustix::process::getppid().unwrap_or(Pid::INIT), PidfdFlags::empty())?;
    // An interrupt typed at the host's terminal is for the host; and the working directory must not keep a mount busy.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    sys::leave_children_to_the_kernel();
    let stdin = io::stdin();
    loop {
        let mut fds =
            [PollFd::new(&stdin, PollFlags::IN), PollFd::from_borrowed_fd(host.as_fd(), PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !fds[1].revents().is_empty() {
            return Ok(()); // the host is dead
        }
        if fds[0].revents().is_empty() {
            continue;
        }
        let Some((message, mut fds)) = wire::receive(stdin.as_fd())? else { return Ok(()) };
        let namespaces = Namespaces::from_number(Reader::new(&message).number()?)?;
        let Some(socket) = fds.pop() else { continue };
        match sys::clone_process(0) {
            Ok(Forked::Child) => {
                sys::wait_for_children_again();
                // Also lets go of the nursery's socket: its end must be the nursery's end.
                sys::dup_onto(socket.as_fd(), 0)?;
                drop(socket);
                Supervisor::announce(stdin.as_fd())?;
                supervisor::main(stdin.as_fd(), host.as_fd(), namespaces);
            }
            Ok(Forked::Parent { .. }) => {}
            Err(error) => {
                let errno = u64::try_from(error.raw_os_error().unwrap_or(libc::EIO)).unwrap_or(0);
                let _ = wire::send(socket.as_fd(), &Writer::default().number(1).number(errno).finish(), &[]);
            }
        }
    }
}
