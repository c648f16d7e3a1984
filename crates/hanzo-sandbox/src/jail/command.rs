//! One command: its init, which owns the pid namespace, and the child that becomes the program. Both are forks of the
//! supervisor, so everything they need is already in memory.
//!
//! The order of the child's steps is the order in which each closes what the one before leaves open.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::{DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::mounts;
use super::orders::{Answer, EndKind, Ending, Order, Step, StepError};
use super::supervisor::Walls;
use super::sys::{self, Exec, Heard, Reap};
use super::watch::{Verdict, Watch};
use super::wire;

/// How often an init looks at its tree when something must be watched.
const LOOK: Duration = Duration::from_millis(100);

/// What an init tells the supervisor through the shared pipe; small enough to be written in one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) id: i32,
    pub(crate) body: NoteBody,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoteBody {
    /// Nothing was run.
    Failed { step: String, errno: i32, exec: bool },
    /// The main process is over; so is everything else, unless the ending says otherwise.
    Ended(Ending),
}

/// The child's half of the stdio.
pub(crate) enum Stdio {
    Fds([OwnedFd; 3]),
    Terminal(OwnedFd),
    /// The program has them, and only it: a reader must see the end when the program closes its output.
    Passed,
}

/// Everything an init inherits.
pub(crate) struct Init<'a> {
    pub(crate) walls: &'a Walls,
    pub(crate) order: Order,
    pub(crate) stdio: Stdio,
    /// The command's socket to the host.
    pub(crate) socket: OwnedFd,
    /// The write end of the supervisor's pipe.
    pub(crate) notes: &'a OwnedFd,
    /// Readable (as hung up) when the supervisor is gone.
    pub(crate) lifeline: &'a OwnedFd,
}

impl Init<'_> {
    /// The life of an init. `id` is the supervisor's name for the command: our pid is another one inside.
    pub(crate) fn run(mut self, id: i32) -> ! {
        if let Err(error) = self.live(id) {
            let errno = error.source.raw_os_error().unwrap_or(libc::EIO);
            let body = NoteBody::Failed { step: error.step, errno, exec: false };
            send_note(self.notes, &Note { id, body });
        }
        sys::exit_now(0)
    }

    fn live(&mut self, id: i32) -> Result<(), StepError> {
        // The supervisor's death is ours, and with us the kernel kills the whole pid namespace. It may have died already.
        self.follow_supervisor()?;
        if hung_up(self.lifeline) {
            sys::exit_now(0);
        }
        sys::hold_signals();
        let mut bounded = false;
        if self.walls.namespaces {
            bounded = self.finish_mounts()?;
        } else {
            // Orphans come to us instead of to the machine's init, so that we can find and kill them.
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
                .step(|| "adopt orphans".into())?;
        }

        // Written by the child in our memory when it does not become the program.
        let mut failure = None;
        let this = &*self;
        let main = sys::vfork_with(&mut || {
            failure = Some(match this.become_program() {
                Ok(error) => ("run the program".to_owned(), error, true),
                Err(error) => (error.step, error.source, false),
            });
            sys::exit_now(127);
        })
        .step(|| "fork".into())?;
        if let Some((step, error, exec)) = failure {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            send_note(self.notes, &Note { id, body: NoteBody::Failed { step, errno, exec } });
            return Ok(());
        }
        self.stdio = Stdio::Passed;
        // We are in the command's pid namespace and of its user: keep our memory to ourselves, and keep no power.
        drop_capabilities(self.walls.namespaces)?;
        self.follow_supervisor()?; // a change of credentials may have cleared it
        set_dumpable_behavior(DumpableBehavior::NotDumpable).step(|| "close the init to others".into())?;
        let _ = wire::send(self.socket.as_fd(), &Answer::Started.encode(), &[]);
        let watch = Watch::new(&self.order.limits, bounded, self.walls.namespaces);
        self.reap_until_over(id, main, watch.as_ref());
        Ok(())
    }

    /// Without a pid namespace the signal is one we can act on: our death alone would not be the tree's.
    fn follow_supervisor(&self) -> Result<(), StepError> {
        let signal = if self.walls.namespaces { Signal::KILL } else { Signal::TERM };
        set_parent_process_death_signal(Some(signal)).step(|| "follow the supervisor".into())
    }

    fn finish_mounts(&self) -> Result<bool, StepError> {
        let setup = &self.walls.setup;
        let facilities = setup.facilities;
        let max_tasks = self.order.limits.processes.filter(|_| facilities.pid_max);
        let mut bounded = false;
        if self.walls.private_proc {
            let (proc, is_bounded) =
                mounts::private_proc(max_tasks).step(|| "make the command's own `/proc`".into())?;
            mounts::attach_proc(&proc).step(|| "attach the command's own `/proc`".into())?;
            bounded = is_bounded;
        }
        mounts::mask(setup)?;
        mounts::protect(setup)?;
        Ok(bounded)
    }

    /// Waits for the tree and reports. Returns when nothing is left to wait for.
    fn reap_until_over(&self, id: i32, main: i32, watch: Option<&Watch>) {
        let mut reported = false;
        let mut verdict = None;
        loop {
            match sys::wait_signal(watch.map(|_| LOOK)) {
                // Without a pid namespace our death would not be the tree's, so we are asked instead of killed.
                Some(Heard::Terminate) => {
                    self.kill_tree(main);
                    verdict = Some(EndKind::Killed);
                }
                Some(Heard::PassOn(signal @ 1..=31)) => self.signal_tree(main, signal),
                Some(_) => {}
                None => match watch.map(Watch::look) {
                    Some(Verdict::TooMuchMemory) => {
                        verdict = Some(EndKind::Memory);
                        self.kill_tree(main);
                    }
                    Some(Verdict::TooManyProcesses) => {
                        verdict = Some(EndKind::Processes);
                        self.kill_tree(main);
                    }
                    _ => {}
                },
            }
            loop {
                match sys::reap(-1, false) {
                    Reap::StillRunning => break,
                    Reap::NoChildren => return,
                    Reap::Ended(ended) if ended.pid == main && !reported => {
                        reported = true;
                        let mut ending = Ending {
                            kind: verdict.unwrap_or(EndKind::Own),
                            status: ended.status,
                            cpu: Duration::from_micros(ended.cpu_micros),
                            max_rss: ended.max_rss,
                            leftovers: false,
                        };
                        if self.order.keep_leftovers && verdict.is_none() {
                            ending.leftovers = matches!(peek_children(), Children::Some);
                            send_note(self.notes, &Note { id, body: NoteBody::Ended(ending) });
                        } else {
                            // The report is a promise: when it arrives, nothing of the command is alive.
                            self.kill_tree(main);
                            self.reap_all(main);
                            send_note(self.notes, &Note { id, body: NoteBody::Ended(ending) });
                            return;
                        }
                    }
                    Reap::Ended(_) => {}
                }
            }
        }
    }

    /// Everything in the pid namespace, or the command's own process group.
    fn signal_tree(&self, main: i32, signal: i32) {
        sys::kill(if self.walls.namespaces { -1 } else { -main }, signal);
    }

    fn kill_tree(&self, main: i32) {
        if self.walls.namespaces {
            sys::kill(-1, libc::SIGKILL);
        } else {
            sys::kill(-main, libc::SIGKILL);
            super::watch::kill_descendants();
        }
    }

    fn reap_all(&self, main: i32) {
        loop {
            match sys::reap(-1, self.walls.namespaces) {
                Reap::NoChildren => return,
                Reap::Ended(_) => {}
                Reap::StillRunning => {
                    // A process that forks while we look can be missed; look again until nothing is left.
                    self.kill_tree(main);
                    sys::wait_signal(Some(Duration::from_millis(5)));
                }
            }
        }
    }

    /// The steps of the child. Returns the error of exec, or of the step that failed before it.
    fn become_program(&self) -> Result<io::Error, StepError> {
        // Nobody of ours may see what the program will be, and it must not see us: descriptors first. An inherited
        // directory descriptor beats every mount namespace.
        sys::cloexec_from(3).step(|| "close descriptors".into())?;
        let exec = self.exec()?;
        sys::default_signals();
        // A session of its own: no controlling terminal to type into, and one process group per command.
        rustix::process::setsid().step(|| "start a session".into())?;
        match &self.stdio {
            Stdio::Fds(fds) => {
                for (fd, target) in fds.iter().zip(0..) {
                    sys::dup_onto(fd.as_fd(), target).step(|| "set up standard descriptors".into())?;
                }
            }
            Stdio::Terminal(terminal) => {
                rustix::process::ioctl_tiocsctty(terminal).step(|| "take the terminal".into())?;
                for target in 0..3 {
                    sys::dup_onto(terminal.as_fd(), target).step(|| "set up the terminal".into())?;
                }
            }
            Stdio::Passed => {}
        }
        super::watch::set_rlimits(&self.order.limits).step(|| "set limits".into())?;
        // By path, in the new mount tree: the old working directory would be a way around it.
        std::env::set_current_dir(&self.order.cwd)
            .step(|| format!("enter `{}`", self.order.cwd.display()))?;
        drop_capabilities(self.walls.namespaces)?;
        if !self.walls.namespaces {
            set_parent_process_death_signal(Some(Signal::KILL)).step(|| "follow the init".into())?;
        }
        // Setuid programs and file capabilities give nothing back.
        rustix::thread::set_no_new_privs(true).step(|| "set no_new_privs".into())?;
        if let Some(ruleset) = &self.walls.ruleset {
            sys::landlock_restrict_self(ruleset.as_fd()).step(|| "enforce Landlock".into())?;
        }
        // Last, because it forbids most of the above.
        if let Some(program) = &self.walls.filter {
            seccompiler::apply_filter(program)
                .map_err(|error| io::Error::other(error.to_string()))
                .step(|| "install the seccomp filter".into())?;
        }
        Ok(exec.run())
    }

    fn exec(&self) -> Result<Exec, StepError> {
        let order = &self.order;
        let c = |bytes: &[u8]| {
            CString::new(bytes)
                .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
                .step(|| "an argument holds a NUL byte".into())
        };
        let program = order.program.as_ref().map_or_else(
            || order.argv.first().map_or(OsStr::new(""), |first| first.as_os_str()),
            |program| program.as_os_str(),
        );
        let candidates = if program.as_bytes().contains(&b'/') {
            vec![c(program.as_bytes())?]
        } else {
            let path = order.env.iter().find(|(name, _)| name == "PATH");
            let path =
                path.map_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"), |(_, value)| value.as_os_str());
            std::env::split_paths(path)
                .filter(|dir| dir.is_absolute())
                .map(|dir| c(dir.join(Path::new(program)).as_os_str().as_bytes()))
                .collect::<Result<_, _>>()?
        };
        let argv = order.argv.iter().map(|arg| c(arg.as_bytes())).collect::<Result<_, _>>()?;
        let envp = order
            .env
            .iter()
            .map(|(name, value)| c(&[name.as_bytes(), b"=", value.as_bytes()].concat()))
            .collect::<Result<_, _>>()?;
        Ok(Exec::new(candidates, argv, envp))
    }
}

enum Children {
    Some,
    None,
}

fn peek_children() -> Children {
    match rustix::process::waitid(
        rustix::process::WaitId::All,
        rustix::process::WaitIdOptions::NOWAIT
            | rustix::process::WaitIdOptions::NOHANG
            | rustix::process::WaitIdOptions::EXITED,
    ) {
        Ok(_) => Children::Some,
        Err(_) => Children::None,
    }
}

fn hung_up(fd: &OwnedFd) -> bool {
    let mut fds = [rustix::event::PollFd::new(fd, rustix::event::PollFlags::IN)];
    let nothing = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&nothing)).is_ok_and(|ready| ready > 0)
}

pub(crate) fn pipe() -> io::Result<(std::fs::File, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((std::fs::File::from(read), write))
}

/// Gives up every capability and looks: a child with one left could mount, so it must not run.
fn drop_capabilities(namespaces: bool) -> Result<(), StepError> {
    let _ = rustix::thread::clear_ambient_capability_set();
    if !namespaces {
        drop_bounding_set();
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .step(|| "drop capabilities".into())?;
    let left = capabilities(None).step(|| "look at the capabilities".into())?;
    if left.effective.is_empty() && left.permitted.is_empty() && left.inheritable.is_empty() {
        return Ok(());
    }
    Err(io::Error::from_raw_os_error(libc::EPERM)).step(|| "drop capabilities: some are left".into())
}

/// Without this a program run as uid 0 gets its capabilities back at exec. Once per supervisor: it is inherited.
pub(crate) fn drop_bounding_set() {
    use rustix::thread::CapabilitiesSecureBits as Bits;
    for capability in CapabilitySet::all().iter() {
        // Refused to who lacks CAP_SETPCAP; then there is nothing to give back at exec either, and EINVAL is a
        // capability that this kernel does not know.
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    let bits = Bits::NO_ROOT | Bits::NO_ROOT_LOCKED | Bits::NO_SETUID_FIXUP | Bits::NO_SETUID_FIXUP_LOCKED;
    let _ = rustix::thread::set_capabilities_secure_bits(bits);
}

/// Writes a note; a pipe takes up to 4096 bytes in one piece.
pub(crate) fn send_note(notes: &OwnedFd, note: &Note) {
    let answer = match &note.body {
        NoteBody::Failed { step, errno, exec } => {
            let step: String = step.chars().take(700).collect();
            Answer::Failed { step, errno: *errno, exec: *exec }
        }
        NoteBody::Ended(ending) => Answer::Ended(*ending),
    };
    let body = answer.encode();
    let bytes = wire::Writer::default().number(u64::try_from(note.id).unwrap_or(0)).bytes(&body).finish();
    let mut framed = u32::try_from(bytes.len()).unwrap_or(0).to_le_bytes().to_vec();
    framed.extend(bytes);
    let _ = rustix::io::write(notes, &framed);
}

/// Takes one whole note off the front of `buffer`.
pub(crate) fn take_note(buffer: &mut Vec<u8>) -> Option<Note> {
    let length = u32::from_le_bytes(buffer.get(..4)?.try_into().ok()?);
    let end = 4 + usize::try_from(length).ok()?;
    let frame: Vec<u8> = buffer.get(4..end)?.to_vec();
    buffer.drain(..end);
    let mut reader = wire::Reader::new(&frame);
    let id = reader.signed().ok()?;
    let body = match Answer::decode(reader.bytes().ok()?).ok()? {
        Answer::Failed { step, errno, exec } => NoteBody::Failed { step, errno, exec },
        Answer::Ended(ending) => NoteBody::Ended(ending),
        Answer::Master | Answer::Started => return None,
    };
    Some(Note { id, body })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn notes_come_out_one_by_one_whatever_the_pieces() {
        let (mut read, write) = pipe().unwrap();
        let first = Note { id: 7, body: NoteBody::Failed { step: "x".into(), errno: 2, exec: true } };
        let second = Note { id: 8, body: NoteBody::Ended(Ending { status: 3, ..Ending::default() }) };
        send_note(&write, &first);
        send_note(&write, &second);
        drop(write);
        let mut all = Vec::new();
        read.read_to_end(&mut all).unwrap();
        let mut buffer = Vec::new();
        let mut notes = Vec::new();
        for byte in all {
            buffer.push(byte);
            notes.extend(take_note(&mut buffer));
        }
        assert_eq!(notes, [first, second]);
    }
}
