//! Other names for actions: callable, not listed, unless the classic profile lists them.

use std::sync::Arc;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::message::ToolSchema;
use hanzo_protocol::tool::{Reach, Tool, ToolContext, ToolResult};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::contract::{BaseHashes, UnifiedTool};
use crate::registry::Profile;

/// A name, the action it means, and how its arguments become that action's.
struct Alias {
    name: &'static str,
    id: &'static str,
    map: fn(Map<String, Value>) -> Map<String, Value>,
}

const fn alias(name: &'static str, id: &'static str) -> Alias {
    Alias { name, id, map: same }
}

fn same(arguments: Map<String, Value>) -> Map<String, Value> {
    arguments
}

static ALIASES: &[Alias] = &[alias("read_file", "fs.read"), alias("bash", "proc.exec")];

/// The canonical `tool.action` of an alias.
pub fn canonical(name: &str) -> Option<&'static str> {
    ALIASES.iter().find(|alias| alias.name == name).map(|alias| alias.id)
}

/// An action under another name.
#[derive(Debug)]
pub struct AliasTool {
    schema: ToolSchema,
    tool: Arc<UnifiedTool>,
    action: String,
    map: fn(Map<String, Value>) -> Map<String, Value>,
    base_hashes: BaseHashes,
}

impl AliasTool {
    fn arguments(&self, arguments: &Value) -> Value {
        let Value::Object(members) = arguments else { return arguments.clone() };
        let mut members = (self.map)(members.clone());
        members.insert("action".into(), self.action.clone().into());
        members.into()
    }
}

impl Tool for AliasTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn reach(&self, arguments: &Value) -> Reach {
        self.tool.reach(&self.arguments(arguments))
    }

    fn execute<'a>(&'a self, context: &'a ToolContext, arguments: Value) -> BoxFuture<'a, ToolResult> {
        let arguments = self.arguments(&arguments);
        Box::pin(self.tool.run(context, arguments, self.base_hashes))
    }
}

/// Every other name the tools can be called by.
pub(crate) fn all(tools: &[Arc<UnifiedTool>], profile: Profile) -> Vec<(String, AliasTool)> {
    let base_hashes = match profile {
        Profile::Unified => BaseHashes::Given,
        Profile::Classic => BaseHashes::FromLedger,
    };
    let mut names = Vec::new();
    for tool in tools {
        for action in tool.action_names().into_iter().chain(["help", "schema", "status"]) {
            for separator in [".", "_"] {
                let name = format!("{}{separator}{action}", tool.name());
                names.push((name.clone(), make(&name, tool, action, same, base_hashes)));
            }
        }
    }
    for alias in ALIASES {
        let Some((tool, action)) = find(tools, alias.id) else { continue };
        names.push((alias.name.to_owned(), make(alias.name, tool, action, alias.map, base_hashes)));
    }
    names
}

fn find<'a>(tools: &'a [Arc<UnifiedTool>], id: &'a str) -> Option<(&'a Arc<UnifiedTool>, &'a str)> {
    let (name, action) = id.split_once('.')?;
    let tool = tools.iter().find(|tool| tool.name() == name && tool.action_names().contains(&action))?;
    Some((tool, action))
}

fn make(
    name: &str,
    tool: &Arc<UnifiedTool>,
    action: &str,
    map: fn(Map<String, Value>) -> Map<String, Value>,
    base_hashes: BaseHashes,
) -> AliasTool {
    let parameters = RawValue::from_string(json!({"type": "object"}).to_string()).expect("it is JSON");
    let description = format!("Another name for {}.{action}", tool.name());
    let schema = ToolSchema { name: name.into(), description, parameters };
    AliasTool { schema, tool: Arc::clone(tool), action: action.into(), map, base_hashes }
}

/// The tools of the classic profile.
pub(crate) fn classic(_tools: &[Arc<UnifiedTool>]) -> Vec<AliasTool> {
    Vec::new()
}
