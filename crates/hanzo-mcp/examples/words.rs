//! A small MCP server on standard input and output, with two tools: `echo` and `wordcount`.
//!
//! ```text
//! hanzo-dev mcp add words -- target/debug/examples/words
//! hanzo-dev mcp test words
//! ```

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ServerHandler, ServiceExt as _};
use serde_json::{Value, json};

struct Words;

fn schema(about: &str) -> Arc<JsonObject> {
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string", "description": about}},
        "required": ["text"],
    });
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

impl ServerHandler for Words {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("words", env!("CARGO_PKG_VERSION")))
            .with_instructions("Says text back, and counts its words.")
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let reads = || ToolAnnotations::new().read_only(true);
        Ok(ListToolsResult::with_all_items(vec![
            Tool::new("echo", "Says the text back", schema("What to say")).with_annotations(reads()),
            Tool::new("wordcount", "Counts the words of a text", schema("What to count"))
                .with_annotations(reads()),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text =
            request.arguments.as_ref().and_then(|arguments| arguments.get("text")).and_then(Value::as_str);
        let Some(text) = text else {
            return Ok(CallToolResult::error(vec![ContentBlock::text("`text` must be a string")]).into());
        };
        match request.name.as_ref() {
            "echo" => Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into()),
            "wordcount" => {
                let count = json!({"words": text.split_whitespace().count()});
                Ok(CallToolResult::structured(count).into())
            }
            other => Err(ErrorData::invalid_params(format!("there is no tool `{other}`"), None)),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let service = Words.serve((tokio::io::stdin(), tokio::io::stdout())).await?;
    service.waiting().await?;
    Ok(())
}
