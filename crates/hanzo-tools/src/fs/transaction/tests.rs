//! Dying in the middle, and what the next process makes of it.

use std::fs;
use std::sync::Arc;

use hanzo_sandbox::SandboxConfig;
use hanzo_testkit::Nothing;

use super::*;
use crate::fs::journal::recover;
use crate::host::ToolOptions;

struct Stage {
    _dir: tempfile::TempDir,
    root: PathBuf,
    host: Host,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("ws");
        fs::create_dir(&root).unwrap();
        for (name, text) in [("a", "old a"), ("b", "old b"), ("gone", "old gone")] {
            fs::write(root.join(name), text).unwrap();
        }
        let workspace = Workspace::open(&root, &SandboxConfig::default()).unwrap();
        let options = ToolOptions::new(dir.path().join("data"));
        let host = Host::new(Arc::new(workspace), Arc::new(Nothing), Arc::new(Nothing), options);
        Self { _dir: dir, root, host }
    }

    fn ops(&self) -> Vec<Op> {
        let path = |name: &str| self.root.join(name);
        let replace = |name: &str| Op::Replace {
            path: path(name),
            old: content(&format!("old {name}")),
            new: content(&format!("new {name}")),
        };
        vec![
            replace("a"),
            Op::Create { path: path("sub/made"), new: content("new made"), mode: NewMode::Plain },
            Op::Delete { path: path("gone"), old: content("old gone") },
            replace("b"),
        ]
    }

    fn run(&self, ops: &[Op], crash: Crash) -> Result<(), ToolError> {
        let cancelled = Cancelled::default();
        let lock = Lock::acquire(&self.host, &cancelled)?;
        let mut ready = Ready::stage(&self.host, &lock, ops, &cancelled)?;
        ready.crash = crash;
        ready.apply()
    }

    /// Every file beneath the workspace with its content.
    fn state(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        let mut rest = vec![self.root.clone()];
        while let Some(directory) = rest.pop() {
            for entry in fs::read_dir(directory).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    rest.push(entry.path());
                } else {
                    let name = entry.path().strip_prefix(&self.root).unwrap().display().to_string();
                    files.push((name, fs::read_to_string(entry.path()).unwrap()));
                }
            }
        }
        files.sort();
        files
    }
}

fn content(text: &str) -> Content {
    Content::new(text.as_bytes().to_vec())
}

fn pairs(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_process_that_dies_while_staging_leaves_nothing() {
    let stage = Stage::new();
    let before = stage.state();
    let one = [Op::Replace { path: stage.root.join("a"), old: content("old a"), new: content("x") }];
    stage.run(&one, Crash::AfterStaging).unwrap_err();
    assert_ne!(stage.state(), before, "the new content lies beside it");
    assert_eq!(recover(&stage.host).unwrap().len(), 1);
    assert_eq!(stage.state(), before);
    assert_eq!(recover(&stage.host).unwrap(), Vec::<String>::new(), "once is enough");
}

#[test]
fn a_process_that_dies_while_applying_is_finished_by_the_next() {
    let after = pairs(&[("a", "new a"), ("b", "new b"), ("sub/made", "new made")]);
    for done in 0..4 {
        let stage = Stage::new();
        stage.run(&stage.ops(), Crash::AfterApplying(done)).unwrap_err();
        let report = recover(&stage.host).unwrap();
        assert!(report[0].contains("finished"), "{report:?}");
        assert_eq!(stage.state(), after, "after {done} of 4");
    }
}

#[test]
fn what_somebody_changed_meanwhile_is_theirs_and_the_edit_is_undone() {
    for done in 0..4 {
        let stage = Stage::new();
        stage.run(&stage.ops(), Crash::AfterApplying(done)).unwrap_err();
        fs::write(stage.root.join("b"), "theirs").unwrap();
        let report = recover(&stage.host).unwrap();
        assert!(report[0].contains("undone"), "{report:?}");
        let wanted = pairs(&[("a", "old a"), ("b", "theirs"), ("gone", "old gone")]);
        assert_eq!(stage.state(), wanted, "after {done} of 4");
        assert!(!stage.root.join("sub").exists(), "directories it made are gone too");
    }
}

#[test]
fn a_file_that_changed_after_it_was_read_stops_all_of_them() {
    for strange in ["a", "b", "gone"] {
        let stage = Stage::new();
        let ops = stage.ops();
        fs::write(stage.root.join(strange), "theirs").unwrap();
        let before = stage.state();
        let error = stage.run(&ops, Crash::Never).unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict, "{error}");
        assert_eq!(stage.state(), before, "{strange}");
    }
    let stage = Stage::new();
    let ops = stage.ops();
    fs::create_dir(stage.root.join("sub")).unwrap();
    fs::write(stage.root.join("sub/made"), "theirs").unwrap();
    let before = stage.state();
    assert_eq!(stage.run(&ops, Crash::Never).unwrap_err().code, ErrorCode::AlreadyExists);
    assert_eq!(stage.state(), before);
}

#[test]
fn every_byte_of_a_large_file_that_came_out_is_looked_at() {
    let stage = Stage::new();
    let path = stage.root.join("a");
    let old = vec![b'x'; 3 * LARGE + 5];
    let with = |at: usize| {
        let mut bytes = old.clone();
        bytes[at] = b'y';
        bytes
    };
    let longer = [old.as_slice(), b"x"].concat();
    let theirs = [with(0), with(LARGE), with(old.len() - 1), old[..LARGE].to_vec(), longer];
    for theirs in theirs {
        fs::write(&path, &theirs).unwrap();
        let one = [Op::Replace { path: path.clone(), old: Content::new(old.clone()), new: content("new") }];
        let error = stage.run(&one, Crash::Never).unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict, "{error}");
        assert!(fs::read(&path).unwrap() == theirs, "what they wrote is there");
    }
    fs::write(&path, &old).unwrap();
    let one = [Op::Replace { path: path.clone(), old: Content::new(old.clone()), new: content("new") }];
    stage.run(&one, Crash::Never).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn a_journal_of_a_living_process_is_left_alone() {
    let stage = Stage::new();
    stage.run(&stage.ops(), Crash::AfterStaging).unwrap_err();
    let before = stage.state();
    let lock = Lock::acquire(&stage.host, &Cancelled::default()).unwrap();
    assert_eq!(recover(&stage.host).unwrap(), Vec::<String>::new());
    assert_eq!(stage.state(), before);
    drop(lock);
    assert_eq!(recover(&stage.host).unwrap().len(), 1);
}

#[test]
fn a_journal_that_makes_no_sense_is_dropped() {
    let stage = Stage::new();
    let before = stage.state();
    let directory = crate::fs::journal::directory(&stage.host);
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("x.json"), b"{torn").unwrap();
    recover(&stage.host).unwrap();
    assert_eq!(stage.state(), before);
    assert!(!directory.join("x.json").exists());
}
