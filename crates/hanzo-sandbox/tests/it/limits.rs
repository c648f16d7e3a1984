//! Bombs, small ones, and that each bound holds and says which it was.

use std::fs;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use hanzo_sandbox::jail::{Command, ExitStatus, Jail, Limit, LimitMechanism, Limits, drain_bounded};

use crate::support::{World, config, everyone, is_root, probe, scratch, sh, text};

const MIB: u64 = 1024 * 1024;

fn limited(argv: Vec<std::ffi::OsString>, limits: Limits) -> Command {
    let mut command = Command::new(argv);
    command.limits = limits;
    command
}

#[test]
fn a_fork_bomb_is_contained_by_the_pid_namespace() {
    for who in everyone() {
        let world = World::new(who);
        let line = "n=0; while [ $n -lt 2000 ]; do sleep 300 & n=$((n+1)); done; echo all";
        let output = world.jailed(&["--processes", "50", "--timeout", "20"], &sh(line)).output().unwrap();
        // The shell cannot fork any more and says so; it did not get its 2000.
        assert!(!text(&output.stdout).contains("all"), "as {who:?}: {}", text(&output.stdout));
        assert!(text(&output.stderr).contains("fork"), "as {who:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_fork_bomb_is_counted_where_the_kernel_does_not_count() {
    let dir = scratch();
    let mut settings = config(dir.path());
    settings.facilities.pid_max = false;
    let jail = Jail::start(settings).unwrap();
    assert_eq!(jail.process_limit(), LimitMechanism::Counted);
    let line = "n=0; while [ $n -lt 300 ]; do sleep 300 & n=$((n+1)); done; wait";
    let limits = Limits { processes: Some(50), ..Limits::default() };
    let report = jail.run(limited(sh(line), limits.clone()), 0, 100).unwrap().report;
    assert_eq!(report.status, ExitStatus::LimitReached(Limit::Processes));
    let few = jail.run(limited(sh("for i in 1 2 3; do sleep 0.2 & done; wait"), limits), 0, 100).unwrap();
    assert!(few.report.success());
}

#[test]
fn a_memory_bomb_is_refused_and_the_trees_sum_is_watched() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    let limits = Limits { memory: Some(128 * MIB), ..Limits::default() };
    let ask = |bytes: u64| {
        let argv = probe("memory", &[&bytes.to_string()]);
        jail.run(limited(argv, limits.clone()), 1000, 1000).unwrap().stdout.text()
    };
    assert!(ask(32 * MIB).contains("got it all"), "the control did not work");
    assert!(!ask(512 * MIB).contains("got it all"));

    // Four processes of 60 MiB each: none is too large, all together are.
    let one = "x=bytearray(60*2**20); import time; time.sleep(20)";
    let line = format!("for i in 1 2 3 4; do /usr/bin/python3 -c '{one}' & done; wait");
    let report = jail.run(limited(sh(&line), limits), 0, 1000).unwrap().report;
    assert_eq!(report.status, ExitStatus::LimitReached(Limit::Memory));
}

#[test]
fn commands_keep_to_the_processors_they_are_given() {
    let all = std::thread::available_parallelism().unwrap().get();
    let line = "nproc; taskset -pc 0-1023 $$ >/dev/null 2>&1 && echo taken; nproc";
    let dir = scratch();
    let ask = |cores: Option<usize>| {
        let mut settings = config(dir.path());
        settings.cores = cores.and_then(NonZeroUsize::new);
        Jail::start(settings).unwrap().run(Command::new(sh(line)), 1000, 1000).unwrap().stdout.text()
    };
    assert_eq!(ask(None), format!("{all}\ntaken\n{all}\n"), "the control did not work");
    assert_eq!(ask(Some(1)), "1\n1\n");
    assert_eq!(ask(Some(4096)).lines().next(), Some(all.to_string().as_str()), "more than there are");
}

#[test]
fn spinning_ends_with_its_processor_time() {
    for who in everyone() {
        let world = World::new(who);
        let started = Instant::now();
        let output = world.jailed(&["--cpu", "1"], &probe("cpu", &[])).output().unwrap();
        assert!(text(&output.stderr).contains("CpuTime"), "as {who:?}: {}", text(&output.stderr));
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn files_do_not_grow_past_their_bound() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    let limits = Limits { file_size: Some(MIB), ..Limits::default() };
    let line = "exec dd if=/dev/zero of=big bs=1M count=3 status=none";
    let report = jail.run(limited(sh(line), limits), 0, 1000).unwrap().report;
    assert_eq!(report.status, ExitStatus::LimitReached(Limit::FileSize));
    assert_eq!(fs::metadata(dir.path().join("big")).unwrap().len(), MIB);
}

#[test]
fn descriptors_are_bounded() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    let limits = Limits { open_files: Some(40), ..Limits::default() };
    let script =
        "import os\nn=0\ntry:\n  while n<500: os.open('/dev/null',0); n+=1\nexcept OSError: pass\nprint(n)";
    let argv = ["/usr/bin/python3", "-c", script].map(Into::into).to_vec();
    let count = |limits| jail.run(limited(argv.clone(), limits), 100, 100).unwrap().stdout.text();
    assert!(count(limits).trim().parse::<u32>().unwrap() < 40);
    assert_eq!(count(Limits::default()).trim(), "500");
}

fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn a_gibibyte_of_output_is_drained_in_little_memory() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    let mut child = jail.spawn(Command::shell("head -c 1073741824 /dev/zero; echo end")).unwrap();
    let stdout = fs::File::from(child.stdout.take().unwrap());
    let before = resident();
    let drained = drain_bounded(stdout, 1024, 1024).unwrap();
    let growth = resident().saturating_sub(before);
    assert_eq!(drained.total, 1024 * MIB + 4);
    assert!(drained.tail.ends_with(b"\0end\n") && drained.head == [0; 1024]);
    assert!(growth < 64 * MIB, "grew by {growth} bytes");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_thousand_commands_leak_no_descriptor_and_no_zombie() {
    let dir = scratch();
    let jail = Jail::start(config(dir.path())).unwrap();
    let pid = jail.supervisor_pid();
    let run = || assert!(jail.run(Command::shell(":"), 10, 10).unwrap().report.success());
    run();
    let children = || fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    // The supervisor is closed to ordinary users, so they can count only their own side.
    let open = |pid: &str| fs::read_dir(format!("/proc/{pid}/fd")).ok().map(Iterator::count);
    let (own, supervisor) = (open("self").unwrap(), open(&pid.to_string()));
    assert_eq!(supervisor.is_some(), is_root());
    for _ in 0..1000 {
        run();
    }
    // The last inits may still be on their way out, which takes a busy machine a while; what leaks stays for ever.
    let deadline = Instant::now() + Duration::from_secs(30);
    while !children().trim().is_empty() {
        assert!(Instant::now() < deadline, "zombies: {}", children());
        std::thread::sleep(Duration::from_millis(5));
    }
    // One command's worth may be on its way; other tests of this process open descriptors of their own, tens of them.
    assert!(open("self").unwrap() < own + 300);
    if let (Some(before), Some(now)) = (supervisor, open(&pid.to_string())) {
        assert!(now <= before + 3, "{now} descriptors, {before} before");
    }
}
