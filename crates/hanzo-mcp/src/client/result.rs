//! Results of servers, as models and programs read them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hanzo_protocol::envelope::{Envelope, ErrorCode, Meta, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::message::{Attachment, AttachmentSource};
use hanzo_protocol::tool::{ToolContext, ToolResult};
use serde_json::{Map, Value, json};

use super::fault::McpError;
use super::text::line;

/// The most bytes of one attachment.
const MOST_ATTACHMENT: usize = 8 * 1024 * 1024;
/// The most attachments of one result.
const MOST_ATTACHMENTS: usize = 16;

/// What is in a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceContent {
    /// Text.
    Text(String),
    /// An image or a document.
    Attachment(Attachment),
}

/// Content as it is gathered.
#[derive(Default)]
struct Gathered {
    texts: Vec<String>,
    attachments: Vec<Attachment>,
}

impl Gathered {
    fn block(&mut self, block: &Value) {
        let said = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        match said("type") {
            "text" => self.texts.push(said("text").to_owned()),
            "image" => self.attach(said("mimeType"), said("data"), None),
            "audio" => {
                let size = said("data").len() / 4 * 3;
                self.texts.push(format!(
                    "[a recording, {}, about {size} bytes, is not shown]",
                    line(said("mimeType"), 80)
                ));
            }
            "resource" => self.resource(&block["resource"]),
            "resource_link" => {
                let about = block
                    .get("description")
                    .and_then(Value::as_str)
                    .map(|text| format!(": {}", line(text, 300)));
                let uri = line(said("uri"), 500);
                self.texts.push(format!("[resource {uri}{}]", about.unwrap_or_default()));
            }
            other => {
                self.texts.push(format!("[content of the unknown type `{}` is not shown]", line(other, 40)));
            }
        }
    }

    fn resource(&mut self, resource: &Value) {
        let said = |key: &str| resource.get(key).and_then(Value::as_str);
        let uri = line(said("uri").unwrap_or_default(), 500);
        match (said("text"), said("blob")) {
            (Some(text), _) => self.texts.push(format!("[resource {uri}]\n{text}")),
            (None, Some(blob)) => {
                self.attach(said("mimeType").unwrap_or("application/octet-stream"), blob, Some(uri));
            }
            (None, None) => self.texts.push(format!("[resource {uri} is empty]")),
        }
    }

    /// Keeps what a model can look at and says what else there was.
    fn attach(&mut self, media_type: &str, data: &str, name: Option<String>) {
        let media_type = line(media_type, 80);
        let shown = name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        let looks_at = media_type.starts_with("image/") || media_type == "application/pdf";
        let reason = match () {
            () if !looks_at => "cannot be looked at",
            () if data.len() / 4 * 3 > MOST_ATTACHMENT => "is too large",
            () if self.attachments.len() >= MOST_ATTACHMENTS => "is one too many",
            () if STANDARD.decode(data).is_err() => "is not valid base64",
            () => {
                let source = AttachmentSource::Inline { base64: data.to_owned() };
                self.attachments.push(Attachment { media_type, name, source });
                return;
            }
        };
        self.texts.push(format!("[content of type {media_type}{shown} {reason}]"));
    }
}

/// The result of a call.
pub(crate) fn tool_result(name: &str, context: &ToolContext, result: &Value) -> ToolResult {
    let mut gathered = Gathered::default();
    for block in result.get("content").and_then(Value::as_array).into_iter().flatten() {
        gathered.block(block);
    }
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    if let Some(structured) = structured {
        // Servers are asked to say the same in text; only what they did not say is added. Many wrap what is no object.
        let wrapped = structured.as_object().filter(|map| map.len() == 1).and_then(|map| map.get("result"));
        let says = |text: &String| {
            let value = serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
            value == *structured
                || wrapped.is_some_and(|inner| *inner == value || inner.as_str() == Some(text))
        };
        let said = gathered.texts.iter().any(says);
        if !said {
            gathered.texts.push(structured.to_string());
        }
    }
    let Gathered { texts, attachments } = gathered;
    let mut output = texts.join("\n");
    if output.is_empty() {
        let nothing = if attachments.is_empty() { "(no output)" } else { "(see the attached images)" };
        nothing.clone_into(&mut output);
    }
    let failed = result.get("isError") == Some(&Value::Bool(true));
    let meta = Meta::new(name, "call", context.trace);
    let envelope: Envelope<Value> = if failed {
        Envelope::failure(ToolError::new(ErrorCode::Error, output.clone()), meta)
    } else {
        let mut data = Map::new();
        data.insert("text".to_owned(), output.clone().into());
        if let Some(structured) = structured {
            data.insert("structuredContent".to_owned(), structured.clone());
        }
        if !attachments.is_empty() {
            data.insert("attachments".to_owned(), attachments.len().into());
        }
        Envelope::success(data.into(), meta)
    };
    ToolResult {
        error: failed.then(|| output.clone()),
        is_error: failed,
        envelope: serde_json::to_value(&envelope).ok(),
        attachments,
        taint: Some(Taint::Mcp),
        ..ToolResult::success(output)
    }
}

/// A call that got no result.
pub(crate) fn failure(name: &str, context: &ToolContext, error: &McpError) -> ToolResult {
    let code = match error {
        McpError::Timeout { .. } => ErrorCode::Timeout,
        McpError::Refused { code: -32602, .. } => ErrorCode::InvalidArguments,
        McpError::Refused { .. } | McpError::Protocol { .. } => ErrorCode::Error,
        McpError::Unknown(_) => ErrorCode::UnknownTool,
        _ => ErrorCode::Unavailable,
    };
    let meta = Meta::new(name, "call", context.trace);
    let envelope: Envelope<Value> = Envelope::failure(ToolError::new(code, error.to_string()), meta);
    ToolResult { taint: Some(Taint::Mcp), ..ToolResult::from(envelope) }
}

/// The contents of a resource.
pub(crate) fn resource(result: &Value) -> Result<ResourceContent, String> {
    let mut gathered = Gathered::default();
    for content in result.get("contents").and_then(Value::as_array).into_iter().flatten() {
        let said = |key: &str| content.get(key).and_then(Value::as_str);
        match (said("text"), said("blob")) {
            (Some(text), _) => gathered.texts.push(text.to_owned()),
            (None, Some(blob)) => {
                let uri = line(said("uri").unwrap_or_default(), 500);
                gathered.attach(said("mimeType").unwrap_or("application/octet-stream"), blob, Some(uri));
            }
            (None, None) => {}
        }
    }
    match (gathered.texts.is_empty(), gathered.attachments.pop()) {
        (true, Some(attachment)) => Ok(ResourceContent::Attachment(attachment)),
        (true, None) => Err("there is nothing in it".to_owned()),
        (false, _) => Ok(ResourceContent::Text(gathered.texts.join("\n"))),
    }
}

/// The text of a prompt: what its messages say, one after the other.
pub(crate) fn prompt(result: &Value) -> Result<String, String> {
    let messages = result.get("messages").and_then(Value::as_array).ok_or("the server sent no messages")?;
    let mut texts = Vec::new();
    for message in messages {
        let mut gathered = Gathered::default();
        gathered.block(&message["content"]);
        let mut text = gathered.texts.join("\n");
        if text.is_empty() && !gathered.attachments.is_empty() {
            "[an image is not shown]".clone_into(&mut text);
        }
        texts.push(if message["role"] == "assistant" { format!("[assistant] {text}") } else { text });
    }
    match texts.join("\n\n") {
        text if text.trim().is_empty() => Err("the prompt is empty".to_owned()),
        text => Ok(text),
    }
}

/// What is said of a server in a listing of programs (seed 002, `GET /api/mcp/servers`).
pub(crate) fn connected(name: &str, tools: &[String], is_connected: bool) -> Value {
    json!({"name": name, "tools_count": tools.len(), "tools": tools, "connected": is_connected})
}

#[cfg(test)]
mod tests {
    use hanzo_protocol::ids::{ThreadId, TraceId};

    use super::*;

    fn done(result: &Value) -> ToolResult {
        tool_result("mcp__s__t", &ToolContext::new(ThreadId::new(), TraceId::new()), result)
    }

    #[test]
    fn text_images_structure_and_resources_are_kept() {
        let result = done(&json!({
            "content": [
                {"type": "text", "text": "hello"},
                {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                {"type": "image", "data": "%%%", "mimeType": "image/png"},
                {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "x://a", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "x://b", "blob": "aGk=", "mimeType": "image/png"}},
                {"type": "resource_link", "uri": "x://c", "name": "c", "description": "linked"},
                {"type": "hologram"},
            ],
            "structuredContent": {"answer": 42},
        }));
        assert!(!result.is_error);
        assert_eq!(result.attachments.len(), 2);
        assert_eq!(result.taint, Some(Taint::Mcp));
        for part in [
            "hello",
            "[resource x://a]\ninside",
            "not valid base64",
            "x://c: linked",
            "hologram",
            r#"{"answer":42}"#,
        ] {
            assert!(result.output.contains(part), "{part} in {}", result.output);
        }
        assert_eq!(result.envelope.unwrap()["data"]["structuredContent"]["answer"], 42);
    }

    #[test]
    fn structure_that_was_said_in_text_is_not_said_twice() {
        let result = done(&json!({
            "content": [{"type": "text", "text": "{\"a\": 1}"}], "structuredContent": {"a": 1},
        }));
        assert_eq!(result.output, "{\"a\": 1}");
        let wrapped =
            json!({"content": [{"type": "text", "text": "5"}], "structuredContent": {"result": "5"}});
        assert_eq!(done(&wrapped).output, "5");
    }

    #[test]
    fn a_failure_of_the_tool_is_one_the_model_reads() {
        let result = done(&json!({"content": [{"type": "text", "text": "no such user"}], "isError": true}));
        assert!(result.is_error);
        assert_eq!((result.output.as_str(), result.error.as_deref()), ("no such user", Some("no such user")));
        assert_eq!(done(&json!({})).output, "(no output)");
        assert_eq!(done(&json!({"content": 7})).output, "(no output)");
    }

    #[test]
    fn resources_and_prompts_become_text() {
        let text = json!({"contents": [{"uri": "x", "text": "a"}, {"uri": "y", "text": "b"}]});
        assert_eq!(resource(&text), Ok(ResourceContent::Text("a\nb".into())));
        let image = json!({"contents": [{"uri": "x", "blob": "aGk=", "mimeType": "image/png"}]});
        assert!(matches!(resource(&image), Ok(ResourceContent::Attachment(_))));
        assert!(resource(&json!({})).is_err());
        let said = json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "Q"}},
            {"role": "assistant", "content": {"type": "text", "text": "A"}},
        ]});
        assert_eq!(prompt(&said), Ok("Q\n\n[assistant] A".into()));
        assert!(prompt(&json!({"messages": []})).is_err());
    }
}
