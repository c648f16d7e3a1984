//! The write-ahead log: when it is on the disk, and whether it was torn.
//!
//! A commit with `synchronous=NORMAL` is in the log, in the system's memory: it survives the process. To survive a power failure
//! the log has to be synced. `synchronous=FULL` for one transaction would do that too, but SQLite applies that pragma when it
//! is compiled, not when it runs, so it would cost two statements compiled each time; a checkpoint would sync two files and copy
//! pages. Syncing the log itself is one `fdatasync`, whichever connection wrote to it. SQLite takes no lock on this file, so
//! that opening and closing it loses none (which it would for the database file).

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use sqlx::Row as _;

use super::script::{Script, script_error};
use super::{Connection, StoreError};

/// The name of a file beside the database.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns when the log is on the disk.
pub(super) async fn sync(database: PathBuf) -> Result<(), StoreError> {
    let log = beside(&database, "-wal");
    let synced = tokio::task::spawn_blocking(move || match File::open(&log) {
        Ok(file) => file.sync_data().map_err(|error| StoreError::file("sync", &log, &error)),
        // No log: another process was the last to close and moved it into the database.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::file("sync", &log, &error)),
    });
    synced.await.map_err(|_| StoreError::Closed)?
}

/// Moves the log into the database; both are on the disk afterwards.
pub(super) async fn checkpoint(connection: &mut Connection) -> Result<(), StoreError> {
    Script::raw(connection, "PRAGMA wal_checkpoint(PASSIVE)")
        .await
        .map_err(|error| script_error("sync the database", &error))
}

const HEADER: u64 = 32;
const FRAME_HEADER: usize = 24;

/// What a log holds by its own account, before SQLite has checked it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claimed {
    /// How many frames there are.
    frames: u32,
    /// The number of the last frame that ends a transaction.
    last_commit: u32,
    /// The number of the one before it.
    commit_before: u32,
    /// Whether the file ends within a frame.
    cut: bool,
}

/// Reads the frames' headers only; `None` without a log, or with one whose own header makes no sense to us.
pub(super) fn claimed(database: &Path) -> Option<Claimed> {
    let mut file = File::open(beside(database, "-wal")).ok()?;
    let length = file.metadata().ok()?.len();
    let mut header = [0; HEADER as usize];
    file.read_exact(&mut header).ok()?;
    let page = u64::from(word(&header, 8));
    if !(512..=65_536).contains(&page) {
        return None;
    }
    let salts = &header[16..24];
    let frame = FRAME_HEADER as u64 + page;
    let mut claimed = Claimed { frames: 0, last_commit: 0, commit_before: 0, cut: false };
    let mut at = HEADER;
    let mut head = [0; FRAME_HEADER];
    while at + FRAME_HEADER as u64 <= length {
        file.seek(SeekFrom::Start(at)).ok()?;
        file.read_exact(&mut head).ok()?;
        // Frames of an earlier use of the file follow the current ones; they have other salts.
        if head[8..16] != *salts {
            break;
        }
        claimed.frames += 1;
        if at + frame > length {
            claimed.cut = true;
        }
        if word(&head, 4) != 0 {
            claimed.commit_before = claimed.last_commit;
            claimed.last_commit = claimed.frames;
        }
        at += frame;
    }
    Some(claimed)
}

/// What of a log is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Torn {
    /// Nothing.
    Nothing,
    /// The write at its very end. A process that is killed while it writes leaves this behind, with nothing acknowledged lost; so
    /// does a log that was cut off, and the two cannot be told apart.
    LastWrite,
    /// Transactions that were complete once.
    More,
}

/// What the log claimed and SQLite did not accept.
pub(super) async fn torn(connection: &mut Connection, claimed: Claimed) -> Result<Torn, StoreError> {
    // Moves nothing, only says how many frames there are. (The index of the log has the number too, but this process may hold
    // locks on that file, which it would lose by opening and closing it.)
    let mut script = Script::default();
    script.step("PRAGMA wal_checkpoint(NOOP)");
    let ran = script.run(connection, "look at the log of the database").await?;
    let frames: i64 = ran.rows.first().and_then(|row| row.try_get(1).ok()).unwrap_or(-1);
    let missing = (0..i64::from(claimed.last_commit)).contains(&frames);
    let only_the_last =
        claimed.last_commit == claimed.frames && i64::from(claimed.commit_before) <= frames;
    Ok(match (missing, only_the_last) {
        (true, false) => Torn::More,
        (true, true) => Torn::LastWrite,
        (false, _) if claimed.cut => Torn::LastWrite,
        (false, _) => Torn::Nothing,
    })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
