//! `fs.search_text`.

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::{FileUri, PageCursor, Range};
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::list::{percent_decoded, percent_encoded};
use crate::contract::{Action, Answer, Call, Target, place};
use crate::search::{self, CaseRule, Limits, Query};

/// Matches of one answer, unless the caller says otherwise.
const DEFAULT_MATCHES: u32 = 100;
/// Bytes of text in one answer.
const MAX_BYTES: usize = 40_000;
/// More context than this is reading the file.
const MAX_CONTEXT: u32 = 50;

/// Searches text in files.
pub(super) struct SearchText;

/// The arguments of `fs.search_text`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag a caller may write")]
pub(super) struct SearchInput {
    /// Regex; for list a glob like **/*.rs
    pattern: String,
    /// File or directory.
    path: Option<String>,
    /// Only files like *.{ts,tsx}
    glob: Option<String>,
    /// Such as rust, py.
    r#type: Option<String>,
    /// pattern is plain text.
    #[serde(default)]
    fixed: bool,
    /// Case-insensitive.
    #[serde(default)]
    ignore_case: bool,
    /// Whole words.
    #[serde(default)]
    word: bool,
    /// Match across lines.
    #[serde(default)]
    multiline: bool,
    /// Lines around each match.
    context: Option<u32>,
    /// Hidden and ignored files too.
    #[serde(default)]
    all: bool,
    /// Most lines or entries.
    limit: Option<u32>,
    /// From the previous page.
    cursor: Option<PageCursor>,
}

/// The answer of `fs.search_text`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SearchOutput {
    /// The matches, in path order.
    matches: Vec<SearchMatch>,
}

/// A line with a match.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SearchMatch {
    /// The file.
    uri: FileUri,
    /// The first match in the line.
    range: Range,
    /// The line.
    text: String,
    /// The lines before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    /// The lines after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
}

impl Action for SearchText {
    const NAME: &'static str = "search_text";
    const SUMMARY: &'static str = "search by regex; skips git-ignored files";
    const EXAMPLE: &'static str = r#"{"pattern":"fn main","glob":"*.rs"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("uri", "path"),
        ("file_path", "path"),
        ("directory", "path"),
        ("query", "pattern"),
        ("regex", "pattern"),
        ("include", "glob"),
        ("literal", "fixed"),
        ("case_insensitive", "ignore_case"),
        ("context_lines", "context"),
        ("head_limit", "limit"),
        ("max_results", "limit"),
    ];
    const HIDDEN: &'static [&'static str] = &["word"];
    const QUIET: &'static [&'static str] = &["path", "ignore_case", "multiline"];
    type Input = SearchInput;
    type Output = SearchOutput;

    fn effect(&self, _: &SearchInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &SearchInput) -> Vec<Target> {
        vec![Target::read(input.path.as_deref().unwrap_or("."))]
    }

    async fn run(&self, call: &Call<'_>, input: SearchInput) -> Result<Answer<SearchOutput>, ToolError> {
        if input.pattern.is_empty() {
            return Err(ToolError::new(
                ErrorCode::InvalidArguments,
                "`pattern` is empty; it would match every line",
            ));
        }
        let query = Query {
            pattern: input.pattern,
            fixed: input.fixed,
            case: if input.ignore_case { CaseRule::Insensitive } else { CaseRule::Sensitive },
            word: input.word,
            multiline: input.multiline,
            path: place::parse(input.path.as_deref().unwrap_or("."))?,
            globs: input.glob.into_iter().collect(),
            types: input.r#type.into_iter().collect(),
            context: input.context.unwrap_or(0).min(MAX_CONTEXT) as usize,
            everything: input.all,
        };
        let after = call.position::<(String, usize)>(input.cursor.as_ref())?;
        let after = after.map(|(key, skip)| (percent_decoded(&key), skip));
        let matches = input.limit.unwrap_or(DEFAULT_MATCHES).max(1) as usize;
        let caller = call.context.caller;
        let (page, taint) = call
            .blocking(move |host, cancelled| {
                let real = host.workspace.stat(&query.path).map_err(|error| place::failure(&error))?.location;
                let taint = super::taint(host, &real, caller)?;
                let limits = Limits { matches, bytes: MAX_BYTES };
                let page = search::search(&host.workspace, &query, limits, after, cancelled)?;
                let foreign = || page.files.iter().find_map(|file| host.ledger.taint_at(&file.real));
                let taint = taint.or_else(foreign);
                Ok((page, taint))
            })
            .await?;
        let matches = page
            .files
            .into_iter()
            .flat_map(|file| {
                let uri = place::uri(&file.real);
                file.matches.into_iter().map(move |found| SearchMatch {
                    uri: uri.clone(),
                    range: found.range,
                    text: found.text,
                    before: found.before,
                    after: found.after,
                })
            })
            .collect();
        let answer = Answer::new(SearchOutput { matches }).by("ripgrep").tainted(taint);
        Ok(match page.next {
            Some((key, skip)) => answer.paged(call.more(&(percent_encoded(&key), skip))),
            None => answer,
        })
    }
}
