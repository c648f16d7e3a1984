//! `code.outline`.

use std::collections::HashMap;
use std::sync::Arc;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::{PageCursor, Range, SymbolId};
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Shared;
use super::super::source::Source;
use super::super::symbol::{SymbolKind, symbol_id};
use super::{URI_ALIASES, id_path, side_of};
use crate::contract::{Action, Answer, Call, Target, place};

/// Entries of one answer, unless the caller says otherwise.
const DEFAULT_ENTRIES: u32 = 300;
/// More than this are pages.
const MAX_ENTRIES: u32 = 5000;

/// Lists the symbols of a file.
pub(in super::super) struct Outline(pub(in super::super) Arc<Shared>);

/// The arguments of `code.outline`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct OutlineInput {
    /// File.
    uri: String,
    /// Most results.
    limit: Option<u32>,
    /// From the previous page.
    cursor: Option<PageCursor>,
}

/// The answer of `code.outline`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in super::super) struct OutlineOutput {
    /// The language.
    language: &'static str,
    /// The symbols, in the order of the file.
    symbols: Vec<OutlineEntry>,
}

/// A symbol of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(in super::super) struct OutlineEntry {
    /// What it is.
    kind: SymbolKind,
    /// All of it.
    range: Range,
    /// The line its name is in.
    snippet: String,
    /// Its id.
    symbol_id: SymbolId,
}

impl Action for Outline {
    const NAME: &'static str = "outline";
    const SUMMARY: &'static str = "what a file defines";
    const EXAMPLE: &'static str = r#"{"uri":"src/main.rs"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = URI_ALIASES;
    const HIDDEN: &'static [&'static str] = &["limit", "cursor"];
    type Input = OutlineInput;
    type Output = OutlineOutput;

    fn effect(&self, _: &OutlineInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &OutlineInput) -> Vec<Target> {
        vec![Target::read(&input.uri)]
    }

    async fn run(&self, call: &Call<'_>, input: OutlineInput) -> Result<Answer<OutlineOutput>, ToolError> {
        let skip = call.position::<usize>(input.cursor.as_ref())?.unwrap_or(0);
        let limit = input.limit.unwrap_or(DEFAULT_ENTRIES).clamp(1, MAX_ENTRIES) as usize;
        let shared = Arc::clone(&self.0);
        let caller = call.context.caller;
        let (output, backend, taint, more) = call
            .blocking(move |host, cancelled| {
                let (real, source) = Source::open(&host.workspace, &place::parse(&input.uri)?)?;
                let taint = side_of(host, &real, caller)?;
                let language = source.language.ok_or_else(|| no_language(&input.uri))?;
                let (symbols, backend) = shared.index(host).backends().outline(&source, cancelled);
                cancelled.check()?;
                let path = id_path(host, &real);
                let mut seen: HashMap<(SymbolKind, &str, &str), u32> = HashMap::new();
                let mut entries = Vec::new();
                for (at, symbol) in symbols.iter().enumerate() {
                    let ordinal = seen.entry((symbol.kind, symbol.scope, symbol.name)).or_default();
                    *ordinal += 1;
                    if at < skip || entries.len() >= limit {
                        continue;
                    }
                    entries.push(OutlineEntry {
                        kind: symbol.kind,
                        range: source.range(symbol.start as usize, symbol.end as usize),
                        snippet: source.snippet(symbol.at as usize),
                        symbol_id: SymbolId::new(symbol_id(&path, &symbol, *ordinal)),
                    });
                }
                let more = skip + entries.len() < symbols.len();
                Ok((OutlineOutput { language: language.name(), symbols: entries }, backend, taint, more))
            })
            .await?;
        let answer = Answer::new(output).by(backend).tainted(taint);
        Ok(if more { answer.paged(call.more(&(skip + limit))) } else { answer })
    }
}

pub(super) fn no_language(given: &str) -> ToolError {
    ToolError::new(
        ErrorCode::Unsupported,
        format!("`{given}` is in no language this tool knows; `fs` reads and searches any file"),
    )
}
