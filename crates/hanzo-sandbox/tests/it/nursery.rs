//! The process that supervisors are forked from: it holds nothing, serves many jails, and neither its death nor its host's
//! leaves anything behind.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hanzo_sandbox::jail::{Command, Jail, JailConfig};

use crate::support::{JAIL, World, config, everyone, scratch, sh};

/// A configuration whose nursery no other test uses: it belongs to a copy of the binary.
fn own_nursery(dir: &Path) -> JailConfig {
    let binary = dir.join("host");
    std::fs::copy(JAIL.as_str(), &binary).unwrap();
    let workspace = dir.join("w");
    std::fs::create_dir(&workspace).unwrap();
    let mut settings = config(&workspace);
    settings.host_binary = binary;
    settings
}

/// The parent and the session of a process.
fn parent_and_session(pid: u32) -> (u32, u32) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    (fields[1].parse().unwrap(), fields[3].parse().unwrap())
}

fn works(jail: &Jail) -> bool {
    jail.run(Command::shell(":"), 0, 0).is_ok_and(|output| output.report.success())
}

#[test]
fn jails_share_one_that_holds_nothing_of_the_host() {
    let dir = scratch();
    let settings = own_nursery(dir.path());
    let (one, two) = (Jail::start(settings.clone()).unwrap(), Jail::start(settings).unwrap());
    let (nursery, session) = parent_and_session(one.supervisor_pid());
    assert_eq!(parent_and_session(two.supervisor_pid()).0, nursery);
    assert_eq!(parent_and_session(nursery).0, std::process::id());
    assert_ne!(
        session,
        parent_and_session(std::process::id()).1,
        "an interrupt at the terminal would end it"
    );
    let at = |name: &str| format!("/proc/{nursery}/{name}");
    assert!(!std::env::vars_os().collect::<Vec<_>>().is_empty(), "nothing to inherit: the test is blind");
    assert_eq!(std::fs::read(at("environ")).unwrap(), b"");
    assert_eq!(std::fs::read_link(at("cwd")).unwrap(), Path::new("/"));
    let mut open: Vec<String> = std::fs::read_dir(at("fd"))
        .unwrap()
        .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap().to_string_lossy().into_owned())
        .filter(|target| target != "/dev/null")
        .collect();
    open.sort();
    assert!(
        matches!(&open[..], [host, socket] if host.contains("pidfd") && socket.starts_with("socket:")),
        "{open:?}"
    );
    assert!(works(&one) && works(&two));
}

#[test]
fn a_killed_one_takes_no_jail_with_it_and_the_next_jail_has_another() {
    let dir = scratch();
    let settings = own_nursery(dir.path());
    let jail = Jail::start(settings.clone()).unwrap();
    let (first, _) = parent_and_session(jail.supervisor_pid());
    let pid = rustix::process::Pid::from_raw(i32::try_from(first).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let start = Instant::now();
    while std::fs::read_to_string(format!("/proc/{first}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(start.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(works(&jail));
    let next = Jail::start(settings).unwrap();
    assert!(works(&next));
    assert_ne!(parent_and_session(next.supervisor_pid()).0, first);
}

#[test]
fn no_supervisor_that_ended_waits_as_a_zombie() {
    let dir = scratch();
    let settings = own_nursery(dir.path());
    let keep = Jail::start(settings.clone()).unwrap();
    let (nursery, _) = parent_and_session(keep.supervisor_pid());
    for _ in 0..5 {
        drop(Jail::start(settings.clone()).unwrap());
    }
    let children = || {
        std::fs::read_to_string(format!("/proc/{nursery}/task/{nursery}/children"))
            .unwrap()
            .split_whitespace()
            .count()
    };
    let start = Instant::now();
    while children() > 1 {
        assert!(start.elapsed() < Duration::from_secs(10), "{} children left", children());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn it_ends_with_its_host_however_that_ends() {
    let world = World::new(everyone()[0]);
    let mut host = world.jailed(&[], &sh("echo up; sleep 60"));
    let mut host = host.stdout(Stdio::piped()).spawn().unwrap();
    let mut up = [0; 3];
    std::io::Read::read_exact(host.stdout.as_mut().unwrap(), &mut up).unwrap();
    let (pid, task) = (host.id(), host.id());
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{task}/children")).unwrap();
    let nursery: u32 = children.trim().parse().unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    let start = Instant::now();
    while std::fs::read_to_string(format!("/proc/{nursery}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(start.elapsed() < Duration::from_secs(10), "the nursery outlived its host");
        std::thread::sleep(Duration::from_millis(1));
    }
}
