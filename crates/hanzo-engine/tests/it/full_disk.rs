//! A store that stops taking anything in the middle of a turn.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hanzo_protocol::engine::Page;
use hanzo_protocol::ids::{CheckpointId, ItemId, ThreadId};
use hanzo_protocol::item::{Item, ToolCallStatus};
use hanzo_protocol::message::{ApiErrorKind, StopReason};
use hanzo_store::{
    AuditEntry, AuditFilter, Batch, CheckpointRecord, Holder, ItemQuery, Lease, SearchHit, SearchQuery,
    Store, StoreError, Stored, StoredItem, ThreadChange, ThreadFilter, ThreadRecord,
};

use crate::harness::{Brain, Setup, completed};
use crate::mocks::{call, stop, text};

/// A store on a disk that can be full.
struct Disk {
    store: Arc<dyn Store>,
    full: AtomicBool,
}

impl Store for Disk {
    fn commit(&self, batch: Batch) -> Stored<'_, ()> {
        if self.full.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::DiskFull { doing: "store items" }) });
        }
        self.store.commit(batch)
    }

    fn create_thread(&self, record: ThreadRecord) -> Stored<'_, ()> {
        self.store.create_thread(record)
    }

    fn thread(&self, id: ThreadId) -> Stored<'_, Option<ThreadRecord>> {
        self.store.thread(id)
    }

    fn threads(&self, filter: ThreadFilter) -> Stored<'_, Page<ThreadRecord>> {
        self.store.threads(filter)
    }

    fn update_thread(&self, id: ThreadId, change: ThreadChange) -> Stored<'_, ThreadRecord> {
        self.store.update_thread(id, change)
    }

    fn delete_thread(&self, id: ThreadId) -> Stored<'_, ()> {
        self.store.delete_thread(id)
    }

    fn fork_thread(&self, source: ThreadId, until: Option<ItemId>, record: ThreadRecord) -> Stored<'_, ()> {
        self.store.fork_thread(source, until, record)
    }

    fn import_thread(
        &self,
        record: ThreadRecord,
        items: Vec<StoredItem>,
        audit: Vec<AuditEntry>,
    ) -> Stored<'_, ()> {
        self.store.import_thread(record, items, audit)
    }

    fn claim(&self, id: ThreadId, holder: Holder) -> Stored<'_, Lease> {
        self.store.claim(id, holder)
    }

    fn items(&self, query: ItemQuery) -> Stored<'_, Page<StoredItem>> {
        self.store.items(query)
    }

    fn calls(&self, thread: ThreadId, tool: String) -> Stored<'_, Vec<Item>> {
        self.store.calls(thread, tool)
    }

    fn append_audit(&self, entries: Arc<[AuditEntry]>) -> Stored<'_, ()> {
        self.store.append_audit(entries)
    }

    fn audit(&self, filter: AuditFilter) -> Stored<'_, Page<AuditEntry>> {
        self.store.audit(filter)
    }

    fn search(&self, query: SearchQuery) -> Stored<'_, Vec<SearchHit>> {
        self.store.search(query)
    }

    fn save_checkpoint(&self, record: CheckpointRecord) -> Stored<'_, ()> {
        self.store.save_checkpoint(record)
    }

    fn checkpoint(&self, id: CheckpointId) -> Stored<'_, Option<CheckpointRecord>> {
        self.store.checkpoint(id)
    }

    fn checkpoints(&self, thread: ThreadId) -> Stored<'_, Vec<CheckpointRecord>> {
        self.store.checkpoints(thread)
    }

    fn last_checkpoint(&self, workspace: PathBuf) -> Stored<'_, Option<CheckpointRecord>> {
        self.store.last_checkpoint(workspace)
    }

    fn sync(&self) -> Stored<'_, ()> {
        self.store.sync()
    }
}

#[tokio::test]
async fn a_full_disk_ends_the_turn_with_its_reason_runs_no_writer_and_the_thread_goes_on_when_there_is_room()
{
    let brain = Brain::saying(vec![
        vec![
            text("Slowly"),
            call("1", "look", r#"{"n":0}"#),
            call("2", "change", "{}"),
            stop(StopReason::ToolUse),
        ],
        vec![text("Better"), stop(StopReason::EndTurn)],
    ]);
    let setup = Setup::new(brain.clone());
    let disk = Arc::new(Disk { store: setup.store().await, full: AtomicBool::new(false) });
    let bench = setup.engine_over(disk.clone());
    let thread = bench.thread().await.id;
    let mut watch = bench.watch(thread).await;
    bench.say(thread, "Go").await;
    bench.until_logged(r#"begin look {"n":0}"#).await;
    disk.full.store(true, Ordering::SeqCst);
    let (events, outcome) = watch.turn().await;
    let error = outcome.unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::Local);
    assert!(error.message.contains("the disk is full"), "{}", error.message);
    assert!(!bench.log().iter().any(|line| line.contains("change")), "what cannot be kept is not done");
    assert!(!completed(&events).iter().any(|line| line.starts_with("1: ")), "completed means stored");

    disk.full.store(false, Ordering::SeqCst);
    bench.turn(thread, "Again").await.1.unwrap();
    let shape = &brain.shapes()[1];
    assert!(shape[5].starts_with("2: interrupted") && shape[6] == "user: Again", "{shape:?}");
    bench.engine.shutdown().await;
    let statuses: Vec<ToolCallStatus> = {
        let again = Setup {
            home: bench.setup.home.clone(),
            workspace: bench.setup.workspace.clone(),
            ..Setup::new(Brain::saying(vec![]))
        };
        let bench = again.engine().await;
        bench.watch(thread).await;
        bench.calls(thread).await.iter().map(|call| call.status).collect()
    };
    assert!(statuses.iter().all(|status| status.is_final()), "{statuses:?}");
}
