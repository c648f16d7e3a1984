//! What a server has besides tools, as calls: reading a resource and getting a prompt. The user does either at this machine as they
//! please; whoever comes from elsewhere has to pass the gate, and what passes the gate is a call of a tool.

use std::sync::Arc;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::envelope::{Envelope, ErrorCode, Meta, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::message::{Attachment, ToolSchema};
use hanzo_protocol::tool::{Effect, Reach, TimeLimit, Tool, ToolContext, ToolResult};
use rmcp::model::{GetPromptRequestParams, ReadResourceRequestParams};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::config::ServerTrust;
use super::exchange::{Ask, Asking};
use super::fault::McpError;
use super::result::{self, ResourceContent};
use super::server::Server;
use super::text::line;
use crate::names::method_name;

/// What can be asked of a server besides calls of its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// `resources/read` with `uri`: only what the server lists.
    ReadResource,
    /// `prompts/get` with `name` and `arguments`.
    GetPrompt,
}

impl Method {
    /// The protocol's name.
    fn name(self) -> &'static str {
        match self {
            Self::ReadResource => "resources/read",
            Self::GetPrompt => "prompts/get",
        }
    }

    fn schema(self) -> Value {
        match self {
            Self::ReadResource => json!({
                "type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"],
            }),
            Self::GetPrompt => json!({
                "type": "object",
                "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
                "required": ["name"],
            }),
        }
    }
}

/// A call of a method, for whoever makes it through the gate.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
}

/// A method of a server as a tool. Models are not told of it.
pub struct ServerMethod {
    schema: ToolSchema,
    server: Arc<Server>,
    method: Method,
}

impl ServerMethod {
    /// Both methods of each server. Servers whose names come out alike are told apart by a number, in their order.
    pub(crate) fn of_all(servers: &[Arc<Server>]) -> Vec<Arc<Self>> {
        let mut all: Vec<Arc<Self>> = Vec::new();
        for server in servers {
            for method in [Method::ReadResource, Method::GetPrompt] {
                let natural = method_name(&server.config.name, method.name());
                let numbered = (2_u32..).map(|number| format!("{natural}_{number}"));
                let taken = |name: &String| all.iter().any(|other| other.schema.name == *name);
                let Some(name) = std::iter::once(natural.clone()).chain(numbered).find(|name| !taken(name))
                else {
                    continue;
                };
                let Ok(parameters) = RawValue::from_string(method.schema().to_string()) else { continue };
                let description = format!("[MCP:{}] {}", line(&server.config.name, 100), method.name());
                let schema = ToolSchema { name, description, parameters };
                all.push(Arc::new(Self { schema, server: Arc::clone(server), method }));
            }
        }
        all
    }

    /// Whether it is `method` of the server called `server`.
    pub(crate) fn is(&self, server: &str, method: Method) -> bool {
        self.method == method && self.server.config.name == server
    }

    async fn ask(&self, context: &ToolContext, input: Value) -> Result<ToolResult, McpError> {
        let asking = Asking { thread: Some(context.thread), output: context.output.clone() };
        let said = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
        match self.method {
            Method::ReadResource => {
                let uri = said("uri");
                let listing = self.server.listing();
                let mut listed = listing.iter().flat_map(|listing| &listing.resources);
                if !listed.any(|resource| resource.uri == uri) {
                    let error = ToolError::new(
                        ErrorCode::NotFound,
                        format!(
                            "the MCP server `{}` lists no resource `{}`",
                            line(&self.server.config.name, 100),
                            line(&uri, 500)
                        ),
                    );
                    return Ok(Envelope::<Value>::failure(error, self.meta(context)).into());
                }
                Ok(match self.server.resource(&uri, &asking).await? {
                    ResourceContent::Text(text) => self.success(context, text, Vec::new()),
                    ResourceContent::Attachment(attachment) => {
                        self.success(context, "(see the attachment)".to_owned(), vec![attachment])
                    }
                })
            }
            Method::GetPrompt => {
                let arguments = input["arguments"].as_object().cloned().unwrap_or_default();
                let text = self.server.prompt(&said("name"), arguments, &asking).await?;
                Ok(self.success(context, text, Vec::new()))
            }
        }
    }

    fn meta(&self, context: &ToolContext) -> Meta {
        Meta::new(&self.schema.name, "call", context.trace)
    }

    fn success(&self, context: &ToolContext, text: String, attachments: Vec<Attachment>) -> ToolResult {
        let envelope: Envelope<Value> = Envelope::success(json!({ "text": text }), self.meta(context));
        ToolResult {
            attachments,
            envelope: serde_json::to_value(&envelope).ok(),
            ..ToolResult::success(text)
        }
    }
}

impl Tool for ServerMethod {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn reach(&self, _: &Value) -> Reach {
        // The protocol has both only look; whether a server keeps to that is a question of trust.
        let effect = match self.server.config.trust {
            ServerTrust::Trusted => Effect::Read,
            ServerTrust::Untrusted => Effect::Network,
        };
        Reach { time_limit: TimeLimit::Own, ..Reach::new(self.schema.name.clone(), effect) }
    }

    fn execute<'a>(&'a self, context: &'a ToolContext, input: Value) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let result = match self.ask(context, input).await {
                Ok(result) => result,
                Err(error) => result::failure(&self.schema.name, context, &error),
            };
            ToolResult { taint: Some(Taint::Mcp), ..result }
        })
    }
}

impl Server {
    /// Reads a resource.
    pub(crate) async fn resource(&self, uri: &str, asking: &Asking) -> Result<ResourceContent, McpError> {
        let answer = self.ask(Ask::Resource(ReadResourceRequestParams::new(uri)), asking).await?;
        result::resource(&answer).map_err(|reason| self.protocol(reason))
    }

    /// The text of a prompt.
    pub(crate) async fn prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        asking: &Asking,
    ) -> Result<String, McpError> {
        let mut params = GetPromptRequestParams::new(name);
        if !arguments.is_empty() {
            params = params.with_arguments(arguments);
        }
        let answer = self.ask(Ask::Prompt(params), asking).await?;
        result::prompt(&answer).map_err(|reason| self.protocol(reason))
    }

    fn protocol(&self, reason: String) -> McpError {
        McpError::Protocol { server: self.config.name.clone(), reason }
    }
}
