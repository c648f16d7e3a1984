//! Threads: making, listing, changing, deleting and copying them.

use std::path::Path;

use hanzo_protocol::engine::{Page, ThreadSummary};
use hanzo_protocol::event::EventCursor;
use hanzo_protocol::ids::{ItemId, ThreadId};
use hanzo_protocol::usage::{Cost, Usage};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::script::{Ran, Script};
use super::write::{first_seq, integer, json, last_seq, nanoseconds, put_audit, put_item};
use super::{Connection, Writer, read};
use crate::{AuditEntry, ItemQuery, StoreError, StoredItem, ThreadChange, ThreadFilter, ThreadRecord, text};

type Wrong = Box<dyn std::error::Error>;

/// A workspace as it is kept and compared.
pub(super) fn workspace_text(workspace: &Path) -> String {
    workspace.to_string_lossy().into_owned()
}

/// The word of a mode, posture or effort.
fn word(value: impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(ToOwned::to_owned)
}

fn of_word<T: DeserializeOwned>(word: &str) -> Result<T, Wrong> {
    Ok(serde_json::from_value(Value::String(word.to_owned()))?)
}

impl Writer {
    /// The key of a thread.
    pub(super) async fn key(&mut self, id: ThreadId, doing: &'static str) -> Result<i64, StoreError> {
        if let Some(key) = self.keys.get(&id) {
            return Ok(*key);
        }
        let key = key_of(&mut self.connection, id, doing).await?;
        let key = key.ok_or(StoreError::NoThread { thread: id })?;
        self.keys.insert(id, key);
        Ok(key)
    }
}

/// The key of a thread; `None` when there is none of that id.
pub(super) async fn key_of(
    connection: &mut Connection,
    id: ThreadId,
    doing: &'static str,
) -> Result<Option<i64>, StoreError> {
    let mut script = Script::default();
    script.step("SELECT key FROM threads WHERE id = ?").bind(id.as_uuid());
    let ran = script.run(connection, doing).await?;
    Ok(ran.rows.first().and_then(|row| row.try_get(0).ok()))
}

const CREATE: &str = "begin the thread";

pub(super) async fn create(writer: &mut Writer, record: ThreadRecord) -> Result<(), StoreError> {
    let mut script = Script::default();
    insert(&mut script, &record)?;
    let ran = script.transact(&mut writer.connection, CREATE).await?;
    remember(writer, record.id(), &ran)
}

fn remember(writer: &mut Writer, id: ThreadId, ran: &Ran) -> Result<(), StoreError> {
    let key = ran.rows.first().and_then(|row| row.try_get(0).ok());
    let key = key.ok_or_else(|| StoreError::invalid(CREATE, format!("there is a thread `{id}` already")))?;
    writer.keys.insert(id, key);
    Ok(())
}

fn insert(script: &mut Script, record: &ThreadRecord) -> Result<(), StoreError> {
    let summary = &record.summary;
    let usage = &record.usage;
    let state = if record.state.is_null() { None } else { Some(json(CREATE, &record.state)?) };
    script
        .step(
            "INSERT INTO threads (id, title, workspace, agent, model, mode, posture, effort, parent, forked_from, \
             ephemeral, created_at, updated_at, cursor, input_tokens, cache_read_tokens, cache_write_tokens, \
             output_tokens, reasoning_tokens, cost, state) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
             ON CONFLICT (id) DO NOTHING RETURNING key",
        )
        .bind(summary.id.as_uuid())
        .bind(summary.title.as_str())
        .bind(workspace_text(&summary.workspace))
        .bind(summary.agent.as_str())
        .bind(summary.model.as_str())
        .bind(word(summary.mode))
        .bind(word(summary.posture))
        .bind(record.effort.and_then(word))
        .bind(summary.parent.map(|id| id.as_uuid()))
        .bind(record.forked_from.map(|id| id.as_uuid()))
        .bind(i64::from(record.ephemeral))
        .bind(nanoseconds(summary.created_at))
        .bind(nanoseconds(summary.updated_at))
        .bind(integer(summary.cursor.0))
        .bind(integer(usage.input_tokens))
        .bind(integer(usage.cache_read_tokens))
        .bind(integer(usage.cache_write_tokens))
        .bind(integer(usage.output_tokens))
        .bind(integer(usage.reasoning_tokens))
        .bind(record.cost.map(|cost| integer(cost.nano_usd())))
        .bind(state);
    if !summary.title.trim().is_empty() {
        index_title(script, summary.id, &summary.title);
    }
    Ok(())
}

fn index_title(script: &mut Script, id: ThreadId, title: &str) {
    script
        .step("INSERT OR REPLACE INTO texts (rowid, text) SELECT -key, ? FROM threads WHERE id = ?")
        .bind(title)
        .bind(id.as_uuid());
}

const READ: &str = "read the thread";

pub(super) async fn get(
    connection: &mut Connection,
    id: ThreadId,
) -> Result<Option<ThreadRecord>, StoreError> {
    let mut script = Script::default();
    script.step("SELECT * FROM threads WHERE id = ?").bind(id.as_uuid());
    let ran = script.run(connection, READ).await?;
    ran.rows.first().map(record).transpose()
}

/// A thread of its row.
fn record(row: &SqliteRow) -> Result<ThreadRecord, StoreError> {
    decode(row).map_err(|error| StoreError::invalid(READ, error))
}

fn decode(row: &SqliteRow) -> Result<ThreadRecord, Wrong> {
    let id = |column: &str| -> Result<Option<ThreadId>, Wrong> {
        let bytes: Option<&[u8]> = row.try_get(column)?;
        Ok(bytes.map(Uuid::from_slice).transpose()?.map(Into::into))
    };
    let moment = |column: &str| -> Result<Timestamp, Wrong> {
        Ok(Timestamp::from_nanosecond(i128::from(row.try_get::<i64, _>(column)?))?)
    };
    let count = |column: &str| -> Result<u64, Wrong> { Ok(u64::try_from(row.try_get::<i64, _>(column)?)?) };
    let summary = ThreadSummary {
        id: id("id")?.ok_or("it has no id")?,
        title: row.try_get("title")?,
        workspace: row.try_get::<String, _>("workspace")?.into(),
        agent: row.try_get("agent")?,
        model: row.try_get("model")?,
        mode: of_word(row.try_get("mode")?)?,
        posture: of_word(row.try_get("posture")?)?,
        parent: id("parent")?,
        created_at: moment("created_at")?,
        updated_at: moment("updated_at")?,
        cursor: EventCursor(count("cursor")?),
    };
    let effort: Option<&str> = row.try_get("effort")?;
    let cost: Option<i64> = row.try_get("cost")?;
    let state: Option<&str> = row.try_get("state")?;
    Ok(ThreadRecord {
        summary,
        effort: effort.map(of_word).transpose()?,
        ephemeral: row.try_get("ephemeral")?,
        forked_from: id("forked_from")?,
        usage: Usage {
            input_tokens: count("input_tokens")?,
            cache_read_tokens: count("cache_read_tokens")?,
            cache_write_tokens: count("cache_write_tokens")?,
            output_tokens: count("output_tokens")?,
            reasoning_tokens: count("reasoning_tokens")?,
        },
        cost: cost.map(u64::try_from).transpose()?.map(Cost::from_nano_usd),
        state: state.map_or(Ok(Value::Null), serde_json::from_str)?,
    })
}

pub(super) async fn list(
    connection: &mut Connection,
    filter: ThreadFilter,
) -> Result<Page<ThreadRecord>, StoreError> {
    const DOING: &str = "list threads";
    let limit = i64::from(filter.limit.unwrap_or(50)).max(1);
    let (before, before_key) = match &filter.cursor {
        None => (i64::MAX, i64::MAX),
        Some(cursor) => cursor
            .split_once(':')
            .and_then(|(at, key)| Some((at.parse().ok()?, key.parse().ok()?)))
            .ok_or_else(|| StoreError::invalid(DOING, format!("`{cursor}` is not where a page ended")))?,
    };
    let workspace = filter.workspace.as_deref().map(workspace_text);
    let parent = filter.parent.map(|id| id.as_uuid());
    let mut script = Script::default();
    let words = match &filter.search {
        None => None,
        // Text without a word in it, such as `?`, is found nowhere.
        Some(typed) => match text::query(typed) {
            None => return Ok(Page { entries: Vec::new(), next: None }),
            words => words,
        },
    };
    script.step(match words {
        None => {
            "SELECT * FROM threads WHERE NOT ephemeral AND (? IS NULL OR workspace = ?) AND parent IS ? \
             AND (updated_at, key) < (?, ?) ORDER BY updated_at DESC, key DESC LIMIT ?"
        }
        Some(_) => {
            "SELECT * FROM threads WHERE NOT ephemeral AND (? IS NULL OR workspace = ?) AND parent IS ? \
             AND key IN (SELECT CASE WHEN rowid < 0 THEN -rowid ELSE rowid >> 32 END FROM texts WHERE texts MATCH ?) \
             AND (updated_at, key) < (?, ?) ORDER BY updated_at DESC, key DESC LIMIT ?"
        }
    });
    script.bind(workspace.clone()).bind(workspace).bind(parent);
    if words.is_some() {
        script.bind(words);
    }
    script.bind(before).bind(before_key).bind(limit + 1);
    let mut rows = script.run(connection, DOING).await?.rows;
    let more = rows.len() > usize::try_from(limit).unwrap_or(usize::MAX);
    if more {
        rows.pop();
    }
    let next = rows.last().filter(|_| more).map(|row| {
        let number = |column: &str| row.try_get::<i64, _>(column).unwrap_or_default();
        format!("{}:{}", number("updated_at"), number("key"))
    });
    // One that is damaged does not hide the others.
    Ok(Page { entries: rows.iter().filter_map(|row| record(row).ok()).collect(), next })
}

pub(super) async fn update(
    writer: &mut Writer,
    id: ThreadId,
    change: ThreadChange,
) -> Result<ThreadRecord, StoreError> {
    const DOING: &str = "change the thread";
    let key = writer.key(id, DOING).await?;
    let mut script = Script::default();
    script
        .step(
            "UPDATE threads SET updated_at = ?, title = coalesce(?, title), model = coalesce(?, model), \
             mode = coalesce(?, mode), posture = coalesce(?, posture), \
             effort = CASE WHEN ? THEN ? ELSE effort END, cursor = max(cursor, ?), \
             state = CASE WHEN ? THEN ? ELSE state END WHERE key = ? RETURNING *",
        )
        .bind(nanoseconds(Timestamp::now()))
        .bind(change.title.clone())
        .bind(change.model)
        .bind(change.mode.and_then(word))
        .bind(change.posture.and_then(word))
        .bind(i64::from(change.effort.is_some()))
        .bind(change.effort.flatten().and_then(word))
        .bind(integer(change.cursor.unwrap_or_default().0))
        .bind(i64::from(change.state.is_some()))
        .bind(match &change.state {
            None | Some(Value::Null) => None,
            Some(state) => Some(json(DOING, state)?),
        })
        .bind(key);
    if let Some(title) = &change.title {
        index_title(&mut script, id, title);
    }
    let ran = script.transact(&mut writer.connection, DOING).await?;
    let Some(row) = ran.rows.first() else {
        writer.keys.remove(&id);
        return Err(StoreError::NoThread { thread: id });
    };
    record(row)
}

pub(super) async fn delete(writer: &mut Writer, id: ThreadId) -> Result<(), StoreError> {
    const DOING: &str = "delete the thread";
    let key = writer.key(id, DOING).await?;
    let mut script = Script::default();
    script
        .step(
            "DELETE FROM texts WHERE rowid = ? OR rowid IN (SELECT seq FROM items WHERE seq BETWEEN ? AND ?)",
        )
        .bind(-key)
        .bind(first_seq(key))
        .bind(last_seq(key))
        .step("DELETE FROM items WHERE seq BETWEEN ? AND ?")
        .bind(first_seq(key))
        .bind(last_seq(key))
        .step("DELETE FROM checkpoints WHERE thread = ?")
        .bind(id.as_uuid())
        .step("DELETE FROM leases WHERE thread = ?")
        .bind(id.as_uuid())
        .step("DELETE FROM threads WHERE key = ?")
        .bind(key);
    script.transact(&mut writer.connection, DOING).await?;
    writer.keys.remove(&id);
    Ok(())
}

pub(super) async fn fork(
    writer: &mut Writer,
    source: ThreadId,
    until: Option<ItemId>,
    record: ThreadRecord,
) -> Result<(), StoreError> {
    const DOING: &str = "copy the thread";
    writer.key(source, DOING).await?;
    let mut items = read::items(&mut writer.connection, ItemQuery::all(source)).await?.entries;
    if let Some(until) = until {
        let last = items.iter().position(|stored| stored.item.id == until);
        let last = last.ok_or_else(|| {
            StoreError::invalid(DOING, format!("there is no item `{until}` in thread `{source}`"))
        })?;
        items.truncate(last + 1);
    }
    let id = record.id();
    for stored in &mut items {
        stored.item.id = ItemId::new();
        stored.item.thread_id = id;
    }
    let last = items.iter().map(|stored| stored.cursor).max().unwrap_or_default();
    let mut record = record;
    record.forked_from = Some(source);
    record.summary.cursor = record.summary.cursor.max(last);
    import(writer, record, items, Vec::new()).await
}

/// Keeps a whole thread.
pub(super) async fn import(
    writer: &mut Writer,
    record: ThreadRecord,
    items: Vec<StoredItem>,
    audit: Vec<AuditEntry>,
) -> Result<(), StoreError> {
    const DOING: &str = "keep the thread";
    let id = record.id();
    create(writer, record).await?;
    let key = writer.key(id, DOING).await?;
    let mut script = Script::default();
    let mut prepared = Ok(());
    for stored in &items {
        prepared = prepared.and_then(|()| put_item(&mut script, key, stored));
    }
    for entry in &audit {
        prepared = prepared.and_then(|()| put_audit(&mut script, std::slice::from_ref(entry)));
    }
    let written = match prepared {
        Ok(()) if script.is_empty() => return Ok(()),
        Ok(()) => script.transact(&mut writer.connection, DOING).await.map(|_| ()),
        Err(error) => Err(error),
    };
    if written.is_err() {
        // All or nothing: the empty thread goes too.
        let _ = delete(writer, id).await;
    }
    written
}
