//! Unified diffs between two texts.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag};

use crate::patch::Untouched;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// After this long a diff may be coarser than it could be, but it is finished.
const PATIENCE: Duration = Duration::from_millis(300);

/// The difference between `old` and `new`, in the form `git apply` and `fs.apply_patch` take; empty when there is none. A
/// missing side is `/dev/null`.
pub(crate) fn unified(old: Option<&str>, new: Option<&str>, old_name: &str, new_name: &str) -> String {
    unified_within(old, new, old_name, new_name, Untouched::default())
}

/// The same, without looking at what is known to be the same.
pub(crate) fn unified_within(
    old: Option<&str>,
    new: Option<&str>,
    old_name: &str,
    new_name: &str,
    known: Untouched,
) -> String {
    let name = |side: Option<&str>, prefix: &str, name: &str| match side {
        Some(_) => format!("{prefix}/{name}"),
        None => "/dev/null".to_owned(),
    };
    let mut text = format!("--- {}\n+++ {}\n", name(old, "a", old_name), name(new, "b", new_name));
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    if old == new {
        return String::new();
    }
    // Most edits leave most of a file alone; only the part in between is worth splitting into lines and an algorithm.
    let (begin, keep) = untouched(old, new, known);
    let from = memchr::memchr_iter(b'\n', &old.as_bytes()[..begin]).count();
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
fn untouched(old: &str, new: &str, known: Untouched) -> (usize, usize) {
    let (a, b) = (old.as_bytes(), new.as_bytes());
    let (changed_a, changed_b) = (&a[known.start..a.len() - known.end], &b[known.start..b.len() - known.end]);
    let same = shared(changed_a.chunks(BLOCK), changed_b.chunks(BLOCK), |x, y| {
        x.iter().zip(y).take_while(|(x, y)| x == y).count()
    });
    let same_start = known.start + same;
    let mut begin = a[..same_start].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    for _ in 0..CONTEXT {
        let before = a[..begin.saturating_sub(1)].iter().rposition(|byte| *byte == b'\n');
        begin = before.map_or(0, |at| at + 1);
    }
    let same = shared(changed_a[same..].rchunks(BLOCK), changed_b[same..].rchunks(BLOCK), |x, y| {
        x.iter().rev().zip(y.iter().rev()).take_while(|(x, y)| x == y).count()
    });
    let a = &a[same_start..];
    let mut end = a.len() - known.end - same;
    // One line more than the context: the first may be only the end of a line.
    for _ in 0..=CONTEXT {
        end = a[end..].iter().position(|byte| *byte == b'\n').map_or(a.len(), |at| end + at + 1);
    }
    (begin, a.len() - end)
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
            for (start, end) in [(0, 7), (25_000, 0), (24_990, 20_000), (3, 3)] {
                let known = Untouched { start, end };
                assert_eq!(unified_within(Some(&old), Some(&new), "f", "f", known), theirs, "{known:?}");
            }
        }
    }
}
