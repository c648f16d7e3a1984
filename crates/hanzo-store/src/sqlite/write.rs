//! What commits do.

use std::sync::{Arc, LazyLock};

use hanzo_protocol::item::{ItemContent, Visibility};
use jiff::Timestamp;

use super::script::Script;
use super::{Writer, search, threads};
use crate::{AuditEntry, Batch, CheckpointRecord, StoreError, StoredItem, text};

/// How far a thread's key is shifted to begin the numbers of its items.
pub(super) const PLACE_BITS: u32 = 32;

/// The number that comes before the first item of a thread.
pub(super) fn first_seq(key: i64) -> i64 {
    key << PLACE_BITS
}

/// The greatest number an item of a thread can have.
pub(super) fn last_seq(key: i64) -> i64 {
    first_seq(key) | ((1 << PLACE_BITS) - 1)
}

/// What a visibility is in its column. The partial index of active items relies on 0.
pub(super) fn visibility_number(visibility: Visibility) -> i64 {
    match visibility {
        Visibility::Active => 0,
        Visibility::Folded => 1,
        Visibility::Rewound => 2,
    }
}

/// The visibility of a column's number.
pub(super) fn visibility_of(number: i64) -> Visibility {
    match number {
        1 => Visibility::Folded,
        2 => Visibility::Rewound,
        _ => Visibility::Active,
    }
}

/// A moment as it is kept: nanoseconds, which last until the year 2262.
pub(super) fn nanoseconds(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX)
}

/// A number that SQLite can hold; beyond it, the greatest.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The `type` of an item on the wire.
pub(super) fn kind(content: &ItemContent) -> &'static str {
    match content {
        ItemContent::UserMessage { .. } => "userMessage",
        ItemContent::AgentMessage { .. } => "agentMessage",
        ItemContent::Reasoning(_) => "reasoning",
        ItemContent::ToolCall(_) => "toolCall",
        ItemContent::Plan { .. } => "plan",
        ItemContent::Question(_) => "question",
        ItemContent::Compaction { .. } => "compaction",
        ItemContent::PrefixBreak { .. } => "prefixBreak",
        ItemContent::Fragment { .. } => "fragment",
        ItemContent::Notice { .. } => "notice",
        _ => "other",
    }
}

const COMMIT: &str = "write to the thread";

pub(super) async fn commit(writer: &mut Writer, batch: Batch) -> Result<(), StoreError> {
    let key = writer.key(batch.thread, COMMIT).await?;
    match transact(writer, key, &batch).await {
        // The index holds nothing that is not in the items: it is made again, and the batch tried once more.
        Err(StoreError::Damaged { .. }) => {
            search::rebuild(&mut writer.connection).await?;
            transact(writer, key, &batch).await
        }
        result => result,
    }
}

async fn transact(writer: &mut Writer, key: i64, batch: &Batch) -> Result<(), StoreError> {
    let mut script = Script::default();
    touch_thread(&mut script, key, batch);
    for stored in &batch.items {
        if stored.item.thread_id != batch.thread {
            let reason = format!("item `{}` belongs to another thread", stored.item.id);
            return Err(StoreError::invalid(COMMIT, reason));
        }
        put_item(&mut script, key, stored)?;
    }
    for visibility in [Visibility::Active, Visibility::Folded, Visibility::Rewound] {
        let ids: Vec<String> = batch
            .visibility
            .iter()
            .filter(|(_, wanted)| *wanted == visibility)
            .map(|(id, _)| id.as_uuid().simple().to_string())
            .collect();
        if !ids.is_empty() {
            script
                .step(
                    "UPDATE items SET visibility = ? WHERE thread = ? \
                     AND id IN (SELECT unhex(value) FROM json_each(?))",
                )
                .bind(visibility_number(visibility))
                .bind(key)
                .bind(json("write to the thread", &ids)?);
        }
    }
    put_audit(&mut script, &batch.audit)?;
    let ran = script.transact(&mut writer.connection, COMMIT).await?;
    if ran.changed.first() == Some(&0) {
        writer.keys.remove(&batch.thread);
        return Err(StoreError::NoThread { thread: batch.thread });
    }
    Ok(())
}

fn touch_thread(script: &mut Script, key: i64, batch: &Batch) {
    let now = nanoseconds(Timestamp::now());
    let Some((usage, cost)) = batch.usage else {
        script
            .step("UPDATE threads SET updated_at = ?, cursor = max(cursor, ?) WHERE key = ?")
            .bind(now)
            .bind(integer(batch.cursor.0))
            .bind(key);
        return;
    };
    let cost = cost.map(|cost| integer(cost.nano_usd()));
    script
        .step(
            "UPDATE threads SET updated_at = ?, cursor = max(cursor, ?), \
             input_tokens = input_tokens + ?, cache_read_tokens = cache_read_tokens + ?, \
             cache_write_tokens = cache_write_tokens + ?, output_tokens = output_tokens + ?, \
             reasoning_tokens = reasoning_tokens + ?, \
             cost = CASE WHEN ? IS NULL THEN cost ELSE coalesce(cost, 0) + ? END WHERE key = ?",
        )
        .bind(now)
        .bind(integer(batch.cursor.0))
        .bind(integer(usage.input_tokens))
        .bind(integer(usage.cache_read_tokens))
        .bind(integer(usage.cache_write_tokens))
        .bind(integer(usage.output_tokens))
        .bind(integer(usage.reasoning_tokens))
        .bind(cost)
        .bind(cost)
        .bind(key);
}

/// Adds the statements that keep an item: a new one at the end of the thread, a known one where it is.
pub(super) fn put_item(script: &mut Script, key: i64, stored: &StoredItem) -> Result<(), StoreError> {
    let item = &stored.item;
    let id = item.id.as_uuid();
    script
        .step(
            "INSERT INTO items (seq, thread, id, cursor, kind, visibility, created_at, json) \
             VALUES ((SELECT coalesce(max(seq), ?) + 1 FROM items WHERE seq BETWEEN ? AND ?), ?, ?, ?, ?, ?, ?, ?) \
             ON CONFLICT (thread, id) DO UPDATE SET cursor = excluded.cursor, kind = excluded.kind, \
             visibility = excluded.visibility, created_at = excluded.created_at, json = excluded.json",
        )
        .bind(first_seq(key))
        .bind(first_seq(key))
        .bind(last_seq(key))
        .bind(key)
        .bind(id)
        .bind(integer(stored.cursor.0))
        .bind(kind(&item.content))
        .bind(visibility_number(item.visibility))
        .bind(nanoseconds(item.created_at))
        .bind(json(COMMIT, item)?);
    if let Some(text) = text::searchable(item) {
        script
            .step(
                "INSERT OR REPLACE INTO texts (rowid, text) \
                 SELECT seq, ? FROM items WHERE thread = ? AND id = ?",
            )
            .bind(text)
            .bind(key)
            .bind(id);
    }
    Ok(())
}

const KEEP_AUDIT: &str =
    "INSERT INTO audit (at, thread, tool, action, decision, json) VALUES (?, ?, ?, ?, ?, ?)";
/// Statements that write several records, for each is a trip to the connection's thread; of a few sizes, which stay prepared.
static KEEP_8: LazyLock<String> = LazyLock::new(|| keep_several(8));
static KEEP_64: LazyLock<String> = LazyLock::new(|| keep_several(64));

fn keep_several(count: usize) -> String {
    format!("{KEEP_AUDIT}{}", ", (?, ?, ?, ?, ?, ?)".repeat(count - 1))
}

/// Adds the statements that keep audit records.
pub(super) fn put_audit(script: &mut Script, mut entries: &[AuditEntry]) -> Result<(), StoreError> {
    while !entries.is_empty() {
        let (sql, count) = match entries.len() {
            64.. => (KEEP_64.as_str(), 64),
            8.. => (KEEP_8.as_str(), 8),
            _ => (KEEP_AUDIT, 1),
        };
        let (now, later) = entries.split_at(count);
        entries = later;
        script.step(sql);
        for entry in now {
            script
                .bind(nanoseconds(entry.at))
                .bind(entry.thread.as_uuid())
                .bind(entry.tool.as_str())
                .bind(entry.action.as_deref())
                .bind(entry.decision.as_str())
                .bind(json("write audit records", entry)?);
        }
    }
    Ok(())
}

pub(super) async fn audit(writer: &mut Writer, entries: Arc<[AuditEntry]>) -> Result<(), StoreError> {
    let mut script = Script::default();
    put_audit(&mut script, &entries)?;
    if script.is_empty() {
        return Ok(());
    }
    script.transact(&mut writer.connection, "write audit records").await.map(|_| ())
}

pub(super) async fn checkpoint(writer: &mut Writer, record: CheckpointRecord) -> Result<(), StoreError> {
    let mut script = Script::default();
    script
        .step("INSERT INTO checkpoints (id, thread, workspace, json) VALUES (?, ?, ?, ?)")
        .bind(record.id.as_uuid())
        .bind(record.thread.as_uuid())
        .bind(threads::workspace_text(&record.workspace))
        .bind(json("keep the checkpoint", &record)?);
    script.transact(&mut writer.connection, "keep the checkpoint").await.map(|_| ())
}

/// A value as it is kept.
pub(super) fn json(doing: &'static str, value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::invalid(doing, error))
}
