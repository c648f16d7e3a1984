//! The attempts. They run in a process of their own: this test binary, started with a first argument that a function run
//! before `main` recognises, so that no attack code is shipped and none runs in the test process.

#![expect(unsafe_code, reason = "attacks are made of system calls")]

use std::ffi::CString;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    let arguments: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    if arguments.get(1).map(String::as_str) == Some(super::support::PROBE) {
        let rest: Vec<&str> = arguments[3..].iter().map(String::as_str).collect();
        println!("tried");
        let _ = std::io::stdout().flush();
        attempt(&arguments[2], &rest);
        let _ = std::io::stdout().flush();
        // SAFETY: ends the process; nothing of the test harness has started.
        unsafe { libc::_exit(0) }
    }
}

fn c(path: impl AsRef<Path>) -> CString {
    CString::new(path.as_ref().as_os_str().as_bytes()).unwrap()
}

fn attempt(name: &str, arguments: &[&str]) {
    let path = |index: usize| PathBuf::from(arguments[index]);
    match name {
        "write" => drop(fs::write(path(0), "changed")),
        "unlink" => drop(fs::remove_file(path(0))),
        "rename" => drop(fs::rename(path(0), path(1))),
        "mkdir" => drop(fs::create_dir(path(0))),
        "symlink" => drop(symlink("/nowhere", path(0))),
        "truncate" => {
            let path = c(path(0));
            // SAFETY: a NUL-terminated path.
            unsafe { libc::truncate(path.as_ptr(), 1) };
        }
        "link" => {
            let _ = fs::hard_link(path(0), path(1));
            let _ = fs::write(path(1), "changed");
        }
        "link-by-descriptor" => {
            let Ok(file) = fs::File::open(path(0)) else { return };
            let link = c(format!("/proc/self/fd/{}", file.as_raw_fd()));
            let target = c(path(1));
            // SAFETY: NUL-terminated paths.
            unsafe {
                libc::linkat(
                    libc::AT_FDCWD,
                    link.as_ptr(),
                    libc::AT_FDCWD,
                    target.as_ptr(),
                    libc::AT_SYMLINK_FOLLOW,
                )
            };
            let _ = fs::write(path(1), "changed");
        }
        "chmod" => drop(fs::set_permissions(path(0), fs::Permissions::from_mode(0o777))),
        "utime" => {
            let Ok(file) = fs::File::open(path(0)) else { return };
            let _ = file.set_times(fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH));
        }
        "xattr" => {
            let path = c(path(0));
            // SAFETY: strings are NUL-terminated, the value's length is given.
            unsafe { libc::setxattr(path.as_ptr(), c"user.hanzo".as_ptr(), b"x".as_ptr().cast(), 1, 0) };
        }
        "fifo" => {
            let path = c(path(0));
            // SAFETY: a NUL-terminated path.
            unsafe { libc::mkfifo(path.as_ptr(), 0o666) };
        }
        "write-by-descriptor" => {
            let number: i32 = arguments[0].parse().unwrap();
            let name = c(arguments[1]);
            // SAFETY: a NUL-terminated path; a bad descriptor gives an error.
            let fd = unsafe { libc::openat(number, name.as_ptr(), libc::O_WRONLY | libc::O_CREAT, 0o644) };
            if fd >= 0 {
                // SAFETY: just opened.
                let mut file = fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
                let _ = file.write_all(b"changed");
            }
        }
        "write-through-proc" => {
            for prefix in
                ["/proc/1/root", "/proc/self/root", "/proc/2/root", "/proc/1/cwd/../../../../../../../.."]
            {
                let _ = fs::write(format!("{prefix}{}", arguments[0]), "changed");
            }
        }
        "race" => race(&path(0), &path(1), arguments[2].parse().unwrap()),
        "environ" => {
            let pids = fs::read_dir("/proc").unwrap().flatten();
            for pid in pids.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok()) {
                for file in ["environ", "cmdline"] {
                    let bytes = fs::read(pid.path().join(file)).unwrap_or_default();
                    println!("{}", String::from_utf8_lossy(&bytes));
                }
            }
        }
        "environ-of" => {
            let bytes = fs::read(format!("/proc/{}/environ", arguments[0])).unwrap_or_default();
            println!("{}", String::from_utf8_lossy(&bytes));
        }
        "kill" => {
            let pid: i32 = arguments[0].parse().unwrap();
            // SAFETY: no memory involved.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        "tcp" => {
            let address = arguments[0].parse().unwrap();
            if let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(2)) {
                let _ = stream.write_all(b"out");
            }
        }
        "udp" => {
            if let Ok(socket) = UdpSocket::bind("0.0.0.0:0") {
                let _ = socket.send_to(b"out", arguments[0]);
            }
        }
        "unix-stream" => {
            if let Ok(mut stream) = UnixStream::connect(path(0)) {
                let _ = stream.write_all(b"out");
            }
        }
        "unix-datagram" => {
            if let Ok(socket) = UnixDatagram::unbound() {
                let _ = socket.send_to(b"out", path(0));
            }
        }
        "unix-pair" => {
            if let Ok((socket, _other)) = UnixDatagram::pair() {
                let _ = socket.connect(path(0));
                let _ = socket.send(b"out");
                let _ = socket.send_to(b"out", path(0));
            }
        }
        "unix-abstract" => {
            use std::os::linux::net::SocketAddrExt;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(arguments[0]).unwrap();
            if let Ok(mut stream) = UnixStream::connect_addr(&address) {
                let _ = stream.write_all(b"out");
            }
        }
        "socket" => {
            let numbers: Vec<i32> = arguments.iter().map(|number| number.parse().unwrap()).collect();
            // SAFETY: plain call.
            if unsafe { libc::socket(numbers[0], numbers[1], numbers[2]) } >= 0 {
                println!("got a socket");
            }
        }
        "cpu" => loop {
            std::hint::spin_loop();
        },
        "memory" => {
            let bytes: usize = arguments[0].parse().unwrap();
            let mut block: Vec<u8> = Vec::new();
            if block.try_reserve_exact(bytes).is_ok() {
                block.resize(bytes, 1);
                println!("got it all");
            }
        }
        "daemons" => daemons(),
        _ => super::escape_kernel::attempt(name, arguments),
    }
}

/// Swaps a link between a directory inside and one outside, and writes through it.
fn race(inside: &Path, outside: &Path, rounds: usize) {
    let link = inside.join("link");
    let (a, b) = (inside.join("a"), inside.join("b"));
    fs::create_dir(inside.join("dir")).unwrap();
    symlink(inside.join("dir"), &a).unwrap();
    symlink(outside, &b).unwrap();
    fs::rename(&a, &link).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for target in [outside, inside.join("dir").as_path()] {
                    let _ = symlink(target, &a);
                    let _ = fs::rename(&a, &link);
                }
            }
        });
        for _ in 0..rounds {
            let _ = fs::write(link.join("leak"), "changed");
        }
        over.store(true, Ordering::Relaxed);
    });
}

/// Processes that do all they can not to be found: own session, own group, orphaned, signals ignored. They hold standard
/// output open, so its end is theirs.
fn daemons() {
    for _ in 0..3 {
        // SAFETY: this process has one thread; the children only sleep.
        unsafe {
            if libc::fork() == 0 {
                libc::setsid();
                if libc::fork() == 0 {
                    libc::setsid();
                    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
                        libc::signal(signal, libc::SIG_IGN);
                    }
                    println!("daemon {}", libc::getpid());
                    let _ = std::io::stdout().flush();
                    let end = Instant::now() + Duration::from_mins(5);
                    while Instant::now() < end {
                        libc::poll(std::ptr::null_mut(), 0, 10_000);
                    }
                    libc::_exit(0);
                }
                libc::_exit(0);
            }
        }
    }
    let mut nothing = Vec::new();
    let (read, _write) = std::io::pipe().unwrap();
    let _ = std::io::BufReader::new(read).read_to_end(&mut nothing); // for ever
}
