//! The jail through the program: what the agent's commands will run in.

use std::io::Read as _;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::Thread;

use hanzo_dev::spawner::JailSpawner;
use hanzo_protocol::spawn::{ProcessStatus, SpawnError, SpawnRequest, Spawner, Streams};
use hanzo_sandbox::jail::JailConfig;
use hanzo_testkit::place::seen_from_a_jail;

use crate::support::World;

#[test]
fn a_command_runs_with_its_own_exit_code_and_streams() {
    let world = World::new();
    let ran = world.run_with_input(&["sandbox", "--", "sh", "-c", "cat; echo oops >&2; exit 7"], "hello");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (7, "hello", "oops\n"));
}

#[test]
fn the_workspace_is_writable_and_nothing_else_is() {
    let world = World::new();
    // Not beneath `/tmp`, of which the jail has its own.
    let directory = tempfile::tempdir_in(seen_from_a_jail(env!("CARGO_TARGET_TMPDIR").as_ref())).unwrap();
    let outside = directory.path().join("outside");
    let attempt = format!("echo in > inside; echo out > {} || echo refused", outside.display());
    // The control: without the jail the same line writes both.
    let free =
        std::process::Command::new("sh").args(["-c", &attempt]).current_dir(world.home()).output().unwrap();
    assert!(free.status.success());
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "out\n");
    std::fs::write(&outside, "untouched").unwrap();

    let shown = world.run(&["sandbox", "--", "sh", "-c", &attempt]).stdout;
    assert_eq!(shown, "refused\n");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "untouched");
    assert_eq!(std::fs::read_to_string(world.workspace().join("inside")).unwrap(), "in\n");
}

#[test]
fn settings_and_options_widen_what_may_be_written() {
    let world = World::new();
    let (a, b) = (world.home().join("a"), world.home().join("b"));
    for directory in [&a, &b] {
        std::fs::create_dir(directory).unwrap();
    }
    world.user(&format!("[sandbox]\nallow_write = [{:?}, \"/not/there\"]\n", a.to_str().unwrap()));
    let attempt = format!("touch {}/x && touch {}/x", a.display(), b.display());
    assert_ne!(world.run(&["sandbox", "--", "sh", "-c", &attempt]).code, 0);
    world.run(&["sandbox", "--write", b.to_str().unwrap(), "--", "sh", "-c", &attempt]).ok();
    assert!(a.join("x").exists() && b.join("x").exists());
}

#[test]
fn credentials_and_our_own_settings_are_out_of_reach() {
    let world = World::new();
    world.write(".ssh/id_test", "canary").write(".local/share/hanzo/store", "canary");
    let home = world.home().to_str().unwrap();
    let read = format!("cat {home}/.ssh/id_test {home}/.local/share/hanzo/store 2>/dev/null; echo end");
    assert_eq!(world.run(&["sandbox", "--", "sh", "-c", &read]).ok(), "end\n");

    // Even when the whole home is the workspace, what the user decided stays as it is.
    world.user("model = \"mine\"\n");
    let write = format!("echo evil > {home}/.config/hanzo/settings.toml; echo ok > {home}/free");
    world.run(&["-C", home, "sandbox", "--", "sh", "-c", &write]);
    assert_eq!(
        std::fs::read_to_string(world.home().join(".config/hanzo/settings.toml")).unwrap(),
        "model = \"mine\"\n"
    );
    assert!(world.home().join("free").exists());
}

#[test]
fn an_untrusted_workspace_cannot_open_its_own_jail() {
    let world = World::new();
    world.project("[sandbox]\nmode = \"off\"\nnetwork = true\nallow_write = [\"/\"]\n");
    let shown = world.run(&["sandbox", "--explain", "--json"]).json();
    assert_eq!((&shown["network"], &shown["writable"]), (&false.into(), &serde_json::json!([])));
}

#[test]
fn explain_tells_the_level_the_writable_set_and_what_is_missing() {
    let world = World::new();
    let shown = world.run(&["sandbox", "--explain"]).ok();
    for word in ["level ", "writable ", "network ", "project"] {
        assert!(shown.contains(word), "`{word}` is missing from:\n{shown}");
    }
    let json = world.run(&["sandbox", "--explain", "--json"]).json();
    assert!(["full", "landlock+seccomp"].contains(&json["level"].as_str().unwrap()), "{json:#}");
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_all_it_started() {
    let world = World::new();
    let ran =
        world.run(&["sandbox", "--timeout", "1", "--", "sh", "-c", "(sleep 300; touch late) & sleep 300"]);
    assert_eq!(ran.code, 124, "{ran:#?}");
    assert!(ran.stderr.contains("--timeout"), "{}", ran.stderr);
}

#[test]
fn what_cannot_be_run_is_said() {
    let world = World::new();
    let ran = world.run(&["sandbox", "--", "no-such-program"]);
    assert_eq!(ran.code, 42);
    assert!(ran.stderr.contains("no-such-program"), "{}", ran.stderr);
    world.user("[sandbox]\nmode = \"off\"\n");
    let ran = world.run(&["sandbox", "--", "true"]);
    assert_eq!(ran.code, 44);
    assert!(ran.stderr.contains("sandbox.mode"), "{}", ran.stderr);
    assert_eq!(world.run(&["sandbox"]).code, 2);
}

#[test]
fn the_doctor_tells_what_is_in_order_and_what_is_not() {
    let world = World::new();
    let shown = world.run(&["doctor"]).ok();
    assert!(
        shown.contains("sandbox   ok") && shown.contains("settings  ok") && shown.contains("level "),
        "{shown}"
    );
    world.user("model = ");
    let ran = world.run(&["doctor"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("settings  ERROR") && ran.stdout.contains("settings.toml"), "{}", ran.stdout);
    let checks: serde_json::Value = serde_json::from_str(&world.run(&["doctor", "--json"]).stdout).unwrap();
    assert_eq!(checks[1]["state"], "error");
}

#[test]
fn a_spawner_runs_processes_in_the_jail_on_any_runtime() {
    let world = World::new();
    let mut config = JailConfig::new(world.workspace());
    config.host_binary = env!("CARGO_BIN_EXE_hanzo-dev").into();
    let spawner: Box<dyn Spawner> = Box::new(JailSpawner::start(config).unwrap());
    assert_ne!(spawner.confinement().level, "path-check");

    let line = "echo out; echo into > /tmp/shared; echo x > /etc/nope; sleep 0.2; exit 3";
    let mut process = block_on(spawner.spawn(SpawnRequest::new(["sh", "-c", line]))).unwrap();
    let end = block_on(process.wait()).unwrap();
    assert_eq!(end.status, ProcessStatus::Exited(3));
    let read = |end: Option<std::fs::File>| {
        let mut text = String::new();
        end.unwrap().read_to_string(&mut text).unwrap();
        text
    };
    let streams = process.streams();
    let (out, errors) = (read(streams.stdout.take()), read(streams.stderr.take()));
    assert_eq!(out, "out\n");
    let denial = process.denial(&end, errors.as_bytes()).unwrap_or_else(|| panic!("no denial in {errors}"));
    assert_eq!(denial.what, "write to /etc/nope");

    // The next process and the host see the same `/tmp`.
    let tmp = spawner.confinement().tmp.unwrap();
    assert_eq!(std::fs::read_to_string(tmp.join("shared")).unwrap(), "into\n");
    let mut next = block_on(spawner.spawn(SpawnRequest::new(["grep", "-q", "into", "/tmp/shared"]))).unwrap();
    assert_eq!(block_on(next.wait()).unwrap().status, ProcessStatus::Exited(0));

    let missing = block_on(spawner.spawn(SpawnRequest::new(["no-such-program"]))).err();
    assert!(matches!(missing, Some(SpawnError::Program { .. })), "{missing:?}");
}

#[test]
fn a_spawned_process_can_have_a_terminal_and_be_killed() {
    let world = World::new();
    let mut config = JailConfig::new(world.workspace());
    config.host_binary = env!("CARGO_BIN_EXE_hanzo-dev").into();
    let spawner = JailSpawner::start(config).unwrap();
    let mut request = SpawnRequest::new(["sh", "-c", "tty >/dev/null && stty size && exec sleep 300"]);
    request.streams = Streams::Terminal { rows: 33, columns: 77 };
    let mut process = block_on(spawner.spawn(request)).unwrap();
    let mut terminal = process.streams().terminal.take().unwrap();
    let mut seen = [0; 64];
    let count = terminal.read(&mut seen).unwrap();
    assert_eq!(String::from_utf8_lossy(&seen[..count]).trim(), "33 77");
    process.kill();
    assert_eq!(block_on(process.wait()).unwrap().status, ProcessStatus::Killed);
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
