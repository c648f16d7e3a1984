//! Keeps what a model or a tool wrote from steering the terminal: escape sequences and control characters are taken out,
//! characters that reorder text are shown by their code.
//!
//! It runs twice: on each line of the input, and on the text the parser made of it (an entity such as `&#27;` is an
//! escape character only then).

use std::borrow::Cow;

/// The mark [`crate::cjk`] puts beside an emphasis delimiter. It is white space to the parser and, as a control
/// character, can be neither in a cleaned input nor in an output.
pub(crate) const MARK: char = '\u{85}';

/// One line of input (no line break in it) without escape sequences and control characters; tabs stay.
pub(crate) fn clean_line(line: &str) -> Cow<'_, str> {
    clean(line, Keep::Tabs)
}

/// Text for the screen: as [`clean_line`], with tabs and line breaks turned into spaces.
pub(crate) fn clean_text(text: &str) -> Cow<'_, str> {
    clean(text, Keep::Nothing)
}

#[derive(Clone, Copy, PartialEq)]
enum Keep {
    Tabs,
    Nothing,
}

/// Whether a byte may be of something to take out: C0, DEL, and the first bytes of C1 (C2) and of the characters that reorder
/// text (D8, E2).
fn is_suspicious(byte: u8) -> bool {
    matches!(byte, 0..=0x1f | 0x7f | 0xc2 | 0xd8 | 0xe2)
}

/// Where the first suspicious byte is. Nearly all text has none: blocks of it are looked at without a branch for each byte.
fn first_suspicious(bytes: &[u8], keep: Keep) -> Option<usize> {
    let allowed = if keep == Keep::Tabs { b'\t' } else { b' ' };
    let suspicious = |byte: u8| is_suspicious(byte) && byte != allowed;
    let mut at = 0;
    for block in bytes.chunks(32) {
        if block.iter().fold(false, |found, byte| found | suspicious(*byte)) {
            return block.iter().position(|byte| suspicious(*byte)).map(|offset| at + offset);
        }
        at += block.len();
    }
    None
}

fn clean(text: &str, keep: Keep) -> Cow<'_, str> {
    let Some(first) = first_suspicious(text.as_bytes(), keep) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '\u{1b}' => after_escape(after),
            '\u{9b}' => after_csi(after),
            '\u{9d}' | '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => after_string(after),
            '\t' if keep == Keep::Tabs => {
                out.push('\t');
                after
            }
            '\t' | '\n' => {
                out.push(' ');
                after
            }
            '\0' => {
                out.push('\u{fffd}');
                after
            }
            c if c.is_control() => after,
            c if is_bidi_control(c) => {
                out.push_str(bidi_name(c));
                after
            }
            c => {
                out.push(c);
                after
            }
        };
    }
    Cow::Owned(out)
}

/// What follows an escape sequence whose ESC has been read. A sequence without an end loses only its introducer, so that
/// a stray ESC cannot swallow the rest of a line.
fn after_escape(rest: &str) -> &str {
    match rest.as_bytes().first() {
        Some(b'[') => after_csi(&rest[1..]),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => after_string(&rest[1..]),
        Some(b'(' | b')' | b'*' | b'+') => match rest.as_bytes().get(1) {
            Some(0x30..=0x7e) => &rest[2..],
            _ => &rest[1..],
        },
        Some(b'7' | b'8' | b'=' | b'>' | b'c' | b'D' | b'E' | b'H' | b'M' | b'N' | b'O' | b'Z' | b'\\') => {
            &rest[1..]
        }
        _ => rest,
    }
}

fn after_csi(rest: &str) -> &str {
    let parameters = rest.bytes().take_while(|byte| (0x20..=0x3f).contains(byte)).count();
    match rest.as_bytes().get(parameters) {
        Some(0x40..=0x7e) => &rest[parameters + 1..],
        _ => &rest[parameters..],
    }
}

fn after_string(rest: &str) -> &str {
    for (at, c) in rest.char_indices() {
        match c {
            '\u{7}' | '\u{9c}' => return &rest[at + c.len_utf8()..],
            '\u{1b}' if rest[at + 1..].starts_with('\\') => return &rest[at + 2..],
            '\u{1b}' => return &rest[at..],
            _ => {}
        }
    }
    rest
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        // Line and paragraph separators move the cursor in some terminals.
        || matches!(c, '\u{2028}' | '\u{2029}')
}

fn bidi_name(c: char) -> &'static str {
    match c {
        '\u{61c}' => "<U+061C>",
        '\u{200e}' => "<U+200E>",
        '\u{200f}' => "<U+200F>",
        '\u{202a}' => "<U+202A>",
        '\u{202b}' => "<U+202B>",
        '\u{202c}' => "<U+202C>",
        '\u{202d}' => "<U+202D>",
        '\u{202e}' => "<U+202E>",
        '\u{2066}' => "<U+2066>",
        '\u{2067}' => "<U+2067>",
        '\u{2068}' => "<U+2068>",
        '\u{2069}' => "<U+2069>",
        _ => " ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_go_and_the_text_round_them_stays() {
        for (dirty, clean) in [
            ("a\u{1b}[31mred\u{1b}[0m b", "ared b"),
            ("\u{1b}]0;owned\u{7}title", "title"),
            ("\u{1b}]8;;http://evil\u{1b}\\click\u{1b}]8;;\u{1b}\\", "click"),
            ("\u{1b}]52;c;aGk=\u{7}", ""),
            ("\u{9b}2Jx\u{9d}0;t\u{9c}y", "xy"),
            ("\u{1b}(0lqk\u{1b}(B", "lqk"),
            ("bell\u{7} back\u{8} del\u{7f}", "bell back del"),
            ("a\0b", "a\u{fffd}b"),
        ] {
            assert_eq!(clean_line(dirty), clean, "{dirty:?}");
        }
    }

    #[test]
    fn a_sequence_without_end_does_not_swallow_the_line() {
        assert_eq!(clean_line("\u{1b}]0;no end here"), "0;no end here");
        assert_eq!(clean_line("end\u{1b}"), "end");
        assert_eq!(clean_line("end\u{1b}[12"), "end");
    }

    #[test]
    fn bidirectional_controls_are_shown() {
        assert_eq!(clean_line("user\u{202e}txt.exe"), "user<U+202E>txt.exe");
        assert_eq!(clean_text("a\u{2067}b\u{2069}"), "a<U+2067>b<U+2069>");
    }

    #[test]
    fn ordinary_text_is_not_copied() {
        assert!(matches!(clean_line("plain\ttext ü"), Cow::Borrowed(_)));
        assert_eq!(clean_text("a\tb\nc"), "a b c");
        assert_eq!(clean_line("quotes “stay” – and € ©"), "quotes “stay” – and € ©");
    }
}
