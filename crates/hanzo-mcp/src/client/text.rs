//! What servers say, made fit to be read by a model and shown on a terminal.

/// The most characters of a tool's or prompt's description.
pub const MOST_DESCRIPTION: usize = 4_000;
/// The most characters of a description inside a schema.
pub const MOST_FIELD_DESCRIPTION: usize = 1_000;
/// The most characters of a name.
pub const MOST_NAME: usize = 256;

/// `text` without what is not text (control characters, direction overrides, invisible tags) and not longer than `most`
/// characters. Lines stay lines.
pub fn clean(text: &str, most: usize) -> String {
    let mut kept: String = text.chars().filter(|c| is_plain(*c)).take(most + 1).collect();
    if let Some((end, _)) = kept.char_indices().nth(most) {
        kept.truncate(end);
        kept.push('…');
    }
    kept
}

/// [`clean`], in one line.
pub fn line(text: &str, most: usize) -> String {
    clean(&text.split_whitespace().collect::<Vec<_>>().join(" "), most)
}

fn is_plain(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        c if c.is_control() => false,
        // Direction marks and overrides, joiners that hide, line separators, the byte order mark, and the tags with which
        // text is smuggled past people.
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_hides_is_gone_and_what_is_long_is_cut() {
        assert_eq!(clean("a\u{1b}[31mb\u{202e}c\u{e0041}\nd\0", 100), "a[31mbc\nd");
        assert_eq!(clean("abcdef", 3), "abc…");
        assert_eq!(clean("abc", 3), "abc");
        assert_eq!(line("a\n  b\r\nc", 10), "a b c");
    }

    proptest! {
        #[test]
        fn nothing_unprintable_is_left(text: String, most in 0_usize..50) {
            let kept = clean(&text, most);
            prop_assert!(kept.chars().count() <= most + 1);
            prop_assert!(kept.chars().all(is_plain));
            prop_assert_eq!(clean(&kept, most + 1), kept);
        }
    }
}
