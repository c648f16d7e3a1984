//! The journal of an edit under way, and what is done with one that was left behind.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hanzo_protocol::envelope::ToolError;
use hanzo_protocol::primitives::{ContentHash, FileUri};
use hanzo_sandbox::paths::{Overwrite, Staged, Workspace};
use serde::{Deserialize, Serialize};

use super::transaction::{Lock, TEMPORARY_PREFIX, data_dir_failed};
use crate::contract::place;
use crate::host::Host;

/// How far an edit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Phase {
    /// New content is being written beside its targets; no target has changed, or the only one has.
    Staging,
    /// All new content is on disk; targets are being exchanged.
    Applying,
}

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OpKind {
    Replace,
    Create,
    Delete,
}

/// One file of an edit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct JournalOp {
    pub(super) kind: OpKind,
    pub(super) path: FileUri,
    /// Where the new content waits, and later the old.
    pub(super) temporary: FileUri,
    pub(super) old: Option<ContentHash>,
    pub(super) new: Option<ContentHash>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    phase: Phase,
    directories: Vec<FileUri>,
    made: Vec<FileUri>,
    ops: Vec<JournalOp>,
}

/// A journal on disk.
#[derive(Debug)]
pub(super) struct Journal {
    file: PathBuf,
    record: Record,
}

/// Where journals and the lock of a workspace are.
pub(super) fn directory(host: &Host) -> PathBuf {
    let name = ContentHash::of(place::uri(host.workspace.path()).as_str().as_bytes());
    host.options.data_dir.join("edits").join(&name.as_str()["sha256:".len()..][..24])
}

pub(super) fn make_private(directory: &Path) -> std::io::Result<()> {
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(directory) {
        Err(fault) if fault.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        answer => answer,
    }
}

impl Journal {
    /// Notes where temporary files are going to be. Not flushed: it is for sweeping up after a killed process, and after a
    /// power failure nothing but an unused temporary file can be left.
    pub(super) fn begin(
        host: &Host,
        directories: &BTreeSet<PathBuf>,
        made: &[PathBuf],
    ) -> Result<Self, ToolError> {
        let uris = |paths: &mut dyn Iterator<Item = &PathBuf>| paths.map(|path| place::uri(path)).collect();
        let record = Record {
            phase: Phase::Staging,
            directories: uris(&mut directories.iter()),
            made: uris(&mut made.iter()),
            ops: Vec::new(),
        };
        let file = directory(host).join(format!("{}.json", hanzo_protocol::ids::TraceId::new()));
        let journal = Self { file, record };
        journal.write(false).map_err(|fault| data_dir_failed(host, &fault))?;
        Ok(journal)
    }

    /// Notes, for good, what is going to happen.
    pub(super) fn advance(
        &mut self,
        host: &Host,
        phase: Phase,
        ops: Vec<JournalOp>,
    ) -> Result<(), ToolError> {
        self.record.phase = phase;
        self.record.ops = ops;
        self.write(true).map_err(|fault| data_dir_failed(host, &fault))
    }

    fn write(&self, flush: bool) -> std::io::Result<()> {
        let text = serde_json::to_vec(&self.record)?;
        let temporary = self.file.with_extension("new");
        let mut file =
            File::options().create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
        file.write_all(&text)?;
        if flush {
            file.sync_all()?;
        }
        fs::rename(&temporary, &self.file)?;
        if flush && let Some(parent) = self.file.parent() {
            File::open(parent)?.sync_all()?;
        }
        Ok(())
    }

    /// Drops the journal: the edit is over.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// Finishes or undoes what a process left that died during an edit. Says in a sentence each what was done. Does nothing while
/// another process edits.
pub fn recover(host: &Host) -> Result<Vec<String>, ToolError> {
    // The usual case costs one look at a directory.
    if !has_journals(host) {
        return Ok(Vec::new());
    }
    match Lock::try_acquire(host)? {
        Some(lock) => recover_locked(host, &lock),
        None => Ok(Vec::new()),
    }
}

fn has_journals(host: &Host) -> bool {
    fs::read_dir(directory(host))
        .is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|entry| is_journal(&entry.path()))))
}

fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

pub(super) fn recover_locked(host: &Host, _lock: &Lock) -> Result<Vec<String>, ToolError> {
    let mut report = Vec::new();
    let entries = match fs::read_dir(directory(host)) {
        Ok(entries) => entries,
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(report),
        Err(fault) => return Err(data_dir_failed(host, &fault)),
    };
    for entry in entries.flatten().filter(|entry| is_journal(&entry.path())) {
        let record =
            fs::read(entry.path()).ok().and_then(|text| serde_json::from_slice::<Record>(&text).ok());
        if let Some(record) = record {
            report.push(finish_or_undo(&host.workspace, &record));
        }
        let _ = fs::remove_file(entry.path());
    }
    Ok(report)
}

/// Where a file of a left edit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Done,
    Pending,
    /// Somebody changed it meanwhile.
    Strange,
}

fn finish_or_undo(workspace: &Workspace, record: &Record) -> String {
    let files = record.ops.len();
    let standings: Vec<Standing> = record.ops.iter().map(|op| standing(workspace, op)).collect();
    let message = if record.phase == Phase::Staging {
        "an edit that had not begun was dropped".to_owned()
    } else if standings.contains(&Standing::Strange) {
        for (op, standing) in record.ops.iter().zip(&standings).rev() {
            if *standing == Standing::Done {
                undo(workspace, op);
            }
        }
        format!("an edit of {files} files was undone: one of them was changed by somebody else meanwhile")
    } else {
        for (op, standing) in record.ops.iter().zip(&standings) {
            if *standing == Standing::Pending {
                finish(workspace, op);
            }
        }
        format!("an edit of {files} files was finished")
    };
    record.directories.iter().for_each(|directory| sweep(workspace, &directory.to_path()));
    if record.phase == Phase::Staging || standings.contains(&Standing::Strange) {
        record.made.iter().rev().for_each(|made| drop(workspace.remove_dir(&made.to_path())));
    }
    message
}

fn standing(workspace: &Workspace, op: &JournalOp) -> Standing {
    let at = |uri: &FileUri| content_hash(workspace, &uri.to_path());
    let (target, temporary) = (at(&op.path), at(&op.temporary));
    if target == op.new && (op.new.is_some() || workspace.stat_link(&op.path.to_path()).is_err()) {
        return Standing::Done;
    }
    let waiting = match op.kind {
        OpKind::Delete => true,
        OpKind::Replace | OpKind::Create => temporary.is_some() && temporary == op.new,
    };
    if target == op.old && waiting { Standing::Pending } else { Standing::Strange }
}

fn content_hash(workspace: &Workspace, path: &Path) -> Option<ContentHash> {
    use std::io::Read as _;

    let mut content = Vec::new();
    workspace.open_read(path).ok()?.read_to_end(&mut content).ok()?;
    Some(ContentHash::of(&content))
}

fn finish(workspace: &Workspace, op: &JournalOp) {
    let (path, temporary) = (op.path.to_path(), op.temporary.to_path());
    // What fails here stays as it was before the edit, like any file nobody may write.
    let _ = match op.kind {
        OpKind::Replace => workspace.rename(&temporary, &path, Overwrite::Replace),
        OpKind::Create => workspace.rename(&temporary, &path, Overwrite::Refuse),
        OpKind::Delete => workspace.remove_file(&path),
    };
}

fn undo(workspace: &Workspace, op: &JournalOp) {
    let (path, temporary) = (op.path.to_path(), op.temporary.to_path());
    let holds_old = |place: &Path| op.old.is_some() && content_hash(workspace, place) == op.old;
    let on_its_way = Staged::on_its_way(&temporary);
    let temporary = if holds_old(&temporary) { temporary } else { on_its_way };
    let has_old = holds_old(&temporary);
    let _ = match op.kind {
        OpKind::Replace if has_old => workspace.rename(&temporary, &path, Overwrite::Replace),
        OpKind::Delete if has_old => workspace.rename(&temporary, &path, Overwrite::Refuse),
        OpKind::Create => workspace.remove_file(&path),
        OpKind::Replace | OpKind::Delete => Ok(()),
    };
}

/// Removes what a dead process left under temporary names. The lock is held, so nobody else of ours has any.
fn sweep(workspace: &Workspace, directory: &Path) {
    let Ok(entries) = workspace.list_dir(directory) else { return };
    let names: Vec<_> = entries.flatten().map(|entry| entry.name).collect();
    for name in names {
        if name.as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
            let _ = workspace.remove_file(&directory.join(name));
        }
    }
}
