//! Unified diffs, as `diff -u` and `git diff` write them and as models do.

use super::{ChangeKind, FileChange, Hunk, Line, NewMode, PatchError, Tag, lines_of};

/// What the lines before the hunks of a file say.
#[derive(Debug, Default)]
struct Header {
    old: Option<String>,
    new: Option<String>,
    git: Option<(String, String)>,
    rename: Option<(String, String)>,
    new_mode: Option<String>,
    is_new: bool,
    is_deleted: bool,
}

pub(super) fn parse(text: &str) -> Result<Vec<FileChange>, PatchError> {
    let lines = lines_of(text);
    let mut changes = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if !begins_file(&lines, at)
            && !lines[at].starts_with("@@ ")
            && !lines[at].starts_with("@@\r")
            && lines[at] != "@@"
        {
            // Prose before a diff (a commit message) is skipped.
            at += 1;
            continue;
        }
        let start = at;
        let header = header(&lines, &mut at)?;
        let mut hunks = Vec::new();
        while at < lines.len() && lines[at].starts_with("@@") {
            hunks.push(hunk(&lines, &mut at)?);
        }
        if at == start {
            return Err(PatchError::malformed(at, "it cannot be read here"));
        }
        changes.push(change(header, hunks, start)?);
    }
    Ok(changes)
}

fn begins_file(lines: &[&str], at: usize) -> bool {
    lines[at].starts_with("diff --git ")
        || (lines[at].starts_with("--- ") && lines.get(at + 1).is_some_and(|next| next.starts_with("+++ ")))
}

fn header(lines: &[&str], at: &mut usize) -> Result<Header, PatchError> {
    let mut header = Header::default();
    if let Some(names) = lines[*at].strip_prefix("diff --git ") {
        header.git = git_names(names);
        *at += 1;
        while *at < lines.len() && !begins_file(lines, *at) && !lines[*at].starts_with("@@") {
            let line = lines[*at];
            let value = |prefix: &str| line.strip_prefix(prefix).map(unquote);
            if let Some(name) = value("rename from ") {
                header.rename.get_or_insert_default().0 = name;
            } else if let Some(name) = value("rename to ") {
                header.rename.get_or_insert_default().1 = name;
            } else if let Some(mode) = value("new file mode ") {
                header.is_new = true;
                header.new_mode = Some(mode);
            } else if line.starts_with("deleted file mode ") {
                header.is_deleted = true;
            } else if line.starts_with("copy from ") || line.starts_with("copy to ") {
                return Err(PatchError::Unsupported(
                    "the patch copies a file; write the copy as a new file".into(),
                ));
            } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
                return Err(PatchError::Unsupported("the patch is binary; only text can be patched".into()));
            } else if line.starts_with("old mode ") || line.starts_with("new mode ") {
                return Err(PatchError::Unsupported(
                    "the patch changes a file's mode; use a command (`chmod`) for that".into(),
                ));
            } else if !(line.starts_with("index ")
                || line.starts_with("similarity index ")
                || line.starts_with("dissimilarity index "))
            {
                break;
            }
            *at += 1;
        }
    }
    if *at + 1 < lines.len() && lines[*at].starts_with("--- ") && lines[*at + 1].starts_with("+++ ") {
        header.old = Some(name(&lines[*at][4..]));
        header.new = Some(name(&lines[*at + 1][4..]));
        *at += 2;
    }
    Ok(header)
}

/// A name in a header: quoted as C does, or up to the tab before a time stamp.
fn name(text: &str) -> String {
    let text = text.trim_end_matches('\r');
    if text.starts_with('"') {
        return unquote(text);
    }
    text.split('\t').next().unwrap_or(text).trim_end().to_owned()
}

fn unquote(text: &str) -> String {
    let text = text.trim_end_matches('\r');
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.rfind('"').map(|end| &rest[..end])) else {
        return text.to_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(digit @ b'0'..=b'3') => {
                let mut value = digit - b'0';
                for _ in 0..2 {
                    if let Some(next) = rest.next_if(|byte| (b'0'..=b'7').contains(byte)) {
                        value = value.wrapping_mul(8).wrapping_add(next - b'0');
                    }
                }
                bytes.push(value);
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The two names after `diff --git`. Unquoted names may hold blanks; then both are the same but for the prefix.
fn git_names(text: &str) -> Option<(String, String)> {
    let text = text.trim_end_matches('\r');
    if text.starts_with('"') || text.ends_with('"') {
        let middle = match text.strip_prefix('"') {
            Some(rest) => rest.find("\" ")? + 2,
            None => text.find(" \"")?,
        };
        return Some((unquote(&text[..middle]), unquote(text[middle..].trim_start())));
    }
    let middle = text.len() / 2;
    if text.as_bytes().get(middle) == Some(&b' ') {
        let (old, new) = (&text[..middle], &text[middle + 1..]);
        if old.split_once('/').map(|(_, rest)| rest) == new.split_once('/').map(|(_, rest)| rest) {
            return Some((old.to_owned(), new.to_owned()));
        }
    }
    let (old, new) = text.split_once(' ')?;
    Some((old.to_owned(), new.to_owned()))
}

fn change(header: Header, mut hunks: Vec<Hunk>, start: usize) -> Result<FileChange, PatchError> {
    let is_git = header.git.is_some();
    let nothing = "/dev/null";
    let (old, new) = match (&header.old, &header.new, &header.git) {
        (Some(old), Some(new), _) | (_, _, Some((old, new))) => (old.clone(), new.clone()),
        // Hunks alone: the caller says which file.
        _ => (String::new(), String::new()),
    };
    let is_new = header.is_new || old == nothing;
    let is_deleted = header.is_deleted || new == nothing;
    let prefixed = |name: &str, prefix: &str| name == nothing || name.starts_with(prefix);
    let strip =
        is_git || (prefixed(&old, "a/") && prefixed(&new, "b/") && (old != nothing || new != nothing));
    let plain = |name: &str| {
        if strip { name.split_once('/').map_or(name, |(_, rest)| rest).to_owned() } else { name.to_owned() }
    };
    let mode = match header.new_mode.as_deref() {
        Some("100755") => NewMode::Executable,
        Some("120000" | "160000") => {
            return Err(PatchError::Unsupported("the patch makes a symbolic link or a submodule".into()));
        }
        _ => NewMode::Plain,
    };
    if is_new && is_deleted {
        return Err(PatchError::malformed(start, "both names are `/dev/null`"));
    }
    if is_new {
        let path = plain(&new);
        let text = new_text(&hunks, start)?;
        return Ok(FileChange { path, to: None, kind: ChangeKind::Add { text, mode } });
    }
    if is_deleted {
        return Ok(FileChange { path: plain(&old), to: None, kind: ChangeKind::Delete { hunks } });
    }
    if let Some((from, to)) = header.rename {
        return Ok(FileChange { path: from, to: Some(to), kind: ChangeKind::Update { hunks } });
    }
    let (from, to) = (plain(&old), plain(&new));
    // `diff -u x.orig x` and `diff -u old/x new/x` are about one file, the new name's.
    if hunks.is_empty() {
        return Err(PatchError::malformed(start, "it changes nothing"));
    }
    hunks.shrink_to_fit();
    let path = if is_git { from } else { to };
    Ok(FileChange { path, to: None, kind: ChangeKind::Update { hunks } })
}

fn new_text(hunks: &[Hunk], start: usize) -> Result<String, PatchError> {
    let mut text = String::new();
    if hunks.len() > 1 {
        return Err(PatchError::malformed(start, "a new file has one hunk"));
    }
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        if line.tag != Tag::Insert {
            return Err(PatchError::malformed(start, "every line of a new file begins with `+`"));
        }
        text.push_str(&line.text);
        if !line.no_newline {
            text.push('\n');
        }
    }
    Ok(text)
}

/// `@@ -start,count +start,count @@`: the old start and both counts.
fn counts(line: &str) -> Option<(usize, usize, usize)> {
    let rest = line.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let pair = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
    };
    let ((start, removed), (_, added)) = (pair(old)?, pair(new)?);
    Some((start, removed, added))
}

fn hunk(lines: &[&str], at: &mut usize) -> Result<Hunk, PatchError> {
    let first = *at;
    let header = lines[first].trim_end_matches('\r');
    let stated = counts(header);
    *at += 1;
    let mut hunk = Hunk { stated: stated.map(|(start, _, _)| start.saturating_sub(1)), ..Hunk::default() };
    let Some((_, removed, added)) = stated else {
        // Models write `@@` alone, or with a line of the file to look behind.
        let heading = header.trim_matches('@').trim();
        if !heading.is_empty() && !heading.starts_with('-') {
            hunk.after.push(heading.to_owned());
        }
        loose_body(lines, at, &mut hunk);
        return if hunk.lines.is_empty() {
            Err(PatchError::malformed(first, "the hunk is empty"))
        } else {
            Ok(hunk)
        };
    };
    if counted_body(lines, at, &mut hunk, removed, added) {
        return Ok(hunk);
    }
    // The counts are wrong, as models' often are. The lines still have to be found exactly.
    *at = first + 1;
    hunk.lines.clear();
    loose_body(lines, at, &mut hunk);
    if hunk.lines.is_empty() && (removed, added) != (0, 0) {
        return Err(PatchError::malformed(first, "the hunk is empty"));
    }
    Ok(hunk)
}

/// Reads as many lines as the header says; false when they are not there or more follow.
fn counted_body(
    lines: &[&str],
    at: &mut usize,
    hunk: &mut Hunk,
    mut removed: usize,
    mut added: usize,
) -> bool {
    while removed > 0 || added > 0 {
        let Some(line) = lines.get(*at).and_then(|line| body_line(line)) else { return false };
        let counted = match line.tag {
            Tag::Context => removed.checked_sub(1).zip(added.checked_sub(1)),
            Tag::Remove => removed.checked_sub(1).map(|left| (left, added)),
            Tag::Insert => added.checked_sub(1).map(|left| (removed, left)),
        };
        let Some(left) = counted else { return false };
        (removed, added) = left;
        hunk.lines.push(line);
        *at += 1;
        no_newline(lines, at, hunk);
    }
    let more = lines.get(*at).is_some_and(|line| {
        !begins_file(lines, *at) && matches!(line.as_bytes().first(), Some(b' ' | b'+' | b'-'))
            // The signature `git format-patch` ends with.
            && *line != "-- "
    });
    !more
}

fn loose_body(lines: &[&str], at: &mut usize, hunk: &mut Hunk) {
    while *at < lines.len() && !lines[*at].starts_with("@@") && !begins_file(lines, *at) {
        let Some(line) = body_line(lines[*at]) else { break };
        hunk.lines.push(line);
        *at += 1;
        no_newline(lines, at, hunk);
    }
    // Blank lines between files are not part of the hunk.
    while hunk.lines.last().is_some_and(|line| line.tag == Tag::Context && line.text.is_empty()) {
        hunk.lines.pop();
    }
}

fn no_newline(lines: &[&str], at: &mut usize, hunk: &mut Hunk) {
    if lines.get(*at).is_some_and(|line| line.starts_with("\\ ")) {
        if let Some(last) = hunk.lines.last_mut() {
            last.no_newline = true;
        }
        *at += 1;
    }
}

fn body_line(line: &str) -> Option<Line> {
    Some(match line.as_bytes().first() {
        None => Line::new(Tag::Context, ""),
        Some(b' ') => Line::new(Tag::Context, &line[1..]),
        Some(b'-') => Line::new(Tag::Remove, &line[1..]),
        Some(b'+') => Line::new(Tag::Insert, &line[1..]),
        Some(b'\r') if line == "\r" => Line::new(Tag::Context, "\r"),
        Some(_) => return None,
    })
}
