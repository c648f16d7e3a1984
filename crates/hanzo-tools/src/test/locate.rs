//! Where a failure happened, found in its text: runners that say it in fields of their own are few.

use std::path::{Component, Path, PathBuf};

use hanzo_protocol::primitives::{FileUri, Position, Range};
use hanzo_sandbox::paths::{FileKind, Workspace};

use super::outcome::Failure;
use crate::contract::place;

/// Mentions of places that are followed up.
const MAX_MENTIONS: usize = 100;
/// Directories whose files are not the project's.
const FOREIGN: [&str; 5] = ["node_modules", "site-packages", "dist-packages", "rustc", ".cargo"];

/// Which of several places is the one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The innermost call comes first.
    First,
    /// The innermost call comes last, as in Python.
    Last,
}

/// A place in a file of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) uri: FileUri,
    pub(super) range: Range,
}

/// Finds places for the failures of a suite.
pub(super) struct Locator<'a> {
    workspace: &'a Workspace,
    /// What paths may be relative to.
    directories: Vec<PathBuf>,
    order: Order,
}

impl<'a> Locator<'a> {
    pub(super) fn new(workspace: &'a Workspace, suite: &Path, order: Order) -> Self {
        let mut directories = vec![suite.to_owned(), workspace.path().to_owned()];
        directories.dedup();
        Self { workspace, directories, order }
    }

    /// Where `failure` happened, if that is in the workspace.
    pub(super) fn find(&self, failure: &Failure) -> Option<Found> {
        let inner = failure.directory.as_ref().map(|inner| self.directories[0].join(inner));
        // A cause is nearer to the truth than what it led to.
        let text = failure.text.rsplit_once("cause: ").map_or(failure.text.as_str(), |(_, cause)| cause);
        let mut mentions = mentions(text);
        if self.order == Order::Last {
            mentions.reverse();
        }
        mentions.truncate(MAX_MENTIONS);
        let mentioned = mentions.into_iter().find_map(|mention| {
            self.resolve(&mention.path, inner.as_deref())
                .map(|real| found(&real, mention.line, mention.column))
        });
        let said = || {
            let (path, line, column) = failure.at.as_ref()?;
            Some(found(&self.resolve(path, inner.as_deref())?, *line, *column))
        };
        // A runner names where the test begins; its text where it failed.
        let whole = |found: &Found| found.range.start.line == 0;
        match (said(), mentioned) {
            (Some(said), Some(mentioned)) if said.uri == mentioned.uri || whole(&said) => Some(mentioned),
            (Some(said), _) => Some(said),
            (None, mentioned) => mentioned,
        }
    }

    fn resolve(&self, path: &str, inner: Option<&Path>) -> Option<PathBuf> {
        let path = Path::new(path.strip_prefix("file://").unwrap_or(path));
        let foreign = |part: Component<'_>| FOREIGN.iter().any(|name| part.as_os_str() == *name);
        if path.components().any(foreign) {
            return None;
        }
        let is_file = |path: &Path| {
            let found = self.workspace.stat(path).ok().filter(|found| found.kind == FileKind::File)?;
            found.location.starts_with(self.workspace.path()).then_some(found.location)
        };
        if path.is_absolute() {
            return is_file(path);
        }
        inner
            .into_iter()
            .chain(self.directories.iter().map(PathBuf::as_path))
            .find_map(|dir| is_file(&dir.join(path)))
    }
}

fn found(real: &Path, line: u32, col: u32) -> Found {
    let start = Position { line, col };
    Found {
        uri: place::uri(real),
        range: Range { start, end: Position { line: line.saturating_add(1), col: 0 } },
    }
}

/// A place a text mentions; line and column from 0.
#[derive(Debug, PartialEq, Eq)]
struct Mention {
    path: String,
    line: u32,
    column: u32,
}

/// The places a text mentions: `path:line`, `path:line:column`, and Python's `File "path", line 3`.
fn mentions(text: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    for line in text.lines() {
        // A line of a bundle has no place anybody wants.
        let line = &line[..line.floor_char_boundary(2000)];
        if let Some(mention) = python(line) {
            found.push(mention);
            continue;
        }
        let mut from = 0;
        while let Some(colon) = line[from..].find(':').map(|at| from + at) {
            from = colon + 1;
            let Some((number, rest)) = number(&line[colon + 1..]) else { continue };
            let path = line[..colon].rsplit(is_border).next().unwrap_or_default();
            let looks = path.contains(['.', '/']) && path.chars().any(char::is_alphanumeric);
            if number == 0 || !looks {
                continue;
            }
            let (column, rest) = rest.strip_prefix(':').and_then(self::number).unwrap_or((0, rest));
            found.push(Mention { path: path.to_owned(), line: number - 1, column: column.saturating_sub(1) });
            from = line.len() - rest.len();
        }
    }
    found
}

fn is_border(character: char) -> bool {
    character.is_whitespace() || "()<>\"'`,;=[]{}|".contains(character)
}

fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok().map(|number| (number, &text[end..]))
}

fn python(line: &str) -> Option<Mention> {
    let (path, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    let (line, _) = number(rest)?;
    Some(Mention { path: path.to_owned(), line: line.checked_sub(1)?, column: 0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_are_found_in_the_words_of_all_runners() {
        let seen =
            |text: &str| mentions(text).into_iter().map(|m| (m.path, m.line, m.column)).collect::<Vec<_>>();
        assert_eq!(seen("thread 'a' (1) panicked at src/lib.rs:3:65:"), [("src/lib.rs".into(), 2, 64)]);
        assert_eq!(seen("    at Object.x (file:///w/a.mjs:2:64)"), [("file:///w/a.mjs".into(), 1, 63)]);
        assert_eq!(seen("test_a.py:6: AssertionError"), [("test_a.py".into(), 5, 0)]);
        assert_eq!(seen("  File \"/w/t.py\", line 4, in f"), [("/w/t.py".into(), 3, 0)]);
        assert_eq!(seen("    calc_test.go:12: got 3"), [("calc_test.go".into(), 11, 0)]);
        assert_eq!(seen("at 12:30:45 or {a: 1} or x.rs:0"), []);
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "[ -~\\n:0-9é\"]{0,200}") {
            let _ = mentions(&text);
        }
    }
}
