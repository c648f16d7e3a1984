//! Hooks that do what they should not: none may hang a call, leave something running, or get a call through.

use std::path::Path;
use std::time::{Duration, Instant};

use hanzo_hooks::{Hook, OnError, PreVerdict};
use serde_json::json;
use tempfile::tempdir;

use crate::{event, hooks_in, pre, read, reason};

fn quick(command: &str, timeout_ms: u64) -> Hook {
    Hook { timeout_ms, ..pre(command) }
}

/// Whether the process whose number is in `file` is gone, given a moment. One that is dead and only waits to be collected, by whoever
/// collects orphans here, is gone.
fn is_gone(place: &Path, file: &str) -> bool {
    let number = read(place, file);
    let state = || {
        if Path::new("/proc/self/stat").exists() {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", number.trim())).ok()?;
            return stat.rsplit_once(") ")?.1.chars().next();
        }
        let listed =
            std::process::Command::new("ps").args(["-o", "stat=", "-p", number.trim()]).output().ok()?;
        String::from_utf8_lossy(&listed.stdout).trim().chars().next()
    };
    let alive = || state().is_some_and(|state| state != 'Z');
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        if !alive() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[tokio::test]
async fn one_that_never_ends_is_killed_with_all_it_started() {
    let place = tempdir().unwrap();
    for command in [
        "echo $$ > pid; sleep 600",
        "trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 600; done",
        "sleep 600 & echo $! > pid; wait",
        "(sleep 600 & echo $! > pid); sleep 600",
    ] {
        let begun = Instant::now();
        let hooks = hooks_in(place.path(), vec![quick(command, 300)]);
        let outcome = hooks.pre(&event("fs.read", &json!({}))).await;
        assert_eq!(reason(&outcome), "the hook took longer than 300 ms and was killed", "{command}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{command} {:?}", begun.elapsed());
        assert!(is_gone(place.path(), "pid"), "{command}");
    }
    let hooks = hooks_in(place.path(), vec![Hook { on_error: OnError::Warn, ..quick("sleep 600", 50) }]);
    let outcome = hooks.pre(&event("fs.read", &json!({}))).await;
    assert_eq!((outcome.verdict, outcome.reports.len()), (PreVerdict::Allow, 1));
}

#[tokio::test]
async fn one_that_leaves_something_running_does_not_keep_the_call_waiting() {
    let place = tempdir().unwrap();
    let begun = Instant::now();
    let hooks = hooks_in(place.path(), vec![pre("sleep 600 & echo $! > pid; exit 0")]);
    assert_eq!(hooks.pre(&event("fs.read", &json!({}))).await.verdict, PreVerdict::Allow);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(is_gone(place.path(), "pid"), "what it left holds its outputs open and is killed");
}

#[tokio::test]
async fn one_that_leaves_its_group_is_not_waited_for() {
    let place = tempdir().unwrap();
    let begun = Instant::now();
    // It holds the outputs open for a while; the call does not wait for it.
    let hooks = hooks_in(place.path(), vec![pre("command -v setsid >/dev/null && setsid sleep 5 & exit 0")]);
    assert_eq!(hooks.pre(&event("fs.read", &json!({}))).await.verdict, PreVerdict::Allow);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn one_that_floods_its_outputs_is_read_to_its_end_and_kept_in_part() {
    let place = tempdir().unwrap();
    let flood = "head -c 20000000 /dev/zero | tr '\\0' x >&2; head -c 20000000 /dev/zero; exit 2";
    let hooks = hooks_in(place.path(), vec![quick(flood, 60_000)]);
    let outcome = hooks.pre(&event("fs.read", &json!({}))).await;
    assert_eq!(reason(&outcome), format!("{}…", "x".repeat(2_000)));
    // One that never stops writing is stopped.
    let hooks = hooks_in(place.path(), vec![quick("yes; yes >&2", 300)]);
    assert!(reason(&hooks.pre(&event("fs.read", &json!({}))).await).contains("took longer than 300 ms"));
}

#[tokio::test]
async fn one_that_does_not_read_its_input_is_no_failure() {
    let place = tempdir().unwrap();
    let input = json!({"x": "y".repeat(3_000_000)});
    for command in ["exit 0", "exec 0<&-; sleep 0.05", "head -c 10 > /dev/null", "sleep 0.05"] {
        let hooks = hooks_in(place.path(), vec![pre(command)]);
        let outcome = hooks.pre(&event("fs.write", &input)).await;
        assert_eq!((outcome.verdict, outcome.reports), (PreVerdict::Allow, vec![]), "{command}");
    }
}

#[tokio::test]
async fn one_that_closes_its_outputs_and_goes_on_is_waited_for() {
    let place = tempdir().unwrap();
    let hooks = hooks_in(place.path(), vec![pre("exec 1>&- 2>&-; sleep 0.1; echo done > done; exit 2")]);
    assert_eq!(reason(&hooks.pre(&event("fs.write", &json!({}))).await), "the hook gave no reason");
    assert_eq!(read(place.path(), "done"), "done\n");
}

#[tokio::test]
async fn what_it_says_cannot_fool_a_terminal() {
    let place = tempdir().unwrap();
    let command = r"printf 'a\033[31mb\033]0;title\007c\r\377\342\200\256d' >&2; exit 2";
    let hooks = hooks_in(place.path(), vec![pre(command)]);
    assert_eq!(reason(&hooks.pre(&event("fs.write", &json!({}))).await), "a[31mb]0;titlec\u{fffd}d");
}

#[tokio::test]
async fn one_that_cannot_start_blocks() {
    let place = tempdir().unwrap();
    let hooks = hooks_in(&place.path().join("missing"), vec![pre("exit 0")]);
    let outcome = hooks.pre(&event("fs.write", &json!({}))).await;
    assert!(reason(&outcome).starts_with("cannot start the hook: "), "{outcome:?}");
    let hooks = hooks_in(place.path(), vec![pre("exit 0 \0")]);
    assert!(reason(&hooks.pre(&event("fs.write", &json!({}))).await).starts_with("cannot start the hook: "));
    let hooks = hooks_in(place.path(), vec![pre("/no/such/program")]);
    assert!(reason(&hooks.pre(&event("fs.write", &json!({}))).await).contains("code 127"));
    // However long it may take: no arithmetic goes wrong.
    let hooks = hooks_in(place.path(), vec![quick("exit 0", u64::MAX)]);
    assert_eq!(hooks.pre(&event("fs.write", &json!({}))).await.verdict, PreVerdict::Allow);
    let hooks = hooks_in(place.path(), vec![quick("sleep 600", 0)]);
    assert!(reason(&hooks.pre(&event("fs.write", &json!({}))).await).contains("longer than 0 ms"));
}

#[tokio::test]
async fn one_whose_call_is_cancelled_is_killed() {
    let place = tempdir().unwrap();
    let hooks = hooks_in(place.path(), vec![quick("echo $$ > pid; sleep 600", 600_000)]);
    let input = json!({});
    let call = event("fs.write", &input);
    let mut run = Box::pin(hooks.pre(&call));
    while !place.path().join("pid").exists() || read(place.path(), "pid").is_empty() {
        let waited = tokio::time::timeout(Duration::from_millis(5), &mut run).await;
        assert!(waited.is_err());
    }
    drop(run);
    assert!(is_gone(place.path(), "pid"));
}
