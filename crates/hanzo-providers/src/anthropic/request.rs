//! A request in Anthropic's format. Everything that stays the same from step to step comes first, the messages last.
//!
//! The vendor caches what lies before a mark. Four marks are allowed, and used: after the tools, after the instructions,
//! and at the end of the last two messages of the user's side, so that each request finds what the one before it wrote.

use hanzo_protocol::message::{Attachment, Effort, Message, ModelRequest, Role};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::stream::REDACTED;
use crate::attachments::{self, Kind};
use crate::json::{ObjectWriter, bytes, sendable_arguments};
use crate::quirks::{EffortParameter, Quirks, Support};

/// A number has to be sent; this is one every model takes.
const USUAL_MAX_TOKENS: u64 = 8192;
/// The least the vendor takes as a budget for thinking.
const SMALLEST_BUDGET: u64 = 1024;
const MARK: &str = r#","cache_control":{"type":"ephemeral"}}"#;

/// The body of `request`.
pub(super) fn body(request: &ModelRequest, quirks: &Quirks) -> Vec<u8> {
    let caching = quirks.cache_control;
    let mut object = ObjectWriter::new();
    object.field("model", &request.model);
    let mut limit = request.max_tokens.or(quirks.max_tokens).unwrap_or(USUAL_MAX_TOKENS);
    let thinking = thinking(request.effort, quirks, &mut limit);
    object.field("max_tokens", &limit);
    object.field("stream", &true);
    // The vendor refuses a temperature while the model thinks.
    if let Some(temperature) = request
        .temperature
        .filter(|it| it.is_finite() && thinking.is_empty() && quirks.temperature.is_there())
    {
        object.field("temperature", &temperature);
    }
    for (name, value) in &thinking {
        object.field(name, value);
    }
    for (name, value) in &quirks.body {
        object.field(name, value);
    }
    let mut tools: Vec<Vec<u8>> = request.tools.iter().map(|tool| bytes(&Tool::from(tool))).collect();
    if let Some(last) = tools.last_mut() {
        mark(last, caching);
        object.raw_array("tools", &tools);
    }
    let leading = request.messages.iter().take_while(|message| message.role == Role::System).count();
    let (system, rest) = request.messages.split_at(leading);
    let mut system: Vec<Vec<u8>> = system.iter().filter_map(|message| text_block(&message.content)).collect();
    if let Some(last) = system.last_mut() {
        mark(last, caching);
        object.raw_array("system", &system);
    }
    object.raw_array("messages", messages(rest, quirks));
    object.finish()
}

/// The fields that say how hard to think; `limit` grows to leave room for an answer after it.
fn thinking(effort: Option<Effort>, quirks: &Quirks, limit: &mut u64) -> Vec<(&'static str, Value)> {
    let Some(effort) = effort else { return Vec::new() };
    match quirks.effort {
        EffortParameter::ThinkingBudget => {
            let budget = match effort {
                Effort::Minimal => return Vec::new(),
                Effort::Low => SMALLEST_BUDGET * 2,
                Effort::Medium => SMALLEST_BUDGET * 8,
                Effort::High => SMALLEST_BUDGET * 24,
            };
            // The budget counts against the limit and has to be smaller.
            if *limit <= budget + SMALLEST_BUDGET {
                *limit = budget + USUAL_MAX_TOKENS;
            }
            vec![("thinking", json!({"type": "enabled", "budget_tokens": budget}))]
        }
        EffortParameter::Adaptive => {
            let effort = quirks.effort_names.name(effort);
            vec![("thinking", json!({"type": "adaptive"})), ("output_config", json!({"effort": effort}))]
        }
        _ => Vec::new(),
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
}

impl<'a> From<&'a hanzo_protocol::message::ToolSchema> for Tool<'a> {
    fn from(tool: &'a hanzo_protocol::message::ToolSchema) -> Self {
        Self { name: &tool.name, description: &tool.description, input_schema: &tool.parameters }
    }
}

#[derive(Serialize)]
struct ToolUse<'a> {
    r#type: &'static str,
    id: &'a str,
    name: &'a str,
    input: &'a RawValue,
}

#[derive(Serialize)]
struct ToolAnswer<'a> {
    r#type: &'static str,
    tool_use_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Vec<Box<RawValue>>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

/// Puts a mark into a block, at its end, so that the bytes before it are the same with and without.
fn mark(block: &mut Vec<u8>, caching: Support) {
    if caching.is_there() && block.pop_if(|last| *last == b'}').is_some() {
        block.extend_from_slice(MARK.as_bytes());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    User,
    Assistant,
}

/// A message on the wire: one side's blocks in a row.
struct Turn {
    side: Side,
    blocks: Vec<Vec<u8>>,
}

fn messages(messages: &[Message], quirks: &Quirks) -> Vec<Vec<u8>> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in messages {
        let (side, blocks) = match message.role {
            Role::Assistant => (Side::Assistant, assistant_blocks(message)),
            Role::Tool => (Side::User, vec![tool_answer(message, quirks)]),
            // Instructions that come later are said by the user's side: this format has no other place for them.
            Role::User | Role::System => (Side::User, said(&message.content, &message.attachments, quirks)),
        };
        match turns.last_mut().filter(|last| last.side == side) {
            Some(last) => last.blocks.extend(blocks),
            None if blocks.is_empty() => {}
            None => turns.push(Turn { side, blocks }),
        }
    }
    for turn in turns.iter_mut().rev().filter(|turn| turn.side == Side::User).take(2) {
        if let Some(last) = turn.blocks.last_mut() {
            mark(last, quirks.cache_control);
        }
    }
    turns.iter().map(Turn::write).collect()
}

impl Turn {
    fn write(&self) -> Vec<u8> {
        let mut object = ObjectWriter::new();
        object.field("role", if self.side == Side::User { "user" } else { "assistant" });
        object.raw_array("content", &self.blocks);
        object.finish()
    }
}

/// A block of text; none for text of which the vendor would say that it is empty.
fn text_block(text: &str) -> Option<Vec<u8>> {
    (!text.trim().is_empty()).then(|| bytes(&json!({"type": "text", "text": text})))
}

fn said(text: &str, attachments: &[Attachment], quirks: &Quirks) -> Vec<Vec<u8>> {
    let attached = attachments.iter().filter_map(|attachment| {
        Some(match attachments::kind(attachment, quirks.attachments) {
            Kind::Image { media_type, base64 } => bytes(&json!({"type": "image", "source": {
                "type": "base64", "media_type": media_type, "data": base64,
            }})),
            Kind::Document { media_type, name, base64 } => {
                bytes(&json!({"type": "document", "title": name, "source": {
                    "type": "base64", "media_type": media_type, "data": base64,
                }}))
            }
            Kind::Text(text) => return text_block(&text),
        })
    });
    text_block(text).into_iter().chain(attached).collect()
}

fn tool_answer(message: &Message, quirks: &Quirks) -> Vec<u8> {
    let content = said(&message.content, &message.attachments, quirks);
    let content: Vec<Box<RawValue>> = content
        .into_iter()
        .filter_map(|block| RawValue::from_string(String::from_utf8(block).ok()?).ok())
        .collect();
    bytes(&ToolAnswer {
        r#type: "tool_result",
        tool_use_id: message.tool_call_id.as_ref().map_or("", |id| id.as_str()),
        content: (!content.is_empty()).then_some(content),
        is_error: message.is_error,
    })
}

fn assistant_blocks(message: &Message) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    for reasoning in &message.reasoning {
        // The vendor takes back only what it signed itself: not what another one thought.
        let Some(signature) = reasoning.signature.as_deref().filter(|it| !is_foreign(it)) else { continue };
        blocks.push(match signature.strip_prefix(REDACTED) {
            Some(data) => bytes(&json!({"type": "redacted_thinking", "data": data})),
            None => bytes(&json!({"type": "thinking", "thinking": reasoning.text, "signature": signature})),
        });
    }
    blocks.extend(text_block(&message.content));
    for call in &message.tool_calls {
        let input = RawValue::from_string(sendable_arguments(&call.arguments).into_owned())
            .expect("sendable arguments are JSON");
        let (id, name) = (call.id.as_str(), call.name.as_str());
        blocks.push(bytes(&ToolUse { r#type: "tool_use", id, name, input: &input }));
    }
    blocks
}

/// Whether a signature is one of the kind `openai`, which begin with a word and a colon; the vendor's own are base64.
fn is_foreign(signature: &str) -> bool {
    signature.contains(':') && !signature.starts_with(REDACTED)
}
