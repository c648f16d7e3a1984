//! The envelope every tool answers with (seed 001, HIP-0300). Its field names are the document's own, `trace_id`
//! included: other agents and IDEs read it. The engine API around it is camelCase.

use schemars::JsonSchema;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::ids::TraceId;
use crate::primitives::PageCursor;

/// A tool's answer: the data, or a typed error, and how it came about.
///
/// On the wire it is `{ok, data, error, meta}`, with exactly one of `data` and `error` set; here that is a `Result`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Wire<T>", bound(deserialize = "T: Deserialize<'de>"))]
pub struct Envelope<T = Value> {
    /// The data or the error.
    pub outcome: Result<T, ToolError>,
    /// What answered, and where to read on.
    pub meta: Meta,
}

impl<T> Envelope<T> {
    /// An answer that succeeded.
    pub fn success(data: T, meta: Meta) -> Self {
        Self { outcome: Ok(data), meta }
    }

    /// An answer that failed.
    pub fn failure(error: ToolError, meta: Meta) -> Self {
        Self { outcome: Err(error), meta }
    }

    /// Whether it succeeded.
    pub fn is_ok(&self) -> bool {
        self.outcome.is_ok()
    }
}

impl Envelope<Value> {
    /// The envelope as JSON, its data moved: a listing has thousands of values nobody needs twice.
    pub fn into_json(self) -> Value {
        let ok = self.is_ok();
        let part = |plain: serde_json::Result<Value>| plain.expect("plain data is JSON");
        let (data, error) = match self.outcome {
            Ok(data) => (data, Value::Null),
            Err(error) => (Value::Null, part(serde_json::to_value(error))),
        };
        let meta = part(serde_json::to_value(self.meta));
        let members = [("ok", Value::Bool(ok)), ("data", data), ("error", error), ("meta", meta)];
        Value::Object(
            members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>(),
        )
    }
}

/// How an answer came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Meta {
    /// The tool, such as `fs`.
    pub tool: String,
    /// The action, such as `read`.
    pub action: String,
    /// Ties the answer to logs and audit records.
    pub trace_id: TraceId,
    /// What did the work where there is a choice: `ripgrep`, `tree-sitter`, a language server's name.
    #[serde(default)]
    pub backend: Option<String>,
    /// Where a listing goes on.
    #[serde(default)]
    pub paging: Paging,
    /// What the caller said the call is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,
}

impl Meta {
    /// The meta of a complete answer of `tool.action`.
    pub fn new(tool: impl Into<String>, action: impl Into<String>, trace_id: TraceId) -> Self {
        Self {
            tool: tool.into(),
            action: action.into(),
            trace_id,
            backend: None,
            paging: Paging::default(),
            intent: None,
        }
    }
}

/// Where a listing goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paging {
    /// What to pass to get the next page.
    #[serde(default)]
    pub cursor: Option<PageCursor>,
    /// Whether there is a next page.
    #[serde(default)]
    pub more: bool,
}

/// What a call is for (seed 001, "Modes").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Intent {
    /// Look, change nothing.
    Inspect,
    /// Change the workspace.
    Apply,
    /// Check the change.
    Verify,
    /// Hand the change on: commit, push, deploy.
    Ship,
}

/// Why a tool call failed. Readable to the model as well as to a program: the message says what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ToolError {
    /// The sort of failure; programs decide by this and never by the message.
    pub code: ErrorCode,
    /// What happened and what to try.
    pub message: String,
    /// Facts belonging to the code, such as `expected` and `actual` of a conflict.
    #[serde(default)]
    pub details: Value,
}

impl ToolError {
    /// A failure without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Value::Null }
    }

    /// The same failure with its facts.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }
}

macro_rules! error_codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $wire:literal),+ $(,)?) => {
        /// The sorts of failure of a tool call.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[doc = $doc])+ #[serde(rename = $wire)] $name,)+
            /// Anything else. A code this build does not know is read as this one.
            #[serde(rename = "ERROR", other)]
            Error,
        }

        impl ErrorCode {
            /// Every code, for documentation and tests.
            pub const ALL: &[Self] = &[$(Self::$name,)+ Self::Error];

            /// The code as it stands on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $wire,)+
                    Self::Error => "ERROR",
                }
            }
        }
    };
}

error_codes! {
    /// The tool has no such action.
    UnknownAction = "UNKNOWN_ACTION",
    /// There is no such tool.
    UnknownTool = "UNKNOWN_TOOL",
    /// The arguments are not what the action takes.
    InvalidArguments = "INVALID_ARGUMENTS",
    /// The content is not what the caller believed it to be.
    Conflict = "CONFLICT",
    /// What was named does not exist.
    NotFound = "NOT_FOUND",
    /// What should be made exists already.
    AlreadyExists = "ALREADY_EXISTS",
    /// Several things fit what was named.
    Ambiguous = "AMBIGUOUS",
    /// The action destroys something and needs `confirm`.
    ConfirmationRequired = "CONFIRMATION_REQUIRED",
    /// Policy, the user, a hook or a capability said no.
    Denied = "DENIED",
    /// The sandbox stopped it.
    SandboxDenied = "SANDBOX_DENIED",
    /// It took longer than it may.
    Timeout = "TIMEOUT",
    /// The user interrupted it.
    Cancelled = "CANCELLED",
    /// More than may be read, written or returned.
    TooLarge = "TOO_LARGE",
    /// Too many calls.
    RateLimited = "RATE_LIMITED",
    /// This platform or build cannot do it.
    Unsupported = "UNSUPPORTED",
    /// What it depends on (a server, a program) is not there just now.
    Unavailable = "UNAVAILABLE",
    /// The operating system failed it.
    Io = "IO",
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The envelope as JSON has it.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Envelope")]
struct Wire<T> {
    /// Whether the call succeeded.
    ok: bool,
    /// What the action returns; null when it failed.
    data: Option<T>,
    /// Why it failed; null when it succeeded.
    #[serde(default)]
    error: Option<ToolError>,
    /// How the answer came about.
    meta: Meta,
}

impl<T: Serialize> Serialize for Envelope<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut wire = serializer.serialize_struct("Envelope", 4)?;
        wire.serialize_field("ok", &self.is_ok())?;
        wire.serialize_field("data", &self.outcome.as_ref().ok())?;
        wire.serialize_field("error", &self.outcome.as_ref().err())?;
        wire.serialize_field("meta", &self.meta)?;
        wire.end()
    }
}

impl<T> TryFrom<Wire<T>> for Envelope<T> {
    type Error = &'static str;

    fn try_from(wire: Wire<T>) -> Result<Self, Self::Error> {
        let outcome = match (wire.ok, wire.data, wire.error) {
            (true, Some(data), None) => Ok(data),
            (false, None, Some(error)) => Err(error),
            _ => {
                return Err(
                    "an envelope has `data` when `ok` is true and `error` when it is false, never both",
                );
            }
        };
        Ok(Self { outcome, meta: wire.meta })
    }
}

impl<T: JsonSchema> JsonSchema for Envelope<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Wire::<T>::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Wire::<T>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meta() -> Meta {
        Meta::new("fs", "read", "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap())
    }

    #[test]
    fn a_success_has_the_documented_shape() {
        let mut meta = meta();
        meta.backend = Some("ripgrep".into());
        let envelope = Envelope::success(json!({"text": "hi"}), meta);
        assert_eq!(envelope.clone().into_json().to_string(), serde_json::to_string(&envelope).unwrap());
        assert_eq!(
            serde_json::to_value(&envelope).unwrap(),
            json!({
                "ok": true,
                "data": {"text": "hi"},
                "error": null,
                "meta": {
                    "tool": "fs",
                    "action": "read",
                    "trace_id": "01890a5d-ac96-774b-bcce-b302099a8057",
                    "backend": "ripgrep",
                    "paging": {"cursor": null, "more": false},
                },
            })
        );
    }

    #[test]
    fn a_failure_has_the_documented_shape_and_reads_back() {
        let error = ToolError::new(ErrorCode::Conflict, "base_hash mismatch")
            .with_details(json!({"expected": "sha256:a", "actual": "sha256:b"}));
        let envelope: Envelope = Envelope::failure(error, meta());
        let wire = serde_json::to_value(&envelope).unwrap();
        assert_eq!(envelope.clone().into_json().to_string(), wire.to_string());
        assert_eq!(wire["ok"], json!(false));
        assert_eq!(wire["data"], Value::Null);
        assert_eq!(
            wire["error"],
            json!({
                "code": "CONFLICT",
                "message": "base_hash mismatch",
                "details": {"expected": "sha256:a", "actual": "sha256:b"},
            })
        );
        assert_eq!(serde_json::from_value::<Envelope>(wire).unwrap(), envelope);
    }

    #[test]
    fn an_envelope_that_contradicts_itself_is_refused() {
        let meta = serde_json::to_value(meta()).unwrap();
        let error = json!({"code": "ERROR", "message": "x"});
        for broken in [
            json!({"ok": true, "error": error, "meta": meta}),
            json!({"ok": false, "data": 1, "meta": meta}),
            json!({"ok": true, "data": 1, "error": error, "meta": meta}),
            json!({"ok": false, "meta": meta}),
        ] {
            assert!(serde_json::from_value::<Envelope>(broken.clone()).is_err(), "{broken}");
        }
    }

    #[test]
    fn codes_are_typed_and_an_unknown_one_is_the_general_one() {
        for code in ErrorCode::ALL {
            let wire = serde_json::to_value(code).unwrap();
            assert_eq!(wire, json!(code.as_str()));
            assert_eq!(serde_json::from_value::<ErrorCode>(wire).unwrap(), *code);
        }
        assert_eq!(serde_json::from_value::<ErrorCode>(json!("FROM_THE_FUTURE")).unwrap(), ErrorCode::Error);
    }
}
