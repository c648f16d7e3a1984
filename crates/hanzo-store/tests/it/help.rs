//! Threads and items for tests.

use std::path::{Path, PathBuf};

use hanzo_protocol::engine::{Mode, Posture, ThreadSummary};
use hanzo_protocol::event::EventCursor;
use hanzo_protocol::ids::{ItemId, ThreadId, ToolCallId, TraceId};
use hanzo_protocol::item::{Item, ItemContent, NoticeLevel, ToolCallItem, ToolCallStatus, Visibility};
use hanzo_protocol::tool::{Effect, ToolResult};
use hanzo_store::{Batch, ItemQuery, OpenOptions, SqliteStore, Store, ThreadRecord};
use jiff::Timestamp;

pub fn thread(workspace: impl Into<PathBuf>, title: &str) -> ThreadRecord {
    let now = Timestamp::now();
    ThreadRecord::new(ThreadSummary {
        id: ThreadId::new(),
        title: title.into(),
        workspace: workspace.into(),
        agent: "coder".into(),
        model: "test/model".into(),
        mode: Mode::Normal,
        posture: Posture::Ask,
        parent: None,
        created_at: now,
        updated_at: now,
        cursor: EventCursor(0),
    })
}

pub fn item(thread: ThreadId, content: ItemContent) -> Item {
    Item {
        id: ItemId::new(),
        thread_id: thread,
        turn_id: None,
        created_at: Timestamp::now(),
        visibility: Visibility::Active,
        taint: None,
        content,
    }
}

pub fn said(thread: ThreadId, text: impl Into<String>) -> Item {
    item(thread, ItemContent::UserMessage { text: text.into(), attachments: vec![] })
}

pub fn call(thread: ThreadId, status: ToolCallStatus) -> Item {
    let result = status.is_final().then(|| ToolResult::success("contents"));
    item(
        thread,
        ItemContent::ToolCall(ToolCallItem {
            call_id: ToolCallId::new("call_1"),
            tool: "fs.read".into(),
            called_as: None,
            arguments: r#"{"path":"src/parser.rs"}"#.into(),
            effect: Some(Effect::Read),
            status,
            result,
            full_output: None,
            trace_id: TraceId::new(),
            duration_ms: None,
        }),
    )
}

pub async fn open(directory: &Path) -> SqliteStore {
    let (store, report) = SqliteStore::open(directory, OpenOptions::default()).await.unwrap();
    assert_eq!(report.notices, [], "nothing to complain about");
    store
}

/// Opens what a killed process left behind: that it was writing is worth a word, and nothing else is. Nothing acknowledged is
/// lost, so nothing may be said to be.
pub async fn open_after_kill(directory: &Path) -> SqliteStore {
    let (store, report) = SqliteStore::open(directory, OpenOptions::default()).await.unwrap();
    let harmless = |(level, text): &(NoticeLevel, String)| {
        *level == NoticeLevel::Info && text.starts_with("the process before ended while it was writing")
    };
    assert!(report.notices.iter().all(harmless), "{report:?}");
    store
}

/// A store with one thread in it.
pub async fn with_thread(directory: &Path) -> (SqliteStore, ThreadId) {
    let store = open(directory).await;
    let record = thread("/work", "a title");
    let id = record.id();
    store.create_thread(record).await.unwrap();
    (store, id)
}

pub async fn append(store: &impl Store, item: Item, cursor: u64) {
    store.commit(Batch::new(item.thread_id).with_item(item, EventCursor(cursor))).await.unwrap();
}

pub async fn all(store: &impl Store, thread: ThreadId) -> Vec<Item> {
    let page = store.items(ItemQuery::all(thread)).await.unwrap();
    assert_eq!(page.next, None);
    page.entries.into_iter().map(|stored| stored.item).collect()
}

pub fn text_of(item: &Item) -> &str {
    match &item.content {
        ItemContent::UserMessage { text, .. } | ItemContent::AgentMessage { text } => text,
        other => panic!("not a message: {other:?}"),
    }
}
