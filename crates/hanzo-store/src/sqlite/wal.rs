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
use super::{Connection, StoreError, index};

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

const HEADER_BYTES: usize = 32;
const HEADER: u64 = HEADER_BYTES as u64;
const FRAME_HEADER: usize = 24;

/// What a log holds by its own account, before SQLite has checked it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claimed {
    /// The size of a frame, its header included.
    frame: u64,
    /// The frames that end a transaction, counted from 1.
    commits: Vec<u64>,
    /// Whether the file ends within a frame.
    cut: bool,
    /// What tells this use of the file from the one before.
    salts: [u8; 8],
    /// How many frames were acknowledged, where the process before left word of it.
    acknowledged: Option<u64>,
}

/// Reads the frames' headers only; `None` without a log, or with one whose own header makes no sense to us.
pub(super) fn claimed(database: &Path) -> Option<Claimed> {
    let mut file = File::open(beside(database, "-wal")).ok()?;
    let length = file.metadata().ok()?.len();
    let mut header = [0; HEADER_BYTES];
    file.read_exact(&mut header).ok()?;
    let page = u64::from(word(&header, 8));
    if !(512..=65_536).contains(&page) {
        return None;
    }
    let salts: [u8; 8] = header[16..24].try_into().ok()?;
    let frame = FRAME_HEADER as u64 + page;
    let acknowledged = index::acknowledged(database).filter(|known| known.salts == salts);
    let acknowledged = acknowledged.map(|known| known.frames);
    let mut claimed = Claimed { frame, commits: Vec::new(), cut: false, salts, acknowledged };
    let mut number = 0;
    let mut at = HEADER;
    let mut head = [0; FRAME_HEADER];
    while at + FRAME_HEADER as u64 <= length {
        file.seek(SeekFrom::Start(at)).ok()?;
        file.read_exact(&mut head).ok()?;
        // Frames of an earlier use of the file follow the current ones; they have other salts.
        if head[8..16] != salts {
            break;
        }
        number += 1;
        if at + frame > length {
            claimed.cut = true;
        }
        if word(&head, 4) != 0 {
            claimed.commits.push(number);
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
    /// A write that was never acknowledged. A process that is killed while it writes leaves this behind.
    LastWrite,
    /// Transactions that were acknowledged, as far as anybody can tell.
    More,
}

/// What the log claimed and SQLite did not accept.
pub(super) async fn torn(
    connection: &mut Connection,
    database: &Path,
    claimed: Claimed,
) -> Result<Torn, StoreError> {
    // Moves nothing, only says how many frames there are. (The index of the log has the number too, but this process may hold
    // locks on that file, which it would lose by opening and closing it.)
    let mut script = Script::default();
    script.step("PRAGMA wal_checkpoint(NOOP)");
    let ran = script.run(connection, "look at the log of the database").await?;
    let accepted: Option<i64> = ran.rows.first().and_then(|row| row.try_get(1).ok());
    let Some(accepted) = accepted.and_then(|frames| u64::try_from(frames).ok()) else {
        return Ok(Torn::Nothing);
    };
    if header_salts(database) != Some(claimed.salts) {
        // Somebody has begun the log anew meanwhile, which is done when all of it is in the database.
        return Ok(Torn::Nothing);
    }
    if let Some(acknowledged) = claimed.acknowledged {
        let unfinished = claimed.cut || claimed.commits.iter().any(|commit| *commit > accepted);
        return Ok(match (accepted < acknowledged, unfinished) {
            (true, _) => Torn::More,
            (false, true) => Torn::LastWrite,
            (false, false) => Torn::Nothing,
        });
    }
    let beyond: Vec<u64> = claimed.commits.iter().copied().filter(|commit| *commit > accepted).collect();
    // A write that was cut short, or the rest of one that another has partly overwritten since, does not fit the frame before
    // it. One that was complete does, whatever happened further up.
    let was_complete =
        |commit: &u64| fits_the_frame_before(database, claimed.frame, *commit).unwrap_or(false);
    Ok(match beyond.as_slice() {
        [] if claimed.cut => Torn::LastWrite,
        [] => Torn::Nothing,
        beyond if beyond.iter().any(was_complete) => Torn::More,
        _ => Torn::LastWrite,
    })
}

fn header_salts(database: &Path) -> Option<[u8; 8]> {
    let mut header = [0; HEADER_BYTES];
    File::open(beside(database, "-wal")).ok()?.read_exact(&mut header).ok()?;
    header[16..24].try_into().ok()
}

/// Whether the checksum of a frame continues that of the frame before it.
fn fits_the_frame_before(database: &Path, frame: u64, number: u64) -> Option<bool> {
    let mut file = File::open(beside(database, "-wal")).ok()?;
    let mut header = [0; HEADER_BYTES];
    file.read_exact(&mut header).ok()?;
    let big_endian = word(&header, 0) & 1 == 1;
    let mut before = [0; 8];
    // The first frame continues the checksum of the log's header.
    let before_at = if number == 1 { 24 } else { HEADER + (number - 2) * frame + 16 };
    file.seek(SeekFrom::Start(before_at)).ok()?;
    file.read_exact(&mut before).ok()?;
    let mut whole = vec![0; usize::try_from(frame).ok()?];
    file.seek(SeekFrom::Start(HEADER + (number - 1) * frame)).ok()?;
    file.read_exact(&mut whole).ok()?;
    let mut sums = (word(&before, 0), word(&before, 4));
    for part in [&whole[..8], &whole[FRAME_HEADER..]] {
        for pair in part.chunks_exact(8) {
            let number = |at: usize| {
                let bytes = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
                if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
            };
            sums.0 = sums.0.wrapping_add(number(0)).wrapping_add(sums.1);
            sums.1 = sums.1.wrapping_add(number(4)).wrapping_add(sums.0);
        }
    }
    Some(sums == (word(&whole, 16), word(&whole, 20)))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
