//! The presets are data: all of it is read here, so that a mistake fails a test and not a user.

use std::collections::HashSet;

use hanzo_providers::{ProviderConfig, Registry, presets};
use hanzo_testkit::scripted::{Api, Reply, Server};

use crate::support::{KEY, answer, ask, request};

#[test]
fn every_preset_is_read_and_built() {
    let registry = Registry::standard();
    for preset in presets::all() {
        let client = registry.build(preset.config().with_api_key(KEY));
        assert_eq!(client.unwrap_or_else(|error| panic!("{}: {error}", preset.name)).name(), preset.name);
        assert!(!preset.title.is_empty());
        if let Some(default) = &preset.default_model {
            assert!(preset.model(default).is_some(), "{}: nothing is said of {default}", preset.name);
        }
        if let Some(port) = preset.local_port {
            assert_eq!(preset.base_url, format!("http://127.0.0.1:{port}/v1"));
        } else {
            assert!(preset.base_url.starts_with("https://"), "{}", preset.name);
            assert!(!preset.api_key_env.is_empty(), "{}: where is the key?", preset.name);
        }
        for variable in &preset.api_key_env {
            assert!(
                variable.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'),
                "{variable}"
            );
        }
        for model in &preset.models {
            assert!(
                model.context_window.is_none_or(|window| window >= 4096),
                "{}/{}",
                preset.name,
                model.name
            );
            let price = model.price.unwrap_or_default();
            assert!(price.input <= price.output, "{}/{}", preset.name, model.name);
        }
    }
}

#[test]
fn files_and_table_are_the_same_and_names_are_unique() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/presets");
    let mut files: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort();
    let names: Vec<&str> = presets::all().iter().map(|preset| preset.name.as_str()).collect();
    assert_eq!(files, names);
    let mut known = HashSet::new();
    for preset in presets::all() {
        for name in preset.aliases.iter().chain([&preset.name]) {
            assert!(known.insert(name.as_str()), "two presets are called {name}");
            assert_eq!(presets::find(name), Some(preset));
        }
    }
    assert_eq!(presets::find("nobody"), None);
    for wanted in
        ["openai", "anthropic", "deepseek", "mimo", "ollama", "openrouter", "kimi", "glm", "dashscope"]
    {
        assert!(presets::find(wanted).is_some(), "{wanted}");
    }
}

#[tokio::test]
async fn what_the_user_sets_wins_over_the_preset() {
    let server = Server::start([Reply::text("a")]);
    let preset = presets::find("deepseek").unwrap();
    let config = ProviderConfig::new("mine", "openai")
        .with_base_url(server.base_url())
        .with_extra("max_tokens", 5)
        .with_preset(preset);
    assert_eq!(config.base_url.as_deref(), Some(&*server.base_url()));
    assert_eq!(config.extra["reasoning_echo"], "reasoning_content", "the rest is the preset's");
    let client = Registry::standard().build(config).unwrap();
    assert_eq!(answer(&ask(&*client, &request()).await).error, None);
    let sent = server.requests()[0].json();
    assert_eq!((sent["max_tokens"].as_u64(), server.requests()[0].api()), (Some(5), Some(Api::OpenAi)));
}

#[tokio::test]
async fn a_vendor_nobody_heard_of_is_configuration_alone() {
    let server = Server::start([Reply::text("hello from nowhere")]);
    let config = ProviderConfig::new("nowhere", "openai").with_base_url(server.base_url()).with_api_key(KEY);
    let client = Registry::standard().build(config).unwrap();
    assert_eq!(answer(&ask(&*client, &request()).await).text, "hello from nowhere");
}

#[test]
fn openai_models_get_their_own_quirks() {
    let preset = presets::find("openai").unwrap();
    let client = hanzo_providers::openai::client(preset.config().with_api_key(KEY)).unwrap();
    let mut request = request();
    request.temperature = Some(0.2);
    let body = |request: &hanzo_protocol::message::ModelRequest| -> serde_json::Value {
        serde_json::from_slice(&client.body(request)).unwrap()
    };
    request.model = "gpt-4.1".into();
    assert_eq!(body(&request)["temperature"], 0.2);
    request.model = "gpt-5".into();
    assert_eq!(body(&request).get("temperature"), None);
    assert_eq!(body(&request)["messages"][0]["role"], "developer");
}
