//! The ways to a server.

mod http;
mod sse;
mod stdio;
mod websocket;

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use futures_util::Sink;
use hanzo_protocol::spawn::{Process, Spawner};
use rmcp::ClientLifecycleMode;
use rmcp::model::{ClientJsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage};
use rmcp::service::{ClientInitializeError, ClientServiceExt as _, RoleClient, RunningService};
use rmcp::transport::IntoTransport;

use super::config::{ServerConfig, TransportConfig};
use super::fault::McpError;
use super::handler::{Handler, Shared};
use super::host::LogSink;
use super::text::clean;

pub(crate) use stdio::{Tail, last_words, reader, writer};
pub(crate) use websocket::{Socket, dial};

/// Takes messages to a server.
type Out = Pin<Box<dyn Sink<ClientJsonRpcMessage, Error = io::Error> + Send>>;
/// Brings messages from a server.
type In = Pin<Box<dyn Stream<Item = ServerJsonRpcMessage> + Send>>;

/// A server that was greeted.
pub(crate) struct Connected {
    pub(crate) service: RunningService<RoleClient, Shared>,
    /// The program, where the server is one. Dropping it kills all it started.
    pub(crate) process: Option<Box<dyn Process>>,
    /// The end of what it wrote to standard error.
    pub(crate) tail: Option<Arc<Tail>>,
}

/// What connections are made with.
pub(crate) struct Way<'a> {
    pub(crate) config: &'a ServerConfig,
    pub(crate) spawner: &'a Arc<dyn Spawner>,
    pub(crate) handler: &'a Arc<Handler>,
    pub(crate) log: Option<&'a Arc<dyn LogSink>>,
}

/// How a server is greeted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Greeting {
    /// With the newest protocol, and the older handshake when that is refused.
    Newest,
    /// With the older handshake alone: some servers end when they hear something else first.
    Older,
}

impl From<Greeting> for ClientLifecycleMode {
    fn from(greeting: Greeting) -> Self {
        match greeting {
            Greeting::Newest => Self::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            Greeting::Older => Self::Initialize,
        }
    }
}

/// Starts a server or reaches it, and greets it.
pub(crate) async fn connect(way: &Way<'_>) -> Result<Connected, McpError> {
    way.config.check()?;
    match attempt(way, Greeting::Newest).await {
        Err(error @ McpError::Connect { .. }) => match attempt(way, Greeting::Older).await {
            Ok(connected) => Ok(connected),
            // The second try says the same, or less.
            Err(_) => Err(error),
        },
        other => other,
    }
}

async fn attempt(way: &Way<'_>, greeting: Greeting) -> Result<Connected, McpError> {
    match &way.config.transport {
        TransportConfig::Stdio(config) => stdio::connect(way, config, greeting).await,
        TransportConfig::Http(config) => {
            let transport = http::transport(way, config)?;
            way.greet(transport, greeting).await.map(remote).map_err(|error| way.fault(&error))
        }
        TransportConfig::Sse(config) => {
            let transport = http::transport(way, config)?;
            match way.greet(transport, greeting).await {
                Ok(service) => Ok(remote(service)),
                Err(error) if error.is_authorization_required() => Err(way.fault(&error)),
                Err(newer) => {
                    let pair = sse::open(way, config).await;
                    let pair = pair.map_err(|older| {
                        way.unreachable(&format!("{older} (and as Streamable HTTP: {})", chain(&newer)))
                    })?;
                    // That transport is older than any other greeting.
                    way.greet(pair, Greeting::Older).await.map(remote).map_err(|error| way.fault(&error))
                }
            }
        }
        TransportConfig::WebSocket(config) => {
            let pair = websocket::open(config, way.config.timeout).await;
            let pair = pair.map_err(|reason| way.unreachable(&reason))?;
            way.greet(pair, greeting).await.map(remote).map_err(|error| way.fault(&error))
        }
    }
}

/// A server that is no program of ours.
fn remote(service: RunningService<RoleClient, Shared>) -> Connected {
    Connected { service, process: None, tail: None }
}

impl Way<'_> {
    async fn greet<T, E, A>(
        &self,
        transport: T,
        greeting: Greeting,
    ) -> Result<RunningService<RoleClient, Shared>, ClientInitializeError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: Error + Send + Sync + 'static,
    {
        Shared(Arc::clone(self.handler)).serve_with_lifecycle(transport, greeting.into()).await
    }

    fn unreachable(&self, reason: &str) -> McpError {
        McpError::Connect { server: self.config.name.clone(), reason: clean(reason, 2_000) }
    }

    fn settings(&self, reason: String) -> McpError {
        McpError::Settings { server: self.config.name.clone(), reason }
    }

    fn fault(&self, error: &ClientInitializeError) -> McpError {
        let server = self.config.name.clone();
        if error.is_authorization_required() || error.auth_challenge().is_some() {
            let reason = error.auth_challenge().unwrap_or("it answered with 401 or 403").to_owned();
            return McpError::Login { server, reason: clean(&reason, 500) };
        }
        self.unreachable(&chain(error))
    }
}

/// An error with what caused it. Addresses may hold keys, so they are left out.
fn chain(error: &dyn Error) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        // Most errors repeat their cause.
        if !said.iter().any(|before| before.contains(&text)) {
            said.push(text);
        }
        next = error.source();
    }
    said.join(": ")
}
