//! What callers can ask of `code`, and what their answers have in common.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::primitives::{FileUri, Position, Range, SymbolId};
use hanzo_protocol::tool::{Place as Side, ToolCaller};
use hanzo_sandbox::paths::FileKind;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::index::{Coverage, Hit, IndexHandle, relative};
use super::source::Source;
use super::symbol::{SymbolKind, SymbolView, symbol_id};
use crate::contract::place;
use crate::host::Host;

pub(super) mod definition;
pub(super) mod diagnostics;
pub(super) mod modality;
pub(super) mod outline;
pub(super) mod query;
pub(super) mod references;
pub(super) mod scan;
pub(super) mod search;
pub(super) mod search_symbol;

/// Results of one answer, unless the caller says otherwise.
const DEFAULT_RESULTS: u32 = 30;
/// The most a caller can ask for.
const MAX_RESULTS: u32 = 1000;

const URI_ALIASES: &[(&str, &str)] =
    &[("path", "uri"), ("file", "uri"), ("file_path", "uri"), ("symbol", "symbol_id")];

fn page_size(limit: Option<u32>) -> usize {
    limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS) as usize
}

/// Something found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct FoundPlace {
    /// The file.
    pub(super) uri: FileUri,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<SymbolKind>,
    /// Where it is: all of a definition, or a name.
    pub(super) range: Range,
    /// Where the name of a definition stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<Position>,
    /// The line.
    pub(super) snippet: String,
    /// The symbol it is, or the one it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) symbol_id: Option<SymbolId>,
}

/// A symbol of the index, out of its lock.
#[derive(Debug, Clone)]
struct OwnedHit {
    path: String,
    by_grammar: bool,
    /// The hash of the content it was found in.
    content: u64,
    kind: SymbolKind,
    start: usize,
    end: usize,
    at: usize,
    id: String,
}

impl From<&Hit<'_>> for OwnedHit {
    fn from(hit: &Hit<'_>) -> Self {
        Self {
            path: hit.path.to_owned(),
            by_grammar: hit.by_grammar,
            content: hit.content,
            kind: hit.symbol.kind,
            start: hit.symbol.start as usize,
            end: hit.symbol.end as usize,
            at: hit.symbol.at as usize,
            id: symbol_id(hit.path, &hit.symbol, hit.ordinal),
        }
    }
}

/// Which backends found these.
fn backend_of(hits: &[OwnedHit]) -> &'static str {
    let by_grammar = hits.iter().any(|hit| hit.by_grammar);
    let by_pattern = hits.iter().any(|hit| !hit.by_grammar);
    match (by_grammar, by_pattern) {
        (true, true) => "tree-sitter+heuristic",
        (false, true) => "heuristic",
        _ => DEFAULT_BACKEND,
    }
}

/// What answers when nothing says otherwise.
const DEFAULT_BACKEND: &str = if cfg!(feature = "grammars") { "tree-sitter" } else { "heuristic" };

/// Asks the index and makes places of what it answers. A file that has changed since it was indexed is indexed again and the
/// question asked again, so that what is shown is what is there. `ask` may say that there is more.
fn ask_index<'i>(
    host: &Arc<Host>,
    shared: &'i super::Shared,
    ask: impl Fn(&super::index::Table) -> (Vec<OwnedHit>, bool),
) -> Answered<'i> {
    /// A tree in which files keep changing is answered with what could be shown.
    const ATTEMPTS: usize = 4;

    let (index, mut coverage) = shared.fresh(host, super::index::Patience::Usual);
    let (mut hits, mut more) = ask(&index.table());
    if hits.is_empty() {
        coverage = index.refresh(&host.workspace, super::index::Patience::Nothing);
        (hits, more) = ask(&index.table());
    }
    for attempt in 1.. {
        let (places, stale) = places_of(host, index, &hits);
        if stale && attempt < ATTEMPTS {
            (hits, more) = ask(&index.table());
            continue;
        }
        return Answered { index, hits, places, more, coverage };
    }
    unreachable!("the loop ends by its own count")
}

struct Answered<'i> {
    index: &'i Arc<IndexHandle>,
    hits: Vec<OwnedHit>,
    places: Vec<FoundPlace>,
    more: bool,
    coverage: Coverage,
}

/// The places of symbols, and whether a file has changed since they were found. What changed, and what may not be read, is left
/// out.
fn places_of(host: &Host, index: &IndexHandle, hits: &[OwnedHit]) -> (Vec<FoundPlace>, bool) {
    let mut sources: HashMap<&str, Option<Source>> = HashMap::new();
    let mut places = Vec::with_capacity(hits.len());
    let mut stale = false;
    for hit in hits {
        let real = host.workspace.path().join(&hit.path);
        let source = sources.entry(&hit.path).or_insert_with(|| {
            let file = host.workspace.open_read(&real).ok();
            let source = file.and_then(|file| Source::read(&file, None).ok());
            // The content tells: whether it is this thread or another that brings the index up to date, the hit is older.
            let source = source.filter(|source| source.hash == hit.content);
            if source.is_none() {
                stale = true;
                index.update(&host.workspace, &real);
            }
            source
        });
        if let Some(source) = source {
            places.push(FoundPlace {
                uri: place::uri(&real),
                kind: Some(hit.kind),
                range: source.range(hit.start, hit.end),
                at: Some(source.position(hit.at)),
                snippet: source.snippet(hit.at),
                symbol_id: Some(SymbolId::new(hit.id.clone())),
            });
        }
    }
    (places, stale)
}

/// Where a caller may look, and what is said about what comes from there. Remote callers get nothing from outside.
fn side_of(host: &Host, real: &Path, caller: ToolCaller) -> Result<Option<Taint>, ToolError> {
    match (place::place_of(&host.workspace, real), caller) {
        (Side::Inside, _) => Ok(None),
        (Side::Outside, ToolCaller::Local) => Ok(Some(Taint::Outside)),
        (Side::Outside, ToolCaller::Remote) => Err(ToolError::new(
            ErrorCode::Denied,
            format!("`{}` is outside the workspace, which a remote caller may not read", real.display()),
        )),
    }
}

/// The path a symbol id in a file begins with.
fn id_path(host: &Host, real: &Path) -> String {
    relative(&host.workspace, real).unwrap_or_else(|| real.to_string_lossy().into_owned())
}

/// The directory or file a search is limited to, as the index writes it; the whole workspace is empty.
fn scope_path(host: &Host, given: Option<&str>) -> Result<String, ToolError> {
    let Some(given) = given else { return Ok(String::new()) };
    let path = place::parse(given)?;
    let found = host.workspace.stat(&path).map_err(|error| place::failure(&error))?;
    if !matches!(found.kind, FileKind::File | FileKind::Directory) {
        let text = format!("`{given}` is neither a file nor a directory");
        return Err(ToolError::new(ErrorCode::Unsupported, text));
    }
    relative(&host.workspace, &found.location).ok_or_else(|| {
        ToolError::new(
            ErrorCode::Unsupported,
            format!("`{given}` is outside the workspace, and only the workspace is indexed; use `outline` for a single file there"),
        )
    })
}

/// `line` and `col` beside each other are a position as well.
fn with_position(mut arguments: Map<String, Value>) -> Map<String, Value> {
    if arguments.contains_key("line") && !arguments.contains_key("position") {
        let line = arguments.shift_remove("line").unwrap_or_default();
        let col = ["col", "column", "character"].iter().find_map(|name| arguments.shift_remove(*name));
        arguments.insert("position".into(), json!({"line": line, "col": col.unwrap_or(json!(0))}));
    }
    arguments
}

/// The innermost symbol around a place.
fn enclosing<'a>(symbols: &'a super::symbol::FileSymbols, at: usize) -> Option<(SymbolView<'a>, u32)> {
    let mut innermost: Option<SymbolView<'a>> = None;
    for symbol in symbols.iter() {
        if symbol.start as usize <= at
            && at < symbol.end as usize
            && innermost.is_none_or(|best| symbol.end - symbol.start <= best.end - best.start)
        {
            innermost = Some(symbol);
        }
    }
    innermost.map(|symbol| (symbol, ordinal_of(symbols, &symbol)))
}

fn ordinal_of(symbols: &super::symbol::FileSymbols, wanted: &SymbolView<'_>) -> u32 {
    let same = |other: &SymbolView<'_>| {
        other.kind == wanted.kind
            && other.name == wanted.name
            && other.scope == wanted.scope
            && other.at < wanted.at
    };
    u32::try_from(symbols.iter().filter(same).count() + 1).unwrap_or(u32::MAX)
}

fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::InvalidArguments, message)
}
