//! Tools, agents, commands and results in the protocol's words.

use std::sync::Arc;

use hanzo_protocol::message::AttachmentSource;
use hanzo_protocol::tool::{Effect, ToolResult};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, Prompt, PromptArgument, Resource, Tool, ToolAnnotations,
};
use serde_json::{Value, json};

/// What the names of agents begin with, as tools.
pub(super) const AGENT_PREFIX: &str = "hanzo_agent_";
/// The tool of the engine that runs an agent, and the one that asks the user: a client has better ways to both.
pub(super) const AGENT_TOOL: &str = "agent";
const ASK_TOOL: &str = "ask";

/// The tool that runs the agent called `name`.
pub(super) fn agent_tool_name(name: &str) -> String {
    format!("{AGENT_PREFIX}{}", name.replace('-', "_"))
}

/// The tools of a listing of the engine.
pub(super) fn tools(entries: &[Value]) -> Vec<Tool> {
    let listed = |entry: &&Value| !matches!(entry["name"].as_str(), None | Some(AGENT_TOOL | ASK_TOOL));
    entries.iter().filter(listed).map(tool).collect()
}

fn tool(entry: &Value) -> Tool {
    let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let schema = entry["parameters"].as_object().cloned().unwrap_or_else(empty_schema);
    let effects: Vec<Effect> = serde_json::from_value(entry["effects"].clone()).unwrap_or_default();
    Tool::new(text("name"), text("description"), Arc::new(schema)).with_annotations(annotations(&effects))
}

/// What a call can do, said as hints. A tool of which nothing is known may do anything.
fn annotations(effects: &[Effect]) -> ToolAnnotations {
    let reads = !effects.is_empty() && effects.iter().all(|effect| effect.is_read_only());
    let open =
        effects.is_empty() || effects.iter().any(|effect| matches!(effect, Effect::Network | Effect::Screen));
    let destroys = !reads
        && (effects.is_empty()
            || effects
                .iter()
                .any(|effect| matches!(effect, Effect::Write | Effect::Execute | Effect::Memory)));
    ToolAnnotations::new().read_only(reads).destructive(destroys).open_world(open)
}

fn empty_schema() -> JsonObject {
    JsonObject::from_iter([("type".to_owned(), json!("object"))])
}

/// The agents of a listing of the engine.
pub(super) fn agents(entries: &[Value]) -> Vec<Tool> {
    let schema = json!({
        "type": "object",
        "properties": {"message": {"type": "string", "description": "The task: what to do, which files matter, and what to report. The agent knows nothing else."}},
        "required": ["message"],
    });
    let schema = Arc::new(schema.as_object().cloned().unwrap_or_default());
    let named = entries.iter().filter_map(|entry| Some((entry["name"].as_str()?, entry)));
    let tool = |(name, entry): (&str, &Value)| {
        let about = entry["description"].as_str().unwrap_or_default();
        let about = format!("Has the agent `{name}` do a task and returns its report. {about}");
        let hints = ToolAnnotations::new().read_only(false).destructive(true).open_world(true);
        Tool::new(agent_tool_name(name), about, Arc::clone(&schema)).with_annotations(hints)
    };
    named.map(tool).collect()
}

/// The commands that are prompts: those that say something to an agent.
pub(super) fn prompts(entries: &[Value]) -> Vec<Prompt> {
    let says = |entry: &&Value| entry["kind"] == "turn";
    let prompt = |entry: &Value| {
        let name = entry["name"].as_str().unwrap_or_default();
        let hint = entry["argumentHint"].as_str();
        let argument =
            hint.map(|hint| vec![PromptArgument::new(ARGUMENTS).with_description(hint).with_required(false)]);
        Prompt::new(name, entry["description"].as_str(), argument)
    };
    entries.iter().filter(says).map(prompt).collect()
}

/// The one argument of a prompt: what would follow the command's name.
pub(super) const ARGUMENTS: &str = "arguments";

/// A result in the protocol's words. A tool that does not exist is the caller's mistake and not the tool's failure.
pub(super) fn result(result: ToolResult) -> Result<CallToolResult, ErrorData> {
    let code = result.envelope.as_ref().and_then(|envelope| envelope["error"]["code"].as_str());
    if code == Some("UNKNOWN_TOOL") {
        let message = result.error.unwrap_or_default();
        return Err(ErrorData::invalid_params(message, None));
    }
    let mut content = vec![ContentBlock::text(result.output)];
    for attachment in result.attachments {
        let kind = attachment.media_type.as_str();
        content.push(match attachment.source {
            AttachmentSource::Inline { base64 } if kind.starts_with("image/") => {
                ContentBlock::image(base64, kind)
            }
            AttachmentSource::Inline { base64 } if kind.starts_with("audio/") => {
                ContentBlock::audio(base64, kind)
            }
            AttachmentSource::Inline { .. } => continue,
            AttachmentSource::Stored { r#ref } => {
                let name = attachment.name.unwrap_or_else(|| "attachment".to_owned());
                let uri = format!("{}{}", super::resources::REF_SCHEME, r#ref.as_str());
                ContentBlock::resource_link(Resource::new(uri, name).with_mime_type(kind))
            }
        });
    }
    let mut answer =
        if result.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    answer.structured_content = result.envelope;
    Ok(answer)
}
