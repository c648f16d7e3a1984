//! How files go from the walker to the workers, and results to the collector in the order of the walk.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::engine::Found;
use super::walk;

/// Files that change hands together: waking a thread costs as much as searching a small file.
const BATCH: usize = 16;
/// Batches handed out and not yet searched. Each file may hold a directory open, and a process has 1024 descriptors at least.
const QUEUE: usize = 8;
/// How many batches the search may be ahead of the first one that is not finished.
const WINDOW: usize = 256;
/// What the walker, the workers and the collector share.
#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Rung on every change the others may wait for.
    files: Condvar,
    room: Condvar,
    results: Condvar,
    searched: AtomicUsize,
    /// How many batches there were, for the walker alone.
    batches: AtomicUsize,
}

/// A file with matches, and how many of them belong to earlier pages.
pub(super) type Searched = (Found, usize);

#[derive(Default)]
struct State {
    queue: VecDeque<(usize, Vec<walk::Found>)>,
    handed_out: usize,
    ended: bool,
    abandoned: bool,
    /// Batches finished, by index, that are not the next one.
    finished: BTreeMap<usize, Vec<Searched>>,
    /// The next index to pass on.
    next: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many files were searched so far.
    pub(super) fn searched(&self) -> usize {
        self.searched.load(Ordering::Relaxed)
    }

    /// How many files the next batch has. Small at first: a small tree is for all threads, and a page may need no more.
    pub(super) fn batch_size(&self) -> usize {
        (1 + self.batches.load(Ordering::Relaxed) / 4).min(BATCH)
    }

    /// Gives files to the workers; false when nobody wants more.
    pub(super) fn hand_out(&self, batch: Vec<walk::Found>) -> bool {
        self.batches.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        while (state.queue.len() >= QUEUE || state.handed_out >= state.next + WINDOW) && !state.abandoned {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.abandoned {
            return false;
        }
        let index = state.handed_out;
        state.handed_out += 1;
        state.queue.push_back((index, batch));
        drop(state);
        self.files.notify_one();
        true
    }

    pub(super) fn end_of_walk(&self) {
        self.lock().ended = true;
        self.files.notify_all();
        self.results.notify_all();
    }

    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        state.queue.clear();
        drop(state);
        self.files.notify_all();
        self.room.notify_all();
    }

    pub(super) fn next_batch(&self) -> Option<(usize, Vec<walk::Found>)> {
        let mut state = self.lock();
        loop {
            if state.abandoned {
                return None;
            }
            if let Some(batch) = state.queue.pop_front() {
                let wake = state.queue.len() == QUEUE / 2;
                drop(state);
                if wake {
                    self.room.notify_one();
                }
                return Some(batch);
            }
            if state.ended {
                return None;
            }
            state = self.files.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn finished(&self, index: usize, searched: usize, results: Vec<Searched>) {
        self.searched.fetch_add(searched, Ordering::Relaxed);
        let mut state = self.lock();
        state.finished.insert(index, results);
        // Batches without a match are passed on here, so that the collector wakes only for something.
        let mut wake = false;
        loop {
            let next = state.next;
            match state.finished.get(&next) {
                Some(results) if results.is_empty() => {
                    state.finished.remove(&next);
                    state.next += 1;
                }
                Some(_) => {
                    wake = true;
                    break;
                }
                None => break,
            }
        }
        let over = state.ended && state.next == state.handed_out;
        drop(state);
        self.room.notify_one();
        if wake || over {
            self.results.notify_one();
        }
    }

    /// The results of the next batch that has any, in order; `None` when all are through.
    pub(super) fn next_results(&self) -> Option<Vec<Searched>> {
        let mut state = self.lock();
        loop {
            let next = state.next;
            if let Some(results) = state.finished.remove(&next) {
                state.next += 1;
                // The walker may be waiting for the window to move on, and nobody else is left to wake it.
                self.room.notify_one();
                if !results.is_empty() {
                    return Some(results);
                }
                continue;
            }
            if state.ended && state.next == state.handed_out {
                return None;
            }
            state = self.results.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
