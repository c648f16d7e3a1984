//! tree-sitter queries over files.

use streaming_iterator::StreamingIterator as _;
use tree_sitter::{Query, QueryCursor, QueryCursorOptions};

use super::super::backend::{GaveUp, Limits};
use super::super::language::Language;
use super::super::source::Source;
use super::grammar::Grammar;
use super::parse;

/// Matches under way at once; a query that needs more is a bomb.
const MAX_IN_PROGRESS: u32 = 4096;

/// A query, compiled for a language.
#[derive(Debug)]
pub(crate) struct AstQuery {
    language: Language,
    query: Query,
}

/// Why a query cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QueryFault {
    NoGrammar,
    Wrong(String),
}

/// A captured node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AstMatch {
    pub(crate) capture: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl AstQuery {
    pub(crate) fn new(language: Language, text: &str) -> Result<Self, QueryFault> {
        let grammar = Grammar::of(language).ok_or(QueryFault::NoGrammar)?;
        let query = Query::new(&grammar.language, text).map_err(|fault| {
            let what = match fault.kind {
                tree_sitter::QueryErrorKind::NodeType => {
                    format!("there is no node `{}` in {}", fault.message, language.name())
                }
                tree_sitter::QueryErrorKind::Field => {
                    format!("there is no field `{}` in {}", fault.message, language.name())
                }
                tree_sitter::QueryErrorKind::Capture => format!("there is no capture `@{}`", fault.message),
                _ => fault.message.lines().next().unwrap_or("it cannot be read").to_owned(),
            };
            QueryFault::Wrong(format!("{what} (line {}, column {})", fault.row, fault.column))
        })?;
        Ok(Self { language, query })
    }

    /// Whether it captures anything; without that there is nothing to show.
    pub(crate) fn has_captures(&self) -> bool {
        !self.query.capture_names().is_empty()
    }

    /// What the query captures in a file, in order, at most `most`; captures that begin with `_` are for predicates only.
    pub(crate) fn run(&self, source: &Source, most: usize, limits: &Limits) -> Result<Vec<AstMatch>, GaveUp> {
        let grammar = Grammar::of(self.language).ok_or(GaveUp)?;
        let tree = parse(grammar, &source.bytes, limits)?;
        let mut cursor = QueryCursor::new();
        cursor.set_match_limit(MAX_IN_PROGRESS);
        let names = self.query.capture_names();
        let mut found = Vec::new();
        let mut watch = |_: &tree_sitter::QueryCursorState| limits.check();
        let options = QueryCursorOptions::new().progress_callback(&mut watch);
        let mut matches =
            cursor.matches_with_options(&self.query, tree.root_node(), source.bytes.as_slice(), options);
        while let Some(matched) = matches.next() {
            for capture in matched.captures() {
                let name = names.get(capture.index as usize).copied().unwrap_or_default();
                if name.starts_with('_') {
                    continue;
                }
                let node = capture.node;
                found.push(AstMatch {
                    capture: name.to_owned(),
                    start: node.start_byte(),
                    end: node.end_byte(),
                });
            }
            if found.len() >= most {
                break;
            }
        }
        found.sort_by_key(|found| (found.start, found.end));
        found.dedup();
        found.truncate(most);
        Ok(found)
    }
}
