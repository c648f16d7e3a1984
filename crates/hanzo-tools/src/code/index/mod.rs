//! The index of a workspace's symbols: built in the background, kept on disk, brought up to date before every answer.
//!
//! What an answer may rely on: files the thread itself wrote are up to date; files an answer shows are looked at again before
//! they are shown; everything else is as it was at the last walk over the tree, which a small tree gets before every answer and
//! a large one beside it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{
    Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};
use std::time::{Duration, Instant};

use hanzo_protocol::primitives::ContentHash;
use hanzo_sandbox::paths::Workspace;

use super::backend::Backends;
use super::language::Language;
use super::source::{NotSource, Source, Stamp};
use crate::contract::Cancelled;
use crate::host::Host;
use crate::search::walk::is_visible;

mod disk;
mod order;
mod pairs;
mod rank;
mod sync;
mod table;

pub(crate) use rank::{SymbolQuery, is_under, is_within, split};
pub(crate) use table::{FileRecord, Hit, Table};

/// How long the first answer waits for the first walk. A small tree is done by then.
const FIRST_WAIT: Duration = Duration::from_millis(1500);
/// As that, when there is an index from last time.
const LOADED_WAIT: Duration = Duration::from_millis(300);
/// A tree whose last walk was quicker is walked before every answer.
const QUICK_WALK: Duration = Duration::from_millis(20);
/// How long an answer waits for such a walk.
const QUICK_WAIT: Duration = Duration::from_millis(100);
/// Answers that follow one another are not each worth a walk.
const WALK_INTERVAL: Duration = Duration::from_millis(200);
/// How long "there is no such thing" waits for the walk that may find it.
const NOTHING_WAIT: Duration = Duration::from_secs(1);
/// A file changed less than this before it was read may have changed again at the same time.
const CLOCK_STEP: Duration = Duration::from_millis(20);
/// A large index is written no more often.
const SAVE_INTERVAL: Duration = Duration::from_secs(20);
/// An index with fewer symbols is written after every change.
const SMALL: usize = 50_000;

/// The index of a workspace, as the tools of a thread hold it. When the last is gone, work in the background ends.
#[derive(Debug)]
pub(crate) struct IndexHandle {
    index: Arc<Index>,
    cancelled: Cancelled,
}

impl Drop for IndexHandle {
    fn drop(&mut self) {
        self.cancelled.set();
        if self.index.progress().unsaved > 0 {
            let index = Arc::clone(&self.index);
            // Nobody waits for it; what is not written is found again next time.
            let _ = std::thread::Builder::new().name("code-index-save".into()).spawn(move || index.save());
        }
    }
}

#[derive(Debug)]
struct Index {
    file: PathBuf,
    table: RwLock<Table>,
    progress: Mutex<Progress>,
    /// Rung when a walk has ended.
    walked: Condvar,
    backends: Backends,
}

#[derive(Debug, Default)]
struct Progress {
    is_walking: bool,
    /// Walks that went over the whole tree.
    walks: u64,
    last_end: Option<Instant>,
    last_took: Duration,
    was_loaded: bool,
    unsaved: usize,
    last_save: Option<Instant>,
}

/// Whether the index knows the whole tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// It does.
    Whole,
    /// It is still being built.
    Partial,
}

/// What an answer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    Usual,
    /// Something was not found.
    Nothing,
}

impl IndexHandle {
    /// The index of the host's workspace: the one already open in this process, or the one on disk, or an empty one.
    pub(crate) fn open(host: &Host) -> Arc<Self> {
        static OPEN: LazyLock<Mutex<HashMap<PathBuf, Weak<IndexHandle>>>> = LazyLock::new(Mutex::default);

        let digest = ContentHash::of(host.workspace.path().as_os_str().as_encoded_bytes());
        let name = &digest.as_str()["sha256:".len()..][..32];
        let file = host.options.data_dir.join("code").join(name).with_extension("index");
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, handle| handle.strong_count() > 0);
        if let Some(handle) = open.get(&file).and_then(Weak::upgrade) {
            return handle;
        }
        let loaded = disk::load(&file);
        let was_loaded = loaded.is_some();
        let index = Index {
            file: file.clone(),
            table: RwLock::new(loaded.unwrap_or_default()),
            progress: Mutex::new(Progress { was_loaded, ..Progress::default() }),
            walked: Condvar::new(),
            backends: Backends::default(),
        };
        let handle = Arc::new(Self { index: Arc::new(index), cancelled: Cancelled::default() });
        open.insert(file, Arc::downgrade(&handle));
        handle
    }

    /// The table, to be searched.
    pub(crate) fn table(&self) -> RwLockReadGuard<'_, Table> {
        self.index.put_in_order();
        self.index.table()
    }

    pub(crate) fn backends(&self) -> &Backends {
        &self.index.backends
    }

    /// Begins a walk unless one is under way or there was one.
    pub(crate) fn begin(&self, workspace: &Arc<Workspace>) {
        let mut progress = self.index.progress();
        if !progress.is_walking && progress.walks == 0 {
            progress.is_walking = true;
            drop(progress);
            self.start_walk(workspace);
        }
    }

    /// Brings the index up to date as far as an answer can wait for it.
    pub(crate) fn refresh(&self, workspace: &Arc<Workspace>, patience: Patience) -> Coverage {
        let mut progress = self.index.progress();
        // Walks of a large tree beside every answer would take its time from the answers.
        let interval = WALK_INTERVAL.max(progress.last_took * 10);
        let is_due =
            progress.last_end.is_none_or(|end| end.elapsed() >= interval) || patience == Patience::Nothing;
        if !progress.is_walking && is_due {
            progress.is_walking = true;
            drop(progress);
            self.start_walk(workspace);
            progress = self.index.progress();
        }
        let wait = match (patience, progress.walks, progress.was_loaded) {
            (Patience::Nothing, 1.., _) => NOTHING_WAIT,
            (_, 0, true) => LOADED_WAIT,
            (_, 0, false) => FIRST_WAIT,
            _ if progress.last_took <= QUICK_WALK => QUICK_WAIT,
            _ => Duration::ZERO,
        };
        let (progress, _) = self
            .index
            .walked
            .wait_timeout_while(progress, wait, |progress| progress.is_walking)
            .unwrap_or_else(PoisonError::into_inner);
        if progress.walks > 0 { Coverage::Whole } else { Coverage::Partial }
    }

    fn start_walk(&self, workspace: &Arc<Workspace>) {
        let (index, workspace, cancelled) =
            (Arc::clone(&self.index), Arc::clone(workspace), self.cancelled.clone());
        let started = std::thread::Builder::new().name("code-index".into()).spawn(move || {
            // Whatever happens in the walk, nobody may wait for it forever.
            let ended = WalkEnded(&index);
            let began = Instant::now();
            let changes = index.walk(&workspace, &cancelled);
            if cancelled.is_set() {
                return;
            }
            index.put_in_order();
            let mut progress = index.progress();
            progress.walks += 1;
            progress.last_took = began.elapsed();
            progress.unsaved += changes;
            drop(progress);
            // Those who wait are answered before the file is written.
            drop(ended);
            index.save_when_due();
        });
        if started.is_err() {
            drop(WalkEnded(&self.index));
        }
    }

    /// Looks at one file again, if it is not as it was. `path` is where it really is. Whether it was in the index and changed.
    pub(crate) fn update(&self, workspace: &Workspace, path: &Path) -> bool {
        self.index.update(workspace, path, &self.cancelled)
    }
}

struct WalkEnded<'a>(&'a Index);

impl Drop for WalkEnded<'_> {
    fn drop(&mut self) {
        let mut progress = self.0.progress();
        progress.is_walking = false;
        progress.last_end = Some(Instant::now());
        drop(progress);
        self.0.walked.notify_all();
    }
}

impl Index {
    fn table(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn table_mut(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the names in order again if too many are not. Others can read the table meanwhile.
    fn put_in_order(&self) {
        let table = self.table();
        if table.is_behind() {
            let ordered = table.ordered();
            drop(table);
            self.table_mut().set_order(ordered);
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn save(&self) {
        // What cannot be written is built again next time; there is nobody to tell.
        if disk::save(&self.table(), &self.file).is_ok() {
            let mut progress = self.progress();
            progress.unsaved = 0;
            progress.last_save = Some(Instant::now());
        }
    }

    fn save_when_due(&self) {
        let symbols = self.table().symbol_count();
        let progress = self.progress();
        let is_due = progress.last_save.is_none_or(|last| symbols < SMALL || last.elapsed() >= SAVE_INTERVAL);
        let is_changed = progress.unsaved > 0;
        drop(progress);
        if is_due && is_changed {
            self.save();
        }
    }

    fn update(&self, workspace: &Workspace, path: &Path, cancelled: &Cancelled) -> bool {
        let Some(relative) = relative(workspace, path) else { return false };
        let known = self.table().record(&relative).cloned();
        let Ok(found) = workspace.stat(path) else {
            let removed = known.is_some() && self.table_mut().remove(&relative);
            self.progress().unsaved += usize::from(removed);
            return removed;
        };
        let stamp = Stamp::new(found.len, found.modified_ns, found.identity.1);
        if known.as_ref().is_some_and(|known| known.stamp == stamp && !known.uncertain) {
            return false;
        }
        if known.is_none() && (Language::of_path(path).is_none() || !is_visible(workspace, path)) {
            return false;
        }
        let source = match workspace.open_read(path) {
            Ok(file) => Source::read(&file, Language::of_path(path)),
            Err(_) => Err(NotSource::Unreadable),
        };
        let changed = self.take(&relative, known.as_ref(), stamp, source, cancelled);
        self.progress().unsaved += usize::from(changed);
        changed
    }

    /// Puts what was read of a file into the table. Whether its symbols are new.
    fn take(
        &self,
        relative: &str,
        known: Option<&FileRecord>,
        stamp: Stamp,
        source: Result<Source, NotSource>,
        cancelled: &Cancelled,
    ) -> bool {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let source = match source {
            Ok(source) => source,
            Err(NotSource::Unreadable) => return known.is_some() && self.table_mut().remove(relative),
            // Remembered without symbols, so that it is not read again each time.
            Err(NotSource::Binary | NotSource::TooLarge) => {
                let record =
                    FileRecord { stamp, hash: 0, language: None, by_grammar: false, uncertain: false };
                self.table_mut().insert(relative, record, &super::symbol::FileSymbols::default());
                return true;
            }
        };
        let step = i64::try_from(CLOCK_STEP.as_nanos()).unwrap_or(i64::MAX);
        let mut record = FileRecord {
            stamp: source.stamp,
            hash: source.hash,
            language: source.language,
            by_grammar: false,
            uncertain: now.saturating_sub(source.stamp.modified_ns) < step,
        };
        if let Some(known) =
            known.filter(|known| known.hash == source.hash && known.language == source.language)
        {
            record.by_grammar = known.by_grammar;
            self.table_mut().set_record(relative, record);
            return false;
        }
        let (symbols, backend) = self.backends.outline(&source, cancelled);
        if cancelled.is_set() {
            return false;
        }
        record.by_grammar = backend == "tree-sitter";
        self.table_mut().insert(relative, record, &symbols);
        true
    }
}

/// A path of the workspace as the index writes it; `None` outside, and for names that are no text.
pub(crate) fn relative(workspace: &Workspace, real: &Path) -> Option<String> {
    let inside = real.strip_prefix(workspace.path()).ok()?;
    inside.to_str().map(str::to_owned)
}
