//! What understands source, and which of those that could is asked.
//!
//! A language server knows most, a grammar knows the file, patterns know the shape of a line. [`Backends`] asks them in that
//! order. There is no language server yet: it will be one more [`Backend`] in front.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::heuristic::Heuristic;
use super::language::Language;
use super::source::Source;
use super::symbol::FileSymbols;
use crate::contract::Cancelled;

/// What a backend can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The symbols of a file.
    Outline,
    /// Where a name is used in a file, and what is at a place.
    Occurrences,
    /// What is wrong with a file.
    Diagnostics,
    /// Patterns over the tree of a file.
    Query,
}

/// When to stop looking at a file. Deep nesting and endless lines cost a parser far more than their bytes.
///
/// What counts is the time of this thread on a processor: on a busy machine a file is understood as well as on an idle one.
#[derive(Debug)]
pub struct Limits {
    time: Duration,
    began: Duration,
    cancelled: Cancelled,
    asked: Cell<u32>,
}

impl Limits {
    /// Stops after `time` of work on this thread, or when the call is dropped.
    pub fn new(time: Duration, cancelled: &Cancelled) -> Self {
        Self { time, began: time_of_thread(), cancelled: cancelled.clone(), asked: Cell::new(0) }
    }

    /// Stops after the time a file of that size may take: far more than any but a hostile one needs.
    pub(crate) fn for_file(source: &Source, cancelled: &Cancelled) -> Self {
        const FIRST: Duration = Duration::from_secs(1);
        const PER_MEGABYTE: Duration = Duration::from_millis(500);
        let megabytes = u32::try_from(source.bytes.len() >> 20).unwrap_or(u32::MAX);
        Self::new(FIRST + PER_MEGABYTE * megabytes, cancelled)
    }

    /// Breaks when it is time to stop.
    pub fn check(&self) -> ControlFlow<()> {
        /// The clock is asked once in so many times: it costs a call of the system.
        const SELDOM: u32 = 16;
        if self.cancelled.is_set() {
            return ControlFlow::Break(());
        }
        let asked = self.asked.get();
        self.asked.set(asked.wrapping_add(1));
        if asked.is_multiple_of(SELDOM) && time_of_thread().saturating_sub(self.began) >= self.time {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

fn time_of_thread() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

/// A use of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrence {
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// What it does there.
    pub role: OccurrenceRole,
}

/// What a name does where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OccurrenceRole {
    /// It is given its meaning.
    Definition,
    /// It is used.
    Use,
}

/// A name at a place, and how far its meaning reaches when that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameAt {
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Where a local name is bound: the binding and the stretch it holds in.
    pub local: Option<LocalBinding>,
}

/// Where a local name is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalBinding {
    /// Where the binding name begins, in bytes.
    pub at: usize,
    /// Where the function begins that it is local to.
    pub from: usize,
    /// Where that ends.
    pub to: usize,
}

/// Something wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// What it is.
    pub message: String,
}

/// A backend gave up: the file would take longer than it is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GaveUp;

/// What understands source. All methods run on threads that may block.
pub trait Backend: Send + Sync {
    /// Its name, as `meta.backend` says it.
    fn name(&self) -> &'static str;

    /// Whether it can do that for files in `language`.
    fn can(&self, operation: Operation, language: Language) -> bool;

    /// The symbols of a file.
    fn outline(&self, source: &Source, language: Language, limits: &Limits) -> Result<FileSymbols, GaveUp>;

    /// Where `name` is used in a file, comments and strings left out as far as it can tell.
    fn occurrences(
        &self,
        source: &Source,
        language: Language,
        name: &[u8],
        limits: &Limits,
    ) -> Result<Vec<Occurrence>, GaveUp>;

    /// The name at a place.
    fn name_at(
        &self,
        source: &Source,
        language: Language,
        at: usize,
        limits: &Limits,
    ) -> Result<Option<NameAt>, GaveUp>;

    /// What is wrong with a file, at most `most` faults.
    fn diagnostics(
        &self,
        source: &Source,
        language: Language,
        most: usize,
        limits: &Limits,
    ) -> Result<Vec<Fault>, GaveUp>;
}

/// All there are, the most knowing first.
#[derive(Clone)]
pub struct Backends(Vec<Arc<dyn Backend>>);

impl std::fmt::Debug for Backends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|backend| backend.name())).finish()
    }
}

impl Default for Backends {
    fn default() -> Self {
        Self(vec![
            #[cfg(feature = "grammars")]
            Arc::new(super::treesitter::TreeSitter),
            Arc::new(Heuristic),
        ])
    }
}

impl Backends {
    /// Those that can do `operation` for `language`, in the order to ask them.
    pub fn for_language(
        &self,
        operation: Operation,
        language: Language,
    ) -> impl Iterator<Item = &Arc<dyn Backend>> {
        self.0.iter().filter(move |backend| backend.can(operation, language))
    }

    /// The answer of the first that does not give up, and its name.
    pub(crate) fn first<T>(
        &self,
        operation: Operation,
        language: Language,
        ask: impl Fn(&dyn Backend) -> Result<T, GaveUp>,
    ) -> Option<(T, &'static str)> {
        self.for_language(operation, language)
            .find_map(|backend| ask(backend.as_ref()).ok().map(|answer| (answer, backend.name())))
    }

    /// The symbols of a file, and who found them.
    pub(crate) fn outline(&self, source: &Source, cancelled: &Cancelled) -> (FileSymbols, &'static str) {
        let Some(language) = source.language else { return (FileSymbols::default(), "none") };
        self.first(Operation::Outline, language, |backend| {
            backend.outline(source, language, &Limits::for_file(source, cancelled))
        })
        .unwrap_or((FileSymbols::default(), "none"))
    }
}
