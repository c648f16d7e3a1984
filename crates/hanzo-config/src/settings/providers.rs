//! `[[providers]]`: vendor endpoints and the models they serve.

use std::fmt;

use hanzo_protocol::usage::Price;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::secret::{MASK, Secret, SecretTemplate, Template, mask_url_password};

/// One vendor endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Provider {
    /// The name model references use. Without `/`.
    pub name: String,
    /// The protocol: `openai`, `anthropic`, `replay`, or one an extension registers.
    #[serde(default = "openai")]
    pub kind: String,
    /// Where the API is. `${VAR}` is expanded. Unset: the usual address of the kind.
    #[serde(default)]
    pub base_url: Option<Template>,
    /// The one model this entry serves. Not together with `models`.
    #[serde(default)]
    pub model: Option<String>,
    /// The models this entry serves. With neither this nor `model`, any `provider/model` is taken as it is.
    #[serde(default)]
    pub models: Vec<String>,
    /// The model meant by the provider's name alone; otherwise the first of `models`.
    #[serde(default)]
    pub default: Option<String>,
    /// The environment variable that holds the key.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// The key itself. Read from the user tier only; `api_key_env` is the better way.
    #[serde(default)]
    pub api_key: Option<Secret>,
    /// Size of the context window in tokens. Unset or 0: no compaction.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// What tokens cost.
    #[serde(default)]
    pub price: Option<Price>,
    /// Options of the kind.
    #[serde(default)]
    pub extra: ProviderOptions,
    /// Headers sent with every request. `${VAR}` is expanded.
    #[serde(default)]
    pub headers: IndexMap<String, SecretTemplate>,
}

fn openai() -> String {
    "openai".to_owned()
}

/// Options of a provider kind. They are free-form; those whose name says "secret" are shown as `***`.
#[derive(Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ProviderOptions(IndexMap<String, Value>);

impl ProviderOptions {
    /// The value of an option.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// All options. The values may be secrets.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    fn masked(&self) -> Value {
        mask(&self.0.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
    }
}

impl fmt::Debug for ProviderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.masked())
    }
}

impl Serialize for ProviderOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.masked().serialize(serializer)
    }
}

/// A free-form value with the secrets masked.
pub(crate) fn mask(value: &Value) -> Value {
    match value {
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| {
                (key.clone(), if names_a_secret(key) { Value::from(MASK) } else { mask(value) })
            })
            .collect(),
        Value::Array(items) => items.iter().map(mask).collect(),
        Value::String(text) => Value::from(mask_url_password(text)),
        other => other.clone(),
    }
}

/// Whether a free-form key looks as if its value were a secret.
pub(crate) fn names_a_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["key", "token", "secret", "password", "authorization", "credential"]
        .iter()
        .any(|word| key.contains(word))
}

impl Provider {
    /// The models this provider lists.
    pub fn model_names(&self) -> impl Iterator<Item = &str> {
        self.model.iter().chain(&self.models).map(String::as_str)
    }

    /// The model meant by the provider's name alone.
    pub fn default_model(&self) -> Option<&str> {
        self.default.as_deref().or_else(|| self.model_names().next())
    }
}
