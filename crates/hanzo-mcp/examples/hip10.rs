//! A HIP-10 client: it lends the server a tool, runs it through the server, runs tools of the server, and shares a context with it.
//!
//! ```text
//! hanzo-dev mcp --http 127.0.0.1:3000
//! cargo run -p hanzo-mcp --example hip10 -- ws://127.0.0.1:3000/mcp
//! ```
//!
//! A second argument is a tool of the server to run, a third its arguments as JSON. The token in `HANZO_MCP_TOKEN` is shown to the
//! server; `HANZO_MCP_CA` is a PEM file with the certificate that vouches for it, for `wss://` and a certificate of one's own.
#![expect(clippy::print_stdout, reason = "it is a program for a terminal")]

use std::error::Error;

use hanzo_mcp::client::hip10::{Call, Client, MergeStrategy, Options, ToolDefinition};
use serde_json::{Value, json};

/// What the tool does. Its error is for whoever called it.
fn calculate(arguments: &Value) -> Result<Value, String> {
    let number = |name: &str| {
        arguments[name]
            .as_f64()
            .ok_or_else(|| format!("`{name}` has to be a number, not {}", arguments[name]))
    };
    let (a, b) = (number("a")?, number("b")?);
    match arguments["operation"].as_str() {
        Some("add") => Ok(json!({"result": a + b})),
        Some("multiply") => Ok(json!({"result": a * b})),
        Some("divide") if b == 0.0 => Err("nothing can be divided by zero".to_owned()),
        Some("divide") => Ok(json!({"result": a / b})),
        _ => Err("`operation` is `add`, `multiply` or `divide`".to_owned()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let mut options = Options::new(words.next().unwrap_or_else(|| "ws://localhost:3000/mcp".to_owned()));
    if let Ok(token) = std::env::var("HANZO_MCP_TOKEN") {
        options = options.token(token);
    }
    if let Ok(authority) = std::env::var("HANZO_MCP_CA") {
        options = options.authority(authority);
    }
    let client = Client::connect_with(options).await?;

    let schema = json!({
        "type": "object",
        "properties": {"operation": {"enum": ["add", "multiply", "divide"]}, "a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["operation", "a", "b"],
    });
    let definition = ToolDefinition::new("calculator", "Calculates with two numbers", schema)
        .permission("rate_limit:100/min");
    client.register_tool(definition, |arguments| async move { calculate(&arguments) }).await?;

    // The server calls us back.
    let product = json!({"operation": "multiply", "a": 6, "b": 7});
    let context = json!({"context_id": "example", "entries": [{"key": "asked", "value": product}]});
    let answer = client.execute_tool("calculator", product, Some(context)).await?;
    println!("calculator: {}", answer.text);

    let call = |operation: &str, b: f64| Call {
        tool: "calculator".to_owned(),
        arguments: json!({"operation": operation, "a": 1, "b": b}),
        context: None,
    };
    for result in client.batch(&[call("add", 2.0), call("divide", 0.0)]).await? {
        let result = result?;
        println!("batch: {}{}", if result.is_error { "error: " } else { "" }, result.text);
    }

    client.context_update(Some("example"), &[("answers", json!([42]))], MergeStrategy::Append).await?;
    let context = client.context_get(Some("example"), Some(&["answers"])).await?;
    println!("context: {}", context["entries"][0]["value"]);

    if let Some(tool) = words.next() {
        let arguments = words.next().map_or(Ok(json!({})), |text| serde_json::from_str(&text))?;
        println!("{tool}: {}", client.execute_tool(&tool, arguments, None).await?.text);
    }
    Ok(())
}
