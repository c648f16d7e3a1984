//! Threads as documents.

use hanzo_protocol::engine::ExportFormat;
use hanzo_protocol::event::EventCursor;
use hanzo_protocol::ids::{ItemId, ThreadId, ToolCallId, TraceId, TurnId};
use hanzo_protocol::item::{
    Item, ItemContent, NoticeLevel, PlanStatus, PlanStep, Taint, ToolCallItem, ToolCallStatus, Visibility,
};
use hanzo_protocol::message::{Message, Reasoning};
use hanzo_protocol::tool::ToolResult;
use hanzo_store::export::{WithAudit, archive, export, import};
use hanzo_store::{AuditEntry, JsonText, SqliteStore, Store as _, StoreError, StoredItem};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use crate::help::{all, append, call, item, said, text_of, thread};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn content() -> impl Strategy<Value = ItemContent> {
    prop_oneof![
        any::<String>().prop_map(|text| ItemContent::UserMessage { text, attachments: vec![] }),
        any::<String>().prop_map(|text| ItemContent::AgentMessage { text }),
        (any::<String>(), any::<Option<String>>())
            .prop_map(|(text, signature)| ItemContent::Reasoning(Reasoning { text, signature })),
        any::<(String, u64, u64)>().prop_map(|(digest, folded, tokens_saved)| ItemContent::Compaction {
            digest,
            folded,
            before: None,
            tokens_saved
        }),
        (any::<String>(), any::<String>(), any::<String>(), any::<i64>()).prop_map(
            |(tool, arguments, output, number)| {
                let mut result = ToolResult::success(output);
                result.envelope = Some(json!({"data": {"z": number, "a": [null, 1.5]}}));
                ItemContent::ToolCall(ToolCallItem {
                    call_id: ToolCallId::new("call"),
                    tool,
                    called_as: None,
                    arguments,
                    effect: None,
                    status: ToolCallStatus::Completed,
                    result: Some(result),
                    full_output: None,
                    trace_id: TraceId::new(),
                    duration_ms: Some(1),
                })
            }
        ),
    ]
}

fn stored() -> impl Strategy<Value = StoredItem> {
    let visibility =
        prop_oneof![Just(Visibility::Active), Just(Visibility::Folded), Just(Visibility::Rewound)];
    let at = 0_i64..4_000_000_000_000_000_000;
    (content(), visibility, at, 0_u64..1 << 40, any::<bool>()).prop_map(
        |(content, visibility, at, cursor, extra)| StoredItem {
            item: Item {
                id: ItemId::new(),
                thread_id: ThreadId::new(),
                turn_id: extra.then(TurnId::new),
                created_at: Timestamp::from_nanosecond(at.into()).unwrap(),
                visibility,
                taint: extra.then_some(Taint::Network),
                content,
            },
            cursor: EventCursor(cursor),
        },
    )
}

#[test]
fn what_is_written_out_and_taken_in_elsewhere_is_the_same() {
    let runtime = runtime();
    let strategy = (proptest::collection::vec(stored(), 0..8), any::<String>(), any::<String>());
    proptest!(ProptestConfig::with_cases(48), |((mut items, title, word) in strategy)| {
        let mut record = thread("/work", &title);
        record.state = json!({"word": word});
        let id = record.id();
        for stored in &mut items {
            stored.item.thread_id = id;
        }
        let audit = vec![AuditEntry {
            at: Timestamp::now(), thread: id, trace: TraceId::new(), tool: "fs".into(), action: None,
            decision: "allow".into(), rule: None, reason: Some(word), subject: None, user: None, record: JsonText::of(&json!({"a": 1})),
        }];
        let (first, second, list) = runtime.block_on(async {
            let here = SqliteStore::in_memory().await.unwrap();
            here.import_thread(record, items.clone(), audit).await.unwrap();
            let first = export(&here, id, ExportFormat::Jsonl, WithAudit::Yes).await.unwrap();
            let there = SqliteStore::in_memory().await.unwrap();
            let imported = import(&there, &first).await.unwrap();
            assert_eq!((imported.thread, imported.was, imported.items, imported.audit), (id, None, items.len(), 1));
            let second = export(&there, id, ExportFormat::Jsonl, WithAudit::Yes).await.unwrap();
            (first, second, all(&there, id).await)
        });
        prop_assert_eq!(first, second);
        let expected: Vec<Item> = items.into_iter().map(|stored| stored.item).collect();
        prop_assert_eq!(list, expected);
    });
}

#[tokio::test]
async fn a_thread_that_is_there_already_comes_in_under_new_ids() {
    let store = SqliteStore::in_memory().await.unwrap();
    let record = thread("/work", "twice");
    let id = record.id();
    store.create_thread(record).await.unwrap();
    for n in 0..5 {
        append(&store, said(id, n.to_string()), n).await;
    }
    let text = export(&store, id, ExportFormat::Jsonl, WithAudit::No).await.unwrap();
    assert_eq!(text.lines().count(), 6);
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&first["type"], &first["title"]), (&json!("thread"), &json!("twice")));
    // Every other line is an item as it goes over the wire.
    let second: Item = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!(second, all(&store, id).await[0]);
    let imported = import(&store, &text).await.unwrap();
    assert_eq!(imported.was, Some(id));
    assert_ne!(imported.thread, id);
    let copies = all(&store, imported.thread).await;
    assert_eq!(copies.iter().map(text_of).collect::<String>(), "01234");
    assert!(copies.iter().all(|copy| copy.thread_id == imported.thread));
}

#[tokio::test]
async fn a_document_that_is_not_one_is_refused_by_line_and_leaves_nothing() {
    let store = SqliteStore::in_memory().await.unwrap();
    let record = thread("/work", "t");
    let id = record.id();
    store.create_thread(record).await.unwrap();
    append(&store, said(id, "x"), 1).await;
    let good = export(&store, id, ExportFormat::Jsonl, WithAudit::No).await.unwrap();
    store.delete_thread(id).await.unwrap();
    let item = good.lines().nth(1).unwrap();
    let foreign = item.replace(&id.to_string(), &ThreadId::new().to_string());
    for (document, line) in [
        (String::new(), "line 1"),
        ("{}".to_owned(), "line 1"),
        ("not json".to_owned(), "line 1"),
        (item.to_owned(), "line 1"),
        (good.replacen("\"version\":1", "\"version\":2", 1), "line 1"),
        (format!("{good}{{\"type\":\"userMessage\"}}\n"), "line 3"),
        (format!("{good}{{\"type\":\"somethingNew\"}}\n"), "line 3"),
        (format!("{good}{item}\n"), "line 3"),
        (format!("{good}{foreign}\n"), "line 3"),
        (format!("{good}{}", &item[..item.len() / 2]), "line 3"),
    ] {
        let error = import(&store, &document).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }) && error.to_string().contains(line), "{error}");
        assert_eq!(store.thread(id).await.unwrap(), None);
    }
    import(&store, &good.replace('\n', "\r\n\r\n")).await.unwrap();
}

#[test]
fn no_text_makes_taking_in_panic() {
    let runtime = runtime();
    let store = runtime.block_on(SqliteStore::in_memory()).unwrap();
    proptest!(ProptestConfig::with_cases(64), |(document in ".{0,200}")| {
        prop_assert!(runtime.block_on(import(&store, &document)).is_err());
    });
}

#[tokio::test]
async fn markdown_reads_like_a_conversation() {
    let store = SqliteStore::in_memory().await.unwrap();
    let record = thread("/work", "Fix the\nparser");
    let id = record.id();
    store.create_thread(record).await.unwrap();
    append(&store, said(id, "Please fix it\u{1b}[31m"), 1).await;
    let mut patch = call(id, ToolCallStatus::Completed);
    if let ItemContent::ToolCall(call) = &mut patch.content {
        call.tool = "fs.apply_patch".into();
        call.result = Some(ToolResult::success("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new ```"));
    }
    append(&store, patch, 2).await;
    append(&store, call(id, ToolCallStatus::Denied), 3).await;
    let steps = vec![PlanStep { text: "look".into(), status: PlanStatus::Done }];
    append(&store, item(id, ItemContent::Plan { steps }), 4).await;
    append(&store, item(id, ItemContent::AgentMessage { text: "Done.".into() }), 5).await;
    let notice = ItemContent::Notice { level: NoticeLevel::Info, text: "a note".into() };
    append(&store, item(id, notice), 6).await;
    let text = export(&store, id, ExportFormat::Markdown, WithAudit::No).await.unwrap();
    for part in [
        "# Fix the parser\n",
        "## User\n\nPlease fix it[31m\n",
        "### `fs.apply_patch`\n",
        "\"path\": \"src/parser.rs\"",
        "\n````diff\n--- a/x\n",
        "+new ```\n````\n",
        "### `fs.read`: denied\n",
        "- [x] look\n",
        "## Agent\n\nDone.\n",
        "> **Note:** a note\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn what_compaction_drops_is_archived_one_message_per_line() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("archive");
    let messages = [Message::user("first\nline"), Message::assistant("second")];
    let mut files = Vec::new();
    for _ in 0..3 {
        let file = archive(&directory, &messages).unwrap();
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with("20") && file.extension().unwrap() == "jsonl", "{name}");
        let text = std::fs::read_to_string(&file).unwrap();
        let read: Vec<Message> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, messages);
        files.push(file);
    }
    files.dedup();
    assert_eq!(files.len(), 3, "one never overwrites another");
}
