//! `kill -9` at random moments: every item that was acknowledged is there.
#![cfg(unix)]

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use hanzo_protocol::event::EventCursor;
use hanzo_protocol::ids::{ItemId, ThreadId};
use hanzo_store::{Batch, Holder, Store as _};
use hanzo_testkit::scale;

use crate::help::{all, open_after_kill, said, with_thread};

/// Set for the process that is killed: directory and thread.
const VICTIM: &str = "HANZO_STORE_TEST_VICTIM";

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if let Ok(task) = std::env::var(VICTIM) {
        return runtime.block_on(append_until_killed(&task));
    }
    let place = tempfile::tempdir().unwrap();
    let id = runtime.block_on(async {
        let (store, id) = with_thread(place.path()).await;
        store.close().await;
        id
    });
    let task = format!("{}|{id}", place.path().display());
    let mut acknowledged: HashSet<ItemId> = HashSet::new();
    for round in 0..scale::rounds(1000) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::nothing_acknowledged_is_lost_when_the_process_is_killed", "--nocapture"])
            .env(VICTIM, &task)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut count = 0;
        let mut take = |line: String| {
            let id = line.split_once("kept ").map(|(_, id)| id.trim().parse::<ItemId>());
            // The last line may be cut off: then it was not acknowledged.
            if let Some(Ok(id)) = id {
                acknowledged.insert(id);
                count += 1;
            }
        };
        while let Some(Ok(line)) = lines.next() {
            let first = line.contains("kept ");
            take(line);
            if first {
                break;
            }
        }
        std::thread::sleep(Duration::from_micros(u64::from(round % 50) * 311));
        child.kill().unwrap();
        child.wait().unwrap();
        lines.map_while(Result::ok).for_each(&mut take);
        assert!(count > 0, "the process did something");
        // The first start after the kill is the next victim's; every fifth time it is ours.
        if round % 5 == 0 {
            runtime.block_on(check(place.path(), id, &acknowledged));
        }
    }
    runtime.block_on(check(place.path(), id, &acknowledged));
}

async fn check(directory: &std::path::Path, thread: ThreadId, acknowledged: &HashSet<ItemId>) {
    // Opens without complaint, and the thread is free: its holder is gone.
    let store = open_after_kill(directory).await;
    drop(store.claim(thread, Holder::here("the test")).await.unwrap());
    let there: HashSet<ItemId> = all(&store, thread).await.iter().map(|item| item.id).collect();
    let lost = acknowledged.difference(&there).count();
    assert_eq!(lost, 0, "of {} acknowledged items", acknowledged.len());
    store.close().await;
}

async fn append_until_killed(task: &str) {
    let (directory, thread) = task.split_once('|').unwrap();
    let thread: ThreadId = thread.parse().unwrap();
    let store = open_after_kill(directory.as_ref()).await;
    let _lease = store.claim(thread, Holder::here("the victim")).await.unwrap();
    // So that a parent that fails leaves nobody behind.
    for n in 0..100_000_u64 {
        let item = said(thread, format!("number {n} {}", "x".repeat(usize::try_from(n % 97).unwrap() * 50)));
        let id = item.id;
        let mut batch = Batch::new(thread).with_item(item, EventCursor(n));
        if n % 16 == 0 {
            batch = batch.on_disk();
        }
        store.commit(batch).await.unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "kept {id}").unwrap();
        out.flush().unwrap();
    }
}
