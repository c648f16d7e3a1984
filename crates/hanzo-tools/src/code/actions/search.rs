//! `code.search`: one search that finds out what is meant.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use hanzo_protocol::envelope::ToolError;
use hanzo_protocol::primitives::{FileUri, Range, SymbolId};
use hanzo_protocol::tool::Effect;
use hanzo_sandbox::paths::FileKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Shared;
use super::super::index::{Coverage, Patience, SymbolQuery};
use super::super::language::Language;
use super::modality::{Modality, detect};
use super::query::Trees;
use super::scan::Scan;
use super::{OwnedHit, ask_index, invalid, page_size, scope_path};
use crate::contract::{Action, Answer, Call, Cancelled, Target, place};
use crate::host::Host;
use crate::search::walk::{Scope, Walk};
use crate::search::{self, CaseRule, Limits, Query, glob_set};

/// Lines looked at to put the best first.
const TEXT_POOL: usize = 400;
/// Bytes of such lines.
const TEXT_BYTES: usize = 200_000;
/// Words of a question that are looked for.
const MAX_WORDS: usize = 8;

/// Searches in every way that fits.
pub(in super::super) struct Search(pub(in super::super) Arc<Shared>);

/// The arguments of `code.search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct SearchInput {
    /// Name or Outer.name; for query, code with $HOLES or a tree-sitter query.
    query: String,
    /// How to search; found out when left out.
    modality: Option<Modality>,
    /// Only in here.
    path: Option<String>,
    /// Most results.
    limit: Option<u32>,
}

/// The answer of `code.search`.
#[derive(Debug, Serialize, JsonSchema)]
pub(in super::super) struct SearchOutput {
    /// How it was searched, what fits best first.
    modalities: Vec<Modality>,
    /// What would have fitted as well, but is not to be had here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable: Vec<Modality>,
    /// What was found.
    results: Vec<SearchResult>,
    /// Whether the whole workspace is indexed.
    complete: bool,
}

/// Something found.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in super::super) struct SearchResult {
    /// The file.
    uri: FileUri,
    /// How it was found.
    by: Modality,
    /// Where it is; absent for a whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<Range>,
    /// The line.
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<String>,
    /// The symbol it is, or the one it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol_id: Option<SymbolId>,
}

impl Action for Search {
    const NAME: &'static str = "search";
    const SUMMARY: &'static str = "symbols, code, files, text";
    const EXAMPLE: &'static str = r#"{"query":"where are retries configured"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("uri", "path"),
        ("scope", "path"),
        ("directory", "path"),
        ("pattern", "query"),
        ("mode", "modality"),
    ];
    const HIDDEN: &'static [&'static str] = &["modality", "limit"];
    type Input = SearchInput;
    type Output = SearchOutput;

    fn effect(&self, _: &SearchInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &SearchInput) -> Vec<Target> {
        vec![Target::read(input.path.as_deref().unwrap_or("."))]
    }

    async fn run(&self, call: &Call<'_>, input: SearchInput) -> Result<Answer<SearchOutput>, ToolError> {
        if input.query.trim().is_empty() {
            return Err(invalid("`query` is empty"));
        }
        let limit = page_size(input.limit);
        let shared = Arc::clone(&self.0);
        let output = call
            .blocking(move |host, cancelled| {
                let under = scope_path(host, input.path.as_deref())?;
                let wanted = match input.modality {
                    Some(only) => vec![only],
                    None => detect(&input.query).to_vec(),
                };
                let unavailable: Vec<Modality> =
                    wanted.iter().copied().filter(|way| !way.is_available()).collect();
                let mut modalities: Vec<Modality> =
                    wanted.into_iter().filter(|way| way.is_available()).collect();
                let mut search = Searching {
                    host,
                    shared: &shared,
                    query: input.query.trim(),
                    under: &under,
                    limit,
                    complete: true,
                };
                let mut results: Vec<SearchResult> = Vec::new();
                let mut seen: HashSet<(FileUri, Option<u32>)> = HashSet::new();
                for way in &modalities {
                    for found in search.by(*way, cancelled)? {
                        let line = found.range.map(|range| range.start.line);
                        if results.len() < limit && seen.insert((found.uri.clone(), line)) {
                            results.push(found);
                        }
                    }
                    cancelled.check()?;
                }
                let complete = search.complete;
                modalities.dedup();
                Ok(SearchOutput { modalities, unavailable, results, complete })
            })
            .await?;
        Ok(Answer::new(output).by("unified"))
    }
}

struct Searching<'a> {
    host: &'a Arc<Host>,
    shared: &'a Shared,
    query: &'a str,
    under: &'a str,
    limit: usize,
    complete: bool,
}

impl Searching<'_> {
    fn by(&mut self, way: Modality, cancelled: &Cancelled) -> Result<Vec<SearchResult>, ToolError> {
        match way {
            Modality::Symbol => Ok(self.symbols()),
            Modality::Ast => self.trees(cancelled),
            Modality::File => self.files(cancelled),
            Modality::Text => self.text(cancelled),
            Modality::Vector | Modality::Memory => Ok(Vec::new()),
        }
    }

    fn symbols(&mut self) -> Vec<SearchResult> {
        let query = SymbolQuery { text: self.query.to_owned(), kind: None, under: self.under.to_owned() };
        // Text gets its share of the page.
        let most = self.limit.div_ceil(2);
        let answered = ask_index(self.host, self.shared, |table| {
            let (hits, more) = table.search(&query, 0, most);
            (hits.iter().map(OwnedHit::from).collect(), more)
        });
        self.complete &= answered.coverage == Coverage::Whole;
        let places = answered.places.into_iter();
        places
            .map(|found| SearchResult {
                uri: found.uri,
                by: Modality::Symbol,
                range: Some(found.range),
                snippet: Some(found.snippet),
                symbol_id: found.symbol_id,
            })
            .collect()
    }

    fn trees(&mut self, cancelled: &Cancelled) -> Result<Vec<SearchResult>, ToolError> {
        // What is no code in any language is looked for as text.
        let Ok(trees) = Trees::new(self.query, None) else { return Ok(Vec::new()) };
        let (index, coverage) = self.shared.fresh(self.host, Patience::Usual);
        self.complete &= coverage == Coverage::Whole;
        let wants = |language: Language| trees.has(language);
        let scan =
            Scan { host: self.host, index, wants: &wants, under: self.under, limit: self.limit.div_ceil(2) };
        let page = scan.run(None, cancelled, &|source, language| trees.look(source, language, cancelled))?;
        let places = page.places.into_iter();
        Ok(places
            .map(|found| SearchResult {
                uri: found.uri,
                by: Modality::Ast,
                range: Some(found.range),
                snippet: Some(found.snippet),
                symbol_id: found.symbol_id,
            })
            .collect())
    }

    fn start(&self) -> std::path::PathBuf {
        self.host.workspace.path().join(self.under)
    }

    fn files(&self, cancelled: &Cancelled) -> Result<Vec<SearchResult>, ToolError> {
        let start = self.start();
        let is_directory =
            self.host.workspace.stat(&start).is_ok_and(|found| found.kind == FileKind::Directory);
        if !is_directory {
            return Ok(Vec::new());
        }
        let glob = if self.query.contains(['*', '?', '[']) { Some(glob_set(&[self.query])?) } else { None };
        let wanted = self.query.trim_start_matches("./").to_ascii_lowercase();
        let mut found: Vec<(u8, usize, std::path::PathBuf)> = Vec::new();
        let walk = Walk { start, depth: None, scope: Scope::Visible, after: None };
        let walked = walk.run(&self.host.workspace, cancelled, &mut |entry| {
            if entry.kind != FileKind::File {
                return ControlFlow::Continue(());
            }
            let path = entry.relative.to_string_lossy().to_ascii_lowercase();
            let fit = match &glob {
                Some(glob) => glob.is_match(&entry.relative).then_some(0),
                None if path == wanted => Some(0),
                None if path.ends_with(&format!("/{wanted}")) => Some(1),
                None if path.rsplit('/').next().is_some_and(|name| name.contains(&wanted)) => Some(2),
                None if path.contains(&wanted) => Some(3),
                None => None,
            };
            if let Some(fit) = fit {
                found.push((fit, path.len(), entry.real()));
            }
            if found.len() >= TEXT_POOL * 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        walked.map_err(|error| place::failure(&error))?;
        found.sort();
        let found = found.into_iter().take(self.limit.div_ceil(2));
        Ok(found
            .map(|(_, _, real)| SearchResult {
                uri: place::uri(&real),
                by: Modality::File,
                range: None,
                snippet: None,
                symbol_id: None,
            })
            .collect())
    }

    fn text(&self, cancelled: &Cancelled) -> Result<Vec<SearchResult>, ToolError> {
        let words = question_words(self.query);
        let is_question = matches!(detect(self.query)[0], Modality::Vector) && words.len() > 1;
        let query = Query {
            pattern: if is_question { words.join("|") } else { self.query.to_owned() },
            fixed: !is_question,
            case: if is_question { CaseRule::Insensitive } else { CaseRule::Sensitive },
            path: self.start(),
            ..Query::default()
        };
        let limits = Limits { matches: if is_question { TEXT_POOL } else { self.limit }, bytes: TEXT_BYTES };
        let page = search::search(&self.host.workspace, &query, limits, None, cancelled)?;
        let mut found: Vec<(usize, SearchResult)> = Vec::new();
        for file in page.files {
            let uri = place::uri(&file.real);
            for line in file.matches {
                let lower = line.text.to_lowercase();
                let hits = words.iter().filter(|word| lower.contains(word.as_str())).count();
                let result = SearchResult {
                    uri: uri.clone(),
                    by: Modality::Text,
                    range: Some(line.range),
                    snippet: Some(line.text.trim().to_owned()),
                    symbol_id: None,
                };
                found.push((hits, result));
            }
        }
        if is_question {
            // Lines with more of the words first; otherwise as the files come.
            found.sort_by_key(|(hits, _)| std::cmp::Reverse(*hits));
        }
        Ok(found.into_iter().map(|(_, result)| result).take(self.limit).collect())
    }
}

/// The words of a question that say what it is about.
fn question_words(query: &str) -> Vec<String> {
    const COMMON: &[&str] = &[
        "the", "and", "for", "are", "how", "what", "where", "when", "which", "who", "why", "does", "did",
        "was", "were", "with", "from", "into", "that", "this", "there", "have", "has", "can", "all", "any",
        "our", "you", "code", "file", "files", "find", "show", "used", "use", "get", "not", "its",
    ];
    let mut words: Vec<String> = query
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .map(str::to_lowercase)
        .filter(|word| word.chars().count() >= 3 && !COMMON.contains(&word.as_str()))
        // `retries` is to find `retry` as well.
        .map(|word| match word.strip_suffix("ies") {
            Some(stem) if stem.len() >= 3 => stem.to_owned(),
            _ => word.strip_suffix('s').filter(|stem| stem.len() >= 4).map_or(word.clone(), str::to_owned),
        })
        .collect();
    words.dedup();
    words.truncate(MAX_WORDS);
    words
}
