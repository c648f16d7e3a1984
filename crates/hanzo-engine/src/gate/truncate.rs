//! Step 10: a result is cut to its budget, head and tail, and the whole is kept behind a ref.

use hanzo_protocol::blob::BlobStore;
use hanzo_protocol::primitives::Ref;
use hanzo_protocol::tool::ToolResult;
use serde_json::{Value, json};

/// How a ref to kept content begins, as `fs.read` knows it.
const REF_PREFIX: &str = "blob:";

/// The part of the budget that goes to the head; the rest is the tail, where errors tend to be.
const HEAD: (usize, usize) = (3, 5);

/// How far back from a cut an end of line is looked for, in characters.
const LINE_SEARCH: usize = 200;

/// Cuts `result` to `most` characters of text, and its envelope to about as much.
pub(super) async fn truncate(result: &mut ToolResult, most: usize, blobs: &dyn BlobStore) -> Option<Ref> {
    let length = result.output.chars().count();
    let full = if length > most {
        let (kept, how) = match blobs.put(result.output.as_bytes()).await {
            Ok(hash) => {
                let full = Ref::new(format!("{REF_PREFIX}{}", hash.as_str()));
                let how = whole(&full);
                (Some(full), how)
            }
            Err(error) => (None, format!("the whole output is lost: {error}")),
        };
        result.output = shorten(&result.output, most, &how);
        kept
    } else {
        None
    };
    if let Some(error) = &mut result.error
        && error.chars().count() > most
    {
        *error = shorten(error, most, "see the output");
    }
    if let Some(envelope) = &mut result.envelope {
        shorten_envelope(envelope, most, full.as_ref());
    }
    full
}

fn whole(full: &Ref) -> String {
    format!("fs.read with path `{full}` reads the whole output")
}

/// The beginning and the end of `text` with a line between them that says what is missing; at most `most` characters.
fn shorten(text: &str, most: usize, how: &str) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    // Room for the line with the largest number it can hold.
    let line = |left_out: usize| format!("\n[… {left_out} characters left out; {how} …]\n");
    let room = most.saturating_sub(line(length).chars().count());
    let head_room = room * HEAD.0 / HEAD.1;
    let head = at_line_end(take(text, head_room));
    let tail_room = room - head_room;
    let skipped = length - tail_room;
    let tail = &text[take(text, skipped).len()..];
    let left_out = length - head.chars().count() - tail.chars().count();
    let cut = format!("{head}{}{tail}", line(left_out));
    // A budget smaller than the line itself.
    take(&cut, most).to_owned()
}

/// The first `count` characters.
fn take(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(at, _)| &text[..at])
}

/// `head` up to its last line end, where that is near.
fn at_line_end(head: &str) -> &str {
    match head.rfind('\n') {
        Some(at) if head[at..].chars().count() <= LINE_SEARCH => &head[..at],
        _ => head,
    }
}

/// Cuts long texts in the data and the error of an envelope, so that programs still get the shape they expect. What remains too large
/// is replaced by a sentence about it; `ok`, `meta` and the error's code always stay.
fn shorten_envelope(envelope: &mut Value, most: usize, full: Option<&Ref>) {
    if size(envelope) <= most {
        return;
    }
    let how = full.map_or_else(
        || "not kept".to_owned(),
        |full| format!("fs.read with path `{full}` reads the whole output"),
    );
    for key in ["data", "error"] {
        let Some(part) = envelope.get_mut(key) else { continue };
        // A quarter for each long text leaves room for several of them.
        shorten_texts(part, (most / 4).max(64), &how);
    }
    if size(envelope) > most {
        let replacement = json!({ "truncated": true, "note": how });
        if envelope.get("data").is_some_and(|data| !data.is_null()) {
            envelope["data"] = replacement;
        } else if let Some(details) = envelope.pointer_mut("/error/details") {
            *details = replacement;
        }
    }
    if let Some(Value::Object(meta)) = envelope.get_mut("meta") {
        meta.insert("truncated".to_owned(), Value::Bool(true));
        if let Some(full) = full {
            meta.insert("full_output".to_owned(), Value::from(full.as_str()));
        }
    }
}

fn shorten_texts(value: &mut Value, most: usize, how: &str) {
    match value {
        Value::String(text) if text.chars().count() > most => *text = shorten(text, most, how),
        Value::Array(values) => values.iter_mut().for_each(|value| shorten_texts(value, most, how)),
        Value::Object(map) => map.values_mut().for_each(|value| shorten_texts(value, most, how)),
        _ => {}
    }
}

/// About how many characters the value takes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count() + 2,
        Value::Array(values) => values.iter().map(|value| size(value) + 1).sum::<usize>() + 2,
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + size(value) + 4).sum::<usize>() + 2,
        Value::Number(_) => 8,
        Value::Bool(_) | Value::Null => 4,
    }
}

#[cfg(test)]
mod tests {
    use hanzo_protocol::BoxFuture;
    use hanzo_protocol::blob::BlobError;
    use hanzo_protocol::envelope::{Envelope, ErrorCode, Meta, ToolError};
    use hanzo_protocol::ids::TraceId;
    use hanzo_protocol::primitives::ContentHash;
    use proptest::prelude::*;

    use super::*;

    enum Blobs {
        Keep,
        Fail,
    }

    impl BlobStore for Blobs {
        fn put<'a>(&'a self, content: &'a [u8]) -> BoxFuture<'a, Result<ContentHash, BlobError>> {
            Box::pin(async move {
                match self {
                    Self::Keep => Ok(ContentHash::of(content)),
                    Self::Fail => Err(BlobError { doing: "keep", reason: "the disk is full".into() }),
                }
            })
        }

        fn get<'a>(&'a self, _: &'a ContentHash) -> BoxFuture<'a, Result<Option<Vec<u8>>, BlobError>> {
            Box::pin(async { Ok(None) })
        }
    }

    #[tokio::test]
    async fn what_fits_is_left_alone() {
        let mut result = ToolResult::success("x".repeat(50_000));
        assert_eq!(truncate(&mut result, 50_000, &Blobs::Keep).await, None);
        assert_eq!(result, ToolResult::success("x".repeat(50_000)));
    }

    #[tokio::test]
    async fn what_does_not_fit_keeps_head_and_tail_and_names_the_whole() {
        let mut text = (0..20_000).map(|n| format!("line {n} ü")).collect::<Vec<_>>().join("\n");
        text.push('\n');
        let mut result = ToolResult::success(text.clone());
        let full = truncate(&mut result, 50_000, &Blobs::Keep).await.unwrap();
        assert_eq!(full.as_str(), format!("blob:{}", ContentHash::of(text.as_bytes()).as_str()));
        assert!(result.output.chars().count() <= 50_000);
        assert!(result.output.starts_with("line 0 ü\n") && result.output.ends_with("line 19999 ü\n"));
        assert!(
            result.output.contains(&format!(
                "characters left out; fs.read with path `{full}` reads the whole output …]"
            ))
        );
    }

    #[tokio::test]
    async fn a_store_that_fails_does_not_fail_the_call() {
        let mut result = ToolResult::success("x".repeat(300));
        assert_eq!(truncate(&mut result, 150, &Blobs::Fail).await, None);
        assert!(result.output.contains("the disk is full"), "{}", result.output);
    }

    #[tokio::test]
    async fn an_envelope_stays_one() {
        let meta = || Meta::new("fs", "read", TraceId::new());
        let long = json!({"text": "y".repeat(1_000_000), "lines": 7});
        let many = json!((0..100_000).map(|n| n.to_string()).collect::<Vec<_>>());
        for data in [long, many] {
            let mut result: ToolResult = Envelope::success(data, meta()).into();
            let full = truncate(&mut result, 50_000, &Blobs::Keep).await.unwrap();
            let wire = result.envelope.unwrap();
            assert!(wire.to_string().len() < 55_000, "{}", wire.to_string().len());
            assert_eq!(wire["meta"]["full_output"], json!(full.as_str()));
            let envelope: Envelope = serde_json::from_value(wire).unwrap();
            assert!(envelope.is_ok());
        }
        let error = ToolError::new(ErrorCode::Conflict, "z".repeat(200_000))
            .with_details(json!({"x": "w".repeat(90_000)}));
        let mut result: ToolResult = Envelope::<Value>::failure(error, meta()).into();
        truncate(&mut result, 50_000, &Blobs::Keep).await.unwrap();
        assert!(result.error.as_ref().unwrap().chars().count() <= 50_000);
        let envelope: Envelope = serde_json::from_value(result.envelope.unwrap()).unwrap();
        assert_eq!(envelope.outcome.unwrap_err().code, ErrorCode::Conflict);
    }

    proptest! {
        #[test]
        fn any_text_fits_any_budget(text in "\\PC{0,400}|[a\\n]{0,400}", most in 0usize..300) {
            let cut = shorten(&text, most, "gone");
            prop_assert!(cut.chars().count() <= most.max(text.chars().count().min(most)));
            if text.chars().count() <= most {
                prop_assert_eq!(cut, text);
            }
        }
    }
}
