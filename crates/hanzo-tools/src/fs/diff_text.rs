//! Unified diffs between two texts.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag};

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
    let mut text = format!("--- {}\n+++ {}\n", name(old, "a", old_name), name(new, "b", new_name));
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    if old == new {
        return String::new();
    }
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    // Most edits leave most of a file alone; only the part in between is worth an algorithm.
    let same_start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - same_start;
    let same_end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let from = same_start.saturating_sub(CONTEXT);
    let keep = same_end.saturating_sub(CONTEXT);
    let (old, new) = (&old[from..old.len() - keep], &new[from..new.len() - keep]);
    let deadline = Instant::now() + PATIENCE;
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline));
    for group in similar::group_diff_ops(ops, CONTEXT) {
        hunk(&mut text, &group, old, new, from);
    }
    text
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
