//! Finds what may be a reference in the user's input. Nothing is looked up here, and nothing is changed.

use std::ops::Range;

/// A place in the input that may be a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Where it stands, from the `@` on.
    pub range: Range<usize>,
    /// What follows the `@`, without quotation marks and with `\ ` as a space.
    pub text: String,
    /// Whether it was quoted, and so means exactly what it says.
    pub quoting: Quoting,
}

/// How a mention was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoting {
    /// `@path`: a full stop at the end may belong to the sentence.
    Bare,
    /// `@"path"`.
    Quoted,
}

/// One reading of a mention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The path as it was typed.
    pub path: String,
    /// Only these lines.
    pub lines: Option<Lines>,
}

/// Lines of a file, counted from 1, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lines {
    /// The first.
    pub first: u32,
    /// The last; never before the first.
    pub last: u32,
}

/// The longest mention that is looked at, in bytes: no path is longer.
const LONGEST: usize = 4096;
/// How many characters at the end may belong to the sentence.
const MOST_STRIPPED: usize = 8;

/// What may be a reference: an `@` at the beginning of a word. `name@example.org` is not one.
pub fn mentions(input: &str) -> Vec<Mention> {
    let mut mentions = Vec::new();
    let mut from = 0;
    while let Some(at) = input[from..].find('@').map(|at| from + at) {
        from = at + 1;
        let begins = input[..at].chars().next_back().is_none_or(|before| {
            before.is_whitespace()
                || matches!(before, '(' | '[' | '{' | '<' | '"' | '\'' | '`' | ',' | ';' | ':' | '=')
        });
        let rest = &input[from..];
        let found = if begins { quoted(rest).or_else(|| bare(rest)) } else { None };
        if let Some((text, length, quoting)) = found {
            from += length;
            mentions.push(Mention { range: at..from, text, quoting });
        }
    }
    mentions
}

/// `"a b.txt"`, possibly with lines behind it.
fn quoted(rest: &str) -> Option<(String, usize, Quoting)> {
    let inside = rest.strip_prefix('"')?;
    let end = inside.find(['"', '\n']).filter(|end| inside[*end..].starts_with('"') && *end > 0)?;
    let behind = &inside[end + 1..];
    let length = behind.find(char::is_whitespace).unwrap_or(behind.len());
    let suffix = range_suffix(&behind[..length]).unwrap_or("");
    let text = format!("{}{suffix}", &inside[..end]);
    (text.len() <= LONGEST).then(|| (text, end + 2 + suffix.len(), Quoting::Quoted))
}

/// The part of `:10-20,` that names lines.
fn range_suffix(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(':')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    let suffix = text[..=digits].trim_end_matches('-');
    (suffix.len() > 1).then_some(suffix)
}

fn bare(rest: &str) -> Option<(String, usize, Quoting)> {
    let mut text = String::new();
    let mut characters = rest.char_indices().peekable();
    let mut length = rest.len();
    while let Some((index, c)) = characters.next() {
        if c == '\\' && characters.peek().is_some_and(|(_, next)| *next == ' ') {
            characters.next();
            text.push(' ');
        } else if c.is_whitespace() || matches!(c, '"' | '`' | '<' | '>') {
            length = index;
            break;
        } else {
            text.push(c);
        }
    }
    (!text.is_empty() && length <= LONGEST).then_some((text, length, Quoting::Bare))
}

impl Mention {
    /// What it may mean, the likeliest first: the whole of it, then with lines taken off its end, then without the
    /// characters that may belong to the sentence.
    pub fn targets(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        let mut text = self.text.as_str();
        for _ in 0..=MOST_STRIPPED {
            if !says_something(text) {
                break;
            }
            targets.push(Target { path: text.to_owned(), lines: None });
            if let Some((path, lines)) = with_lines(text) {
                targets.push(Target { path: path.to_owned(), lines: Some(lines) });
            }
            let Some(shorter) = text.strip_suffix(is_punctuation).filter(|_| self.quoting == Quoting::Bare)
            else {
                break;
            };
            text = shorter;
        }
        targets
    }
}

/// `/` and `~/` alone would be everything there is, which nobody means in a sentence.
fn says_something(text: &str) -> bool {
    !text.is_empty() && text.chars().any(|c| c != '/' && c != '~')
}

fn is_punctuation(c: char) -> bool {
    matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | ')' | ']' | '}' | '\'' | '…' | '。' | '，' | '、' | '）')
}

/// `x.rs:10`, `x.rs:10-20`, `x.rs#L10-L20`.
fn with_lines(text: &str) -> Option<(&str, Lines)> {
    let colon = text.rsplit_once(':');
    let hash = || text.rsplit_once("#L");
    let (path, range) =
        colon.filter(|(_, range)| range.starts_with(|c: char| c.is_ascii_digit())).or_else(hash)?;
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let number = |text: &str| {
        let digits = text.strip_prefix('L').unwrap_or(text);
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u32>().ok())?
    };
    let (first, last) = (number(first)?, number(last)?);
    (first > 0 && !path.is_empty()).then(|| (path, Lines { first, last: last.max(first) }))
}
