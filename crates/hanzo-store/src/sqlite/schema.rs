//! The tables, and how an older database becomes a newer one.
//!
//! An item's `seq` is its thread's key in the upper half and its place in the thread in the lower: the rows of a thread lie
//! together in order of first append, and reading or appending at its end is one descent of the tree however long it is.

use super::script::{Script, script_error};
use super::{Connection, StoreError};

/// The schema this version writes.
pub(super) const VERSION: i64 = 1;

/// How many tables and indexes [`VERSION`] has by name; opening counts them.
pub(super) const NAMES: i64 = 12;

/// What takes schema `n` to `n + 1`, from an empty file on. Never edited once released: a change is another entry.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE IF NOT EXISTS threads (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        id BLOB NOT NULL UNIQUE,
        title TEXT NOT NULL,
        workspace TEXT NOT NULL,
        agent TEXT NOT NULL,
        model TEXT NOT NULL,
        mode TEXT NOT NULL,
        posture TEXT NOT NULL,
        effort TEXT,
        parent BLOB,
        forked_from BLOB,
        ephemeral INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        cursor INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        cache_write_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        reasoning_tokens INTEGER NOT NULL,
        cost INTEGER,
        state TEXT
    );
    CREATE TABLE IF NOT EXISTS items (
        seq INTEGER PRIMARY KEY,
        thread INTEGER NOT NULL,
        id BLOB NOT NULL,
        cursor INTEGER NOT NULL,
        kind TEXT NOT NULL,
        visibility INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        json TEXT NOT NULL,
        UNIQUE (thread, id)
    );
    CREATE INDEX IF NOT EXISTS items_cursor ON items (thread, cursor);
    CREATE INDEX IF NOT EXISTS items_active ON items (thread) WHERE visibility = 0;
    CREATE TABLE IF NOT EXISTS audit (
        seq INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        thread BLOB NOT NULL,
        tool TEXT NOT NULL,
        action TEXT,
        decision TEXT NOT NULL,
        json TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS audit_at ON audit (at);
    CREATE INDEX IF NOT EXISTS audit_thread ON audit (thread, at);
    CREATE TABLE IF NOT EXISTS checkpoints (
        seq INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        thread BLOB NOT NULL,
        workspace TEXT NOT NULL,
        json TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS checkpoints_thread ON checkpoints (thread);
    CREATE INDEX IF NOT EXISTS checkpoints_workspace ON checkpoints (workspace);
    CREATE TABLE IF NOT EXISTS leases (
        thread BLOB PRIMARY KEY,
        token BLOB NOT NULL,
        beat INTEGER NOT NULL,
        holder TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (
        text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
    );
"];

/// Brings the database to [`VERSION`] from `found`, in one transaction.
pub(super) async fn migrate(connection: &mut Connection, found: i64) -> Result<(), StoreError> {
    let doing = "create the tables of the database";
    let from = usize::try_from(found).map_err(|_| StoreError::invalid(doing, "its schema has no number"))?;
    let steps: String = MIGRATIONS.into_iter().skip(from).collect();
    let sql = format!("BEGIN IMMEDIATE; {steps} PRAGMA user_version = {VERSION}; COMMIT");
    match Script::raw(connection, sql).await {
        Ok(()) => Ok(()),
        Err(error) => {
            Script::rollback(connection).await;
            Err(script_error(doing, &error))
        }
    }
}

/// Throws the full-text index away and begins a new one.
pub(super) const NEW_INDEX: &str = "
    DROP TABLE IF EXISTS texts;
    CREATE VIRTUAL TABLE texts USING fts5 (
        text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
    );
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_migrations_as_versions() {
        assert_eq!(i64::try_from(MIGRATIONS.len()), Ok(VERSION));
    }
}
