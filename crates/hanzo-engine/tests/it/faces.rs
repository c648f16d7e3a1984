//! Calls of a face that serves others: a thread that is forgotten, somebody from elsewhere, the same call as often as they like.

use hanzo_protocol::engine::{
    CommandOutcome, CommandPurpose, CommandRun, EngineErrorKind, List, ListKind, ThreadAt, ThreadOptions,
    ThreadStart, ToolCallRequest,
};
use hanzo_protocol::event::EventContent;
use hanzo_protocol::ids::{ItemId, ThreadId};
use hanzo_protocol::item::ItemContent;
use hanzo_store::AuditFilter;
use serde_json::json;

use crate::harness::{Bench, Brain, Setup, ask};

async fn forgotten(bench: &Bench) -> ThreadId {
    let start = ThreadStart {
        workspace: bench.setup.workspace.clone(),
        agent: None,
        ephemeral: true,
        options: ThreadOptions::default(),
    };
    ask!(bench.engine, ThreadStart, start).unwrap().id
}

fn look(thread_id: ThreadId, item_id: Option<ItemId>) -> ToolCallRequest {
    ToolCallRequest { thread_id, tool: "look".into(), arguments: json!({"n": 3}), item_id }
}

#[tokio::test]
async fn in_a_forgotten_thread_a_face_s_calls_leave_their_audit_and_nothing_else() {
    let bench = Setup::new(Brain::saying(vec![])).engine().await;
    let thread = forgotten(&bench).await;
    let mut watch = bench.watch(thread).await;
    let item = ItemId::new();
    // More often than any model would be let.
    for index in 0..30 {
        let result = ask!(bench.engine, ToolCall, look(thread, (index == 0).then_some(item))).unwrap();
        assert_eq!(result.output, r#"look {"n":3}"#, "no warning, no refusal");
    }
    let (_, told) = watch
        .until(|content| match content {
            EventContent::ItemCompleted { item } if matches!(item.content, ItemContent::ToolCall(_)) => {
                Some(item.id)
            }
            _ => None,
        })
        .await;
    assert_eq!(told, item, "the face knows its notifications by the id it chose");
    assert!(bench.items(thread).await.is_empty(), "to keep them would only fill the memory");
    ask!(bench.engine, ThreadDelete, ThreadAt { thread_id: thread }).unwrap();
    let filter = AuditFilter { thread: Some(thread), ..AuditFilter::default() };
    let audit = bench.setup.store().await.audit(filter).await.unwrap().entries;
    assert_eq!(audit.len(), 30, "every call is in the books");
}

#[tokio::test]
async fn the_ids_of_what_is_stored_are_the_engines_to_give() {
    let bench = Setup::new(Brain::saying(vec![])).engine().await;
    let thread = bench.thread().await.id;
    let refused = ask!(bench.engine, ToolCall, look(thread, Some(ItemId::new()))).unwrap_err();
    assert_eq!(refused.kind, EngineErrorKind::InvalidParams);
}

#[tokio::test]
async fn tools_are_listed_with_the_effects_of_their_calls() {
    let bench = Setup::new(Brain::saying(vec![])).engine().await;
    let thread_id = Some(bench.thread().await.id);
    let tools = ask!(bench.engine, List, List { kind: ListKind::Tools, thread_id }).unwrap().entries;
    let effects = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap()["effects"].clone();
    assert_eq!((effects("look"), effects("change")), (json!(["read"]), json!(["write"])));
}

#[tokio::test]
async fn a_command_can_be_read_without_being_run() {
    let brain = Brain::saying(vec![]);
    let bench = Setup::new(brain.clone()).engine().await;
    std::fs::create_dir_all(bench.file(".hanzo/commands")).unwrap();
    std::fs::write(bench.file(".hanzo/commands/review.md"), "Review $ARGUMENTS now").unwrap();
    let thread_id = bench.thread().await.id;
    let run = |name: &str| CommandRun {
        thread_id,
        name: name.into(),
        arguments: "it".into(),
        purpose: CommandPurpose::Expand,
    };
    let shown = ask!(bench.engine, CommandRun, run("review")).unwrap();
    assert!(matches!(shown, CommandOutcome::Shown { text } if text.contains("Review it now")));
    assert!(ask!(bench.engine, CommandRun, run("compact")).is_err(), "it acts and says nothing");
    assert!(brain.shapes().is_empty(), "no turn began");
}
