//! The search itself.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::{Position, Range};
use hanzo_sandbox::paths::{FileKind, Workspace};
use ignore::types::{Types, TypesBuilder};

use super::share::Shared;
use super::walk::{self, Scope, Walk};
use crate::contract::{Cancelled, place};

/// A compiled pattern is no larger; beyond it is a bomb.
const MAX_PATTERN_BYTES: usize = 10 << 20;
/// A shown line is cut to this many characters.
const MAX_LINE: usize = 400;

/// What to search for, and where.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a search, as ripgrep has them")]
pub struct Query {
    /// The pattern.
    pub pattern: String,
    /// The pattern is plain text.
    pub fixed: bool,
    /// Upper and lower case.
    pub case: CaseRule,
    /// Matches whole words only.
    pub word: bool,
    /// A match may span lines.
    pub multiline: bool,
    /// The file or directory; relative to the workspace.
    pub path: PathBuf,
    /// Only files that one of these matches, and none of those with `!` in front.
    pub globs: Vec<String>,
    /// Only files of these types (`rust`, `py`).
    pub types: Vec<String>,
    /// Lines around a match.
    pub context: usize,
    /// Hidden and ignored files as well.
    pub everything: bool,
}

/// Upper and lower case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CaseRule {
    /// They differ.
    #[default]
    Sensitive,
    /// They are the same.
    Insensitive,
}

/// Where a page ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Matches.
    pub matches: usize,
    /// Bytes of text.
    pub bytes: usize,
}

/// A page of matches.
#[derive(Debug, Default)]
pub struct Page {
    /// The files with their matches, in path order.
    pub files: Vec<Found>,
    /// Where the next page begins: behind this many matches of the file with this key.
    pub next: Option<(Vec<u8>, usize)>,
    /// How many files were searched.
    pub searched: usize,
}

/// A file with matches.
#[derive(Debug)]
pub struct Found {
    /// Where it really is.
    pub real: PathBuf,
    /// Its matches, in order.
    pub matches: Vec<MatchLine>,
    key: Vec<u8>,
}

/// A match with the line or lines it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchLine {
    /// Where it is.
    pub range: Range,
    /// The lines, without the last break; long ones are cut.
    pub text: String,
    /// The lines before it.
    pub before: Vec<String>,
    /// The lines after it.
    pub after: Vec<String>,
}

impl MatchLine {
    fn size(&self) -> usize {
        let around = self.before.iter().chain(&self.after).map(|line| line.len() + 8).sum::<usize>();
        self.text.len() + around + 16
    }
}

/// Searches and returns the page that begins behind `after`.
pub fn search(
    workspace: &Workspace,
    query: &Query,
    limits: Limits,
    after: Option<(Vec<u8>, usize)>,
    cancelled: &Cancelled,
) -> Result<Page, ToolError> {
    let matcher = matcher(query)?;
    let filter = Filter::new(query)?;
    let metadata = workspace.stat(&query.path).map_err(|error| place::failure(&error))?;
    if metadata.kind != FileKind::Directory {
        let file = workspace.open_read(&query.path).map_err(|error| place::failure(&error))?;
        let mut worker = Worker::new(query, &matcher, limits.matches.saturating_add(1));
        let skip = after.map_or(0, |(_, skip)| skip);
        let matches = worker.search(&file, skip);
        let mut collector = Collector::new(limits);
        let found = Found { real: metadata.location, matches, key: Vec::new() };
        let _ = collector.take(found, skip);
        collector.page.searched = 1;
        return Ok(collector.page);
    }
    let shared = Shared::default();
    let stop = AtomicBool::new(false);
    let (last_key, skip) = after.unzip();
    let skip = skip.unwrap_or(0);
    // The file the last page ended in is looked at again; `after` is exclusive, so it begins just before.
    let walk = Walk {
        start: query.path.clone(),
        depth: None,
        scope: if query.everything { Scope::All } else { Scope::Visible },
        after: last_key.as_ref().map(|key| just_before(key)),
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(1, 16);
    let mut collector = Collector::new(limits);
    let walked = std::thread::scope(|scope| {
        for _ in 0..threads {
            let last_key = last_key.as_ref();
            let (shared, matcher, stop) = (&shared, &matcher, &stop);
            scope.spawn(move || {
                let mut worker = Worker::new(query, matcher, limits.matches.saturating_add(1));
                while let Some((index, batch)) = shared.next_batch() {
                    let searched = batch.len();
                    let mut results = Vec::new();
                    for found in batch {
                        let skip = if last_key.is_some_and(|key| *key == key_of(&found)) { skip } else { 0 };
                        if stop.load(Ordering::Relaxed) || cancelled.is_set() {
                            break;
                        }
                        // Unreadable files are passed over, as ripgrep does.
                        let Ok(file) = workspace.open_read_in(&found.dir, &found.name) else { continue };
                        let matches = worker.search(&file, skip);
                        if !matches.is_empty() {
                            let key = key_of(&found);
                            results.push((Found { real: found.real(), matches, key }, skip));
                        }
                    }
                    shared.finished(index, searched, results);
                }
            });
        }
        let (shared, stop, filter, walk) = (&shared, &stop, &filter, &walk);
        let walker = scope.spawn(move || {
            let mut batch = Vec::new();
            let result = walk.run(workspace, cancelled, &mut |found| {
                if stop.load(Ordering::Relaxed) || cancelled.is_set() {
                    return ControlFlow::Break(());
                }
                if found.kind == FileKind::File && filter.wants(&found) {
                    batch.push(found);
                    if batch.len() >= shared.batch_size() && !shared.hand_out(std::mem::take(&mut batch)) {
                        return ControlFlow::Break(());
                    }
                }
                ControlFlow::Continue(())
            });
            if !batch.is_empty() {
                shared.hand_out(batch);
            }
            shared.end_of_walk();
            result
        });
        'page: while let Some(results) = shared.next_results() {
            for (found, skip) in results {
                if collector.take(found, skip).is_break() || cancelled.is_set() {
                    stop.store(true, Ordering::Relaxed);
                    shared.abandon();
                    break 'page;
                }
            }
        }
        collector.page.searched = shared.searched();
        walker.join().unwrap_or(Ok(()))
    });
    walked.map_err(|error| place::failure(&error))?;
    cancelled.check()?;
    Ok(collector.page)
}

fn key_of(found: &walk::Found) -> Vec<u8> {
    walk::order_key(&found.relative, found.kind)
}

/// The greatest key before `key` that no file has.
fn just_before(key: &[u8]) -> Vec<u8> {
    let mut before = key.to_vec();
    if let Some(last) = before.last_mut() {
        *last = last.saturating_sub(1);
        before.push(0xFF);
    }
    before
}

fn matcher(query: &Query) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .case_insensitive(query.case == CaseRule::Insensitive)
        .word(query.word)
        .fixed_strings(query.fixed)
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_BYTES);
    if query.multiline {
        builder.dot_matches_new_line(false);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&query.pattern).map_err(|fault| {
        let hint = if query.fixed {
            "search without line breaks, or with `multiline`"
        } else {
            "for plain text set `fixed` to true"
        };
        ToolError::new(ErrorCode::InvalidArguments, format!("`pattern` cannot be used: {fault}; {hint}"))
            .with_details(serde_json::json!({"field": "pattern"}))
    })
}

/// Which files are searched.
struct Filter {
    wanted: Option<GlobSet>,
    unwanted: Option<GlobSet>,
    types: Option<Types>,
}

impl Filter {
    fn new(query: &Query) -> Result<Self, ToolError> {
        let set = |patterns: Vec<&str>| -> Result<Option<GlobSet>, ToolError> {
            if patterns.is_empty() { Ok(None) } else { glob_set(&patterns).map(Some) }
        };
        let (no, yes): (Vec<&str>, Vec<&str>) =
            query.globs.iter().map(String::as_str).partition(|glob| glob.starts_with('!'));
        let unwanted = set(no.iter().map(|glob| &glob[1..]).collect())?;
        let types = if query.types.is_empty() {
            None
        } else {
            let mut builder = TypesBuilder::new();
            builder.add_defaults();
            for name in &query.types {
                builder.select(name);
            }
            Some(builder.build().map_err(|fault| {
                ToolError::new(
                    ErrorCode::InvalidArguments,
                    format!("`type` takes ripgrep's names, such as `rust`, `py`, `js`: {fault}"),
                )
            })?)
        };
        Ok(Self { wanted: set(yes)?, unwanted, types })
    }

    fn wants(&self, found: &walk::Found) -> bool {
        let path = &found.relative;
        self.wanted.as_ref().is_none_or(|set| set.is_match(path))
            && self.unwanted.as_ref().is_none_or(|set| !set.is_match(path))
            && self.types.as_ref().is_none_or(|types| types.matched(path, false).is_whitelist())
    }
}

/// Globs as a set. One without a slash is about names at any depth, as in an ignore file.
pub(crate) fn glob_set(patterns: &[&str]) -> Result<GlobSet, ToolError> {
    let invalid = |fault: globset::Error| {
        ToolError::new(ErrorCode::InvalidArguments, format!("a glob cannot be used: {fault}"))
    };
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        let anchored = pattern.trim_start_matches("./").trim_start_matches('/');
        let text = if anchored.contains('/') { anchored.to_owned() } else { format!("**/{anchored}") };
        let glob = GlobBuilder::new(&text).literal_separator(true).build().map_err(invalid)?;
        builder.add(glob);
    }
    builder.build().map_err(invalid)
}

/// Puts finished files together into a page.
struct Collector {
    limits: Limits,
    page: Page,
    matches: usize,
    bytes: usize,
}

impl Collector {
    fn new(limits: Limits) -> Self {
        Self { limits, page: Page::default(), matches: 0, bytes: 0 }
    }

    /// Adds a file of which `skip` matches belong to earlier pages; breaks when the page is full.
    fn take(&mut self, mut found: Found, skip: usize) -> ControlFlow<()> {
        let mut kept = 0;
        for line in &found.matches {
            let full = self.matches >= self.limits.matches
                || (self.matches > 0 && self.bytes + line.size() > self.limits.bytes);
            if full {
                break;
            }
            self.matches += 1;
            self.bytes += line.size();
            kept += 1;
        }
        if kept < found.matches.len() {
            self.page.next = Some((found.key.clone(), skip + kept));
            found.matches.truncate(kept);
            if kept > 0 {
                self.page.files.push(found);
            }
            return ControlFlow::Break(());
        }
        if kept > 0 {
            self.page.files.push(found);
        }
        ControlFlow::Continue(())
    }
}

/// Searches one file after the other with the same buffers.
struct Worker {
    /// Its own: a shared one makes the threads take turns at its scratch memory.
    matcher: RegexMatcher,
    searcher: Searcher,
    most: usize,
}

impl Worker {
    fn new(query: &Query, matcher: &RegexMatcher, most: usize) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .multi_line(query.multiline)
            .before_context(query.context)
            .after_context(query.context)
            .binary_detection(BinaryDetection::quit(0))
            .build();
        Self { matcher: matcher.clone(), searcher, most }
    }

    /// The matches of a file behind the first `skip`.
    fn search(&mut self, file: &std::fs::File, skip: usize) -> Vec<MatchLine> {
        let mut sink = Lines {
            matcher: &self.matcher,
            most: self.most.saturating_add(skip),
            matches: Vec::new(),
            before: Vec::new(),
            binary: false,
        };
        // A file that cannot be read to its end counts with what was read of it.
        let _ = self.searcher.search_file(&self.matcher, file, &mut sink);
        if sink.binary {
            return Vec::new();
        }
        if skip > 0 {
            sink.matches.drain(..skip.min(sink.matches.len()));
        }
        sink.matches
    }
}

struct Lines<'a> {
    matcher: &'a RegexMatcher,
    most: usize,
    matches: Vec<MatchLine>,
    before: Vec<String>,
    binary: bool,
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let first = found.line_number().unwrap_or(1).saturating_sub(1);
        let bytes = found.bytes();
        let (start, end) = match self.matcher.find(bytes) {
            Ok(Some(found)) => (found.start(), found.end()),
            _ => (0, bytes.len()),
        };
        let range = Range { start: position(bytes, start, first), end: position(bytes, end, first) };
        let text = shown(bytes, start);
        let before = std::mem::take(&mut self.before);
        self.matches.push(MatchLine { range, text, before, after: Vec::new() });
        Ok(self.matches.len() < self.most)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let line = shown(context.bytes(), 0);
        match (context.kind(), self.matches.last_mut()) {
            (SinkContextKind::After, Some(last)) => last.after.push(line),
            _ => self.before.push(line),
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.binary = true;
        Ok(false)
    }
}

fn position(bytes: &[u8], at: usize, first_line: u64) -> Position {
    let before = &bytes[..at.min(bytes.len())];
    let breaks = before.split(|byte| *byte == b'\n').skip(1).count() as u64;
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let col = String::from_utf8_lossy(&before[line_start..]).chars().count();
    Position {
        line: u32::try_from(first_line + breaks).unwrap_or(u32::MAX),
        col: u32::try_from(col).unwrap_or(u32::MAX),
    }
}

/// A line to show: without its break, and if it is long only the part around `at`.
fn shown(bytes: &[u8], at: usize) -> String {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if bytes.len() <= MAX_LINE {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let from = at.saturating_sub(MAX_LINE / 4).min(bytes.len() - MAX_LINE);
    let part = String::from_utf8_lossy(&bytes[from..from + MAX_LINE]).into_owned();
    let head = if from > 0 { "…" } else { "" };
    let tail = if from + MAX_LINE < bytes.len() { "…" } else { "" };
    format!("{head}{}{tail}", part.trim_matches('\u{FFFD}'))
}
