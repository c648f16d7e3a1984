//! Appending and reading.

use hanzo_protocol::event::EventCursor;
use hanzo_protocol::ids::{ItemId, ThreadId};
use hanzo_protocol::item::{ItemContent, ToolCallStatus, Visibility};
use hanzo_protocol::tool::ToolResult;
use hanzo_protocol::usage::{Cost, Usage};
use hanzo_store::{Batch, ItemQuery, ItemsFrom, SqliteStore, Store as _, StoreError};

use crate::help::{all, append, call, open, said, text_of, thread, with_thread};

#[tokio::test]
async fn what_was_appended_is_there_in_order_after_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let mut written = Vec::new();
    for n in 0..30 {
        let item = if n % 3 == 0 {
            call(id, ToolCallStatus::Completed)
        } else {
            said(id, format!("\u{1F980} number {n}\n\"quoted\""))
        };
        written.push(item.clone());
        append(&store, item, n).await;
    }
    assert_eq!(all(&store, id).await, written);
    store.close().await;
    drop(store);
    let store = open(place.path()).await;
    assert_eq!(all(&store, id).await, written);
    let record = store.thread(id).await.unwrap().unwrap();
    assert_eq!(record.summary.cursor, EventCursor(29));
}

#[tokio::test]
async fn an_item_written_again_keeps_its_place_and_takes_its_new_content() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let mut running = call(id, ToolCallStatus::Running);
    append(&store, running.clone(), 1).await;
    append(&store, said(id, "later"), 2).await;
    if let ItemContent::ToolCall(call) = &mut running.content {
        call.status = ToolCallStatus::Completed;
        call.result = Some(ToolResult::success("done"));
    }
    append(&store, running.clone(), 3).await;
    let items = all(&store, id).await;
    assert_eq!(items.len(), 2);
    assert_eq!(items[0], running);
    let missed = store.items(ItemQuery::after(id, EventCursor(1))).await.unwrap().entries;
    let cursors: Vec<u64> = missed.iter().map(|stored| stored.cursor.0).collect();
    assert_eq!(cursors, [2, 3], "replay follows the order of completion");
}

#[tokio::test]
async fn pages_from_either_end_together_are_the_thread() {
    let store = SqliteStore::in_memory().await.unwrap();
    let record = thread("/work", "");
    let id = record.id();
    store.create_thread(record).await.unwrap();
    let other = thread("/work", "");
    let noise = other.id();
    store.create_thread(other).await.unwrap();
    for n in 0..25 {
        append(&store, said(id, n.to_string()), n).await;
        append(&store, said(noise, "noise"), n).await;
    }
    let expected: Vec<String> = (0..25).map(|n| n.to_string()).collect();
    for from in [ItemsFrom::Start, ItemsFrom::End, ItemsFrom::After(EventCursor(0))] {
        let mut pages = Vec::new();
        let mut page = None;
        loop {
            let query = ItemQuery { from, page, limit: Some(10), ..ItemQuery::all(id) };
            let got = store.items(query).await.unwrap();
            pages.push(got.entries.iter().map(|stored| text_of(&stored.item).to_owned()).collect::<Vec<_>>());
            page = got.next;
            if page.is_none() {
                break;
            }
        }
        if from == ItemsFrom::End {
            pages.reverse();
        }
        let skip = usize::from(from == ItemsFrom::After(EventCursor(0)));
        assert_eq!(pages.concat(), expected[skip..], "{from:?}");
        assert_eq!(pages.len(), 3);
    }
}

#[tokio::test]
async fn what_is_folded_or_rewound_stays_readable_and_is_not_active() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let items: Vec<_> = (0..6).map(|n| said(id, n.to_string())).collect();
    for (n, item) in (0..).zip(&items) {
        append(&store, item.clone(), n).await;
    }
    let mut batch = Batch::new(id);
    batch.visibility = vec![
        (items[0].id, Visibility::Folded),
        (items[1].id, Visibility::Folded),
        (items[5].id, Visibility::Rewound),
    ];
    store.commit(batch).await.unwrap();
    let texts = |visibility| {
        let query = ItemQuery { visibility, ..ItemQuery::all(id) };
        let store = store.clone();
        async move {
            let page = store.items(query).await.unwrap();
            page.entries.iter().map(|s| (text_of(&s.item).to_owned(), s.item.visibility)).collect::<Vec<_>>()
        }
    };
    let numbers =
        |list: Vec<(String, Visibility)>| list.into_iter().map(|(text, _)| text).collect::<String>();
    assert_eq!(numbers(texts(None).await), "012345");
    assert_eq!(numbers(texts(Some(Visibility::Active)).await), "234");
    assert_eq!(texts(Some(Visibility::Folded)).await[1], ("1".into(), Visibility::Folded));
    assert_eq!(numbers(texts(Some(Visibility::Rewound)).await), "5");
    let mut back = Batch::new(id);
    back.visibility = vec![(items[0].id, Visibility::Active)];
    store.commit(back).await.unwrap();
    assert_eq!(numbers(texts(Some(Visibility::Active)).await), "0234");
}

#[tokio::test]
async fn a_batch_is_all_or_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let foreign = said(ThreadId::new(), "of another thread");
    let batch = Batch::new(id).with_item(said(id, "mine"), EventCursor(1)).with_item(foreign, EventCursor(2));
    assert!(matches!(store.commit(batch).await, Err(StoreError::Invalid { .. })));
    assert_eq!(all(&store, id).await, []);
    append(&store, said(id, "after"), 1).await;
    assert_eq!(all(&store, id).await.len(), 1);
    let nowhere = ThreadId::new();
    assert_eq!(
        store.commit(Batch::new(nowhere)).await,
        Err(StoreError::NoThread { thread: nowhere }),
        "a thread has to be there"
    );
}

#[tokio::test]
async fn a_large_batch_is_one_transaction_too() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let mut batch = Batch::new(id);
    for n in 0..500 {
        batch = batch.with_item(said(id, format!("word{n}")), EventCursor(n));
    }
    store.commit(batch.on_disk()).await.unwrap();
    assert_eq!(all(&store, id).await.len(), 500);
}

#[tokio::test]
async fn tokens_and_money_add_up_and_an_unknown_price_is_not_zero() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let usage = Usage { input_tokens: 10, cache_read_tokens: 5, output_tokens: 3, ..Usage::default() };
    let spend = |cost| {
        let mut batch = Batch::new(id);
        batch.usage = Some((usage, cost));
        store.commit(batch)
    };
    spend(None).await.unwrap();
    let record = store.thread(id).await.unwrap().unwrap();
    assert_eq!((record.usage, record.cost), (usage, None));
    spend(Some(Cost::from_nano_usd(7))).await.unwrap();
    spend(Some(Cost::from_nano_usd(8))).await.unwrap();
    let record = store.thread(id).await.unwrap().unwrap();
    assert_eq!((record.usage, record.cost), (usage + usage + usage, Some(Cost::from_nano_usd(15))));
}

#[tokio::test]
async fn a_write_nobody_waits_for_is_done_and_leaves_nothing_open() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    for n in 0..50 {
        let commit = store.commit(Batch::new(id).with_item(said(id, n.to_string()), EventCursor(n)));
        // Polled once, so that it is on its way, and then dropped.
        let _ = tokio::time::timeout(std::time::Duration::ZERO, commit).await;
    }
    append(&store, said(id, "last"), 50).await;
    let items = all(&store, id).await;
    assert_eq!(items.len(), 51);
    assert_eq!(text_of(&items[50]), "last");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_at_once_lose_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let second = open(place.path()).await;
    let mut tasks = Vec::new();
    for n in 0..200_u64 {
        let store = if n % 2 == 0 { store.clone() } else { second.clone() };
        tasks.push(tokio::spawn(async move { append(&store, said(id, n.to_string()), n).await }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut numbers: Vec<u64> =
        all(&store, id).await.iter().map(|item| text_of(item).parse().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_calls_of_one_tool_are_found_whatever_became_of_them() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let named = |tool: &str| {
        let mut item = call(id, ToolCallStatus::Completed);
        if let ItemContent::ToolCall(call) = &mut item.content {
            tool.clone_into(&mut call.tool);
            // What stands in a text is no field.
            call.arguments = r#"{"content":"\"tool\":\"mode.leave\""}"#.to_owned();
        }
        item
    };
    let items = ["mode.activate", "fs.read", "modes.other", "mode.leave", "mode"].map(named);
    for (number, item) in items.iter().enumerate() {
        append(&store, item.clone(), number as u64 + 1).await;
    }
    let folded = Batch { visibility: vec![(items[0].id, Visibility::Folded)], ..Batch::new(id) };
    store.commit(folded).await.unwrap();
    let found: Vec<ItemId> =
        store.calls(id, "mode".into()).await.unwrap().iter().map(|item| item.id).collect();
    assert_eq!(found, [items[0].id, items[3].id]);
}
