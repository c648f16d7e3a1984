//! Patterns over tool names.

/// A pattern over names: `*` is any text, `?` one character, `[abc]`, `[a-z]` and `[!abc]` one of some; everything else is itself.
/// A bracket that is not closed is itself too.
///
/// Matching takes time in proportion to the name, whatever the pattern: there is one place to go back to, and it only moves on.
///
/// ```
/// use hanzo_hooks::Glob;
/// assert!(Glob::new("fs.*").matches("fs.write"));
/// assert!(!Glob::new("fs.*").matches("vcs.diff"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    AnyText,
    AnyOne,
    One(char),
    Class { ranges: Vec<(char, char)>, negated: bool },
}

impl Part {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::AnyText => false,
            Self::AnyOne => true,
            Self::One(own) => *own == c,
            Self::Class { ranges, negated } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated
            }
        }
    }
}

impl Glob {
    /// Reads a pattern; every text is one.
    pub fn new(pattern: &str) -> Self {
        let chars: Vec<char> = pattern.chars().collect();
        let mut parts = Vec::with_capacity(chars.len());
        let mut at = 0;
        while let Some(c) = chars.get(at) {
            at += 1;
            match c {
                '*' if parts.last() == Some(&Part::AnyText) => {}
                '*' => parts.push(Part::AnyText),
                '?' => parts.push(Part::AnyOne),
                '[' => match class(&chars[at..]) {
                    Some((part, length)) => {
                        parts.push(part);
                        at += length;
                    }
                    None => parts.push(Part::One('[')),
                },
                other => parts.push(Part::One(*other)),
            }
        }
        Self { parts }
    }

    /// Whether the whole of `name` fits the pattern.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut part, mut at) = (0, 0);
        // After a `*`: the part behind it, and how far into the name it has been taken to reach.
        let mut retry: Option<(usize, usize)> = None;
        while at < name.len() {
            match self.parts.get(part) {
                Some(Part::AnyText) => {
                    part += 1;
                    retry = Some((part, at));
                }
                Some(own) if own.takes(name[at]) => {
                    part += 1;
                    at += 1;
                }
                _ => match retry {
                    Some((behind, reached)) => {
                        part = behind;
                        at = reached + 1;
                        retry = Some((behind, at));
                    }
                    None => return false,
                },
            }
        }
        self.parts[part..].iter().all(|rest| *rest == Part::AnyText)
    }
}

/// The class that begins behind a `[`, and its length with the closing bracket.
fn class(rest: &[char]) -> Option<(Part, usize)> {
    let negated = matches!(rest.first(), Some('!' | '^'));
    let start = usize::from(negated);
    // A `]` right at the beginning is one of the characters.
    let end = (start + 1..rest.len()).find(|at| rest[*at] == ']')?;
    let mut ranges = Vec::new();
    let mut at = start;
    while at < end {
        if at + 2 < end && rest[at + 1] == '-' {
            ranges.push((rest[at], rest[at + 2]));
            at += 3;
        } else {
            ranges.push((rest[at], rest[at]));
            at += 1;
        }
    }
    Some((Part::Class { ranges, negated }, end + 1))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_mean_what_they_do_in_a_shell() {
        let cases = [
            ("*", "anything", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("fs.*", "fs.write", true),
            ("fs.*", "fs", false),
            ("*.exec", "proc.exec", true),
            ("*.exec", "proc.exec2", false),
            ("mcp__*__get*", "mcp__a__b__get_x", true),
            ("fs.?m", "fs.rm", true),
            ("fs.?m", "fs.m", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[a", "[a", true),
            ("a**b", "ab", true),
            ("ü?", "üß", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(Glob::new(pattern).matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_made_to_be_slow_is_not() {
        let pattern = Glob::new(&"*a".repeat(200));
        let name = "a".repeat(199) + &"b".repeat(20_000);
        let begun = Instant::now();
        assert!(!pattern.matches(&name));
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }

    proptest! {
        #[test]
        fn any_text_is_a_pattern(pattern in ".{0,40}", name in ".{0,40}") {
            let _ = Glob::new(&pattern).matches(&name);
        }

        #[test]
        fn a_name_fits_itself_and_itself_with_stars(name in "[a-z_.]{0,20}", cut in 0usize..20) {
            prop_assert!(Glob::new(&name).matches(&name));
            let cut = cut.min(name.len());
            let starred = format!("{}*{}", &name[..cut], &name[cut..]);
            prop_assert!(Glob::new(&starred).matches(&name));
        }
    }
}
