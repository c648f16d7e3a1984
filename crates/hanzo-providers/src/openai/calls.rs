//! Gathering tool calls from their fragments. By the book a fragment has an index, the first one of a call its id and name,
//! and the others more of the arguments. In the field the index is missing or always zero, id and name are repeated in
//! every fragment, the arguments come whole, as an object, or not at all.

use std::hash::{BuildHasher as _, RandomState};

use hanzo_protocol::ids::ToolCallId;
use hanzo_protocol::message::{ApiError, ApiErrorKind, ToolCall};
use serde_json::Value;

use crate::failure;
use crate::reader::LONGEST_GATHERED;

/// No model makes so many calls at once.
const MOST_CALLS: usize = 512;

/// The calls of one answer so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Gathered>,
    size: usize,
}

#[derive(Debug, Default)]
struct Gathered {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extra: Option<Value>,
}

/// A complete call, with what the vendor wants back along with it.
#[derive(Debug)]
pub(super) struct Complete {
    pub(super) call: ToolCall,
    pub(super) extra: Option<Value>,
}

impl Calls {
    /// Whether the arguments of every call are whole, as far as can be told without the vendor's word for it.
    pub(super) fn are_whole(&self) -> bool {
        self.calls.iter().all(|call| call.arguments.is_empty() || is_json(&call.arguments))
    }

    /// Adds a fragment.
    pub(super) fn add(&mut self, fragment: &Value) -> Result<(), ApiError> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let function = &fragment["function"];
        let (index, id, name) = (fragment["index"].as_u64(), text(&fragment["id"]), text(&function["name"]));
        let more = match &function["arguments"] {
            Value::Null => String::new(),
            Value::String(more) => more.clone(),
            whole => whole.to_string(),
        };
        self.size += more.len() + name.len() + id.len();
        if self.size > LONGEST_GATHERED || self.calls.len() > MOST_CALLS {
            return Err(failure::plain(
                ApiErrorKind::Malformed,
                "the answer's tool calls are larger than any tool takes",
            ));
        }
        let call = self.place(index, &id, &name);
        if call.id.is_empty() {
            call.id.clone_from(&id);
        }
        // A name repeated is not a name continued. It is continued only where nothing else tells the fragment apart.
        if call.name.is_empty() {
            call.name = name;
        } else if id.is_empty() && call.arguments.is_empty() && call.name != name {
            call.name.push_str(&name);
        }
        call.arguments.push_str(&more);
        if let Some(extra) = fragment.get("extra_content").filter(|extra| !extra.is_null()) {
            call.extra = Some(extra.clone());
        }
        Ok(())
    }

    /// The call a fragment belongs to.
    fn place(&mut self, index: Option<u64>, id: &str, name: &str) -> &mut Gathered {
        let at = match index {
            // Some send every call under one index; then a new id with a name is a new call.
            Some(_) => self.calls.iter().rposition(|call| call.index == index).filter(|at| {
                let known = &self.calls[*at];
                id.is_empty() || known.id.is_empty() || known.id == id || name.is_empty()
            }),
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            // Neither index nor id: more of the last call, or a new one when it is named and the last is complete.
            None => self.calls.len().checked_sub(1).filter(|last| {
                let known = &self.calls[*last];
                name.is_empty()
                    || (known.arguments.is_empty() && known.name == name)
                    || !is_json(&known.arguments)
            }),
        };
        let at = at.unwrap_or_else(|| {
            self.calls.push(Gathered { index, ..Gathered::default() });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }

    /// All calls, when the answer is complete. `cut` says that the model ran out of room: a call whose arguments are no
    /// JSON then was cut too, and is dropped.
    pub(super) fn complete(&mut self, cut: bool) -> Result<Vec<Complete>, ApiError> {
        let mut complete: Vec<Complete> = Vec::new();
        for gathered in std::mem::take(&mut self.calls) {
            if cut && !is_json(&gathered.arguments) {
                continue;
            }
            if gathered.name.is_empty() {
                return Err(failure::plain(
                    ApiErrorKind::Malformed,
                    "the answer holds a tool call without a name",
                ));
            }
            let taken = complete.iter().any(|other| other.call.id.as_str() == gathered.id);
            let id = if gathered.id.is_empty() || taken { fresh_id(complete.len()) } else { gathered.id };
            let arguments = if gathered.arguments.is_empty() { "{}".to_owned() } else { gathered.arguments };
            let call = ToolCall { id: ToolCallId::new(id), name: gathered.name, arguments };
            complete.push(Complete { call, extra: gathered.extra });
        }
        Ok(complete)
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// An id for a call whose vendor gave none, unlike any other in the thread.
fn fresh_id(index: usize) -> String {
    format!("call_{:016x}", RandomState::new().hash_one(index))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gather(fragments: &[Value]) -> Vec<(String, String, String)> {
        let mut calls = Calls::default();
        for fragment in fragments {
            calls.add(fragment).unwrap();
        }
        let complete = calls.complete(false).unwrap();
        complete
            .into_iter()
            .map(|it| (it.call.id.as_str().to_owned(), it.call.name, it.call.arguments))
            .collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.into(), name.into(), arguments.into())
    }

    #[test]
    fn fragments_are_gathered_by_index() {
        let got = gather(&[
            json!({"index": 0, "id": "a", "function": {"name": "fs", "arguments": ""}}),
            json!({"index": 1, "id": "b", "function": {"name": "vcs", "arguments": ""}}),
            json!({"index": 0, "function": {"arguments": "{\"x\""}}),
            json!({"index": 1, "function": {"arguments": "{}"}}),
            json!({"index": 0, "function": {"arguments": ":1}"}}),
        ]);
        assert_eq!(got, [call("a", "fs", "{\"x\":1}"), call("b", "vcs", "{}")]);
    }

    #[test]
    fn id_and_name_may_be_repeated_in_every_fragment() {
        let piece = |text: &str| json!({"index": 0, "id": "a", "type": "function", "function": {"name": "fs", "arguments": text}});
        assert_eq!(gather(&[piece(""), piece("{"), piece("}")]), [call("a", "fs", "{}")]);
    }

    #[test]
    fn the_index_may_be_missing_or_always_zero() {
        for index in [json!(null), json!(0)] {
            let got = gather(&[
                json!({"index": index, "id": "a", "function": {"name": "fs", "arguments": "{\"a\":"}}),
                json!({"index": index, "function": {"arguments": "1}"}}),
                json!({"index": index, "id": "b", "function": {"name": "fs", "arguments": "{}"}}),
            ]);
            assert_eq!(got, [call("a", "fs", "{\"a\":1}"), call("b", "fs", "{}")], "{index}");
        }
    }

    #[test]
    fn whole_calls_without_any_mark_are_told_apart() {
        let got = gather(&[
            json!({"function": {"name": "fs", "arguments": {"a": 1}}}),
            json!({"function": {"name": "fs", "arguments": "{\"a\":2}"}}),
        ]);
        assert_eq!(got.iter().map(|it| it.2.as_str()).collect::<Vec<_>>(), ["{\"a\":1}", "{\"a\":2}"]);
        assert_ne!(got[0].0, got[1].0);
        assert!(got[0].0.starts_with("call_"));
    }

    #[test]
    fn two_calls_never_share_an_id() {
        let got = gather(&[
            json!({"index": 0, "id": "0", "function": {"name": "a", "arguments": "{}"}}),
            json!({"index": 1, "id": "0", "function": {"name": "b", "arguments": "{}"}}),
        ]);
        assert_eq!(got.len(), 2);
        assert_ne!(got[0].0, got[1].0);
    }

    #[test]
    fn malformed_arguments_are_passed_on_unless_the_model_was_cut() {
        let fragment =
            json!({"index": 0, "id": "a", "function": {"name": "fs", "arguments": "{\"path\": \"/et"}});
        for (cut, expected) in [(false, 1), (true, 0)] {
            let mut calls = Calls::default();
            calls.add(&fragment).unwrap();
            assert_eq!(calls.complete(cut).unwrap().len(), expected);
        }
    }

    #[test]
    fn a_call_without_a_name_is_an_error() {
        let mut calls = Calls::default();
        calls.add(&json!({"index": 0, "id": "a", "function": {"arguments": "{}"}})).unwrap();
        assert_eq!(calls.complete(false).unwrap_err().kind, ApiErrorKind::Malformed);
    }

    #[test]
    fn arguments_without_end_are_refused() {
        let mut calls = Calls::default();
        let piece =
            json!({"index": 0, "id": "a", "function": {"name": "fs", "arguments": "x".repeat(1 << 20)}});
        let outcome = (0..20).try_for_each(|_| calls.add(&piece));
        assert_eq!(outcome.unwrap_err().kind, ApiErrorKind::Malformed);
    }
}
