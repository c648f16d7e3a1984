//! Text as a terminal shows it: measured, cut, broken into rows, and free of whatever would steer the terminal.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// How many columns a tab takes where it is shown as blanks.
const TAB: &str = "    ";

/// How many columns `text` takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// `text` cut to `most` columns, with `…` where something is missing.
pub fn clip(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        if used + grapheme.width() + 1 > most {
            break;
        }
        used += grapheme.width();
        cut.push_str(grapheme);
    }
    if most > 0 {
        cut.push('…');
    }
    cut
}

/// `text` cut to `most` columns from the left, for paths whose end matters.
pub fn clip_left(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    if most == 0 {
        return String::new();
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut used = 1;
    for grapheme in text.graphemes(true).rev() {
        if used + grapheme.width() > most {
            break;
        }
        used += grapheme.width();
        kept.push(grapheme);
    }
    kept.push("…");
    kept.into_iter().rev().collect()
}

/// `text` without escape sequences and control characters; line breaks stay, tabs become blanks.
pub fn clean(text: &str) -> String {
    let harmless = |c: char| (c == '\n' || !c.is_control()) && !is_direction_mark(c);
    if text.chars().all(harmless) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str(TAB),
            '\x1b' => match chars.next() {
                Some('[') => while chars.next().is_some_and(|c| !('\x40'..='\x7e').contains(&c)) {},
                Some(']' | 'P' | '_' | '^' | 'X') => {
                    while let Some(c) = chars.next() {
                        if c == '\x07' || (c == '\x1b' && chars.next_if_eq(&'\\').is_some()) {
                            break;
                        }
                    }
                }
                _ => {}
            },
            c if c.is_control() => {}
            // Marks that turn the direction of what follows can hide what a line really says.
            c if is_direction_mark(c) => {}
            c => out.push(c),
        }
    }
    out
}

fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

/// One line of `text`: cleaned, breaks and runs of blanks joined.
pub fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `text` in rows of at most `width` columns, broken at blanks where that is possible. Line breaks are kept.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| wrap_line(line, width)).map(|row| row.trim_end().to_owned()).collect()
}

/// The rows of one line, together exactly the line: nothing is dropped at a break, so that a place in the line can be found
/// in them.
pub fn wrap_line(line: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    if line.width() <= width {
        return vec![line.to_owned()];
    }
    let mut rows = Vec::new();
    let mut row = String::new();
    let mut used = 0;
    // Where the row could be broken: after the last blank.
    let mut after_blank = 0;
    for grapheme in line.graphemes(true) {
        let columns = grapheme.width();
        // Blanks may hang over the edge; they are not seen there.
        if used + columns > width && grapheme != " " {
            let rest = if after_blank > 0 { row.split_off(after_blank) } else { String::new() };
            used = rest.width();
            rows.push(std::mem::replace(&mut row, rest));
            after_blank = 0;
        }
        row.push_str(grapheme);
        used += columns;
        if grapheme == " " {
            after_blank = row.len();
        }
    }
    rows.push(row);
    rows
}

/// How well `text` matches `query` as letters in order, case ignored; greater is better, `None` is not at all. Matches at the
/// starts of words and in a run count more, long texts less.
pub fn fuzzy(query: &str, text: &str) -> Option<i64> {
    if query.is_empty() {
        return Some(0);
    }
    let letters: Vec<char> = text.chars().collect();
    let mut score = 0;
    let mut from = 0;
    let mut last: Option<usize> = None;
    for wanted in query.chars().filter(|c| !c.is_whitespace()) {
        let found = (from..letters.len()).find(|&at| same(letters[at], wanted))?;
        // A later start of a word is worth more than an earlier letter inside one.
        let at = (found..letters.len())
            .take(64)
            .find(|&at| same(letters[at], wanted) && starts_word(&letters, at))
            .filter(|&at| last.is_none_or(|last| found != last + 1 || at == found))
            .unwrap_or(found);
        score += 1;
        if starts_word(&letters, at) {
            score += 8;
        }
        if last.is_some_and(|last| at == last + 1) {
            score += 6;
        }
        last = Some(at);
        from = at + 1;
    }
    let length = i64::try_from(letters.len()).unwrap_or(i64::MAX / 2);
    Some(score * 100 - length)
}

fn same(one: char, other: char) -> bool {
    one == other || one.to_lowercase().eq(other.to_lowercase())
}

fn starts_word(letters: &[char], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| letters[before]) else { return true };
    !before.is_alphanumeric() || (before.is_lowercase() && letters[at].is_uppercase())
}

/// The first of some ways to say something that fits; where none does, as much of the last one as does.
pub fn fitting(ways: &[&str], most: usize) -> String {
    let fits = ways.iter().find(|way| width(way) <= most);
    fits.map_or_else(|| clip(ways.last().copied().unwrap_or_default(), most), |way| (*way).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        assert_eq!(
            clean("a\x1b[31mb\x1b[0m\tc\r\n\x1b]0;title\x07d\x1b]8;;x\x1b\\e\u{9b}f\u{202e}"),
            "ab    c\ndef"
        );
        assert_eq!(one_line("  a\n\tb\x07 "), "a b");
    }

    #[test]
    fn rows_break_at_blanks_and_lose_nothing() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("日本語テキスト", 5), ["日本", "語テ", "キス", "ト"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap_line("one two three", 8).concat(), "one two three");
        assert_eq!(wrap("x", 0), ["x"], "no width at all still shows something");
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(clip("abcdef", 4), "abc…");
        assert_eq!(clip("日本語", 4), "日…");
        assert_eq!(clip("abc", 3), "abc");
        assert_eq!(clip_left("src/deep/file.rs", 8), "…file.rs");
    }

    #[test]
    fn letters_in_order_match_and_word_starts_count() {
        assert!(fuzzy("xyz", "abc").is_none());
        let score = |text| fuzzy("cm", text).unwrap();
        assert!(score("src/composer/mod.rs") > score("src/accumulate.rs"));
        assert!(fuzzy("mod", "src/mod.rs").unwrap() > fuzzy("mod", "src/mxoxd.rs").unwrap());
        assert!(fuzzy("", "anything").is_some());
    }
}
