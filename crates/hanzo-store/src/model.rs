//! What is kept, and how it is asked for.

use std::path::PathBuf;

use hanzo_protocol::engine::{Mode, Posture, ThreadSummary};
use hanzo_protocol::event::EventCursor;
use hanzo_protocol::ids::{CheckpointId, ItemId, ThreadId, TraceId, TurnId};
use hanzo_protocol::item::{Item, Visibility};
use hanzo_protocol::message::Effort;
use hanzo_protocol::primitives::ContentHash;
use hanzo_protocol::usage::{Cost, Usage};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A thread as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRecord {
    /// What a listing shows.
    #[serde(flatten)]
    pub summary: ThreadSummary,
    /// How hard the model thinks, where the thread says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Whether the thread is forgotten when its connection ends. Such threads are not listed.
    #[serde(default)]
    pub ephemeral: bool,
    /// The thread this one was copied from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ThreadId>,
    /// The tokens of all its requests.
    #[serde(default)]
    pub usage: Usage,
    /// Their price, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// What the engine keeps with a thread and the store does not read; `null` when nothing.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub state: Value,
}

impl ThreadRecord {
    /// A stored thread of which only the summary is known.
    pub fn new(summary: ThreadSummary) -> Self {
        Self {
            summary,
            effort: None,
            ephemeral: false,
            forked_from: None,
            usage: Usage::default(),
            cost: None,
            state: Value::Null,
        }
    }

    /// Its id.
    pub fn id(&self) -> ThreadId {
        self.summary.id
    }
}

/// Which threads to list, newest change first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadFilter {
    /// Only those of this workspace.
    pub workspace: Option<PathBuf>,
    /// Only those in whose title or items these words occur.
    pub search: Option<String>,
    /// Only the children of this thread. Without it, threads of subagents are not listed.
    pub parent: Option<ThreadId>,
    /// Where to go on: the `next` of the page before.
    pub cursor: Option<String>,
    /// The most entries to return; 50 when absent.
    pub limit: Option<u32>,
}

/// What changes about a thread; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadChange {
    /// A new title.
    pub title: Option<String>,
    /// Another model.
    pub model: Option<String>,
    /// Another way to collaborate.
    pub mode: Option<Mode>,
    /// Another way to ask for consent.
    pub posture: Option<Posture>,
    /// Another effort; `Some(None)` leaves it to the vendor again.
    pub effort: Option<Option<Effort>>,
    /// The highest notification given out. It only ever grows.
    pub cursor: Option<EventCursor>,
    /// What the engine keeps with it.
    pub state: Option<Value>,
}

/// An item, and the number of the notification that completed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredItem {
    /// The item.
    #[serde(flatten)]
    pub item: Item,
    /// The notification's number.
    pub cursor: EventCursor,
}

/// How sure a commit is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// It survives the death of this process.
    #[default]
    Process,
    /// It survives a power failure: the write-ahead log is on the disk when the call returns.
    Disk,
}

/// What is committed in one transaction: all of it, or nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The thread.
    pub thread: ThreadId,
    /// Items to keep. One whose id is known is replaced and keeps its place.
    pub items: Vec<StoredItem>,
    /// Items whose visibility changes.
    pub visibility: Vec<(ItemId, Visibility)>,
    /// Audit records.
    pub audit: Vec<AuditEntry>,
    /// The highest notification given out so far. The stored number only ever grows.
    pub cursor: EventCursor,
    /// Tokens and money to add to the thread's totals.
    pub usage: Option<(Usage, Option<Cost>)>,
    /// How sure it must be.
    pub durability: Durability,
}

impl Batch {
    /// An empty batch for `thread`.
    pub fn new(thread: ThreadId) -> Self {
        Self {
            thread,
            items: Vec::new(),
            visibility: Vec::new(),
            audit: Vec::new(),
            cursor: EventCursor::default(),
            usage: None,
            durability: Durability::Process,
        }
    }

    /// The same batch with one more item; the thread's number follows the item's.
    #[must_use]
    pub fn with_item(mut self, item: Item, cursor: EventCursor) -> Self {
        self.cursor = self.cursor.max(cursor);
        self.items.push(StoredItem { item, cursor });
        self
    }

    /// The same batch, on the disk before the call returns.
    #[must_use]
    pub fn on_disk(mut self) -> Self {
        self.durability = Durability::Disk;
        self
    }
}

/// Which end of a thread to read from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ItemsFrom {
    /// The beginning; `next` leads to newer items.
    #[default]
    Start,
    /// The end; `next` leads to older items. The entries of a page are still oldest first.
    End,
    /// What was completed after this notification, in the order of completion; `next` leads to newer items.
    After(EventCursor),
}

/// Which items to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemQuery {
    /// The thread.
    pub thread: ThreadId,
    /// From where.
    pub from: ItemsFrom,
    /// Only items of this visibility; all when absent.
    pub visibility: Option<Visibility>,
    /// Where to go on: the `next` of the page before.
    pub page: Option<String>,
    /// The most items to return; 100 when absent, `u32::MAX` for all.
    pub limit: Option<u32>,
}

impl ItemQuery {
    /// All items of `thread`, from its beginning.
    pub fn all(thread: ThreadId) -> Self {
        Self { thread, from: ItemsFrom::Start, visibility: None, page: None, limit: Some(u32::MAX) }
    }

    /// The items the model sees, from the beginning.
    pub fn active(thread: ThreadId) -> Self {
        Self { visibility: Some(Visibility::Active), ..Self::all(thread) }
    }

    /// The newest `limit` items.
    pub fn tail(thread: ThreadId, limit: u32) -> Self {
        Self { from: ItemsFrom::End, limit: Some(limit), ..Self::all(thread) }
    }

    /// What was completed after `cursor`.
    pub fn after(thread: ThreadId, cursor: EventCursor) -> Self {
        Self { from: ItemsFrom::After(cursor), ..Self::all(thread) }
    }
}

/// What the gate decided about one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// In which thread.
    #[serde(alias = "session_id")]
    pub thread: ThreadId,
    /// The id that ties the call's traces together.
    pub trace: TraceId,
    /// The tool.
    pub tool: String,
    /// Its action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// `allow`, `ask` or `deny`, and who said so.
    pub decision: String,
    /// The rule that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why; a denial always has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the call was about: a path, a command, a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The user on whose behalf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Everything else worth keeping.
    #[serde(default, skip_serializing_if = "JsonText::is_null")]
    pub record: JsonText,
}

/// A JSON value as its text: what is only kept need not be taken apart.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

/// By way of the value: a raw one cannot be read from within what serde has to look at twice, as the lines of an export.
impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self::of(&value))
    }
}

impl JsonText {
    /// The text of `value`; `null` where it cannot be JSON, as a map whose keys are no strings.
    pub fn of(value: &impl Serialize) -> Self {
        serde_json::value::to_raw_value(value).map_or_else(|_| Self::default(), Self)
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.0.get() == "null"
    }

    /// The value.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

impl Default for JsonText {
    fn default() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

/// Two texts of the same value are the same.
impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get() || self.value() == other.value()
    }
}

/// Which audit records to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only those of this thread.
    pub thread: Option<ThreadId>,
    /// Only those of this tool: `fs`, or `fs.read` for one action.
    pub tool: Option<String>,
    /// Only those whose decision begins with this: `deny`, or `deny by rule`.
    pub decision: Option<String>,
    /// Only those from here on.
    pub since: Option<Timestamp>,
    /// Only those before.
    pub until: Option<Timestamp>,
    /// Where to go on.
    pub cursor: Option<String>,
    /// The most entries to return; 100 when absent.
    pub limit: Option<u32>,
}

/// Where to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchScope {
    /// In one thread.
    Thread(ThreadId),
    /// In all threads of a workspace.
    Workspace(PathBuf),
    /// Everywhere.
    All,
}

/// What to search for, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// Words, as a user types them. All of them must occur; the last may be the beginning of a word.
    pub text: String,
    /// Where.
    pub scope: SearchScope,
    /// The most hits; 20 when absent.
    pub limit: Option<u32>,
}

/// Something that was found. The best comes first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    /// The thread.
    pub thread: ThreadId,
    /// The item; none when it is the title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// The item's `type`, or `title`.
    pub kind: String,
    /// When it was made.
    pub at: Timestamp,
    /// The text around the first word found.
    pub excerpt: String,
    /// How well it matches: BM25, greater is better.
    pub score: f64,
}

/// A checkpoint as it is kept: the files themselves are in the blob store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointRecord {
    /// Its id.
    pub id: CheckpointId,
    /// The thread.
    pub thread: ThreadId,
    /// The turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Whether it is the state before or after that turn.
    pub moment: Moment,
    /// When it was made.
    pub at: Timestamp,
    /// The workspace.
    pub workspace: PathBuf,
    /// The last item of the thread at that moment, for taking the conversation back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ItemId>,
    /// The list of files, in the blob store.
    pub manifest: ContentHash,
    /// How many files it has.
    pub files: u64,
    /// How many files were left out; the list itself is in the manifest.
    pub left_out: u64,
}

/// When in a turn a checkpoint was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Moment {
    /// Before anything happened.
    TurnStart,
    /// When the agent came to rest.
    TurnEnd,
}
