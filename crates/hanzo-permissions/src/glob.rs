//! Pattern matching without backtracking.
//!
//! Two matchers, because the two kinds of subject need different things:
//!
//! - [`Stars`] knows only `*`, which crosses everything. Command lines use it. It is a chain of substring searches,
//!   so its time is linear in the text whatever the pattern.
//! - [`Glob`] knows `*`, `?`, `[...]` and (for paths) `**`. Tool names and paths use it. It walks a set of states
//!   over the text once: linear in the text for a given pattern.

/// A pattern in which only `*` is special and stands for any text, also across blanks, slashes and lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stars {
    /// The literal stretches between the stars; one stretch means there is no star.
    pieces: Vec<String>,
}

impl Stars {
    /// Reads `text`, where `\*`, `\(`, `\)` and `\\` stand for the character itself.
    ///
    /// Any other backslash is an ordinary character: rules written before the escapes existed keep their meaning.
    pub(crate) fn parse(text: &str) -> Self {
        let mut pieces = vec![String::new()];
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let escaped =
                (c == '\\').then(|| chars.next_if(|n| matches!(n, '*' | '(' | ')' | '\\'))).flatten();
            match (c, escaped) {
                (_, Some(literal)) => push(&mut pieces, literal),
                ('*', None) => pieces.push(String::new()),
                (other, None) => push(&mut pieces, other),
            }
        }
        Self { pieces }
    }

    /// The text itself, when the pattern has no star.
    pub(crate) fn as_literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// What every match starts with.
    pub(crate) fn head(&self) -> &str {
        self.pieces.first().map_or("", String::as_str)
    }

    /// Whether the pattern ends in a star, so that any continuation of a match is a match.
    pub(crate) fn is_open(&self) -> bool {
        self.pieces.len() > 1 && self.pieces.last().is_some_and(String::is_empty)
    }

    /// Whether the whole of `text` matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = self.pieces.as_slice() else {
            return self.head() == text;
        };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
        for piece in middle {
            // The leftmost occurrence leaves the most room for what follows, so no other needs to be tried.
            match rest.find(piece.as_str()) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(last.as_str())
    }

    /// The pattern cut at blanks, for matchers that look at words.
    pub(crate) fn words(&self) -> Vec<Self> {
        let mut words = vec![Self { pieces: vec![String::new()] }];
        for (index, piece) in self.pieces.iter().enumerate() {
            if index > 0
                && let Some(word) = words.last_mut()
            {
                word.pieces.push(String::new());
            }
            for (index, part) in piece.split(' ').enumerate() {
                if index > 0 {
                    words.push(Self { pieces: vec![String::new()] });
                }
                if let Some(last) = words.last_mut().and_then(|word| word.pieces.last_mut()) {
                    last.push_str(part);
                }
            }
        }
        words.retain(|word| word.as_literal() != Some(""));
        words
    }

    /// `words` joined again by one blank, with a star at the end when `open`.
    pub(crate) fn join(words: &[Self], open: bool) -> Self {
        let mut pieces = vec![String::new()];
        for (index, word) in words.iter().enumerate() {
            if index > 0 {
                push(&mut pieces, ' ');
            }
            for (index, piece) in word.pieces.iter().enumerate() {
                if index > 0 {
                    pieces.push(String::new());
                }
                if let Some(last) = pieces.last_mut() {
                    last.push_str(piece);
                }
            }
        }
        let mut joined = Self { pieces };
        if open && !joined.is_open() {
            joined.pieces.push(String::new());
        }
        joined
    }
}

fn push(pieces: &mut [String], c: char) {
    if let Some(last) = pieces.last_mut() {
        last.push(c);
    }
}

/// Writes `text` so that [`Stars::parse`] reads it back as a literal.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '(' | ')' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// What `*` may stand for in a [`Glob`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Any text, as in names (`fnmatch`).
    Everything,
    /// Any text without `/`; `**` crosses it, as in gitignore files.
    Segment,
}

/// Whether letters must have the same case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// As written.
    Sensitive,
    /// ASCII letters compare alike, as on the file systems of macOS and Windows.
    Folded,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Char(char),
    /// One character (`?`), not `/` in paths.
    One,
    /// Any number of characters, not `/` in paths.
    Many,
    /// Any number of characters of any kind.
    Deep,
    /// The way into `**/`, which stands for nothing or for whole directories: it may be skipped together with
    /// the [`Token::Directories`] behind it.
    MaybeDirectories,
    /// Inside `**/`: left only by a `/`.
    Directories,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// A shell-style pattern: `*`, `?`, `[abc]`, `[a-z]`, `[!x]`, and `**` where [`Reach::Segment`] is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    tokens: Vec<Token>,
    reach: Reach,
}

impl Glob {
    /// A pattern over names, with the meaning of Python's `fnmatch.fnmatchcase`.
    pub(crate) fn name(text: &str) -> Self {
        Self { tokens: tokens(text, Reach::Everything), reach: Reach::Everything }
    }

    /// A pattern over paths. `\*`, `\(`, `\)` and `\\` stand for the character itself.
    pub(crate) fn path(text: &str) -> Self {
        Self { tokens: tokens(text, Reach::Segment), reach: Reach::Segment }
    }

    /// The text every match starts with.
    pub(crate) fn literal_head(&self) -> String {
        self.tokens.iter().map_while(|t| if let Token::Char(c) = t { Some(*c) } else { None }).collect()
    }

    /// Whether the pattern has no special characters at all.
    pub(crate) fn is_literal(&self) -> bool {
        self.tokens.iter().all(|t| matches!(t, Token::Char(_)))
    }

    /// Whether the whole of `text` matches.
    pub(crate) fn matches(&self, text: &str, case: Case) -> bool {
        // Most rules of a policy fail on their first characters: settle those without setting up any states.
        let mut chars = text.chars();
        for token in &self.tokens {
            match token {
                Token::Char(expected) => match chars.next() {
                    Some(c) if same(*expected, c, case) => {}
                    _ => return false,
                },
                _ => break,
            }
        }
        self.run(text, case)
    }

    fn run(&self, text: &str, case: Case) -> bool {
        let end = self.tokens.len();
        let mut now = vec![false; end + 1];
        let mut next = vec![false; end + 1];
        now[0] = true;
        self.skip_empty(&mut now);
        for c in text.chars() {
            next.fill(false);
            for (state, token) in self.tokens.iter().enumerate() {
                if !now[state] {
                    continue;
                }
                match token {
                    Token::Char(expected) => next[state + 1] |= same(*expected, c, case),
                    Token::One => next[state + 1] |= self.may_stand_for(c),
                    Token::Many => next[state] |= self.may_stand_for(c),
                    Token::Deep => next[state] = true,
                    Token::MaybeDirectories => {}
                    Token::Directories => {
                        next[state] = true;
                        next[state + 1] |= c == '/';
                    }
                    Token::Class { negated, ranges } => {
                        let inside = ranges.iter().any(|(low, high)| in_range(*low, *high, c, case));
                        next[state + 1] |= inside != *negated && self.may_stand_for(c);
                    }
                }
            }
            self.skip_empty(&mut next);
            std::mem::swap(&mut now, &mut next);
        }
        now[end]
    }

    fn may_stand_for(&self, c: char) -> bool {
        self.reach == Reach::Everything || c != '/'
    }

    /// Marks the states that can be reached without a character. One pass is enough: it only ever moves forward.
    fn skip_empty(&self, states: &mut [bool]) {
        for (state, token) in self.tokens.iter().enumerate() {
            if !states[state] {
                continue;
            }
            match token {
                Token::Many | Token::Deep => states[state + 1] = true,
                Token::MaybeDirectories => {
                    states[state + 1] = true;
                    states[state + 2] = true;
                }
                _ => {}
            }
        }
    }
}

fn same(expected: char, actual: char, case: Case) -> bool {
    expected == actual || (case == Case::Folded && expected.eq_ignore_ascii_case(&actual))
}

fn in_range(low: char, high: char, c: char, case: Case) -> bool {
    let holds = |c: char| low <= c && c <= high;
    holds(c) || (case == Case::Folded && (holds(c.to_ascii_lowercase()) || holds(c.to_ascii_uppercase())))
}

fn tokens(text: &str, reach: Reach) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::with_capacity(chars.len());
    let mut at = 0;
    while at < chars.len() {
        let (token, length) = match chars[at] {
            '\\' if reach == Reach::Segment && matches!(chars.get(at + 1), Some('*' | '(' | ')' | '\\')) => {
                (Token::Char(chars[at + 1]), 2)
            }
            '*' => {
                let stars = chars[at..].iter().take_while(|c| **c == '*').count();
                let whole_segment = at == 0 || chars[at - 1] == '/';
                if reach == Reach::Segment && stars >= 2 {
                    if whole_segment && chars.get(at + stars) == Some(&'/') {
                        tokens.push(Token::MaybeDirectories);
                        (Token::Directories, stars + 1)
                    } else {
                        (Token::Deep, stars)
                    }
                } else {
                    (Token::Many, stars)
                }
            }
            '?' => (Token::One, 1),
            '[' => class(&chars[at..]).unwrap_or((Token::Char('['), 1)),
            c => (Token::Char(c), 1),
        };
        tokens.push(token);
        at += length;
    }
    tokens
}

/// The class that starts at `chars[0] == '['`, and its length; `None` when nothing closes it (then `[` is literal).
fn class(chars: &[char]) -> Option<(Token, usize)> {
    let negated = chars.get(1) == Some(&'!');
    let start = if negated { 2 } else { 1 };
    // A `]` right at the start is a member, not the end.
    let close = (start + 1..chars.len()).find(|at| chars[*at] == ']')?;
    let members = &chars[start..close];
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < members.len() {
        if members.get(at + 1) == Some(&'-') && at + 2 < members.len() {
            // A range written backwards holds nothing, as in `fnmatch`.
            ranges.push((members[at], members[at + 2]));
            at += 3;
        } else {
            ranges.push((members[at], members[at]));
            at += 1;
        }
    }
    Some((Token::Class { negated, ranges }, close + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_crosses_everything_in_commands() {
        let pattern = Stars::parse("git * --force");
        assert!(pattern.matches("git push origin a/b --force"));
        assert!(!pattern.matches("git push origin"));
        assert!(!Stars::parse("ab*ba").matches("aba"), "head and tail may not overlap");
        assert!(Stars::parse(r"echo \*").matches("echo *"));
        assert!(!Stars::parse(r"echo \*").matches("echo x"));
    }

    #[test]
    fn words_and_join_are_inverse() {
        let pattern = Stars::parse("rm -rf * x*");
        assert_eq!(pattern.words().len(), 4);
        assert_eq!(Stars::join(&pattern.words(), false), pattern);
    }

    #[test]
    fn a_star_stays_inside_a_path_segment() {
        let cases = [
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/**", "src/a/b.rs", true),
            ("src/**", "src2/a", false),
            ("src/**/b.rs", "src/b.rs", true),
            ("src/**/b.rs", "src/x/y/b.rs", true),
            ("src/**/b.rs", "src/x/yb.rs", false),
            ("**/secret", "secret", true),
            ("**/secret", "a/secret", true),
            ("**/secret", "asecret", false),
            ("a?c", "a/c", false),
            ("a[!b]c", "a/c", false),
            ("**/a/**/b", "x/a/b", true),
            ("**/**/b", "b", true),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(Glob::path(pattern).matches(path, Case::Sensitive), expected, "{pattern} on {path}");
        }
        assert!(Glob::path("SRC/*").matches("src/a", Case::Folded));
    }

    #[test]
    fn names_follow_fnmatch() {
        let cases = [
            ("fs.*", "fs.write", true),
            ("[!f]s.*", "fs.write", false),
            ("[]a]x", "]x", true),
            ("[z-a]", "m", false),
            ("[abc", "[abc", true),
            ("a**b", "axyb", true),
            ("mcp__*", "mcp__a/b", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(Glob::name(pattern).matches(name, Case::Sensitive), expected, "{pattern} on {name}");
        }
    }
}
