//! What the store costs: opening, committing to a short and to a long thread, reopening, checkpoints. The limits are those of the
//! design: opening 5 ms (10 ms when the file is new), a commit 0.3 ms whatever the length, the first page of 10,000 items 100 ms.
#![expect(clippy::print_stdout, reason = "a benchmark's product is what it prints")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run has to stop")]

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hanzo_protocol::engine::{Mode, Posture, ThreadSummary};
use hanzo_protocol::event::EventCursor;
use hanzo_protocol::ids::{ItemId, ThreadId};
use hanzo_protocol::item::{Item, ItemContent, Visibility};
use hanzo_store::{
    Batch, Checkpointer, FileBlobs, Holder, ItemQuery, OpenOptions, SqliteStore, Store as _, ThreadRecord,
};
use jiff::Timestamp;

const TEXT: &str = "The parser loses the last token when the input ends inside a comment; see lexer.rs for the state it keeps.";

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let passed = runtime.block_on(run());
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run() -> bool {
    println!(
        "\n### The store\n\n| what | median | worst of the middle 98% | limit |\n| --- | --- | --- | --- |"
    );
    let mut passed = true;
    passed &= opening().await;
    passed &= committing().await;
    passed &= reopening().await;
    passed &= checkpoints().await;
    passed
}

fn report(what: &str, mut samples: Vec<Duration>, limit: Option<Duration>) -> (bool, Duration) {
    samples.sort_unstable();
    let median = samples[samples.len() / 2];
    let slow = samples[samples.len() * 99 / 100];
    let within = limit.is_none_or(|limit| median <= limit);
    let limit = limit.map_or_else(|| "–".to_owned(), |limit| format!("{limit:?}"));
    println!("| {what} | {median:?} | {slow:?} | {limit} |{}", if within { "" } else { " **over** |" });
    (within, median)
}

async fn open(directory: &Path) -> SqliteStore {
    SqliteStore::open(directory, OpenOptions::default()).await.unwrap().0
}

async fn opening() -> bool {
    let mut new = Vec::new();
    let mut existing = Vec::new();
    let mut crashed = Vec::new();
    for _ in 0..40 {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("data");
        let began = Instant::now();
        let store = open(&directory).await;
        new.push(began.elapsed());
        let id = begin(&store).await;
        for n in 0..20 {
            append(&store, id, n).await;
        }
        let copy = tempfile::tempdir().unwrap();
        for name in ["hanzo.db", "hanzo.db-wal"] {
            std::fs::copy(directory.join(name), copy.path().join(name)).unwrap();
        }
        store.close().await;
        drop(store);
        let began = Instant::now();
        drop(open(&directory).await);
        existing.push(began.elapsed());
        let began = Instant::now();
        drop(open(copy.path()).await);
        crashed.push(began.elapsed());
    }
    let mut passed = report("open, new file", new, Some(Duration::from_millis(10))).0;
    passed &= report("open, closed well", existing, Some(Duration::from_millis(5))).0;
    passed & report("open, killed before", crashed, Some(Duration::from_millis(5))).0
}

async fn begin(store: &SqliteStore) -> ThreadId {
    let now = Timestamp::now();
    let id = ThreadId::new();
    let summary = ThreadSummary {
        id,
        title: "A thread".into(),
        workspace: "/work".into(),
        agent: "coder".into(),
        model: "provider/model".into(),
        mode: Mode::Normal,
        posture: Posture::Ask,
        parent: None,
        created_at: now,
        updated_at: now,
        cursor: EventCursor(0),
    };
    store.create_thread(ThreadRecord::new(summary)).await.unwrap();
    id
}

fn item(thread: ThreadId, n: u64) -> Item {
    Item {
        id: ItemId::new(),
        thread_id: thread,
        turn_id: None,
        created_at: Timestamp::now(),
        visibility: Visibility::Active,
        taint: None,
        content: ItemContent::AgentMessage { text: format!("{n}: {TEXT}") },
    }
}

async fn append(store: &SqliteStore, thread: ThreadId, n: u64) -> Duration {
    let batch = Batch::new(thread).with_item(item(thread, n), EventCursor(n));
    let began = Instant::now();
    store.commit(batch).await.unwrap();
    began.elapsed()
}

async fn committing() -> bool {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path()).await;
    let mut claims = Vec::new();
    let mut begins = Vec::new();
    for _ in 0..100 {
        let began = Instant::now();
        let id = begin(&store).await;
        begins.push(began.elapsed());
        let began = Instant::now();
        let lease = store.claim(id, Holder::here("bench")).await.unwrap();
        claims.push(began.elapsed());
        drop(lease);
    }
    report("begin a thread", begins, None);
    report("claim it", claims, None);
    // Short threads in a database that is as large as the long thread makes it, so that only the length differs.
    let long = begin(&store).await;
    let mut first = Vec::new();
    for n in 0..20_000 {
        let took = append(&store, long, n).await;
        if n < 1_000 {
            first.push(took);
        }
    }
    report("commit, the first 1,000 items of an empty database", first, Some(Duration::from_micros(300)));
    let short = begin(&store).await;
    for n in 0..100 {
        append(&store, short, n).await;
    }
    let (mut at_short, mut at_long) = (Vec::new(), Vec::new());
    for n in 0..2_000 {
        at_short.push(append(&store, short, 100 + n).await);
        at_long.push(append(&store, long, 20_000 + n).await);
    }
    let limit = Some(Duration::from_micros(300));
    let (short_passed, short) = report("commit, item 100 to 2,100", at_short, limit);
    let (long_passed, long_median) = report("commit, item 20,000 to 22,000", at_long, limit);
    let mut disk = Vec::new();
    for n in 0..200 {
        let batch = Batch::new(long).with_item(item(long, n), EventCursor(30_000 + n)).on_disk();
        let began = Instant::now();
        store.commit(batch).await.unwrap();
        disk.push(began.elapsed());
    }
    report("commit, on the disk", disk, None);
    let ratio = long_median.as_secs_f64() / short.as_secs_f64();
    println!("\nA commit to the long thread takes {ratio:.2} of one to the short thread\n");
    short_passed && long_passed && ratio < 1.5
}

async fn reopening() -> bool {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path()).await;
    let id = begin(&store).await;
    for n in 0..100 {
        let mut batch = Batch::new(id);
        for m in 0..100 {
            batch = batch.with_item(item(id, n * 100 + m), EventCursor(n * 100 + m));
        }
        store.commit(batch).await.unwrap();
    }
    store.close().await;
    drop(store);
    let (mut tail, mut all) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let began = Instant::now();
        let store = open(place.path()).await;
        let page = store.items(ItemQuery::tail(id, 100)).await.unwrap();
        tail.push(began.elapsed());
        assert_eq!(page.entries.len(), 100);
        let began = Instant::now();
        assert_eq!(store.items(ItemQuery::all(id)).await.unwrap().entries.len(), 10_000);
        all.push(began.elapsed());
        store.close().await;
    }
    println!("\n| what | median | worst of the middle 98% | limit |\n| --- | --- | --- | --- |");
    report("all 10,000 items", all, None);
    report("open, and the newest 100 of 10,000 items", tail, Some(Duration::from_millis(100))).0
}

async fn checkpoints() -> bool {
    println!("\n| what | median | worst of the middle 98% | limit |\n| --- | --- | --- | --- |");
    let mut passed = true;
    for (what, directories, files, limit) in [
        ("checkpoint of 5 unchanged files", 1, 5, Duration::from_millis(1)),
        ("checkpoint of 10,000 unchanged files", 500, 20, Duration::from_millis(60)),
    ] {
        let place = tempfile::tempdir().unwrap();
        let workspace = place.path().join("work");
        for directory in 0..directories {
            let path = workspace.join(format!("module{directory}/src"));
            std::fs::create_dir_all(&path).unwrap();
            for file in 0..files {
                std::fs::write(path.join(format!("file{file}.rs")), format!("{directory} {file} {TEXT}"))
                    .unwrap();
            }
        }
        std::fs::write(workspace.join(".gitignore"), "target/\n*.log\n").unwrap();
        let blobs = FileBlobs::open(place.path().join("blobs")).unwrap();
        let checkpointer = Checkpointer::new(&workspace, blobs);
        let began = Instant::now();
        let first = checkpointer.take().await.unwrap();
        report(&format!("{what}: the first one, {} files read", first.read), vec![began.elapsed()], None);
        // Until the clock of the file system has moved on.
        tokio::time::sleep(Duration::from_millis(50)).await;
        checkpointer.take().await.unwrap();
        let mut quiet = Vec::new();
        for _ in 0..20 {
            let began = Instant::now();
            assert_eq!(checkpointer.take().await.unwrap().read, 0);
            quiet.push(began.elapsed());
        }
        passed &= report(what, quiet, Some(limit)).0;
    }
    passed
}
