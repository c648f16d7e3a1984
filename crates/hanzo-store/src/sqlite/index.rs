//! The index of the write-ahead log, as the process before left it: it says how much of the log was acknowledged.
//!
//! A commit writes its frames into the log first, then the number of the last one into the index, and only then is it over. Both
//! are in the system's memory and outlive a process that is killed. So whoever finds frames of a whole transaction in the log that
//! SQLite does not accept can tell a process that was killed between the two (another one went on and wrote over half of them)
//! from a log that lost something. After a power failure the index may be older than the log, and nothing is read from it.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::wal::beside;

/// The databases this process has open. Opening and closing the index of one would cost its connections the locks they have on
/// that file, so it is left alone; and a log that is in use is not recovered, so there is nothing to learn either.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn open() -> MutexGuard<'static, Vec<PathBuf>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A database that is open in this process.
pub(super) struct InUse(PathBuf);

impl InUse {
    pub(super) fn new(database: &Path) -> Self {
        let database = resolved(database);
        open().push(database.clone());
        Self(database)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut open = open();
        if let Some(place) = open.iter().position(|path| *path == self.0) {
            open.swap_remove(place);
        }
    }
}

/// Whether this process has the database open.
pub(super) fn is_in_use(database: &Path) -> bool {
    open().contains(&resolved(database))
}

fn resolved(database: &Path) -> PathBuf {
    database.canonicalize().unwrap_or_else(|_| database.to_owned())
}

/// How much of a log was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acknowledged {
    /// The last frame of the last transaction.
    pub(super) frames: u64,
    /// The salts of the log it speaks of.
    pub(super) salts: [u8; 8],
}

/// A header of the index, of which there are two: the second is written first.
const HEADER: usize = 48;
/// What of it the checksum covers.
const SUMMED: usize = 40;
/// The only format there has ever been.
const FORMAT: u32 = 3_007_000;

/// What the index of `database` says; `None` without one, with one that makes no sense, or with one from before this system was
/// started. Not to be asked for while the database is open in this process.
pub(super) fn acknowledged(database: &Path) -> Option<Acknowledged> {
    let mut file = File::open(beside(database, "-shm")).ok()?;
    if file.metadata().ok()?.modified().ok()? < started() {
        return None;
    }
    let mut headers = [0; 2 * HEADER];
    file.read_exact(&mut headers).ok()?;
    let (first, second) = headers.split_at(HEADER);
    match (read(first), read(second)) {
        // Killed between the two: the older one is what was acknowledged.
        (Some(first), Some(second)) if first.salts == second.salts => {
            Some(Acknowledged { frames: first.frames.min(second.frames), ..first })
        }
        (one, other) => one.xor(other),
    }
}

fn read(header: &[u8]) -> Option<Acknowledged> {
    let word = |at: usize| Some(u32::from_ne_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let mut sums = (0_u32, 0_u32);
    for at in (0..SUMMED).step_by(8) {
        sums.0 = sums.0.wrapping_add(word(at)?).wrapping_add(sums.1);
        sums.1 = sums.1.wrapping_add(word(at + 4)?).wrapping_add(sums.0);
    }
    let sound = word(0)? == FORMAT && header[12] == 1 && sums == (word(40)?, word(44)?);
    let salts = header.get(32..40)?.try_into().ok()?;
    sound.then_some(Acknowledged { frames: u64::from(word(16)?), salts })
}

/// When this system was started, as far as it says so.
fn started() -> SystemTime {
    let seconds = std::fs::read_to_string("/proc/stat").ok().and_then(|stat| {
        stat.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<u64>().ok())
    });
    SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds.unwrap_or(0))
}
