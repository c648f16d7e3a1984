//! Closes what a half-arrived paragraph has left open, so that the tail does not show `**` until the other one comes.
//! Only the tail is healed; committed lines are what the document says.

use std::borrow::Cow;

struct Open {
    mark: char,
    len: usize,
    at: usize,
}

/// The text with its last paragraph completed.
pub(crate) fn heal(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim_end();
    let start = trimmed.rfind("\n\n").map_or(0, |at| at + 2);
    if !trimmed[start..].contains(['*', '_', '`', '~', '[']) {
        return Cow::Borrowed(text);
    }
    let (open, cut) = scan(trimmed, start);
    let mut healed = trimmed[..cut.at].to_owned();
    if let Some(label) = cut.label {
        healed.push_str(label);
    }
    // Marks that nothing follows yet are not shown; the others are closed from the inside out.
    let mut closers = String::new();
    for delimiter in open.iter().rev() {
        let end = delimiter.at + delimiter.len;
        if healed.len() <= end {
            healed.truncate(delimiter.at.min(healed.len()));
            let kept = healed.trim_end().len();
            healed.truncate(kept);
        } else {
            closers.extend(std::iter::repeat_n(delimiter.mark, delimiter.len));
        }
    }
    let kept = healed.trim_end().len();
    healed.truncate(kept);
    healed.push_str(&closers);
    Cow::Owned(healed)
}

struct Cut<'t> {
    at: usize,
    label: Option<&'t str>,
}

/// The delimiters open at the end, and where a half link begins.
fn scan(text: &str, start: usize) -> (Vec<Open>, Cut<'_>) {
    let mut open: Vec<Open> = Vec::new();
    let mut brackets: Vec<usize> = Vec::new();
    let mut at = start;
    let mut before = ' ';
    while let Some(c) = text[at..].chars().next() {
        let mut len = c.len_utf8();
        match c {
            '\\' => len += text[at + 1..].chars().next().map_or(0, char::len_utf8),
            '`' => {
                len = run(text, at, c);
                let Some(end) = code_end(text, at + len, len) else {
                    open.push(Open { mark: '`', len, at });
                    return (open, Cut { at: text.len(), label: None });
                };
                len = end - at;
            }
            '*' | '_' | '~' => {
                len = run(text, at, c);
                let after = text[at + len..].chars().next();
                toggle(&mut open, c, len, at, (before, after));
            }
            '[' => brackets.push(at),
            ']' => {
                if let Some(bracket) = brackets.pop()
                    && text[at + 1..].starts_with('(')
                {
                    match text[at + 1..].find(')') {
                        Some(end) => len = end + 2,
                        None => return (open, half_link(text, bracket, at)),
                    }
                }
            }
            _ => {}
        }
        before = text[at..at + len].chars().next_back().unwrap_or(c);
        at += len;
    }
    (open, Cut { at: text.len(), label: None })
}

/// A link is its text until its address is there; an image is nothing.
fn half_link(text: &str, bracket: usize, end: usize) -> Cut<'_> {
    if text[..bracket].ends_with('!') {
        return Cut { at: bracket - 1, label: None };
    }
    Cut { at: bracket, label: Some(&text[bracket + 1..end]) }
}

fn toggle(open: &mut Vec<Open>, mark: char, len: usize, at: usize, (before, after): (char, Option<char>)) {
    if mark == '~' && len != 2 {
        return;
    }
    if !before.is_whitespace()
        && let Some(opened) =
            open.iter().rposition(|delimiter| delimiter.mark == mark && delimiter.len == len)
    {
        open.truncate(opened);
        return;
    }
    let opens =
        after.is_none_or(|after| !after.is_whitespace()) && !(mark == '_' && before.is_alphanumeric());
    if opens && len <= 3 {
        open.push(Open { mark, len, at });
    }
}

fn run(text: &str, at: usize, mark: char) -> usize {
    text[at..].chars().take_while(|c| *c == mark).count()
}

fn code_end(text: &str, mut at: usize, len: usize) -> Option<usize> {
    while let Some(found) = text[at..].find('`') {
        let found = at + found;
        let ticks = run(text, found, '`');
        if ticks == len {
            return Some(found + ticks);
        }
        at = found + ticks;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_emphasis_is_closed_and_lone_marks_are_hidden() {
        for (half, whole) in [
            ("Hello **wor", "Hello **wor**"),
            ("Hello **", "Hello"),
            ("a *b **c", "a *b **c***"),
            ("a `co", "a `co`"),
            ("a ``", "a"),
            ("~~gone", "~~gone~~"),
            ("**done** and *more ", "**done** and *more*"),
            ("* item", "* item"),
            ("snake_case", "snake_case"),
            ("see [docs](htt", "see docs"),
            ("see ![alt](htt", "see"),
            ("see [docs](http://x) **b", "see [docs](http://x) **b**"),
            ("`**` ok", "`**` ok"),
            ("\\**x", "\\**x*"),
        ] {
            assert_eq!(heal(half).trim_end(), whole, "{half}");
        }
    }
}
