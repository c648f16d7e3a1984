//! The text of one paragraph with its looks, and how it is broken into lines.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::chars::{
    is_full_width_stop, is_ideograph, is_simple_wide, sticks_to_the_left, sticks_to_the_right,
};
use crate::sanitize::clean_text;
use crate::style::{Line, Style};

/// Whether addresses in a run are made into links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunKind {
    Prose,
    Verbatim,
}

#[derive(Debug, Clone)]
struct Run {
    end: usize,
    style: Style,
    link: Option<Arc<str>>,
    kind: RunKind,
}

/// Text with looks; a line break in it is a forced one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rich {
    text: String,
    runs: Vec<Run>,
    /// A line break of the source that becomes a space, or nothing between two ideographs.
    soft_break: bool,
}

impl Rich {
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Adds text from the document, made safe for the screen.
    pub(crate) fn push(&mut self, text: &str, style: Style, link: Option<&Arc<str>>, kind: RunKind) {
        let text = clean_text(text);
        if std::mem::take(&mut self.soft_break) {
            let ideographs = matches!(
                (self.text.chars().next_back(), text.chars().next()),
                (Some(before), Some(after)) if is_ideograph(before) && is_ideograph(after)
            );
            if !ideographs {
                self.append(" ", style, link, kind);
            }
        }
        self.append(&text, style, link, kind);
    }

    /// Adds a line break.
    pub(crate) fn hard_break(&mut self, style: Style) {
        self.soft_break = false;
        self.append("\n", style, None, RunKind::Prose);
    }

    /// Adds a place where the source had a line break.
    pub(crate) fn soft_break(&mut self) {
        self.soft_break = !self.text.is_empty();
    }

    fn append(&mut self, text: &str, style: Style, link: Option<&Arc<str>>, kind: RunKind) {
        if text.is_empty() {
            return;
        }
        let joint = self.text.len();
        self.text.push_str(text);
        let end = self.text.len();
        match self.runs.last_mut() {
            Some(last) if last.style == style && last.kind == kind && last.link.as_ref() == link => {
                last.end = end;
                return;
            }
            // A grapheme has one look: cut in two it would be wider than it is.
            Some(last) => last.end = grapheme_end(&self.text, joint),
            None => {}
        }
        if self.runs.last().is_none_or(|last| last.end < end) {
            self.runs.push(Run { end, style, link: link.cloned(), kind });
        }
    }

    /// Makes links of the bare addresses in prose.
    pub(crate) fn link_addresses(&mut self, style: Style) {
        if next_address(&self.text, 0).is_none() {
            return;
        }
        let mut runs = Vec::with_capacity(self.runs.len() + 2);
        let mut start = 0;
        for run in self.runs.drain(..) {
            let end = run.end;
            if run.link.is_some() || run.kind == RunKind::Verbatim {
                runs.push(run);
            } else {
                let mut at = start;
                while let Some(found) =
                    find_address(&self.text[at..end], at > 0 && is_word_end(&self.text[..at]))
                {
                    let address = &self.text[at + found.start..at + found.end];
                    let target = if address.starts_with("www.") {
                        format!("http://{address}")
                    } else {
                        address.to_owned()
                    };
                    if found.start > 0 {
                        runs.push(Run { end: at + found.start, ..run.clone() });
                    }
                    at += found.end;
                    runs.push(Run {
                        end: at,
                        style: run.style.patched(style),
                        link: Some(Arc::from(target)),
                        kind: RunKind::Verbatim,
                    });
                }
                if at < end {
                    runs.push(run);
                }
            }
            start = end;
        }
        self.runs = runs;
    }

    /// The text broken at `width` columns.
    pub(crate) fn wrapped(&self, width: usize) -> Vec<Range<usize>> {
        let mut lines = Vec::new();
        self.break_lines(width, Breaks::AtWords, &mut lines);
        lines
    }

    /// Breaks the text at words.
    pub(crate) fn wrap(&self, width: usize, lines: &mut Vec<Range<usize>>) {
        self.break_lines(width, Breaks::AtWords, lines);
    }

    /// Breaks the text into parts of at most `width` columns.
    pub(crate) fn break_lines(&self, width: usize, breaks: Breaks, lines: &mut Vec<Range<usize>>) {
        break_text(&self.text, width.max(1), breaks, lines);
    }

    /// Empties the text; its room stays.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.runs.clear();
        self.soft_break = false;
    }

    /// The columns of the longest line when nothing is wrapped.
    pub(crate) fn natural_width(&self) -> usize {
        self.text.split('\n').map(text_width).max().unwrap_or(0)
    }

    /// Adds `: ` after the name of a field.
    pub(crate) fn add_label_end(&mut self, style: Style) {
        if !self.text.is_empty() {
            self.append(": ", style, None, RunKind::Verbatim);
        }
    }

    /// Adds another text after this one.
    pub(crate) fn append_rich(&mut self, other: &Rich) {
        let mut start = 0;
        for run in &other.runs {
            self.append(&other.text[start..run.end], run.style, run.link.as_ref(), run.kind);
            start = run.end;
        }
    }

    /// Breaks the text at `width` columns, with lines after the first indented by `hang`.
    pub(crate) fn wrap_into(&self, width: usize, hang: usize, lines: &mut Vec<Line>) {
        let hang = if width > hang * 4 { hang } else { 0 };
        let mut run = 0;
        for (index, range) in self.wrapped(width - hang).iter().enumerate() {
            let mut line = Line::default();
            if index > 0 {
                line.push(&spaces(hang), Style::PLAIN, None);
            }
            self.copy_to(range, &mut run, &mut line);
            lines.push(line);
        }
    }

    /// Adds a part of the text to a line. `run` remembers where the last part ended, as parts are asked for in order.
    pub(crate) fn copy_to(&self, range: &Range<usize>, run: &mut usize, line: &mut Line) {
        let mut at = range.start;
        while at < range.end {
            let Some(current) = self.runs.get(*run) else { return };
            if current.end <= at {
                *run += 1;
                continue;
            }
            let end = current.end.min(range.end);
            line.push(&self.text[at..end], current.style, current.link.as_ref());
            at = end;
        }
    }
}

/// The end of the grapheme that `joint` is inside of, or `joint` when it is between two.
fn grapheme_end(text: &str, joint: usize) -> usize {
    let bytes = text.as_bytes();
    let ascii = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_none_or(u8::is_ascii);
    if ascii(joint.checked_sub(1)) && ascii(Some(joint)) {
        return joint;
    }
    let mut cursor = GraphemeCursor::new(joint, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
        _ => joint,
    }
}

/// The columns a text takes.
pub(crate) fn text_width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.graphemes(true).map(UnicodeWidthStr::width).sum() }
}

fn is_word_end(text: &str) -> bool {
    text.chars().next_back().is_some_and(|c| c.is_alphanumeric() && !is_ideograph(c))
}

/// The next place where `http://`, `https://` or `www.` stands, and how long that is.
fn next_address(text: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    // Both marks are rare in prose, and their middle is what tells them from other words.
    let mut after = from;
    loop {
        let at = after + memchr::memchr2(b':', b'w', &bytes[after..])?;
        if bytes[at] == b':' && bytes[at..].starts_with(b"://") {
            let before = &bytes[from..at];
            let scheme = [b"https".as_slice(), b"http"].into_iter().find(|scheme| before.ends_with(scheme));
            if let Some(scheme) = scheme {
                return Some((at - scheme.len(), scheme.len() + 3));
            }
        } else if bytes[at..].starts_with(b"www.") {
            return Some((at, 4));
        }
        after = at + 1;
    }
}

/// The first bare address in `text`, by GFM's rules for where it ends.
fn find_address(text: &str, after_word: bool) -> Option<Range<usize>> {
    let mut from = 0;
    loop {
        let (start, scheme) = next_address(text, from)?;
        let in_word = if start == 0 { after_word } else { is_word_end(&text[..start]) };
        let rest = &text[start + scheme..];
        let host = rest.starts_with(|c: char| c.is_alphanumeric() || c == '[');
        if in_word || !host {
            from = start + scheme;
            continue;
        }
        let stop = |c: char| {
            c.is_whitespace() || c == '<' || c == '>' || c == '"' || c == '`' || is_full_width_stop(c)
        };
        let mut end = start + scheme + rest.find(stop).unwrap_or(rest.len());
        loop {
            let address = &text[start..end];
            let Some(last) = address.chars().next_back() else { break };
            let trailing = matches!(last, '?' | '!' | '.' | ',' | ':' | '*' | '_' | '~' | '\'' | ';')
                || (last == ')' && address.matches(')').count() > address.matches('(').count())
                || (last == ']' && address.matches(']').count() > address.matches('[').count());
            if !trailing {
                break;
            }
            end -= last.len_utf8();
        }
        if end > start + scheme {
            return Some(start..end);
        }
        from = start + scheme;
    }
}

/// Where a line may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breaks {
    /// Between words and between ideographs.
    AtWords,
    /// Where it is full: for code.
    WhenFull,
}

const SPACES: &str =
    "                                                                                                ";

/// So many spaces.
pub(crate) fn spaces(count: usize) -> Cow<'static, str> {
    SPACES.get(..count).map_or_else(|| Cow::Owned(" ".repeat(count)), Cow::Borrowed)
}

struct Break {
    /// Where the line ends.
    end: usize,
    /// Where the next one begins.
    next: usize,
    /// The columns from the start of the line to `next`.
    width: usize,
}

/// Breaks a text into parts of at most `limit` columns.
pub(crate) fn break_text(text: &str, limit: usize, breaks: Breaks, lines: &mut Vec<Range<usize>>) {
    let mut offset = 0;
    for line in text.split('\n') {
        wrap_line(text, offset, offset + line.len(), limit, breaks, lines);
        offset += line.len() + 1;
    }
}

fn wrap_line(
    text: &str,
    mut start: usize,
    end: usize,
    limit: usize,
    breaks: Breaks,
    lines: &mut Vec<Range<usize>>,
) {
    // One column per byte at most, but for the characters that are wider than they are long: none.
    if end - start <= limit {
        lines.push(start..trimmed(text, start, end, breaks));
        return;
    }
    let bytes = text.as_bytes();
    let mut at = start;
    let mut columns = 0;
    let mut opportunity: Option<Break> = None;
    let mut previous = ' ';
    let mut previous_wide = false;
    while at < end {
        let byte = bytes[at];
        if byte == b' ' && breaks == Breaks::AtWords {
            columns += 1;
            match &mut opportunity {
                Some(last) if last.next == at && last.end < at => {
                    last.next = at + 1;
                    last.width = columns;
                }
                _ => opportunity = Some(Break { end: at, next: at + 1, width: columns }),
            }
            previous = ' ';
            previous_wide = false;
            at += 1;
            continue;
        }
        let (len, width, first) = cluster(text, at, end, limit);
        let wide = width == 2 && !first.is_ascii();
        if breaks == Breaks::AtWords
            && (wide || previous_wide)
            && previous != ' '
            && !sticks_to_the_left(first)
            && !sticks_to_the_right(previous)
        {
            opportunity = Some(Break { end: at, next: at, width: columns });
        }
        while columns + width > limit && at > start {
            match opportunity.take() {
                Some(last) if last.next > start => {
                    lines.push(start..last.end.max(start));
                    start = last.next;
                    columns -= last.width;
                }
                _ => {
                    lines.push(start..at);
                    start = at;
                    columns = 0;
                }
            }
        }
        columns += width;
        previous = first;
        previous_wide = wide;
        at += len;
    }
    lines.push(start..trimmed(text, start, end, breaks));
}

fn trimmed(text: &str, start: usize, end: usize, breaks: Breaks) -> usize {
    match breaks {
        Breaks::AtWords => start + text[start..end].trim_end_matches(' ').len(),
        Breaks::WhenFull => end,
    }
}

/// The grapheme at `at`: its length, its columns, its first character. One that is wider than a whole line (a chain of Indic
/// conjuncts can be) is taken apart.
fn cluster(text: &str, at: usize, end: usize, limit: usize) -> (usize, usize, char) {
    let bytes = text.as_bytes();
    if bytes[at].is_ascii() && (at + 1 >= end || bytes[at + 1].is_ascii()) {
        return (1, 1, bytes[at] as char);
    }
    let rest = &text[at..end];
    let mut chars = rest.chars();
    let first = chars.next().unwrap_or(' ');
    if is_simple_wide(first) && chars.next().is_none_or(|next| next.is_ascii() || is_simple_wide(next)) {
        return (first.len_utf8(), 2, first);
    }
    let grapheme = rest.graphemes(true).next().unwrap_or(rest);
    let width = grapheme.width();
    if width > limit.max(2) {
        return (first.len_utf8(), char_width(first), first);
    }
    (grapheme.len(), width, first)
}

/// The columns of one character, for tab stops.
pub(crate) fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        let mut rich = Rich::default();
        rich.push(text, Style::PLAIN, None, RunKind::Prose);
        rich.wrapped(width).into_iter().map(|range| rich.text[range].to_owned()).collect()
    }

    #[test]
    fn lines_break_at_spaces_and_long_words_are_cut() {
        assert_eq!(wrapped("the quick brown fox", 9), ["the quick", "brown fox"]);
        assert_eq!(wrapped("a  b", 1), ["a", "b"]);
        assert_eq!(wrapped("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped("x abcdefgh", 4), ["x", "abcd", "efgh"]);
    }

    #[test]
    fn ideographs_break_anywhere_but_not_before_a_stop() {
        assert_eq!(wrapped("你好世界", 4), ["你好", "世界"]);
        assert_eq!(wrapped("你好，世界", 4), ["你", "好，", "世界"]);
        assert_eq!(wrapped("（你好）世", 6), ["（你", "好）世"]);
        assert_eq!(wrapped("使用cargo构建", 8), ["使用", "cargo构", "建"]);
    }

    #[test]
    fn a_grapheme_is_never_cut() {
        let family = "👨‍👩‍👧‍👦";
        assert_eq!(wrapped(&family.repeat(3), 4), [family.repeat(2), family.to_owned()]);
        assert_eq!(wrapped("e\u{301}e\u{301}e\u{301}", 2), ["e\u{301}e\u{301}", "e\u{301}"]);
    }

    #[test]
    fn a_grapheme_has_one_look() {
        let mut rich = Rich::default();
        for (text, style) in [("👨\u{200d}", Style::PLAIN), ("👩x", Style::PLAIN.fg(crate::Color::Red))] {
            rich.push(text, style, None, RunKind::Prose);
        }
        let mut line = Line::default();
        rich.copy_to(&(0..rich.len()), &mut 0, &mut line);
        let spans: Vec<&str> = line.spans.iter().map(|span| span.text.as_str()).collect();
        assert_eq!((spans, line.width()), (vec!["👨\u{200d}👩", "x"], 3));
    }

    #[test]
    fn a_grapheme_wider_than_the_line_is_taken_apart() {
        let chain = "क्".repeat(6) + "क";
        assert!(chain.graphemes(true).count() == 1 && chain.width() > 4);
        assert!(wrapped(&chain, 4).iter().all(|line| text_width(line) <= 4));
        assert_eq!(wrapped(&chain, 4).concat(), chain);
    }

    #[test]
    fn addresses_end_before_punctuation() {
        for (text, address) in [
            ("see https://a.b/c?d=e.", "https://a.b/c?d=e"),
            ("(https://a.b/c_(d))", "https://a.b/c_(d)"),
            ("www.a.b, then", "www.a.b"),
            ("看https://a.b/c。好", "https://a.b/c"),
        ] {
            let found = find_address(text, false);
            let expected = text.find(address).unwrap();
            assert_eq!(found, Some(expected..expected + address.len()), "{text}");
        }
        assert_eq!(find_address("xhttp://a.b", false), None);
        assert_eq!(find_address("http:// nothing", false), None);
    }
}
