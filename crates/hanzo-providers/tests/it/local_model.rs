//! Against a real model server, when `HANZO_LOCAL_MODEL_URL` names one that speaks OpenAI's protocol: one streamed answer,
//! and one that is broken off. Without the variable there is nothing to test against, and the tests say so.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use hanzo_protocol::message::{Message, ModelRequest, StopReason, StreamEvent};
use hanzo_providers::{ProviderConfig, Registry};
use hanzo_testkit::not_run;

use crate::support::answer;

const VARIABLE: &str = "HANZO_LOCAL_MODEL_URL";

fn client() -> Option<std::sync::Arc<dyn hanzo_protocol::roles::ApiClient>> {
    let Ok(url) = std::env::var(VARIABLE) else {
        not_run("a model server (`cargo xtask test --with-local-model`)");
        return None;
    };
    Some(Registry::standard().build(ProviderConfig::new("local", "openai").with_base_url(url)).unwrap())
}

fn question(text: &str, max_tokens: u64) -> ModelRequest {
    ModelRequest {
        model: std::env::var("HANZO_LOCAL_MODEL").unwrap_or_else(|_| "local".into()),
        messages: vec![Message::system("You answer in one sentence."), Message::user(text)],
        temperature: Some(0.0),
        max_tokens: Some(max_tokens),
        ..ModelRequest::default()
    }
}

#[tokio::test]
async fn a_real_model_answers() {
    let Some(client) = client() else { return };
    let started = Instant::now();
    let mut first = None;
    let mut events = Vec::new();
    let mut stream = client.send_message(&question("What is the capital of France?", 60));
    while let Some(event) = stream.next().await {
        first.get_or_insert_with(|| started.elapsed());
        events.push(event);
    }
    let got = answer(&events);
    println!("first after {first:?}, {} events in {:?}: {}", events.len(), started.elapsed(), got.text);
    assert_eq!(got.error, None);
    assert!(got.text.contains("Paris"), "{}", got.text);
    assert!(events.len() > 3, "it streams");
    let (reason, usage) = got.stop.unwrap();
    assert!(matches!(reason, StopReason::EndTurn | StopReason::MaxTokens));
    assert!(usage.prompt_tokens() > 0 && usage.output_tokens > 0, "{usage:?}");
}

#[tokio::test]
async fn a_real_model_can_be_broken_off() {
    let Some(client) = client() else { return };
    let mut stream = client.send_message(&question("Count from 1 to 1000 in words.", 4000));
    for _ in 0..5 {
        assert!(matches!(stream.next().await, Some(StreamEvent::ContentDelta { .. })));
    }
    drop(stream);
    // A server that went on would keep this one waiting.
    let started = Instant::now();
    let got = answer(&client.send_message(&question("Say hello.", 20)).collect::<Vec<_>>().await);
    assert_eq!(got.error, None);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}
