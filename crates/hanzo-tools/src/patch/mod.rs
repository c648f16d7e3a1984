//! Patches: unified diffs, the `*** Begin Patch` grammar and plain replacements, as one list of changes to files, and
//! applying them to text. No file is touched here.
//!
//! A hunk's context may be found at another line than the patch says, but nothing is ever guessed: every context line has to
//! be there exactly, and when it is there several times the patch is refused with the places.

mod apply;
mod begin;
mod edits;
mod unified;

pub(crate) use apply::apply;
pub(crate) use edits::{Edit, replace};

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::Position;
use serde_json::json;

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileChange {
    /// The file, as the patch names it.
    pub(crate) path: String,
    /// Its new name, when it moves.
    pub(crate) to: Option<String>,
    pub(crate) kind: ChangeKind,
}

/// What happens to a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// It is made.
    Add { text: String, mode: NewMode },
    /// It goes, if the hunks (when there are any) say what is in it.
    Delete { hunks: Vec<Hunk> },
    /// It changes; without hunks it only moves.
    Update { hunks: Vec<Hunk> },
}

/// What a change makes of a text: both ends stay, and something else is in between. A large text is not copied for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Splice {
    /// How many bytes stay at the start; it may be more.
    pub(crate) start: usize,
    /// How many bytes stay at the end.
    pub(crate) end: usize,
    /// What is in between afterwards.
    pub(crate) middle: String,
}

impl Splice {
    /// What is in between in `text`, before the change.
    pub(crate) fn replaced<'a>(&self, text: &'a str) -> &'a str {
        &text[self.start..text.len() - self.end]
    }

    /// `text` after the change.
    pub(crate) fn of(&self, text: &str) -> String {
        [&text[..self.start], &self.middle, &text[text.len() - self.end..]].concat()
    }
}

/// The permissions of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewMode {
    Plain,
    Executable,
}

/// A stretch of lines to replace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The line, from 0, where a unified diff says it is.
    pub(crate) stated: Option<usize>,
    /// Lines to go past first, in this order (`@@ fn main()`).
    pub(crate) after: Vec<String>,
    pub(crate) lines: Vec<Line>,
    /// The old lines are the file's last.
    pub(crate) at_end: bool,
}

/// A line of a hunk, without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) tag: Tag,
    pub(crate) text: String,
    /// The file ends with this line and has no line break there.
    pub(crate) no_newline: bool,
}

/// What a line of a hunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    Context,
    Remove,
    Insert,
}

impl Line {
    fn new(tag: Tag, text: &str) -> Self {
        Self { tag, text: text.to_owned(), no_newline: false }
    }
}

/// Why a patch cannot be read or does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatchError {
    /// The patch itself is malformed; the line counts from 1 within the patch.
    Malformed { line: usize, what: String },
    /// Correct, but it asks for what is not done here.
    Unsupported(String),
    /// The lines are not in the file.
    NotFound { what: String },
    /// The lines are there more than once.
    Ambiguous { what: String, candidates: Vec<Position> },
}

impl PatchError {
    pub(crate) fn malformed(line: usize, what: impl Into<String>) -> Self {
        Self::Malformed { line: line + 1, what: what.into() }
    }

    /// The error for the caller; `path` is the file it is about.
    pub(crate) fn into_tool_error(self, path: Option<&str>) -> ToolError {
        let at = path.map_or_else(String::new, |path| format!(" in `{path}`"));
        match self {
            Self::Malformed { line, what } => {
                ToolError::new(ErrorCode::InvalidArguments, format!("the patch is malformed at its line {line}: {what}"))
                    .with_details(json!({ "line": line }))
            }
            Self::Unsupported(what) => ToolError::new(ErrorCode::Unsupported, what),
            Self::NotFound { what } => ToolError::new(
                ErrorCode::NotFound,
                format!("nothing was changed: {what}{at}; read the file and take the lines from it exactly"),
            ),
            Self::Ambiguous { what, candidates } => ToolError::new(
                ErrorCode::Ambiguous,
                format!("nothing was changed: {what}{at}; add lines around it until it is the only one"),
            )
            .with_details(json!({
                "candidates": candidates.iter().map(|place| format!("line {}", place.line)).collect::<Vec<_>>()
            })),
        }
    }
}

/// Reads a patch in whichever of the two forms it has.
pub(crate) fn parse(text: &str) -> Result<Vec<FileChange>, PatchError> {
    let changes = if begin::is_begin_patch(text) { begin::parse(text)? } else { unified::parse(text)? };
    if changes.is_empty() {
        return Err(PatchError::malformed(
            0,
            "there is no change in it; it takes a unified diff (`--- a/FILE`, `+++ b/FILE`, `@@ … @@`) or \
             `*** Begin Patch` … `*** End Patch`",
        ));
    }
    Ok(changes)
}

/// The lines of a text without their breaks; a carriage return before the break stays with the line.
fn lines_of(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    lines
}
