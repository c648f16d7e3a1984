//! What a call is, before anything is decided about it.

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::ids::{ItemId, TraceId};
use hanzo_protocol::message::ToolCall;
use hanzo_protocol::tool::ToolSet;
use serde_json::{Map, Value, json};

use super::types::{Classified, Target, Unclassified};

/// Looks a call up and reads its arguments. What does not parse is never run: the model gets the error and can put it right.
pub(super) fn classify(tools: &ToolSet, call: &ToolCall) -> Classified {
    Classified {
        call: call.id.clone(),
        item: ItemId::new(),
        trace: TraceId::new(),
        name: call.name.clone(),
        target: target(tools, call).map_err(|error| Unclassified { error }),
    }
}

fn target(tools: &ToolSet, call: &ToolCall) -> Result<Target, ToolError> {
    let Some(tool) = tools.get(&call.name) else { return Err(unknown(tools, &call.name)) };
    let arguments = arguments(call)?;
    let reach = tool.reach(&arguments);
    Ok(Target { tool: tool.clone(), arguments, reach })
}

fn arguments(call: &ToolCall) -> Result<Value, ToolError> {
    // Models write nothing at all for a call without arguments.
    if call.arguments.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let wrong = |what: String| {
        let message = format!(
            "the arguments of `{}` {what}; nothing was run. Send them as one JSON object.",
            shown(&call.name)
        );
        ToolError::new(ErrorCode::InvalidArguments, message)
    };
    match serde_json::from_str::<Value>(&call.arguments) {
        Ok(Value::Object(map)) => Ok(Value::Object(map)),
        Ok(Value::Null) => Ok(Value::Object(Map::new())),
        Ok(_) => Err(wrong("are JSON, but not an object".to_owned())),
        Err(error) => Err(wrong(format!("are not valid JSON: {error}"))),
    }
}

fn unknown(tools: &ToolSet, name: &str) -> ToolError {
    let names: Vec<String> = tools.schemas().into_iter().map(|schema| schema.name).collect();
    let message = format!("there is no tool `{}`; the tools are {}", shown(name), names.join(", "));
    ToolError::new(ErrorCode::UnknownTool, message).with_details(json!({ "available": names }))
}

fn shown(name: &str) -> String {
    hanzo_hooks::plain_text(name, 100)
}
