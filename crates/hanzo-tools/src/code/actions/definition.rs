//! `code.definition`, and how a caller says which symbol is meant.

use std::path::PathBuf;
use std::sync::Arc;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::primitives::Position;
use hanzo_protocol::tool::{Effect, ToolCaller};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::Shared;
use super::super::backend::{Limits, LocalBinding, Operation};
use super::super::index::{Coverage, Hit, Table, is_within, split};
use super::super::language::Language;
use super::super::source::Source;
use super::super::symbol::{SymbolKind, SymbolName};
use super::outline::no_language;
use super::scan::found_place;
use super::search_symbol::SymbolsOutput;
use super::{
    OwnedHit, URI_ALIASES, ask_index, backend_of, id_path, invalid, page_size, side_of, with_position,
};
use crate::contract::{Action, Answer, Call, Cancelled, Target, place};
use crate::host::Host;

/// Finds where something is defined.
pub(in super::super) struct Definition(pub(in super::super) Arc<Shared>);

/// The arguments of `code.definition`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct DefinitionInput {
    /// File.
    uri: Option<String>,
    /// Of a name in the file.
    position: Option<Position>,
    /// Instead of uri and position.
    symbol_id: Option<String>,
    /// Most results.
    limit: Option<u32>,
}

impl Action for Definition {
    const NAME: &'static str = "definition";
    const SUMMARY: &'static str = "of the name there";
    const EXAMPLE: &'static str = r#"{"uri":"src/main.rs","position":{"line":3,"col":8}}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = URI_ALIASES;
    const QUIET: &'static [&'static str] = &["uri", "position", "symbol_id"];
    const HIDDEN: &'static [&'static str] = &["limit"];
    type Input = DefinitionInput;
    type Output = SymbolsOutput;

    fn prepare(arguments: Map<String, Value>) -> Map<String, Value> {
        with_position(arguments)
    }

    fn effect(&self, _: &DefinitionInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &DefinitionInput) -> Vec<Target> {
        targets(input.uri.as_deref(), input.symbol_id.as_deref())
    }

    async fn run(&self, call: &Call<'_>, input: DefinitionInput) -> Result<Answer<SymbolsOutput>, ToolError> {
        let limit = page_size(input.limit);
        let shared = Arc::clone(&self.0);
        let caller = call.context.caller;
        let (output, backend, taint) = call
            .blocking(move |host, cancelled| {
                let meant = Meant::of(
                    host,
                    &shared,
                    input.uri.as_deref(),
                    input.position,
                    input.symbol_id.as_deref(),
                    caller,
                    cancelled,
                )?;
                define(host, &shared, meant, limit, cancelled)
            })
            .await?;
        Ok(Answer::new(output).by(backend).tainted(taint))
    }
}

pub(super) fn targets(uri: Option<&str>, id: Option<&str>) -> Vec<Target> {
    let path = id.and_then(|id| SymbolName::parse(id).path);
    match (uri, path) {
        (Some(uri), _) => vec![Target::read(uri)],
        (None, Some(path)) => vec![Target::read(path)],
        (None, None) => vec![Target::read(".")],
    }
}

/// What a caller means.
pub(super) enum Meant {
    Id(SymbolName),
    Name(Box<NameInFile>),
}

/// A name in a file.
pub(super) struct NameInFile {
    pub(super) real: PathBuf,
    pub(super) path: String,
    pub(super) source: Source,
    pub(super) language: Language,
    pub(super) name: String,
    /// What stands before it: `Parser` of `Parser::new`.
    pub(super) qualifier: Option<String>,
    pub(super) local: Option<LocalBinding>,
    pub(super) backend: &'static str,
    pub(super) taint: Option<Taint>,
}

impl Meant {
    pub(super) fn of(
        host: &Host,
        shared: &Shared,
        uri: Option<&str>,
        position: Option<Position>,
        id: Option<&str>,
        caller: ToolCaller,
        cancelled: &Cancelled,
    ) -> Result<Self, ToolError> {
        if let Some(id) = id {
            return Ok(Self::Id(SymbolName::parse(id)));
        }
        let (Some(uri), Some(position)) = (uri, position) else {
            return Err(invalid("give `uri` and `position` of a name, or a `symbol_id`"));
        };
        let (real, source) = Source::open(&host.workspace, &place::parse(uri)?)?;
        let taint = side_of(host, &real, caller)?;
        let language = source.language.ok_or_else(|| no_language(uri))?;
        let at = source.offset(position).ok_or_else(|| {
            invalid(format!("line {} is behind the end of `{uri}`; lines count from 0", position.line))
        })?;
        let backends = shared.index(host).backends();
        let found = backends.first(Operation::Occurrences, language, |backend| {
            backend.name_at(&source, language, at, &Limits::for_file(&source, cancelled))
        });
        cancelled.check()?;
        let (Some(found), backend) = found.unwrap_or((None, "none")) else {
            return Err(ToolError::new(
                ErrorCode::NotFound,
                format!(
                    "there is no name at line {}, column {} of `{uri}`; the line is `{}`",
                    position.line,
                    position.col,
                    source.snippet(at)
                ),
            ));
        };
        let name = String::from_utf8_lossy(source.text(found.start, found.end)).into_owned();
        let qualifier = qualifier(&source, found.start);
        let path = id_path(host, &real);
        Ok(Self::Name(Box::new(NameInFile {
            real,
            path,
            source,
            language,
            name,
            qualifier,
            local: found.local,
            backend,
            taint,
        })))
    }
}

/// What stands before `::`, `.` or `->` in front of a name.
fn qualifier(source: &Source, start: usize) -> Option<String> {
    let before = source.text(start.saturating_sub(200), start);
    let before = [b"::".as_slice(), b".", b"->"].iter().find_map(|mark| before.strip_suffix(*mark))?;
    let word = before
        .iter()
        .rposition(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))
        .map_or(0, |at| at + 1);
    let word = std::str::from_utf8(&before[word..]).ok().filter(|word| !word.is_empty())?;
    Some(word.to_owned())
}

/// The symbols an id means, the exact one first.
pub(super) fn by_id(table: &Table, wanted: &SymbolName) -> Vec<OwnedHit> {
    let (scope, name) = match wanted.path {
        // A written-out id is taken literally: names may have dots in them.
        Some(_) => (String::new(), wanted.qualified.as_str()),
        None => split(&wanted.qualified),
    };
    let Some(path) = &wanted.path else {
        let mut hits: Vec<Hit<'_>> =
            table.named(name).into_iter().filter(|hit| is_within(hit.symbol.scope, &scope)).collect();
        hits.sort_by_key(|hit| (hit.symbol.kind, hit.path));
        return hits.iter().map(OwnedHit::from).collect();
    };
    let qualified = |hit: &Hit<'_>| match hit.symbol.scope {
        "" => hit.symbol.name == name,
        scope => name.strip_prefix(scope).and_then(|rest| rest.strip_prefix('.')) == Some(hit.symbol.name),
    };
    let same: Vec<Hit<'_>> = table
        .file(path)
        .into_iter()
        .filter(|hit| wanted.kind.is_none_or(|kind| kind == hit.symbol.kind) && qualified(hit))
        .collect();
    let exact = same.iter().find(|hit| hit.ordinal == wanted.ordinal);
    exact.or(same.last()).map(OwnedHit::from).into_iter().collect()
}

pub(super) fn no_such_symbol(wanted: &SymbolName) -> ToolError {
    let place = wanted.path.as_ref().map(|path| format!(" in `{path}`")).unwrap_or_default();
    ToolError::new(
        ErrorCode::NotFound,
        format!(
            "there is no symbol `{}`{place}; it may have been renamed: try `search_symbol`",
            wanted.qualified
        ),
    )
}

type Defined = (SymbolsOutput, &'static str, Option<Taint>);

fn define(
    host: &Arc<Host>,
    shared: &Shared,
    meant: Meant,
    limit: usize,
    cancelled: &Cancelled,
) -> Result<Defined, ToolError> {
    let name = match meant {
        Meant::Id(wanted) => {
            let answered = ask_index(host, shared, |table| (by_id(table, &wanted), false));
            if answered.places.is_empty() {
                return Err(no_such_symbol(&wanted));
            }
            let mut symbols = answered.places;
            symbols.truncate(limit);
            let complete = answered.coverage == Coverage::Whole;
            return Ok((SymbolsOutput { symbols, complete }, backend_of(&answered.hits), None));
        }
        Meant::Name(name) => name,
    };
    if let Some(local) = name.local {
        let (symbols, _) = shared.index(host).backends().outline(&name.source, cancelled);
        let end = local.at + name.name.len();
        let found = found_place(&place::uri(&name.real), &name.path, &name.source, &symbols, (local.at, end));
        return Ok((SymbolsOutput { symbols: vec![found], complete: true }, name.backend, name.taint));
    }
    let answered = ask_index(host, shared, |table| (candidates(table, &name, limit), false));
    let complete = answered.coverage == Coverage::Whole;
    if answered.places.is_empty() {
        let hint = if complete {
            "it may come from a library"
        } else {
            "the index is still being built: ask again in a moment"
        };
        return Err(ToolError::new(
            ErrorCode::NotFound,
            format!("no definition of `{}` was found in the workspace; {hint}", name.name),
        ));
    }
    let backend = backend_of(&answered.hits);
    Ok((SymbolsOutput { symbols: answered.places, complete }, backend, name.taint))
}

/// What puts candidates in order: whether they define, what the name says they are in, how near they are, kind and path.
type Nearness<'a> = (u8, u8, u8, SymbolKind, &'a str);

/// The symbols a name may mean, the likeliest first: what it says it is in, then what is near.
pub(super) fn candidates(table: &Table, name: &NameInFile, limit: usize) -> Vec<OwnedHit> {
    let family = name.language.family();
    let directory = name.path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let is_self = name
        .qualifier
        .as_deref()
        .is_some_and(|word| matches!(word, "self" | "this" | "Self" | "cls" | "super"));
    let mut found: Vec<(Nearness<'_>, OwnedHit)> = table
        .named(&name.name)
        .iter()
        .filter(|hit| hit.language.is_some_and(|language| language.family() == family))
        .map(|hit| {
            let qualified = match &name.qualifier {
                Some(_) if is_self => u8::from(hit.path != name.path || hit.symbol.scope.is_empty()),
                Some(qualifier) => {
                    let module = hit.path.rsplit('/').next().and_then(|file| file.split('.').next());
                    let fits = is_within(hit.symbol.scope, qualifier) || module == Some(qualifier.as_str());
                    u8::from(!fits)
                }
                None => u8::from(!hit.symbol.scope.is_empty()),
            };
            let near = match hit.path {
                path if path == name.path => 0,
                path if path.rsplit_once('/').map_or("", |(directory, _)| directory) == directory => 1,
                _ => 2,
            };
            let real = match hit.symbol.kind {
                SymbolKind::Declaration => 1,
                SymbolKind::Impl => 2,
                _ => 0,
            };
            ((real, qualified, near, hit.symbol.kind, hit.path), OwnedHit::from(hit))
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.at.cmp(&b.1.at)));
    // An implementation block names its type; it is the answer only where the type itself is not to be found.
    if found.first().is_some_and(|(key, _)| key.0 < 2) {
        found.retain(|(key, _)| key.0 < 2);
    }
    found.into_iter().map(|(_, hit)| hit).take(limit).collect()
}
