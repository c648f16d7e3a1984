//! The levels: the highest that works is taken, what is missing is said, and a requirement is kept.

use std::fs;

use hanzo_sandbox::jail::{Command, Jail, JailConfig, JailError, Level, probe as probe_level};

use crate::support::{JAIL, Who, World, config, everyone, probe, scratch, sh, text, tried};

#[test]
fn the_whole_stack_passes_its_self_test_here() {
    // Not a claim about every machine: where this fails, the report says why, and so does the failure.
    let dir = scratch();
    let report = probe_level(&config(dir.path()));
    assert_eq!(report.level, Level::Full, "{report:?}");
    assert!(report.missing.is_empty(), "{report:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "the self-test left something behind");
}

fn without(change: impl FnOnce(&mut JailConfig)) -> JailConfig {
    let mut settings = config(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")));
    change(&mut settings);
    settings
}

#[test]
fn without_namespaces_landlock_and_seccomp_remain_and_the_gap_is_named() {
    let settings = without(|settings| settings.facilities.namespaces = false);
    let report = probe_level(&settings);
    assert_eq!(report.level, Level::LandlockSeccomp, "{report:?}");
    assert!(report.missing.iter().any(|missing| missing.facility.contains("namespaces")), "{report:?}");
}

#[test]
fn without_landlock_the_level_is_not_full() {
    let settings = without(|settings| settings.facilities.landlock = false);
    let report = probe_level(&settings);
    assert_eq!(report.level, Level::LandlockSeccomp, "{report:?}");
    let jail = Jail::start(settings).unwrap();
    assert!(jail.has_namespaces());
    assert!(jail.missing().iter().any(|missing| missing.facility == "Landlock"), "{:?}", jail.missing());
}

#[test]
fn with_neither_there_is_no_jail() {
    let settings = without(|settings| {
        settings.facilities.landlock = false;
        settings.facilities.namespaces = false;
    });
    assert_eq!(probe_level(&settings).level, Level::PathCheck);
    assert!(matches!(Jail::start(settings), Err(JailError::BelowRequired { reached: Level::PathCheck, .. })));
}

#[test]
fn a_requirement_is_kept() {
    let settings = without(|settings| {
        settings.facilities.landlock = false;
        settings.require = Level::Full;
    });
    let error = Jail::start(settings).unwrap_err();
    assert!(matches!(error, JailError::BelowRequired { required: Level::Full, .. }), "{error}");
    assert!(error.to_string().contains("Landlock"), "{error}");
}

/// A shell line in a user namespace that may not have user namespaces inside.
fn in_a_poor_kernel(line: &str) -> Vec<std::ffi::OsString> {
    let line = format!("echo 0 > /proc/sys/user/max_user_namespaces && {line}");
    ["unshare", "-Ur", "sh", "-c", &line].map(Into::into).to_vec()
}

#[test]
fn a_kernel_that_refuses_user_namespaces() {
    for who in everyone() {
        let world = World::new(who);
        let output = world.plain(&in_a_poor_kernel(&format!("{JAIL} --explain"))).output().unwrap();
        let said = text(&output.stdout);
        assert!(said.contains("level: landlock+seccomp"), "as {who:?}: {said}{}", text(&output.stderr));
        assert!(said.contains("user namespaces") && said.contains("max_user_namespaces"), "{said}");

        let line = format!("{JAIL} --require full -- sh -c 'echo ran'");
        let output = world.plain(&in_a_poor_kernel(&line)).output().unwrap();
        assert!(!output.status.success() && !text(&output.stdout).contains("ran"), "as {who:?}");

        let victim = world.victim("v");
        let line = format!(
            "{JAIL} -- sh -c 'echo tried; echo changed > {0}; echo new > {1}/new; echo in > inside; echo t > $TMPDIR/t'",
            victim.display(),
            world.outside.display()
        );
        tried(world.plain(&in_a_poor_kernel(&line)));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "original", "ESCAPED as {who:?}");
        assert!(!world.outside.join("new").exists(), "ESCAPED as {who:?}");
        assert_eq!(fs::read_to_string(world.workspace.join("inside")).unwrap(), "in\n");
    }
}

#[test]
fn the_lower_level_still_stops_writes_network_ptrace_and_leaks() {
    for who in everyone() {
        let world = World::new(who);
        let victim = world.victim("v");
        tried(world.plain(&probe("write", &[&victim])));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "changed", "the control did not work");

        let world = World::new(who);
        let victim = world.victim("v");
        let options = ["--no-namespaces"];
        for argv in [
            probe("write", &[&victim]),
            probe("unlink", &[&victim]),
            probe("rename", &[&victim, &world.workspace.join("x")]),
            probe("truncate", &[&victim]),
            probe("remount", &[&world.outside]),
            probe("write-by-descriptor", &[&"0", &"leak"]),
        ] {
            let mut command = world.jailed(&options, &argv);
            command.stdin(fs::File::open(&world.outside).unwrap());
            tried(command);
            assert_eq!(fs::read_to_string(&victim).unwrap(), "original", "ESCAPED as {who:?}: {argv:?}");
            assert!(!world.outside.join("leak").exists(), "ESCAPED as {who:?}: {argv:?}");
        }
        for (argv, sign) in [
            (probe("socket", &[&"2", &"1", &"0"]), "got a socket"),
            (probe("io_uring", &[]), "got a ring"),
            (probe("ptrace-own-child", &[]), "traced"),
            (probe("namespace", &[]), "namespace by way"),
        ] {
            assert!(tried(world.plain(&argv)).contains(sign), "the control of {argv:?} did not work");
            assert!(!tried(world.jailed(&options, &argv)).contains(sign), "ESCAPED as {who:?}: {argv:?}");
        }
    }
}

#[test]
fn the_lower_level_hides_credentials() {
    for who in everyone() {
        let world = World::new(who);
        fs::create_dir(world.outside.join("ssh")).unwrap();
        for name in ["ssh/key", "netrc"] {
            fs::write(world.outside.join(name), "secret").unwrap();
        }
        fs::write(world.outside.join("notes"), "open").unwrap();
        std::os::unix::fs::symlink(world.outside.join("ssh"), world.workspace.join("link")).unwrap();
        let line = format!(
            "echo tried; cd {}; cat ssh/key netrc {}/link/key notes",
            world.outside.display(),
            world.workspace.display()
        );
        let control = tried(world.plain(&sh(&line)));
        assert_eq!(control.matches("secret").count(), 3, "the control did not work");
        let (ssh, netrc) = (world.outside.join("ssh"), world.outside.join("netrc"));
        let options = [
            "--no-namespaces",
            "--unreadable",
            ssh.to_str().unwrap(),
            "--unreadable",
            netrc.to_str().unwrap(),
        ];
        let output = tried(world.jailed(&options, &sh(&line)));
        assert!(!output.contains("secret") && output.contains("open"), "as {who:?}: {output}");
    }
}

#[test]
fn the_lower_level_kills_daemons_as_well() {
    let dir = scratch();
    let mut settings = config(dir.path());
    settings.facilities.namespaces = false;
    let jail = Jail::start(settings).unwrap();
    let output =
        jail.run(Command::shell("setsid sh -c 'sleep 60 & sleep 60' & sleep 60 & echo over"), 100, 100);
    // The output ends only when the last holder of the pipe is gone.
    assert_eq!(output.unwrap().stdout.text(), "over\n");
    let line = "setsid sleep 60 & sleep 60";
    let mut child = jail.spawn(Command::shell(line).timeout(std::time::Duration::from_millis(200))).unwrap();
    let drained = hanzo_sandbox::jail::drain_bounded(fs::File::from(child.stdout.take().unwrap()), 10, 10);
    assert_eq!(drained.unwrap().total, 0);
    assert_eq!(child.wait().unwrap().status, hanzo_sandbox::jail::ExitStatus::TimedOut);
}

#[test]
fn a_host_binary_that_did_not_opt_in_is_an_error_not_a_jail() {
    let dir = scratch();
    let mut settings = config(dir.path());
    settings.host_binary = "/bin/ls".into();
    let error = Jail::start(settings).unwrap_err();
    assert!(error.to_string().contains("run_personality"), "{error}");
}

#[test]
fn the_command_line_says_what_it_cannot_do() {
    let world = World::new(Who::Own);
    let output = world.jailed(&[], &["/no/such/program".into()]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("cannot run `/no/such/program`"), "{}", text(&output.stderr));
    let output = world.jailed(&["--write", "/"], &sh("true")).output().unwrap();
    assert!(text(&output.stderr).contains("cannot use `/`"), "{}", text(&output.stderr));
}
