//! Attempts on the walls themselves: mounts, namespaces, other processes, and calls that reach around a filter.

#![expect(unsafe_code, reason = "attacks are made of system calls")]

use std::ffi::CString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::ptr;

use hanzo_testkit::not_run;

use crate::support::{Who, World, escape, everyone, is_root, probe, tried};

/// Attempts of this file; see `probes`.
pub(crate) fn attempt(name: &str, arguments: &[&str]) {
    let c = |index: usize| CString::new(arguments[index]).unwrap();
    match name {
        "remount" => {
            become_root_in_a_namespace();
            remount(arguments[0]);
            let _ = fs::write(format!("{}/v", arguments[0]), "changed");
        }
        // The sandbox of a careless builder: a user and mount namespace, the place outside read-only, capabilities left.
        "weak" => {
            become_root_in_a_namespace();
            let dir = c(0);
            // SAFETY: NUL-terminated paths and flag words.
            unsafe {
                libc::mount(
                    ptr::null(),
                    c"/".as_ptr(),
                    ptr::null(),
                    libc::MS_REC | libc::MS_PRIVATE,
                    ptr::null(),
                );
                libc::mount(dir.as_ptr(), dir.as_ptr(), ptr::null(), libc::MS_BIND, ptr::null());
                let flags = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY;
                libc::mount(ptr::null(), dir.as_ptr(), ptr::null(), flags, ptr::null());
            }
            let before = fs::write(format!("{}/w", arguments[0]), "x");
            assert!(before.is_err(), "the weak sandbox is not even weak");
            remount(arguments[0]);
            let _ = fs::write(format!("{}/v", arguments[0]), "changed");
        }
        "bind" => {
            become_root_in_a_namespace();
            let (from, to) = (c(0), c(1));
            // SAFETY: NUL-terminated paths.
            unsafe { libc::mount(from.as_ptr(), to.as_ptr(), ptr::null(), libc::MS_BIND, ptr::null()) };
            let _ = fs::write(format!("{}/v", arguments[1]), "changed");
        }
        "namespace" => {
            for way in 0..3 {
                // SAFETY: the children only exit.
                let made = unsafe {
                    match way {
                        0 => libc::unshare(libc::CLONE_NEWUSER) == 0,
                        1 => {
                            let flags = libc::c_long::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
                            reached(libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0))
                        }
                        _ => {
                            let mut args = [0u64; 11];
                            args[0] = u64::from(libc::CLONE_NEWUSER.cast_unsigned());
                            args[4] = u64::from(libc::SIGCHLD.cast_unsigned());
                            reached(libc::syscall(libc::SYS_clone3, args.as_ptr(), size_of_val(&args)))
                        }
                    }
                };
                if made {
                    println!("namespace by way {way}");
                }
            }
        }
        "sysctl" => {
            let path = arguments[0];
            become_root_in_a_namespace();
            // SAFETY: NUL-terminated strings.
            unsafe { libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), 0, ptr::null()) };
            let _ = fs::write(path, arguments[1]);
        }
        "sysctl-plain" => drop(fs::write(arguments[0], arguments[1])),
        "memory-of" => memory_of(arguments[0], arguments[1].parse().unwrap(), arguments[2]),
        "ptrace-own-child" => ptrace_own_child(),
        "io_uring" => {
            let mut parameters = [0u32; 30];
            // SAFETY: the parameters are large enough for the kernel's struct of 120 bytes.
            if unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) } >= 0 {
                println!("got a ring");
            }
        }
        "tiocsti" => {
            // A bit in the upper half of the request, which the kernel ignores and a careless filter does not.
            for request in [libc::TIOCSTI, libc::TIOCSTI | 1 << 32] {
                // SAFETY: the argument is a pointer to a byte.
                let typed = unsafe { libc::syscall(libc::SYS_ioctl, 0, request, b"x".as_ptr()) };
                println!("{}", if typed == 0 { "typed a key" } else { "refused" });
            }
        }
        "handle" => open_by_handle(arguments[0]),
        "x32" => {
            // SAFETY: the x32 number of a call without side effects here: io_uring_setup with no parameters faults.
            let result = unsafe { libc::syscall(0x4000_0000 | libc::SYS_getpid) };
            println!("{}", if result > 0 { "the other numbering works" } else { "no such numbering" });
        }
        "write-disk" => {
            for path in ["/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/mem", "/dev/kmsg", "/dev/loop-control"]
            {
                if fs::OpenOptions::new().write(true).open(path).is_ok() {
                    println!("opened {path}");
                }
            }
        }
        other => panic!("no attempt is called {other}"),
    }
}

unsafe fn reached(pid: libc::c_long) -> bool {
    if pid == 0 {
        // SAFETY: ends the forked child at once.
        unsafe { libc::_exit(0) }
    }
    pid > 0
}

fn become_root_in_a_namespace() {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    // SAFETY: this process has one thread.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) } == 0 {
        let _ = fs::write("/proc/self/setgroups", "deny");
        let _ = fs::write("/proc/self/uid_map", format!("0 {uid} 1"));
        let _ = fs::write("/proc/self/gid_map", format!("0 {gid} 1"));
    }
}

/// Every way to make a mount writable again.
fn remount(dir: &str) {
    for target in [dir, "/"] {
        let target = CString::new(target).unwrap();
        let clear_read_only = [0u64, 1, 0, 0];
        // SAFETY: NUL-terminated paths, a struct of the size given.
        unsafe {
            let flags = libc::MS_REMOUNT | libc::MS_BIND;
            libc::mount(ptr::null(), target.as_ptr(), ptr::null(), flags, ptr::null());
            libc::mount(ptr::null(), target.as_ptr(), ptr::null(), libc::MS_REMOUNT, ptr::null());
            libc::syscall(
                libc::SYS_mount_setattr,
                libc::AT_FDCWD,
                target.as_ptr(),
                0x8000,
                clear_read_only.as_ptr(),
                size_of_val(&clear_read_only),
            );
            libc::umount2(target.as_ptr(), libc::MNT_DETACH);
        }
    }
}

fn memory_of(method: &str, pid: i32, address: &str) {
    let address = usize::from_str_radix(address.trim_start_matches("0x"), 16).unwrap();
    let mut bytes = [0u8; 16];
    // SAFETY: all buffers are local and of the lengths given; the remote address is only passed on.
    unsafe {
        match method {
            "file" => {
                use std::os::unix::fs::FileExt;
                if let Ok(file) = fs::File::open(format!("/proc/{pid}/mem")) {
                    let _ = file.read_at(&mut bytes, address as u64);
                }
            }
            "call" => {
                let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
                let remote = libc::iovec { iov_base: address as *mut _, iov_len: bytes.len() };
                libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0);
            }
            _ => {
                libc::ptrace(libc::PTRACE_ATTACH, pid, 0, 0);
                libc::waitpid(pid, ptr::null_mut(), libc::__WALL);
                for index in 0..2 {
                    let word = libc::ptrace(libc::PTRACE_PEEKDATA, pid, address + 8 * index, 0);
                    bytes[8 * index..8 * index + 8].copy_from_slice(&word.to_ne_bytes());
                }
                libc::ptrace(libc::PTRACE_DETACH, pid, 0, 0);
            }
        }
    }
    println!("{}", String::from_utf8_lossy(&bytes));
}

fn ptrace_own_child() {
    // SAFETY: one thread; the child only waits to be killed.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            loop {
                libc::pause();
            }
        }
        if libc::ptrace(libc::PTRACE_SEIZE, child, 0, 0) == 0 {
            println!("traced");
        }
        libc::kill(child, libc::SIGKILL);
    }
}

fn open_by_handle(path: &str) {
    let path = CString::new(path).unwrap();
    let mut handle = [0u32; 34];
    handle[0] = 128;
    let mut mount = 0;
    // SAFETY: the handle buffer has its capacity in the first word; paths are NUL-terminated.
    unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            handle.as_mut_ptr(),
            &raw mut mount,
            0,
        );
        let root = libc::open(path.as_ptr(), libc::O_RDONLY);
        let fd = libc::syscall(libc::SYS_open_by_handle_at, root, handle.as_mut_ptr(), libc::O_WRONLY);
        if let Ok(fd) = i32::try_from(fd)
            && fd >= 0
        {
            libc::write(fd, b"changed".as_ptr().cast(), 7);
        }
    }
}

/// A process of the same user outside, with a secret in its environment and in its memory.
struct Victim {
    child: Child,
    address: String,
}

impl Victim {
    fn start(world: &World) -> Self {
        let script = "import ctypes,os,sys\n\
                      b=ctypes.create_string_buffer(b'in-memory-secret')\n\
                      print(hex(ctypes.addressof(b)),flush=True)\nsys.stdin.read()";
        let mut command = world.plain(&["/usr/bin/python3", "-c", script].map(Into::into));
        command.env("HANZO_SECRET", "in-environ-secret").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn remounting_and_binding() {
    for who in everyone() {
        let world = World::new(who);
        let victim = world.victim("v");
        tried(world.plain(&probe("weak", &[&world.outside])));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "changed", "the control did not work as {who:?}");

        let world = World::new(who);
        let victim = world.victim("v");
        tried(world.jailed(&[], &probe("remount", &[&world.outside])));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "original", "ESCAPED as {who:?}");
    }
    escape(
        &[],
        &everyone(),
        |world| {
            let (victim, target) = (world.victim("v"), world.workspace.join("here"));
            fs::create_dir(&target).unwrap();
            (probe("bind", &[&world.outside, &target]), victim)
        },
        |_, victim, _| fs::read(victim).unwrap() == b"changed",
    );
}

#[test]
fn nested_user_namespaces() {
    // By `unshare`, by `clone`, by `clone3`.
    escape(
        &[],
        &everyone(),
        |_| (probe("namespace", &[]), ()),
        |_, (), output| output.contains("namespace by way"),
    );
}

#[test]
fn kernel_settings() {
    // A setting without consequences, changed by one and put back.
    let path = "/proc/sys/kernel/printk_ratelimit_burst";
    if !is_root() {
        // Nobody else can change one outside, so there is no control.
        return not_run("to be root");
    }
    let before = fs::read_to_string(path).unwrap();
    let other = (before.trim().parse::<u32>().unwrap() + 1).to_string();
    let world = World::new(Who::Own);
    for attempt in ["sysctl", "sysctl-plain"] {
        tried(world.jailed(&[], &probe(attempt, &[&path, &other])));
        assert_eq!(fs::read_to_string(path).unwrap(), before, "ESCAPED by {attempt}");
    }
    tried(world.plain(&probe("sysctl-plain", &[&path, &other])));
    let changed = fs::read_to_string(path).unwrap();
    fs::write(path, &before).unwrap();
    assert_eq!(changed.trim(), other, "the control did not work");
}

#[test]
fn the_environment_of_other_processes() {
    for who in everyone() {
        let world = World::new(who);
        let victim = Victim::start(&world);
        for argv in [probe("environ", &[]), probe("environ-of", &[&victim.pid()])] {
            assert!(
                tried(world.plain(&argv)).contains("in-environ-secret"),
                "the control did not work as {who:?}"
            );
            assert!(!tried(world.jailed(&[], &argv)).contains("in-environ-secret"), "ESCAPED as {who:?}");
        }
    }
}

#[test]
fn the_hosts_own_environment_is_not_inherited() {
    for who in everyone() {
        let world = World::new(who);
        let run = |mut command: Command| {
            tried({
                command.env("HANZO_SECRET", "in-environ-secret");
                command
            })
        };
        let argv = probe("environ", &[]);
        assert!(run(world.plain(&argv)).contains("in-environ-secret"), "the control did not work");
        assert!(!run(world.jailed(&[], &argv)).contains("in-environ-secret"), "ESCAPED as {who:?}");
    }
}

#[test]
fn the_memory_of_other_processes() {
    for who in everyone() {
        for method in ["file", "call", "ptrace"] {
            let world = World::new(who);
            let victim = Victim::start(&world);
            let argv = probe("memory-of", &[&method, &victim.pid(), &victim.address]);
            let control = tried(world.plain(&argv));
            assert!(control.contains("in-memory-secret"), "the control of {method} did not work as {who:?}");
            let output = tried(world.jailed(&[], &argv));
            assert!(!output.contains("in-memory-secret"), "ESCAPED by {method} as {who:?}");
        }
    }
    escape(
        &[],
        &everyone(),
        |_| (probe("ptrace-own-child", &[]), ()),
        |_, (), output| output.contains("traced"),
    );
}

#[test]
fn signals_to_processes_outside() {
    for who in everyone() {
        let world = World::new(who);
        for target in ["pid", "everyone"] {
            let mut victim = Victim::start(&world);
            let target = if target == "pid" { victim.pid() } else { "-1".to_owned() };
            // The answer of this one is lost with the process that asked, so it is not asked whether it tried.
            let mut command = world.jailed(&[], &probe("kill", &[&target]));
            command.stdout(Stdio::null()).status().unwrap();
            assert!(victim.child.try_wait().unwrap().is_none(), "ESCAPED as {who:?}");
        }
        let mut victim = Victim::start(&world);
        tried(world.plain(&probe("kill", &[&victim.pid()])));
        assert!(victim.child.wait().unwrap().code().is_none(), "the control did not work as {who:?}");
    }
}

#[test]
fn io_uring() {
    escape(&[], &everyone(), |_| (probe("io_uring", &[]), ()), |_, (), output| output.contains("got a ring"));
}

#[test]
fn typing_into_the_terminal() {
    for who in everyone() {
        let world = World::new(who);
        let argv = probe("tiocsti", &[]);
        let line: Vec<String> = argv.iter().map(|word| format!("'{}'", word.to_str().unwrap())).collect();
        let script = ["script", "-qec", &line.join(" "), "/dev/null"].map(Into::into);
        assert!(tried(world.plain(&script)).contains("typed a key"), "the control did not work as {who:?}");
        let output = tried(world.jailed(&["--pty"], &argv));
        assert!(
            output.contains("refused") && !output.contains("typed a key"),
            "ESCAPED as {who:?}: {output}"
        );
    }
}

#[test]
fn opening_a_file_by_its_handle() {
    for who in everyone() {
        let world = World::new(who);
        let victim = world.victim("v");
        tried(world.jailed(&[], &probe("handle", &[&victim])));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "original", "ESCAPED as {who:?}");
        if is_root() && who == Who::Own {
            tried(world.plain(&probe("handle", &[&victim])));
            assert!(fs::read_to_string(&victim).unwrap().starts_with("changed"), "the control did not work");
        }
    }
}

#[test]
fn disks_and_the_kernels_memory() {
    for who in everyone() {
        let world = World::new(who);
        let output = tried(world.jailed(&[], &probe("write-disk", &[])));
        assert!(!output.contains("opened"), "ESCAPED as {who:?}: {output}");
    }
    if is_root() {
        let output = tried(World::new(Who::Own).plain(&probe("write-disk", &[])));
        assert!(output.contains("opened"), "the control did not work");
    }
}

#[test]
fn calls_under_their_other_numbers() {
    // Kernels without x32 have no control; then the filter's answer is the kernel's.
    for who in everyone() {
        let output = tried(World::new(who).jailed(&[], &probe("x32", &[])));
        assert!(output.contains("no such numbering"), "ESCAPED as {who:?}");
    }
}

#[test]
fn setuid_programs_give_nothing() {
    if !is_root() {
        return not_run("to be root, who can make one");
    }
    let world = World::new(Who::Nobody);
    let program = world.outside.join("suid");
    fs::copy("/usr/bin/id", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let run = |mut command: Command| crate::support::text(&command.output().unwrap().stdout);
    let argv = [program.as_os_str().to_owned()];
    assert!(run(world.plain(&argv)).contains("euid=0"), "the control did not work");
    let output = run(world.jailed(&[], &argv));
    assert!(output.contains("uid=65534") && !output.contains("euid=0"), "ESCAPED: {output}");
}

#[test]
fn nothing_is_left_of_root_but_the_number() {
    for who in everyone() {
        let world = World::new(who);
        let argv = ["cat", "/proc/self/status"].map(Into::into);
        let output = world.jailed(&[], &argv).output().unwrap();
        let status = crate::support::text(&output.stdout);
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert!(status.contains(&format!("{set}:\t0000000000000000")), "{set} as {who:?}: {status}");
        }
        assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
    }
}
