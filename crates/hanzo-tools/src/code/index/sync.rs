//! A walk over the tree that brings the index up to date: one thread looks at names and times, the others read and parse what
//! changed.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hanzo_sandbox::paths::{FileKind, Workspace};

use super::super::language::Language;
use super::super::source::{Source, Stamp};
use super::{FileRecord, Index};
use crate::contract::Cancelled;
use crate::search::walk::{Found, Scope, Walk};

/// Files handed out and not yet read; each may hold a directory open.
const QUEUE: usize = 128;
/// Source held in memory at once by all workers. A tree is about ten times its text, so this bounds a build to some 200 MB in
/// the worst case; one larger file is parsed alone.
const BYTES_AT_ONCE: u64 = 16 << 20;
/// Scripts without an ending are small; larger files without one are data.
const MAX_UNNAMED: u64 = 256 << 10;
/// An index that takes longer is written in between, so that an end of the process costs little.
const CHECKPOINT: Duration = Duration::from_secs(10);

struct Job {
    found: Found,
    relative: String,
    known: Option<FileRecord>,
    stamp: Stamp,
    language: Option<Language>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    jobs: std::collections::VecDeque<Job>,
    bytes: u64,
    is_over: bool,
}

impl Queue {
    fn lock(&self) -> std::sync::MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_out(&self, job: Job) {
        let mut state = self.lock();
        while state.jobs.len() >= QUEUE {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.jobs.push_back(job);
        drop(state);
        self.changed.notify_all();
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// The next job, when there is memory for it.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            let size = state.jobs.front().map(|job| job.stamp.size);
            match size {
                Some(size) if state.bytes == 0 || state.bytes + size <= BYTES_AT_ONCE => {
                    let job = state.jobs.pop_front();
                    state.bytes += size;
                    drop(state);
                    self.changed.notify_all();
                    return job;
                }
                None if state.is_over => return None,
                _ => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn finished(&self, size: u64) {
        self.lock().bytes -= size;
        self.changed.notify_all();
    }
}

impl Index {
    /// Goes over the whole tree. How many files changed.
    pub(super) fn walk(&self, workspace: &Workspace, cancelled: &Cancelled) -> usize {
        let changes = AtomicUsize::new(0);
        let queue = Queue::default();
        let mut seen: HashSet<String> = HashSet::with_capacity(self.table().file_count());
        let checkpoint = Mutex::new(Instant::now());
        let workers = std::thread::available_parallelism().map_or(2, usize::from).clamp(1, 16);
        let mut is_whole = false;
        std::thread::scope(|scope| {
            let mut started = 0;
            let worker = || {
                while let Some(job) = queue.next() {
                    let size = job.stamp.size;
                    if !cancelled.is_set() && self.work(workspace, &job, cancelled) {
                        changes.fetch_add(1, Ordering::Relaxed);
                        self.save_between(&checkpoint);
                    }
                    queue.finished(size);
                }
            };
            let walk = Walk { start: PathBuf::from("."), depth: None, scope: Scope::Visible, after: None };
            let walked = walk.run(workspace, cancelled, &mut |found| {
                if cancelled.is_set() {
                    return ControlFlow::Break(());
                }
                if let Some(job) = self.job(workspace, found, &mut seen) {
                    // Most walks find nothing to do, and then no threads are started.
                    if started < workers {
                        started += 1;
                        scope.spawn(worker);
                    }
                    queue.hand_out(job);
                }
                ControlFlow::Continue(())
            });
            is_whole = walked.is_ok() && !cancelled.is_set();
            queue.end();
        });
        if is_whole {
            let gone: Vec<_> = self
                .table()
                .paths()
                .map(|(path, _)| path.clone())
                .filter(|path| !seen.contains(&**path))
                .collect();
            if !gone.is_empty() {
                let mut table = self.table_mut();
                for path in &gone {
                    table.remove(path);
                }
                changes.fetch_add(gone.len(), Ordering::Relaxed);
            }
        }
        changes.into_inner()
    }

    /// What there is to do for something found; `None` when it is as it was, or no source.
    fn job(&self, workspace: &Workspace, found: Found, seen: &mut HashSet<String>) -> Option<Job> {
        if found.kind != FileKind::File {
            return None;
        }
        let language = Language::of_path(Path::new(&found.name));
        let has_ending = found.name.as_encoded_bytes().contains(&b'.');
        if language.is_none() && has_ending {
            return None;
        }
        let relative = found.relative.to_str()?.to_owned();
        let data = workspace.stat_in(&found.dir, &found.name).ok()?;
        if language.is_none() && (data.len > MAX_UNNAMED || data.mode & 0o111 == 0) {
            return None;
        }
        let stamp = Stamp::new(data.len, data.modified_ns, data.identity.1);
        let known = self.table().record(&relative).cloned();
        seen.insert(relative.clone());
        if known.as_ref().is_some_and(|known| known.stamp == stamp && !known.uncertain) {
            return None;
        }
        Some(Job { found, relative, known, stamp, language })
    }

    fn work(&self, workspace: &Workspace, job: &Job, cancelled: &Cancelled) -> bool {
        let source = Source::open_in(workspace, &job.found.dir, &job.found.name, job.language);
        self.take(&job.relative, job.known.as_ref(), job.stamp, source, cancelled)
    }

    fn save_between(&self, checkpoint: &Mutex<Instant>) {
        let Ok(mut last) = checkpoint.try_lock() else { return };
        if last.elapsed() >= CHECKPOINT {
            self.save();
            *last = Instant::now();
        }
    }
}
