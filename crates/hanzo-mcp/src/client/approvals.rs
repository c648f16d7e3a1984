//! What each tool was when it was last let through. A server that is harmless while it is looked at and something else
//! afterwards would otherwise live on the consent that was given to the first.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::cache::write_private;

/// Whether a tool is what it was when it was let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It was never called.
    New,
    /// It is.
    Same,
    /// It says something else about itself now.
    Changed,
}

/// Identifies what a tool says about itself: name, description, schema and annotations.
pub fn fingerprint(name: &str, description: Option<&str>, schema: &Value, annotations: &Value) -> String {
    let mut hash = Sha256::new();
    for part in [name, description.unwrap_or_default(), &canonical(schema), &canonical(annotations)] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    digest.iter().fold("sha256:".to_owned(), |mut text, byte| {
        use std::fmt::Write as _;
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The same text for the same value, in whatever order its keys came.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            let inner: Vec<String> = sorted
                .iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", inner.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// The tools that were let through, in a file. A file that cannot be read is an empty one: then tools are new, and rules
/// decide about them as about any other.
#[derive(Debug)]
pub struct Approvals {
    file: Option<PathBuf>,
    /// Server, then tool.
    known: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
}

impl Approvals {
    /// Those that are kept in `file`; kept nowhere without one.
    pub fn open(file: Option<PathBuf>) -> Self {
        let text = file.as_ref().and_then(|file| std::fs::read(file).ok());
        let known = text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Self { file, known: Mutex::new(known) }
    }

    /// What `tool` of `server` is, compared with what it was.
    pub fn standing(&self, server: &str, tool: &str, fingerprint: &str) -> Standing {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(server).and_then(|tools| tools.get(tool)) {
            None => Standing::New,
            Some(then) if then == fingerprint => Standing::Same,
            Some(_) => Standing::Changed,
        }
    }

    /// `tool` of `server` was let through as it is now.
    pub fn approve(&self, server: &str, tool: &str, fingerprint: &str) {
        let text = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let tools = known.entry(server.to_owned()).or_default();
            if tools.get(tool).is_some_and(|then| then == fingerprint) {
                return;
            }
            tools.insert(tool.to_owned(), fingerprint.to_owned());
            serde_json::to_vec_pretty(&*known)
        };
        // Should it not be written, the next run asks once more or not at all, which rules decide.
        if let (Some(file), Ok(text)) = (&self.file, text) {
            let _ = write_private(file, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_that_changed_is_noticed_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep/tools.json");
        let print =
            |description: &str| fingerprint("t", Some(description), &json!({"a": 1, "b": 2}), &Value::Null);
        let approvals = Approvals::open(Some(file.clone()));
        assert_eq!(approvals.standing("s", "t", &print("x")), Standing::New);
        approvals.approve("s", "t", &print("x"));
        assert_eq!(approvals.standing("s", "t", &print("x")), Standing::Same);

        let approvals = Approvals::open(Some(file));
        assert_eq!(approvals.standing("s", "t", &print("x")), Standing::Same);
        assert_eq!(approvals.standing("s", "t", &print("y")), Standing::Changed);
        assert_eq!(approvals.standing("other", "t", &print("x")), Standing::New);
    }

    #[test]
    fn every_part_counts_and_the_order_of_keys_does_not() {
        let base = fingerprint("t", Some("d"), &json!({"a": 1, "b": 2}), &json!({"readOnlyHint": true}));
        assert_eq!(
            base,
            fingerprint("t", Some("d"), &json!({"b": 2, "a": 1}), &json!({"readOnlyHint": true}))
        );
        for other in [
            fingerprint("u", Some("d"), &json!({"a": 1, "b": 2}), &json!({"readOnlyHint": true})),
            fingerprint("t", Some("e"), &json!({"a": 1, "b": 2}), &json!({"readOnlyHint": true})),
            fingerprint("t", Some("d"), &json!({"a": 1, "b": 3}), &json!({"readOnlyHint": true})),
            fingerprint("t", Some("d"), &json!({"a": 1, "b": 2}), &json!({"readOnlyHint": false})),
        ] {
            assert_ne!(base, other);
        }
    }
}
