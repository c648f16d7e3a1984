//! An envelope as the text a model reads.
//!
//! A model pays for every quote and backslash, and copies text badly out of an escaped string. So short facts become
//! `key: value` lines and the long text (a file, an output, a diff, matches) follows them raw. The same envelope always gives
//! the same text; trace ids and timings are left to programs.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde_json::{Map, Value};

/// A string that is longer, or has several lines, stands by itself.
const MAX_INLINE: usize = 200;

/// Fields that stand alone without a heading when nothing else is long.
const PLAIN: [&str; 7] = ["text", "content", "diff", "output", "matches", "entries", "files"];

/// The text for a model of an envelope in its JSON form.
pub fn envelope(envelope: &Value) -> String {
    let mut page = Page::default();
    if let Some(error) = envelope.get("error").filter(|error| !error.is_null()) {
        let part = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
        page.line(format_args!("error {}: {}", part("code"), part("message")));
        if let Some(Value::Object(details)) = error.get("details") {
            page.members(details);
        }
        return page.finish();
    }
    match envelope.get("data") {
        Some(Value::Object(data)) => page.members(data),
        Some(Value::String(text)) => return text.clone(),
        Some(Value::Null) | None => page.line(format_args!("done")),
        Some(Value::Array(rows)) => page.list("entries", rows),
        Some(other) => page.line(format_args!("{other}")),
    }
    let paging = envelope.get("meta").and_then(|meta| meta.get("paging"));
    if let Some(cursor) = paging.and_then(|paging| paging.get("cursor")).and_then(Value::as_str) {
        page.line(format_args!("more: pass cursor {cursor}"));
    }
    page.finish()
}

#[derive(Default)]
struct Page<'a> {
    /// Short facts, one to a line.
    head: String,
    blocks: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Page<'a> {
    fn line(&mut self, line: fmt::Arguments<'_>) {
        if !self.head.is_empty() {
            self.head.push('\n');
        }
        self.head.write_fmt(line).expect("writing to a string does not fail");
    }

    fn members(&mut self, members: &'a Map<String, Value>) {
        for (name, value) in members {
            match value {
                Value::Null => {}
                Value::String(text) if text.contains('\n') || text.len() > MAX_INLINE => {
                    self.blocks.push((name, text.into()));
                }
                Value::String(text) if text.is_empty() => self.line(format_args!("{name}: \"\"")),
                Value::Array(rows) => self.list(name, rows),
                Value::Object(inner) => match span(value).or_else(|| row_of_scalars(inner)) {
                    Some(text) => self.line(format_args!("{name}: {text}")),
                    None => self.blocks.push((name, tree(value, 0).into())),
                },
                Value::String(text) => self.line(format_args!("{name}: {text}")),
                other => self.line(format_args!("{name}: {other}")),
            }
        }
    }

    fn list(&mut self, name: &'a str, rows: &[Value]) {
        if rows.is_empty() {
            self.line(format_args!("{name}: none"));
        } else if rows.iter().all(|row| !row.is_object() && !row.is_array()) {
            let words: Vec<String> = rows.iter().map(scalar).collect();
            let line = words.join(", ");
            if line.len() <= MAX_INLINE && !line.contains('\n') {
                self.line(format_args!("{name}: {line}"));
            } else {
                self.blocks.push((name, words.join("\n").into()));
            }
        } else {
            self.blocks.push((name, table(rows).into()));
        }
    }

    fn finish(self) -> String {
        let mut text = self.head;
        let alone = self.blocks.len() == 1;
        text.reserve(self.blocks.iter().map(|(name, block)| name.len() + block.len() + 4).sum());
        for (name, block) in &self.blocks {
            if !text.is_empty() {
                text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
            }
            if !(alone && PLAIN.contains(name)) {
                text.push_str(name);
                text.push_str(":\n");
            }
            text.push_str(block);
        }
        text
    }
}

/// Objects, one per line. What their URIs have in common is said once; matches of one file stand together.
fn table(rows: &[Value]) -> String {
    let uris: Vec<&str> = rows.iter().filter_map(|row| row.get("uri").and_then(Value::as_str)).collect();
    let shared = shared_directory(&uris);
    let mut text = String::new();
    let line = |text: &mut String, content: &str| {
        text.push_str(content);
        text.push('\n');
    };
    if !shared.is_empty() {
        line(&mut text, &format!("in {shared}"));
    }
    let mut file = None;
    for row in rows {
        let Value::Object(members) = row else {
            line(&mut text, &row.to_string());
            continue;
        };
        let uri = members.get("uri").and_then(Value::as_str);
        let name = uri.map(|uri| uri.strip_prefix(shared).filter(|rest| !rest.is_empty()).unwrap_or(uri));
        if let (Some(name), Some(matched)) = (name, found(members)) {
            if file != Some(name) {
                line(&mut text, name);
                file = Some(name);
            }
            line(&mut text, &matched);
            continue;
        }
        // A listing has thousands of these: they are written where they stand.
        text.push_str(name.unwrap_or_default());
        let mut is_first = name.is_none();
        let mut long = Vec::new();
        for (key, value) in members.iter().filter(|(key, value)| *key != "uri" && !value.is_null()) {
            if let Value::String(text) = value
                && (text.contains('\n') || text.len() > MAX_INLINE)
            {
                long.push(text.as_str());
                continue;
            }
            if !std::mem::take(&mut is_first) {
                text.push(' ');
            }
            match value {
                Value::String(kind) if key == "kind" => text.push_str(kind),
                other => {
                    let inner = match other {
                        Value::Object(_) | Value::Array(_) => {
                            span(other).unwrap_or_else(|| other.to_string())
                        }
                        other => scalar(other),
                    };
                    text.push_str(key);
                    text.push('=');
                    text.push_str(&inner);
                }
            }
        }
        text.push('\n');
        for part in long {
            line(&mut text, part);
        }
    }
    text
}

/// A match: `{uri, range, text}` and perhaps the lines around it.
fn found(members: &Map<String, Value>) -> Option<String> {
    let text = members.get("text")?.as_str()?;
    let first = members.get("range")?.get("start")?.get("line")?.as_u64()?;
    let around = |name: &str| {
        let lines = members.get(name).and_then(Value::as_array);
        lines.into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let mut out = String::new();
    let before = around("before");
    let mut number = first.saturating_sub(before.len() as u64);
    let mut push = |mark: char, line: &str| {
        if !out.is_empty() {
            out.push('\n');
        }
        write!(out, "{number}{mark} {line}").expect("writing to a string does not fail");
        number += 1;
    };
    for line in before {
        push('-', line);
    }
    for line in text.lines() {
        push(':', line);
    }
    for line in around("after") {
        push('-', line);
    }
    Some(out)
}

/// The directory all URIs are in, with its last slash; empty for fewer than two.
fn shared_directory<'a>(uris: &[&'a str]) -> &'a str {
    let [first, rest @ ..] = uris else { return "" };
    if rest.is_empty() {
        return "";
    }
    let mut shared = first.rfind('/').map_or("", |at| &first[..=at]);
    for uri in rest {
        while !uri.starts_with(shared) {
            let shorter = shared.strip_suffix('/').and_then(|text| text.rfind('/'));
            shared = shorter.map_or("", |at| &shared[..=at]);
        }
    }
    if shared.len() > "file:///".len() { shared } else { "" }
}

/// A range as `line:col-line:col`.
fn span(value: &Value) -> Option<String> {
    // By name and not by pointer, which would be taken apart each time.
    let number = |end: &str, name: &str| value.get(end)?.get(name)?.as_u64();
    Some(format!(
        "{}:{}-{}:{}",
        number("start", "line")?,
        number("start", "col")?,
        number("end", "line")?,
        number("end", "col")?
    ))
}

/// Short facts on one line, longer ones not at all.
fn row_of_scalars(members: &Map<String, Value>) -> Option<String> {
    let words: Option<Vec<String>> = members
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| match value {
            Value::Object(_) | Value::Array(_) => None,
            Value::String(text) if text.contains('\n') => None,
            other => Some(format!("{name}={}", scalar(other))),
        })
        .collect();
    words.map(|words| words.join(" ")).filter(|line| line.len() <= MAX_INLINE)
}

fn tree(value: &Value, depth: usize) -> String {
    let Value::Object(members) = value else { return value.to_string() };
    let indent = "  ".repeat(depth);
    let mut text = String::new();
    for (name, value) in members {
        match value {
            Value::Object(inner) if row_of_scalars(inner).is_none() => {
                write!(text, "{indent}{name}:\n{}", tree(value, depth + 1))
            }
            Value::String(inner) => writeln!(text, "{indent}{name}: {inner}"),
            other => writeln!(text, "{indent}{name}: {other}"),
        }
        .expect("writing to a string does not fail");
    }
    text
}

fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ok(data: &Value) -> String {
        envelope(&json!({"ok": true, "data": data, "error": null, "meta": {"paging": {"cursor": null}}}))
    }

    #[test]
    fn a_file_stands_raw_after_a_short_head() {
        let text = ok(&json!({
            "uri": "file:///w/a.rs",
            "hash": "sha256:ab",
            "range": {"start": {"line": 0, "col": 0}, "end": {"line": 2, "col": 0}},
            "lines": 2,
            "encoding": null,
            "text": "fn main() {\n\t\"\\n\"\n",
        }));
        assert_eq!(
            text,
            "uri: file:///w/a.rs\nhash: sha256:ab\nrange: 0:0-2:0\nlines: 2\n\nfn main() {\n\t\"\\n\"\n"
        );
    }

    #[test]
    fn matches_stand_under_their_file_and_the_shared_directory_is_said_once() {
        let at = |line: u32| json!({"start": {"line": line, "col": 0}, "end": {"line": line, "col": 1}});
        let text = ok(&json!({"matches": [
            {"uri": "file:///w/src/a.rs", "range": at(3), "text": "x", "before": ["w"], "after": ["y"]},
            {"uri": "file:///w/src/a.rs", "range": at(9), "text": "xx"},
            {"uri": "file:///w/b.rs", "range": at(0), "text": "x"},
        ]}));
        assert_eq!(text, "in file:///w/\nsrc/a.rs\n2- w\n3: x\n4- y\n9: xx\nb.rs\n0: x\n");
    }

    #[test]
    fn rows_say_what_they_are_in_one_line() {
        let text = ok(&json!({"entries": [
            {"uri": "file:///w/src", "kind": "directory", "size": null},
            {"uri": "file:///w/a.rs", "kind": "file", "size": 7},
        ]}));
        assert_eq!(text, "in file:///w/\nsrc directory\na.rs file size=7\n");
        assert_eq!(ok(&json!({"entries": []})), "entries: none");
    }

    #[test]
    fn several_long_texts_have_headings_and_so_has_one_whose_meaning_is_not_plain() {
        let text = ok(&json!({"exit_code": 1, "stdout": "a\nb\n", "stderr": "c\nd"}));
        assert_eq!(text, "exit_code: 1\n\nstdout:\na\nb\n\nstderr:\nc\nd");
        assert_eq!(ok(&json!({"stderr": "c\nd"})), "stderr:\nc\nd");
    }

    #[test]
    fn an_error_says_its_code_its_message_and_its_facts() {
        let error = json!({"code": "CONFLICT", "message": "changed", "details": {"expected": "a", "diff": "-x\n+y\n"}});
        let text = envelope(&json!({"ok": false, "data": null, "error": error, "meta": {}}));
        assert_eq!(text, "error CONFLICT: changed\nexpected: a\n\n-x\n+y\n");
    }

    #[test]
    fn a_page_says_how_to_go_on_and_nothing_says_when_or_by_whom() {
        let meta = json!({"trace_id": "secret-trace", "paging": {"cursor": "abc.def", "more": true}});
        let text = envelope(&json!({"ok": true, "data": {"n": 1}, "error": null, "meta": meta}));
        assert_eq!(text, "n: 1\nmore: pass cursor abc.def");
    }
}
