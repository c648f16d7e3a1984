//! Checkpoints of a workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hanzo_protocol::ids::TurnId;
use hanzo_store::{
    ChangedSince, Checkpoint, CheckpointLimits, Checkpointer, FileBlobs, FileChange, LeftOutWhy, Moment,
    RestoreOptions, Store as _,
};

use crate::help::with_thread;

struct Place {
    _root: tempfile::TempDir,
    workspace: PathBuf,
    blobs: FileBlobs,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().join("work");
        fs::create_dir(&workspace).unwrap();
        let blobs = FileBlobs::open(root.path().join("blobs")).unwrap();
        Self { _root: root, workspace, blobs }
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.workspace.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.workspace.join(path)).unwrap()
    }

    fn has(&self, path: &str) -> bool {
        fs::symlink_metadata(self.workspace.join(path)).is_ok()
    }

    fn checkpointer(&self) -> Checkpointer {
        Checkpointer::new(&self.workspace, self.blobs.clone())
    }
}

fn left_out(checkpoint: &Checkpoint) -> Vec<(&str, LeftOutWhy)> {
    checkpoint.left_out.iter().map(|left| (left.path.as_str(), left.why)).collect()
}

fn created(path: &str) -> FileChange {
    FileChange::Created { path: path.into() }
}

fn modified(path: &str) -> FileChange {
    FileChange::Modified { path: path.into() }
}

fn deleted(path: &str) -> FileChange {
    FileChange::Deleted { path: path.into() }
}

#[tokio::test]
async fn a_turn_is_undone_changed_deleted_and_created_files_alike() {
    let place = Place::new();
    place.write("src/main.rs", "fn main() {}");
    place.write("docs/a.md", "a");
    place.write("same.txt", "same");
    let checkpointer = place.checkpointer();
    let before = checkpointer.take().await.unwrap();
    assert_eq!((before.files, before.left_out.len()), (3, 0));
    place.write("src/main.rs", "fn main() { broken }");
    fs::remove_dir_all(place.workspace.join("docs")).unwrap();
    place.write("new/deep/file.txt", "new");
    let after = checkpointer.take().await.unwrap();
    let (from, to) = (before.manifest.clone(), after.manifest.clone());
    let diff = checkpointer.diff(from.clone(), to.clone()).await.unwrap();
    assert_eq!(diff, [deleted("docs/a.md"), created("new/deep/file.txt"), modified("src/main.rs")]);
    // As after a restart: nothing is in memory.
    let checkpointer = place.checkpointer();
    let restored =
        checkpointer.restore(from.clone(), Some(to.clone()), RestoreOptions::default()).await.unwrap();
    assert_eq!(restored.written, ["docs/a.md", "src/main.rs"]);
    assert_eq!(
        (restored.removed.as_slice(), restored.kept.len()),
        (&["new/deep/file.txt".to_owned()][..], 0)
    );
    assert_eq!(place.read("src/main.rs"), "fn main() {}");
    assert_eq!((place.read("docs/a.md"), place.read("same.txt")), ("a".into(), "same".into()));
    assert!(!place.has("new"), "directories that were made go too");
    let now = checkpointer.take().await.unwrap();
    assert_eq!(checkpointer.diff(from, now.manifest.clone()).await.unwrap(), []);
    let undone = RestoreOptions::default();
    checkpointer.restore(restored.before, Some(now.manifest), undone).await.unwrap();
    assert_eq!(place.read("src/main.rs"), "fn main() { broken }", "the undoing can be undone");
    let old = checkpointer.content(before.manifest, "src/main.rs".into()).await.unwrap();
    assert_eq!(old.as_deref(), Some(&b"fn main() {}"[..]));
}

#[tokio::test]
async fn what_the_user_changed_afterwards_is_left_alone_unless_asked() {
    let place = Place::new();
    place.write("a", "1");
    place.write("b", "1");
    let checkpointer = place.checkpointer();
    let before = checkpointer.take().await.unwrap().manifest;
    place.write("a", "2");
    place.write("b", "2");
    place.write("made by the agent", "x");
    let after = checkpointer.take().await.unwrap().manifest;
    place.write("a", "the user's");
    place.write("made by the user", "y");
    let kept =
        checkpointer.restore(before.clone(), Some(after.clone()), RestoreOptions::default()).await.unwrap();
    assert_eq!((kept.written.as_slice(), kept.removed.len()), (&["b".to_owned()][..], 1));
    assert_eq!(kept.kept.len(), 1);
    assert_eq!(
        (kept.kept[0].path.as_str(), kept.kept[0].reason.as_str()),
        ("a", "it was changed afterwards")
    );
    assert_eq!(place.read("a"), "the user's");
    let all = RestoreOptions { changed_since: ChangedSince::Overwrite, ..RestoreOptions::default() };
    checkpointer.restore(before, Some(after), all).await.unwrap();
    assert_eq!(place.read("a"), "1");
    assert!(place.has("made by the user"), "no checkpoint saw it made");
}

#[tokio::test]
async fn only_the_files_asked_for_are_taken_back() {
    let place = Place::new();
    place.write("a", "1");
    place.write("b", "1");
    let checkpointer = place.checkpointer();
    let before = checkpointer.take().await.unwrap().manifest;
    place.write("a", "2");
    place.write("b", "2");
    let options = RestoreOptions { paths: Some(vec!["b".into()]), ..RestoreOptions::default() };
    let restored = checkpointer.restore(before, None, options).await.unwrap();
    assert_eq!(restored.written, ["b"]);
    assert_eq!((place.read("a"), place.read("b")), ("2".into(), "1".into()));
}

#[tokio::test]
async fn what_is_left_out_is_listed_and_never_removed() {
    let place = Place::new();
    fs::create_dir(place.workspace.join(".git")).unwrap();
    place.write(".git/HEAD", "ref: refs/heads/main");
    place.write(".gitignore", "target/\n*.log\n!keep.log\n");
    place.write("src/.gitignore", "generated.rs\n");
    place.write("src/generated.rs", "x");
    place.write("src/lib.rs", "x");
    place.write("target/debug/huge", "x");
    place.write("a.log", "x");
    place.write("keep.log", "x");
    place.write("large.bin", vec![0; 3000]);
    let limits = CheckpointLimits { file_size: 2000, ..CheckpointLimits::default() };
    let checkpointer = Checkpointer::with_limits(&place.workspace, place.blobs.clone(), limits);
    let before = checkpointer.take().await.unwrap();
    let expected = [
        ("a.log", LeftOutWhy::Ignored),
        ("large.bin", LeftOutWhy::TooLarge),
        ("src/generated.rs", LeftOutWhy::Ignored),
        ("target/", LeftOutWhy::Ignored),
    ];
    assert_eq!(left_out(&before), expected);
    assert_eq!(before.files, 4, "both .gitignore files, lib.rs and keep.log; of .git nothing");
    place.write("large.bin", "small now");
    place.write("target/debug/more", "y");
    let after = checkpointer.take().await.unwrap();
    assert_eq!(checkpointer.diff(before.manifest.clone(), after.manifest.clone()).await.unwrap(), []);
    let restored =
        checkpointer.restore(before.manifest, Some(after.manifest), RestoreOptions::default()).await.unwrap();
    assert_eq!((restored.written.len(), restored.removed.len()), (0, 0));
    assert!(place.has("large.bin") && place.has("target/debug/more"));
}

#[tokio::test]
async fn caps_are_kept_and_said_and_later_looks_make_up_for_them() {
    let place = Place::new();
    for n in 0..40 {
        place.write(&format!("d{n}/file"), "x");
    }
    let few = CheckpointLimits { files: 10, ..CheckpointLimits::default() };
    let capped = Checkpointer::with_limits(&place.workspace, place.blobs.clone(), few).take().await.unwrap();
    assert_eq!(capped.files, 10);
    assert_eq!(capped.left_out.len(), 30);
    assert!(capped.left_out.iter().all(|left| left.why == LeftOutWhy::TooMany && left.path.ends_with('/')));
    let hasty = CheckpointLimits { time: Duration::ZERO, ..CheckpointLimits::default() };
    let hasty = Checkpointer::with_limits(&place.workspace, place.blobs.clone(), hasty).take().await.unwrap();
    assert_eq!(left_out(&hasty), [("", LeftOutWhy::TookTooLong)]);
    let checkpointer = place.checkpointer();
    let whole = checkpointer.take().await.unwrap();
    assert_eq!(whole.files, 40);
    // What the hasty one did not see was not created since.
    let restored =
        checkpointer.restore(hasty.manifest, Some(whole.manifest), RestoreOptions::default()).await.unwrap();
    assert_eq!(restored.removed.len(), 0);
    assert!(place.has("d39/file"));
}

#[tokio::test]
async fn only_what_changed_is_read_again() {
    let place = Place::new();
    for n in 0..50 {
        place.write(&format!("f{n}"), n.to_string());
    }
    let checkpointer = place.checkpointer();
    let first = checkpointer.take().await.unwrap();
    assert_eq!(first.read, 50);
    // Until the clock of the file system has certainly moved on; then nothing is in doubt.
    tokio::time::sleep(Duration::from_millis(30)).await;
    let settled = checkpointer.take().await.unwrap();
    assert_eq!(settled.manifest, first.manifest, "the same files are the same list");
    let quiet = checkpointer.take().await.unwrap();
    assert_eq!((quiet.read, quiet.manifest), (0, first.manifest.clone()));
    place.write("f7", "!");
    let changed = checkpointer.take().await.unwrap();
    assert_eq!(changed.read, 1);
    assert_ne!(changed.manifest, first.manifest);
    let again = place.checkpointer();
    again.resume(changed.manifest.clone()).await;
    let resumed = again.take().await.unwrap();
    assert_eq!(resumed.manifest, changed.manifest);
    assert!(resumed.read < 50, "what an earlier process read is not read again: {}", resumed.read);
}

#[tokio::test]
async fn a_change_within_the_clocks_tick_and_of_the_same_size_is_seen() {
    let place = Place::new();
    let checkpointer = place.checkpointer();
    place.write("racy", "aaaa");
    let mut last = checkpointer.take().await.unwrap().manifest;
    for n in 0..50 {
        place.write("racy", format!("{n:04}"));
        let now = checkpointer.take().await.unwrap().manifest;
        assert_ne!(now, last, "change {n}");
        last = now;
    }
    let content = checkpointer.content(last, "racy".into()).await.unwrap();
    assert_eq!(content.as_deref(), Some(&b"0049"[..]));
}

#[cfg(unix)]
#[tokio::test]
async fn modes_and_links_come_back() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let place = Place::new();
    place.write("run.sh", "#!/bin/sh");
    let script = place.workspace.join("run.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("run.sh", place.workspace.join("link")).unwrap();
    let checkpointer = place.checkpointer();
    let before = checkpointer.take().await.unwrap().manifest;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(place.workspace.join("link")).unwrap();
    place.write("link", "a file now");
    let diff = {
        let after = checkpointer.take().await.unwrap().manifest;
        checkpointer.diff(before.clone(), after).await.unwrap()
    };
    assert_eq!(diff, [modified("link"), modified("run.sh")]);
    checkpointer.restore(before, None, RestoreOptions::default()).await.unwrap();
    assert_eq!(script.metadata().unwrap().permissions().mode() & 0o7777, 0o755);
    assert_eq!(fs::read_link(place.workspace.join("link")).unwrap(), Path::new("run.sh"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_never_leads_a_restore_out_of_the_workspace() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "outside").unwrap();
    place.write("dir/file", "inside");
    place.write("gone", "inside");
    let checkpointer = place.checkpointer();
    let before = checkpointer.take().await.unwrap().manifest;
    fs::remove_dir_all(place.workspace.join("dir")).unwrap();
    fs::remove_file(place.workspace.join("gone")).unwrap();
    let after = checkpointer.take().await.unwrap().manifest;
    symlink(outside.path(), place.workspace.join("dir")).unwrap();
    symlink(outside.path().join("file"), place.workspace.join("gone")).unwrap();
    let options = RestoreOptions { changed_since: ChangedSince::Overwrite, ..RestoreOptions::default() };
    let restored = checkpointer.restore(before, Some(after), options).await.unwrap();
    assert_eq!(fs::read_to_string(outside.path().join("file")).unwrap(), "outside");
    assert_eq!(restored.kept.iter().map(|kept| kept.path.as_str()).collect::<Vec<_>>(), ["dir/file"]);
    assert_eq!(place.read("gone"), "inside", "the link itself was replaced, not what it names");
    assert!(!place.workspace.join("gone").is_symlink());
    // Reading does not go through links either.
    let seen = checkpointer.take().await.unwrap();
    assert_eq!(checkpointer.content(seen.manifest, "dir/file".into()).await.unwrap(), None);
}

#[tokio::test]
async fn a_long_chain_of_changes_reads_back_whole() {
    let place = Place::new();
    for n in 0..20 {
        place.write(&format!("f{n}"), "0");
    }
    let checkpointer = place.checkpointer();
    let first = checkpointer.take().await.unwrap().manifest;
    let mut last = first.clone();
    for n in 1..100 {
        place.write(&format!("f{}", n % 20), n.to_string());
        if n % 10 == 0 {
            let _ = fs::remove_file(place.workspace.join("f3"));
        }
        last = checkpointer.take().await.unwrap().manifest;
    }
    let fresh = place.checkpointer();
    let diff = fresh.diff(first.clone(), last.clone()).await.unwrap();
    assert_eq!(diff.len(), 20);
    fresh.restore(first, Some(last), RestoreOptions::default()).await.unwrap();
    assert!((0..20).all(|n| place.read(&format!("f{n}")) == "0"));
}

#[tokio::test]
async fn checkpoints_are_listed_by_thread_and_found_by_workspace() {
    let place = Place::new();
    let data = tempfile::tempdir().unwrap();
    let (store, id) = with_thread(data.path()).await;
    place.write("a", "1");
    let checkpointer = place.checkpointer();
    let mut kept = Vec::new();
    for moment in [Moment::TurnStart, Moment::TurnEnd] {
        let taken = checkpointer.take().await.unwrap();
        let record = taken.record(id, Some(TurnId::new()), moment, &place.workspace, None);
        store.save_checkpoint(record.clone()).await.unwrap();
        kept.push(record);
        place.write("a", "2");
    }
    assert_eq!(store.checkpoints(id).await.unwrap(), kept);
    assert_eq!(store.checkpoint(kept[0].id).await.unwrap().as_ref(), Some(&kept[0]));
    assert_eq!(store.last_checkpoint(place.workspace.clone()).await.unwrap().as_ref(), Some(&kept[1]));
    assert_eq!(store.last_checkpoint("/elsewhere".into()).await.unwrap(), None);
    store.delete_thread(id).await.unwrap();
    assert_eq!(store.checkpoint(kept[0].id).await.unwrap(), None);
}

#[tokio::test]
async fn the_old_content_of_an_ignored_file_can_be_kept_by_hand() {
    let place = Place::new();
    place.write(".env", "A=1");
    let checkpointer = place.checkpointer();
    let hash = checkpointer.keep_file(".env").await.unwrap().unwrap();
    assert_eq!(place.blobs.load(&hash).unwrap().as_deref(), Some(&b"A=1"[..]));
    assert_eq!(checkpointer.keep_file("nothing").await.unwrap(), None);
}
