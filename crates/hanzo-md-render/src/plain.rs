//! Plain text for the same screen: cleaned, measured and broken as the renderer does it with the text of a document.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::rich::{Breaks, break_text, char_width, text_width};
use crate::sanitize::{clean_line, clean_text};

/// One line without escape sequences and control characters: tabs and line breaks become spaces, characters that reorder text
/// are shown by their code.
pub fn clean(text: &str) -> Cow<'_, str> {
    clean_text(text)
}

/// As [`clean`], with tabs reaching to the next of the stops that are `tab_width` columns apart.
pub fn expand_tabs(line: &str, tab_width: usize) -> Cow<'_, str> {
    let line = clean_line(line);
    if !line.contains('\t') {
        return line;
    }
    let stop = tab_width.max(1);
    let mut out = String::with_capacity(line.len() + stop);
    let mut column = 0;
    for c in line.chars() {
        if c == '\t' {
            let spaces = stop - column % stop;
            out.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        } else {
            out.push(c);
            column += char_width(c);
        }
    }
    Cow::Owned(out)
}

/// The columns a text takes: those of its graphemes, one by one.
pub fn width(text: &str) -> usize {
    text_width(text)
}

/// The text in lines of at most `width` columns, broken between words and between ideographs; its own line breaks are kept.
pub fn wrap(text: &str, width: usize) -> Vec<&str> {
    broken(text, width, Breaks::AtWords)
}

/// As [`wrap`], broken where a line is full and without losing a space: for code and the output of programs.
pub fn wrap_anywhere(text: &str, width: usize) -> Vec<&str> {
    broken(text, width, Breaks::WhenFull)
}

fn broken(text: &str, width: usize, breaks: Breaks) -> Vec<&str> {
    let mut ranges = Vec::new();
    break_text(text, width.max(1), breaks, &mut ranges);
    ranges.into_iter().map(|range| &text[range]).collect()
}

/// The start of the text that fits into `width` columns, with `…` where something is missing.
pub fn clip(text: &str, width: usize) -> Cow<'_, str> {
    if text_width(text) <= width {
        return Cow::Borrowed(text);
    }
    let mut used = 0;
    let mut end = 0;
    for grapheme in text.graphemes(true) {
        used += grapheme.width();
        if used + 1 > width {
            break;
        }
        end += grapheme.len();
    }
    let mut cut = text[..end].trim_end_matches(' ').to_owned();
    if width > 0 {
        cut.push('…');
    }
    Cow::Owned(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cleaned_measured_and_cut() {
        assert_eq!(clean("a\u{1b}[31mb\tc\nd\u{202e}"), "ab c d<U+202E>");
        assert_eq!(expand_tabs("ab\tc\t世\td", 4), "ab  c   世  d");
        assert_eq!((width("世界a"), width("")), (5, 0));
        assert_eq!(
            (clip("abcdef", 4), clip("世界世", 4), clip("abc", 3)),
            ("abc…".into(), "世…".into(), "abc".into())
        );
        assert_eq!((clip("abc", 1), clip("abc", 0)), ("…".into(), "".into()));
    }

    #[test]
    fn text_is_broken_at_words_or_where_it_is_full() {
        assert_eq!(wrap("one two\nthree", 5), ["one", "two", "three"]);
        assert_eq!(wrap_anywhere("ab  cd", 3), ["ab ", " cd"]);
        assert_eq!(wrap("", 5), [""]);
    }
}
