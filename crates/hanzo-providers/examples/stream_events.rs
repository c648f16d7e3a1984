//! Sends one request and prints the events of the answer, one JSON object to a line: for comparing with other clients, and
//! for trying a provider by hand.
//!
//! `stream_events KIND BASE_URL MODEL PROMPT [ROUNDS]`: with `ROUNDS`, a tool call is answered and the request sent again,
//! up to so often. The key is read from `HANZO_EXAMPLE_KEY`.
#![expect(clippy::print_stdout, reason = "the events are what the example is for")]

use futures_util::StreamExt as _;
use hanzo_protocol::message::{Message, ModelRequest, StreamEvent, ToolSchema};
use hanzo_providers::{ProviderConfig, Registry};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, base_url, model, prompt, rounds @ ..] = arguments.as_slice() else {
        return Err("usage: stream_events KIND BASE_URL MODEL PROMPT [ROUNDS]".into());
    };
    let rounds: usize = rounds.first().map_or(Ok(0), |text| text.parse())?;
    let mut config = ProviderConfig::new("example", kind).with_base_url(base_url);
    config.api_key = std::env::var("HANZO_EXAMPLE_KEY").ok().map(Into::into);
    let client = Registry::standard().build(config)?;
    let parameters = r#"{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}"#;
    let mut request = ModelRequest {
        model: model.clone(),
        messages: vec![Message::system("Be brief."), Message::user(prompt)],
        tools: vec![ToolSchema {
            name: "shell".into(),
            description: "Runs a command".into(),
            parameters: serde_json::from_str(parameters)?,
        }],
        ..ModelRequest::default()
    };
    for _ in 0..=rounds {
        let mut message = Message::assistant("");
        let mut stream = client.send_message(&request);
        while let Some(event) = stream.next().await {
            println!("{}", serde_json::to_string(&event)?);
            match event {
                StreamEvent::ContentDelta { text } => message.content.push_str(&text),
                StreamEvent::Reasoning(reasoning) => message.reasoning.push(reasoning),
                StreamEvent::ToolUse(call) => message.tool_calls.push(call),
                _ => {}
            }
        }
        if message.tool_calls.is_empty() {
            break;
        }
        let results: Vec<Message> = message
            .tool_calls
            .iter()
            .map(|call| Message::tool(call.id.clone(), &call.name, "done"))
            .collect();
        request.messages.push(message);
        request.messages.extend(results);
    }
    Ok(())
}
