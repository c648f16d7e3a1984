//! What a person wants to know of a tool call, as plain text: what it is about, what it returned, how long it took. For the
//! cards here and for those a run without a face prints.

use std::borrow::Cow;

use hanzo_md_render::plain;
use hanzo_protocol::item::ToolCallItem;
use hanzo_protocol::tool::ToolResult;
use serde_json::{Map, Value};

/// The name of the call and what it is about. A subagent is called by its name.
pub(super) fn title(call: &ToolCallItem) -> (String, String) {
    if call.tool == "agent.run"
        && let Ok(Value::Object(arguments)) = serde_json::from_str(&call.arguments)
        && let (Some(agent), Some(task)) =
            (arguments.get("agent").and_then(Value::as_str), arguments.get("task").and_then(Value::as_str))
    {
        return (format!("agent {}", one_line(agent)), one_line(task));
    }
    (plain::clean(&call.tool).into_owned(), subject(&call.arguments))
}

/// What a call is about, from its arguments, in one line: a command, a file, a query, the files of a patch.
pub fn subject(arguments: &str) -> String {
    const TELLING: [&str; 12] = [
        "command", "argv", "query", "pattern", "uri", "path", "file", "url", "message", "task", "name",
        "question",
    ];
    let Ok(Value::Object(arguments)) = serde_json::from_str(arguments) else { return String::new() };
    let words = |value: &Value| match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Array(list) => {
            let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            (!words.is_empty()).then(|| words.join(" "))
        }
        _ => None,
    };
    let found = TELLING.iter().find_map(|name| words(arguments.get(*name)?));
    let found = one_line(&found.unwrap_or_else(|| patched(&arguments).join(", ")));
    found.strip_prefix("file://").unwrap_or(&found).to_owned()
}

/// The files a patch in the arguments changes.
fn patched(arguments: &Map<String, Value>) -> Vec<String> {
    let Some(patch) = arguments.get("patch").and_then(Value::as_str) else { return Vec::new() };
    let names = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/", "+++ "];
    let named = |line: &str| names.iter().find_map(|name| line.strip_prefix(name).map(one_line));
    let mut files: Vec<String> = patch.lines().filter_map(named).filter(|name| name != "/dev/null").collect();
    files.dedup();
    files
}

/// What the result is made of, for those who know its fields.
pub(super) fn data(result: &ToolResult) -> Option<&Map<String, Value>> {
    result.envelope.as_ref()?.get("data")?.as_object()
}

/// The exit code of a process that ended with one.
pub fn exit_code(result: &ToolResult) -> Option<i64> {
    data(result)?.get("exit_code")?.as_i64()
}

/// What a person wants to see of a result: the text in it, without what is only there for programs and models.
pub fn shown(result: &ToolResult) -> Cow<'_, str> {
    const TEXTS: [&str; 4] = ["text", "diff", "stdout", "stderr"];
    let Some(data) = data(result) else {
        return Cow::Borrowed(if result.output.is_empty() {
            result.error.as_deref().unwrap_or_default()
        } else {
            &result.output
        });
    };
    let texts = TEXTS.iter().filter_map(|name| data.get(*name)?.as_str());
    let matches = data.get("matches").and_then(Value::as_array);
    if texts.clone().next().is_none() && matches.is_none() {
        return Cow::Borrowed(&result.output);
    }
    let parts: Vec<&str> = texts.map(str::trim_end).filter(|part| !part.is_empty()).collect();
    match (parts.as_slice(), matches) {
        ([one], None) => Cow::Borrowed(one),
        (several, None) => Cow::Owned(several.join("\n")),
        (several, Some(matches)) => {
            let parts = several.iter().map(|&part| part.to_owned());
            let above = common_directory(matches);
            let places = matches.iter().map(|place| found(place, above));
            Cow::Owned(parts.chain(places).collect::<Vec<_>>().join("\n"))
        }
    }
}

/// How long the names of the directories are that all places have in common: they tell none from another.
fn common_directory(places: &[Value]) -> usize {
    let mut uris = places.iter().filter_map(|place| place["uri"].as_str());
    let Some(first) = uris.next() else { return 0 };
    let same = |uri: &str| first.bytes().zip(uri.bytes()).take_while(|(a, b)| a == b).count();
    let length = uris.map(same).min().unwrap_or(first.len());
    first.as_bytes()[..length].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1)
}

/// A place that was found, as compilers write it.
fn found(place: &Value, above: usize) -> String {
    let file = place["uri"].as_str().and_then(|uri| uri.get(above..)).unwrap_or_default();
    let line = place["range"]["start"]["line"].as_u64().map_or(0, |line| line + 1);
    format!("{file}:{line}: {}", place["text"].as_str().unwrap_or_default())
}

/// Cleaned, with line breaks and runs of blanks joined. No more of it than a line can hold.
fn one_line(text: &str) -> String {
    let start: String = text.chars().take(2_000).collect();
    plain::clean(&start).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A duration in the unit people think in.
pub fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds % 60_000 / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(data: &Value) -> ToolResult {
        ToolResult { envelope: Some(json!({"ok": true, "data": data})), ..ToolResult::success("as it is") }
    }

    #[test]
    fn the_text_is_shown_and_the_rest_is_left_to_programs() {
        let ran = with(&json!({"proc_id": "p", "exit_code": 3, "stdout": "out\n", "stderr": "err\n"}));
        assert_eq!(shown(&ran), "out\nerr");
        assert_eq!(exit_code(&ran), Some(3));
        let range = json!({"start": {"line": 2, "col": 0}});
        let places = with(&json!({"matches": [{"uri": "file:///w/a.rs", "range": &range, "text": "fn a"}]}));
        assert_eq!(shown(&places), "a.rs:3: fn a");
        let place = |uri: &str| json!({"uri": uri, "range": &range, "text": "x"});
        let uris = ["file:///w/src/a.rs", "file:///w/src/sub/a.rs", "file:///w/src/é.rs"].map(place);
        let places = with(&json!({"matches": uris}));
        assert_eq!(shown(&places), "a.rs:3: x\nsub/a.rs:3: x\né.rs:3: x");
        assert_eq!(shown(&with(&json!({"entries": []}))), "as it is");
        assert_eq!(shown(&ToolResult::success("plain")), "plain");
    }

    #[test]
    fn a_call_is_about_what_it_names_first() {
        assert_eq!(subject(r#"{"command":"make\n  test","uri":"x"}"#), "make test");
        assert_eq!(subject(r#"{"argv":["cargo","test"]}"#), "cargo test");
        assert_eq!(subject(r#"{"uri":"file:///w/a.rs"}"#), "/w/a.rs");
        let patch = json!({"patch": "--- a/x\n+++ b/src/x.rs\n+++ /dev/null\n*** Add File: y\n"});
        assert_eq!(subject(&patch.to_string()), "src/x.rs, y");
        assert_eq!(subject("{\""), "");
    }

    #[test]
    fn durations_are_read_at_a_glance() {
        assert_eq!([5, 1_500, 125_000].map(duration), ["5 ms", "1.5 s", "2 min 5 s"]);
    }
}
