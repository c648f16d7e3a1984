//! Checkpoints: what the files of a workspace were, so that a turn can be undone, with or without git.
//!
//! At the start and the end of a turn the workspace is looked at: the `stat` of every file that git does not ignore, the content
//! only of those that changed since the last look. The first look at a workspace reads everything, within limits; what the limits
//! leave out is picked up by the next looks, and listed until then.

mod beneath;
mod manifest;
mod restore;
mod walk;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hanzo_protocol::ids::{CheckpointId, ItemId, ThreadId, TurnId};
use hanzo_protocol::primitives::ContentHash;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use self::manifest::Manifest;
use self::walk::Walk;
use crate::{CheckpointRecord, FileBlobs, Moment, StoreError};

pub use self::manifest::{LeftOut, LeftOutWhy};
use self::restore::Act;
pub use self::restore::{ChangedSince, NotRestored, RestoreOptions, Restored};

/// How much a checkpoint may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointLimits {
    /// The most files.
    pub files: usize,
    /// The longest it may take.
    pub time: Duration,
    /// The largest file that is kept, in bytes.
    pub file_size: u64,
}

impl Default for CheckpointLimits {
    fn default() -> Self {
        Self { files: 50_000, time: Duration::from_secs(2), file_size: 8 * 1024 * 1024 }
    }
}

/// Makes checkpoints of one workspace.
#[derive(Clone)]
pub struct Checkpointer {
    inner: Arc<Inner>,
}

struct Inner {
    workspace: PathBuf,
    blobs: FileBlobs,
    limits: CheckpointLimits,
    last: Mutex<Option<Last>>,
}

#[derive(Clone)]
struct Last {
    hash: ContentHash,
    /// The list with what is known of the files by now.
    manifest: Arc<Manifest>,
    /// The list as it is kept under the hash: the same files, perhaps with older times.
    kept: Arc<Manifest>,
}

/// A checkpoint that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The list of its files, in the blob store; the same as before when nothing changed.
    pub manifest: ContentHash,
    /// How many files it has.
    pub files: u64,
    /// How many files had to be read.
    pub read: u64,
    /// What was left out: at most a thousand entries.
    pub left_out: Vec<LeftOut>,
    /// How many were left out beyond those.
    pub left_out_more: u64,
}

impl Checkpoint {
    /// What the store keeps of it.
    pub fn record(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        moment: Moment,
        workspace: impl Into<PathBuf>,
        after: Option<ItemId>,
    ) -> CheckpointRecord {
        CheckpointRecord {
            id: CheckpointId::new(),
            thread,
            turn,
            moment,
            at: Timestamp::now(),
            workspace: workspace.into(),
            after,
            manifest: self.manifest.clone(),
            files: self.files,
            left_out: self.left_out.len() as u64 + self.left_out_more,
        }
    }
}

/// A file that differs between two checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "camelCase")]
pub enum FileChange {
    /// Only the later one has it.
    Created {
        /// Relative to the workspace, with `/`.
        path: String,
    },
    /// Both have it, with another content or mode.
    Modified {
        /// Relative to the workspace, with `/`.
        path: String,
    },
    /// Only the earlier one has it.
    Deleted {
        /// Relative to the workspace, with `/`.
        path: String,
    },
}

impl FileChange {
    /// The file.
    pub fn path(&self) -> &str {
        match self {
            Self::Created { path } | Self::Modified { path } | Self::Deleted { path } => path,
        }
    }
}

impl Checkpointer {
    /// Makes checkpoints of `workspace`, with the usual limits.
    pub fn new(workspace: impl Into<PathBuf>, blobs: FileBlobs) -> Self {
        Self::with_limits(workspace, blobs, CheckpointLimits::default())
    }

    /// Makes checkpoints of `workspace` within `limits`.
    pub fn with_limits(workspace: impl Into<PathBuf>, blobs: FileBlobs, limits: CheckpointLimits) -> Self {
        let inner = Inner { workspace: workspace.into(), blobs, limits, last: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Goes on from an earlier checkpoint of the same workspace (`Store::last_checkpoint`), so that only what changed since
    /// then is read. One that cannot be read is no loss: everything is looked at then.
    pub async fn resume(&self, manifest: ContentHash) {
        let _ = self
            .blocking("resume", move |inner| {
                let loaded = Arc::new(Manifest::load(&manifest, &inner.blobs)?);
                let last = Last { hash: manifest, kept: Arc::clone(&loaded), manifest: loaded };
                *inner.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
                Ok(())
            })
            .await;
    }

    /// Makes a checkpoint of the workspace as it is.
    pub async fn take(&self) -> Result<Checkpoint, StoreError> {
        self.blocking("make a checkpoint of", Inner::take).await
    }

    /// What changed from one checkpoint to another, by path. What either left out is not in it.
    pub async fn diff(&self, from: ContentHash, to: ContentHash) -> Result<Vec<FileChange>, StoreError> {
        self.blocking("compare checkpoints of", move |inner| {
            Ok(changes(&*inner.load(&from)?, &*inner.load(&to)?))
        })
        .await
    }

    /// The content of a file as a checkpoint has it; `None` when it has no such file, or a link.
    pub async fn content(&self, at: ContentHash, path: String) -> Result<Option<Vec<u8>>, StoreError> {
        self.blocking("read a checkpoint of", move |inner| {
            match inner.load(&at)?.files.get(path.as_str()).map(|entry| &entry.content) {
                Some(manifest::Content::File { hash, .. }) => inner.blobs.load(hash),
                _ => Ok(None),
            }
        })
        .await
    }

    /// Takes back what happened between `to` and `since` (the newest checkpoint of the turns to undo; the workspace as it is
    /// when absent): changed and deleted files are written again, created ones removed. Files that neither checkpoint saw are
    /// not touched, and neither is what is outside the workspace. A checkpoint is made first.
    pub async fn restore(
        &self,
        to: ContentHash,
        since: Option<ContentHash>,
        options: RestoreOptions,
    ) -> Result<Restored, StoreError> {
        self.blocking("restore", move |inner| {
            let target = inner.load(&to)?;
            let before = inner.take()?.manifest;
            let since = inner.load(since.as_ref().unwrap_or(&before))?;
            restore::restore(inner, &target, &since, &options, before, Act::Do)
        })
        .await
    }

    /// What [`Self::restore`] would do now, and what the checkpoint or the workspace now leaves out, so that it stays as it is. No
    /// file is changed.
    pub async fn preview(
        &self,
        to: ContentHash,
        since: Option<ContentHash>,
    ) -> Result<(Restored, Vec<LeftOut>, u64), StoreError> {
        self.blocking("compare", move |inner| {
            let target = inner.load(&to)?;
            let before = inner.take()?.manifest;
            let since = inner.load(since.as_ref().unwrap_or(&before))?;
            let options = RestoreOptions::default();
            let now = inner.load(&before)?;
            let would = restore::restore(inner, &target, &since, &options, before, Act::Tell)?;
            // What came since and is not kept stays as well.
            let mut left_out = target.left_out.clone();
            let new = now.left_out.iter().filter(|left| !target.left_out.contains(left));
            left_out.extend(new.cloned());
            Ok((would, left_out, target.left_out_more.max(now.left_out_more)))
        })
        .await
    }

    /// Keeps the content of a file before it is edited, also of one that checkpoints leave out; `None` when there is none.
    pub async fn keep_file(&self, path: impl Into<PathBuf>) -> Result<Option<ContentHash>, StoreError> {
        let path = path.into();
        self.blocking("keep a file of", move |inner| match std::fs::read(inner.workspace.join(path)) {
            Ok(content) => inner.blobs.keep(&content).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Inner) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || {
            work(&inner).map_err(|error| StoreError::file(doing, &inner.workspace, &error))
        });
        done.await.map_err(|_| StoreError::Closed)?
    }
}

impl Inner {
    /// A list of files: the last one is in memory.
    fn load(&self, hash: &ContentHash) -> std::io::Result<Arc<Manifest>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match last {
            Some(last) if last.hash == *hash => Ok(last.manifest),
            _ => Manifest::load(hash, &self.blobs).map(Arc::new),
        }
    }

    fn take(&self) -> std::io::Result<Checkpoint> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let known = last.as_ref().map(|last| &*last.manifest);
        let (mut found, read) = Walk::new(&self.workspace, &self.blobs, &self.limits, known).run()?;
        let unchanged = last.as_ref().filter(|last| last.manifest.same_content(&found));
        let (hash, kept) = match (unchanged, &last) {
            // The same files: the same list, whatever their times say.
            (Some(last), _) => (last.hash.clone(), Some(Arc::clone(&last.kept))),
            (None, Some(last)) => (found.keep(Some((&last.hash, &last.kept)), &self.blobs)?, None),
            (None, None) => (found.keep(None, &self.blobs)?, None),
        };
        let checkpoint = Checkpoint {
            manifest: hash.clone(),
            files: found.files.len() as u64,
            read,
            left_out: found.left_out.clone(),
            left_out_more: found.left_out_more,
        };
        let manifest = Arc::new(found);
        let taken = Last { hash, kept: kept.unwrap_or_else(|| Arc::clone(&manifest)), manifest };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken);
        Ok(checkpoint)
    }
}

/// The differences from `before` to `after`, by path.
fn changes(before: &Manifest, after: &Manifest) -> Vec<FileChange> {
    let mut changed = Vec::new();
    let mut consider = |path: &str| {
        if before.leaves_out(path) || after.leaves_out(path) {
            return;
        }
        let content = |manifest: &Manifest| manifest.files.get(path).map(|entry| entry.content.clone());
        changed.extend(restore::change_of(path, content(before).as_ref(), content(after).as_ref()));
    };
    for path in before.files.keys() {
        if after.files.get(path).map(|e| &e.content) != before.files.get(path).map(|e| &e.content) {
            consider(path);
        }
    }
    for path in after.files.keys().filter(|path| !before.files.contains_key(*path)) {
        consider(path);
    }
    changed.sort_by(|a, b| a.path().cmp(b.path()));
    changed
}
