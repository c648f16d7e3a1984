//! Unified diffs between two texts.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag};

use crate::patch::Splice;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// After this long a diff may be coarser than it could be, but it is finished.
const PATIENCE: Duration = Duration::from_millis(300);

/// The difference between `old` and `new`, in the form `git apply` and `fs.apply_patch` take; empty when there is none. A
/// missing side is `/dev/null`.
pub(crate) fn unified(old: Option<&str>, new: Option<&str>, old_name: &str, new_name: &str) -> String {
    let name = |side: Option<&str>, prefix: &str, name: &str| match side {
        Some(_) => format!("{prefix}/{name}"),
        None => "/dev/null".to_owned(),
    };
    let text = format!("--- {}\n+++ {}\n", name(old, "a", old_name), name(new, "b", new_name));
    hunks(text, old.unwrap_or_default(), new.unwrap_or_default(), 0)
}

/// The difference a change makes in `old`, without looking at what it leaves alone.
pub(crate) fn of_splice(old: &str, change: &Splice, old_name: &str, new_name: &str) -> String {
    let begin = lines_before(old.as_bytes(), change.start);
    let behind = old.len() - change.end;
    let end = lines_after(old.as_bytes(), behind);
    let new = [&old[begin..change.start], &change.middle, &old[behind..end]].concat();
    let from = memchr::memchr_iter(b'\n', &old.as_bytes()[..begin]).count();
    hunks(format!("--- a/{old_name}\n+++ b/{new_name}\n"), &old[begin..end], &new, from)
}

/// The hunks behind `text`, the heading; `from` lines are before them. Nothing when there is no difference.
fn hunks(mut text: String, old: &str, new: &str, from: usize) -> String {
    if old == new {
        return String::new();
    }
    // Most edits leave most of a file alone; only the part in between is worth splitting into lines and an algorithm.
    let (begin, keep) = untouched(old.as_bytes(), new.as_bytes());
    let from = from + memchr::memchr_iter(b'\n', &old.as_bytes()[..begin]).count();
    let old: Vec<&str> = old[begin..old.len() - keep].split_inclusive('\n').collect();
    let new: Vec<&str> = new[begin..new.len() - keep].split_inclusive('\n').collect();
    let (old, new) = (old.as_slice(), new.as_slice());
    let deadline = Instant::now() + PATIENCE;
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline));
    for group in similar::group_diff_ops(ops, CONTEXT) {
        hunk(&mut text, &group, old, new, from);
    }
    text
}

/// How many bytes at the start and at the end of both texts are the same, less the lines of context, in whole lines.
fn untouched(old: &[u8], new: &[u8]) -> (usize, usize) {
    let start = shared(old.chunks(BLOCK), new.chunks(BLOCK), |x, y| {
        x.iter().zip(y).take_while(|(x, y)| x == y).count()
    });
    let end = shared(old[start..].rchunks(BLOCK), new[start..].rchunks(BLOCK), |x, y| {
        x.iter().rev().zip(y.iter().rev()).take_while(|(x, y)| x == y).count()
    });
    (lines_before(old, start), old.len() - lines_after(old, old.len() - end))
}

/// Where the lines of context before `at` begin.
fn lines_before(text: &[u8], at: usize) -> usize {
    let mut begin = memchr::memrchr(b'\n', &text[..at]).map_or(0, |feed| feed + 1);
    for _ in 0..CONTEXT {
        begin = memchr::memrchr(b'\n', &text[..begin.saturating_sub(1)]).map_or(0, |feed| feed + 1);
    }
    begin
}

/// Where the lines of context after `at` end.
fn lines_after(text: &[u8], at: usize) -> usize {
    let mut end = at;
    // One line more than the context: the first may be only the end of a line.
    for _ in 0..=CONTEXT {
        end = memchr::memchr(b'\n', &text[end..]).map_or(text.len(), |feed| end + feed + 1);
    }
    end
}

/// Compared at a time.
const BLOCK: usize = 4096;

fn shared<'a>(
    left: impl Iterator<Item = &'a [u8]>,
    right: impl Iterator<Item = &'a [u8]>,
    within: impl Fn(&[u8], &[u8]) -> usize,
) -> usize {
    let mut length = 0;
    for (x, y) in left.zip(right) {
        if x != y {
            return length + within(x, y);
        }
        length += x.len();
    }
    length
}

fn hunk(text: &mut String, group: &[DiffOp], old: &[&str], new: &[&str], offset: usize) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let span = |start: usize, end: usize| {
        // An empty side is numbered by the line before it.
        let number = if end > start { start + 1 } else { start };
        match end - start {
            1 => format!("{}", number + offset),
            length => format!("{},{length}", number + offset),
        }
    };
    let old_span = span(first.old_range().start, last.old_range().end);
    let new_span = span(first.new_range().start, last.new_range().end);
    writeln!(text, "@@ -{old_span} +{new_span} @@").expect("writing to a string does not fail");
    let mut push = |sign: char, lines: &[&str]| {
        for line in lines {
            text.push(sign);
            text.push_str(line);
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    };
    for op in group {
        match op.tag() {
            DiffTag::Equal => push(' ', &old[op.old_range()]),
            DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                push('-', &old[op.old_range()]);
                push('+', &new[op.new_range()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_out_what_is_the_same_changes_nothing_of_the_diff() {
        let text = |middle: &str| format!("{}{middle}{}", "line\n".repeat(5000), "end\n".repeat(5000));
        for (old, new) in
            [("a\n", "b\n"), ("", "x\n"), ("x\n", ""), ("ü\n", "ö\n"), ("a\nb\nc\n", "a\nX\nc\n")]
        {
            let (old, new) = (text(old), text(new));
            let theirs = similar::TextDiff::from_lines(old.as_str(), new.as_str());
            let theirs = theirs.unified_diff().context_radius(CONTEXT).header("a/f", "b/f").to_string();
            assert_eq!(unified(Some(&old), Some(&new), "f", "f"), theirs);
            let behind = "end\n".len() * 5000;
            for (start, end) in [(0, 7), (25_000, 0), (24_990, 20_000), (3, 3), (25_000, behind)] {
                let change = Splice { start, end, middle: new[start..new.len() - end].to_owned() };
                assert_eq!(change.of(&old), new);
                assert_eq!(of_splice(&old, &change, "f", "f"), theirs, "{start} {end}");
            }
        }
    }
}
