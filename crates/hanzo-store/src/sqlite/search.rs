//! The full-text index and the search over it. An item is indexed under its `seq`, a thread's title under its negative key.

use hanzo_protocol::ids::{ItemId, ThreadId};
use hanzo_protocol::item::Item;
use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::script::{Script, script_error};
use super::{Connection, StoreError, schema, threads};
use crate::{SearchHit, SearchQuery, SearchScope, text};

const SEARCH: &str = "search the threads";

pub(super) async fn search(
    connection: &mut Connection,
    query: SearchQuery,
) -> Result<Vec<SearchHit>, StoreError> {
    let Some(words) = text::query(&query.text) else { return Ok(Vec::new()) };
    let limit = i64::from(query.limit.unwrap_or(20));
    let mut script = Script::default();
    match &query.scope {
        SearchScope::Thread(id) => {
            if threads::key_of(connection, *id, SEARCH).await?.is_none() {
                return Err(StoreError::NoThread { thread: *id });
            }
            // Not as a range of `rowid`: FTS5 would then look at the range instead of the words.
            script
                .step(
                    "SELECT t.id, t.title, t.updated_at, i.id, i.kind, i.created_at, i.json, f.rank \
                     FROM texts f LEFT JOIN items i ON i.seq = f.rowid \
                     JOIN threads t ON t.key = CASE WHEN f.rowid < 0 THEN -f.rowid ELSE f.rowid >> 32 END \
                     WHERE texts MATCH ? AND t.id = ? ORDER BY f.rank LIMIT ?",
                )
                .bind(words)
                .bind(id.as_uuid());
        }
        SearchScope::Workspace(workspace) => {
            script
                .step(
                    "SELECT t.id, t.title, t.updated_at, i.id, i.kind, i.created_at, i.json, f.rank \
                     FROM texts f LEFT JOIN items i ON i.seq = f.rowid \
                     JOIN threads t ON t.key = CASE WHEN f.rowid < 0 THEN -f.rowid ELSE f.rowid >> 32 END \
                     WHERE texts MATCH ? AND t.workspace = ? AND NOT t.ephemeral ORDER BY f.rank LIMIT ?",
                )
                .bind(words)
                .bind(threads::workspace_text(workspace));
        }
        SearchScope::All => {
            script
                .step(
                    "SELECT t.id, t.title, t.updated_at, i.id, i.kind, i.created_at, i.json, f.rank \
                     FROM texts f LEFT JOIN items i ON i.seq = f.rowid \
                     JOIN threads t ON t.key = CASE WHEN f.rowid < 0 THEN -f.rowid ELSE f.rowid >> 32 END \
                     WHERE texts MATCH ? AND NOT t.ephemeral ORDER BY f.rank LIMIT ?",
                )
                .bind(words);
        }
    }
    script.bind(limit);
    let ran = script.run(connection, SEARCH).await?;
    ran.rows
        .iter()
        .map(|row| hit(row, &query.text).map_err(|error| StoreError::invalid(SEARCH, error)))
        .collect()
}

fn hit(row: &SqliteRow, typed: &str) -> Result<SearchHit, Box<dyn std::error::Error>> {
    let thread = ThreadId::from(Uuid::from_slice(row.try_get(0)?)?);
    let rank: f64 = row.try_get(7)?;
    let moment = |nanoseconds: i64| Timestamp::from_nanosecond(i128::from(nanoseconds));
    let Some(id) = row.try_get::<Option<&[u8]>, _>(3)? else {
        let title: &str = row.try_get(1)?;
        let excerpt = text::excerpt(title, typed);
        let at = moment(row.try_get(2)?)?;
        return Ok(SearchHit { thread, item: None, kind: "title".into(), at, excerpt, score: -rank });
    };
    let item: Item = serde_json::from_str(row.try_get(6)?)?;
    Ok(SearchHit {
        thread,
        item: Some(ItemId::from(Uuid::from_slice(id)?)),
        kind: row.try_get(4)?,
        at: moment(row.try_get(5)?)?,
        excerpt: text::excerpt(&text::searchable(&item).unwrap_or_default(), typed),
        score: -rank,
    })
}

/// Makes the index anew from the items and titles.
pub(super) async fn rebuild(connection: &mut Connection) -> Result<(), StoreError> {
    const DOING: &str = "make the full-text index";
    if let Err(error) =
        Script::raw(connection, format!("BEGIN IMMEDIATE; {} COMMIT", schema::NEW_INDEX)).await
    {
        Script::rollback(connection).await;
        return Err(script_error(DOING, &error));
    }
    let mut titles = Script::default();
    titles.step("INSERT INTO texts (rowid, text) SELECT -key, title FROM threads WHERE title <> ''");
    titles.transact(connection, DOING).await?;
    let mut after = i64::MIN;
    loop {
        let mut page = Script::default();
        page.step("SELECT seq, json FROM items WHERE seq > ? ORDER BY seq LIMIT 256").bind(after);
        let rows = page.run(connection, DOING).await?.rows;
        if rows.is_empty() {
            return Ok(());
        }
        let mut script = Script::default();
        for row in &rows {
            after = row.try_get(0).map_err(|error| StoreError::invalid(DOING, error))?;
            let item =
                row.try_get::<&str, _>(1).ok().and_then(|json| serde_json::from_str::<Item>(json).ok());
            if let Some(text) = item.as_ref().and_then(text::searchable) {
                script.step("INSERT INTO texts (rowid, text) VALUES (?, ?)").bind(after).bind(text);
            }
        }
        if !script.is_empty() {
            script.transact(connection, DOING).await?;
        }
    }
}
