//! `kill -9` of the real program at random moments: whatever a reader has seen completed is stored, nothing is done twice, and the
//! thread goes on.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use hanzo_testkit::scale;
use hanzo_testkit::scripted::{Reply, Request, Server};
use serde_json::{Value, json};

use crate::support::World;

/// How many kills one thread is put through.
const KILLS_OF_A_THREAD: u32 = 10;

/// A model that never comes to an end: each call has a number of its own, and leaves it in a file.
fn endless() -> Server {
    let mut number = 0_u64;
    Server::with(move |_: &Request| {
        number += 1;
        let reply = Reply::text(format!("Step {number}"));
        if number.is_multiple_of(3) {
            let command = format!("echo {number} >> log.txt");
            return reply.and_tool_call("proc", json!({"action": "exec", "command": command}));
        }
        let uri = format!("notes/{number}.txt");
        reply.and_tool_call("fs", json!({"action": "write", "uri": uri, "content": "x"}))
    })
}

/// Numbers that look random and are the same in each run.
fn moment(round: u32) -> Duration {
    Duration::from_micros(u64::from(round.wrapping_mul(2_654_435_761) >> 15) % 60_000)
}

/// Runs until it is killed and returns the thread and the items that were told to be complete.
fn killed(world: &World, round: u32, of_thread: u32) -> (String, HashSet<String>) {
    let mut arguments = vec!["run", "go on", "--output-format", "stream-json"];
    if of_thread > 0 {
        arguments.push("--continue");
    }
    let mut child = world
        .command(&arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    let (mut thread, mut seen) = (String::new(), HashSet::new());
    let mut line = String::new();
    let mut is_doomed = false;
    loop {
        line.clear();
        if reader.read_line(&mut line).expect("UTF-8") == 0 {
            break;
        }
        // The last line may be cut off; then nobody has seen it.
        let Ok(told) = serde_json::from_str::<Value>(&line) else { continue };
        match told["type"].as_str() {
            Some("init") => told["thread_id"].as_str().expect("an id").clone_into(&mut thread),
            Some("item.completed") => {
                seen.insert(told["item"]["id"].as_str().expect("an id").to_owned());
            }
            _ => {}
        }
        if !is_doomed && !seen.is_empty() {
            is_doomed = true;
            std::thread::sleep(moment(round));
            child.kill().expect("it can be killed");
        }
    }
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(is_doomed, "round {round}: it ended by itself: {said}");
    assert!(!said.contains("torn") && !said.contains("damaged"), "round {round}: {said}");
    (thread, seen)
}

/// Every call in the conversation has its answer, as vendors demand.
fn is_valid(request: &Request) {
    let mut open: Vec<Value> = Vec::new();
    for message in request.messages() {
        if message["role"] == "tool" {
            let place = open.iter().position(|id| *id == message["tool_call_id"]);
            open.remove(place.unwrap_or_else(|| panic!("an answer without a call: {message}")));
        } else {
            assert!(open.is_empty(), "calls without an answer: {open:?}");
        }
        open.extend(message["tool_calls"].as_array().into_iter().flatten().map(|call| call["id"].clone()));
    }
    assert!(open.is_empty(), "calls without an answer: {open:?}");
}

#[test]
fn nothing_a_reader_has_seen_is_lost_when_the_program_is_killed() {
    let rounds = scale::few_or_full(20, 1_000);
    let mut acknowledged = 0;
    for first in (0..rounds).step_by(KILLS_OF_A_THREAD as usize) {
        let server = endless();
        let world = World::new();
        world.user(&format!(
            "model = \"scripted/one\"\n\n[[providers]]\nname = \"scripted\"\nbase_url = \"{}\"\nmodels = [\"one\"]\n",
            server.base_url()
        ));
        let (mut thread, mut seen) = (String::new(), HashSet::new());
        for of_thread in 0..KILLS_OF_A_THREAD {
            let asked_before = server.requests().len();
            let (now, more) = killed(&world, first + of_thread, of_thread);
            assert!(thread.is_empty() || thread == now, "it goes on with the same thread");
            thread = now;
            acknowledged += more.len();
            seen.extend(more);
            // It may have been killed before it asked.
            if let Some(first) = server.requests().get(asked_before) {
                is_valid(first);
            }
        }
        let exported = world.run(&["threads", "export", &thread, "--format", "jsonl"]);
        assert!(exported.code == 0 && !exported.stderr.contains("torn"), "{}", exported.stderr);
        let stored: HashSet<String> = exported
            .stdout
            .lines()
            .filter_map(|line| Some(serde_json::from_str::<Value>(line).ok()?["id"].as_str()?.to_owned()))
            .collect();
        let lost: Vec<&String> = seen.difference(&stored).collect();
        assert!(lost.is_empty(), "{} of {} items are lost: {lost:?}", lost.len(), seen.len());
        let log = std::fs::read_to_string(world.workspace().join("log.txt")).unwrap_or_default();
        let done: HashSet<&str> = log.lines().collect();
        assert_eq!(done.len(), log.lines().count(), "a call was run twice: {log}");
    }
    assert!(acknowledged >= rounds as usize, "something was seen in each round");
}
