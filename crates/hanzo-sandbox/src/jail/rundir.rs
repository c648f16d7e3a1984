//! The directory a jail keeps on the host: its private `/tmp`, the record of placeholders, and a lock that says whether it
//! is alive. What a dead one left is swept when the next jail starts.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

use super::error::JailError;
use super::placeholder;

/// Prefix of a directory that is being made and has no lock yet.
const YOUNG: &str = "new-";

/// Tells the directories of one process apart.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// One jail's directory. Removed when dropped.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    pub(crate) lock: File,
}

impl RunDir {
    /// Makes a directory in `base` (or the default place) and sweeps dead ones beside it.
    pub(crate) fn create(base: Option<&Path>) -> Result<Self, JailError> {
        let base = base.map_or_else(default_base, Path::to_path_buf);
        let base = own_directory(&base)?;
        sweep_dead(&base);
        let make = || -> io::Result<Self> {
            let nanos =
                SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
            let count = COUNTER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{count}-{nanos:x}", std::process::id());
            let young = base.join(format!("{YOUNG}{name}"));
            fs::DirBuilder::new().mode(0o700).create(&young)?;
            let lock = File::create(young.join("lock"))?;
            flock(&lock, FlockOperation::LockExclusive)?;
            fs::create_dir(young.join("tmp"))?;
            fs::set_permissions(young.join("tmp"), fs::Permissions::from_mode(0o1777))?;
            let path = base.join(name);
            fs::rename(&young, &path)?;
            Ok(Self { path, lock })
        };
        make().map_err(JailError::io("make the jail's directory"))
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// Removes what is in the private `/tmp`, as far as that goes.
    pub(crate) fn empty_tmp(&self) {
        let _ = fs::remove_dir_all(self.tmp());
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.path.join("record")
    }

    pub(crate) fn base(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        placeholder::sweep(&self.record());
        remove_tree(&self.path);
    }
}

fn default_base() -> PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    std::env::temp_dir().join(format!("hanzo-jail-{uid}"))
}

/// The directory is in a place where others can make one first, so it is believed only if it is ours and closed: a forged
/// record would otherwise make us remove things.
fn own_directory(base: &Path) -> Result<PathBuf, JailError> {
    let bad = |reason: String| JailError::BadPath {
        path: base.to_path_buf(),
        role: "the jail's run directory",
        reason,
    };
    match fs::DirBuilder::new().mode(0o700).create(base) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(bad(error.to_string())),
        _ => {}
    }
    let metadata = fs::symlink_metadata(base).map_err(|error| bad(error.to_string()))?;
    let own = metadata.uid() == rustix::process::geteuid().as_raw();
    if !metadata.is_dir() || !own || metadata.mode() & 0o077 != 0 {
        return Err(bad("it must be a directory of this user that is closed to others (mode 0700)".into()));
    }
    base.canonicalize().map_err(|error| bad(error.to_string()))
}

fn sweep_dead(base: &Path) {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let young =
            path.file_name().and_then(|name| name.to_str()).is_none_or(|name| name.starts_with(YOUNG));
        if young {
            let age = fs::metadata(&path).and_then(|data| data.modified()).ok();
            let age = age.and_then(|made| made.elapsed().ok());
            if age.is_some_and(|age| age > Duration::from_hours(1)) {
                remove_tree(&path);
            }
            continue;
        }
        let Ok(lock) = OpenOptions::new().write(true).open(path.join("lock")) else { continue };
        if flock(lock.as_fd(), FlockOperation::NonBlockingLockExclusive).is_ok() {
            placeholder::sweep(&path.join("record"));
            remove_tree(&path);
        }
    }
}

/// Removes a tree in which commands may have closed directories to their owner.
fn remove_tree(path: &Path) {
    if fs::remove_dir_all(path).is_ok() {
        return;
    }
    let mut pending = vec![path.to_path_buf()];
    while let Some(dir) = pending.pop() {
        let _ = fs::set_permissions(&dir, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        pending.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
    let _ = fs::remove_dir_all(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_jails_directory_is_swept_and_a_live_ones_is_not() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().join("run");
        let live = RunDir::create(Some(&base)).unwrap();
        let dead = RunDir::create(Some(&base)).unwrap();
        let dead_path = dead.path.clone();
        fs::create_dir(dead_path.join("tmp/closed")).unwrap();
        fs::write(dead_path.join("tmp/closed/x"), "").unwrap();
        fs::set_permissions(dead_path.join("tmp/closed"), fs::Permissions::from_mode(0o000)).unwrap();
        flock(&dead.lock, FlockOperation::Unlock).unwrap(); // as the kernel does when its holder dies
        std::mem::forget(dead);
        let next = RunDir::create(Some(&base)).unwrap();
        assert!(!dead_path.exists());
        assert!(live.tmp().is_dir() && next.tmp().is_dir());
    }

    #[test]
    fn a_directory_that_others_can_enter_is_refused() {
        let base = tempfile::tempdir().unwrap();
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(RunDir::create(Some(base.path())), Err(JailError::BadPath { .. })));
    }
}
