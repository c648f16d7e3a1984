//! Torn, cut, flipped and foreign files: what can be read is there, the user is told, and there is always a store to go on with.

use std::path::Path;

use hanzo_protocol::event::EventCursor;
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::item::{Item, NoticeLevel};
use hanzo_store::{
    Batch, ItemQuery, OpenOptions, OpenReport, SearchQuery, SearchScope, SqliteStore, Store as _, StoreError,
    ThreadFilter,
};
use hanzo_testkit::scale;

use crate::help::{all, append, open, said, thread, with_thread};

/// Numbers that look random and are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn place(&mut self, from: usize, to: usize) -> usize {
        from + usize::try_from(self.roll((to - from) as u64)).unwrap()
    }
}

async fn reopen(directory: &Path) -> Result<(SqliteStore, OpenReport), StoreError> {
    SqliteStore::open(directory, OpenOptions::default()).await
}

/// Everything a face does with a store.
async fn use_it(store: &SqliteStore) -> Result<Vec<Item>, StoreError> {
    let mut items = Vec::new();
    for record in store.threads(ThreadFilter::default()).await?.entries {
        let page = store.items(ItemQuery::all(record.id())).await?;
        items.extend(page.entries.into_iter().map(|stored| stored.item));
    }
    let query = SearchQuery { text: "number".into(), scope: SearchScope::All, limit: None };
    store.search(query).await?;
    let record = thread("/work", "made afterwards");
    let id = record.id();
    store.create_thread(record).await?;
    store.commit(Batch::new(id).with_item(said(id, "number after"), EventCursor(1)).on_disk()).await?;
    store.delete_thread(id).await?;
    Ok(items)
}

/// A closed database with `count` items, and they.
async fn filled(directory: &Path, count: u64) -> (ThreadId, Vec<Item>) {
    let (store, id) = with_thread(directory).await;
    for n in 0..count {
        append(&store, said(id, format!("number {n} {}", "filler ".repeat(20))), n).await;
    }
    let items = all(&store, id).await;
    store.close().await;
    (id, items)
}

#[tokio::test]
async fn a_torn_log_loses_its_end_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    for n in 0..40 {
        append(&store, said(id, format!("number {n}")), n).await;
    }
    let written = all(&store, id).await;
    let database = std::fs::read(place.path().join("hanzo.db")).unwrap();
    let log = std::fs::read(place.path().join("hanzo.db-wal")).unwrap();
    let mut dice = Dice(7);
    let (mut told, mut lost) = (0, 0);
    for round in 0..scale::rounds(400) {
        let copy = tempfile::tempdir().unwrap();
        let mut torn = log.clone();
        // Not among the first frames, which make the tables: without them there is nothing to open.
        let at = dice.place(log.len() / 2, log.len());
        if round % 2 == 0 {
            torn.truncate(at);
        } else {
            torn[at] ^= 1 << dice.roll(8);
        }
        std::fs::write(copy.path().join("hanzo.db"), &database).unwrap();
        std::fs::write(copy.path().join("hanzo.db-wal"), &torn).unwrap();
        let (store, report) = reopen(copy.path()).await.unwrap();
        let items = all(&store, id).await;
        assert_eq!(items, written[..items.len()], "what is left is the beginning");
        told += u32::from(!report.notices.is_empty());
        lost += u32::from(items.len() < written.len());
        append(&store, said(id, "number after"), 100).await;
        assert_eq!(all(&store, id).await.len(), items.len() + 1);
    }
    assert!(lost > 0 && told > 0, "{told} told, {lost} lost");
    // A log cut exactly between two transactions looks like a shorter log; every other loss is told.
    assert!(told * 10 >= lost * 9, "{told} told of {lost} losses");
}

/// A process killed after it wrote a whole transaction into the log and before it said so, while another had the database open:
/// the other goes on as if it had not happened. The same bytes in the log are a loss when they had been acknowledged.
#[tokio::test]
async fn a_write_is_only_called_lost_when_it_was_acknowledged() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    let file = |name: &str| std::fs::read(place.path().join(name)).unwrap();
    for n in 0..20 {
        append(&store, said(id, format!("number {n}")), n).await;
    }
    let (early_log, early_index) = (file("hanzo.db-wal"), file("hanzo.db-shm"));
    for n in 20..30 {
        append(&store, said(id, format!("number {n}")), n).await;
    }
    let (database, mut log, index) = (file("hanzo.db"), file("hanzo.db-wal"), file("hanzo.db-shm"));
    assert!(early_log.len() + 100 < log.len(), "the log has grown");
    // The first frame that was added does not continue the one before it; all that follow are whole.
    log[early_log.len() + 50] ^= 1;
    for (index, words) in [
        (Some(&early_index), (NoticeLevel::Info, "the process before ended while it was writing")),
        (Some(&index), (NoticeLevel::Warning, "the log of the database was torn")),
        (None, (NoticeLevel::Warning, "the log of the database was torn")),
    ] {
        let copy = tempfile::tempdir().unwrap();
        std::fs::write(copy.path().join("hanzo.db"), &database).unwrap();
        std::fs::write(copy.path().join("hanzo.db-wal"), &log).unwrap();
        if let Some(index) = index {
            std::fs::write(copy.path().join("hanzo.db-shm"), index).unwrap();
        }
        let (store, report) = reopen(copy.path()).await.unwrap();
        assert_eq!(all(&store, id).await.len(), 20);
        let [(level, text)] = report.notices.as_slice() else { panic!("{report:?}") };
        assert_eq!(*level, words.0, "{text}");
        assert!(text.starts_with(words.1), "{text}");
    }
}

#[tokio::test]
async fn a_log_that_is_whole_is_no_reason_for_a_notice() {
    let place = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(place.path()).await;
    append(&store, said(id, "first"), 1).await;
    let copy = tempfile::tempdir().unwrap();
    for name in ["hanzo.db", "hanzo.db-wal"] {
        std::fs::copy(place.path().join(name), copy.path().join(name)).unwrap();
    }
    let killed = open(copy.path()).await;
    assert_eq!(all(&killed, id).await.len(), 1);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_set_aside_and_a_new_one_begun() {
    for content in [b"not a database, but somebody's notes".repeat(300), vec![0x55; 100], vec![0; 5000]] {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("hanzo.db"), &content).unwrap();
        let (store, report) = reopen(place.path()).await.unwrap();
        assert_eq!(report.notices.len(), 1, "{report:?}");
        assert!(report.notices[0].1.contains("hanzo.db.damaged-"), "{report:?}");
        assert_eq!(use_it(&store).await.unwrap(), []);
        let aside: Vec<_> = std::fs::read_dir(place.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_name().to_string_lossy().contains(".damaged-"))
            .collect();
        assert!(
            aside.iter().any(|entry| std::fs::read(entry.path()).unwrap() == content),
            "it is kept as it was"
        );
        store.close().await;
        drop(store);
        open(place.path()).await;
    }
}

#[tokio::test]
async fn an_empty_file_is_an_empty_database() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("hanzo.db"), b"").unwrap();
    let store = open(place.path()).await;
    use_it(&store).await.unwrap();
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    filled(place.path(), 1).await;
    let path = place.path().join("hanzo.db");
    let mut bytes = std::fs::read(&path).unwrap();
    // The schema's number in the header of the file.
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let error = reopen(place.path()).await.err().unwrap();
    assert!(matches!(error, StoreError::TooNew { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("hint: update hanzo-dev"), "{error}");
    let after = std::fs::read(&path).unwrap();
    assert!(after == bytes, "not a byte of it was changed");
}

#[tokio::test]
async fn flipped_and_cut_databases_are_opened_or_replaced_and_then_work() {
    let place = tempfile::tempdir().unwrap();
    let (_, written) = filled(place.path(), 300).await;
    let whole = std::fs::read(place.path().join("hanzo.db")).unwrap();
    let mut dice = Dice(11);
    let (mut told, mut best) = (0, 0);
    let rounds = scale::rounds(600);
    for round in 0..rounds {
        let copy = tempfile::tempdir().unwrap();
        let mut damaged = whole.clone();
        match round % 3 {
            0 => damaged.truncate(dice.place(100, whole.len())),
            1 => {
                let at = dice.place(100, whole.len());
                damaged[at] ^= 1 << dice.roll(8);
            }
            // A whole page of nothing, as a disk returns it.
            _ => {
                let page = dice.place(1, whole.len() / 4096) * 4096;
                damaged[page..page + 4096].fill(0);
            }
        }
        std::fs::write(copy.path().join("hanzo.db"), &damaged).unwrap();
        let mut saved = None;
        // Damage that opening does not see is met by a query; the next start then looks at every page.
        for _ in 0..2 {
            let (store, report) = reopen(copy.path()).await.unwrap();
            told += u32::from(!report.notices.is_empty());
            let used = use_it(&store).await;
            store.close().await;
            drop(store);
            match used {
                Ok(items) => {
                    saved = Some(items);
                    break;
                }
                Err(StoreError::Damaged { .. }) => {}
                Err(error) => panic!("round {round}: {error:?}"),
            }
        }
        let saved = saved.unwrap_or_else(|| panic!("round {round}: still damaged after it was replaced"));
        best +=
            usize::from(saved.iter().filter(|item| written.contains(item)).count() * 10 >= written.len() * 9);
    }
    assert!(told > 0);
    // One page holds few of three hundred items: most damage costs few of them or none.
    assert!(best * 3 >= rounds as usize, "{best} of {rounds} kept nine tenths");
}

#[tokio::test]
async fn a_flipped_header_is_an_answer_and_never_a_panic() {
    let place = tempfile::tempdir().unwrap();
    filled(place.path(), 5).await;
    let whole = std::fs::read(place.path().join("hanzo.db")).unwrap();
    for at in 0..100 {
        let copy = tempfile::tempdir().unwrap();
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        std::fs::write(copy.path().join("hanzo.db"), &damaged).unwrap();
        if let Ok((store, _)) = reopen(copy.path()).await {
            let _ = use_it(&store).await;
            store.close().await;
        }
    }
}

#[tokio::test]
async fn a_broken_index_is_made_again_and_costs_no_item() {
    let place = tempfile::tempdir().unwrap();
    let (id, written) = filled(place.path(), 50).await;
    let path = place.path().join("hanzo.db");
    let mut bytes = std::fs::read(&path).unwrap();
    // The words are stored in pages of the index only in this form: with the byte of their length before them.
    let mut hits = 0;
    for at in 0..bytes.len() - 8 {
        if &bytes[at..at + 6] == b"number"
            && !bytes[at - 1].is_ascii_graphic()
            && !bytes[at + 6].is_ascii_graphic()
        {
            bytes[at - 1] = 0xff;
            hits += 1;
        }
    }
    assert!(hits > 0);
    std::fs::write(&path, &bytes).unwrap();
    for n in 0..2 {
        let (store, _) = reopen(place.path()).await.unwrap();
        let query = SearchQuery { text: "number".into(), scope: SearchScope::All, limit: Some(1000) };
        let _ = store.search(query).await;
        store.commit(Batch::new(id).with_item(said(id, "number new"), EventCursor(99))).await.unwrap();
        let items = all(&store, id).await;
        assert_eq!(items[..50], written);
        assert_eq!(items.len(), 51 + n);
        store.close().await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_what_is_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("new/data");
    let (store, id) = with_thread(&directory).await;
    append(&store, said(id, "secret"), 1).await;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for name in ["hanzo.db", "hanzo.db-wal"] {
        assert_eq!(mode(&directory.join(name)), 0o600, "{name}");
    }
}
