//! Whole trees die: at the timeout, when cancelled, with the jail, with the supervisor, with the host.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hanzo_sandbox::jail::{Command, ExitStatus, Jail, JailedChild, Leftovers};

use crate::support::{World, config, everyone, probe, rounds, scratch, sh};

/// Reads the names of three daemons; they hold the pipe open for as long as they live.
fn three_daemons(from: impl Read) -> BufReader<impl Read> {
    let mut reader = BufReader::new(from);
    let mut line = String::new();
    let mut seen = 0;
    while seen < 3 {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "only {seen} daemons started");
        seen += usize::from(line.starts_with("daemon "));
    }
    reader
}

/// The end of the pipe is the end of the last of them.
fn all_dead_within(mut reader: impl Read + Send + 'static, limit: Duration) -> bool {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = reader.read_to_end(&mut rest);
        sender.send(())
    });
    receiver.recv_timeout(limit).is_ok()
}

const SECOND: Duration = Duration::from_secs(1);

fn daemons(
    jail: &Jail,
    leftovers: Leftovers,
    timeout: Option<Duration>,
) -> (JailedChild, BufReader<impl Read + use<>>) {
    let mut command = Command::new(probe("daemons", &[]));
    command.leftovers = leftovers;
    command.limits.wall_clock = timeout;
    let mut child = jail.spawn(command).unwrap();
    let stdout: OwnedFd = child.stdout.take().unwrap();
    let reader = three_daemons(File::from(stdout));
    (child, reader)
}

#[test]
fn killing_a_process_group_outside_misses_them() {
    // The control of this file: what a tool without a jail does leaves them alive.
    let world = World::new(everyone()[0]);
    let mut command = world.plain(&probe("daemons", &[]));
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut pids = Vec::new();
    let mut line = String::new();
    while pids.len() < 3 {
        line.clear();
        reader.read_line(&mut line).unwrap();
        pids.extend(line.strip_prefix("daemon ").map(|pid| pid.trim().parse::<i32>().unwrap()));
    }
    let group = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    child.wait().unwrap();
    let alive = |pid: &i32| std::path::Path::new(&format!("/proc/{pid}/status")).exists();
    let survivors = pids.iter().filter(|pid| alive(pid)).count();
    for pid in pids {
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_raw(pid).unwrap(),
            rustix::process::Signal::KILL,
        );
    }
    assert_eq!(survivors, 3);
}

#[test]
fn at_the_timeout() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    let (mut child, reader) = daemons(&jail, Leftovers::Keep, Some(Duration::from_millis(300)));
    assert_eq!(child.wait().unwrap().status, ExitStatus::TimedOut);
    assert!(all_dead_within(reader, SECOND));
}

#[test]
fn when_cancelled() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    let (mut child, reader) = daemons(&jail, Leftovers::Kill, None);
    child.kill();
    assert_eq!(child.wait().unwrap().status, ExitStatus::Killed);
    assert!(all_dead_within(reader, SECOND));
    let (child, reader) = daemons(&jail, Leftovers::Kill, None);
    drop(child);
    assert!(all_dead_within(reader, SECOND), "dropping the child left them alive");
}

#[test]
fn with_all_commands_and_with_the_jail() {
    let dir = scratch();
    let mut jail = Jail::start(config(dir.path())).unwrap();
    let (mut one, first) = daemons(&jail, Leftovers::Kill, None);
    let (_two, second) = daemons(&jail, Leftovers::Kill, None);
    jail.kill_all().unwrap();
    assert!(matches!(one.wait().unwrap().status, ExitStatus::Killed | ExitStatus::SupervisorLost));
    assert!(all_dead_within(first, SECOND) && all_dead_within(second, SECOND));
    assert!(jail.run(Command::shell(":"), 0, 0).unwrap().report.success(), "the jail stays usable");
    let (_child, reader) = daemons(&jail, Leftovers::Kill, None);
    drop(jail);
    assert!(all_dead_within(reader, SECOND));
}

#[test]
fn with_the_supervisor() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    let (mut child, reader) = daemons(&jail, Leftovers::Kill, None);
    let pid = rustix::process::Pid::from_raw(i32::try_from(jail.supervisor_pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert!(all_dead_within(reader, SECOND));
    assert_eq!(child.wait().unwrap().status, ExitStatus::SupervisorLost);
    assert!(jail.spawn(Command::shell(":")).is_err());
}

#[test]
fn with_the_host_and_what_it_left_is_swept() {
    for who in everyone() {
        for _ in 0..rounds(40) {
            let world = World::new(who);
            let mut host = world.jailed(&[], &probe("daemons", &[]));
            let mut host = host.stdout(Stdio::piped()).spawn().unwrap();
            let reader = three_daemons(host.stdout.take().unwrap());
            host.kill().unwrap();
            host.wait().unwrap();
            assert!(all_dead_within(reader, SECOND), "survivors as {who:?}");
        }
    }
}

#[test]
fn a_killed_supervisor_leaves_placeholders_that_the_next_jail_sweeps() {
    let dir = scratch();
    let workspace = dir.path().join("w");
    std::fs::create_dir(&workspace).unwrap();
    let mut settings = config(&workspace);
    settings.run_dir = Some(dir.path().join("run"));
    let jail = Jail::start(settings.clone()).unwrap();
    let (_child, reader) = daemons(&jail, Leftovers::Kill, None);
    let pid = rustix::process::Pid::from_raw(i32::try_from(jail.supervisor_pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert!(all_dead_within(reader, SECOND));
    assert!(!crate::support::listing(&workspace).is_empty(), "nothing to sweep: the test is blind");
    std::mem::forget(jail); // the host's crash: no destructor runs, but the kernel closes what it held
    let lock =
        std::fs::read_dir(dir.path().join("run")).unwrap().next().unwrap().unwrap().path().join("lock");
    unlock_everything_open_on(&lock);
    let _next = Jail::start(settings).unwrap();
    assert_eq!(crate::support::listing(&workspace), Vec::<String>::new());
}

/// What the kernel does for a process that died: gives up its locks. The description is shared, so unlocking any copy does.
fn unlock_everything_open_on(path: &std::path::Path) {
    let target = path.canonicalize().unwrap();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        if std::fs::read_link(entry.path()).is_ok_and(|open| open == target) {
            let number: i32 = entry.file_name().to_str().unwrap().parse().unwrap();
            unlock(number);
        }
    }
}

#[expect(unsafe_code, reason = "the descriptor was forgotten together with its owner")]
fn unlock(number: i32) {
    // SAFETY: the number is open in this process; unlocking does not close it.
    unsafe { libc::flock(number, libc::LOCK_UN) };
}

#[test]
fn background_processes_end_with_the_command_unless_they_are_kept() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    let started = Instant::now();
    let output = jail.run(Command::shell("sleep 60 & echo over"), 100, 100).unwrap();
    assert!(output.report.success() && !output.report.leftovers);
    assert_eq!(output.stdout.text(), "over\n");
    assert!(started.elapsed() < Duration::from_secs(30), "waited for the background process");

    let mut command = Command::shell("sleep 60 & echo over");
    command.leftovers = Leftovers::Keep;
    let mut child = jail.spawn(command).unwrap();
    let report = child.wait().unwrap();
    assert!(report.success() && report.leftovers);
    let mut stdout = BufReader::new(File::from(child.stdout.take().unwrap()));
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    drop(child); // leftovers may outlive it
    assert!(jail.run(Command::shell(":"), 0, 0).unwrap().report.success());
    drop(jail);
    assert!(all_dead_within(stdout, SECOND));
}

#[test]
fn a_command_that_cannot_be_killed_by_itself_is_killed_by_us() {
    let world = World::new(everyone()[0]);
    let started = Instant::now();
    let line = "trap '' TERM INT HUP; kill -9 1; kill -9 -1; while :; do sleep 1; done";
    let status = world.jailed(&["--timeout", "1"], &sh(line)).status().unwrap();
    // `kill -9 -1` may take the shell itself; either way it is over, and the init was not harmed.
    assert!(!status.success() && started.elapsed() < Duration::from_secs(20));
}
