//! `code.references`.

use std::sync::Arc;

use hanzo_protocol::envelope::ToolError;
use hanzo_protocol::primitives::{PageCursor, Position};
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::Shared;
use super::super::backend::{Backends, Limits, Operation};
use super::super::index::{Coverage, Patience};
use super::super::language::{Family, Language};
use super::super::source::Source;
use super::definition::{Meant, by_id, no_such_symbol, targets};
use super::scan::{From, Scan, Span, found_place};
use super::{DEFAULT_BACKEND, FoundPlace, URI_ALIASES, ask_index, page_size, with_position};
use crate::contract::{Action, Answer, Call, Cancelled, Target, place};

/// Finds where something is used.
pub(in super::super) struct References(pub(in super::super) Arc<Shared>);

/// The arguments of `code.references`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct ReferencesInput {
    /// File.
    uri: Option<String>,
    /// Of a name in the file.
    position: Option<Position>,
    /// Instead of uri and position.
    symbol_id: Option<String>,
    /// Most results.
    limit: Option<u32>,
    /// From the previous page.
    cursor: Option<PageCursor>,
}

/// The answer of `code.references`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in super::super) struct ReferencesOutput {
    /// How sure they are: `scope` when the name is local, `name` when everything of that name is listed.
    matched_by: &'static str,
    /// The uses, the definition among them, in path order.
    references: Vec<FoundPlace>,
    /// Whether the whole workspace was looked at.
    complete: bool,
}

impl Action for References {
    const NAME: &'static str = "references";
    const SUMMARY: &'static str = "uses of it";
    const EXAMPLE: &'static str = r#"{"symbol_id":"sym:src/lib.rs#function:parse"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = URI_ALIASES;
    const HIDDEN: &'static [&'static str] = &["limit", "cursor"];
    type Input = ReferencesInput;
    type Output = ReferencesOutput;

    fn prepare(arguments: Map<String, Value>) -> Map<String, Value> {
        with_position(arguments)
    }

    fn effect(&self, _: &ReferencesInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &ReferencesInput) -> Vec<Target> {
        targets(input.uri.as_deref(), input.symbol_id.as_deref())
    }

    async fn run(
        &self,
        call: &Call<'_>,
        input: ReferencesInput,
    ) -> Result<Answer<ReferencesOutput>, ToolError> {
        let limit = page_size(input.limit);
        let from = call.position::<From>(input.cursor.as_ref())?;
        let shared = Arc::clone(&self.0);
        let caller = call.context.caller;
        let (output, backend, taint, next) = call
            .blocking(move |host, cancelled| {
                let position = input.position;
                let meant = Meant::of(
                    host,
                    &shared,
                    input.uri.as_deref(),
                    position,
                    input.symbol_id.as_deref(),
                    caller,
                    cancelled,
                )?;
                let (name, family, taint) = match meant {
                    Meant::Id(wanted) => {
                        let answered = ask_index(host, &shared, |table| (by_id(table, &wanted), false));
                        let Some(hit) = answered.hits.first() else { return Err(no_such_symbol(&wanted)) };
                        let table = answered.index.table();
                        let language = table.record(&hit.path).and_then(|record| record.language);
                        let Some(language) = language else { return Err(no_such_symbol(&wanted)) };
                        let name = table
                            .file(&hit.path)
                            .into_iter()
                            .find(|found| found.symbol.at as usize == hit.at);
                        let name = name.map(|found| found.symbol.name.to_owned());
                        let Some(name) = name else { return Err(no_such_symbol(&wanted)) };
                        (name, language.family(), None)
                    }
                    Meant::Name(name) => {
                        if let Some(local) = name.local {
                            let backends = shared.index(host).backends();
                            let spans =
                                uses(backends, &name.source, name.language, name.name.as_bytes(), cancelled);
                            let (symbols, _) = backends.outline(&name.source, cancelled);
                            let uri = place::uri(&name.real);
                            let skip = from.as_ref().map_or(0, |(_, skip)| *skip);
                            let mut spans = spans
                                .into_iter()
                                .filter(|(start, _)| (local.from..local.to).contains(start))
                                .skip(skip);
                            let references = spans
                                .by_ref()
                                .take(limit)
                                .map(|span| found_place(&uri, &name.path, &name.source, &symbols, span))
                                .collect();
                            let next = spans.next().map(|_| (name.path.clone(), skip + limit));
                            let output = ReferencesOutput { matched_by: "scope", references, complete: true };
                            return Ok((output, name.backend, name.taint, next));
                        }
                        (name.name, name.language.family(), name.taint)
                    }
                };
                let (index, coverage) = shared.fresh(host, Patience::Usual);
                let wants = |language: Language| language.family() == family;
                let scan = Scan { host, index, wants: &wants, under: "", limit };
                let backends = index.backends();
                let page = scan.run(from.as_ref(), cancelled, &|source, language| {
                    uses(backends, source, language, name.as_bytes(), cancelled)
                })?;
                let complete = coverage == Coverage::Whole;
                let backend = match family {
                    Family::Alone(language) => backends
                        .for_language(Operation::Occurrences, language)
                        .next()
                        .map_or(DEFAULT_BACKEND, |backend| backend.name()),
                    _ => DEFAULT_BACKEND,
                };
                let output = ReferencesOutput { matched_by: "name", references: page.places, complete };
                Ok((output, backend, taint, page.next))
            })
            .await?;
        let answer = Answer::new(output).by(backend).tainted(taint);
        Ok(match next {
            Some(next) => answer.paged(call.more(&next)),
            None => answer,
        })
    }
}

/// Where a name is used in a file.
fn uses(
    backends: &Backends,
    source: &Source,
    language: Language,
    name: &[u8],
    cancelled: &Cancelled,
) -> Vec<Span> {
    if memchr::memmem::find(&source.bytes, name).is_none() {
        return Vec::new();
    }
    let found = backends.first(Operation::Occurrences, language, |backend| {
        backend.occurrences(source, language, name, &Limits::for_file(source, cancelled))
    });
    found
        .map_or_else(Vec::new, |(found, _)| found.into_iter().map(|found| (found.start, found.end)).collect())
}
