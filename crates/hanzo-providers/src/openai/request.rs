//! A request in OpenAI's format. Everything that stays the same from step to step comes first, the messages last.

use std::borrow::Cow;

use hanzo_protocol::ids::ToolCallId;
use hanzo_protocol::message::{Attachment, Effort, Message, ModelRequest, Role, ToolCall, ToolSchema};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::stream::{CALL_EXTRA, DETAILS};
use crate::attachments::{self, Kind};
use crate::json::{ObjectWriter, bytes, sendable_arguments};
use crate::quirks::{EffortParameter, Quirks, ReasoningEcho};

/// The body of `request`.
pub(super) fn body(request: &ModelRequest, quirks: &Quirks) -> Vec<u8> {
    let mut object = ObjectWriter::new();
    object.field("model", &request.model);
    object.field("stream", &true);
    if quirks.stream_options.is_there() {
        object.field("stream_options", &json!({"include_usage": true}));
    }
    if let Some(limit) = request.max_tokens.or(quirks.max_tokens) {
        object.field(&quirks.max_tokens_field, &limit);
    }
    if let Some(temperature) =
        request.temperature.filter(|it| it.is_finite() && quirks.temperature.is_there())
    {
        object.field("temperature", &temperature);
    }
    if let Some(effort) = request.effort {
        write_effort(&mut object, effort, quirks);
    }
    for (name, value) in &quirks.body {
        object.field(name, value);
    }
    if !request.tools.is_empty() {
        object.array("tools", request.tools.iter().map(Tool::from));
        if let Some(choice) = &quirks.tool_choice {
            object.field("tool_choice", choice);
        }
        if let Some(parallel) = quirks.parallel_tool_calls {
            object.field("parallel_tool_calls", &parallel);
        }
    }
    object.raw_array("messages", messages(&request.messages, quirks));
    object.finish()
}

fn write_effort(object: &mut ObjectWriter, effort: Effort, quirks: &Quirks) {
    let name = quirks.effort_names.name(effort);
    let thinks = effort > Effort::Minimal;
    match quirks.effort {
        EffortParameter::ReasoningEffort => object.field("reasoning_effort", name),
        EffortParameter::ReasoningObject => object.field("reasoning", &json!({"effort": name})),
        EffortParameter::ThinkingSwitch => {
            object.field("thinking", &json!({"type": if thinks { "enabled" } else { "disabled" }}));
        }
        EffortParameter::EnableThinking => object.field("enable_thinking", &thinks),
        EffortParameter::Unsupported | EffortParameter::ThinkingBudget | EffortParameter::Adaptive => {}
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

impl<'a> From<&'a ToolSchema> for Tool<'a> {
    fn from(tool: &'a ToolSchema) -> Self {
        let ToolSchema { name, description, parameters } = tool;
        Self { r#type: "function", function: Function { name, description, parameters } }
    }
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'a str,
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

impl<'a> WireMessage<'a> {
    fn new(role: &'a str, content: Option<Content<'a>>) -> Self {
        Self {
            role,
            content,
            reasoning_content: None,
            reasoning: None,
            reasoning_details: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Value>),
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Value>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

fn messages(messages: &[Message], quirks: &Quirks) -> Vec<Vec<u8>> {
    let mut written = Vec::with_capacity(messages.len());
    // Results carry text only, and nothing may stand between them: what was attached to them follows the last one.
    let mut attached: Vec<&Attachment> = Vec::new();
    for message in messages {
        if message.role != Role::Tool && !attached.is_empty() {
            written.push(bytes(&user("", &std::mem::take(&mut attached), quirks)));
        }
        written.push(match message.role {
            Role::System => {
                bytes(&WireMessage::new(&quirks.system_role, Some(Content::Text(&message.content))))
            }
            Role::User => {
                bytes(&user(&message.content, &message.attachments.iter().collect::<Vec<_>>(), quirks))
            }
            Role::Assistant => bytes(&assistant(message, quirks)),
            Role::Tool => {
                attached.extend(&message.attachments);
                let mut wire = WireMessage::new("tool", Some(Content::Text(&message.content)));
                wire.tool_call_id = message.tool_call_id.as_ref().map(ToolCallId::as_str);
                wire.name = message.name.as_deref().filter(|_| quirks.tool_result_name.is_there());
                bytes(&wire)
            }
        });
    }
    if !attached.is_empty() {
        written.push(bytes(&user("", &attached, quirks)));
    }
    written
}

fn user<'a>(text: &'a str, attachments: &[&'a Attachment], quirks: &Quirks) -> WireMessage<'a> {
    if attachments.is_empty() {
        return WireMessage::new("user", Some(Content::Text(text)));
    }
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(json!({"type": "text", "text": text}));
    }
    for attachment in attachments {
        parts.push(match attachments::kind(attachment, quirks.attachments) {
            Kind::Image { media_type, base64 } => {
                json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{base64}")}})
            }
            Kind::Document { media_type, name, base64 } => json!({"type": "file", "file": {
                "filename": name, "file_data": format!("data:{media_type};base64,{base64}"),
            }}),
            Kind::Text(text) => json!({"type": "text", "text": text}),
        });
    }
    WireMessage::new("user", Some(Content::Parts(parts)))
}

fn assistant<'a>(message: &'a Message, quirks: &Quirks) -> WireMessage<'a> {
    let says_nothing = message.content.is_empty() && !message.tool_calls.is_empty();
    let mut wire = WireMessage::new("assistant", (!says_nothing).then_some(Content::Text(&message.content)));
    // The vendors that want it want it with the calls it led to, and then even when nothing was thought.
    let text = || {
        let reasoning = message.reasoning.iter().map(|reasoning| reasoning.text.as_str());
        (!message.tool_calls.is_empty()).then(|| reasoning.filter(|text| !text.is_empty()).collect())
    };
    match quirks.reasoning_echo {
        ReasoningEcho::Never => {}
        ReasoningEcho::ReasoningContent => wire.reasoning_content = text(),
        ReasoningEcho::Reasoning => wire.reasoning = text(),
        ReasoningEcho::ReasoningDetails => {
            let details: Vec<Value> =
                signed(message, DETAILS).filter_map(|json| serde_json::from_str(json).ok()).collect();
            wire.reasoning_details = (!details.is_empty()).then_some(details);
        }
    }
    wire.tool_calls = message.tool_calls.iter().map(|call| wire_call(message, call)).collect();
    wire
}

fn wire_call<'a>(message: &'a Message, call: &'a ToolCall) -> WireCall<'a> {
    let extra_content = signed(message, CALL_EXTRA)
        .filter_map(|json| serde_json::from_str::<Value>(json).ok())
        .find(|extra| extra["id"] == call.id.as_str())
        .map(|mut extra| extra["extra_content"].take());
    WireCall {
        id: call.id.as_str(),
        r#type: "function",
        function: WireFunction { name: &call.name, arguments: sendable_arguments(&call.arguments) },
        extra_content,
    }
}

/// What this kind put into the signatures of a message's reasoning under `prefix`.
fn signed<'a>(message: &'a Message, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    message.reasoning.iter().filter_map(move |reasoning| reasoning.signature.as_deref()?.strip_prefix(prefix))
}
