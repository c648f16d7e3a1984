//! The system calls for which there is no safe wrapper in our dependencies. Everything unsafe of the jail is here.

#![expect(unsafe_code, reason = "fork, clone, exec and a few newer system calls have no safe wrapper")]

use std::ffi::{CStr, CString};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

/// What a fork returned, seen from the process it returned in.
pub(crate) enum Forked {
    Child,
    Parent { pid: i32, pidfd: OwnedFd },
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Forks a child into new namespaces (`flags` of `CLONE_NEW*`, or 0) and returns a pidfd for it.
///
/// Only for the supervisor: it has one thread, so the child may use the allocator and the rest of the library.
pub(crate) fn clone_process(flags: libc::c_int) -> io::Result<Forked> {
    let mut pidfd: libc::c_int = -1;
    let flags = flags | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: no CLONE_VM and no new stack, so this is a fork: the child gets a copy of everything. `pidfd` outlives the
    // call and is only written by the kernel in the parent (CLONE_PIDFD uses the parent_tid slot).
    let pid = check(unsafe {
        libc::syscall(libc::SYS_clone, libc::c_long::from(flags), 0usize, &raw mut pidfd, 0usize, 0usize)
    })?;
    if pid == 0 {
        return Ok(Forked::Child);
    }
    if pidfd < 0 {
        return Err(io::Error::from_raw_os_error(libc::ENOSYS)); // Linux < 5.2
    }
    // SAFETY: the kernel has just given us this descriptor and nobody else knows it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Forked::Parent { pid: narrow(pid), pidfd })
}

fn narrow(pid: libc::c_long) -> i32 {
    i32::try_from(pid).expect("a pid fits in 32 bits")
}

/// Runs `child` in a new process that borrows this one's memory until it executes a program or ends; then returns its pid.
///
/// A third of a millisecond cheaper than a fork of a page table that is thrown away at exec. `child` must not return.
pub(crate) fn vfork_with(child: &mut dyn FnMut()) -> io::Result<i32> {
    extern "C" fn enter(argument: *mut libc::c_void) -> libc::c_int {
        // SAFETY: `argument` is the pointer made below; the frame it points to is suspended until we exec or exit.
        let child = unsafe { &mut *argument.cast::<&mut dyn FnMut()>() };
        child();
        127
    }
    let mut stack = vec![0u128; 16 * 1024]; // 256 KiB, aligned to 16
    let top = stack.as_mut_ptr_range().end;
    let mut child = child;
    // SAFETY: the child has a stack of its own, which outlives it: CLONE_VFORK suspends the only thread of this process
    // until the child has left the memory. The descriptor table, directory and signal handlers are copies.
    let pid = unsafe {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        libc::clone(enter, top.cast(), flags, (&raw mut child).cast())
    };
    check(libc::c_long::from(pid)).map(narrow)
}

/// Ends the process without running destructors or exit handlers, which belong to the process it was forked from.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Enters new namespaces. For a single-threaded process.
pub(crate) fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: no file-descriptor or memory sharing is changed (callers pass CLONE_NEW* only).
    check(libc::c_long::from(unsafe { libc::unshare(flags) })).map(drop)
}

pub(crate) const MOUNT_ATTR_RDONLY: u64 = 0x1;
pub(crate) const MOUNT_ATTR_NOSUID: u64 = 0x2;
pub(crate) const MOUNT_ATTR_NODEV: u64 = 0x4;
pub(crate) const MOUNT_ATTR_NOEXEC: u64 = 0x8;

/// Whether a change of mount attributes reaches the mounts beneath.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    One,
    All,
}

/// Adds attributes to the mount `fd` refers to.
pub(crate) fn mount_set(fd: BorrowedFd<'_>, set: u64, depth: Depth) -> io::Result<()> {
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        userns_fd: u64,
    }
    let attr = MountAttr { set, clear: 0, propagation: 0, userns_fd: 0 };
    let recursive = if depth == Depth::All { 0x8000 } else { 0 };
    let flags = libc::AT_EMPTY_PATH | recursive;
    // SAFETY: the path is a NUL-terminated constant, the struct has the layout and size the kernel is told.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            mem::size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// Closes every descriptor from `first` on. Only for a process that has not opened any of its own yet.
pub(crate) fn close_from(first: u32) {
    // SAFETY: called before anything in this process owns a descriptor above the standard ones.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    if closed != 0 {
        let _ = cloexec_from(first); // an old kernel: at least no program inherits them
    }
}

/// Marks every descriptor from `first` on to be closed at exec.
pub(crate) fn cloexec_from(first: u32) -> io::Result<()> {
    // SAFETY: changes flags of descriptors only; no descriptor becomes invalid.
    let result =
        check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) });
    if result.is_err() {
        // Linux < 5.11: one by one.
        for entry in std::fs::read_dir("/proc/self/fd")?.flatten() {
            let number = entry.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok());
            if let Some(number) = number.filter(|number| *number >= 3) {
                // SAFETY: as above; an already closed number gives EBADF, which does no harm.
                unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
            }
        }
    }
    Ok(())
}

/// Makes `target` refer to what `fd` refers to, without close-on-exec.
pub(crate) fn dup_onto(fd: BorrowedFd<'_>, target: RawFd) -> io::Result<()> {
    if fd.as_raw_fd() == target {
        // SAFETY: clears a flag of a descriptor we hold.
        return check(libc::c_long::from(unsafe { libc::fcntl(target, libc::F_SETFD, 0) })).map(drop);
    }
    // SAFETY: only used for 0, 1 and 2 in a freshly forked child, where no owner of these numbers runs any more.
    check(libc::c_long::from(unsafe { libc::dup2(fd.as_raw_fd(), target) })).map(drop)
}

/// Sets `IFF_UP` on `lo`.
pub(crate) fn loopback_up() -> io::Result<()> {
    // SAFETY: plain call; the result is checked and then owned.
    let socket = check(libc::c_long::from(unsafe {
        libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0)
    }))?;
    // SAFETY: a descriptor just returned to us.
    let socket = unsafe { OwnedFd::from_raw_fd(narrow(socket)) };
    // SAFETY: `ifreq` is plain data; all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    request.ifr_name[0] = 'l' as libc::c_char;
    request.ifr_name[1] = 'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(1);
    // SAFETY: SIOCSIFFLAGS reads an `ifreq`, which lives across the call.
    check(libc::c_long::from(unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request)
    }))
    .map(drop)
}

/// `landlock_restrict_self(2)`: a prepared ruleset serves every command, so it is built once.
pub(crate) fn landlock_restrict_self(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: passes a descriptor and a zero flag word.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) }).map(drop)
}

/// The Landlock version of this kernel, 0 when it has none.
pub(crate) fn landlock_abi() -> u32 {
    // SAFETY: with the VERSION flag the kernel reads no memory.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<libc::c_void>(), 0usize, 1u32)
    };
    u32::try_from(version).unwrap_or(0)
}

/// Sets the soft limit of `resource` to `soft` and the hard one to `hard`, never above the present hard limit.
pub(crate) fn set_rlimit(resource: libc::__rlimit_resource_t, soft: u64, hard: u64) -> io::Result<()> {
    let mut present = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a pointer to a local of the right type.
    check(libc::c_long::from(unsafe { libc::getrlimit(resource, &raw mut present) }))?;
    let hard = hard.min(present.rlim_max);
    let wanted = libc::rlimit { rlim_cur: soft.min(hard), rlim_max: hard };
    // SAFETY: as above.
    check(libc::c_long::from(unsafe { libc::setrlimit(resource, &raw const wanted) })).map(drop)
}

/// Puts signal handling back to what a program expects at its start: the Rust runtime ignores SIGPIPE, and ignored
/// signals and the mask survive exec.
pub(crate) fn default_signals() {
    // SAFETY: SIG_DFL and an empty set are always valid; errors (SIGKILL, SIGSTOP, reserved numbers) do not matter.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Lets the kernel take the status of ended children by itself, so that none of them waits as a zombie.
pub(crate) fn leave_children_to_the_kernel() {
    // SAFETY: SIG_IGN is always valid for SIGCHLD, and no handler is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Undoes [`leave_children_to_the_kernel`], which a fork inherits.
pub(crate) fn wait_for_children_again() {
    // SAFETY: SIG_DFL is always valid, and no handler is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// The signal that carries the number of another, for an init to pass on.
const PASS_ON: i32 = libc::SIGUSR1;

/// What an init heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A child changed.
    Child,
    /// End everything.
    Terminate,
    /// Send this signal to everything.
    PassOn(i32),
}

/// Asks an init to send `signal` to everything below it.
pub(crate) fn ask_to_pass_on(init: i32, signal: i32) {
    let value = libc::sigval { sival_ptr: ptr::without_provenance_mut(usize::try_from(signal).unwrap_or(0)) };
    // SAFETY: the value is a number in a pointer's place and is never followed. An init that is gone needs nothing.
    unsafe { libc::sigqueue(init, PASS_ON, value) };
}

fn child_signals() -> libc::sigset_t {
    // SAFETY: a zeroed set is initialised by sigemptyset before use.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigaddset(&raw mut set, PASS_ON);
        set
    }
}

/// Holds the signals of [`Heard`] back until [`wait_signal`] takes them.
pub(crate) fn hold_signals() {
    let set = child_signals();
    // SAFETY: a valid set; the old mask is not wanted.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) };
}

/// Waits for a signal, at most `timeout`; what came, if something did.
pub(crate) fn wait_signal(timeout: Option<Duration>) -> Option<Heard> {
    let set = child_signals();
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
    });
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: a siginfo of zeroes is valid and only written by the call; set and timespec live across it.
    let (signal, info) = unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        (libc::sigtimedwait(&raw const set, &raw mut info, limit), info)
    };
    match signal {
        libc::SIGCHLD => Some(Heard::Child),
        libc::SIGTERM => Some(Heard::Terminate),
        // A command may send this to its own init. It then signals itself, which it could have done directly.
        // SAFETY: every field of a siginfo that was filled in or zeroed is initialised.
        PASS_ON => i32::try_from(unsafe { info.si_value() }.sival_ptr.addr()).ok().map(Heard::PassOn),
        _ => None,
    }
}

/// How a child ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reaped {
    pub(crate) pid: i32,
    /// Exit code, or 256 + signal.
    pub(crate) status: i32,
    pub(crate) cpu_micros: u64,
    pub(crate) max_rss: u64,
}

/// What [`reap`] found.
pub(crate) enum Reap {
    Ended(Reaped),
    StillRunning,
    NoChildren,
}

/// Takes the status of one ended child, waiting for it when `block` is set.
pub(crate) fn reap(pid: i32, block: bool) -> Reap {
    let mut status = 0;
    // SAFETY: plain data, zero is valid.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    let options = if block { libc::__WALL } else { libc::WNOHANG | libc::__WALL };
    loop {
        // SAFETY: both pointers are to locals that live across the call.
        let result = unsafe { libc::wait4(pid, &raw mut status, options, &raw mut usage) };
        if result > 0 {
            let status = if libc::WIFSIGNALED(status) {
                256 + libc::WTERMSIG(status)
            } else {
                libc::WEXITSTATUS(status)
            };
            let micros = |time: libc::timeval| {
                u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
            };
            return Reap::Ended(Reaped {
                pid: result,
                status,
                cpu_micros: micros(usage.ru_utime) + micros(usage.ru_stime),
                max_rss: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
            });
        }
        if result == 0 {
            return Reap::StillRunning;
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return Reap::NoChildren;
        }
    }
}

/// `kill(2)`; -1 means everyone in the pid namespace but the caller.
pub(crate) fn kill(pid: i32, signal: i32) {
    // SAFETY: no memory is involved. A process that is gone already gives ESRCH, which is what was wanted.
    unsafe { libc::kill(pid, signal) };
}

/// Arguments for exec, built before the filter is on: strings and the pointer arrays over them.
pub(crate) struct Exec {
    candidates: Vec<CString>,
    _argv: Vec<CString>,
    _envp: Vec<CString>,
    argv_ptrs: Vec<*const libc::c_char>,
    env_ptrs: Vec<*const libc::c_char>,
}

impl Exec {
    /// `candidates` are tried in order.
    pub(crate) fn new(candidates: Vec<CString>, argv: Vec<CString>, envp: Vec<CString>) -> Self {
        let pointers = |strings: &[CString]| {
            strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>()
        };
        Self { argv_ptrs: pointers(&argv), env_ptrs: pointers(&envp), candidates, _argv: argv, _envp: envp }
    }

    /// Replaces the process. Returns only the error.
    pub(crate) fn run(&self) -> io::Error {
        let mut best = io::Error::from_raw_os_error(libc::ENOENT);
        for path in &self.candidates {
            // SAFETY: all three are NUL-terminated strings or NULL-terminated arrays owned by `self`.
            unsafe { libc::execve(path.as_ptr(), self.argv_ptrs.as_ptr(), self.env_ptrs.as_ptr()) };
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) => {}
                // Like a shell: a file without permission is worth reporting only if no later one can be run.
                Some(libc::EACCES) => best = error,
                _ => return error,
            }
        }
        best
    }
}

/// Opens `/proc/self/…`-like control files and writes a short text in one call.
pub(crate) fn write_control(path: &CStr, text: &str) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::OsStr::from_bytes(path.to_bytes());
    let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
    io::Write::write_all(&mut file, text.as_bytes())
}
