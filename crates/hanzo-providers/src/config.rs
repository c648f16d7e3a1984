//! What a provider is built from: one entry of the settings, with its variables put in and its credential found.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::observe::RetryObserver;
use crate::{ApiKey, presets};

/// One vendor endpoint, ready to be built by a [`Registry`](crate::Registry).
#[derive(Clone)]
pub struct ProviderConfig {
    /// The configured name, such as `deepseek`.
    pub name: String,
    /// The protocol: `openai`, `anthropic`, `replay`, or one somebody registered.
    pub kind: String,
    /// Where the API is; the usual address of the kind when absent.
    pub base_url: Option<String>,
    /// The credential; absent for servers that want none.
    pub api_key: Option<ApiKey>,
    /// Headers sent with every request, beside those of the kind. Their values may be secrets.
    pub headers: Vec<(String, ApiKey)>,
    /// Options of the kind; for `openai` and `anthropic` those of [`Quirks`](crate::quirks::Quirks).
    pub extra: Map<String, Value>,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// How often to try again.
    pub retry: RetryPolicy,
    /// Who is told when a request is tried again.
    pub observer: Option<Arc<dyn RetryObserver>>,
}

impl ProviderConfig {
    /// A provider called `name` that speaks `kind`, with nothing else set.
    pub fn new(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            base_url: None,
            api_key: None,
            headers: Vec::new(),
            extra: Map::new(),
            timeouts: Timeouts::default(),
            retry: RetryPolicy::default(),
            observer: None,
        }
    }

    /// The same with another address.
    #[must_use]
    pub fn with_base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// The same with a credential.
    #[must_use]
    pub fn with_api_key(mut self, key: impl Into<ApiKey>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// The same with an option of the kind.
    #[must_use]
    pub fn with_extra(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(name.into(), value.into());
        self
    }

    /// The same, with everything that is not set taken from `preset`. What is set stays: options are filled in one by
    /// one, so a user may change a single quirk.
    #[must_use]
    pub fn with_preset(mut self, preset: &presets::Preset) -> Self {
        self.base_url = self.base_url.or_else(|| Some(preset.base_url.clone()));
        for (name, value) in preset.extra() {
            self.extra.entry(name).or_insert(value);
        }
        for (name, value) in &preset.headers {
            if !self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                self.headers.push((name.clone(), ApiKey::new(value)));
            }
        }
        if let Some(seconds) = preset.idle_timeout_s
            && self.timeouts.idle == Timeouts::default().idle
        {
            self.timeouts.idle = Duration::from_secs(seconds);
        }
        self
    }
}

impl fmt::Debug for ProviderConfig {
    /// Without the values of options, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("base_url", &self.base_url.as_deref().map(crate::redact::without_userinfo))
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .field("extra", &self.extra.keys().collect::<Vec<_>>())
            .field("timeouts", &self.timeouts)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection, name lookup and TLS included.
    pub connect: Duration,
    /// For the next piece of an answer. Signs of life that carry nothing (comments, pings) do not count.
    pub idle: Duration,
}

impl Default for Timeouts {
    /// 15 s to connect; 5 minutes of silence, because some models think that long without a word.
    fn default() -> Self {
        Self { connect: Duration::from_secs(15), idle: Duration::from_mins(5) }
    }
}

/// How often to try again, and how long to wait in between. Only failures that may pass are tried again, and only
/// before anything of the answer was passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How many tries follow the first.
    pub max_retries: u32,
    /// The first delay is drawn from zero to this; later ones from twice as much each.
    pub base_ms: u64,
    /// No delay is longer than this, whatever the vendor asks for.
    pub max_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: 5, base_ms: 500, max_ms: 30_000 }
    }
}

impl RetryPolicy {
    /// One try and no more.
    pub const NEVER: Self = Self { max_retries: 0, base_ms: 0, max_ms: 0 };
}
