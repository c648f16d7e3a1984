//! Audit records of readers: too many to wait for each, too important to be lost with more than the last moment.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::{AuditEntry, Batch, Store, StoreError};

/// How long a record waits for others to be written with.
const WINDOW: Duration = Duration::from_millis(50);

/// With so many records, they are written at once.
const MANY: usize = 256;

/// The most records that wait. With more, whoever adds one had better wait, too.
const MOST: usize = 16 * MANY;

/// Collects audit records and writes them together: with the next batch, or after 50 ms.
#[derive(Clone)]
pub struct AuditBuffer {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    waiting: Mutex<Waiting>,
    /// Held by whoever writes: a flush that finds nothing waiting must not be over before a write that is under way.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    entries: Vec<AuditEntry>,
    /// When a task will write them.
    due: Due,
    /// What went wrong with records nobody waited for, to be told by the next [`flush`](AuditBuffer::flush).
    failure: Option<StoreError>,
}

impl Waiting {
    fn take(&mut self) -> Vec<AuditEntry> {
        self.due = Due::Never;
        std::mem::take(&mut self.entries)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    #[default]
    Never,
    Soon,
    Now,
}

impl AuditBuffer {
    /// A buffer in front of `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            inner: Arc::new(Inner {
                store,
                waiting: Mutex::default(),
                writing: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// Adds a record; it is written within 50 ms. Must be called within a Tokio runtime.
    pub fn push(&self, entry: AuditEntry) {
        let mut waiting = self.inner.lock();
        waiting.entries.push(entry);
        let due = if waiting.entries.len() < MANY { Due::Soon } else { Due::Now };
        if waiting.due >= due {
            return;
        }
        waiting.due = due;
        drop(waiting);
        let buffer = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            if due == Due::Soon {
                tokio::time::sleep(WINDOW).await;
            }
            write_when_due(&buffer).await;
        });
    }

    /// Waits while too many records wait: a disk that is slower than those who add them must not fill the memory.
    pub async fn room(&self) {
        if self.inner.lock().entries.len() >= MOST {
            write_when_due(&Arc::downgrade(&self.inner)).await;
        }
    }

    /// Moves what waits into `batch`, to be written with it. When that commit fails the records are in the batch still, for
    /// the caller to try again.
    pub fn join(&self, batch: &mut Batch) {
        let mut waiting = self.inner.lock();
        batch.audit.append(&mut waiting.entries);
    }

    /// Writes what waits, now.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let before = self.inner.lock().failure.take();
        self.inner.write().await?;
        before.map_or(Ok(()), Err)
    }
}

async fn write_when_due(buffer: &Weak<Inner>) {
    let Some(inner) = buffer.upgrade() else { return };
    if let Err(error) = inner.write().await {
        inner.lock().failure = Some(error);
    }
}

impl Inner {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self) -> Result<(), StoreError> {
        let _alone = self.writing.lock().await;
        let entries: Arc<[AuditEntry]> = self.lock().take().into();
        if entries.is_empty() {
            return Ok(());
        }
        let written = self.store.append_audit(Arc::clone(&entries)).await;
        if written.is_err() {
            // Kept for the next try, in order, as far as there is room: a full disk must not fill the memory too.
            let mut waiting = self.lock();
            let newer = std::mem::replace(&mut waiting.entries, entries.to_vec());
            waiting.entries.extend(newer);
            waiting.entries.truncate(MOST);
        }
        written
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let entries = std::mem::take(&mut self.lock().entries);
        if entries.is_empty() {
            return;
        }
        // Without a runtime there is nobody left to write them; `flush` comes before the end.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let store = Arc::clone(&self.store);
            runtime.spawn(async move { store.append_audit(entries.into()).await });
        }
    }
}
