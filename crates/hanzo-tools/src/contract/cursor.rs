//! Cursors that carry their position, so that a listing goes on after a restart, and the query they belong to, so that one
//! cannot be used to go on with another.

use std::fmt::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::{ContentHash, PageCursor};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The fields that may change from page to page.
const FREE_FIELDS: [&str; 3] = ["cursor", "limit", "intent"];

/// What a call asks. Its digest is worked out when a cursor is read or given out; most calls do neither.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    pub(crate) scope: &'a Path,
    pub(crate) action: &'a str,
    pub(crate) arguments: &'a Map<String, Value>,
}

impl Query<'_> {
    pub(crate) fn digest(&self) -> Digest {
        Digest::new(&self.scope.to_string_lossy(), self.action, self.arguments)
    }
}

/// What a query is, in sixteen digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Digest(String);

impl Digest {
    /// The digest of a call of `action` with `arguments` on the workspace called `scope`.
    pub(crate) fn new(scope: &str, action: &str, arguments: &Map<String, Value>) -> Self {
        let mut fields: Vec<(&String, &Value)> =
            arguments.iter().filter(|(name, _)| !FREE_FIELDS.contains(&name.as_str())).collect();
        fields.sort_by_key(|(name, _)| *name);
        let mut text = format!("{scope}\n{action}\n");
        for (name, value) in fields {
            writeln!(text, "{name}={value}").expect("writing to a string does not fail");
        }
        let hash = ContentHash::of(text.as_bytes());
        Self(hash.as_str()["sha256:".len()..][..16].to_owned())
    }
}

pub(crate) fn encode<P: Serialize>(query: &Digest, position: &P) -> PageCursor {
    let position = serde_json::to_vec(position).expect("a position is plain data");
    PageCursor::new(format!("{}.{}", query.0, URL_SAFE_NO_PAD.encode(position)))
}

pub(crate) fn decode<P: DeserializeOwned>(query: &Digest, cursor: &PageCursor) -> Result<P, ToolError> {
    let wrong = |what: &str| ToolError::new(ErrorCode::InvalidArguments, format!("`cursor` {what}"));
    let malformed = || wrong("is not one this tool gave out; leave it out to start from the beginning");
    let (digest, position) = cursor.as_str().split_once('.').ok_or_else(malformed)?;
    if digest != query.0 {
        return Err(wrong(
            "belongs to another query; repeat the call that gave it with the same arguments, or leave it out",
        ));
    }
    let position = URL_SAFE_NO_PAD.decode(position).map_err(|_| malformed())?;
    serde_json::from_slice(&position).map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn query(arguments: &Value) -> Digest {
        Digest::new("/ws", "fs.list", arguments.as_object().unwrap())
    }

    #[test]
    fn a_cursor_is_good_for_its_own_query_only() {
        let first = query(&json!({"path": "src", "limit": 5}));
        let cursor = encode(&first, &("a", 7));
        assert_eq!(decode::<(String, u32)>(&first, &cursor).unwrap(), ("a".into(), 7));
        let again = query(&json!({"limit": 9, "path": "src", "cursor": cursor.as_str()}));
        assert!(decode::<(String, u32)>(&again, &cursor).is_ok(), "the page size may change");
        let other = query(&json!({"path": "docs"}));
        let error = decode::<(String, u32)>(&other, &cursor).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments);
        assert!(error.message.contains("another query"), "{error}");
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        let query = query(&json!({}));
        for text in
            ["", "x", ".", &format!("{}.", query.0), &format!("{}.!!", query.0), &format!("{}.AAAA", query.0)]
        {
            let error = decode::<(String, u32)>(&query, &PageCursor::new(text)).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArguments, "{text}");
        }
    }
}
