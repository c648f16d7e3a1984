//! Makes emphasis work in Chinese and Japanese. By CommonMark's rule `**重要，**然后` is not bold: after punctuation a
//! closing delimiter needs a space or more punctuation behind it, and these languages put no spaces between words. Models
//! write it all the time. The piece gets a mark (white space to the parser, removed on output) beside such delimiters.

use std::borrow::Cow;

use crate::sanitize::MARK;

/// The text with marks where a delimiter of `*` would not count for want of a space.
pub(crate) fn mark_emphasis(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.contains('*') {
        return Cow::Borrowed(text);
    }
    let mut marks: Vec<usize> = Vec::new();
    let mut open = [false; 3];
    let mut code: Option<usize> = None;
    let mut before = '\n';
    let mut blank_line = true;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let len = match c {
            '\\' => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            '`' => {
                let len = run(text, at, b'`');
                match code {
                    Some(opened) if opened == len => code = None,
                    Some(_) => {}
                    None => code = Some(len),
                }
                len
            }
            '*' => {
                let len = run(text, at, b'*');
                let after = text[at + len..].chars().next().unwrap_or('\n');
                if code.is_none() && len <= 3 {
                    let is_open = &mut open[len - 1];
                    if *is_open {
                        if is_wide_punctuation(before) && is_word(after) {
                            marks.push(at + len);
                        }
                        // A delimiter after a space cannot close.
                        *is_open = before.is_whitespace();
                    } else if !after.is_whitespace() {
                        if is_word(before) && is_wide_punctuation(after) {
                            marks.push(at);
                        }
                        *is_open = true;
                    }
                }
                len
            }
            '\n' => {
                if blank_line {
                    open = [false; 3];
                    code = None;
                }
                blank_line = true;
                1
            }
            c => c.len_utf8(),
        };
        if !c.is_whitespace() {
            blank_line = false;
        }
        before = text[at..at + len].chars().next_back().unwrap_or(c);
        at += len;
    }
    if marks.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut marked = String::with_capacity(text.len() + marks.len() * 2);
    let mut from = 0;
    for mark in marks {
        marked.push_str(&text[from..mark]);
        marked.push(MARK);
        from = mark;
    }
    marked.push_str(&text[from..]);
    Cow::Owned(marked)
}

fn run(text: &str, at: usize, mark: u8) -> usize {
    text.as_bytes()[at..].iter().take_while(|byte| **byte == mark).count()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric()
}

/// Punctuation that is written without a space beside it.
fn is_wide_punctuation(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{301f}' | '\u{30fb}' | '\u{ff01}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}' | '\u{ff3b}'..='\u{ff40}' | '\u{ff5b}'..='\u{ff65}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_next_to_wide_punctuation_are_marked() {
        for (text, marked) in [
            ("**重要，**然后", "**重要，**|然后"),
            ("他说**“重要”**了", "他说|**“重要”**|了"),
            ("他说，**重要**的", "他说，**重要**的"),
            ("*（注）*见", "*（注）*|见"),
            ("`**重要，**然后`", "`**重要，**然后`"),
            ("**重要，** 然后", "**重要，** 然后"),
            ("**bold.**not", "**bold.**not"),
        ] {
            assert_eq!(mark_emphasis(text).replace(MARK, "|"), marked);
        }
    }
}
