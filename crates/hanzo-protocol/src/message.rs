//! What is said to a model and what it answers: the vocabulary between the engine and a provider (seed 004 §4, seed
//! 000 §2). A provider turns these into its vendor's wire format and back; nothing above it knows a vendor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::ids::ToolCallId;
use crate::primitives::Ref;
use crate::usage::Usage;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// The standing instructions.
    System,
    /// The person, or a face acting for one.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
}

/// One message of a model request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// The calls an assistant message makes.
    #[serde(default, alias = "tool_calls", skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call a tool message answers.
    #[serde(default, alias = "tool_call_id", skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<ToolCallId>,
    /// Whether a tool message tells of a failure; vendors that have a place for it are told.
    #[serde(default, alias = "is_error", skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The name of the tool that answers, or of the speaker where a vendor wants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the model thought before it spoke, kept because some vendors want it back with the next request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<Reasoning>,
    /// Images and documents that belong to the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// How many tokens the message takes, where that is known.
    #[serde(default, alias = "token_count", skip_serializing_if = "Option::is_none")]
    pub token_count: Option<u64>,
}

impl Message {
    /// A message of `role` that says `content`, and nothing else.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            is_error: false,
            name: None,
            reasoning: Vec::new(),
            attachments: Vec::new(),
            token_count: None,
        }
    }

    /// The standing instructions.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new(Role::System, content)
    }

    /// What the user says.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(Role::User, content)
    }

    /// What the model says.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new(Role::Assistant, content)
    }

    /// The result of the call `id`.
    pub fn tool(id: ToolCallId, name: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_call_id: Some(id), name: Some(name.into()), ..Self::new(Role::Tool, content) }
    }

    /// The same message with its calls.
    #[must_use]
    pub fn with_tool_calls(mut self, calls: Vec<ToolCall>) -> Self {
        self.tool_calls = calls;
        self
    }

    /// The same message with its size in tokens.
    #[must_use]
    pub fn with_token_count(mut self, tokens: u64) -> Self {
        self.token_count = Some(tokens);
        self
    }
}

/// A call the model makes. Only complete calls exist: a provider gathers the vendor's fragments first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The vendor's id, to be named by the result.
    pub id: ToolCallId,
    /// The tool's name as it was advertised.
    pub name: String,
    /// The arguments as the model wrote them: raw JSON text, possibly malformed, which the tool contract checks.
    pub arguments: String,
}

/// A piece of a model's reasoning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reasoning {
    /// The readable text; empty when the vendor sent only an encrypted form.
    #[serde(default)]
    pub text: String,
    /// What the vendor needs to recognise its own reasoning when it is sent back, unread by us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// An image or a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// A name to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where the bytes are.
    pub source: AttachmentSource,
}

/// Where the bytes of an attachment are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AttachmentSource {
    /// In the message itself.
    Inline {
        /// The bytes in standard base64.
        base64: String,
    },
    /// In the blob store.
    Stored {
        /// The handle under which they are kept.
        r#ref: Ref,
    },
}

/// What a model is told about a tool.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolSchema {
    /// The name to call it by.
    pub name: String,
    /// When and how to use it, written for a model.
    pub description: String,
    /// The JSON Schema of its arguments. Raw text, so that the bytes sent never change between requests.
    pub parameters: Box<RawValue>,
}

/// How hard a model should think, where it can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Effort {
    /// Answer at once.
    Minimal,
    /// Think briefly.
    Low,
    /// The vendor's usual amount.
    Medium,
    /// Think long.
    High,
}

/// One request to a model.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelRequest {
    /// The vendor's name of the model.
    pub model: String,
    /// The conversation, the standing instructions first.
    pub messages: Vec<Message>,
    /// The tools the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSchema>,
    /// Sampling temperature; absent leaves it to the vendor, because some models refuse the parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens to answer with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// How hard to think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

/// What a model's stream is made of. Seed 004 calls the same thing a `Chunk` (`Text`, `ToolCall`, `Done`, `Error`).
///
/// A stream ends with exactly one [`MessageStop`](Self::MessageStop) or [`Error`](Self::Error).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum StreamEvent {
    /// More of the answer's text.
    ContentDelta {
        /// The text to append.
        text: String,
    },
    /// More of the reasoning's text, to show while it streams.
    ReasoningDelta {
        /// The text to append.
        text: String,
    },
    /// A complete piece of reasoning, to keep.
    Reasoning(Reasoning),
    /// A complete call.
    ToolUse(ToolCall),
    /// The answer is complete.
    MessageStop {
        /// Why the model stopped.
        reason: StopReason,
        /// What the request cost in tokens, as the vendor counted.
        usage: Usage,
    },
    /// The stream failed; nothing follows.
    Error(ApiError),
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum StopReason {
    /// It said what it had to say.
    EndTurn,
    /// It wants its calls run.
    ToolUse,
    /// It reached the most tokens it may answer with.
    MaxTokens,
    /// The vendor's filter cut it off, or the model declined.
    Refusal,
}

/// Why a model request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct ApiError {
    /// What sort of failure it is, which decides whether trying again makes sense.
    pub kind: ApiErrorKind,
    /// What happened, for a person. Never holds a credential.
    pub message: String,
    /// The HTTP status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the vendor asks us to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// The sorts of failure of a model request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ApiErrorKind {
    /// The credential is missing, wrong or not allowed to do this.
    Auth,
    /// The account has run out of credit.
    Quota,
    /// Too many requests.
    Rate,
    /// The vendor cannot serve anyone just now.
    Overloaded,
    /// The conversation is longer than the model's window.
    ContextOverflow,
    /// The vendor refused the request as malformed or unsupported.
    BadRequest,
    /// The connection failed, was cut or fell silent.
    Network,
    /// The answer made no sense as the vendor's format.
    Malformed,
    /// It is not the vendor's fault: something failed on this machine, such as a full disk.
    Local,
}

impl ApiErrorKind {
    /// Whether the same request may succeed when it is sent again later.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Rate | Self::Overloaded | Self::Network)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_has_the_documented_fields_under_stable_names() {
        let call =
            ToolCall { id: ToolCallId::new("call_1"), name: "fs".into(), arguments: "{\"a\":1}".into() };
        let message = Message::assistant("reading").with_tool_calls(vec![call]).with_token_count(7);
        assert_eq!(
            serde_json::to_value(&message).unwrap(),
            json!({
                "role": "assistant",
                "content": "reading",
                "toolCalls": [{"id": "call_1", "name": "fs", "arguments": "{\"a\":1}"}],
                "tokenCount": 7,
            })
        );
        let result = Message::tool(ToolCallId::new("call_1"), "fs", "done");
        assert_eq!(
            serde_json::to_value(&result).unwrap(),
            json!({"role": "tool", "content": "done", "toolCallId": "call_1", "name": "fs"})
        );
    }

    #[test]
    fn the_seed_documents_spelling_of_a_message_is_read_too() {
        let message: Message = serde_json::from_value(json!({
            "role": "tool", "content": "x", "tool_call_id": "c", "token_count": 3,
        }))
        .unwrap();
        assert_eq!(message.tool_call_id, Some(ToolCallId::new("c")));
        assert_eq!(message.token_count, Some(3));
    }

    #[test]
    fn a_stream_is_made_of_the_four_documented_events_and_reasoning() {
        let names: Vec<String> = [
            StreamEvent::ContentDelta { text: "a".into() },
            StreamEvent::ReasoningDelta { text: "a".into() },
            StreamEvent::Reasoning(Reasoning { text: "a".into(), signature: None }),
            StreamEvent::ToolUse(ToolCall {
                id: ToolCallId::new("1"),
                name: "n".into(),
                arguments: "{}".into(),
            }),
            StreamEvent::MessageStop { reason: StopReason::EndTurn, usage: Usage::default() },
            StreamEvent::Error(ApiError {
                kind: ApiErrorKind::Rate,
                message: "slow down".into(),
                status: Some(429),
                retry_after_ms: Some(1000),
            }),
        ]
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
        assert_eq!(names, ["contentDelta", "reasoningDelta", "reasoning", "toolUse", "messageStop", "error"]);
    }

    #[test]
    fn a_tool_schemas_parameters_keep_their_bytes() {
        let text = r#"{"name":"t","description":"d","parameters":{"b":1,  "a":2}}"#;
        let schema: ToolSchema = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&schema).unwrap(), text);
    }

    #[test]
    fn only_failures_that_may_pass_are_worth_another_try() {
        use ApiErrorKind::{
            Auth, BadRequest, ContextOverflow, Local, Malformed, Network, Overloaded, Quota, Rate,
        };
        assert!([Rate, Overloaded, Network].into_iter().all(ApiErrorKind::is_transient));
        assert!(
            ![Auth, Quota, ContextOverflow, BadRequest, Malformed, Local]
                .into_iter()
                .any(ApiErrorKind::is_transient)
        );
    }
}
