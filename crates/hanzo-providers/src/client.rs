//! What clients of all kinds that speak HTTP have in common: an endpoint, quirks, retries. A kind says how a request is
//! written and an answer read, and nothing else.

use std::sync::Arc;

use hanzo_protocol::BoxStream;
use hanzo_protocol::message::{ModelRequest, StreamEvent};
use hanzo_protocol::roles::ApiClient;

use crate::exchange::{self, Plan};
use crate::http::{Conventions, Endpoint};
use crate::quirks::{Auth, QuirkBook, Quirks};
use crate::reader::Assembler;
use crate::{ProviderConfig, ProviderError};

/// What one kind does its own way.
pub(crate) struct Dialect {
    /// Where its API usually is.
    pub(crate) base_url: &'static str,
    /// The path of a request, beneath that.
    pub(crate) path: &'static str,
    /// How a credential is sent.
    pub(crate) auth: Auth,
    /// The headers of every request.
    pub(crate) headers: fn(&Quirks) -> Vec<(&'static str, String)>,
    /// Writes a request.
    pub(crate) body: fn(&ModelRequest, &Quirks) -> Vec<u8>,
    /// Reads an answer.
    pub(crate) assembler: fn() -> Box<dyn Assembler>,
}

/// A client of an endpoint that speaks HTTP.
pub struct Client {
    config: ProviderConfig,
    name: Arc<str>,
    quirks: QuirkBook,
    endpoint: Arc<Endpoint>,
    dialect: &'static Dialect,
}

impl Client {
    /// A client for `config`, whose `extra` options are [`Quirks`].
    pub(crate) fn new(config: ProviderConfig, dialect: &'static Dialect) -> Result<Self, ProviderError> {
        let quirks = QuirkBook::new(config.extra.clone())
            .map_err(|reason| ProviderError::Option { provider: config.name.clone(), reason })?;
        let usual = Conventions {
            base_url: dialect.base_url,
            path: quirks.base().path.as_deref().unwrap_or(dialect.path),
            auth: quirks.base().auth.unwrap_or(dialect.auth),
            headers: &(dialect.headers)(quirks.base()),
        };
        let endpoint = Arc::new(Endpoint::new(&config, &usual)?);
        Ok(Self { name: config.name.as_str().into(), config, quirks, endpoint, dialect })
    }

    /// The body of the request, exactly as it is sent.
    pub fn body(&self, request: &ModelRequest) -> Vec<u8> {
        (self.dialect.body)(request, &self.quirks.of(&request.model))
    }
}

impl ApiClient for Client {
    fn name(&self) -> &str {
        &self.name
    }

    fn send_message(&self, request: &ModelRequest) -> BoxStream<'static, StreamEvent> {
        exchange::stream(Plan {
            provider: Arc::clone(&self.name),
            model: request.model.clone(),
            endpoint: Arc::clone(&self.endpoint),
            body: self.body(request).into(),
            assembler: self.dialect.assembler,
            timeouts: self.config.timeouts,
            retry: self.config.retry,
            observer: self.config.observer.clone(),
        })
    }
}
