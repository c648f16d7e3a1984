//! The full-text index.

use hanzo_protocol::item::{ItemContent, ToolCallStatus};
use hanzo_store::{SearchQuery, SearchScope, SqliteStore, Store as _, ThreadChange, ThreadFilter};
use proptest::prelude::*;

use crate::help::{append, call, item, open, said, thread, with_thread};

fn query(text: &str, scope: SearchScope) -> SearchQuery {
    SearchQuery { text: text.into(), scope, limit: None }
}

#[tokio::test]
async fn words_are_found_in_messages_calls_digests_and_titles() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    append(&store, said(id, "Please fix the tokenizer in the lexer"), 1).await;
    append(&store, item(id, ItemContent::AgentMessage { text: "The Übergröße overflows".into() }), 2).await;
    append(&store, call(id, ToolCallStatus::Completed), 3).await;
    let digest = ItemContent::Compaction {
        digest: "we renamed frobnicate".into(),
        folded: 3,
        tokens_saved: 9,
        before: None,
    };
    append(&store, item(id, digest), 4).await;
    let pending = call(id, ToolCallStatus::Pending);
    append(&store, pending.clone(), 5).await;
    for (typed, kind) in [
        ("tokenizer", "userMessage"),
        ("tokeni", "userMessage"),
        ("lexer fix", "userMessage"),
        ("ubergroße", "agentMessage"),
        ("parser.rs", "toolCall"),
        ("frobnicate", "compaction"),
        ("a title", "title"),
    ] {
        let hits = store.search(query(typed, SearchScope::All)).await.unwrap();
        assert_eq!(hits.iter().map(|hit| hit.kind.as_str()).collect::<Vec<_>>(), [kind], "{typed}");
        assert_eq!(hits[0].thread, id);
    }
    let hits = store.search(query("tokenizer nothing", SearchScope::All)).await.unwrap();
    assert_eq!(hits, [], "all words must occur");
}

#[tokio::test]
async fn the_better_match_comes_first_and_scopes_are_kept() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let other = thread("/other", "elsewhere");
    let other_id = other.id();
    store.create_thread(other).await.unwrap();
    let long = format!("apple {}", "filler words that say nothing ".repeat(50));
    append(&store, said(id, long), 1).await;
    append(&store, said(id, "apple apple pie"), 2).await;
    append(&store, said(other_id, "apple of another workspace"), 1).await;
    let hits = store.search(query("apple", SearchScope::Thread(id))).await.unwrap();
    assert_eq!(hits.len(), 2);
    assert!(hits[0].excerpt.starts_with("apple apple") && hits[0].score > hits[1].score, "{hits:?}");
    assert_eq!(store.search(query("apple", SearchScope::Workspace("/work".into()))).await.unwrap().len(), 2);
    assert_eq!(store.search(query("apple", SearchScope::Workspace("/other".into()))).await.unwrap().len(), 1);
    assert_eq!(store.search(query("apple", SearchScope::All)).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_text_written_again_is_found_by_its_new_words_only() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let mut message = said(id, "before");
    append(&store, message.clone(), 1).await;
    message.content = ItemContent::UserMessage { text: "afterwards".into(), attachments: vec![] };
    append(&store, message, 2).await;
    assert_eq!(store.search(query("before", SearchScope::All)).await.unwrap(), []);
    assert_eq!(store.search(query("afterwards", SearchScope::All)).await.unwrap().len(), 1);
    let change = ThreadChange { title: Some("renamed".into()), ..ThreadChange::default() };
    store.update_thread(id, change).await.unwrap();
    let titled = |search: &str| ThreadFilter { search: Some(search.into()), ..ThreadFilter::default() };
    assert_eq!(store.threads(titled("renamed")).await.unwrap().entries.len(), 1);
    assert_eq!(store.threads(titled("afterwards")).await.unwrap().entries.len(), 1);
    assert_eq!(store.threads(titled("title")).await.unwrap().entries.len(), 0);
    assert_eq!(store.threads(titled("?!")).await.unwrap().entries.len(), 0);
}

#[test]
fn nothing_a_user_types_is_a_syntax_error() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(SqliteStore::in_memory()).unwrap();
    let record = thread("/work", "NEAR(title)");
    let id = record.id();
    runtime.block_on(store.create_thread(record)).unwrap();
    runtime.block_on(append(&store, said(id, "col:umn AND \"quoted\" NOT (x* OR ^y)"), 1));
    let strategy =
        prop_oneof![any::<String>(), "[ \"'*()^:{}+-]{0,12}(AND|OR|NOT|NEAR)?[ \"'*()^:{}a-z\0-]{0,12}",];
    proptest!(ProptestConfig::with_cases(256), |(typed in strategy)| {
        let found = runtime.block_on(store.search(query(&typed, SearchScope::All)));
        prop_assert!(found.is_ok(), "{typed:?}: {found:?}");
        let filter = ThreadFilter { search: Some(typed.clone()), ..ThreadFilter::default() };
        prop_assert!(runtime.block_on(store.threads(filter)).is_ok(), "{typed:?}");
    });
}

#[tokio::test]
async fn searching_waits_for_nothing_a_writer_does() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    append(&store, said(id, "first"), 1).await;
    let second = open(place.path()).await;
    assert_eq!(second.search(query("first", SearchScope::All)).await.unwrap().len(), 1);
    append(&store, said(id, "second"), 2).await;
    assert_eq!(second.search(query("second", SearchScope::All)).await.unwrap().len(), 1);
}
