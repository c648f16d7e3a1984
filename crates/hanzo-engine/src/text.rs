//! Cutting text to size without cutting a character in two.

use std::borrow::Cow;

/// `text` in at most `most` bytes, ending in a `…` where something is missing.
pub(crate) fn clip(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let Some(room) = most.checked_sub('…'.len_utf8()) else { return Cow::Borrowed("") };
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(room)]))
}

/// `text` in at most `most` bytes with its middle left out: the beginning says what it is and the end how it came out.
pub(crate) fn clip_middle(text: &str, most: usize) -> Cow<'_, str> {
    const GAP: &str = " […] ";
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let Some(room) = most.checked_sub(GAP.len()).filter(|room| *room >= 16) else { return clip(text, most) };
    let head = text.floor_char_boundary(room * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - room / 3);
    Cow::Owned(format!("{}{GAP}{}", &text[..head], &text[tail..]))
}

/// Text that came from outside, for a single line: control characters become spaces.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
