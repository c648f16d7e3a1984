//! Threads as documents: JSON lines to process and to take elsewhere, Markdown to read, and the archive of what compaction
//! dropped.

mod archive;
mod markdown;

use hanzo_protocol::engine::ExportFormat;
use hanzo_protocol::ids::{ItemId, ThreadId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AuditEntry, AuditFilter, ItemQuery, Store, StoreError, StoredItem, ThreadRecord};

pub use self::archive::archive;
pub use self::markdown::markdown;

/// The version of the JSON lines this program writes and the newest it reads.
const VERSION: u32 = 1;

/// Whether audit records are part of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum WithAudit {
    /// They are not.
    #[default]
    No,
    /// They follow the items.
    Yes,
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header {
    r#type: HeaderType,
    version: u32,
    #[serde(flatten)]
    thread: ThreadRecord,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum HeaderType {
    Thread,
}

/// An audit record's line.
#[derive(Serialize, Deserialize)]
struct AuditLine {
    r#type: AuditType,
    #[serde(flatten)]
    entry: AuditEntry,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum AuditType {
    Audit,
}

const EXPORT: &str = "write the thread out";

/// Writes a thread out as a document.
pub async fn export(
    store: &dyn Store,
    thread: ThreadId,
    format: ExportFormat,
    with_audit: WithAudit,
) -> Result<String, StoreError> {
    let record = store.thread(thread).await?.ok_or(StoreError::NoThread { thread })?;
    let items = store.items(ItemQuery::all(thread)).await?.entries;
    if format == ExportFormat::Markdown {
        return Ok(markdown(&record, items.iter().map(|stored| &stored.item)));
    }
    let audit = match with_audit {
        WithAudit::No => Vec::new(),
        WithAudit::Yes => {
            let filter =
                AuditFilter { thread: Some(thread), limit: Some(u32::MAX), ..AuditFilter::default() };
            store.audit(filter).await?.entries
        }
    };
    let mut text = String::new();
    line(&mut text, &Header { r#type: HeaderType::Thread, version: VERSION, thread: record })?;
    for item in &items {
        line(&mut text, item)?;
    }
    // Listed newest first, written in the order in which they happened.
    for entry in audit.into_iter().rev() {
        line(&mut text, &AuditLine { r#type: AuditType::Audit, entry })?;
    }
    Ok(text)
}

fn line(text: &mut String, value: &impl Serialize) -> Result<(), StoreError> {
    text.push_str(&serde_json::to_string(value).map_err(|error| StoreError::invalid(EXPORT, error))?);
    text.push('\n');
    Ok(())
}

/// A thread that was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// The thread.
    pub thread: ThreadId,
    /// The id it had in the document, when that was taken already.
    pub was: Option<ThreadId>,
    /// How many items it has.
    pub items: usize,
    /// How many audit records came with it.
    pub audit: usize,
}

const IMPORT: &str = "take the thread in";

fn wrong(number: usize, reason: impl std::fmt::Display) -> StoreError {
    StoreError::invalid(
        IMPORT,
        format!("line {number}: {reason}\n\nhint: the file must be as `hanzo-dev threads export` wrote it"),
    )
}

/// Takes in what [`export`] wrote as JSON lines: all of it, or nothing. A thread whose id is taken gets new ids for itself and
/// its items; order, visibility and times stay.
pub async fn import(store: &dyn Store, document: &str) -> Result<Imported, StoreError> {
    let mut parsed = parse(document)?;
    let mut was = None;
    if store.thread(parsed.record.id()).await?.is_some() {
        was = Some(parsed.record.id());
        parsed.rename();
    }
    let imported =
        Imported { thread: parsed.record.id(), was, items: parsed.items.len(), audit: parsed.audit.len() };
    store.import_thread(parsed.record, parsed.items, parsed.audit).await?;
    Ok(imported)
}

struct Parsed {
    record: ThreadRecord,
    items: Vec<StoredItem>,
    audit: Vec<AuditEntry>,
}

impl Parsed {
    fn rename(&mut self) {
        let id = ThreadId::new();
        self.record.summary.id = id;
        for stored in &mut self.items {
            stored.item.id = ItemId::new();
            stored.item.thread_id = id;
        }
        for entry in &mut self.audit {
            entry.thread = id;
        }
    }
}

fn parse(document: &str) -> Result<Parsed, StoreError> {
    let mut lines = (1..).zip(document.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (number, first) = lines.next().ok_or_else(|| wrong(1, "the file is empty"))?;
    let header: Value = serde_json::from_str(first).map_err(|error| wrong(number, error))?;
    let version = header["version"].as_u64().unwrap_or_default();
    if header["type"] != "thread" || version == 0 {
        return Err(wrong(number, "a thread's header is expected here"));
    }
    if version > u64::from(VERSION) {
        return Err(wrong(number, format!("it has version {version}, and this program knows {VERSION}")));
    }
    let header: Header = serde_json::from_value(header).map_err(|error| wrong(number, error))?;
    let id = header.thread.id();
    let mut parsed = Parsed { record: header.thread, items: Vec::new(), audit: Vec::new() };
    let mut known = std::collections::HashSet::new();
    for (number, line) in lines {
        let kind: Kind = serde_json::from_str(line).map_err(|error| wrong(number, error))?;
        if kind.r#type == "audit" {
            let line: AuditLine = serde_json::from_str(line).map_err(|error| wrong(number, error))?;
            if line.entry.thread != id {
                return Err(wrong(number, "the record belongs to another thread"));
            }
            parsed.audit.push(line.entry);
            continue;
        }
        let stored: StoredItem = serde_json::from_str(line).map_err(|error| wrong(number, error))?;
        if stored.item.thread_id != id {
            return Err(wrong(number, "the item belongs to another thread"));
        }
        if !known.insert(stored.item.id) {
            return Err(wrong(number, "an item of this id came before"));
        }
        parsed.items.push(stored);
    }
    Ok(parsed)
}

#[derive(Deserialize)]
struct Kind<'l> {
    #[serde(borrow)]
    r#type: std::borrow::Cow<'l, str>,
}
