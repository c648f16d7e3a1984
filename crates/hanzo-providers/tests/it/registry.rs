//! Kinds, configuration, credentials.

use std::sync::Arc;

use futures_util::stream;
use hanzo_protocol::BoxStream;
use hanzo_protocol::message::{ModelRequest, StopReason, StreamEvent};
use hanzo_protocol::roles::ApiClient;
use hanzo_protocol::usage::Usage;
use hanzo_providers::{ApiKey, ProviderConfig, ProviderError, Registry};
use hanzo_testkit::scripted::{Api, Reply, Server};

use crate::support::{KEY, answer, ask, build, client, config, request};

struct Parrot;

impl ApiClient for Parrot {
    fn name(&self) -> &'static str {
        "parrot"
    }

    fn send_message(&self, _: &ModelRequest) -> BoxStream<'static, StreamEvent> {
        let stop = StreamEvent::MessageStop { reason: StopReason::EndTurn, usage: Usage::default() };
        Box::pin(stream::iter([StreamEvent::ContentDelta { text: "hello?".into() }, stop]))
    }
}

#[tokio::test]
async fn anybody_can_register_a_kind() {
    let mut registry = Registry::standard();
    registry.register("parrot", |_| Ok(Arc::new(Parrot)));
    assert_eq!(registry.kinds().collect::<Vec<_>>(), ["anthropic", "openai", "parrot", "replay"]);
    let parrot = registry.build(ProviderConfig::new("p", "parrot")).unwrap();
    assert_eq!(answer(&ask(&*parrot, &request()).await).text, "hello?");
}

#[test]
fn an_unknown_kind_names_the_known_ones() {
    let error = Registry::standard().build(ProviderConfig::new("p", "opnai")).err().unwrap();
    assert!(matches!(error, ProviderError::UnknownKind { .. }));
    let text = error.to_string();
    assert!(text.contains("`opnai`") && text.contains("hint: ") && text.contains("`openai`"), "{text}");
}

#[test]
fn options_that_mean_nothing_are_refused() {
    let config = ProviderConfig::new("p", "openai").with_extra("temprature", false);
    let text = Registry::standard().build(config).err().unwrap().to_string();
    assert!(text.contains("temprature") && text.contains("hint: "), "{text}");
}

#[test]
fn a_key_no_header_can_hold_is_refused_and_not_shown() {
    for key in ["two\nlines-secret", "caf\u{7}-secret"] {
        let config = ProviderConfig::new("p", "openai").with_base_url("http://127.0.0.1:1").with_api_key(key);
        let text = Registry::standard().build(config).err().unwrap().to_string();
        assert!(text.contains("api_key") && !text.contains("secret"), "{text}");
    }
}

#[test]
fn a_configuration_can_be_printed() {
    let mut config = ProviderConfig::new("p", "openai")
        .with_base_url("https://me:canary-password@host/v1")
        .with_api_key(KEY)
        .with_extra("some_token", "canary-option");
    config.headers.push(("x-token".into(), ApiKey::new("canary-header")));
    assert!(!format!("{config:?} {config:#?}").contains("canary"));
}

#[tokio::test]
async fn the_credential_goes_where_the_kind_wants_it() {
    let server = Server::start([Reply::text("a"), Reply::text("b"), Reply::text("c")]);
    ask(&*client(&server, Api::OpenAi), &request()).await;
    ask(&*client(&server, Api::Anthropic), &request()).await;
    let mut other = config(&server, Api::OpenAi).with_extra("auth", "api-key");
    other.headers.push(("X-Team".into(), ApiKey::new("blue")));
    ask(&*build(other), &request()).await;
    let sent = server.requests();
    assert_eq!(sent[0].path, "/v1/chat/completions");
    assert_eq!(sent[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(sent[1].path, "/v1/messages");
    assert_eq!(
        (sent[1].header("x-api-key"), sent[1].header("anthropic-version")),
        (Some(KEY), Some("2023-06-01"))
    );
    assert_eq!(sent[1].header("authorization"), None);
    assert_eq!((sent[2].header("api-key"), sent[2].header("x-team")), (Some(KEY), Some("blue")));
}

#[tokio::test]
async fn without_a_credential_none_is_sent() {
    let server = Server::start([Reply::text("a")]);
    let mut config = config(&server, Api::OpenAi);
    config.api_key = None;
    ask(&*build(config), &request()).await;
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn a_redirection_is_not_followed_with_the_credential() {
    let elsewhere = Server::start([Reply::text("caught")]);
    let location = format!("{}/chat/completions", elsewhere.base_url());
    let server = Server::start([Reply::status(307).header("location", location)]);
    let got = answer(&ask(&*client(&server, Api::OpenAi), &request()).await);
    assert!(got.error.unwrap().message.contains("base_url"));
    assert!(elsewhere.requests().is_empty());
}
