//! Threads: listing, changing, copying, deleting.

use hanzo_protocol::engine::{Mode, Posture};
use hanzo_protocol::event::EventCursor;
use hanzo_protocol::message::Effort;
use hanzo_store::{Holder, SqliteStore, Store as _, StoreError, ThreadChange, ThreadFilter};
use serde_json::json;

use crate::help::{all, append, open, said, text_of, thread, with_thread};

#[tokio::test]
async fn a_thread_reads_back_as_it_was_made() {
    let store = SqliteStore::in_memory().await.unwrap();
    let mut record = thread("/some/where", "Ünïcode");
    record.effort = Some(Effort::High);
    record.ephemeral = true;
    record.forked_from = Some(thread("/", "").id());
    record.state = json!({"a": [1, null]});
    record.summary.mode = Mode::Plan;
    record.summary.posture = Posture::Yolo;
    store.create_thread(record.clone()).await.unwrap();
    assert_eq!(store.thread(record.id()).await.unwrap(), Some(record.clone()));
    assert_eq!(store.thread(thread("/", "").id()).await.unwrap(), None);
    assert!(store.create_thread(record).await.is_err(), "an id is used once");
}

#[tokio::test]
async fn threads_are_listed_newest_change_first_in_pages_by_workspace() {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path()).await;
    let mut ids = Vec::new();
    for n in 0..7 {
        let record = thread(if n == 3 { "/other" } else { "/work" }, &format!("thread {n}"));
        ids.push(record.id());
        store.create_thread(record).await.unwrap();
    }
    let mut hidden = thread("/work", "ephemeral");
    hidden.ephemeral = true;
    store.create_thread(hidden).await.unwrap();
    let mut child = thread("/work", "a subagent's");
    child.summary.parent = Some(ids[0]);
    let child_id = child.id();
    store.create_thread(child).await.unwrap();
    append(&store, said(ids[1], "it moves"), 1).await;
    let expected = vec![ids[1], ids[6], ids[5], ids[4], ids[2], ids[0]];
    let mut listed = Vec::new();
    let mut filter =
        ThreadFilter { workspace: Some("/work".into()), limit: Some(4), ..ThreadFilter::default() };
    loop {
        let page = store.threads(filter.clone()).await.unwrap();
        listed.extend(page.entries.iter().map(|record| record.summary.id));
        filter.cursor = page.next;
        if filter.cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, expected);
    let children = ThreadFilter { parent: Some(ids[0]), ..ThreadFilter::default() };
    let children = store.threads(children).await.unwrap().entries;
    assert_eq!(children.iter().map(hanzo_store::ThreadRecord::id).collect::<Vec<_>>(), [child_id]);
    let wrong = ThreadFilter { cursor: Some("yesterday".into()), ..ThreadFilter::default() };
    assert!(matches!(store.threads(wrong).await, Err(StoreError::Invalid { .. })));
}

#[tokio::test]
async fn a_change_touches_what_it_names_and_the_cursor_never_falls() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let change = ThreadChange {
        title: Some("new".into()),
        effort: Some(Some(Effort::Low)),
        cursor: Some(EventCursor(9)),
        ..ThreadChange::default()
    };
    let changed = store.update_thread(id, change).await.unwrap();
    assert_eq!((changed.summary.title.as_str(), changed.effort), ("new", Some(Effort::Low)));
    assert_eq!(changed.summary.model, "test/model");
    let change = ThreadChange {
        model: Some("other/model".into()),
        mode: Some(Mode::Goal),
        effort: Some(None),
        cursor: Some(EventCursor(3)),
        ..ThreadChange::default()
    };
    let changed = store.update_thread(id, change).await.unwrap();
    assert_eq!((changed.summary.mode, changed.effort), (Mode::Goal, None));
    assert_eq!(changed.summary.cursor, EventCursor(9));
    assert_eq!(store.thread(id).await.unwrap(), Some(changed));
    let nobody = thread("/", "").id();
    let missing = store.update_thread(nobody, ThreadChange::default()).await;
    assert_eq!(missing, Err(StoreError::NoThread { thread: nobody }));
}

#[tokio::test]
async fn a_deleted_thread_is_gone_from_lists_search_and_items() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    append(&store, said(id, "xylophone"), 1).await;
    let lease = store.claim(id, Holder::here("hanzo-dev run")).await.unwrap();
    assert!(matches!(store.delete_thread(id).await, Err(StoreError::Held { .. })), "somebody works in it");
    drop(lease);
    store.delete_thread(id).await.unwrap();
    assert_eq!(store.thread(id).await.unwrap(), None);
    assert!(matches!(store.items(hanzo_store::ItemQuery::all(id)).await, Err(StoreError::NoThread { .. })));
    for search in ["xylophone", "title"] {
        let filter = ThreadFilter { search: Some(search.into()), ..ThreadFilter::default() };
        assert_eq!(store.threads(filter).await.unwrap().entries, []);
    }
}

#[tokio::test]
async fn a_fork_has_copies_up_to_its_point_and_goes_its_own_way() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let items: Vec<_> = (0..12).map(|n| said(id, n.to_string())).collect();
    for (n, item) in (1..).zip(&items) {
        append(&store, item.clone(), n).await;
    }
    let copy = thread("/work", "copy");
    let copy_id = copy.id();
    store.fork_thread(id, Some(items[8].id), copy).await.unwrap();
    let copied = all(&store, copy_id).await;
    let texts: Vec<&str> = copied.iter().map(text_of).collect();
    assert_eq!(texts, ["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
    assert!(copied.iter().all(|item| item.thread_id == copy_id));
    assert!(copied.iter().all(|item| items.iter().all(|original| original.id != item.id)));
    let record = store.thread(copy_id).await.unwrap().unwrap();
    assert_eq!((record.forked_from, record.summary.cursor), (Some(id), EventCursor(9)));
    append(&store, said(copy_id, "mine"), 10).await;
    assert_eq!(all(&store, id).await.len(), 12, "the original is as it was");
    let wrong = thread("/work", "wrong");
    let wrong_id = wrong.id();
    assert!(store.fork_thread(id, Some(copied[0].id), wrong).await.is_err());
    assert_eq!(store.thread(wrong_id).await.unwrap(), None, "nothing is left of a copy that failed");
}
