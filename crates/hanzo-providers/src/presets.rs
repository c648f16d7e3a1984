//! What is known of common vendors, as data: `presets/*.toml`. A new vendor is a new file, or an entry of the settings.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hanzo_protocol::usage::Price;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ProviderConfig;

/// A vendor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// What to call a provider made of it.
    pub name: String,
    /// The vendor's own name.
    pub title: String,
    /// Other names people use.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The protocol.
    pub kind: String,
    /// Where the API is.
    pub base_url: String,
    /// The environment variables that may hold the key, the usual one first. None for servers that want no key.
    #[serde(default)]
    pub api_key_env: Vec<String>,
    /// For servers people run themselves: the port to look at on this machine.
    #[serde(default)]
    pub local_port: Option<u16>,
    /// Where a key is had.
    #[serde(default)]
    pub keys_url: Option<String>,
    /// How long the vendor may be silent, in seconds, where the usual time is too short.
    #[serde(default)]
    pub idle_timeout_s: Option<u64>,
    /// Headers the vendor likes to see.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The model to begin with.
    #[serde(default)]
    pub default_model: Option<String>,
    /// Models of which something is known. Others can be used too.
    #[serde(default)]
    pub models: Vec<PresetModel>,
    /// What the vendor does differently: the options of [`Quirks`](crate::quirks::Quirks).
    #[serde(default)]
    quirks: toml::Table,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresetModel {
    /// The vendor's name of it.
    pub name: String,
    /// How many tokens it can look at.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// The most tokens it answers with.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// What it costs.
    #[serde(default)]
    pub price: Option<Price>,
}

impl Preset {
    /// The quirks, as the `extra` options of a provider.
    pub fn extra(&self) -> Map<String, Value> {
        match serde_json::to_value(&self.quirks) {
            Ok(Value::Object(options)) => options,
            _ => Map::new(),
        }
    }

    /// A provider made of the preset and nothing else.
    pub fn config(&self) -> ProviderConfig {
        ProviderConfig::new(&self.name, &self.kind).with_preset(self)
    }

    /// What is known of a model.
    pub fn model(&self, name: &str) -> Option<&PresetModel> {
        self.models.iter().find(|model| model.name == name)
    }

    /// Whether it is a server people run themselves.
    pub fn is_local(&self) -> bool {
        self.local_port.is_some()
    }
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../presets/", $name, ".toml")))),+]
    };
}

const FILES: &[(&str, &str)] = files![
    "anthropic",
    "cerebras",
    "deepseek",
    "fireworks",
    "gemini",
    "groq",
    "hanzo",
    "llamacpp",
    "lmstudio",
    "mimo",
    "mistral",
    "moonshot",
    "ollama",
    "openai",
    "openrouter",
    "qwen",
    "together",
    "vllm",
    "xai",
    "zai",
];

static PRESETS: LazyLock<Vec<Preset>> =
    LazyLock::new(|| FILES.iter().map(|(name, text)| read(name, text)).collect());

fn read(name: &str, text: &str) -> Preset {
    toml::from_str(text)
        .unwrap_or_else(|error| panic!("presets/{name}.toml, which the tests read, is wrong: {error}"))
}

/// All vendors, by name.
pub fn all() -> &'static [Preset] {
    &PRESETS
}

/// The vendor of that name or alias.
pub fn find(name: &str) -> Option<&'static Preset> {
    all().iter().find(|preset| preset.name == name || preset.aliases.iter().any(|alias| alias == name))
}
