//! Content by its hash.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hanzo_protocol::blob::BlobStore as _;
use hanzo_protocol::primitives::ContentHash;
use hanzo_store::FileBlobs;

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for shard in std::fs::read_dir(directory).unwrap() {
        for file in std::fs::read_dir(shard.unwrap().path()).unwrap() {
            found.push(file.unwrap().path());
        }
    }
    found
}

#[tokio::test]
async fn content_is_kept_once_and_read_back() {
    let place = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::open(place.path().join("blobs")).unwrap();
    let large = vec![0xff; 100_000];
    let contents: [&[u8]; 3] = [b"", b"hello", &large];
    for content in contents {
        let hash = blobs.put(content).await.unwrap();
        assert_eq!(hash, ContentHash::of(content));
        assert_eq!(blobs.put(content).await.unwrap(), hash);
        assert_eq!(blobs.get(&hash).await.unwrap().as_deref(), Some(content));
    }
    assert_eq!(files(&place.path().join("blobs")).len(), 3);
    assert_eq!(blobs.get(&ContentHash::of(b"never kept")).await.unwrap(), None);
    blobs.sync().await.unwrap();
    #[cfg(unix)]
    for file in files(&place.path().join("blobs")) {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn content_that_is_not_what_was_kept_is_missing_and_can_be_kept_again() {
    let place = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::open(place.path()).unwrap();
    for damage in [&b"hellO"[..], b"", b"hello and more"] {
        let hash = blobs.put(b"hello").await.unwrap();
        let file = files(place.path()).pop().unwrap();
        std::fs::write(&file, damage).unwrap();
        assert_eq!(blobs.get(&hash).await.unwrap(), None, "{damage:?}");
        blobs.put(b"hello").await.unwrap();
        assert_eq!(blobs.get(&hash).await.unwrap().as_deref(), Some(&b"hello"[..]));
    }
}

#[tokio::test]
async fn a_sweep_takes_what_is_old_and_not_referred_to() {
    let place = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::open(place.path()).unwrap();
    let kept = blobs.put(b"kept").await.unwrap();
    let old = blobs.put(b"old").await.unwrap();
    let day = Duration::from_hours(24);
    for file in files(place.path()) {
        let file = std::fs::File::options().write(true).open(file).unwrap();
        file.set_modified(SystemTime::now() - 2 * day).unwrap();
    }
    let new = blobs.put(b"new").await.unwrap();
    let again = blobs.put(b"old").await.unwrap();
    assert_eq!(again, old);
    let swept = blobs.sweep(HashSet::from([kept.clone()]), day).await.unwrap();
    assert_eq!(swept.removed, 0, "what was put again a moment ago is in use");
    let file = files(place.path()).into_iter().find(|file| std::fs::read(file).unwrap() == b"old").unwrap();
    let file = std::fs::File::options().write(true).open(file).unwrap();
    file.set_modified(SystemTime::now() - 2 * day).unwrap();
    let swept = blobs.sweep(HashSet::from([kept.clone()]), day).await.unwrap();
    assert_eq!((swept.removed, swept.bytes), (1, 3));
    assert_eq!(blobs.get(&old).await.unwrap(), None);
    assert!(blobs.has(&kept) && blobs.has(&new));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_keep_the_same_content_leave_one_file() {
    let place = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::open(place.path()).unwrap();
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let blobs = blobs.clone();
            tokio::spawn(async move { blobs.put(&vec![7; 50_000]).await.unwrap() })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), ContentHash::of(&vec![7; 50_000]));
    }
    assert_eq!(files(place.path()).len(), 1, "no unfinished file is left");
}
