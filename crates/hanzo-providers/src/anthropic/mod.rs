//! The kind `anthropic`: the streaming messages API, with the vendor's own prompt cache.

mod request;
mod stream;

use std::sync::Arc;

use hanzo_protocol::BoxStream;
use hanzo_protocol::message::{ModelRequest, StreamEvent};
use hanzo_protocol::roles::ApiClient;

use crate::exchange::{self, Plan};
use crate::http::{Conventions, Endpoint};
use crate::quirks::{Auth, QuirkBook};
use crate::reader::Assembler;
use crate::{ProviderConfig, ProviderError};

/// The name of the kind.
pub const KIND: &str = "anthropic";
/// The version of the API the code was written for.
const VERSION: &str = "2023-06-01";

/// A client of an endpoint that speaks Anthropic's messages API.
pub struct Anthropic {
    config: ProviderConfig,
    name: Arc<str>,
    quirks: QuirkBook,
    endpoint: Arc<Endpoint>,
}

impl Anthropic {
    /// A client for `config`, whose `extra` options are [`Quirks`](crate::quirks::Quirks).
    pub fn new(config: ProviderConfig) -> Result<Self, ProviderError> {
        let quirks = QuirkBook::new(config.extra.clone())
            .map_err(|reason| ProviderError::Option { provider: config.name.clone(), reason })?;
        let mut headers = vec![("anthropic-version", VERSION.to_owned())];
        if !quirks.base().betas.is_empty() {
            headers.push(("anthropic-beta", quirks.base().betas.join(",")));
        }
        let usual = Conventions {
            base_url: "https://api.anthropic.com",
            path: quirks.base().path.as_deref().unwrap_or("/v1/messages"),
            auth: quirks.base().auth.unwrap_or(Auth::XApiKey),
            headers: &headers,
        };
        let endpoint = Arc::new(Endpoint::new(&config, &usual)?);
        Ok(Self { name: config.name.as_str().into(), config, quirks, endpoint })
    }

    /// The body of the request, exactly as it is sent.
    pub fn body(&self, request: &ModelRequest) -> Vec<u8> {
        request::body(request, &self.quirks.of(&request.model))
    }
}

/// What reads an answer of this kind.
pub(crate) fn assembler() -> Box<dyn Assembler> {
    Box::new(stream::Answer::default())
}

impl ApiClient for Anthropic {
    fn name(&self) -> &str {
        &self.name
    }

    fn send_message(&self, request: &ModelRequest) -> BoxStream<'static, StreamEvent> {
        exchange::stream(Plan {
            provider: Arc::clone(&self.name),
            model: request.model.clone(),
            endpoint: Arc::clone(&self.endpoint),
            body: self.body(request).into(),
            assembler,
            timeouts: self.config.timeouts,
            retry: self.config.retry,
            observer: self.config.observer.clone(),
        })
    }
}
