//! `proc` through the tool, with a spawner that confines nothing. The same through the jail is tested where the jail is put
//! together, in `hanzo-dev`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hanzo_protocol::tool::{Effect, ReachConfinement, TimeLimit};
use serde_json::{Value, json};

use crate::world::{Shown, World, eventually, runs};

fn exec(command: impl Into<Value>) -> Value {
    json!({"action": "exec", "command": command.into()})
}

/// A number for `sleep` that no other test uses.
fn unique_sleep() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{}.{}", 3000 + COUNT.fetch_add(1, Ordering::Relaxed), std::process::id())
}

#[tokio::test]
async fn a_line_goes_to_a_shell_and_a_list_does_not() {
    let world = World::new();
    let ran = world.ok("proc", exec("echo out; echo err >&2; exit 3")).await;
    assert_eq!(ran["proc_id"], "proc_1_tests");
    assert_eq!((&ran["status"], &ran["exit_code"]), (&json!("exited"), &json!(3)));
    assert_eq!((&ran["stdout"], &ran["stderr"]), (&json!("out\n"), &json!("err\n")));
    assert_eq!(
        (&ran["stdout_ref"], &ran["stderr_ref"]),
        (&json!("stdout_ref:proc_1_tests"), &json!("stderr_ref:proc_1_tests"))
    );
    assert_eq!(ran["truncated"], false);
    let ran = world.ok("proc", exec(json!(["printf", "%s|", "a b", "$HOME;"]))).await;
    assert_eq!(ran["stdout"], "a b|$HOME;|");
    // A line with nothing in it for a shell does not pay for one, and nobody can tell.
    world.write("file", "content\n");
    assert_eq!(world.ok("proc", exec("cat file")).await["stdout"], "content\n");
    let ran = world.ok("proc", exec("no-such-program here")).await;
    assert_eq!(ran["exit_code"], 127);
    assert!(ran["stderr"].as_str().unwrap().contains("not found"), "{ran}");
    let parent = world.ok("proc", exec("printenv PWD")).await;
    assert_eq!(parent["stdout"], format!("{}\n", world.workspace.display()));
}

#[tokio::test]
async fn directory_variables_and_input_are_passed() {
    let world = World::new();
    world.write("sub/x", "");
    let call = json!({"action": "exec", "command": "pwd; echo $COLOUR; cat", "cwd": "sub", "env": {"COLOUR": "blue"}, "stdin": "in\nput"});
    let ran = world.ok("proc", call).await;
    assert_eq!(ran["stdout"], format!("{}\nblue\nin\nput", world.path("sub").display()));
    // More than a pipe holds, to a program that answers while it reads.
    let long = "x".repeat(1 << 20);
    let ran = world
        .ok("proc", json!({"action": "exec", "command": "tee /dev/stderr | wc -c", "stdin": long}))
        .await;
    assert_eq!(ran["stdout"].as_str().unwrap().trim(), "1048576");
    // One that does not read is no error.
    let ran = world.ok("proc", json!({"action": "exec", "command": "true", "stdin": long})).await;
    assert_eq!(ran["exit_code"], 0);
}

#[tokio::test]
async fn text_is_for_reading_and_the_bytes_stay_behind_the_ref() {
    let world = World::new();
    let line = r"printf '\033[31mred\033[0m 10%%\r 20%%\r100%%\n\377\n'";
    let ran = world.ok("proc", exec(line)).await;
    assert_eq!(ran["stdout"], "100%\n\u{fffd}\n");
    let raw = world.ok("proc", json!({"action": "logs", "proc_id": ran["stdout_ref"], "since": 0})).await;
    assert_eq!(raw["size"], 29);
}

#[tokio::test]
async fn long_output_keeps_both_ends_and_the_rest_is_read_by_pages() {
    let world = World::new();
    let ran = world.ok("proc", exec("seq 1 200000")).await;
    let text = ran["stdout"].as_str().unwrap();
    assert_eq!(ran["truncated"], true);
    assert!(text.len() < 31_000 && text.starts_with("1\n2\n") && text.ends_with("\n199999\n200000\n"));
    assert!(
        text.contains("bytes left out: `logs` with proc_id=proc_1_tests"),
        "the way to the rest is named"
    );

    let (mut all, mut since) = (String::new(), 0);
    loop {
        let page = world
            .ok(
                "proc",
                json!({"action": "logs", "proc_id": "proc_1_tests", "stream": "stdout", "since": since}),
            )
            .await;
        all.push_str(page["stdout"].as_str().unwrap());
        since = page["next"].as_u64().unwrap();
        if Some(since) == page["size"].as_u64() {
            break;
        }
    }
    let expected: Vec<String> = (1..=200_000).map(|number| format!("{number}\n")).collect();
    assert!(all == expected.concat(), "every byte is there once");

    let tail = world.ok("proc", json!({"action": "logs", "proc_id": "proc_1_tests", "tail": 3})).await;
    assert_eq!(tail["stdout"], "199998\n199999\n200000\n");
}

#[tokio::test]
async fn a_command_goes_to_the_background_and_loses_nothing() {
    let world = World::with(|options| options.proc.background_after = Duration::from_millis(300));
    let start = Instant::now();
    let line = "for i in 1 2 3 4 5 6 7 8; do echo line $i; echo e$i >&2; sleep 0.1; done";
    let ran = world.ok("proc", exec(line)).await;
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!((&ran["status"], &ran["exit_code"]), (&json!("running"), &Value::Null));
    assert!(ran["stdout"].as_str().unwrap().starts_with("line 1\n"));
    assert!(ran["hint"].as_str().unwrap().contains("proc_1_tests"));
    let listed = world.ok("proc", json!({"action": "ps", "filter": "running"})).await;
    assert_eq!(listed["processes"][0]["proc_id"], "proc_1_tests");

    let end = world.ok("proc", json!({"action": "logs", "proc_id": "proc_1_tests", "wait": 10})).await;
    assert_eq!((&end["status"], &end["exit_code"]), (&json!("exited"), &json!(0)));
    let expected: Vec<String> = (1..=8).map(|number| format!("line {number}\n")).collect();
    assert_eq!(end["stdout"], expected.concat());
    assert_eq!(end["stderr"], "e1\ne2\ne3\ne4\ne5\ne6\ne7\ne8\n");
}

#[tokio::test]
async fn the_bash_of_other_vocabularies_waits_as_long_as_it_is_told_and_then_goes_to_the_background() {
    let short = Duration::from_millis(100);
    let bash = json!({"command": "sleep 0.5; echo done"});
    for (wait, status) in [
        (Duration::from_millis(200), "running"),
        (Duration::from_mins(1), "exited"),
        (Duration::ZERO, "exited"),
    ] {
        let world = World::with(|options| {
            options.proc.background_after = short;
            options.proc.bash_wait = wait;
        });
        assert_eq!(world.ok("bash", bash.clone()).await["status"], status, "{wait:?}");
        assert_eq!(world.ok("proc.exec", bash.clone()).await["status"], "running");
    }
    let usual = hanzo_tools::proc::ProcOptions::default();
    assert_eq!((usual.background_after.as_secs(), usual.bash_wait.as_secs()), (45, 120));
}

#[tokio::test]
async fn a_command_that_says_background_returns_at_once_and_can_be_written_to() {
    let world = World::new();
    let call = json!({"action": "exec", "command": "while read line; do echo got $line; done; echo over", "background": true});
    let ran = world.ok("proc", call).await;
    assert_eq!(ran["status"], "running");
    let written =
        world.ok("proc", json!({"action": "write", "proc_id": "proc_1_tests", "stdin": "a\nb\n"})).await;
    assert_eq!(written["next"], 0);
    let end = json!({"action": "write", "proc_id": "proc_1_tests", "stdin": "c\n", "close": true});
    world.ok("proc", end.clone()).await;
    let logs = world.ok("proc", json!({"action": "logs", "proc_id": "proc_1_tests", "wait": 10})).await;
    assert_eq!((&logs["stdout"], &logs["status"]), (&json!("got a\ngot b\ngot c\nover\n"), &json!("exited")));
    assert_eq!(world.error("proc", end).await.0, "UNAVAILABLE");
}

#[tokio::test]
async fn a_time_limit_kills() {
    let world = World::new();
    let ran = world
        .ok("proc", json!({"action": "exec", "command": "echo before; sleep 300", "timeout": 0.3}))
        .await;
    assert_eq!((&ran["status"], &ran["exit_code"]), (&json!("timed_out"), &Value::Null));
    assert_eq!(ran["stdout"], "before\n");
}

#[tokio::test]
async fn kill_ends_the_tree_and_a_signal_is_the_programs_to_answer() {
    let world = World::new();
    let sleep = unique_sleep();
    let line = format!("sleep {sleep} & sleep {sleep} & trap 'echo asked; exit 7' TERM; echo up; wait");
    for (signal, status, code) in [(json!("TERM"), "exited", json!(7)), (Value::Null, "killed", Value::Null)]
    {
        let ran = world.ok("proc", json!({"action": "exec", "command": line, "background": true})).await;
        let id = ran["proc_id"].clone();
        let up = || world.host.jobs.list().len();
        assert!(up() > 0);
        while world.ok("proc", json!({"action": "logs", "proc_id": id})).await["stdout"] != "up\n" {
            tokio::task::yield_now().await;
        }
        let killed = world.ok("proc", json!({"action": "kill", "proc_id": id, "signal": signal})).await;
        assert_eq!((&killed["status"], &killed["exit_code"]), (&json!(status), &code));
        eventually("the death of all children", || !runs(&sleep)).await;
    }
    assert_eq!(
        world.error("proc", json!({"action": "kill", "proc_id": "proc_9_tests"})).await.0,
        "NOT_FOUND"
    );
    let nonsense = json!({"action": "kill", "proc_id": "proc_1_tests", "signal": "TICKLE"});
    assert_eq!(world.error("proc", nonsense).await.0, "INVALID_ARGUMENTS");
}

#[tokio::test]
async fn dropping_the_call_kills_and_so_does_dropping_the_thread() {
    let world = World::new();
    let sleep = unique_sleep();
    let call = world.call("proc", exec(format!("sleep {sleep} & sleep {sleep}")));
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
    eventually("the death of an interrupted command", || !runs(&sleep)).await;
    let listed = world.ok("proc", json!({"action": "ps"})).await;
    assert_eq!(listed["processes"][0]["status"], "killed");

    let (with, without) = (unique_sleep(), unique_sleep());
    world.ok("proc", json!({"action": "exec", "command": format!("sleep {with}"), "background": true})).await;
    // A leftover of a command that is over ends with the thread too.
    world.ok("proc", exec(format!("sleep {with} >/dev/null 2>&1 &"))).await;
    let detached =
        json!({"action": "exec", "command": format!("sleep {without}"), "background": true, "detach": true});
    world.ok("proc", detached).await;
    eventually("the start of both", || runs(&with) && runs(&without)).await;
    drop(world);
    eventually("the death of the thread's process", || !runs(&with)).await;
    assert!(runs(&without), "a detached process goes on");
    std::process::Command::new("pkill").args(["-f", &format!("sleep {without}")]).status().unwrap();
}

#[tokio::test]
async fn what_a_shell_leaves_in_the_background_goes_on_and_can_be_killed() {
    let world = World::new();
    let sleep = unique_sleep();
    let start = Instant::now();
    let ran = world
        .ok("proc", exec(format!("(echo early; sleep 0.3; echo late; exec sleep {sleep}) & echo main")))
        .await;
    assert!(start.elapsed() < Duration::from_secs(20), "it does not wait for the pipe to close");
    assert_eq!((&ran["status"], &ran["leftovers"]), (&json!("exited"), &json!(true)));
    let late = || async {
        let logs = world.ok("proc", json!({"action": "logs", "proc_id": "proc_1_tests"})).await;
        logs["stdout"].as_str().unwrap().contains("late\n")
    };
    while !late().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    world.ok("proc", json!({"action": "kill", "proc_id": "proc_1_tests"})).await;
    eventually("the death of the leftover", || !runs(&sleep)).await;
}

#[tokio::test]
async fn at_most_so_many_run_at_once() {
    let world = World::with(|options| options.proc.jobs.live_limit = 3);
    let sleep = unique_sleep();
    let call = json!({"action": "exec", "command": ["sleep", sleep], "background": true});
    for _ in 0..3 {
        world.ok("proc", call.clone()).await;
    }
    let (code, message) = world.error("proc", call.clone()).await;
    assert_eq!(code, "RATE_LIMITED");
    assert!(message.contains("3 processes") && message.contains("kill"), "{message}");
    world.ok("proc", json!({"action": "kill", "proc_id": "proc_2_tests"})).await;
    world.ok("proc", call).await;
    assert_eq!(hanzo_tools::proc::JobOptions::default().live_limit, 64);
}

#[tokio::test]
async fn the_oldest_that_are_over_are_forgotten() {
    let world = World::with(|options| options.proc.jobs.remembered = 2);
    for _ in 0..5 {
        world.ok("proc", exec(json!(["true"]))).await;
    }
    let listed = world.ok("proc", json!({"action": "ps"})).await;
    let names: Vec<&str> =
        listed["processes"].as_array().unwrap().iter().map(|p| p["proc_id"].as_str().unwrap()).collect();
    assert_eq!(names, ["proc_3_tests", "proc_4_tests", "proc_5_tests"]);
}

#[tokio::test]
async fn output_is_shown_while_the_command_runs_but_not_more_often_than_can_be_seen() {
    let world = World::new();
    let shown = Arc::new(Shown::default());
    let line = r"printf '\033[1mfirst\033[0m\n'; sleep 0.3; for i in $(seq 100); do echo $i; sleep 0.002; done; echo last";
    let result = world.call_shown("proc", exec(line), Some(Arc::clone(&shown) as _)).await;
    assert!(!result.is_error);
    let pieces = shown.0.lock().unwrap().clone();
    assert_eq!(pieces[0], "first\n");
    assert!((2..60).contains(&pieces.len()), "{}", pieces.len());
    assert!(pieces.concat().contains("\n1\n2\n3\n"));
}

#[tokio::test]
async fn what_makes_no_sense_is_a_typed_error() {
    let world = World::new();
    world.write("file", "");
    for (call, code) in [
        (json!({"action": "exec"}), "INVALID_ARGUMENTS"),
        (exec(""), "INVALID_ARGUMENTS"),
        (exec("  \n"), "INVALID_ARGUMENTS"),
        (exec("a\0b"), "INVALID_ARGUMENTS"),
        (exec(json!([])), "INVALID_ARGUMENTS"),
        (exec(json!([1])), "INVALID_ARGUMENTS"),
        (exec(json!({"x": 1})), "INVALID_ARGUMENTS"),
        (exec(json!(["no-such-program-here"])), "NOT_FOUND"),
        (json!({"action": "exec", "command": "true", "cwd": "nowhere"}), "NOT_FOUND"),
        (json!({"action": "exec", "command": "true", "cwd": "file"}), "NOT_FOUND"),
        (json!({"action": "exec", "command": "true", "cwd": "http://x/"}), "INVALID_ARGUMENTS"),
        (json!({"action": "exec", "command": "true", "env": {"A=B": "x"}}), "INVALID_ARGUMENTS"),
        (json!({"action": "exec", "command": "true", "env": {"A": 1}}), "INVALID_ARGUMENTS"),
        (json!({"action": "exec", "command": "true", "timeout": -1}), "INVALID_ARGUMENTS"),
        (json!({"action": "exec", "command": "true", "timeout": 0}), "INVALID_ARGUMENTS"),
        (json!({"action": "exec", "command": "true", "timeout": "soon"}), "INVALID_ARGUMENTS"),
        (json!({"action": "exec", "command": "true", "pty": {"rows": 0, "cols": 80}}), "INVALID_ARGUMENTS"),
        (json!({"action": "exec", "command": "true", "pty": {"rows": 70000}}), "INVALID_ARGUMENTS"),
        (json!({"action": "exec", "command": "true", "colour": "red"}), "INVALID_ARGUMENTS"),
        (json!({"action": "logs", "proc_id": "proc_77_tests"}), "NOT_FOUND"),
        (json!({"action": "logs", "proc_id": "../etc"}), "NOT_FOUND"),
        (json!({"action": "logs"}), "INVALID_ARGUMENTS"),
        (json!({"action": "write", "proc_id": "proc_1_tests"}), "INVALID_ARGUMENTS"),
        (json!({"action": "exce", "command": "true"}), "UNKNOWN_ACTION"),
    ] {
        assert_eq!(world.error("proc", call.clone()).await.0, code, "{call}");
    }
    assert!(world.host.jobs.list().is_empty(), "nothing ran");
}

#[tokio::test]
async fn a_name_from_before_a_restart_never_means_another_process() {
    let opened = || World::with(|options| options.proc.jobs.run = None);
    let before = opened();
    let old = before.ok("proc", exec("echo first")).await["proc_id"].as_str().unwrap().to_owned();
    drop(before);
    let after = opened();
    let new = after.ok("proc", exec("sleep 30 & echo second")).await["proc_id"].as_str().unwrap().to_owned();
    assert_ne!(old, new, "both were the first of their time");
    let references = [old.clone(), format!("stdout_ref:{old}")];
    for action in ["logs", "kill"] {
        for name in &references {
            let (code, message) = after.error("proc", json!({"action": action, "proc_id": name})).await;
            assert_eq!(code, "NOT_FOUND", "{action}");
            assert!(message.contains("before this thread was opened"), "{message}");
        }
    }
    // A number alone would be a guess.
    assert_eq!(after.error("proc", json!({"action": "kill", "proc_id": "proc_1"})).await.0, "NOT_FOUND");
    let logs = after.ok("proc", json!({"action": "logs", "proc_id": new})).await;
    assert_eq!(logs["stdout"], "second\n");
}

#[tokio::test]
async fn the_gate_is_told_what_a_call_reaches() {
    let world = World::new();
    let reach = world.reach("proc", &exec("rm -rf /"));
    assert_eq!((reach.action.as_str(), reach.effect), ("proc.exec", Effect::Execute));
    assert_eq!((reach.confinement, reach.time_limit), (ReachConfinement::Inside, TimeLimit::Own));
    let reach = world.reach("proc", &json!({"action": "exec", "command": "x", "unconfined": true}));
    assert_eq!(reach.confinement, ReachConfinement::Outside);
    assert_eq!(world.reach("proc", &json!({"action": "ps"})).effect, Effect::Read);
    assert_eq!(
        world.reach("proc", &json!({"action": "logs", "proc_id": "proc_1_tests"})).effect,
        Effect::Read
    );
    assert_eq!(
        world.reach("proc", &json!({"action": "kill", "proc_id": "proc_1_tests"})).effect,
        Effect::Execute
    );
    assert_eq!(world.reach("proc", &json!({"nonsense": 1})).effect, Effect::Read, "it answers with help");
    assert_eq!(world.reach("proc", &json!({"action": "exec"})).effect, Effect::Execute);
}

#[tokio::test]
async fn a_denial_is_told_to_the_model_and_to_the_host() {
    let world = World::new();
    let result =
        world.call("proc", exec("echo 'touch: cannot touch x: Read-only file system' >&2; exit 1")).await;
    assert_eq!(result.denial.as_deref(), Some("write"));
    let data = &result.envelope.unwrap()["data"];
    assert!(data["denial"]["evidence"].as_str().unwrap().contains("cannot touch x"));
    assert!(data["hint"].as_str().unwrap().contains("unconfined"));
}

#[test]
fn what_a_model_is_told_is_short() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _guard = runtime.enter();
    let world = World::new();
    for schema in world.tools().schemas() {
        if ["proc", "vcs"].contains(&schema.name.as_str()) {
            let size = serde_json::to_string(&schema).unwrap().len();
            assert!(size <= 1200, "{} has {size}: {} {}", schema.name, schema.description, schema.parameters);
        }
    }
}

/// 1 GiB through the tool: the bound is kept, memory stays flat and nothing waits for ever. In a process of its own, because
/// what others allocate meanwhile would be counted too.
#[test]
fn a_gibibyte_of_output_costs_little_memory() {
    const INNER: &str = "HANZO_TEST_GIBIBYTE";
    if std::env::var_os(INNER).is_none() {
        let own = std::env::current_exe().unwrap();
        let arguments = ["--exact", "proc::a_gibibyte_of_output_costs_little_memory", "--nocapture"];
        let status = std::process::Command::new(own).args(arguments).env(INNER, "1").status().unwrap();
        assert!(status.success());
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let world = World::new();
        world.ok("proc", exec("echo warm")).await;
        let before = peak_rss();
        let ran = world.ok("proc", exec("head -c 1073741824 /dev/zero | tr '\\0' 'x'; echo; echo end; head -c 20000000 /dev/zero >&2")).await;
        let grown = peak_rss() - before;
        assert_eq!(ran["exit_code"], 0);
        let text = ran["stdout"].as_str().unwrap();
        assert!(text.ends_with("x\nend\n") && text.contains("were not kept"), "{}", &text[text.len() - 200..]);
        assert!(grown < 64 << 20, "memory grew by {grown} bytes");
        // The bound of what is kept is kept, and reading goes from there to the end.
        let past = world.ok("proc", json!({"action": "logs", "proc_id": "proc_2_tests", "stream": "stdout", "since": 65 << 20})).await;
        assert!(past["from"].as_u64().unwrap() > 1_000_000_000, "{}", past["from"]);
        assert_eq!(past["size"], 1_073_741_824 + 5);
    });
}

/// The most memory this process ever had.
fn peak_rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
