//! Unified diffs: line numbers, signs, and the words that changed within a line.

use hanzo_md_render::plain;
use ratatui::style::Style;
use ratatui::text::Line;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::RenderContext;
use super::rows::{Breaking, Rows};

/// Lines longer than this are not compared word by word.
const LONGEST_COMPARED: usize = 2_000;

/// Of two lines at least this share (in percent) has to be the same for their words to be compared: less is another line, and
/// marks all over it would hide that.
const LEAST_COMMON: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Same,
    Added,
    Removed,
}

#[derive(Debug)]
enum Part<'a> {
    /// The name of a file.
    File(&'a str),
    /// Lines were left out here.
    Gap,
    Line {
        sign: Sign,
        number: u64,
        text: &'a str,
    },
    /// What is neither: `\ No newline at end of file`, a note about what was left out.
    Note(&'a str),
}

/// A diff that was read.
#[derive(Debug)]
pub(super) struct Diff<'a> {
    parts: Vec<Part<'a>>,
    pub(super) added: usize,
    pub(super) removed: usize,
}

impl<'a> Diff<'a> {
    /// Reads the unified diff of a card; nothing when the text is none.
    pub(super) fn parse(text: &'a str) -> Option<Diff<'a>> {
        let (mut diff, files) = Diff::read(text)?;
        // The name of a single file is in the card already.
        if files == 1 {
            diff.parts.retain(|part| !matches!(part, Part::File(_)));
        }
        Some(diff)
    }

    /// A unified diff, and of how many files it is.
    fn read(text: &'a str) -> Option<(Diff<'a>, usize)> {
        let mut diff = Diff { parts: Vec::new(), added: 0, removed: 0 };
        let mut files = 0;
        let mut hunk: Option<Hunk> = None;
        for line in text.lines() {
            if let Some(open) = hunk.as_mut().filter(|hunk| hunk.old_left > 0 || hunk.new_left > 0)
                && let Some(part) = open.read(line)
            {
                match part {
                    Part::Line { sign: Sign::Added, .. } => diff.added += 1,
                    Part::Line { sign: Sign::Removed, .. } => diff.removed += 1,
                    _ => {}
                }
                diff.parts.push(part);
                continue;
            }
            if let Some(header) = Hunk::header(line) {
                if matches!(diff.parts.last(), Some(Part::Line { .. } | Part::Note(_))) {
                    diff.parts.push(Part::Gap);
                }
                hunk = Some(header);
            } else if let Some(name) = line.strip_prefix("+++ ") {
                files += 1;
                diff.parts.push(Part::File(file_name(name)));
                hunk = None;
            } else if line.starts_with("--- ") || is_git_header(line) || line.is_empty() {
                hunk = None;
            } else {
                diff.parts.push(Part::Note(line));
            }
        }
        if !diff.parts.iter().any(|part| matches!(part, Part::Line { .. })) {
            return None;
        }
        Some((diff, files))
    }

    /// How many rows there are when nothing is broken.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Adds the first `most` parts.
    pub(super) fn draw(&self, most: usize, rows: &mut Rows<'_>, context: &RenderContext) {
        let theme = &context.theme;
        let highest = self.parts.iter().filter_map(|part| match part {
            Part::Line { number, .. } => Some(*number),
            _ => None,
        });
        let digits = highest.max().unwrap_or(0).to_string().len();
        let parts = &self.parts[..most.min(self.parts.len())];
        let partners = partners(parts);
        for (index, part) in parts.iter().enumerate() {
            match part {
                Part::File(name) => {
                    rows.indent("  ", "  ", theme.dim);
                    rows.cut(name, theme.strong);
                }
                Part::Gap => {
                    rows.indent("  ", "  ", theme.dim);
                    rows.cut(context.mark(&format!("{:>digits$}", "⋮"), "Further down:"), theme.dim);
                }
                Part::Note(note) => {
                    rows.indent("  ", "  ", theme.dim);
                    rows.cut(note, theme.dim);
                }
                Part::Line { sign, number, text } => {
                    let (mark, word, style, changed) = match sign {
                        Sign::Same => (' ', "", theme.dim, theme.dim),
                        Sign::Added => ('+', "added ", theme.added, theme.added_word),
                        Sign::Removed => ('-', "removed ", theme.removed, theme.removed_word),
                    };
                    if context.in_words() {
                        rows.indent("", "", style);
                        rows.output(&format!("{word}{number}: {text}"), style);
                        continue;
                    }
                    rows.indent(&format!("  {number:>digits$} {mark} "), &" ".repeat(digits + 5), style);
                    let spans = match partners[index].map(|partner| &parts[partner]) {
                        Some(Part::Line { text: other, .. }) => words(text, other, *sign, style, changed),
                        _ => vec![(plain::expand_tabs(text, 4).into_owned(), style)],
                    };
                    rows.spans(&spans, Breaking::WhenFull);
                }
            }
        }
    }
}

/// A diff that stands alone, with the names of its files; a text that is none as it is.
pub fn diff(text: &str, context: &RenderContext) -> Vec<Line<'static>> {
    let mut rows = Rows::new(context);
    match Diff::read(text) {
        Some((diff, _)) => diff.draw(usize::MAX, &mut rows, context),
        None => rows.block(text, context.theme.dim),
    }
    rows.into_lines()
}

/// Where a hunk is.
#[derive(Debug)]
struct Hunk {
    old: u64,
    new: u64,
    old_left: u64,
    new_left: u64,
}

impl Hunk {
    fn header(line: &str) -> Option<Hunk> {
        let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let range = |text: &str| -> Option<(u64, u64)> {
            let (start, count) = text.split_once(',').unwrap_or((text, "1"));
            Some((start.parse().ok()?, count.parse().ok()?))
        };
        let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
        Some(Hunk { old, new, old_left, new_left })
    }

    fn read<'a>(&mut self, line: &'a str) -> Option<Part<'a>> {
        let (sign, text) = match line.as_bytes().first() {
            Some(b'+') => (Sign::Added, &line[1..]),
            Some(b'-') => (Sign::Removed, &line[1..]),
            Some(b' ') => (Sign::Same, &line[1..]),
            None => (Sign::Same, line),
            Some(b'\\') => return Some(Part::Note(line)),
            _ => return None,
        };
        let number = if sign == Sign::Removed { self.old } else { self.new };
        if sign != Sign::Added {
            self.old = self.old.saturating_add(1);
            self.old_left = self.old_left.saturating_sub(1);
        }
        if sign != Sign::Removed {
            self.new = self.new.saturating_add(1);
            self.new_left = self.new_left.saturating_sub(1);
        }
        Some(Part::Line { sign, number, text })
    }
}

fn file_name(name: &str) -> &str {
    let name = name.split('\t').next().unwrap_or(name);
    name.strip_prefix("b/").unwrap_or(name)
}

fn is_git_header(line: &str) -> bool {
    [
        "diff --git ",
        "index ",
        "new file mode ",
        "deleted file mode ",
        "old mode ",
        "new mode ",
        "similarity index ",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

/// For each removed line the added one that stands in its place, and the other way round: the first of a run of removed lines
/// with the first of the added ones after it, and so on.
fn partners(parts: &[Part<'_>]) -> Vec<Option<usize>> {
    let mut partners = vec![None; parts.len()];
    let sign = |at: usize| match parts.get(at) {
        Some(Part::Line { sign, .. }) => Some(*sign),
        _ => None,
    };
    let mut at = 0;
    while at < parts.len() {
        let run = |from: usize, wanted: Sign| {
            (from..parts.len()).take_while(|at| sign(*at) == Some(wanted)).count()
        };
        let removed = run(at, Sign::Removed);
        let added = run(at + removed, Sign::Added);
        // Only a run of as many lines can be told to be the same ones.
        if removed == added {
            for offset in 0..removed {
                partners[at + offset] = Some(at + removed + offset);
                partners[at + removed + offset] = Some(at + offset);
            }
        }
        at += (removed + added).max(1);
    }
    partners
}

/// The spans of a line whose other version is known.
fn words(text: &str, other: &str, sign: Sign, style: Style, changed: Style) -> Vec<(String, Style)> {
    let shown = plain::expand_tabs(text, 4).into_owned();
    let other = plain::expand_tabs(other, 4).into_owned();
    if shown.len().max(other.len()) > LONGEST_COMPARED {
        return vec![(shown, style)];
    }
    // Always from the old version to the new one, so that both lines show the same change.
    let (old, new) = if sign == Sign::Removed { (&shown, &other) } else { (&other, &shown) };
    let (old, new) = (tokens(old), tokens(new));
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let mine = if sign == Sign::Removed { &old } else { &new };
    let mut spans: Vec<(String, Style)> = Vec::new();
    let mut common = 0;
    for op in ops {
        let equal = matches!(op, DiffOp::Equal { .. });
        let range = if sign == Sign::Removed { op.old_range() } else { op.new_range() };
        let part: String = mine[range].concat();
        if equal {
            common += part.trim().len();
        }
        if !part.is_empty() {
            spans.push((part, if equal { style } else { changed }));
        }
    }
    let longest = shown.trim().len().max(other.trim().len()).max(1);
    if common * 100 < longest * LEAST_COMMON {
        return vec![(shown, style)];
    }
    spans
}

/// Words, runs of blanks, and other characters one by one.
fn tokens(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 0,
        c if c.is_whitespace() => 1,
        _ => 2,
    };
    let mut tokens = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (at, c) in text.char_indices() {
        let now = class(c);
        if last.is_some_and(|last| last != now || now == 2) {
            tokens.push(&text[start..at]);
            start = at;
        }
        last = Some(now);
    }
    if start < text.len() {
        tokens.push(&text[start..]);
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/src/x.rs\n+++ b/src/x.rs\n@@ -9,3 +9,4 @@ fn main\n same\n-let a = 1;\n+let a = 2;\n+let b;\n end\n";

    #[test]
    fn a_diff_is_counted_and_numbered() {
        let diff = Diff::parse(DIFF).unwrap();
        assert_eq!((diff.added, diff.removed, diff.len()), (2, 1, 5));
        let numbers: Vec<(char, u64)> = diff
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Line { sign, number, .. } => Some((
                    match sign {
                        Sign::Same => ' ',
                        Sign::Added => '+',
                        Sign::Removed => '-',
                    },
                    *number,
                )),
                _ => None,
            })
            .collect();
        assert_eq!(numbers, [(' ', 9), ('-', 10), ('+', 10), ('+', 11), (' ', 12)]);
    }

    #[test]
    fn a_line_that_looks_like_a_header_is_content_inside_a_hunk() {
        let diff = Diff::parse("@@ -1,1 +1,1 @@\n--- old\n+++ new\n").unwrap();
        assert_eq!((diff.added, diff.removed, diff.len()), (1, 1, 2));
    }

    #[test]
    fn what_is_no_diff_is_not_read_as_one() {
        for text in ["", "hello", "@@ -1 +1 @@", "@@ -x +1 @@\n+a", "--- a\n+++ b"] {
            assert!(Diff::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn changed_words_are_marked_and_other_lines_are_not() {
        let (plain, marked) = (Style::new(), Style::new().add_modifier(ratatui::style::Modifier::BOLD));
        let spans = words("let a = 1;", "let a = 2;", Sign::Removed, plain, marked);
        assert_eq!(spans, [("let a = ".into(), plain), ("1".into(), marked), (";".into(), plain)]);
        assert_eq!(words("completely", "different", Sign::Added, plain, marked).len(), 1);
    }
}
