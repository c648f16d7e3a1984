//! Our client as the MCP conformance suite drives one: the server's address is the last argument, and
//! `MCP_CONFORMANCE_CONTEXT` may say which calls to make. Everything goes through the manager, as in a thread.
//!
//! `cargo xtask interop` runs it; see `tests/oracle/client-expected-failures.yml`.
#![expect(clippy::print_stderr, reason = "the suite keeps what a client says there")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use hanzo_mcp::client::elicitation::{FieldKind, fields};
use hanzo_mcp::client::host::{
    Elicitation, ElicitationAnswer, ElicitationForm, Elicitor, Sampled, Sampler, Sampling,
};
use hanzo_mcp::client::{Manager, ManagerParts, RemoteConfig, RemoteTool, ServerConfig, TransportConfig};
use hanzo_protocol::BoxFuture;
use hanzo_protocol::ids::{ThreadId, TraceId};
use hanzo_protocol::tool::{Tool as _, ToolContext};
use hanzo_testkit::plain_spawner::PlainSpawner;
use serde_json::{Map, Value, json};

/// Agrees to everything, with the defaults of a form where it has some.
struct Agreeable;

impl Elicitor for Agreeable {
    fn elicit(&self, request: Elicitation) -> BoxFuture<'_, ElicitationAnswer> {
        let mut answers = Map::new();
        if let ElicitationForm::Fields(schema) = &request.form {
            for field in fields(schema).into_iter().filter(|field| field.default.is_none()) {
                let value = match field.kind {
                    FieldKind::Boolean => json!(true),
                    FieldKind::Integer | FieldKind::Number => json!(1),
                    FieldKind::Text => json!("text"),
                    FieldKind::Choice(choices) => json!(choices.first().map(|(value, _)| value)),
                    FieldKind::Choices(choices) => {
                        json!(choices.iter().map(|(value, _)| value).collect::<Vec<_>>())
                    }
                };
                answers.insert(field.name, value);
            }
        }
        Box::pin(std::future::ready(ElicitationAnswer::Accept(Value::Object(answers))))
    }
}

impl Sampler for Agreeable {
    fn sample(&self, _: Sampling) -> BoxFuture<'_, Result<Sampled, String>> {
        let sampled = Sampled { model: "test-model".to_owned(), text: "sampled".to_owned(), cut: false };
        Box::pin(std::future::ready(Ok(sampled)))
    }
}

/// Arguments that fit a schema as far as it says what it wants.
fn arguments(schema: &Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let value = |(place, (name, property)): (usize, (String, Value))| {
        let value = match property["type"].as_str() {
            Some("integer" | "number") => json!(5 - place),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("text"),
        };
        (name, value)
    };
    Value::Object(properties.into_iter().enumerate().map(value).collect())
}

async fn call(tool: &Arc<RemoteTool>, arguments: Value) {
    let context = ToolContext::new(ThreadId::new(), TraceId::new());
    let result = tool.execute(&context, arguments).await;
    let sign = if result.is_error { "failed" } else { "answered" };
    eprintln!("{} {sign}: {}", tool.raw().name, result.output);
}

async fn run(url: String) -> bool {
    let mut config = ServerConfig::new("conformance", TransportConfig::Http(RemoteConfig::new(url)));
    config.timeout = Duration::from_secs(20);
    let spawner = Arc::new(PlainSpawner::new(std::env::temp_dir()));
    let mut parts = ManagerParts::new(vec![config], spawner);
    parts.elicitor = Some(Arc::new(Agreeable));
    parts.sampler = Some(Arc::new(Agreeable));
    parts.roots = vec![std::env::temp_dir()];
    let manager = Manager::start(parts);
    manager.settled().await;
    let status = manager.status();
    if let Some(error) = &status[0].error {
        eprintln!("{error}");
        return false;
    }
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").ok();
    let context: Value = context.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let tools = manager.tools();
    let named = |name: &str| tools.iter().find(|tool| tool.raw().name == name);
    if let Some(calls) = context["toolCalls"].as_array() {
        for wanted in calls {
            if let Some(tool) = named(wanted["name"].as_str().unwrap_or_default()) {
                call(tool, wanted["arguments"].clone()).await;
            }
        }
    } else {
        for tool in &tools {
            // One scenario wants the schema of another tool back as it came.
            let echoes = named("json_schema_2020_12_tool")
                .filter(|_| tool.raw().input_schema["properties"]["schema"].is_object());
            match echoes {
                Some(other) => call(tool, json!({"schema": other.raw().input_schema})).await,
                None => call(tool, arguments(&tool.raw().input_schema)).await,
            }
        }
    }
    for prompt in manager.prompts() {
        let typed: Vec<String> =
            prompt.prompt.arguments.iter().map(|known| format!("{}=text", known.name)).collect();
        eprintln!("{}: {:?}", prompt.command, manager.prompt(&prompt.command, &typed.join(" ")).await);
    }
    let listing = manager.listing("conformance");
    for resource in listing.iter().flat_map(|listing| &listing.resources) {
        eprintln!("{}: {:?}", resource.uri, manager.resource("conformance", &resource.uri).await);
    }
    manager.shutdown().await;
    true
}

fn main() -> ExitCode {
    let Some(url) = std::env::args().next_back() else { return ExitCode::FAILURE };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime.map(|runtime| runtime.block_on(run(url))) {
        Ok(true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
