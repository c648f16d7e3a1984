//! Which code serves which kind of provider. There is no list of vendors in here: a vendor is an entry of the settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use hanzo_protocol::roles::ApiClient;

use crate::{ProviderConfig, ProviderError, anthropic, cassette, openai};

/// Makes a client of one kind.
pub type Factory =
    Box<dyn Fn(ProviderConfig) -> Result<Arc<dyn ApiClient>, ProviderError> + Send + Sync + 'static>;

/// The kinds of provider, by name.
///
/// ```
/// use hanzo_providers::{ProviderConfig, Registry};
///
/// let registry = Registry::standard();
/// let config = ProviderConfig::new("local", "openai").with_base_url("http://127.0.0.1:8080/v1");
/// let client = registry.build(config)?;
/// assert_eq!(client.name(), "local");
/// # Ok::<(), hanzo_providers::ProviderError>(())
/// ```
#[derive(Default)]
pub struct Registry {
    factories: BTreeMap<String, Factory>,
}

impl Registry {
    /// A registry without any kind.
    pub fn new() -> Self {
        Self::default()
    }

    /// A registry with the built-in kinds: `openai`, `anthropic` and `replay`.
    pub fn standard() -> Self {
        let mut registry = Self::new();
        registry.register(openai::KIND, |config| Ok(Arc::new(openai::client(config)?)));
        registry.register(anthropic::KIND, |config| Ok(Arc::new(anthropic::client(config)?)));
        registry
            .register(cassette::REPLAY_KIND, |config| Ok(Arc::new(cassette::Replay::from_config(&config)?)));
        registry
    }

    /// Adds a kind, or replaces one.
    pub fn register(
        &mut self,
        kind: impl Into<String>,
        factory: impl Fn(ProviderConfig) -> Result<Arc<dyn ApiClient>, ProviderError> + Send + Sync + 'static,
    ) {
        self.factories.insert(kind.into(), Box::new(factory));
    }

    /// The names of the kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.factories.keys().map(String::as_str)
    }

    /// Makes the client `config` describes. Nothing is sent.
    pub fn build(&self, config: ProviderConfig) -> Result<Arc<dyn ApiClient>, ProviderError> {
        match self.factories.get(&config.kind) {
            Some(factory) => factory(config),
            None => Err(ProviderError::UnknownKind {
                provider: config.name,
                kind: config.kind,
                known: self.kinds().map(|kind| format!("`{kind}`")).collect(),
            }),
        }
    }
}
