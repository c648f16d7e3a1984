//! A full disk: the write fails as what it is, nothing is half written, and with room again all goes on.

use hanzo_protocol::event::EventCursor;
use hanzo_store::{Batch, OpenOptions, SqliteStore, Store as _, StoreError};
use hanzo_testkit::not_run;

use crate::help::{all, append, said, thread};

#[tokio::test]
async fn a_database_that_may_not_grow_refuses_and_goes_on_when_it_may() {
    let place = tempfile::tempdir().unwrap();
    let mut options = OpenOptions::default();
    options.max_pages = Some(60);
    let (store, _) = SqliteStore::open(place.path(), options).await.unwrap();
    let record = thread("/work", "a title");
    let id = record.id();
    store.create_thread(record).await.unwrap();
    let mut kept = 0;
    let refused = loop {
        let mut batch = Batch::new(id);
        for n in 0..3 {
            batch = batch.with_item(said(id, format!("{n} {}", "x".repeat(2000))), EventCursor(kept + n));
        }
        match store.commit(batch).await {
            Ok(()) => kept += 3,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StoreError::DiskFull { .. }) && refused.is_transient(), "{refused:?}");
    assert!(refused.to_string().contains("disk is full"), "{refused}");
    assert_eq!(all(&store, id).await.len() as u64, kept, "of the refused batch there is nothing");
    store.close().await;
    drop(store);
    let store = crate::help::open(place.path()).await;
    append(&store, said(id, "with room again"), 1000).await;
    assert_eq!(all(&store, id).await.len() as u64, kept + 1);
}

/// Set for the process that runs with a small disk.
#[cfg(target_os = "linux")]
const DISK: &str = "HANZO_STORE_TEST_SMALL_DISK";

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_really_full_is_survived() {
    if let Some(disk) = std::env::var_os(DISK) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(on_a_small_disk(disk.as_ref()));
    }
    let place = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=1m tmpfs {0} && exec env {DISK}={0} \"$0\" --exact full::a_disk_that_is_really_full_is_survived --nocapture",
        place.path().display()
    );
    let run = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .output();
    let Ok(output) = run else { return not_run("`unshare`") };
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare failed") || said.contains("mount:") || said.contains("Operation not permitted")
    {
        return not_run("user namespaces in which a file system may be mounted");
    }
    assert!(output.status.success() && said.contains("survived a full disk"), "{said}");
}

#[cfg(target_os = "linux")]
async fn on_a_small_disk(disk: &std::path::Path) {
    let directory = disk.join("data");
    let filler = disk.join("filler");
    let store = crate::help::open(&directory).await;
    let record = thread("/work", "a title");
    let id = record.id();
    store.create_thread(record).await.unwrap();
    std::fs::write(&filler, vec![0; 300_000]).unwrap();
    let mut kept = 0;
    let refused = loop {
        let item = said(id, format!("{kept} {}", "x".repeat(3000)));
        match store.commit(Batch::new(id).with_item(item, EventCursor(kept))).await {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StoreError::DiskFull { .. }), "{refused:?}");
    assert!(kept > 5);
    assert_eq!(all(&store, id).await.len() as u64, kept);
    std::fs::remove_file(&filler).unwrap();
    append(&store, said(id, "with room again"), kept).await;
    assert_eq!(all(&store, id).await.len() as u64, kept + 1);
    store.close().await;
    drop(store);
    let store = crate::help::open(&directory).await;
    assert_eq!(all(&store, id).await.len() as u64, kept + 1);
    println!("survived a full disk after {kept} items");
}
