//! What a program wrote, made into text for a model: no escape sequences, no progress bars in all their stages, a bounded
//! length. The raw bytes stay behind the output's ref.

use std::mem;

/// Removes escape sequences and control characters from text that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct Stripper {
    state: State,
    /// Bytes of a character whose end has not arrived.
    partial: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// In `ESC [ …`, until a final byte.
    Control,
    /// In `ESC ] …` and its like, until BEL or ST.
    Text,
    /// In such a text, after an ESC that may begin its ST.
    TextEscape,
}

impl Stripper {
    /// The text of `bytes`, which follow those of the call before. Invalid UTF-8 becomes U+FFFD.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let mut input = mem::take(&mut self.partial);
        input.extend_from_slice(bytes);
        let keep = incomplete_end(&input);
        self.partial = input.split_off(input.len() - keep);
        let mut out = String::with_capacity(input.len());
        for character in String::from_utf8_lossy(&input).chars() {
            self.step(character, &mut out);
        }
        out
    }

    /// What is left when nothing more comes.
    pub(crate) fn finish(mut self) -> String {
        let partial = mem::take(&mut self.partial);
        let mut out = String::new();
        for character in String::from_utf8_lossy(&partial).chars() {
            self.step(character, &mut out);
        }
        out
    }

    #[expect(clippy::match_same_arms, reason = "a table of states: one line per transition")]
    fn step(&mut self, character: char, out: &mut String) {
        self.state = match (self.state, character) {
            // A line never ends inside a sequence that means something: a stray ESC must not swallow the rest.
            (State::Control | State::Escape, '\n' | '\r') => {
                out.push(character);
                State::Ground
            }
            (State::Ground | State::Control | State::Escape, '\u{1b}') => State::Escape,
            (State::Ground, '\u{9b}') => State::Control,
            (State::Ground, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => State::Text,
            (State::Ground, '\n' | '\r' | '\t' | '\u{8}') => {
                out.push(character);
                State::Ground
            }
            (State::Ground, character) => {
                if !character.is_control() {
                    out.push(character);
                }
                State::Ground
            }
            (State::Escape, '[') => State::Control,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::Text,
            // Intermediate bytes, as in `ESC ( B`.
            (State::Escape, ' '..='/') => State::Escape,
            (State::Escape, _) => State::Ground,
            (State::Control, '@'..='~') => State::Ground,
            (State::Control, _) => State::Control,
            (State::Text, '\u{7}' | '\u{9c}') => State::Ground,
            (State::Text | State::TextEscape, '\u{1b}') => State::TextEscape,
            (State::TextEscape, '\\') => State::Ground,
            // The same holds for a title that is never closed, but a line is the least of its length.
            (State::Text | State::TextEscape, '\n') => {
                out.push('\n');
                State::Ground
            }
            (State::Text | State::TextEscape, _) => State::Text,
        };
    }
}

/// How many bytes at the end of `bytes` begin a character that is not complete.
fn incomplete_end(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(3);
    for (index, byte) in bytes.iter().enumerate().skip(start).rev() {
        let length = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        let there = bytes.len() - index;
        return if there < length { there } else { 0 };
    }
    0
}

/// The text of `raw` as it stands on a screen afterwards: escape sequences gone, and of a line that was written over with
/// `\r` or `\b` what was written last.
pub(crate) fn clean(raw: &[u8]) -> String {
    let mut stripper = Stripper::default();
    let mut stripped = stripper.push(raw);
    stripped.push_str(&stripper.finish());
    if !stripped.contains(['\r', '\u{8}']) {
        return stripped;
    }
    let mut out = String::with_capacity(stripped.len());
    let mut line_start = 0;
    let mut returned = false;
    for character in stripped.chars() {
        match character {
            '\r' => returned = true,
            '\u{8}' => {
                if out.len() > line_start {
                    out.pop();
                }
            }
            '\n' => {
                out.push('\n');
                line_start = out.len();
                returned = false;
            }
            other => {
                if mem::take(&mut returned) {
                    out.truncate(line_start);
                }
                out.push(other);
            }
        }
    }
    out
}

/// What there is to show of an output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    /// Its beginning, or all of it.
    pub(crate) head: &'a [u8],
    /// How much is missing between the two.
    pub(crate) gap: u64,
    /// Its end, when something is missing before it.
    pub(crate) tail: &'a [u8],
}

/// Text that was made to fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) text: String,
    /// Whether something was left out.
    pub(crate) truncated: bool,
}

/// Beginning and end of an output in at most about `budget` bytes, with a line between them that says how much is missing and
/// `where_else` it is.
pub(crate) fn show(view: &View<'_>, budget: usize, where_else: &str) -> Shown {
    let head = clean(view.head);
    let tail = clean(view.tail);
    if view.gap == 0 && head.len() + tail.len() <= budget {
        return Shown { text: head + &tail, truncated: false };
    }
    // Errors and summaries come last, so the end gets more.
    let head_budget = budget / 3;
    let (head, tail) = if view.gap == 0 && tail.is_empty() {
        let kept = cut_head(&head, head_budget);
        (kept, cut_tail(&head[kept.len()..], budget - head_budget))
    } else {
        (cut_head(&head, head_budget), cut_tail(&tail, budget - head_budget))
    };
    let there = clean_length(view);
    let missing = view.gap + (there - head.len() - tail.len()) as u64;
    let newline = if head.ends_with('\n') || head.is_empty() { "" } else { "\n" };
    Shown {
        text: format!("{head}{newline}[… {missing} bytes left out: {where_else} …]\n{tail}"),
        truncated: true,
    }
}

fn clean_length(view: &View<'_>) -> usize {
    clean(view.head).len() + clean(view.tail).len()
}

/// At most `limit` bytes from the start, whole lines when there is one.
fn cut_head(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let cut = &text[..text.floor_char_boundary(limit)];
    // A line much longer than the budget (minified code, base64) is cut in the middle.
    match cut.rfind('\n') {
        Some(end) if end >= limit / 2 => &cut[..=end],
        _ => cut,
    }
}

/// At most `limit` bytes from the end, whole lines when there is one.
fn cut_tail(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let cut = &text[text.ceil_char_boundary(text.len() - limit)..];
    match cut.find('\n') {
        Some(end) if end <= limit / 2 => &cut[end + 1..],
        _ => cut,
    }
}

/// How many bytes of `budget` each of two texts gets: the second (errors) at least a third when it needs it.
pub(crate) fn share(budget: usize, first: u64, second: u64) -> (usize, usize) {
    let first = usize::try_from(first).unwrap_or(usize::MAX);
    let second = usize::try_from(second).unwrap_or(usize::MAX);
    let for_second = second.min((budget / 3).max(budget.saturating_sub(first)));
    (budget - for_second, for_second)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escape_sequences_and_progress_lines_are_gone() {
        for (raw, text) in [
            (&b"\x1b[1;31mred\x1b[0m\n"[..], "red\n"),
            (b"\x1b]0;title\x07after\n", "after\n"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
            (b"\x1b(Bplain\n", "plain\n"),
            (b" 10%\r 50%\r100%\ndone\r\n", "100%\ndone\n"),
            (b"working...\r", "working..."),
            (b"a\x08b\x07\x00c\n", "bc\n"),
            (b"tab\there\n", "tab\there\n"),
            (b"bad \xff\xfe end", "bad \u{fffd}\u{fffd} end"),
            (b"cut \xe2\x82", "cut \u{fffd}"),
            (b"\xc2\x9b31mcsi", "csi"),
            (b"open \x1b]2;never closed\nnext\n", "open \nnext\n"),
        ] {
            assert_eq!(clean(raw), text, "{raw:?}");
        }
    }

    #[test]
    fn a_long_text_keeps_both_ends_in_whole_lines_and_says_what_is_missing() {
        let lines: Vec<String> = (0..1000).map(|number| format!("line {number}\n")).collect();
        let text = lines.concat();
        let view = View { head: text.as_bytes(), gap: 0, tail: b"" };
        let shown = show(&view, 600, "see `proc_1`");
        assert!(shown.truncated && shown.text.len() < 700, "{}", shown.text.len());
        assert!(shown.text.starts_with("line 0\n") && shown.text.ends_with("\nline 999\n"), "{}", shown.text);
        let (head, rest) = shown.text.split_once("[… ").unwrap();
        let (missing, rest) = rest.split_once(" bytes left out: see `proc_1` …]\n").unwrap();
        assert_eq!(head.len() + missing.parse::<usize>().unwrap() + rest.len(), text.len());
    }

    #[test]
    fn errors_get_their_share() {
        assert_eq!(share(30, 5, 5), (25, 5));
        assert_eq!(share(30, 100, 100), (20, 10));
        assert_eq!(share(30, 100, 4), (26, 4));
        assert_eq!(share(30, 10, 100), (10, 20));
    }

    proptest! {
        #[test]
        fn pieces_give_the_same_text_as_the_whole(
            bytes in prop::collection::vec(prop_oneof![
                Just(0x1b), Just(b'['), Just(b']'), Just(b'm'), Just(0x07), Just(b'\n'), Just(0xe2), Just(0x82), Just(0xac), any::<u8>()
            ], 0..200),
            cut in 0usize..200,
        ) {
            let mut whole = Stripper::default();
            let mut expected = whole.push(&bytes);
            expected.push_str(&whole.finish());
            let cut = cut.min(bytes.len());
            let mut pieces = Stripper::default();
            let mut got = pieces.push(&bytes[..cut]);
            got.push_str(&pieces.push(&bytes[cut..]));
            got.push_str(&pieces.finish());
            prop_assert_eq!(&got, &expected);
            let text = clean(&bytes);
            prop_assert!(text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "{:?}", text);
        }

        #[test]
        fn shortening_never_panics_and_keeps_the_budget(text in "\\PC{0,300}", budget in 0usize..200) {
            let view = View { head: text.as_bytes(), gap: 0, tail: b"" };
            let shown = show(&view, budget, "");
            let plain = clean(text.as_bytes());
            prop_assert_eq!(shown.truncated, plain.len() > budget);
            if shown.truncated {
                prop_assert!(shown.text.len() <= budget + 64);
            } else {
                prop_assert_eq!(shown.text, plain);
            }
        }
    }
}
