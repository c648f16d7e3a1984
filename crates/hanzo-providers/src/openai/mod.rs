//! The kind `openai`: streaming chat completions, as OpenAI speaks them and everybody else almost does.

mod calls;
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
pub const KIND: &str = "openai";

/// A client of an OpenAI-compatible endpoint.
pub struct OpenAi {
    config: ProviderConfig,
    name: Arc<str>,
    quirks: QuirkBook,
    endpoint: Arc<Endpoint>,
}

impl OpenAi {
    /// A client for `config`, whose `extra` options are [`Quirks`](crate::quirks::Quirks).
    pub fn new(config: ProviderConfig) -> Result<Self, ProviderError> {
        let quirks = QuirkBook::new(config.extra.clone())
            .map_err(|reason| ProviderError::Option { provider: config.name.clone(), reason })?;
        let usual = Conventions {
            base_url: "https://api.openai.com/v1",
            path: quirks.base().path.as_deref().unwrap_or("/chat/completions"),
            auth: quirks.base().auth.unwrap_or(Auth::Bearer),
            headers: &[],
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

impl ApiClient for OpenAi {
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
