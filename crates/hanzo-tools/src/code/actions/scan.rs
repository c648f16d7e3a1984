//! Going through the files of some languages in path order, in parallel, until a page is full.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hanzo_protocol::envelope::ToolError;
use hanzo_protocol::primitives::SymbolId;

use super::super::index::{IndexHandle, is_under};
use super::super::language::Language;
use super::super::source::Source;
use super::super::symbol::{FileSymbols, symbol_id};
use super::{FoundPlace, enclosing};
use crate::contract::{Cancelled, place};
use crate::host::Host;

/// A page takes no longer; what is left is behind its cursor.
const PAGE_TIME: Duration = Duration::from_secs(8);
/// Files looked at before asking whether the page is full.
const BATCH: usize = 64;

/// Where a page begins: the file and how many of its matches came before.
pub(super) type From = (String, usize);

/// A page of matches.
#[derive(Debug, Default)]
pub(super) struct ScanPage {
    pub(super) places: Vec<FoundPlace>,
    pub(super) next: Option<From>,
}

/// Which files to look at, and how.
pub(super) struct Scan<'a> {
    pub(super) host: &'a Host,
    pub(super) index: &'a IndexHandle,
    pub(super) wants: &'a (dyn Fn(Language) -> bool + Sync),
    pub(super) under: &'a str,
    pub(super) limit: usize,
}

/// A match in a file, in bytes.
pub(super) type Span = (usize, usize);

impl Scan<'_> {
    /// The page that begins at `from`. `look` gives the matches of a file, in order; a file without any costs a read.
    pub(super) fn run(
        &self,
        from: Option<&From>,
        cancelled: &Cancelled,
        look: &(dyn Fn(&Source, Language) -> Vec<Span> + Sync),
    ) -> Result<ScanPage, ToolError> {
        let began = Instant::now();
        let files = self.files(from);
        let mut page = ScanPage::default();
        for (number, batch) in files.chunks(BATCH).enumerate() {
            cancelled.check()?;
            if began.elapsed() > PAGE_TIME && number > 0 {
                page.next = Some((batch[0].0.clone(), 0));
                return Ok(page);
            }
            for (path, found) in self.batch(batch, from, cancelled, look) {
                let skipped = skipped(from, &path);
                for (at, place) in found.into_iter().enumerate() {
                    if page.places.len() >= self.limit {
                        page.next = Some((path, skipped + at));
                        return Ok(page);
                    }
                    page.places.push(place);
                }
            }
        }
        cancelled.check()?;
        Ok(page)
    }

    fn files(&self, from: Option<&From>) -> Vec<(String, Language)> {
        let table = self.index.table();
        let mut files: Vec<(String, Language)> = table
            .paths()
            .filter_map(|(path, record)| record.language.map(|language| (path, language)))
            .filter(|(path, language)| (self.wants)(*language) && is_under(path, self.under))
            .filter(|(path, _)| from.is_none_or(|(first, _)| &***path >= first.as_str()))
            .map(|(path, language)| (path.to_string(), language))
            .collect();
        files.sort_unstable();
        files
    }

    fn batch(
        &self,
        files: &[(String, Language)],
        from: Option<&From>,
        cancelled: &Cancelled,
        look: &(dyn Fn(&Source, Language) -> Vec<Span> + Sync),
    ) -> BTreeMap<String, Vec<FoundPlace>> {
        let results: Mutex<BTreeMap<String, Vec<FoundPlace>>> = Mutex::default();
        let next = AtomicUsize::new(0);
        let threads =
            std::thread::available_parallelism().map_or(2, usize::from).clamp(1, 8).min(files.len());
        let work = || {
            while let Some((path, language)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                if cancelled.is_set() {
                    return;
                }
                let found = self.file(path, *language, skipped(from, path), cancelled, look);
                if !found.is_empty() {
                    results.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone(), found);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(
        &self,
        path: &str,
        language: Language,
        skip: usize,
        cancelled: &Cancelled,
        look: &(dyn Fn(&Source, Language) -> Vec<Span> + Sync),
    ) -> Vec<FoundPlace> {
        let real: PathBuf = self.host.workspace.path().join(path);
        let Ok(file) = self.host.workspace.open_read(&real) else { return Vec::new() };
        let Ok(source) = Source::read(&file, Some(language)) else { return Vec::new() };
        let spans = look(&source, language);
        if spans.is_empty() {
            return Vec::new();
        }
        let (symbols, _) = self.index.backends().outline(&source, cancelled);
        let uri = place::uri(&real);
        // A file may have a million matches; no more are made places of than show whether the page is full.
        let spans = spans.into_iter().skip(skip).take(self.limit + 1);
        spans.map(|span| found_place(&uri, path, &source, &symbols, span)).collect()
    }
}

/// How many matches of a file came before this page.
fn skipped(from: Option<&From>, path: &str) -> usize {
    from.filter(|(first, _)| first == path).map_or(0, |(_, skip)| *skip)
}

/// A match as callers see it, with the symbol it is in.
pub(super) fn found_place(
    uri: &hanzo_protocol::primitives::FileUri,
    path: &str,
    source: &Source,
    symbols: &FileSymbols,
    (start, end): Span,
) -> FoundPlace {
    FoundPlace {
        uri: uri.clone(),
        kind: None,
        range: source.range(start, end),
        at: None,
        snippet: source.snippet(start),
        symbol_id: enclosing(symbols, start)
            .map(|(symbol, ordinal)| SymbolId::new(symbol_id(path, &symbol, ordinal))),
    }
}
