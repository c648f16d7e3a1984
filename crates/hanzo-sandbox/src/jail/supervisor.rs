//! The supervisor: one thread, one loop. It builds the walls once, forks an init per command, and passes on how each ended.
//! It runs nothing itself and holds nothing of the host: its environment is empty, its descriptors are the sockets it needs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use rustix::thread::CpuSet;
use seccompiler::BpfProgram;

use super::command::{self, Init, NoteBody, Stdio};
use super::config::Network;
use super::mounts;
use super::nursery::Namespaces;
use super::orders::{Answer, EndKind, Ending, Order, Setup, Step, StepError};
use super::placeholder::Placeholders;
use super::sys::{self, Forked};
use super::wire::{self, Reader, Writer};
use super::{filter, ruleset};

/// What stands around every command.
pub(crate) struct Walls {
    pub(crate) setup: Setup,
    pub(crate) namespaces: bool,
    pub(crate) private_proc: bool,
    pub(crate) ruleset: Option<OwnedFd>,
    pub(crate) filter: Option<BpfProgram>,
}

/// What the supervisor says when the walls stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) namespaces: bool,
    pub(crate) private_proc: bool,
    pub(crate) landlock: u32,
    pub(crate) seccomp: bool,
}

/// The answer to the setup message.
pub(crate) fn encode_ready(ready: &Result<Standing, StepError>) -> Vec<u8> {
    let mut writer = Writer::default();
    match ready {
        Ok(standing) => writer
            .number(0)
            .number(u64::from(standing.namespaces))
            .number(u64::from(standing.private_proc))
            .number(u64::from(standing.landlock))
            .number(u64::from(standing.seccomp)),
        Err(error) => writer
            .number(1)
            .bytes(error.step.as_bytes())
            .number(u64::try_from(error.source.raw_os_error().unwrap_or(libc::EIO)).unwrap_or(0)),
    }
    .finish()
}

/// Reads what [`encode_ready`] wrote.
pub(crate) fn decode_ready(bytes: &[u8]) -> io::Result<Result<Standing, StepError>> {
    let mut reader = Reader::new(bytes);
    if reader.number()? == 0 {
        return Ok(Ok(Standing {
            namespaces: reader.number()? == 1,
            private_proc: reader.number()? == 1,
            landlock: u32::try_from(reader.number()?).unwrap_or(0),
            seccomp: reader.number()? == 1,
        }));
    }
    let step = String::from_utf8_lossy(reader.bytes()?).into_owned();
    Ok(Err(StepError { step, source: io::Error::from_raw_os_error(reader.signed()?) }))
}

/// The life of a supervisor, which ends with its socket to the host or with the host.
pub(crate) fn main(socket: BorrowedFd<'_>, host: BorrowedFd<'_>, namespaces: Namespaces) -> ! {
    let _ = run(socket, host, namespaces);
    sys::exit_now(0)
}

fn run(socket: BorrowedFd<'_>, host: BorrowedFd<'_>, namespaces: Namespaces) -> io::Result<()> {
    // Namespaces need nothing of the setup but this one word, so they are made while the host still prepares the rest.
    let entered = match namespaces {
        Namespaces::All(network) => enter_namespaces(network),
        Namespaces::None => Ok(()),
    };
    let Some((message, mut fds)) = wire::receive(socket)? else { return Ok(()) };
    // Opened by the host: a file open for writing in our own mount namespace would keep its mount from becoming read-only.
    let record = fds.pop().map(File::from);
    let _lock = fds.pop(); // held as long as we live: whoever can take it knows that this jail is dead
    let record = record.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    let setup = Setup::decode(&message)?;
    let built = entered.and_then(|()| build(setup, record));
    let ready = match &built {
        Ok((walls, _)) => Ok(Standing {
            namespaces: walls.namespaces,
            private_proc: walls.private_proc,
            landlock: if walls.ruleset.is_some() { sys::landlock_abi() } else { 0 },
            seccomp: walls.filter.is_some(),
        }),
        Err(error) => Err(StepError {
            step: error.step.clone(),
            source: io::Error::from_raw_os_error(error.source.raw_os_error().unwrap_or(libc::EIO)),
        }),
    };
    wire::send(socket, &encode_ready(&ready), &[])?;
    let Ok((walls, placeholders)) = built else { return Ok(()) };
    let (notes, notes_in) = command::pipe()?;
    rustix::io::ioctl_fionbio(&notes, true)?;
    let (lifeline, lifeline_end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let mut supervisor = Supervisor {
        walls,
        placeholders,
        notes,
        notes_in,
        lifeline,
        lifeline_end: Some(lifeline_end),
        note_bytes: Vec::new(),
        commands: BTreeMap::new(),
        next_id: 1,
    };
    let result = supervisor.serve(socket, host);
    supervisor.end();
    result
}

/// Keeps this process, and with it every command, to `cores` of the processors it may use.
fn share(cores: NonZeroUsize) -> io::Result<()> {
    let all = rustix::thread::sched_getaffinity(None)?;
    let mut some = CpuSet::new();
    // The last ones: what is not bound anywhere tends to be on the first.
    let mine = (0..CpuSet::MAX_CPU).rev().filter(|cpu| all.is_set(*cpu));
    mine.take(cores.get()).for_each(|cpu| some.set(cpu));
    rustix::thread::sched_setaffinity(None, &some)?;
    Ok(())
}

fn build(setup: Setup, record: File) -> Result<(Walls, Placeholders), StepError> {
    let namespaces = setup.facilities.namespaces;
    let mut private_proc = false;
    if namespaces {
        mounts::build(&setup)?;
        private_proc = setup.facilities.private_proc && (!setup.proc_is_covered || can_mount_proc());
        command::drop_bounding_set();
    }
    // The old working directory is a descriptor into the old mount tree.
    std::env::set_current_dir("/").step(|| "leave the working directory".into())?;
    if let Some(cores) = setup.cores {
        share(cores).step(|| format!("keep to {cores} processors"))?;
    }
    let ruleset = if setup.facilities.landlock && sys::landlock_abi() > 0 {
        Some(ruleset::build(&setup, namespaces).step(|| "build the Landlock ruleset".into())?)
    } else {
        None
    };
    let filter = if setup.facilities.seccomp {
        Some(filter::build(&setup, namespaces).step(|| "build the seccomp filter".into())?)
    } else {
        None
    };
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    Ok((Walls { setup, namespaces, private_proc, ruleset, filter }, Placeholders::new(record)))
}

fn enter_namespaces(network: Network) -> Result<(), StepError> {
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    let network = if network == Network::Off { libc::CLONE_NEWNET } else { 0 };
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | network;
    sys::unshare(flags).step(|| "make namespaces".into())?;
    // The same numbers inside: mapped to root, a child could remount. As oneself, without capabilities, it cannot, and
    // files belong to whom they belong outside.
    sys::write_control(c"/proc/self/setgroups", "deny").step(|| "give up changing groups".into())?;
    sys::write_control(c"/proc/self/uid_map", &format!("{uid} {uid} 1")).step(|| "map the user".into())?;
    sys::write_control(c"/proc/self/gid_map", &format!("{gid} {gid} 1")).step(|| "map the group".into())?;
    if network != 0 {
        sys::loopback_up().step(|| "bring loopback up".into())?;
    }
    Ok(())
}

/// Where parts of `/proc` are hidden the kernel refuses a fresh one. Tried once, in a throw-away pid namespace.
fn can_mount_proc() -> bool {
    match sys::clone_process(libc::CLONE_NEWPID) {
        Ok(Forked::Child) => sys::exit_now(i32::from(mounts::private_proc(None).is_err())),
        Ok(Forked::Parent { pid, .. }) => {
            matches!(sys::reap(pid, true), sys::Reap::Ended(ended) if ended.status == 0)
        }
        Err(_) => false,
    }
}

struct Running {
    /// The init's pid in our namespace.
    pid: i32,
    pidfd: OwnedFd,
    /// Gone when the host has let go of a command whose leftovers may live on.
    socket: Option<OwnedFd>,
    deadline: Option<Instant>,
    /// Why we killed it, when we did.
    killed: Option<EndKind>,
    /// The end of the main process has been told.
    told: bool,
    /// Nothing of it is alive but the init, on its way out.
    over: bool,
}

struct Supervisor {
    walls: Walls,
    placeholders: Placeholders,
    notes: File,
    notes_in: OwnedFd,
    lifeline: OwnedFd,
    lifeline_end: Option<OwnedFd>,
    note_bytes: Vec<u8>,
    commands: BTreeMap<i32, Running>,
    next_id: i32,
}

impl Supervisor {
    fn serve(&mut self, socket: BorrowedFd<'_>, host: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            let ids: Vec<i32> = self.commands.keys().copied().collect();
            let ready = {
                let mut fds = vec![
                    PollFd::from_borrowed_fd(socket, PollFlags::IN),
                    PollFd::from_borrowed_fd(host, PollFlags::IN),
                    PollFd::new(&self.notes, PollFlags::IN),
                ];
                for running in self.commands.values() {
                    fds.push(PollFd::new(&running.pidfd, PollFlags::IN));
                    // A command without a socket is listened to once more on its pidfd, which keeps the list even.
                    fds.push(PollFd::new(running.socket.as_ref().unwrap_or(&running.pidfd), PollFlags::IN));
                }
                let timeout =
                    self.commands.values().filter_map(|running| running.deadline).min().map(|deadline| {
                        let left = deadline.saturating_duration_since(Instant::now());
                        Timespec {
                            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                            tv_nsec: i64::from(left.subsec_nanos()),
                        }
                    });
                match poll(&mut fds, timeout.as_ref()) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
                fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<bool>>()
            };
            self.read_notes();
            for (index, id) in ids.iter().enumerate() {
                if ready[3 + 2 * index] {
                    self.init_ended(*id);
                } else if ready[4 + 2 * index] {
                    self.hear_from_host(*id);
                }
            }
            self.kill_overdue();
            if ready[1] {
                return Ok(()); // the host is dead
            }
            if ready[0] {
                let Some((message, fds)) = wire::receive(socket)? else { return Ok(()) };
                self.start(&message, fds)?;
            }
        }
    }

    fn start(&mut self, message: &[u8], mut fds: Vec<OwnedFd>) -> io::Result<()> {
        let order = Order::decode(message)?;
        if fds.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let socket = fds.remove(0);
        if let Err(error) = self.try_start(order, fds, &socket) {
            let errno = error.source.raw_os_error().unwrap_or(libc::EIO);
            let answer = Answer::Failed { step: error.step, errno, exec: false };
            let _ = wire::send(socket.as_fd(), &answer.encode(), &[]);
            self.tidy();
        }
        Ok(())
    }

    fn try_start(&mut self, order: Order, fds: Vec<OwnedFd>, socket: &OwnedFd) -> Result<(), StepError> {
        let stdio = match order.pty {
            Some(size) => {
                let (master, terminal) = open_terminal(size).step(|| "make a terminal".into())?;
                wire::send(socket.as_fd(), &Answer::Master.encode(), &[master.as_fd()])
                    .step(|| "hand over the terminal".into())?;
                Stdio::Terminal(terminal)
            }
            None => Stdio::Fds(
                fds.try_into()
                    .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
                    .step(|| "take three descriptors".into())?,
            ),
        };
        if self.walls.namespaces {
            self.placeholders.ensure(&self.walls.setup.protected, &self.walls.setup.roots)?;
        }
        let socket = socket.try_clone().step(|| "copy a descriptor".into())?;
        let deadline = order.limits.wall_clock.map(|limit| Instant::now() + limit);
        let id = self.next_id;
        self.next_id = self.next_id.checked_add(1).unwrap_or(1);
        let flags = if self.walls.namespaces { libc::CLONE_NEWPID | libc::CLONE_NEWNS } else { 0 };
        match sys::clone_process(flags).step(|| "fork".into())? {
            Forked::Child => {
                // Only the supervisor may hold this end, or its death would go unseen.
                self.lifeline_end = None;
                Init {
                    walls: &self.walls,
                    order,
                    stdio,
                    socket,
                    notes: &self.notes_in,
                    lifeline: &self.lifeline,
                }
                .run(id)
            }
            Forked::Parent { pid, pidfd } => {
                let running = Running {
                    pid,
                    pidfd,
                    socket: Some(socket),
                    deadline,
                    killed: None,
                    told: false,
                    over: false,
                };
                self.commands.insert(id, running);
                Ok(())
            }
        }
    }

    fn read_notes(&mut self) {
        let mut chunk = [0; 4096];
        while let Ok(length @ 1..) = self.notes.read(&mut chunk) {
            self.note_bytes.extend_from_slice(&chunk[..length]);
        }
        while let Some(note) = command::take_note(&mut self.note_bytes) {
            let Some(running) = self.commands.get(&note.id) else { continue };
            let answer = match note.body {
                NoteBody::Failed { step, errno, exec } => Answer::Failed { step, errno, exec },
                NoteBody::Ended(mut ending) => {
                    if let (Some(kind), EndKind::Own | EndKind::Killed) = (running.killed, ending.kind) {
                        ending.kind = kind;
                    }
                    Answer::Ended(ending)
                }
            };
            self.tell_end(note.id, &answer);
        }
    }

    /// Passes on how a command ended, after the user's tree is as it was.
    fn tell_end(&mut self, id: i32, answer: &Answer) {
        let Some(running) = self.commands.get_mut(&id) else { return };
        running.told = true;
        running.over = !matches!(answer, Answer::Ended(Ending { leftovers: true, .. }));
        running.deadline = running.deadline.filter(|_| !running.over);
        self.tidy();
        if let Some(socket) = self.commands.get(&id).and_then(|running| running.socket.as_ref()) {
            let _ = wire::send(socket.as_fd(), &answer.encode(), &[]);
        }
    }

    fn init_ended(&mut self, id: i32) {
        let Some(running) = self.commands.get_mut(&id) else { return };
        let _ = sys::reap(running.pid, true);
        running.over = true;
        if !running.told {
            let kind = running.killed.unwrap_or(EndKind::Killed);
            let lost = Ending { kind, status: 256 + libc::SIGKILL, ..Ending::default() };
            self.tell_end(id, &Answer::Ended(lost));
        }
        self.commands.remove(&id);
        self.tidy();
    }

    /// A word from the host on a command's own socket is "kill", or a zero and a signal to pass on. Silence is "kill" too,
    /// unless the command is over and was asked to leave things running.
    fn hear_from_host(&mut self, id: i32) {
        let Some(running) = self.commands.get_mut(&id) else { return };
        let Some(socket) = &running.socket else { return };
        let mut byte = [0; 8];
        match rustix::net::recv(socket, &mut byte[..], rustix::net::RecvFlags::DONTWAIT) {
            Ok((2, _)) if byte[0] == 0 => sys::ask_to_pass_on(running.pid, i32::from(byte[1])),
            Ok((1.., _)) => kill(running, self.walls.namespaces, EndKind::Killed),
            Err(rustix::io::Errno::AGAIN) => {}
            _ => {
                running.socket = None;
                if !running.told {
                    kill(running, self.walls.namespaces, EndKind::Killed);
                }
            }
        }
    }

    fn kill_overdue(&mut self) {
        let now = Instant::now();
        for running in self.commands.values_mut() {
            if running.deadline.is_some_and(|deadline| deadline <= now) {
                kill(running, self.walls.namespaces, EndKind::Timeout);
            }
        }
    }

    /// Removes the placeholders when nothing runs that must be kept from them.
    fn tidy(&mut self) {
        if self.commands.values().all(|running| running.over) {
            self.placeholders.clear();
        }
    }

    fn end(&mut self) {
        // An init whose command is over is only freeing its namespaces, which takes longer than all we do here.
        self.commands.retain(|_, running| !running.over);
        for running in self.commands.values_mut() {
            kill(running, self.walls.namespaces, EndKind::Killed);
        }
        for running in self.commands.values() {
            let _ = sys::reap(running.pid, true);
        }
        self.placeholders.clear();
    }
}

fn kill(running: &mut Running, namespaces: bool, why: EndKind) {
    running.deadline = None;
    running.killed = running.killed.or(Some(why));
    // The death of a pid namespace's init is the death of all in it, at once. Without one, the init does what it can.
    sys::kill(running.pid, if namespaces { libc::SIGKILL } else { libc::SIGTERM });
}

fn open_terminal(size: super::orders::PtySize) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::unlockpt(&master)?;
    let terminal = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&terminal, size)?;
    Ok((master, terminal))
}

/// How long a host waits for a supervisor that should take milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
