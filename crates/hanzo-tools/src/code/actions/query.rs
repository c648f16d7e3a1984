//! `code.query`: patterns over syntax trees.

use std::sync::Arc;

use hanzo_protocol::envelope::ToolError;
use hanzo_protocol::primitives::PageCursor;
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Shared;
use super::super::index::{Coverage, Patience};
use super::super::language::Language;
use super::scan::{From, Scan};
use super::{FoundPlace, invalid, page_size, scope_path};
use crate::contract::{Action, Answer, Call, Target};

/// Runs a query over syntax trees.
pub(in super::super) struct QueryTree(pub(in super::super) Arc<Shared>);

/// The arguments of `code.query`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct QueryInput {
    /// Name or Outer.name; for query, code with $HOLES or a tree-sitter query.
    query: String,
    /// Such as rust.
    language: Option<String>,
    /// Only in here.
    path: Option<String>,
    /// Most results.
    limit: Option<u32>,
    /// From the previous page.
    cursor: Option<PageCursor>,
}

/// The answer of `code.query`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in super::super) struct QueryOutput {
    /// The languages in which the query makes sense, and which were looked at.
    languages: Vec<&'static str>,
    /// What was captured, in path order.
    matches: Vec<FoundPlace>,
    /// Whether the whole workspace was looked at.
    complete: bool,
}

impl Action for QueryTree {
    const NAME: &'static str = "query";
    const SUMMARY: &'static str = "syntax trees";
    const EXAMPLE: &'static str = r#"{"query":"(function_item name: (identifier) @name)","language":"rust"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("uri", "path"),
        ("directory", "path"),
        ("file_path", "path"),
        ("pattern", "query"),
        ("lang", "language"),
    ];
    const HIDDEN: &'static [&'static str] = &["language", "limit", "cursor"];
    type Input = QueryInput;
    type Output = QueryOutput;

    fn effect(&self, _: &QueryInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &QueryInput) -> Vec<Target> {
        vec![Target::read(input.path.as_deref().unwrap_or("."))]
    }

    async fn run(&self, call: &Call<'_>, input: QueryInput) -> Result<Answer<QueryOutput>, ToolError> {
        let limit = page_size(input.limit);
        let from = call.position::<From>(input.cursor.as_ref())?;
        let language = match &input.language {
            None => None,
            Some(name) => Some(Language::named(name).ok_or_else(|| {
                let known: Vec<&str> = Language::ALL.iter().map(|language| language.name()).collect();
                invalid(format!("there is no language `{name}` here; known are {}", known.join(", ")))
            })?),
        };
        let shared = Arc::clone(&self.0);
        let (output, next) = call
            .blocking(move |host, cancelled| {
                let under = scope_path(host, input.path.as_deref())?;
                let language = language.or_else(|| Language::of_path(std::path::Path::new(&under)));
                let trees = Trees::new(&input.query, language)?;
                let (index, coverage) = shared.fresh(host, Patience::Usual);
                let wants = |language: Language| trees.has(language);
                let scan = Scan { host, index, wants: &wants, under: &under, limit };
                let page = scan.run(from.as_ref(), cancelled, &|source, language| {
                    trees.look(source, language, cancelled)
                })?;
                let complete = coverage == Coverage::Whole;
                Ok((QueryOutput { languages: trees.languages(), matches: page.places, complete }, page.next))
            })
            .await?;
        let answer = Answer::new(output).by("tree-sitter");
        Ok(match next {
            Some(next) => answer.paged(call.more(&next)),
            None => answer,
        })
    }
}

pub(super) use trees::Trees;

#[cfg(feature = "grammars")]
mod trees {
    use hanzo_protocol::envelope::{ErrorCode, ToolError};

    use super::super::super::backend::Limits;
    use super::super::super::language::Language;
    use super::super::super::source::Source;
    use super::super::super::treesitter::{AstMatch, AstQuery, Pattern, QueryFault};
    use super::super::invalid;
    use super::super::scan::Span;
    use crate::contract::Cancelled;

    /// More matches in one file than this are not looked for: nobody reads them.
    const MAX_PER_FILE: usize = 2000;

    /// A query or a pattern, in each language in which it makes sense.
    pub(in super::super) struct Trees(Vec<(Language, Tree)>);

    enum Tree {
        Query(AstQuery),
        Pattern(Pattern),
    }

    impl Trees {
        pub(in super::super) fn new(text: &str, only: Option<Language>) -> Result<Self, ToolError> {
            let is_query = text.trim_start().starts_with(['(', '[', ';', '"']);
            let mut found = Vec::new();
            let mut fault = None;
            let all =
                Language::ALL.iter().copied().filter(|language| only.is_none_or(|only| only == *language));
            for language in all {
                if is_query {
                    match AstQuery::new(language, text) {
                        Ok(query) if query.has_captures() => found.push((language, Tree::Query(query))),
                        Ok(_) => {
                            return Err(invalid(
                                "`query` captures nothing; put `@name` behind the node to show",
                            ));
                        }
                        Err(QueryFault::Wrong(what)) => fault = fault.or(Some(what)),
                        Err(QueryFault::NoGrammar) => {}
                    }
                } else if let Some(pattern) = Pattern::new(language, text) {
                    found.push((language, Tree::Pattern(pattern)));
                }
            }
            if !found.is_empty() {
                return Ok(Self(found));
            }
            match (fault, only) {
                (Some(what), _) => Err(invalid(format!("`query` cannot be used: {what}"))),
                (None, Some(language)) if is_query => Err(ToolError::new(
                    ErrorCode::Unsupported,
                    format!(
                        "there is no grammar for {} here; `fs.search_text` searches its text",
                        language.name()
                    ),
                )),
                _ => Err(invalid(
                    "`query` is neither a tree-sitter query, such as `(call_expression) @call`, nor code with holes, such as `foo($A, $$$)`",
                )),
            }
        }

        pub(in super::super) fn has(&self, language: Language) -> bool {
            self.0.iter().any(|(known, _)| *known == language)
        }

        pub(in super::super) fn languages(&self) -> Vec<&'static str> {
            self.0.iter().map(|(language, _)| language.name()).collect()
        }

        pub(in super::super) fn look(
            &self,
            source: &Source,
            language: Language,
            cancelled: &Cancelled,
        ) -> Vec<Span> {
            let limits = Limits::for_file(source, cancelled);
            let found: Option<Vec<AstMatch>> =
                self.0.iter().find(|(known, _)| *known == language).and_then(|(_, tree)| match tree {
                    Tree::Query(query) => query.run(source, MAX_PER_FILE, &limits).ok(),
                    Tree::Pattern(pattern) => pattern.run(source, MAX_PER_FILE, &limits).ok(),
                });
            found.unwrap_or_default().into_iter().map(|found| (found.start, found.end)).collect()
        }
    }
}

#[cfg(not(feature = "grammars"))]
mod trees {
    use hanzo_protocol::envelope::{ErrorCode, ToolError};

    use super::super::super::language::Language;
    use super::super::super::source::Source;
    use super::super::scan::Span;
    use crate::contract::Cancelled;

    /// There are no trees without grammars.
    pub(in super::super) struct Trees;

    impl Trees {
        pub(in super::super) fn new(_: &str, _: Option<Language>) -> Result<Self, ToolError> {
            Err(ToolError::new(
                ErrorCode::Unsupported,
                "this program was built without grammars; `fs.search_text` searches text",
            ))
        }

        pub(in super::super) fn has(&self, _: Language) -> bool {
            false
        }

        pub(in super::super) fn languages(&self) -> Vec<&'static str> {
            Vec::new()
        }

        pub(in super::super) fn look(&self, _: &Source, _: Language, _: &Cancelled) -> Vec<Span> {
            Vec::new()
        }
    }
}
