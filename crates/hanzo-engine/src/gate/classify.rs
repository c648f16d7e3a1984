//! What a call is, before anything is decided about it.

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::ids::{ItemId, TraceId};
use hanzo_protocol::message::ToolCall;
use hanzo_protocol::tool::ToolSet;
use serde_json::{Map, Value, json};

use super::types::{Classified, Target, Unclassified};

/// Looks a call up and reads its arguments. What does not parse is never run: the model gets the error and can put it right.
/// Whoever has read the arguments already gives them along.
pub(super) fn classify(tools: &ToolSet, call: &ToolCall, arguments: Option<Value>) -> Classified {
    Classified {
        call: call.id.clone(),
        item: ItemId::new(),
        trace: TraceId::new(),
        name: call.name.clone(),
        target: target(tools, call, arguments).map_err(|error| Unclassified { error }),
    }
}

fn target(tools: &ToolSet, call: &ToolCall, arguments: Option<Value>) -> Result<Target, ToolError> {
    let Some(tool) = tools.get(&call.name) else { return Err(unknown(tools, &call.name)) };
    let arguments = match arguments {
        Some(read) => object(call, read)?,
        None => parse(call)?,
    };
    let reach = tool.reach(&arguments);
    Ok(Target { tool: tool.clone(), arguments, reach })
}

fn parse(call: &ToolCall) -> Result<Value, ToolError> {
    // Models write nothing at all for a call without arguments.
    if call.arguments.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let read = serde_json::from_str::<Value>(&call.arguments);
    object(call, read.map_err(|error| wrong(call, &format!("are not valid JSON: {error}")))?)
}

fn object(call: &ToolCall, arguments: Value) -> Result<Value, ToolError> {
    match arguments {
        Value::Object(map) => Ok(Value::Object(map)),
        Value::Null => Ok(Value::Object(Map::new())),
        _ => Err(wrong(call, "are JSON, but not an object")),
    }
}

fn wrong(call: &ToolCall, what: &str) -> ToolError {
    let name = shown(&call.name);
    let message = format!("the arguments of `{name}` {what}; nothing was run. Send them as one JSON object.");
    ToolError::new(ErrorCode::InvalidArguments, message)
}

fn unknown(tools: &ToolSet, name: &str) -> ToolError {
    let names: Vec<String> = tools.schemas().into_iter().map(|schema| schema.name).collect();
    let message = format!("there is no tool `{}`; the tools are {}", shown(name), names.join(", "));
    ToolError::new(ErrorCode::UnknownTool, message).with_details(json!({ "available": names }))
}

fn shown(name: &str) -> String {
    hanzo_hooks::plain_text(name, 100)
}
