//! `code.search_symbol`.

use std::sync::Arc;

use hanzo_protocol::envelope::ToolError;
use hanzo_protocol::primitives::PageCursor;
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Shared;
use super::super::index::{Coverage, SymbolQuery};
use super::super::symbol::SymbolKind;
use super::{FoundPlace, OwnedHit, ask_index, backend_of, invalid, page_size, scope_path};
use crate::contract::{Action, Answer, Call, Target};

/// Finds symbols by name.
pub(in super::super) struct SearchSymbol(pub(in super::super) Arc<Shared>);

/// The arguments of `code.search_symbol`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct SearchSymbolInput {
    /// Name or Outer.name; for query, code with $HOLES or a tree-sitter query.
    query: String,
    /// Only symbols of this kind.
    kind: Option<SymbolKind>,
    /// Only in here.
    path: Option<String>,
    /// Most results.
    limit: Option<u32>,
    /// From the previous page.
    cursor: Option<PageCursor>,
}

/// Symbols found.
#[derive(Debug, Serialize, JsonSchema)]
pub(in super::super) struct SymbolsOutput {
    /// The symbols, the likeliest first.
    pub(super) symbols: Vec<FoundPlace>,
    /// Whether the whole workspace is indexed; else there may be more, ask again in a moment.
    pub(super) complete: bool,
}

impl Action for SearchSymbol {
    const NAME: &'static str = "search_symbol";
    const SUMMARY: &'static str = "by name";
    const EXAMPLE: &'static str = r#"{"query":"Parser.parse","kind":"method"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("uri", "path"),
        ("scope", "path"),
        ("directory", "path"),
        ("name", "query"),
        ("symbol", "query"),
        ("pattern", "query"),
    ];
    const HIDDEN: &'static [&'static str] = &["kind", "limit", "cursor"];
    type Input = SearchSymbolInput;
    type Output = SymbolsOutput;

    fn effect(&self, _: &SearchSymbolInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &SearchSymbolInput) -> Vec<Target> {
        vec![Target::read(input.path.as_deref().unwrap_or("."))]
    }

    async fn run(
        &self,
        call: &Call<'_>,
        input: SearchSymbolInput,
    ) -> Result<Answer<SymbolsOutput>, ToolError> {
        if input.query.trim().is_empty() {
            return Err(invalid("`query` is empty; give a name or a part of one"));
        }
        let skip = call.position::<usize>(input.cursor.as_ref())?.unwrap_or(0);
        let limit = page_size(input.limit);
        let shared = Arc::clone(&self.0);
        let (output, backend, more) = call
            .blocking(move |host, _| {
                let under = scope_path(host, input.path.as_deref())?;
                let query = SymbolQuery { text: input.query, kind: input.kind, under };
                let answered = ask_index(host, &shared, |table| {
                    let (hits, more) = table.search(&query, skip, limit);
                    (hits.iter().map(OwnedHit::from).collect(), more)
                });
                let backend = backend_of(&answered.hits);
                let complete = answered.coverage == Coverage::Whole;
                Ok((SymbolsOutput { symbols: answered.places, complete }, backend, answered.more))
            })
            .await?;
        let answer = Answer::new(output).by(backend);
        Ok(if more { answer.paged(call.more(&(skip + limit))) } else { answer })
    }
}
