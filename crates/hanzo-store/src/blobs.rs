//! Content by its hash, one file each.
//!
//! A file is written beside its place and renamed into it, so that a name never stands for half a content, and it is not synced:
//! after a power failure it may be missing or empty. Whoever needs it to survive one calls [`FileBlobs::sync`] at the same moments
//! the store syncs its log (the end of a turn, before an effect that cannot be repeated), which is far cheaper than a sync for
//! every file of a checkpoint. What is read is hashed again: content that is not what was kept counts as missing, and is written
//! anew by the next `put`.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use hanzo_protocol::BoxFuture;
use hanzo_protocol::blob::{BlobError, BlobStore};
use hanzo_protocol::primitives::ContentHash;
use uuid::Uuid;

use crate::StoreError;

/// The most files remembered for the next sync. With more, the whole file system is synced instead, which is then cheaper.
const REMEMBERED: usize = 256;

/// How the names of files begin that are being written.
const UNFINISHED: &str = ".new-";

/// Keeps content in files named by its hash.
#[derive(Clone)]
pub struct FileBlobs {
    inner: Arc<Inner>,
}

struct Inner {
    directory: PathBuf,
    unsynced: Mutex<Unsynced>,
}

#[derive(Default)]
struct Unsynced {
    files: Vec<PathBuf>,
    overflow: bool,
}

/// What a sweep removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many contents.
    pub removed: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl FileBlobs {
    /// Keeps content below `directory`, which is made when it does not exist.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let directory = directory.into();
        make_directory(&directory)
            .map_err(|error| StoreError::file("make the directory", &directory, &error))?;
        Ok(Self { inner: Arc::new(Inner { directory, unsynced: Mutex::default() }) })
    }

    /// Two levels of names keep each directory small; the first is one of 256.
    fn path(&self, hash: &ContentHash) -> PathBuf {
        let digits = hash.as_str().trim_start_matches("sha256:");
        let (shard, rest) = digits.split_at(2);
        self.inner.directory.join(shard).join(rest)
    }

    /// Keeps `content`. Blocks; [`BlobStore::put`] does the same elsewhere.
    pub fn keep(&self, content: &[u8]) -> std::io::Result<ContentHash> {
        let hash = ContentHash::of(content);
        self.keep_as(&hash, content)?;
        Ok(hash)
    }

    fn keep_as(&self, hash: &ContentHash, content: &[u8]) -> std::io::Result<()> {
        let path = self.path(hash);
        match fs::metadata(&path) {
            // Touched, so that a sweep at this moment does not take it for abandoned.
            Ok(there) if there.len() == content.len() as u64 => {
                let _ = touch(&path, &there);
                return Ok(());
            }
            // Torn by a power failure; or not there.
            _ => {}
        }
        let shard = path.parent().unwrap_or(&self.inner.directory);
        let unfinished = shard.join(format!("{UNFINISHED}{}", Uuid::now_v7().simple()));
        let written = match write_file(&unfinished, content) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make_directory(shard)?;
                write_file(&unfinished, content)
            }
            written => written,
        };
        let placed = written.and_then(|()| fs::rename(&unfinished, &path));
        if placed.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        placed?;
        let mut unsynced = self.inner.unsynced.lock().unwrap_or_else(PoisonError::into_inner);
        if unsynced.files.len() < REMEMBERED {
            unsynced.files.push(path);
        } else {
            unsynced.overflow = true;
        }
        Ok(())
    }

    /// The content of `hash`; `None` when it is not there or no longer what it was. Blocks.
    pub fn load(&self, hash: &ContentHash) -> std::io::Result<Option<Vec<u8>>> {
        let mut content = Vec::new();
        match File::open(self.path(hash)) {
            Ok(mut file) => file.read_to_end(&mut content)?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if ContentHash::of(&content) == *hash {
            return Ok(Some(content));
        }
        // Out of the way, so that the right content can be kept again.
        let _ = fs::remove_file(self.path(hash));
        Ok(None)
    }

    /// Whether content of this hash is kept, without reading it. Blocks.
    pub fn has(&self, hash: &ContentHash) -> bool {
        self.path(hash).exists()
    }

    /// Returns when everything kept so far is on the disk.
    pub async fn sync(&self) -> Result<(), StoreError> {
        let unsynced =
            std::mem::take(&mut *self.inner.unsynced.lock().unwrap_or_else(PoisonError::into_inner));
        if unsynced.files.is_empty() {
            return Ok(());
        }
        let directory = self.inner.directory.clone();
        let synced = tokio::task::spawn_blocking(move || {
            sync_files(&directory, &unsynced).map_err(|error| StoreError::file("sync", &directory, &error))
        });
        synced.await.map_err(|_| StoreError::Closed)?
    }

    /// Removes what is not in `keep` and was last put more than `older` ago, unfinished files included. The age protects
    /// content that was put a moment ago and is not referred to yet.
    pub async fn sweep(&self, keep: HashSet<ContentHash>, older: Duration) -> Result<Swept, StoreError> {
        let blobs = self.clone();
        let swept = tokio::task::spawn_blocking(move || {
            let directory = &blobs.inner.directory;
            sweep(directory, &keep, older).map_err(|error| StoreError::file("sweep", directory, &error))
        });
        swept.await.map_err(|_| StoreError::Closed)?
    }
}

impl BlobStore for FileBlobs {
    fn put<'a>(&'a self, content: &'a [u8]) -> BoxFuture<'a, Result<ContentHash, BlobError>> {
        let blobs = self.clone();
        Box::pin(async move {
            let content = content.to_vec();
            blocking("keep", move || blobs.keep(&content)).await
        })
    }

    fn get<'a>(&'a self, hash: &'a ContentHash) -> BoxFuture<'a, Result<Option<Vec<u8>>, BlobError>> {
        let blobs = self.clone();
        Box::pin(async move {
            let hash = hash.clone();
            blocking("read", move || blobs.load(&hash)).await
        })
    }
}

async fn blocking<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, BlobError> {
    let wrong = |reason: String| BlobError { doing, reason };
    let done = tokio::task::spawn_blocking(work).await.map_err(|error| wrong(error.to_string()))?;
    done.map_err(|error| wrong(error.to_string()))
}

fn make_directory(directory: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn write_file(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(content)
}

fn touch(path: &Path, there: &fs::Metadata) -> std::io::Result<()> {
    let now = SystemTime::now();
    // Not each time: a sweep's age is hours.
    let recent = there.modified().is_ok_and(|at| now.duration_since(at).unwrap_or_default().as_secs() < 600);
    if recent { Ok(()) } else { File::options().write(true).open(path)?.set_modified(now) }
}

fn sync_files(directory: &Path, unsynced: &Unsynced) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    if unsynced.overflow {
        return Ok(rustix::fs::syncfs(File::open(directory)?)?);
    }
    let mut shards = HashSet::from([directory.to_owned()]);
    for path in &unsynced.files {
        match File::open(path) {
            Ok(file) => file.sync_data()?,
            // Swept in between.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        shards.extend(path.parent().map(Path::to_owned));
    }
    if cfg!(unix) {
        // The names have to survive as well as the contents.
        for shard in shards {
            File::open(shard)?.sync_all()?;
        }
    }
    Ok(())
}

fn sweep(directory: &Path, keep: &HashSet<ContentHash>, older: Duration) -> std::io::Result<Swept> {
    let mut swept = Swept::default();
    let now = SystemTime::now();
    for shard in fs::read_dir(directory)? {
        let shard = shard?;
        if !shard.file_type()?.is_dir() {
            continue;
        }
        for entry in fs::read_dir(shard.path())? {
            let entry = entry?;
            let name = format!("sha256:{}{}", shard.file_name().display(), entry.file_name().display());
            if name.parse::<ContentHash>().is_ok_and(|hash| keep.contains(&hash)) {
                continue;
            }
            let Ok(meta) = entry.metadata() else { continue };
            let age = meta.modified().ok().and_then(|at| now.duration_since(at).ok()).unwrap_or_default();
            if meta.is_file() && age >= older && fs::remove_file(entry.path()).is_ok() {
                swept.removed += 1;
                swept.bytes += meta.len();
            }
        }
    }
    Ok(swept)
}
