//! `code`: what is defined where, and where it is used.
//!
//! * [`backend`]: what understands source; language servers will join there.
//! * `treesitter` and `heuristic`: the two there are.
//! * `index`: the symbols of the workspace, in memory and on disk.
//! * `actions`: what callers can ask.

mod actions;
pub mod backend;
mod heuristic;
mod index;
pub mod language;
mod source;
pub mod symbol;
#[cfg(feature = "grammars")]
mod treesitter;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::contract::{ToolBuilder, UnifiedTool};
use crate::host::Host;
use index::{Coverage, IndexHandle, Patience};

/// The tool, to be given a host.
pub fn tool() -> ToolBuilder {
    let shared = Arc::new(Shared::default());
    UnifiedTool::builder("code", "Code by meaning. Lines and columns from 0.")
        .action(actions::search_symbol::SearchSymbol(Arc::clone(&shared)))
        .action(actions::definition::Definition(Arc::clone(&shared)))
        .action(actions::references::References(Arc::clone(&shared)))
        .action(actions::outline::Outline(Arc::clone(&shared)))
        .action(actions::query::QueryTree(Arc::clone(&shared)))
        .action(actions::diagnostics::Diagnostics(Arc::clone(&shared)))
        .action(actions::search::Search(shared))
}

/// Begins to index the host's workspace in the background, so that the first question need not wait. The index is let go of
/// when the returned value is dropped and no tool uses it.
pub fn prepare(host: &Host) -> Prepared {
    let handle = IndexHandle::open(host);
    handle.begin(&host.workspace);
    Prepared(handle)
}

/// An index being built.
#[derive(Debug)]
pub struct Prepared(#[expect(dead_code, reason = "held so that the work goes on")] Arc<IndexHandle>);

/// What the actions of one thread share.
#[derive(Debug, Default)]
struct Shared {
    index: OnceLock<Arc<IndexHandle>>,
    /// How much of the thread's ledger the index knows.
    known_changes: AtomicU64,
}

impl Shared {
    fn index(&self, host: &Host) -> &Arc<IndexHandle> {
        self.index.get_or_init(|| IndexHandle::open(host))
    }

    /// The index, as up to date as an answer can wait for. May block.
    fn fresh(&self, host: &Host, patience: Patience) -> (&Arc<IndexHandle>, Coverage) {
        let index = self.index(host);
        let (count, changed) = host.ledger.changed_since(self.known_changes.load(Ordering::Acquire));
        for path in changed {
            index.update(&host.workspace, &path);
        }
        self.known_changes.store(count, Ordering::Release);
        let coverage = index.refresh(&host.workspace, patience);
        (index, coverage)
    }
}
