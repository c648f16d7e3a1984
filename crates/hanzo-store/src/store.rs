//! The store as the engine sees it. One trait, so that an embedded database and a team's server are the same to it.

use std::path::PathBuf;
use std::sync::Arc;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::engine::Page;
use hanzo_protocol::ids::{CheckpointId, ItemId, ThreadId};
use hanzo_protocol::item::Item;

use crate::{
    AuditEntry, AuditFilter, Batch, CheckpointRecord, Holder, ItemQuery, Lease, SearchHit, SearchQuery,
    StoreError, StoredItem, ThreadChange, ThreadFilter, ThreadRecord,
};

/// What a method of the store returns.
pub type Stored<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Keeps threads, items, audit records and checkpoints. What a method acknowledged survives the death of the process.
///
/// Dropping a future of a method that writes does not undo the write: it completes, unwatched.
pub trait Store: Send + Sync {
    /// Begins to keep a thread.
    fn create_thread(&self, record: ThreadRecord) -> Stored<'_, ()>;

    /// A thread; `None` when there is none of that id.
    fn thread(&self, id: ThreadId) -> Stored<'_, Option<ThreadRecord>>;

    /// Lists threads, the one that changed last first.
    fn threads(&self, filter: ThreadFilter) -> Stored<'_, Page<ThreadRecord>>;

    /// Changes a thread and returns what it is now.
    fn update_thread(&self, id: ThreadId, change: ThreadChange) -> Stored<'_, ThreadRecord>;

    /// Deletes a thread, its items and its checkpoints for good. Audit records stay.
    fn delete_thread(&self, id: ThreadId) -> Stored<'_, ()>;

    /// Copies the items of `source` up to and including `until` (all when absent) into the new thread `record`. The copies get
    /// ids of their own and keep order, visibility and time.
    fn fork_thread(&self, source: ThreadId, until: Option<ItemId>, record: ThreadRecord) -> Stored<'_, ()>;

    /// Keeps a whole thread that comes from elsewhere, as it is: all of it, or nothing.
    fn import_thread(
        &self,
        record: ThreadRecord,
        items: Vec<StoredItem>,
        audit: Vec<AuditEntry>,
    ) -> Stored<'_, ()>;

    /// Takes the one lease to write to a thread. A holder whose process is gone loses it at once;
    /// [`StoreError::Held`] says who has it otherwise.
    fn claim(&self, id: ThreadId, holder: Holder) -> Stored<'_, Lease>;

    /// Writes a batch in one transaction. The cost does not depend on the length of the thread.
    fn commit(&self, batch: Batch) -> Stored<'_, ()>;

    /// Reads items of a thread.
    fn items(&self, query: ItemQuery) -> Stored<'_, Page<StoredItem>>;

    /// The calls of one tool in a thread, whatever became of them, in order: `mode` finds `mode.activate`.
    fn calls(&self, thread: ThreadId, tool: String) -> Stored<'_, Vec<Item>>;

    /// Writes audit records alone, such as those of readers, in one transaction.
    fn append_audit(&self, entries: Arc<[AuditEntry]>) -> Stored<'_, ()>;

    /// Lists audit records, newest first.
    fn audit(&self, filter: AuditFilter) -> Stored<'_, Page<AuditEntry>>;

    /// Searches items and titles.
    fn search(&self, query: SearchQuery) -> Stored<'_, Vec<SearchHit>>;

    /// Keeps a checkpoint.
    fn save_checkpoint(&self, record: CheckpointRecord) -> Stored<'_, ()>;

    /// A checkpoint; `None` when there is none of that id.
    fn checkpoint(&self, id: CheckpointId) -> Stored<'_, Option<CheckpointRecord>>;

    /// The checkpoints of a thread, oldest first.
    fn checkpoints(&self, thread: ThreadId) -> Stored<'_, Vec<CheckpointRecord>>;

    /// The newest checkpoint of a workspace, whatever thread made it: the next one only looks at what changed since.
    fn last_checkpoint(&self, workspace: PathBuf) -> Stored<'_, Option<CheckpointRecord>>;

    /// Returns when everything committed so far is on the disk: at the end of a turn, and before an effect that cannot be
    /// repeated.
    fn sync(&self) -> Stored<'_, ()>;
}

// Held as `dyn` everywhere; this stops compiling when it no longer can be.
const _: Option<&dyn Store> = None;
