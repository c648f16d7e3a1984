//! Paths as rules see them: normalised by their text alone, and matched like gitignore patterns.
//!
//! The crate does no I/O, so it cannot follow symlinks; the host passes the resolved path along when it has one
//! (see [`crate::Call::with_resolved`]) and both spellings are then held against the rules.

use std::borrow::Cow;

use crate::glob::{Case, Glob};
use crate::verdict::Match;

/// Longer than any path a file system accepts; what is longer is not examined and counts as unknown.
pub(crate) const MAX_PATH: usize = 16 * 1024;

/// A path after lexical normalisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NormalPath {
    /// Relative to the workspace when inside it (the workspace itself is `""`), otherwise absolute.
    pub(crate) text: String,
}

/// Why a path has no normal form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadPath {
    TooLong,
    ForeignUri,
    BadEncoding,
    Nul,
}

impl BadPath {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::TooLong => "the path is too long to examine",
            Self::ForeignUri => "the URI does not name a local file",
            Self::BadEncoding => "the URI is not valid percent-encoded text",
            Self::Nul => "the path holds a NUL character",
        }
    }
}

impl NormalPath {
    /// Normalises `raw`: a `file://` URI, an absolute path, or one relative to `workspace`.
    pub(crate) fn new(raw: &str, workspace: Option<&str>) -> Result<Self, BadPath> {
        if raw.len() > MAX_PATH {
            return Err(BadPath::TooLong);
        }
        let path = from_uri(raw)?;
        if path.contains('\0') {
            return Err(BadPath::Nul);
        }
        let root = workspace.map(from_uri).transpose()?;
        let root = root.as_deref().map(|root| segments(root, Vec::new()).0);
        if path.starts_with('/') {
            let (absolute, _) = segments(&path, Vec::new());
            return Ok(Self { text: relative_to(&absolute, root.as_deref()) });
        }
        if let Some(root) = root {
            let (absolute, _) = segments(&path, root.clone());
            return Ok(Self { text: relative_to(&absolute, Some(&root)) });
        }
        // No workspace is known. What climbs out of it keeps its `..`, so that no relative rule can cover it.
        let (inside, climbs) = segments(&path, Vec::new());
        let up = std::iter::repeat_n("..", climbs);
        Ok(Self { text: up.chain(inside).collect::<Vec<_>>().join("/") })
    }

    /// Whether the path is outside the workspace.
    pub(crate) fn is_outside(&self) -> bool {
        self.text.starts_with('/') || self.text == ".." || self.text.starts_with("../")
    }
}

fn relative_to(absolute: &[&str], root: Option<&[&str]>) -> String {
    match root.and_then(|root| absolute.strip_prefix(root)) {
        Some(inside) => inside.join("/"),
        None => format!("/{}", absolute.join("/")),
    }
}

/// Pushes the segments of `path` onto `base`, resolving `.` and `..`; also how often `..` found nothing to drop.
fn segments<'a>(path: &'a str, mut base: Vec<&'a str>) -> (Vec<&'a str>, usize) {
    let mut climbs = 0;
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                if base.pop().is_none() {
                    climbs += 1;
                }
            }
            name => base.push(name),
        }
    }
    (base, climbs)
}

/// The path of a `file:` URI, percent-decoded once; anything else as it is.
fn from_uri(raw: &str) -> Result<Cow<'_, str>, BadPath> {
    let Some((scheme, rest)) = raw.split_once(':') else { return Ok(Cow::Borrowed(raw)) };
    if !scheme.eq_ignore_ascii_case("file") {
        // `scheme://` is some other URI. A lone colon is an ordinary character of a file name.
        let is_scheme =
            !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
        return if is_scheme && rest.starts_with("//") {
            Err(BadPath::ForeignUri)
        } else {
            Ok(Cow::Borrowed(raw))
        };
    }
    let path = match rest.strip_prefix("//") {
        Some(authority) => {
            let at = authority.find('/').ok_or(BadPath::ForeignUri)?;
            if !matches!(&authority[..at], "" | "localhost") {
                return Err(BadPath::ForeignUri);
            }
            &authority[at..]
        }
        None if rest.starts_with('/') => rest,
        None => return Err(BadPath::ForeignUri),
    };
    // A query or fragment is no part of the file's name; encoded ones (`%3F`, `%23`) are.
    let path = path.split(['?', '#']).next().unwrap_or_default();
    percent_decode(path).map(Cow::Owned)
}

pub(crate) fn percent_decode(text: &str) -> Result<String, BadPath> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit =
                || rest.next().and_then(|b| char::from(b).to_digit(16)).ok_or(BadPath::BadEncoding);
            let value = digit()? * 16 + digit()?;
            bytes.push(u8::try_from(value).map_err(|_| BadPath::BadEncoding)?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| BadPath::BadEncoding)
}

/// How much a call touches at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// That file or directory entry.
    Entry,
    /// It and everything in it (a removal, a move, a search).
    Tree,
}

/// The specifier of an `Edit(...)` or `Read(...)` rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern {
    /// As written, relative to the workspace or absolute.
    anchored: Glob,
    /// The same at any depth, for a pattern without `/`.
    floating: Option<Glob>,
    /// All that lies under what `anchored`/`floating` match.
    under: Vec<Glob>,
    /// Whether the pattern itself says that it means a directory (`docs/`).
    directory: bool,
    /// `~/…`: matches only what the home directory is known to hold; kept to the side of the rule that tightens.
    home: bool,
}

impl PathPattern {
    pub(crate) fn new(specifier: &str) -> Self {
        let home = specifier.starts_with("~/");
        let text = specifier.strip_prefix("file://").unwrap_or(specifier);
        let text = if home { format!("**/{}", &text[2..]) } else { tidy(text) };
        let directory = text.len() > 1 && text.ends_with('/');
        let base = text.trim_end_matches('/');
        let base = if base.is_empty() && text.starts_with('/') { "/" } else { base };
        let floating = (!base.contains('/')).then(|| Glob::path(&format!("**/{base}")));
        let mut under = vec![Glob::path(&format!("{}/**", base.trim_end_matches('/')))];
        if floating.is_some() {
            under.push(Glob::path(&format!("**/{base}/**")));
        }
        Self { anchored: Glob::path(base), floating, under, directory, home }
    }

    /// Whether the rule covers the path, read narrowly: a name without `/` is meant at the root of the workspace,
    /// and a directory's contents only when it is written `dir/` or `dir/**`.
    pub(crate) fn covers(&self, path: &NormalPath) -> bool {
        if self.home {
            return false;
        }
        // `**` alone is the workspace, not the whole machine.
        if path.is_outside() && !self.anchored.literal_head().starts_with('/') {
            return false;
        }
        let at = path.text.as_str();
        self.anchored.matches(at, Case::Sensitive)
            || (self.directory && self.under[0].matches(at, Case::Sensitive))
    }

    /// Whether the rule catches the path, read widely, as gitignore does: a name without `/` at any depth, and a
    /// directory with all that is in it.
    pub(crate) fn catches(&self, path: &NormalPath, extent: Extent) -> Match {
        let at = path.text.as_str();
        let hit = |case| {
            self.anchored.matches(at, case)
                || self.floating.as_ref().is_some_and(|glob| glob.matches(at, case))
                || self.under.iter().any(|glob| glob.matches(at, case))
        };
        if hit(Case::Sensitive) {
            return Match::Yes;
        }
        // On a file system that ignores case these are the same file, and the text cannot tell which it is.
        if hit(Case::Folded) || (extent == Extent::Tree && self.may_lie_under(at)) {
            return Match::Unproven;
        }
        Match::No
    }

    /// Whether something the pattern names may lie inside the directory `at`.
    fn may_lie_under(&self, at: &str) -> bool {
        if self.home {
            // The workspace is searched all the time and is seldom the home directory itself.
            return at.starts_with('/') || at.starts_with("..");
        }
        if self.floating.is_some() {
            return true;
        }
        let head = self.anchored.literal_head();
        if at.is_empty() {
            return !head.starts_with('/');
        }
        let directory = format!("{}/", at.trim_end_matches('/'));
        head.starts_with(&directory) || (!self.anchored.is_literal() && directory.starts_with(head.as_str()))
    }
}

/// `./a//b` and `a/./b` mean `a/b` in a rule as well. `..` stays: such a rule matches nothing inside.
fn tidy(text: &str) -> String {
    let absolute = text.starts_with('/');
    let trailing = text.ends_with('/');
    let kept: Vec<&str> = text.split('/').filter(|s| !s.is_empty() && *s != ".").collect();
    let mut tidy = kept.join("/");
    if absolute {
        tidy.insert(0, '/');
    }
    if trailing && !kept.is_empty() {
        tidy.push('/');
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(raw: &str) -> String {
        NormalPath::new(raw, Some("/w/p")).expect("a path").text
    }

    #[test]
    fn spellings_of_one_path_are_one_path() {
        for raw in [
            "a/b",
            "./a/b",
            "a//b",
            "a/x/../b",
            "/w/p/a/b",
            "file:///w/p/a/b",
            "file:///w/p/a/%62",
            "/w/./p/a/b",
        ] {
            assert_eq!(normal(raw), "a/b", "{raw}");
        }
        assert_eq!(normal("../p/a/b"), "a/b");
        assert_eq!(normal("../other"), "/w/other");
        assert_eq!(normal("../../../../etc/passwd"), "/etc/passwd");
        assert_eq!(normal("/w/pp/a"), "/w/pp/a", "a sibling that shares a prefix is outside");
        assert_eq!(normal("."), "");
        assert_eq!(NormalPath::new("../x", None).expect("a path").text, "../x");
    }

    #[test]
    fn what_cannot_be_read_is_not_a_path() {
        assert_eq!(NormalPath::new("http://x/y", None), Err(BadPath::ForeignUri));
        assert_eq!(NormalPath::new("file://host/y", None), Err(BadPath::ForeignUri));
        assert_eq!(NormalPath::new("file:///a%2", None), Err(BadPath::BadEncoding));
        assert_eq!(NormalPath::new("file:///a%00", None), Err(BadPath::Nul));
    }

    #[test]
    fn an_allow_reads_narrowly_and_a_deny_widely() {
        let path = |text: &str| NormalPath { text: text.to_owned() };
        let pattern = PathPattern::new("*.env");
        assert!(pattern.covers(&path("a.env")));
        assert!(!pattern.covers(&path("d/a.env")));
        assert_eq!(pattern.catches(&path("d/a.env"), Extent::Entry), Match::Yes);
        assert_eq!(pattern.catches(&path("d/A.ENV"), Extent::Entry), Match::Unproven);
        let docs = PathPattern::new("docs");
        assert!(!docs.covers(&path("docs/a")));
        assert_eq!(docs.catches(&path("docs/a"), Extent::Entry), Match::Yes);
        assert!(PathPattern::new("docs/").covers(&path("docs/a/b")));
        assert!(!PathPattern::new("**").covers(&path("/etc/passwd")));
        assert!(PathPattern::new("/etc/**").covers(&path("/etc/passwd")));
    }

    #[test]
    fn removing_a_parent_may_remove_what_is_protected() {
        let secret = PathPattern::new("docs/secret/**");
        let path = |text: &str| NormalPath { text: text.to_owned() };
        assert_eq!(secret.catches(&path("docs"), Extent::Tree), Match::Unproven);
        assert_eq!(secret.catches(&path("docs"), Extent::Entry), Match::No);
        assert_eq!(secret.catches(&path(""), Extent::Tree), Match::Unproven);
        assert_eq!(secret.catches(&path("src"), Extent::Tree), Match::No);
    }

    #[test]
    fn a_home_rule_denies_without_knowing_home_and_never_allows() {
        let keys = PathPattern::new("~/.ssh/**");
        let path = NormalPath { text: "/home/a/.ssh/id".to_owned() };
        assert_eq!(keys.catches(&path, Extent::Entry), Match::Yes);
        assert!(!keys.covers(&path));
    }
}
