//! The embedded store: one SQLite file in the user's data directory.
//!
//! One task owns the one connection that writes, and takes one job at a time from a bounded queue; a caller that goes away does
//! not interrupt its job. Reading goes through a few connections of its own, opened when first needed. A store in memory has only
//! the one connection.

mod claims;
mod index;
mod open;
mod read;
mod readers;
mod rescue;
mod schema;
mod script;
mod search;
mod threads;
mod wal;
mod write;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hanzo_protocol::BoxFuture;
use hanzo_protocol::engine::Page;
use hanzo_protocol::ids::{CheckpointId, ItemId, ThreadId};
use hanzo_protocol::item::Item;
use sqlx::Connection as _;
use tokio::sync::{mpsc, oneshot};

use self::readers::Readers;
use crate::{
    AuditEntry, AuditFilter, Batch, CheckpointRecord, Durability, Holder, ItemQuery, Lease, SearchHit,
    SearchQuery, Store, StoreError, Stored, StoredItem, ThreadChange, ThreadFilter, ThreadRecord,
};

pub use self::open::{OpenOptions, OpenReport};

type Connection = sqlx::SqliteConnection;

/// How many writes may wait. An engine waits for each of its own, so that the number of open threads is what fills it.
const WAITING_WRITES: usize = 64;

type Job = Box<dyn for<'w> FnOnce(&'w mut Writer) -> BoxFuture<'w, ()> + Send>;

/// Threads, items, audit records and checkpoints in one SQLite file, or in memory.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    jobs: mpsc::Sender<Job>,
    readers: Option<Readers>,
    /// The database file; none in memory.
    path: Option<PathBuf>,
    /// Whether the file is so new that the directory and its first page may not be on the disk yet.
    fresh: AtomicBool,
    claims: claims::Claims,
}

/// The connection that writes, and what it knows by heart.
struct Writer {
    connection: Connection,
    /// The keys of threads written to, so that a commit need not look them up.
    keys: HashMap<ThreadId, i64>,
    path: Option<PathBuf>,
}

impl SqliteStore {
    /// Opens the database in `directory`, which is made when it does not exist. What could not be read is set aside, and the
    /// report says so.
    pub async fn open(
        directory: impl AsRef<Path>,
        options: OpenOptions,
    ) -> Result<(Self, OpenReport), StoreError> {
        open::open(directory.as_ref(), options).await
    }

    /// A store that is forgotten with the process.
    pub async fn in_memory() -> Result<Self, StoreError> {
        open::in_memory().await
    }

    fn start(connection: Connection, path: Option<PathBuf>, fresh: bool) -> Self {
        let (jobs, mut waiting) = mpsc::channel::<Job>(WAITING_WRITES);
        let mut writer = Writer { connection, keys: HashMap::new(), path: path.clone() };
        let in_use = path.as_deref().map(index::InUse::new);
        tokio::spawn(async move {
            let _in_use = in_use;
            while let Some(job) = waiting.recv().await {
                job(&mut writer).await;
            }
            // Closing moves the log into the database, so that the next start has nothing to recover.
            let _ = writer.connection.close().await;
        });
        let readers = path.clone().map(Readers::new);
        let inner =
            Inner { jobs, readers, path, fresh: AtomicBool::new(fresh), claims: claims::Claims::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Ends the store once the writes that wait are done. What other clones ask for afterwards fails.
    pub async fn close(&self) {
        if let Some(readers) = &self.inner.readers {
            readers.close().await;
        }
        let (done, closed) = oneshot::channel();
        let job: Job = Box::new(|writer| {
            Box::pin(async move {
                let _ = script::Script::raw(&mut writer.connection, "PRAGMA wal_checkpoint(TRUNCATE)").await;
                let _ = done.send(());
            })
        });
        if self.inner.jobs.send(job).await.is_ok() {
            let _ = closed.await;
        }
    }

    /// Runs `job` on the writing connection, after those that wait, to its end.
    async fn write<T, F>(&self, job: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'w> FnOnce(&'w mut Writer) -> BoxFuture<'w, Result<T, StoreError>> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |writer| {
            Box::pin(async move {
                let result = job(writer).await;
                if let (Err(StoreError::Damaged { .. }), Some(path)) = (&result, &writer.path) {
                    rescue::suspect(path);
                }
                let _ = answer.send(result);
            })
        });
        self.inner.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }

    /// Runs `job` on a connection that only reads.
    async fn read<T, F>(&self, job: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T, StoreError>> + Send + 'static,
    {
        let Some(readers) = &self.inner.readers else {
            return self.write(move |writer| job(&mut writer.connection)).await;
        };
        let mut reader = readers.get().await?;
        let result = job(reader.connection()).await;
        if let (Err(StoreError::Damaged { .. }), Some(path)) = (&result, &self.inner.path) {
            rescue::suspect(path);
        }
        result
    }

    async fn sync_to_disk(&self) -> Result<(), StoreError> {
        let Some(path) = self.inner.path.clone() else { return Ok(()) };
        if self.inner.fresh.load(Ordering::Acquire) {
            // A file made a moment ago was not synced while it was made: a checkpoint syncs the log and the file itself.
            self.write(|writer| Box::pin(wal::checkpoint(&mut writer.connection))).await?;
            self.inner.fresh.store(false, Ordering::Release);
        }
        wal::sync(path).await
    }
}

impl Store for SqliteStore {
    fn create_thread(&self, record: ThreadRecord) -> Stored<'_, ()> {
        Box::pin(self.write(move |writer| Box::pin(threads::create(writer, record))))
    }

    fn thread(&self, id: ThreadId) -> Stored<'_, Option<ThreadRecord>> {
        Box::pin(self.read(move |connection| Box::pin(threads::get(connection, id))))
    }

    fn threads(&self, filter: ThreadFilter) -> Stored<'_, Page<ThreadRecord>> {
        Box::pin(self.read(move |connection| Box::pin(threads::list(connection, filter))))
    }

    fn update_thread(&self, id: ThreadId, change: ThreadChange) -> Stored<'_, ThreadRecord> {
        Box::pin(self.write(move |writer| Box::pin(threads::update(writer, id, change))))
    }

    fn delete_thread(&self, id: ThreadId) -> Stored<'_, ()> {
        Box::pin(async move {
            claims::refuse_if_held(self, id).await?;
            self.write(move |writer| Box::pin(threads::delete(writer, id))).await
        })
    }

    fn fork_thread(&self, source: ThreadId, until: Option<ItemId>, record: ThreadRecord) -> Stored<'_, ()> {
        Box::pin(self.write(move |writer| Box::pin(threads::fork(writer, source, until, record))))
    }

    fn import_thread(
        &self,
        record: ThreadRecord,
        items: Vec<StoredItem>,
        audit: Vec<AuditEntry>,
    ) -> Stored<'_, ()> {
        Box::pin(self.write(move |writer| Box::pin(threads::import(writer, record, items, audit))))
    }

    fn claim(&self, id: ThreadId, holder: Holder) -> Stored<'_, Lease> {
        Box::pin(claims::claim(self.clone(), id, holder))
    }

    fn commit(&self, batch: Batch) -> Stored<'_, ()> {
        Box::pin(async move {
            let durability = batch.durability;
            self.write(move |writer| Box::pin(write::commit(writer, batch))).await?;
            match durability {
                Durability::Process => Ok(()),
                Durability::Disk => self.sync_to_disk().await,
            }
        })
    }

    fn items(&self, query: ItemQuery) -> Stored<'_, Page<StoredItem>> {
        Box::pin(self.read(move |connection| Box::pin(read::items(connection, query))))
    }

    fn calls(&self, thread: ThreadId, tool: String) -> Stored<'_, Vec<Item>> {
        Box::pin(self.read(move |connection| Box::pin(read::calls(connection, thread, tool))))
    }

    fn append_audit(&self, entries: Arc<[AuditEntry]>) -> Stored<'_, ()> {
        Box::pin(self.write(move |writer| Box::pin(write::audit(writer, entries))))
    }

    fn audit(&self, filter: AuditFilter) -> Stored<'_, Page<AuditEntry>> {
        Box::pin(self.read(move |connection| Box::pin(read::audit(connection, filter))))
    }

    fn search(&self, query: SearchQuery) -> Stored<'_, Vec<SearchHit>> {
        Box::pin(self.read(move |connection| Box::pin(search::search(connection, query))))
    }

    fn save_checkpoint(&self, record: CheckpointRecord) -> Stored<'_, ()> {
        Box::pin(self.write(move |writer| Box::pin(write::checkpoint(writer, record))))
    }

    fn checkpoint(&self, id: CheckpointId) -> Stored<'_, Option<CheckpointRecord>> {
        Box::pin(self.read(move |connection| Box::pin(read::checkpoint(connection, id))))
    }

    fn checkpoints(&self, thread: ThreadId) -> Stored<'_, Vec<CheckpointRecord>> {
        Box::pin(self.read(move |connection| Box::pin(read::checkpoints(connection, thread))))
    }

    fn last_checkpoint(&self, workspace: PathBuf) -> Stored<'_, Option<CheckpointRecord>> {
        Box::pin(self.read(move |connection| Box::pin(read::last_checkpoint(connection, workspace))))
    }

    fn sync(&self) -> Stored<'_, ()> {
        Box::pin(self.sync_to_disk())
    }
}
