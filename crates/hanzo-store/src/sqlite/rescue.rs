//! What happens to a database that cannot be read: it is set aside untouched, and what can still be read of it goes into a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hanzo_protocol::item::Item;
use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::open::{OpenReport, Opened, connect};
use super::script::{Parameter, Script};
use super::write::PLACE_BITS;
use super::{Connection, StoreError, search, wal};

/// How often reading a damaged table may fail before the rest of it is given up.
const MOST_FAILURES: u32 = 20_000;

const RESCUE: &str = "save what can be read of the damaged database";

/// Remembers that a query met damage, so that the next start looks at every page.
pub(super) fn suspect(path: &Path) {
    // When even this cannot be written, the next start meets the damage where this one did.
    let _ = std::fs::write(wal::beside(path, ".suspect"), b"");
}

/// Whether an earlier run met damage.
pub(super) fn is_suspect(path: &Path) -> bool {
    wal::beside(path, ".suspect").exists()
}

/// Forgets the suspicion.
pub(super) fn clear_suspicion(path: &Path) {
    let _ = std::fs::remove_file(wal::beside(path, ".suspect"));
}

/// Sets the database aside, makes a new one and moves into it what can be read.
pub(super) async fn replace(
    path: &Path,
    reason: &str,
    report: &mut OpenReport,
) -> Result<Opened, StoreError> {
    let aside = set_aside(path)?;
    let mut opened = connect(path, report).await?;
    let saved = save(&aside, &mut opened.connection).await;
    clear_suspicion(path);
    let name = aside.file_name().unwrap_or_default().to_string_lossy().into_owned();
    report.warn(match saved {
        Some(saved) => format!(
            "the database was damaged ({reason}); it was set aside as `{name}` and {} items of {} threads were saved from it{}",
            saved.items,
            saved.threads,
            if saved.holes { ", what is missing could not be read" } else { "" },
        ),
        None => format!(
            "the database could not be read ({reason}); it was set aside as `{name}` and a new one was begun"
        ),
    });
    Ok(opened)
}

fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let time = Timestamp::now().strftime("%Y%m%dT%H%M%S%3f");
    let aside = wal::beside(path, &format!(".damaged-{time}"));
    std::fs::rename(path, &aside).map_err(|error| StoreError::file("set aside", path, &error))?;
    for suffix in ["-wal", "-shm"] {
        // One that is not there need not be moved.
        let _ = std::fs::rename(wal::beside(path, suffix), wal::beside(&aside, suffix));
    }
    Ok(aside)
}

#[derive(Default)]
struct Saved {
    threads: usize,
    items: usize,
    holes: bool,
}

/// Copies every row that can be read and makes sense; `None` when nothing could be read at all.
async fn save(from: &Path, into: &mut Connection) -> Option<Saved> {
    let mut source = SqliteConnectOptions::new().filename(from).foreign_keys(false).connect().await.ok()?;
    let mut saved = Saved::default();
    let any = save_all(&mut source, into, &mut saved).await;
    let _ = source.close().await;
    any.then_some(saved)
}

struct Table {
    read: &'static str,
    write: &'static str,
    columns: usize,
}

const THREADS: Table = Table {
    read: "SELECT * FROM threads WHERE key > ? ORDER BY key LIMIT ?",
    write: "INSERT OR IGNORE INTO threads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    columns: 22,
};
const ITEMS: Table = Table {
    read: "SELECT * FROM items WHERE seq > ? ORDER BY seq LIMIT ?",
    write: "INSERT OR IGNORE INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    columns: 8,
};
const AUDIT: Table = Table {
    read: "SELECT * FROM audit WHERE seq > ? ORDER BY seq LIMIT ?",
    write: "INSERT OR IGNORE INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)",
    columns: 7,
};
const CHECKPOINTS: Table = Table {
    read: "SELECT * FROM checkpoints WHERE seq > ? ORDER BY seq LIMIT ?",
    write: "INSERT OR IGNORE INTO checkpoints VALUES (?, ?, ?, ?, ?)",
    columns: 5,
};

async fn save_all(source: &mut Connection, into: &mut Connection, saved: &mut Saved) -> bool {
    let threads = copy(source, into, &THREADS, saved, |row| {
        let plausible = bytes(row, 1)?.len() == 16 && row.try_get::<String, _>(2).is_ok();
        plausible.then_some(())
    })
    .await;
    let mut orphans = BTreeMap::new();
    let items = copy(source, into, &ITEMS, saved, |row| {
        let item: Item = serde_json::from_slice(&bytes(row, 7)?).ok()?;
        let key: i64 = row.try_get(1).ok()?;
        let seq: i64 = row.try_get(0).ok()?;
        let consistent = seq >> PLACE_BITS == key && bytes(row, 2)? == item.id.as_uuid().as_bytes();
        if consistent && !threads.contains(&key) {
            orphans.insert(key, item.thread_id);
        }
        consistent.then_some(())
    })
    .await;
    let json_row = |column: usize| {
        move |row: &SqliteRow| {
            serde_json::from_slice::<serde_json::Value>(&bytes(row, column)?).ok().map(|_| ())
        }
    };
    let audit = copy(source, into, &AUDIT, saved, json_row(6)).await;
    let checkpoints = copy(source, into, &CHECKPOINTS, saved, json_row(4)).await;
    saved.threads = threads.len() + orphans.len();
    saved.items = items.len();
    for (key, thread) in orphans {
        let mut script = Script::default();
        let now = super::write::nanoseconds(Timestamp::now());
        script
            .step(
                "INSERT OR IGNORE INTO threads VALUES \
                 (?, ?, 'Recovered thread', '', 'coder', '', 'normal', 'ask', NULL, NULL, NULL, 0, ?, ?, \
                 (SELECT coalesce(max(cursor), 0) FROM items WHERE thread = ?), 0, 0, 0, 0, 0, NULL, NULL)",
            )
            .bind(key)
            .bind(thread.as_uuid())
            .bind(now)
            .bind(now)
            .bind(key);
        let _ = script.run(into, RESCUE).await;
    }
    if search::rebuild(into).await.is_err() {
        saved.holes = true;
    }
    saved.threads + saved.items + audit.len() + checkpoints.len() > 0
}

fn bytes(row: &SqliteRow, column: usize) -> Option<Vec<u8>> {
    // Damaged text need not be UTF-8, so it is read as what it is.
    row.try_get_unchecked::<Vec<u8>, _>(column).ok()
}

/// Copies the rows of a table for which `plausible` says yes, skipping what cannot be read; the keys of those copied.
async fn copy(
    source: &mut Connection,
    into: &mut Connection,
    table: &Table,
    saved: &mut Saved,
    mut plausible: impl FnMut(&SqliteRow) -> Option<()>,
) -> BTreeSet<i64> {
    let mut copied = BTreeSet::new();
    let mut after = i64::MIN;
    let mut failures = 0;
    loop {
        match rows_after(source, table.read, after, 256).await {
            Some(rows) if rows.is_empty() => break,
            Some(rows) => {
                let mut script = Script::default();
                for row in &rows {
                    let Ok(key) = row.try_get::<i64, _>(0) else { continue };
                    after = after.max(key);
                    if plausible(row).is_some() && add(&mut script, table, row).is_some() {
                        copied.insert(key);
                    } else {
                        saved.holes = true;
                    }
                }
                if !script.is_empty() && script.transact(into, RESCUE).await.is_err() {
                    saved.holes = true;
                }
            }
            None => {
                saved.holes = true;
                match next_readable(source, table.read, after, &mut failures).await {
                    Some(next) => after = next,
                    None => break,
                }
            }
        }
    }
    copied
}

fn add(script: &mut Script, table: &Table, row: &SqliteRow) -> Option<()> {
    let mut values = Vec::with_capacity(table.columns);
    for column in 0..table.columns {
        values.push(value(row, column)?);
    }
    script.step(table.write);
    for value in values {
        script.bind(value);
    }
    Some(())
}

/// A column's value, whatever type it has; none for text that is not UTF-8.
fn value(row: &SqliteRow, column: usize) -> Option<Parameter> {
    if let Ok(number) = row.try_get::<Option<i64>, _>(column) {
        return Some(number.into());
    }
    if let Ok(text) = row.try_get::<String, _>(column) {
        return Some(text.into());
    }
    row.try_get::<Vec<u8>, _>(column).ok().map(Parameter::Bytes)
}

/// At most `most` rows whose key is greater than `after`; `None` when the place cannot be read.
async fn rows_after(
    source: &mut Connection,
    read: &'static str,
    after: i64,
    most: i64,
) -> Option<Vec<SqliteRow>> {
    let mut script = Script::default();
    script.step(read).bind(after).bind(most);
    script.run(source, RESCUE).await.ok().map(|ran| ran.rows)
}

/// The smallest number from which reading goes on: first one row further at a time may do, then ever greater steps until one
/// succeeds, then halving back.
async fn next_readable(
    source: &mut Connection,
    read: &'static str,
    after: i64,
    failures: &mut u32,
) -> Option<i64> {
    // The page may begin with readable rows.
    if let Some(rows) = rows_after(source, read, after, 1).await {
        return rows.first().and_then(|row| row.try_get(0).ok());
    }
    let mut bad = after.max(0);
    let mut step = 1_i64;
    let mut good = loop {
        *failures += 1;
        if *failures > MOST_FAILURES {
            return None;
        }
        let trial = after.max(0).checked_add(step)?;
        if rows_after(source, read, trial, 1).await.is_some() {
            break trial;
        }
        bad = trial;
        step = step.checked_mul(2)?;
    };
    while good - bad > 1 {
        let middle = bad + (good - bad) / 2;
        if rows_after(source, read, middle, 1).await.is_some() {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Some(good)
}
