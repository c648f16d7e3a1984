//! What a thread has read and written: by path the hash it last saw, by hash the content. `fs.diff`, the diff in a conflict
//! and the classic tools' base hashes come from here.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hanzo_protocol::blob::{BlobError, BlobStore};
use hanzo_protocol::item::Taint;
use hanzo_protocol::primitives::{ContentHash, FileUri};
use serde_json::Value;

/// Paths remembered; the one seen longest ago is forgotten first.
const MAX_PATHS: usize = 4096;
/// Larger files are not kept when they are only read: reading a log must not double it on disk.
pub(crate) const MAX_KEPT_READ: usize = 4 << 20;
/// How many contents are remembered as kept, and for how long: whoever sweeps the store spares what is younger by far.
const MAX_KEPT: usize = 4096;
const KEPT_FOR: Duration = Duration::from_mins(10);

/// What a thread has read and written.
#[derive(Debug, Default)]
pub struct Ledger {
    seen: Mutex<Seen>,
    /// Content on its way to the blob store.
    pending: Arc<Mutex<HashMap<ContentHash, Arc<Vec<u8>>>>>,
    /// Content that was read and is in the blob store, and since when.
    kept: Arc<Mutex<HashMap<ContentHash, Instant>>>,
    /// Content that came from elsewhere.
    tainted: Mutex<HashMap<ContentHash, Taint>>,
    /// Where such content was put before the thread was opened again.
    brought: Mutex<HashMap<PathBuf, ContentHash>>,
    changes: Mutex<Changes>,
}

/// Paths whose content the thread found new, in order.
#[derive(Debug, Default)]
struct Changes {
    /// How many there have been.
    count: u64,
    latest: VecDeque<PathBuf>,
}

#[derive(Debug, Default)]
struct Seen {
    hashes: HashMap<PathBuf, ContentHash>,
    order: VecDeque<PathBuf>,
}

impl Ledger {
    /// Remembers that the thread saw `path` with the content `hash`.
    pub fn saw(&self, path: &Path, hash: &ContentHash) {
        let mut seen = lock(&self.seen);
        let before = seen.hashes.insert(path.to_owned(), hash.clone());
        if before.as_ref() != Some(hash) {
            lock(&self.changes).push(path);
        }
        if before.is_none() {
            seen.order.push_back(path.to_owned());
            while seen.order.len() > MAX_PATHS {
                if let Some(oldest) = seen.order.pop_front() {
                    seen.hashes.remove(&oldest);
                }
            }
        }
    }

    /// Forgets `path`: it is gone.
    pub fn gone(&self, path: &Path) {
        let mut seen = lock(&self.seen);
        if seen.hashes.remove(path).is_some() {
            seen.order.retain(|known| known != path);
        }
        lock(&self.changes).push(path);
    }

    /// The paths the thread read, wrote or removed since there were `count` such events, and how many there are now. Of very
    /// many only the latest are known.
    pub fn changed_since(&self, count: u64) -> (u64, Vec<PathBuf>) {
        let changes = lock(&self.changes);
        let new = usize::try_from(changes.count.saturating_sub(count)).unwrap_or(usize::MAX);
        let skip = changes.latest.len().saturating_sub(new);
        (changes.count, changes.latest.iter().skip(skip).cloned().collect())
    }

    /// Remembers that content came from elsewhere: reading it later, under a ref or as a file, brings it in again.
    pub fn taint(&self, hash: &ContentHash, taint: Taint) {
        lock(&self.tainted).insert(hash.clone(), taint);
    }

    /// Where content came from, if from elsewhere.
    pub fn taint_of(&self, hash: &ContentHash) -> Option<Taint> {
        lock(&self.tainted).get(hash).copied()
    }

    /// Where what the thread last saw at `path` came from, if from elsewhere.
    pub fn taint_at(&self, path: &Path) -> Option<Taint> {
        let brought = || lock(&self.brought).get(path).cloned();
        self.last_seen(path).or_else(brought).and_then(|hash| self.taint_of(&hash))
    }

    /// Remembers what an answer of an earlier run of the thread brought in: whatever has a hash in it, and where that was put.
    /// What the thread saw since it was opened goes before it.
    pub fn remind(&self, answer: &Value, taint: Taint) {
        let mut left = vec![answer];
        while let Some(value) = left.pop() {
            match value {
                Value::Object(fields) => {
                    let text = |name: &str| fields.get(name).and_then(Value::as_str);
                    let uri = text("uri").and_then(|uri| uri.parse::<FileUri>().ok());
                    if let (Some(uri), Some(hash)) = (uri, text("hash").and_then(|hash| hash.parse().ok())) {
                        lock(&self.brought).insert(uri.to_path(), hash);
                    }
                    left.extend(fields.values());
                }
                Value::Array(values) => left.extend(values),
                Value::String(text) => {
                    if let Ok(hash) = text.strip_prefix("blob:").unwrap_or(text).parse() {
                        self.taint(&hash, taint);
                    }
                }
                _ => {}
            }
        }
    }

    /// The hash the thread last saw at `path`.
    pub fn last_seen(&self, path: &Path) -> Option<ContentHash> {
        lock(&self.seen).hashes.get(path).cloned()
    }

    /// Keeps content that was read, without waiting for the disk: losing it costs a diff, waiting costs every read.
    pub fn keep_read(
        &self,
        blobs: &Arc<dyn BlobStore>,
        hash: &ContentHash,
        content: impl Into<Arc<Vec<u8>>>,
    ) {
        let content = content.into();
        let kept = lock(&self.kept).get(hash).is_some_and(|since| since.elapsed() < KEPT_FOR);
        if kept || content.len() > MAX_KEPT_READ {
            return;
        }
        if lock(&self.pending).insert(hash.clone(), Arc::clone(&content)).is_some() {
            return;
        }
        let (blobs, hash) = (Arc::clone(blobs), hash.clone());
        let (pending, kept) = (Arc::clone(&self.pending), Arc::clone(&self.kept));
        tokio::spawn(async move {
            // A store that cannot keep it leaves a diff unavailable, which `fs.diff` then says.
            if blobs.put(&content).await.is_ok() {
                let mut kept = lock(&kept);
                if kept.len() >= MAX_KEPT {
                    kept.clear();
                }
                kept.insert(hash.clone(), Instant::now());
            }
            lock(&pending).remove(&hash);
        });
    }

    /// The content of `hash`, if it was kept.
    pub async fn content(
        &self,
        blobs: &Arc<dyn BlobStore>,
        hash: &ContentHash,
    ) -> Result<Option<Vec<u8>>, BlobError> {
        let pending = lock(&self.pending).get(hash).cloned();
        match pending {
            Some(content) => Ok(Some(content.to_vec())),
            None => blobs.get(hash).await,
        }
    }
}

impl Changes {
    fn push(&mut self, path: &Path) {
        self.count += 1;
        self.latest.push_back(path.to_owned());
        if self.latest.len() > MAX_PATHS {
            self.latest.pop_front();
        }
    }
}

/// A panic elsewhere leaves the maps as they were: every change to them is one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hanzo_protocol::BoxFuture;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl BlobStore for Counted {
        fn put<'a>(&'a self, content: &'a [u8]) -> BoxFuture<'a, Result<ContentHash, BlobError>> {
            let fails = self.0.fetch_add(1, Ordering::Relaxed) == 0;
            Box::pin(async move {
                if fails {
                    return Err(BlobError { doing: "keep", reason: "the disk is full".into() });
                }
                Ok(ContentHash::of(content))
            })
        }

        fn get<'a>(&'a self, _: &'a ContentHash) -> BoxFuture<'a, Result<Option<Vec<u8>>, BlobError>> {
            Box::pin(async { Ok(None) })
        }
    }

    #[tokio::test]
    async fn what_is_read_again_is_kept_once_and_tried_again_where_that_failed() {
        let counted = Arc::new(Counted::default());
        let blobs: Arc<dyn BlobStore> = counted.clone();
        let ledger = Ledger::default();
        let hash = ContentHash::of(b"x");
        for expected in [1, 2, 2, 2] {
            ledger.keep_read(&blobs, &hash, b"x".to_vec());
            while !lock(&ledger.pending).is_empty() {
                tokio::task::yield_now().await;
            }
            assert_eq!(counted.0.load(Ordering::Relaxed), expected);
        }
    }
}
