//! The models of a thread: what the settings list, then what the environment has keys for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hanzo_config::{LoadedConfig, ModelError, ModelRef, Provider, first_usable_model, resolve_model};
use hanzo_engine::parts::{Model, ModelInfo, Models, Retry, RetryListener};
use hanzo_protocol::BoxStream;
use hanzo_protocol::engine::{EngineError, EngineErrorKind};
use hanzo_protocol::message::{ApiError, ApiErrorKind, ModelRequest, StreamEvent};
use hanzo_protocol::roles::ApiClient;
use hanzo_providers::presets::{self, Preset};
use hanzo_providers::{ApiKey, ProviderConfig, Registry, RetryNotice, RetryObserver};
use serde_json::{Map, json};

use crate::exit::{Exit, Failure};

/// Puts something between the engine and a model: a recorder, or what begins while a model thinks.
pub type Wrap = Arc<dyn Fn(Arc<dyn ApiClient>) -> Arc<dyn ApiClient> + Send + Sync>;

/// Where failures are put whose exit code an engine error cannot carry.
pub type Failures = Arc<Mutex<Option<Failure>>>;

/// Whether there has to be a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelNeed {
    /// A thread without one is not begun.
    #[default]
    Required,
    /// A thread may begin without one; whoever asks it is told what is missing.
    WhenAsked,
}

/// What to do without a model.
pub const NO_MODEL: &str = "no model is configured, and the environment has no key of a vendor we know\n\nhint: one of these\n  - set the key of a vendor, such as `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, and start again\n  - start a model server on this machine, such as Ollama, and run `hanzo-dev setup`\n  - run `hanzo-dev demo`, which needs no model and shows what happens";

/// The models that can be asked; a recording, when there is one, is asked instead of any of them.
pub struct Catalogue {
    config: Arc<LoadedConfig>,
    providers: Vec<Provider>,
    registry: Registry,
    wrap: Wrap,
    failures: Failures,
    instead: Option<Arc<dyn ApiClient>>,
    need: ModelNeed,
    clients: Mutex<HashMap<String, Arc<dyn ApiClient>>>,
    /// Who is told when a request is sent again, once somebody wants to know.
    listener: Arc<Mutex<Option<RetryListener>>>,
}

impl Catalogue {
    /// The models of `config`.
    pub fn new(
        config: Arc<LoadedConfig>,
        environment: &hanzo_config::Environment,
        wrap: Wrap,
        failures: Failures,
        instead: Option<Arc<dyn ApiClient>>,
    ) -> Self {
        let mut providers = config.settings().providers.clone();
        for preset in presets::all() {
            let named = providers.iter().any(|provider| provider.name == preset.name);
            let key = preset.api_key_env.iter().find(|name| environment.get(name).is_some());
            if let (false, Some(key)) = (named, key) {
                providers.extend(implied(preset, key));
            }
        }
        Self {
            config,
            providers,
            registry: Registry::standard(),
            wrap,
            failures,
            instead,
            need: ModelNeed::Required,
            clients: Mutex::default(),
            listener: Arc::default(),
        }
    }

    /// The same models, needed so.
    #[must_use]
    pub fn needed(mut self, need: ModelNeed) -> Self {
        self.need = need;
        self
    }

    fn key(&self, provider: &Provider) -> Result<Option<ApiKey>, Failure> {
        let failed = |error| crate::commands::settings::failure(Exit::Config, &error);
        let key = self.config.provider_key(provider).map_err(failed)?;
        if let Some(key) = key {
            return Ok(Some(ApiKey::new(key.expose())));
        }
        // A provider that is named like a vendor we know and says nothing of a key means that vendor's.
        let preset = presets::find(&provider.name).filter(|_| provider.api_key_env.is_none());
        for name in preset.map(|preset| preset.api_key_env.as_slice()).unwrap_or_default() {
            let mut named = provider.clone();
            named.api_key_env = Some(name.clone());
            if let Some(key) = self.config.provider_key(&named).map_err(failed)? {
                return Ok(Some(ApiKey::new(key.expose())));
            }
        }
        Ok(None)
    }

    fn needs_key(provider: &Provider) -> Option<String> {
        if let Some(name) = &provider.api_key_env {
            return Some(name.clone());
        }
        // An address of one's own, or headers, are another way of being let in.
        if provider.kind == "replay" || provider.base_url.is_some() || !provider.headers.is_empty() {
            return None;
        }
        presets::find(&provider.name).and_then(|preset| preset.api_key_env.first().cloned())
    }

    fn is_usable(&self, provider: &Provider) -> bool {
        Self::needs_key(provider).is_none() || self.key(provider).is_ok_and(|key| key.is_some())
    }

    fn find<'c>(&'c self, reference: Option<&'c str>) -> Result<ModelRef<'c>, Failure> {
        let reference = reference.or(self.config.settings().model.as_deref());
        let Some(reference) = reference else {
            return first_usable_model(&self.providers, |provider| self.is_usable(provider)).ok_or_else(
                || {
                    let Some(provider) = self.providers.first() else {
                        return Failure::message(Exit::Auth, NO_MODEL);
                    };
                    Self::no_key(provider)
                },
            );
        };
        resolve_model(&self.providers, reference).or_else(|error| self.unlisted(reference, error))
    }

    /// A vendor we know serves more models than its preset lists, so `vendor/model` is taken as it is.
    fn unlisted<'c>(&'c self, reference: &'c str, error: ModelError) -> Result<ModelRef<'c>, Failure> {
        if let Some((name, model)) = reference.split_once('/')
            && let Some(provider) = self.providers.iter().find(|provider| provider.name == name)
            && !self.config.settings().providers.iter().any(|configured| configured.name == name)
        {
            return Ok(ModelRef { provider, model });
        }
        let wanted = reference.split('/').next().unwrap_or(reference);
        let untrusted = |key: &str| key.starts_with("providers");
        if self.config.disabled().iter().any(|disabled| untrusted(&disabled.key)) {
            let text = format!(
                "{error}\n\nhint: this workspace lists providers, which do not count before you trust it; `hanzo-dev config explain providers` shows them"
            );
            return Err(Failure::message(Exit::Untrusted, text));
        }
        if let (ModelError::NoProviders | ModelError::Unknown { suggestion: None, .. }, Some(preset)) =
            (&error, presets::find(wanted))
            && let Some(name) = preset.api_key_env.first()
        {
            let text =
                format!("there is no key for `{wanted}`\n\nhint: set `{name}`, and run `hanzo-dev setup`");
            return Err(Failure::message(Exit::Auth, text));
        }
        if matches!(error, ModelError::NoProviders) {
            return Err(Failure::message(Exit::Auth, NO_MODEL));
        }
        Err(Failure::message(Exit::BadInput, error))
    }

    fn no_key(provider: &Provider) -> Failure {
        let what = match Self::needs_key(provider) {
            Some(name) => format!("set `{name}`"),
            None => "give it a model".to_owned(),
        };
        let text = format!(
            "provider `{}` cannot be used: it has no credential\n\nhint: {what}; `hanzo-dev setup` looks for others, `hanzo-dev demo` needs no model",
            provider.name
        );
        Failure::message(Exit::Auth, text)
    }

    fn client(&self, provider: &Provider) -> Result<Arc<dyn ApiClient>, Failure> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&provider.name) {
            return Ok(Arc::clone(client));
        }
        let key = self.key(provider)?;
        if key.is_none() && Self::needs_key(provider).is_some() {
            return Err(Self::no_key(provider));
        }
        let mut config = ProviderConfig::new(&provider.name, &provider.kind);
        config.base_url = provider.base_url.as_ref().map(|url| url.expanded().to_owned());
        config.api_key = key;
        config.headers = provider
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), ApiKey::new(value.expose())))
            .collect();
        config.extra = provider.extra.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        config.observer = Some(self.observer());
        if let Some(preset) = presets::find(&provider.name).filter(|preset| preset.kind == provider.kind) {
            config = config.with_preset(preset);
        }
        let client = self.registry.build(config).map_err(|error| Failure::message(Exit::Config, error))?;
        let client = (self.wrap)(client);
        clients.insert(provider.name.clone(), Arc::clone(&client));
        Ok(client)
    }

    /// Passes on to the listener of the moment when a client sends a request again.
    fn observer(&self) -> Arc<dyn RetryObserver> {
        let listener = Arc::clone(&self.listener);
        Arc::new(move |notice: &RetryNotice<'_>| {
            let listener = listener.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(listener) = listener {
                listener(&Retry {
                    provider: notice.provider,
                    model: notice.model,
                    // The first request was an attempt as well.
                    attempt: notice.retry + 1,
                    attempts: notice.max_retries + 1,
                    delay: notice.delay,
                    error: notice.error,
                });
            }
        })
    }

    fn model(&self, reference: Option<&str>) -> Result<Model, Failure> {
        if let Some(recording) = &self.instead {
            return Ok(Model {
                reference: format!("{}/recording", recording.name()),
                name: "recording".to_owned(),
                client: (self.wrap)(Arc::clone(recording)),
                context_window: None,
                price: None,
                max_tokens: None,
            });
        }
        let found = self.find(reference)?;
        let known = presets::find(&found.provider.name).and_then(|preset| preset.model(found.model));
        Ok(Model {
            reference: found.to_string(),
            name: found.model.to_owned(),
            client: self.client(found.provider)?,
            context_window: found.provider.context_window.or(known.and_then(|model| model.context_window)),
            price: found.provider.price.or(known.and_then(|model| model.price)),
            max_tokens: known.and_then(|model| model.max_tokens),
        })
    }
}

/// The provider a preset stands for.
fn implied(preset: &Preset, key: &str) -> Option<Provider> {
    let mut entry = Map::new();
    entry.insert("name".to_owned(), json!(preset.name));
    entry.insert("kind".to_owned(), json!(preset.kind));
    entry.insert("api_key_env".to_owned(), json!(key));
    entry.insert(
        "models".to_owned(),
        json!(preset.models.iter().map(|model| &model.name).collect::<Vec<_>>()),
    );
    if let Some(model) = &preset.default_model {
        entry.insert("default".to_owned(), json!(model));
    }
    serde_json::from_value(entry.into()).ok()
}

/// What stands for a model where there is none.
fn absent(why: String) -> Model {
    Model {
        reference: "none".to_owned(),
        name: "none".to_owned(),
        client: Arc::new(Absent(why)),
        context_window: None,
        price: None,
        max_tokens: None,
    }
}

struct Absent(String);

impl ApiClient for Absent {
    fn name(&self) -> &'static str {
        "none"
    }

    fn send_message(&self, _: &ModelRequest) -> BoxStream<'static, StreamEvent> {
        let error = ApiError {
            kind: ApiErrorKind::BadRequest,
            message: self.0.clone(),
            status: None,
            retry_after_ms: None,
        };
        Box::pin(futures_util::stream::iter([StreamEvent::Error(error)]))
    }
}

impl Models for Catalogue {
    fn resolve(&self, reference: Option<&str>) -> Result<Model, EngineError> {
        let found = match (self.model(reference), self.need) {
            (Err(failure), ModelNeed::WhenAsked) => Ok(absent(failure.to_string())),
            (found, _) => found,
        };
        found.map_err(|failure| {
            let error = EngineError { kind: EngineErrorKind::NotFound, message: failure.to_string() };
            *self.failures.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
            error
        })
    }

    fn on_retry(&self, listener: RetryListener) {
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    fn list(&self) -> Vec<ModelInfo> {
        let default = self.find(None).ok().map(|found| found.to_string());
        let mut all = Vec::new();
        for provider in self.providers.iter().filter(|provider| self.is_usable(provider)) {
            for name in provider.model_names() {
                let reference = format!("{}/{name}", provider.name);
                let known = presets::find(&provider.name).and_then(|preset| preset.model(name));
                all.push(ModelInfo {
                    default: default.as_ref() == Some(&reference),
                    reference,
                    context_window: provider.context_window.or(known.and_then(|model| model.context_window)),
                    price: provider.price.or(known.and_then(|model| model.price)),
                });
            }
        }
        all
    }
}
