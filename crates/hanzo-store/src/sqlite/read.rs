//! Reading items, audit records and checkpoints.

use std::path::PathBuf;

use hanzo_protocol::engine::Page;
use hanzo_protocol::event::EventCursor;
use hanzo_protocol::ids::{CheckpointId, ItemId, ThreadId};
use hanzo_protocol::item::{Item, ItemContent, NoticeLevel, Visibility};
use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::script::{Parameter, Script};
use super::write::{first_seq, integer, last_seq, nanoseconds, visibility_number, visibility_of};
use super::{Connection, threads};
use crate::{AuditEntry, AuditFilter, CheckpointRecord, ItemQuery, ItemsFrom, StoreError, StoredItem};

const ITEMS: &str = "read the thread's items";

/// `LIMIT` that means none.
const UNLIMITED: i64 = -1;

fn limit_of(limit: Option<u32>, usual: u32) -> i64 {
    match limit.unwrap_or(usual) {
        u32::MAX => UNLIMITED,
        limit => i64::from(limit.max(1)),
    }
}

/// One more than is wanted, to learn whether there is more.
fn one_more(limit: i64) -> i64 {
    if limit == UNLIMITED { limit } else { limit + 1 }
}

/// Takes the extra row off again; whether there was one.
fn take_extra(rows: &mut Vec<SqliteRow>, limit: i64) -> bool {
    let more = usize::try_from(limit).is_ok_and(|limit| rows.len() > limit);
    if more {
        rows.pop();
    }
    more
}

fn page_number(doing: &'static str, cursor: Option<&str>) -> Result<Option<i64>, StoreError> {
    let number = |cursor: &str| {
        cursor
            .parse()
            .map_err(|_| StoreError::invalid(doing, format!("`{cursor}` is not where a page ended")))
    };
    cursor.map(number).transpose()
}

pub(super) async fn items(
    connection: &mut Connection,
    query: ItemQuery,
) -> Result<Page<StoredItem>, StoreError> {
    let Some(key) = threads::key_of(connection, query.thread, ITEMS).await? else {
        return Err(StoreError::NoThread { thread: query.thread });
    };
    let limit = limit_of(query.limit, 100);
    let page = page_number(ITEMS, query.page.as_deref())?;
    let visibility = query.visibility.map(visibility_number);
    let mut script = Script::default();
    match query.from {
        ItemsFrom::Start | ItemsFrom::End => {
            let backward = query.from == ItemsFrom::End;
            let (first, last) = match (backward, page) {
                (false, page) => (page.unwrap_or(first_seq(key)) + 1, last_seq(key)),
                (true, page) => (first_seq(key), page.map_or(last_seq(key), |page| page - 1)),
            };
            script.step(match (backward, visibility) {
                (false, None) => {
                    "SELECT seq, cursor, visibility, json FROM items WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT ?"
                }
                (true, None) => {
                    "SELECT seq, cursor, visibility, json FROM items WHERE seq BETWEEN ? AND ? \
                     ORDER BY seq DESC LIMIT ?"
                }
                // The literal 0 is what lets SQLite use the index of active items, which the folded ones do not slow down.
                (false, Some(0)) => {
                    "SELECT seq, cursor, visibility, json FROM items INDEXED BY items_active \
                     WHERE seq BETWEEN ? AND ? AND thread = ? AND visibility = 0 ORDER BY seq LIMIT ?"
                }
                (true, Some(0)) => {
                    "SELECT seq, cursor, visibility, json FROM items INDEXED BY items_active \
                     WHERE seq BETWEEN ? AND ? AND thread = ? AND visibility = 0 ORDER BY seq DESC LIMIT ?"
                }
                (false, Some(_)) => {
                    "SELECT seq, cursor, visibility, json FROM items \
                     WHERE seq BETWEEN ? AND ? AND visibility = ? ORDER BY seq LIMIT ?"
                }
                (true, Some(_)) => {
                    "SELECT seq, cursor, visibility, json FROM items \
                     WHERE seq BETWEEN ? AND ? AND visibility = ? ORDER BY seq DESC LIMIT ?"
                }
            });
            script.bind(first).bind(last);
            match visibility {
                None => {}
                Some(0) => drop(script.bind(key)),
                Some(other) => drop(script.bind(other)),
            }
        }
        ItemsFrom::After(cursor) => {
            script
                .step(
                    "SELECT seq, cursor, visibility, json FROM items \
                     WHERE thread = ? AND cursor > ? AND (? IS NULL OR visibility = ?) ORDER BY cursor, seq LIMIT ?",
                )
                .bind(key)
                .bind(page.unwrap_or(integer(cursor.0)))
                .bind(visibility)
                .bind(visibility);
        }
    }
    script.bind(one_more(limit));
    let mut rows = script.run(connection, ITEMS).await?.rows;
    let more = take_extra(&mut rows, limit);
    let column = usize::from(matches!(query.from, ItemsFrom::After(_)));
    let next = rows
        .last()
        .filter(|_| more)
        .and_then(|row| row.try_get::<i64, _>(column).ok())
        .map(|n| n.to_string());
    let mut entries = rows.iter().map(|row| stored(query.thread, row)).collect::<Result<Vec<_>, _>>()?;
    if query.from == ItemsFrom::End {
        entries.reverse();
    }
    Ok(Page { entries, next })
}

pub(super) async fn calls(
    connection: &mut Connection,
    thread: ThreadId,
    tool: String,
) -> Result<Vec<Item>, StoreError> {
    let Some(key) = threads::key_of(connection, thread, ITEMS).await? else {
        return Err(StoreError::NoThread { thread });
    };
    let mut script = Script::default();
    // The text is looked through before anything is parsed: a long thread has thousands of calls of other tools. Quotes inside
    // strings are escaped, so only a field is found.
    script
        .step(
            "SELECT seq, cursor, visibility, json FROM items \
             WHERE seq BETWEEN ? AND ? AND kind = 'toolCall' AND instr(json, ?) > 0 ORDER BY seq",
        )
        .bind(first_seq(key))
        .bind(last_seq(key))
        .bind(format!("\"tool\":\"{tool}."));
    let rows = script.run(connection, ITEMS).await?.rows;
    let mut found = Vec::new();
    for row in &rows {
        let item = stored(thread, row)?.item;
        let is_its = |name: &str| name.split_once('.').is_some_and(|(owner, _)| owner == tool);
        if matches!(&item.content, ItemContent::ToolCall(call) if is_its(&call.tool)) {
            found.push(item);
        }
    }
    Ok(found)
}

/// An item of its row. One that cannot be read any more is not dropped in silence: a notice stands in its place.
fn stored(thread: ThreadId, row: &SqliteRow) -> Result<StoredItem, StoreError> {
    let column = |index: usize| -> Result<i64, StoreError> {
        row.try_get(index).map_err(|error| StoreError::invalid(ITEMS, error))
    };
    let cursor = EventCursor(u64::try_from(column(1)?).unwrap_or_default());
    let read: Option<Item> = row.try_get(3).ok().and_then(|json| serde_json::from_str(json).ok());
    let mut item = read.filter(|item| item.thread_id == thread).unwrap_or_else(|| Item {
        id: ItemId::from(uuid::Uuid::from_u128(column(0).unwrap_or_default().unsigned_abs().into())),
        thread_id: thread,
        turn_id: None,
        created_at: jiff::Timestamp::UNIX_EPOCH,
        visibility: Visibility::Active,
        taint: None,
        content: ItemContent::Notice {
            level: NoticeLevel::Error,
            text: "an item that was here is damaged and cannot be read any more".into(),
        },
    });
    // The column counts: folding ten thousand items does not rewrite them.
    item.visibility = visibility_of(column(2)?);
    Ok(StoredItem { item, cursor })
}

pub(super) async fn audit(
    connection: &mut Connection,
    filter: AuditFilter,
) -> Result<Page<AuditEntry>, StoreError> {
    const DOING: &str = "list audit records";
    let limit = limit_of(filter.limit, 100);
    let page = page_number(DOING, filter.cursor.as_deref())?;
    let (tool, action) = match filter
        .tool
        .as_deref()
        .map(|tool| tool.split_once('.').map_or((tool, None), |(t, a)| (t, Some(a))))
    {
        None => (None, None),
        Some((tool, action)) => (Some(tool.to_owned()), action.map(ToOwned::to_owned)),
    };
    // A tool is written down as `fs` with action `read`, or as `fs.read`; both are found either way.
    let whole = filter.tool.clone();
    let dotted = tool.as_ref().map(|tool| format!("{tool}."));
    let mut script = Script::default();
    let clauses: &'static str = match filter.thread {
        Some(_) => {
            "SELECT seq, json FROM audit WHERE thread = ? AND at >= ? AND at < ? AND seq < ? \
             AND (? IS NULL OR tool = ? OR (tool = ? AND (? IS NULL OR action = ?)) \
                  OR (? IS NULL AND substr(tool, 1, length(?)) = ?)) \
             AND (? IS NULL OR substr(decision, 1, length(?)) = ?) ORDER BY seq DESC LIMIT ?"
        }
        None => {
            "SELECT seq, json FROM audit WHERE ? IS NULL AND at >= ? AND at < ? AND seq < ? \
             AND (? IS NULL OR tool = ? OR (tool = ? AND (? IS NULL OR action = ?)) \
                  OR (? IS NULL AND substr(tool, 1, length(?)) = ?)) \
             AND (? IS NULL OR substr(decision, 1, length(?)) = ?) ORDER BY seq DESC LIMIT ?"
        }
    };
    script
        .step(clauses)
        .bind(filter.thread.map(|id| id.as_uuid()))
        .bind(filter.since.map_or(i64::MIN, nanoseconds))
        .bind(filter.until.map_or(i64::MAX, nanoseconds))
        .bind(page.unwrap_or(i64::MAX))
        .bind(whole.clone())
        .bind(whole)
        .bind(tool)
        .bind(action.clone())
        .bind(action.clone())
        .bind(action)
        .bind(dotted.clone())
        .bind(dotted)
        .bind(filter.decision.clone())
        .bind(filter.decision.clone())
        .bind(filter.decision)
        .bind(one_more(limit));
    let mut rows = script.run(connection, DOING).await?.rows;
    let more = take_extra(&mut rows, limit);
    let next =
        rows.last().filter(|_| more).and_then(|row| row.try_get::<i64, _>(0).ok()).map(|n| n.to_string());
    let entries = rows.iter().filter_map(|row| json_of(row, 1)).collect();
    Ok(Page { entries, next })
}

/// A record of its column; none when it is damaged.
fn json_of<T: DeserializeOwned>(row: &SqliteRow, column: usize) -> Option<T> {
    serde_json::from_str(row.try_get(column).ok()?).ok()
}

const CHECKPOINTS: &str = "read checkpoints";

async fn checkpoint_rows(
    connection: &mut Connection,
    sql: &'static str,
    parameter: impl Into<Parameter>,
) -> Result<Vec<CheckpointRecord>, StoreError> {
    let mut script = Script::default();
    script.step(sql).bind(parameter);
    let ran = script.run(connection, CHECKPOINTS).await?;
    Ok(ran.rows.iter().filter_map(|row| json_of(row, 0)).collect())
}

pub(super) async fn checkpoint(
    connection: &mut Connection,
    id: CheckpointId,
) -> Result<Option<CheckpointRecord>, StoreError> {
    let sql = "SELECT json FROM checkpoints WHERE id = ?";
    Ok(checkpoint_rows(connection, sql, id.as_uuid()).await?.pop())
}

pub(super) async fn checkpoints(
    connection: &mut Connection,
    thread: ThreadId,
) -> Result<Vec<CheckpointRecord>, StoreError> {
    checkpoint_rows(
        connection,
        "SELECT json FROM checkpoints WHERE thread = ? ORDER BY seq",
        thread.as_uuid(),
    )
    .await
}

pub(super) async fn last_checkpoint(
    connection: &mut Connection,
    workspace: PathBuf,
) -> Result<Option<CheckpointRecord>, StoreError> {
    let sql = "SELECT json FROM checkpoints WHERE workspace = ? ORDER BY seq DESC LIMIT 1";
    Ok(checkpoint_rows(connection, sql, threads::workspace_text(&workspace)).await?.pop())
}
