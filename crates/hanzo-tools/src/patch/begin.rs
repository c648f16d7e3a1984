//! The `*** Begin Patch` grammar.

use super::{ChangeKind, FileChange, Hunk, Line, NewMode, PatchError, Tag, lines_of};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// Whether a text is in this grammar, perhaps inside the here-document some models wrap it in.
pub(super) fn is_begin_patch(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .next()
        .is_some_and(|first| first == BEGIN || (first.starts_with("<<") && lines.next() == Some(BEGIN)))
}

pub(super) fn parse(text: &str) -> Result<Vec<FileChange>, PatchError> {
    let lines = lines_of(text);
    let start = lines.iter().position(|line| line.trim() == BEGIN).unwrap_or(0) + 1;
    let end = lines.iter().rposition(|line| line.trim() == END).ok_or_else(|| {
        PatchError::malformed(lines.len().saturating_sub(1), format!("it does not end with `{END}`"))
    })?;
    let mut changes = Vec::new();
    let mut at = start;
    while at < end {
        let line = lines[at].trim_end();
        if line.trim().is_empty() {
            at += 1;
        } else if let Some(path) = line.trim_start().strip_prefix(ADD) {
            let (change, next) = add(path, &lines[..end], at)?;
            changes.push(change);
            at = next;
        } else if let Some(path) = line.trim_start().strip_prefix(DELETE) {
            let kind = ChangeKind::Delete { hunks: Vec::new() };
            changes.push(FileChange { path: path.trim().to_owned(), to: None, kind });
            at += 1;
        } else if let Some(path) = line.trim_start().strip_prefix(UPDATE) {
            let (change, next) = update(path, &lines[..end], at)?;
            changes.push(change);
            at = next;
        } else {
            return Err(PatchError::malformed(
                at,
                format!("`{line}` is none of `{ADD}PATH`, `{DELETE}PATH`, `{UPDATE}PATH`"),
            ));
        }
    }
    Ok(changes)
}

fn add(path: &str, lines: &[&str], start: usize) -> Result<(FileChange, usize), PatchError> {
    let mut text = String::new();
    let mut at = start + 1;
    while at < lines.len() {
        match lines[at].strip_prefix('+') {
            Some(line) => {
                text.push_str(line);
                text.push('\n');
            }
            None if lines[at].trim_start().starts_with("*** ") => break,
            None => {
                return Err(PatchError::malformed(at, "a line of a new file begins with `+`"));
            }
        }
        at += 1;
    }
    let kind = ChangeKind::Add { text, mode: NewMode::Plain };
    Ok((FileChange { path: path.trim().to_owned(), to: None, kind }, at))
}

fn update(path: &str, lines: &[&str], start: usize) -> Result<(FileChange, usize), PatchError> {
    let mut at = start + 1;
    let mut to = None;
    if let Some(target) = lines.get(at).and_then(|line| line.strip_prefix(MOVE)) {
        to = Some(target.trim().to_owned());
        at += 1;
    }
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut hunk: Option<Hunk> = None;
    let mut finish = |hunk: &mut Option<Hunk>, at: usize| match hunk.take() {
        Some(hunk) if hunk.lines.is_empty() => {
            Err(PatchError::malformed(at, "the part before it changes nothing"))
        }
        Some(hunk) => {
            hunks.push(hunk);
            Ok(())
        }
        None => Ok(()),
    };
    while at < lines.len() {
        let line = lines[at];
        if line.trim_end() == END_OF_FILE {
            let Some(open) = &mut hunk else {
                return Err(PatchError::malformed(at, "there are no lines before the end of the file"));
            };
            open.at_end = true;
            finish(&mut hunk, at)?;
        } else if line.starts_with("*** ") {
            break;
        } else if let Some(heading) = line.strip_prefix("@@") {
            if hunk.as_ref().is_some_and(|open| !open.lines.is_empty()) {
                finish(&mut hunk, at)?;
            }
            let heading = heading.strip_prefix(' ').unwrap_or(heading);
            let open = hunk.get_or_insert_default();
            if !heading.trim().is_empty() {
                open.after.push(heading.trim_end_matches('\r').to_owned());
            }
        } else {
            let line = body_line(line)
                .ok_or_else(|| PatchError::malformed(at, "a line of a change begins with ` `, `-` or `+`"))?;
            hunk.get_or_insert_default().lines.push(line);
        }
        at += 1;
    }
    finish(&mut hunk, at)?;
    if hunks.is_empty() && to.is_none() {
        return Err(PatchError::malformed(start, "it changes nothing"));
    }
    let kind = ChangeKind::Update { hunks };
    Ok((FileChange { path: path.trim().to_owned(), to, kind }, at))
}

fn body_line(line: &str) -> Option<Line> {
    Some(match line.as_bytes().first() {
        // An empty line is a context line whose blank was trimmed away.
        None => Line::new(Tag::Context, ""),
        Some(b' ') => Line::new(Tag::Context, &line[1..]),
        Some(b'-') => Line::new(Tag::Remove, &line[1..]),
        Some(b'+') => Line::new(Tag::Insert, &line[1..]),
        Some(_) => return None,
    })
}
