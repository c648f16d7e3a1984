//! A long run takes no more memory and has no more files open at its end than after its first fold.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use hanzo_testkit::scale;
use hanzo_testkit::scripted::{Reply, Request, Server};
use serde_json::json;

use crate::support::{World, finish_child};

/// The memory of a process, in kilobytes.
fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok())
}

#[derive(Default)]
struct Measured {
    folds: u32,
    /// The memory at each request from the first fold on.
    since_fold: Vec<u64>,
    /// The open files at each.
    files: Vec<u64>,
}

#[test]
fn memory_is_flat_from_the_first_fold_to_the_last_call() {
    let calls = scale::few_or_full(400, 2_000);
    let process = Arc::new(AtomicU32::new(0));
    let measured = Arc::new(Mutex::new(Measured::default()));
    let (seen, target) = (Arc::clone(&measured), Arc::clone(&process));
    let mut number = 0;
    let server = Server::forgetful(move |request: &Request| {
        let tokens = request.body.len() as u64 / 4;
        let mut seen = seen.lock().unwrap();
        // Not parsed: that would take most of the test's time.
        if !request.body.windows(9).any(|part| part == b"\"tools\":[") {
            seen.folds += 1;
            return Reply::text("They were looked at.").with_usage(tokens, 10);
        }
        if seen.folds > 0 {
            let target = target.load(Ordering::SeqCst);
            seen.since_fold.extend(resident(target));
            seen.files
                .extend(std::fs::read_dir(format!("/proc/{target}/fd")).map(|files| files.count() as u64));
        }
        number += 1;
        if number > calls {
            return Reply::text("Done").with_usage(tokens, 10);
        }
        // Written once, read once: no two calls come to the same.
        let uri = format!("file{}.txt", number / 2 % 10);
        let call = match number % 2 {
            0 => {
                json!({"action": "write", "uri": uri, "content": format!("line of step {number}\n").repeat(90)})
            }
            _ => json!({"action": "read", "uri": uri}),
        };
        Reply::text(format!("Step {number}")).and_tool_call("fs", call).with_usage(tokens, 10)
    });
    let world = World::new();
    world.user(&format!(
        "model = \"scripted/one\"\n\n[agent]\nmax_steps = 0\n\n[[providers]]\nname = \"scripted\"\nbase_url = \"{}\"\nmodels = [\"one\"]\ncontext_window = 64000\n",
        server.base_url()
    ));
    for file in 0..10 {
        world.write(&format!("project/file{file}.txt"), "the beginning\n".repeat(90));
    }
    let child =
        world.command(&["run", "read them all"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    process.store(child.id(), Ordering::SeqCst);
    let ran = finish_child(child);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let measured = measured.lock().unwrap();
    assert!(measured.folds >= 3, "it was folded {} times", measured.folds);
    // One fold to the next is a tooth of a saw: the highest of the first is what the highest of the last is held against.
    let tooth = measured.since_fold.len() / measured.folds as usize;
    let highest = |part: &[u64]| part.iter().copied().max().unwrap_or_default();
    let (first, last) = (
        highest(&measured.since_fold[..tooth]),
        highest(&measured.since_fold[measured.since_fold.len() - tooth..]),
    );
    let whole =
        (measured.since_fold.iter().copied().min().unwrap_or_default(), highest(&measured.since_fold));
    let report = format!(
        "{calls} calls, {} folds: {first} kB at first, {last} kB at last, all of it within {whole:?}",
        measured.folds
    );
    assert!(last <= first + 4 * 1024 && whole.1 - whole.0 <= 8 * 1024, "{report}");
    let files = (highest(&measured.files[..tooth]), highest(&measured.files[measured.files.len() - tooth..]));
    assert!(files.1 <= files.0 + 2, "open files: {files:?}");
    hanzo_testkit::measured(&report);
}
