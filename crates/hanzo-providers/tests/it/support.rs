//! What the tests share.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use hanzo_protocol::message::{
    ApiError, Message, ModelRequest, Reasoning, StopReason, StreamEvent, ToolCall, ToolSchema,
};
use hanzo_protocol::roles::ApiClient;
use hanzo_protocol::usage::Usage;
use hanzo_providers::{ProviderConfig, Registry, RetryPolicy, Timeouts};
use hanzo_testkit::scripted::{Api, Server};
use serde_json::Value;

pub(crate) const APIS: [Api; 2] = [Api::OpenAi, Api::Anthropic];

/// A key that must never be seen anywhere but in its header.
pub(crate) const KEY: &str = "canary-key-0123456789";

/// The configuration of a client for `server`: one try, and a second of patience.
pub(crate) fn config(server: &Server, api: Api) -> ProviderConfig {
    let kind = match api {
        Api::OpenAi => "openai",
        Api::Anthropic => "anthropic",
    };
    let mut config = ProviderConfig::new("test", kind).with_base_url(server.base_url()).with_api_key(KEY);
    config.retry = RetryPolicy::NEVER;
    config.timeouts = Timeouts { connect: Duration::from_secs(5), idle: Duration::from_secs(10) };
    config
}

pub(crate) fn build(config: ProviderConfig) -> Arc<dyn ApiClient> {
    Registry::standard().build(config).unwrap()
}

pub(crate) fn client(server: &Server, api: Api) -> Arc<dyn ApiClient> {
    build(config(server, api))
}

/// A request that asks something and offers a tool.
pub(crate) fn request() -> ModelRequest {
    ModelRequest {
        model: "scripted".into(),
        messages: vec![Message::system("Be brief."), Message::user("Hello")],
        tools: vec![tool("fs")],
        ..ModelRequest::default()
    }
}

pub(crate) fn tool(name: &str) -> ToolSchema {
    ToolSchema {
        name: name.into(),
        description: "Reads files".into(),
        parameters: serde_json::from_str(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#)
            .unwrap(),
    }
}

pub(crate) async fn ask(client: &dyn ApiClient, request: &ModelRequest) -> Vec<StreamEvent> {
    client.send_message(request).collect().await
}

/// What an answer comes to, however it was cut into deltas.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) thought: String,
    pub(crate) reasoning: Vec<Reasoning>,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) stop: Option<(StopReason, Usage)>,
    pub(crate) error: Option<ApiError>,
}

/// Puts the events together and checks the rule that holds for every stream: exactly one last event, at the end.
pub(crate) fn answer(events: &[StreamEvent]) -> Answer {
    let mut answer = Answer::default();
    for (index, event) in events.iter().enumerate() {
        let is_last = index + 1 == events.len();
        let ends = matches!(event, StreamEvent::MessageStop { .. } | StreamEvent::Error(_));
        assert_eq!(ends, is_last, "event {index} of {events:?}");
        match event.clone() {
            StreamEvent::ContentDelta { text } => answer.text.push_str(&text),
            StreamEvent::ReasoningDelta { text } => answer.thought.push_str(&text),
            StreamEvent::Reasoning(reasoning) => answer.reasoning.push(reasoning),
            StreamEvent::ToolUse(call) => answer.calls.push(call),
            StreamEvent::MessageStop { reason, usage } => answer.stop = Some((reason, usage)),
            StreamEvent::Error(error) => answer.error = Some(error),
        }
    }
    assert!(!events.is_empty(), "a stream is never empty");
    answer
}

/// Asks a server that gives this one answer.
pub(crate) async fn ask_for(reply: hanzo_testkit::scripted::Reply, api: Api) -> Answer {
    let server = Server::start([reply]);
    answer(&ask(&*client(&server, api), &request()).await)
}

pub(crate) fn call(id: &str, name: &str, arguments: &Value) -> ToolCall {
    ToolCall {
        id: hanzo_protocol::ids::ToolCallId::new(id),
        name: name.into(),
        arguments: arguments.to_string(),
    }
}

/// A body of OpenAI chunks, each of them `choices[0].delta` or a whole chunk, then the closing mark.
pub(crate) fn chunks(chunks: &[Value]) -> String {
    let events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events.concat() + "data: [DONE]\n\n"
}
