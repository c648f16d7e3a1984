//! Changing several files as one: all of them or none, also when the process dies in between, and never over somebody else's
//! change.
//!
//! 1. A lock keeps our own processes apart, one file per workspace in the data directory.
//! 2. New content is written beside its target and flushed. A journal (in the data directory as well, so that nothing of it can
//!    end up in a commit) first says in which directories, then, once everything is on disk, what is to become of what.
//! 3. Each file is *exchanged* with its new content in one system call, and what came out is compared with what we had read. A
//!    foreign writer that slipped in between the check and the exchange is seen there; then everything is exchanged back.
//! 4. The directories are flushed, the old files removed, the journal dropped.
//!
//! A journal that is found later belongs to a process that died: [`recover`] finishes it where that is possible for every
//! file and undoes it where it is not.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_sandbox::paths::{Overwrite, PathError, Staged, Workspace, WriteMode};

use super::content::{Content, LARGE};
use super::journal::{Journal, JournalOp, OpKind, Phase};
use crate::contract::{Cancelled, place};
use crate::host::Host;
use crate::patch::NewMode;

/// How the names of files under way begin; the path layer gives them.
pub(super) const TEMPORARY_PREFIX: &str = ".hanzo-tmp-";
/// From this many files on, staging is spread over threads: flushing one waits for the disk, not for us.
const PARALLEL_FROM: usize = 4;
const STAGING_THREADS: usize = 8;

/// One change to one file.
#[derive(Debug)]
pub(crate) enum Op {
    /// A file's content changes.
    Replace { path: PathBuf, old: Content, new: Content },
    /// A file is made; directories above it as well.
    Create { path: PathBuf, new: Content, mode: NewMode },
    /// A file goes.
    Delete { path: PathBuf, old: Content },
}

/// This many large files are held open until nobody waits for them.
const MAX_OPEN: usize = 16;

impl Op {
    pub(super) fn old(&self) -> Option<&Content> {
        match self {
            Self::Replace { old, .. } | Self::Delete { old, .. } => Some(old),
            Self::Create { .. } => None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Replace { path, .. } | Self::Create { path, .. } | Self::Delete { path, .. } => path,
        }
    }
}

/// The right to change files of a workspace, among our own processes and threads.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock.
    pub(crate) fn acquire(host: &Host, cancelled: &Cancelled) -> Result<Self, ToolError> {
        let file = Self::open(host)?;
        let mut pause = Duration::from_micros(200);
        loop {
            match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {
                    cancelled.check()?;
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(20));
                }
                Err(errno) => return Err(data_dir_failed(host, &errno.into())),
            }
        }
    }

    /// The lock, or `None` when somebody has it.
    pub(super) fn try_acquire(host: &Host) -> Result<Option<Self>, ToolError> {
        let file = Self::open(host)?;
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(data_dir_failed(host, &errno.into())),
        }
    }

    fn open(host: &Host) -> Result<File, ToolError> {
        let failed = |fault: std::io::Error| data_dir_failed(host, &fault);
        let directory = super::journal::directory(host);
        super::journal::make_private(&directory).map_err(failed)?;
        File::options().create(true).truncate(false).write(true).open(directory.join("lock")).map_err(failed)
    }
}

pub(super) fn data_dir_failed(host: &Host, fault: &std::io::Error) -> ToolError {
    ToolError::new(
        ErrorCode::Io,
        format!("cannot use the data directory `{}`: {fault}", host.options.data_dir.display()),
    )
}

/// What is done so far of an operation.
enum Applied<'a> {
    Nothing,
    Exchanged,
    Created(&'a Op),
    Trashed { op: &'a Op, trash: PathBuf },
}

/// Where a test makes the process die.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Crash {
    Never,
    AfterStaging,
    AfterApplying(usize),
}

/// Carries out all operations or none.
pub(crate) fn commit(host: &Host, lock: &Lock, ops: &[Op], cancelled: &Cancelled) -> Result<(), ToolError> {
    Ready::stage(host, lock, ops, cancelled)?.apply()
}

/// An edit whose new contents are all on disk, beside what they are going to replace. Dropped, it leaves no trace.
pub(super) struct Ready<'a> {
    host: &'a Host,
    ops: &'a [Op],
    staged: Vec<Option<Staged>>,
    /// The directories that were made for it, outermost first.
    made: Vec<PathBuf>,
    /// Gone when the edit is over, or when it could not be put back: then the journal stays.
    journal: Option<Journal>,
    #[cfg(test)]
    crash: Crash,
}

impl<'a> Ready<'a> {
    pub(super) fn stage(
        host: &'a Host,
        _lock: &Lock,
        ops: &'a [Op],
        cancelled: &Cancelled,
    ) -> Result<Self, ToolError> {
        let workspace = &host.workspace;
        let directories: BTreeSet<PathBuf> =
            ops.iter().filter_map(|op| op.path().parent()).map(Path::to_owned).collect();
        let made = missing_directories(workspace, &directories);
        let journal = Some(Journal::begin(host, &directories, &made)?);
        let mut ready = Self {
            host,
            ops,
            staged: Vec::new(),
            made,
            journal,
            #[cfg(test)]
            crash: Crash::Never,
        };
        ready.staged = stage_all(workspace, ops, cancelled)?;
        Ok(ready)
    }

    /// Puts all of it in place, or none.
    pub(super) fn apply(mut self) -> Result<(), ToolError> {
        let (workspace, ops) = (&self.host.workspace, self.ops);
        let trash: Vec<PathBuf> = ops.iter().map(|op| trash_name(op.path())).collect();
        if ops.len() > 1
            && let Some(journal) = &mut self.journal
        {
            let entries = ops
                .iter()
                .zip(&self.staged)
                .zip(&trash)
                .map(|((op, staged), trash)| entry(op, staged.as_ref(), trash));
            journal.advance(self.host, Phase::Applying, entries.collect())?;
        }
        #[cfg(test)]
        if self.crash == Crash::AfterStaging {
            return Err(self.die());
        }
        let mut applied: Vec<Applied<'_>> = Vec::with_capacity(ops.len());
        let mut failure = None;
        let mut came_out = Vec::new();
        for (index, op) in ops.iter().enumerate() {
            #[cfg(test)]
            if self.crash == Crash::AfterApplying(index) {
                return Err(self.die());
            }
            match apply_one(workspace, op, self.staged[index].as_mut(), &trash[index]) {
                Ok(done) => applied.push(done),
                Err((done, error)) => {
                    applied.push(done);
                    failure = Some(error);
                    break;
                }
            }
        }
        if failure.is_none() {
            match find_interference(workspace, &applied, &self.staged, ops) {
                Ok(large) => came_out = large,
                Err(interference) => failure = Some(interference),
            }
        }
        if let Some(mut error) = failure {
            let undone = undo(workspace, &applied, &self.staged);
            if !undone.is_empty() {
                error.message = format!("{}; could not be put back: {}", error.message, undone.join(", "));
                self.journal = None;
            }
            return Err(error);
        }
        flush(&self.staged, ops);
        for done in &applied {
            if let Applied::Trashed { trash, .. } = done {
                // What is left of it is swept with the journal's directories.
                let _ = workspace.remove_file(trash);
            }
        }
        self.made.clear();
        drop(self);
        if !came_out.is_empty() {
            // Their names are gone; letting go of what was in them takes a while and nobody waits for it. Without a thread it
            // is done here.
            let _ = std::thread::Builder::new().spawn(move || drop(came_out));
        }
        Ok(())
    }

    /// Ends as a process does that is killed.
    #[cfg(test)]
    fn die(mut self) -> ToolError {
        std::mem::take(&mut self.staged).into_iter().flatten().for_each(Staged::leave);
        self.made.clear();
        self.journal = None;
        ToolError::new(ErrorCode::Error, "died")
    }
}

impl Drop for Ready<'_> {
    fn drop(&mut self) {
        // Dropping what is staged removes it; only then can the directories go.
        self.staged.clear();
        for directory in self.made.iter().rev() {
            let _ = self.host.workspace.remove_dir(directory);
        }
        if let Some(journal) = self.journal.take() {
            journal.remove();
        }
    }
}

fn entry(op: &Op, staged: Option<&Staged>, trash: &Path) -> JournalOp {
    let hash = |content: &Content| Some(content.hash().clone());
    let (kind, old, new) = match op {
        Op::Replace { old, new, .. } => (OpKind::Replace, hash(old), hash(new)),
        Op::Create { new, .. } => (OpKind::Create, None, hash(new)),
        Op::Delete { old, .. } => (OpKind::Delete, hash(old), None),
    };
    let temporary = staged.map_or_else(|| trash.to_owned(), Staged::temporary);
    JournalOp { kind, path: place::uri(op.path()), temporary: place::uri(&temporary), old, new }
}

/// The directories above new files that have to be made, outermost first.
fn missing_directories(workspace: &Workspace, directories: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut missing = BTreeSet::new();
    for directory in directories {
        for ancestor in directory.ancestors() {
            if workspace.stat(ancestor).is_ok() || !missing.insert(ancestor.to_owned()) {
                break;
            }
        }
    }
    missing.into_iter().collect()
}

fn stage_all(
    workspace: &Workspace,
    ops: &[Op],
    cancelled: &Cancelled,
) -> Result<Vec<Option<Staged>>, ToolError> {
    for op in ops {
        if let (Op::Create { path, .. }, Some(parent)) = (op, op.path().parent()) {
            let _ = path;
            workspace.mkdir_all(parent).map_err(|error| place::failure(&error))?;
        }
    }
    let stage = |op: &Op| -> Result<Option<Staged>, ToolError> {
        cancelled.check()?;
        match op {
            Op::Replace { path, new, .. } | Op::Create { path, new, .. } => {
                let staged = workspace.stage_pieces(path, &new.pieces());
                staged.map(Some).map_err(|error| place::failure(&error))
            }
            Op::Delete { .. } => Ok(None),
        }
    };
    if ops.len() < PARALLEL_FROM {
        return ops.iter().map(stage).collect();
    }
    let share = ops.len().div_ceil(STAGING_THREADS);
    let parts: Vec<Result<Vec<Option<Staged>>, ToolError>> = std::thread::scope(|scope| {
        let stage = &stage;
        let workers: Vec<_> =
            ops.chunks(share).map(|part| scope.spawn(move || part.iter().map(stage).collect())).collect();
        workers
            .into_iter()
            .map(|worker| {
                let lost = || ToolError::new(ErrorCode::Error, "a thread that writes files failed");
                worker.join().unwrap_or_else(|_| Err(lost()))
            })
            .collect()
    });
    // Every part is taken apart before the first error is returned, so that all of them clean up.
    parts.into_iter().collect::<Result<Vec<_>, _>>().map(|parts| parts.into_iter().flatten().collect())
}

#[expect(clippy::result_large_err, reason = "the failure is rare and made once")]
fn apply_one<'a>(
    workspace: &Workspace,
    op: &'a Op,
    staged: Option<&mut Staged>,
    trash: &Path,
) -> Result<Applied<'a>, (Applied<'a>, ToolError)> {
    let failed = |error: PathError| (Applied::Nothing, place::failure(&error));
    match (op, staged) {
        (Op::Replace { path, .. }, Some(staged)) => {
            staged.exchange().map_err(|error| match error.io_kind() {
                // Where the swap takes several steps, it notices by itself.
                Some(std::io::ErrorKind::ResourceBusy) => (Applied::Nothing, interfered(path)),
                _ => failed(error),
            })?;
            Ok(Applied::Exchanged)
        }
        (Op::Create { path, mode, .. }, Some(staged)) => {
            staged.commit_new().map_err(failed)?;
            if *mode == NewMode::Executable {
                make_executable(workspace, path).map_err(|error| (Applied::Created(op), error))?;
            }
            Ok(Applied::Created(op))
        }
        (Op::Delete { path, .. }, _) => {
            workspace.rename(path, trash, Overwrite::Refuse).map_err(failed)?;
            Ok(Applied::Trashed { op, trash: trash.to_owned() })
        }
        (Op::Replace { path, .. } | Op::Create { path, .. }, None) => {
            let lost = format!("the new content of `{}` was not written", path.display());
            Err((Applied::Nothing, ToolError::new(ErrorCode::Error, lost)))
        }
    }
}

/// Looks whether what came out of every place is what was taken to be there. Large files that came out are returned open.
fn find_interference(
    workspace: &Workspace,
    applied: &[Applied<'_>],
    staged: &[Option<Staged>],
    ops: &[Op],
) -> Result<Vec<File>, ToolError> {
    let mut large = Vec::new();
    for ((done, staged), op) in applied.iter().zip(staged).zip(ops) {
        let out = match (done, staged) {
            (Applied::Exchanged, Some(staged)) => staged.temporary(),
            (Applied::Trashed { trash, .. }, _) => trash.clone(),
            _ => continue,
        };
        let Some(old) = op.old() else { continue };
        let file = holds(workspace, &out, &old.bytes()).ok_or_else(|| interfered(op.path()))?;
        if old.len() >= LARGE && large.len() < MAX_OPEN {
            large.push(file);
        }
    }
    Ok(large)
}

fn interfered(path: &Path) -> ToolError {
    ToolError::new(
        ErrorCode::Conflict,
        format!(
            "another program changed `{}` at the same moment; nothing was changed, read it again",
            path.display()
        ),
    )
    .with_details(serde_json::json!({ "uri": place::uri(path) }))
}

/// The file, if it has exactly this content.
fn holds(workspace: &Workspace, path: &Path, content: &[u8]) -> Option<File> {
    let mut file = workspace.open_read(path).ok()?;
    if file.metadata().is_ok_and(|meta| meta.len() != content.len() as u64) {
        return None;
    }
    let mut buffer = vec![0; content.len().min(64 << 10)];
    for piece in content.chunks(64 << 10) {
        let read = &mut buffer[..piece.len()];
        file.read_exact(read).ok()?;
        if read != piece {
            return None;
        }
    }
    matches!(file.read(&mut [0]), Ok(0)).then_some(file)
}

fn make_executable(workspace: &Workspace, path: &Path) -> Result<(), ToolError> {
    use std::os::unix::fs::PermissionsExt as _;

    let file = workspace.open_write(path, WriteMode::Existing).map_err(|error| place::failure(&error))?;
    let set = || -> std::io::Result<()> {
        let mode = file.metadata()?.permissions().mode();
        // Whoever may read it may run it.
        file.set_permissions(std::fs::Permissions::from_mode(mode | ((mode & 0o444) >> 2)))
    };
    set().map_err(|fault| {
        ToolError::new(ErrorCode::Io, format!("cannot make `{}` executable: {fault}", path.display()))
    })
}

/// Puts everything back, last first; what could not be is returned.
fn undo(workspace: &Workspace, applied: &[Applied<'_>], staged: &[Option<Staged>]) -> Vec<String> {
    let mut left = Vec::new();
    for (done, staged) in applied.iter().zip(staged).rev() {
        let result = match (done, staged) {
            (Applied::Exchanged, Some(staged)) => staged.exchange(),
            (Applied::Created(op), _) => workspace.remove_file(op.path()),
            (Applied::Trashed { op, trash }, _) => workspace.rename(trash, op.path(), Overwrite::Refuse),
            (Applied::Nothing | Applied::Exchanged, _) => Ok(()),
        };
        if let Err(error) = result {
            left.push(error.path().display().to_string());
        }
    }
    left
}

/// Flushes each directory once.
fn flush(staged: &[Option<Staged>], ops: &[Op]) {
    let mut seen = BTreeSet::new();
    for (staged, op) in staged.iter().zip(ops) {
        let is_first = op.path().parent().is_none_or(|parent| seen.insert(parent.to_owned()));
        if let Some(staged) = staged
            && is_first
        {
            // The change has happened; a file system that cannot flush a directory cannot be helped.
            let _ = staged.flush_directory();
        }
    }
}

fn trash_name(path: &Path) -> PathBuf {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};

    let random = RandomState::new().build_hasher().finish();
    path.with_file_name(format!("{TEMPORARY_PREFIX}{random:016x}"))
}

#[cfg(test)]
mod tests;
