//! Files that bite: loops, magic links, FIFOs, devices, closed directories, full disks; and the whole suite again
//! as an ordinary user.

use std::{
    fs,
    io::{ErrorKind, Write},
    os::unix::{
        fs::{PermissionsExt, symlink},
        net::UnixListener,
    },
    path::Path,
    process::Command,
    sync::mpsc,
    time::Duration,
};

use hanzo_sandbox::{
    SandboxConfig,
    paths::{Overwrite, PathError, SpecialKind, Workspace, WriteMode},
};

use crate::stage::{FACILITIES, Stage, each_way, is_unreadable, read};

const DISK: &str = "HANZO_TEST_FULL_DISK";
const AS_NOBODY: &str = "HANZO_TEST_AS_NOBODY";

fn p(text: &str) -> &Path {
    Path::new(text)
}

#[test]
fn loops_end() {
    each_way(|stage, how| {
        stage.link("b", "a");
        stage.link("a", "b");
        stage.link("self/x", "self");
        let ws = stage.open(how);
        for name in ["a", "a/x", "self", "self/y"] {
            assert!(matches!(ws.open_read(p(name)), Err(PathError::Loop { .. })), "{name}");
            assert!(
                matches!(ws.open_write(p(name), WriteMode::Truncate), Err(PathError::Loop { .. })),
                "{name}"
            );
        }
    });
}

#[test]
fn magic_links_are_refused() {
    each_way(|stage, how| {
        stage.link("/proc/self/root", "root");
        stage.link("/proc/self/cwd", "cwd");
        let holder = fs::File::open(stage.outside.join("secret.txt")).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&holder);
        stage.link(format!("/proc/self/fd/{fd}"), "fd");
        let free = stage.open_config(&SandboxConfig::default(), how);
        let strict = stage.open(how);
        let through_root = format!("root{}", stage.outside.join("secret.txt").display());
        for name in [through_root.as_str(), "cwd/Cargo.toml", "fd"] {
            assert!(matches!(free.open_read(p(name)), Err(PathError::MagicLink { .. })), "{name}");
            for ws in [&free, &strict] {
                assert!(ws.open_read(p(name)).unwrap_err().is_denial(), "{name}");
                assert!(ws.open_write(p(name), WriteMode::Truncate).unwrap_err().is_denial(), "{name}");
            }
        }
        let direct = format!("/proc/self/fd/{fd}");
        assert!(matches!(free.open_read(p(&direct)), Err(PathError::MagicLink { .. })));
        assert!(matches!(free.open_read(p("/proc/self/root/etc/passwd")), Err(PathError::MagicLink { .. })));
        // Control: the same link hands the file over when opened plainly.
        assert_eq!(fs::read_to_string(&direct).unwrap(), "SECRET");
        stage.assert_outside_untouched();
    });
}

#[test]
fn our_own_environment_and_memory_are_unreadable() {
    each_way(|stage, how| {
        let ws = stage.open_config(&SandboxConfig::default(), how);
        let own = format!("/proc/{}/environ", std::process::id());
        for name in ["/proc/self/environ", own.as_str(), "/proc/thread-self/environ", "/proc/self/maps"] {
            // Control: it is there to be read.
            assert!(fs::read(name).is_ok(), "{name}");
            assert!(is_unreadable(&ws.open_read(p(name))), "{name}");
        }
        // Harmless kernel files stay readable.
        assert!(read(&ws, "/proc/cpuinfo").unwrap().contains("processor"));
        assert!(!read(&ws, "/proc/sys/kernel/ostype").unwrap().is_empty());
    });
}

#[test]
fn fifos_sockets_and_devices_are_refused_at_once() {
    let (done, finished) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        each_way(|stage, how| {
            let made = Command::new("mkfifo").arg(stage.ws.join("fifo")).status().unwrap();
            assert!(made.success());
            let _socket = UnixListener::bind(stage.ws.join("socket")).unwrap();
            stage.link("/dev/zero", "zero");
            let ws = stage.open_config(&SandboxConfig::default(), how);
            for (name, want) in [
                ("fifo", SpecialKind::Fifo),
                ("socket", SpecialKind::Socket),
                ("zero", SpecialKind::Device),
                ("/dev/zero", SpecialKind::Device),
            ] {
                match ws.open_read(p(name)) {
                    Err(error @ PathError::Special { kind, .. }) => {
                        assert_eq!(kind, want);
                        assert!(error.is_denial() && error.hint().is_some());
                    }
                    other => panic!("{name}: {other:?}"),
                }
            }
            assert!(matches!(ws.open_write(p("fifo"), WriteMode::Append), Err(PathError::Special { .. })));
            assert!(matches!(ws.replace(p("fifo"), b"x"), Err(PathError::Special { .. })));
            assert_eq!(ws.stat(p("fifo")).unwrap().kind, hanzo_sandbox::paths::FileKind::Special);
        });
        done.send(()).unwrap();
    });
    let in_time = finished.recv_timeout(Duration::from_secs(20));
    assert!(!matches!(in_time, Err(mpsc::RecvTimeoutError::Timeout)), "a FIFO held the tool up");
    worker.join().unwrap();
}

/// Only an ordinary user can be refused; see [`everything_again_as_an_ordinary_user`] for the run that counts.
#[test]
fn closed_directories_and_read_only_files_stay_as_they_are() {
    each_way(|stage, how| {
        let (closed, frozen) = (stage.ws.join("closed"), stage.ws.join("frozen"));
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("f"), "f").unwrap();
        fs::write(&frozen, "frozen").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(&frozen, fs::Permissions::from_mode(0o444)).unwrap();
        let ws = stage.open(how);
        let (read, replaced) = (ws.open_read(p("closed/f")), ws.replace(p("frozen"), b"x"));
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            assert!(read.is_ok() && replaced.is_ok(), "root is not held up by modes");
        } else {
            assert_eq!(read.unwrap_err().io_kind(), Some(ErrorKind::PermissionDenied));
            assert_eq!(replaced.unwrap_err().io_kind(), Some(ErrorKind::PermissionDenied));
            assert_eq!(fs::read(&frozen).unwrap(), b"frozen");
        }
    });
}

#[test]
fn a_full_disk_leaves_the_original() {
    // This test runs itself once more, on a disk of 1 MiB.
    if let Some(disk) = std::env::var_os(DISK) {
        return fill_the_disk(Path::new(&disk));
    }
    let stage = Stage::new();
    let script = "mount -t tmpfs -o size=1m tmpfs \"$1\" && exec \"$2\" --exact hostile::a_full_disk_leaves_the_original";
    let status = Command::new("unshare")
        .args(["-Urm", "sh", "-c", script, "sh"])
        .arg(&stage.ws)
        .arg(std::env::current_exe().unwrap())
        .env(DISK, &stage.ws)
        .output()
        .expect("`unshare` is part of util-linux");
    let text =
        String::from_utf8_lossy(&status.stdout).into_owned() + &String::from_utf8_lossy(&status.stderr);
    assert!(status.status.success() && text.contains("1 passed"), "{text}");
}

fn fill_the_disk(disk: &Path) {
    for how in FACILITIES {
        let ws = Workspace::open_with(disk, &SandboxConfig::default(), how).unwrap();
        ws.replace(p("file"), b"original").unwrap();
        let error = ws.replace(p("file"), &vec![b'x'; 4 << 20]).unwrap_err();
        assert_eq!(error.io_kind(), Some(ErrorKind::StorageFull));
        assert!(!error.is_denial());
        assert_eq!(fs::read(disk.join("file")).unwrap(), b"original");
        let names: Vec<_> = fs::read_dir(disk).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["file"], "the temporary file is gone");
        // Control: writing in place would have destroyed it.
        let in_place = ws.open_write(p("file"), WriteMode::Truncate).unwrap().write_all(&vec![b'x'; 4 << 20]);
        assert_eq!(in_place.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_ne!(fs::read(disk.join("file")).unwrap(), b"original");
        ws.remove_file(p("file")).unwrap();
    }
}

#[test]
fn a_rename_race_cannot_carry_a_link_into_place() {
    // The last component is a link by the time it is opened: creation must not go through it.
    each_way(|stage, how| {
        symlink(stage.outside.join("planted"), stage.ws.join("planted")).unwrap();
        let ws = stage.open(how);
        assert_eq!(ws.create_new(p("planted")).unwrap_err().io_kind(), Some(ErrorKind::AlreadyExists));
        ws.rename(p("inside.txt"), p("planted"), Overwrite::Replace).unwrap();
        assert_eq!(fs::read(stage.ws.join("planted")).unwrap(), b"inside");
        stage.assert_outside_untouched();
    });
}

#[test]
fn everything_again_as_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() || std::env::var_os(AS_NOBODY).is_some() {
        // The other tests of this run are it.
        return;
    }
    // The build directory may be closed to others, so the test binary goes somewhere open.
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let exe = dir.path().join("tests");
    // Copied by another process: a descriptor of ours, open for writing, could be inherited by a child that another
    // test starts at that moment, and the copy would be "busy".
    let copied =
        Command::new("install").args(["-m", "755"]).arg(std::env::current_exe().unwrap()).arg(&exe).status();
    assert!(copied.unwrap().success());
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&exe)
        .args(["paths::", "hostile::", "protected::", "config::", "--skip=escape", "--test-threads=2"])
        .current_dir("/")
        .env(AS_NOBODY, "1")
        .env_remove("TMPDIR")
        .output()
        .expect("`setpriv` is part of util-linux");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("a_full_disk_leaves_the_original ... ok"), "{text}");
}
