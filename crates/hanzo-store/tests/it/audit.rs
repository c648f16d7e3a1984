//! Audit records.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hanzo_protocol::event::EventCursor;
use hanzo_protocol::ids::{ThreadId, TraceId};
use hanzo_store::{AuditBuffer, AuditEntry, AuditFilter, Batch, JsonText, Store as _};
use jiff::{Timestamp, ToSpan as _};
use serde_json::json;

use crate::help::{said, with_thread};

fn entry(thread: ThreadId, at: Timestamp, tool: &str, action: &str, decision: &str) -> AuditEntry {
    AuditEntry {
        at,
        thread,
        trace: TraceId::new(),
        tool: tool.into(),
        action: Some(action.into()),
        decision: decision.into(),
        rule: Some("Bash(git *)".into()),
        reason: decision.starts_with("deny").then(|| "because".into()),
        subject: Some("git push".into()),
        user: Some("somebody".into()),
        record: JsonText::of(&json!({"mode": "normal"})),
    }
}

#[tokio::test]
async fn records_are_listed_by_time_thread_tool_and_decision_in_pages() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let other = ThreadId::new();
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut written = Vec::new();
    for n in 0..10_i64 {
        let at = start + n.hours();
        let thread = if n < 8 { id } else { other };
        let (tool, action) = if n % 2 == 0 { ("fs", "read") } else { ("proc", "exec") };
        let decision = if n % 5 == 0 { "deny by rule" } else { "allow by policy" };
        written.push(entry(thread, at, tool, action, decision));
    }
    let mut batch = Batch::new(id).with_item(said(id, "with its item"), EventCursor(1));
    batch.audit = written[..8].to_vec();
    store.commit(batch).await.unwrap();
    store.append_audit(written[8..].into()).await.unwrap();
    let newest_first: Vec<_> = written.iter().rev().cloned().collect();
    let mut listed = Vec::new();
    let mut filter = AuditFilter { limit: Some(4), ..AuditFilter::default() };
    loop {
        let page = store.audit(filter.clone()).await.unwrap();
        listed.extend(page.entries);
        filter.cursor = page.next;
        if filter.cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, newest_first);
    let count = |filter: AuditFilter| {
        let store = store.clone();
        async move { store.audit(filter).await.unwrap().entries.len() }
    };
    let any = AuditFilter::default;
    assert_eq!(count(AuditFilter { thread: Some(id), ..any() }).await, 8);
    assert_eq!(count(AuditFilter { tool: Some("fs".into()), ..any() }).await, 5);
    assert_eq!(count(AuditFilter { tool: Some("fs.read".into()), ..any() }).await, 5);
    assert_eq!(count(AuditFilter { tool: Some("fs.write".into()), ..any() }).await, 0);
    assert_eq!(count(AuditFilter { decision: Some("deny".into()), ..any() }).await, 2);
    let middle = AuditFilter { since: Some(start + 2.hours()), until: Some(start + 5.hours()), ..any() };
    assert_eq!(count(middle).await, 3);
    let both = AuditFilter { thread: Some(id), decision: Some("deny".into()), ..any() };
    assert_eq!(count(both).await, 2);
}

#[tokio::test]
async fn a_tool_written_down_with_its_action_is_found_by_either() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let mut whole = entry(id, Timestamp::now(), "fs.read", "", "allow");
    whole.action = None;
    store.append_audit([whole].into()).await.unwrap();
    for (tool, found) in [("fs", 1), ("fs.read", 1), ("fs.write", 0), ("f", 0)] {
        let filter = AuditFilter { tool: Some(tool.into()), ..AuditFilter::default() };
        assert_eq!(store.audit(filter).await.unwrap().entries.len(), found, "{tool}");
    }
}

#[tokio::test]
async fn records_of_readers_are_written_together_within_a_moment_or_with_the_next_batch() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let buffer = AuditBuffer::new(Arc::new(store.clone()));
    let count = || async {
        store
            .audit(AuditFilter { limit: Some(u32::MAX), ..AuditFilter::default() })
            .await
            .unwrap()
            .entries
            .len()
    };
    let began = Instant::now();
    for _ in 0..10 {
        buffer.push(entry(id, Timestamp::now(), "fs", "read", "allow"));
    }
    assert_eq!(count().await, 0, "nobody waits for them");
    while count().await < 10 {
        assert!(began.elapsed() < Duration::from_secs(5), "they come by themselves");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    buffer.push(entry(id, Timestamp::now(), "fs", "read", "allow"));
    let mut batch = Batch::new(id);
    buffer.join(&mut batch);
    store.commit(batch).await.unwrap();
    assert_eq!(count().await, 11);
    buffer.push(entry(id, Timestamp::now(), "fs", "read", "allow"));
    buffer.flush().await.unwrap();
    assert_eq!(count().await, 12);
    buffer.flush().await.unwrap();
    assert_eq!(count().await, 12, "each is written once");
    for _ in 0..1000 {
        buffer.push(entry(id, Timestamp::now(), "fs", "read", "allow"));
    }
    buffer.flush().await.unwrap();
    assert_eq!(count().await, 1012, "a flush waits for what is being written already");
}

/// Records are written by statements of a few sizes; every count comes out whole and in order.
#[tokio::test]
async fn any_number_of_records_is_written_in_order() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut written = Vec::new();
    for count in [1, 7, 8, 9, 63, 64, 65, 64 * 2 + 8 * 3 + 5] {
        let at = i64::try_from(written.len()).unwrap();
        let new: Vec<_> =
            (at..at + count).map(|n| entry(id, start + n.seconds(), "fs", "read", "allow")).collect();
        store.append_audit(new.clone().into()).await.unwrap();
        written.extend(new);
    }
    let all = AuditFilter { limit: Some(u32::MAX), ..AuditFilter::default() };
    let mut listed = store.audit(all).await.unwrap().entries;
    listed.reverse();
    assert_eq!(listed, written);
}
