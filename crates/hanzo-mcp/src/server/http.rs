//! The server over HTTP: Streamable HTTP at `/mcp`, WebSockets at `/mcp/ws`. [`router`] is for the daemon to mount; [`serve`] serves
//! it alone.
//!
//! Who may come in is decided here and before anything else: by the name they call us, by the page they come from, by the token.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any_service, get};
use bytes::BytesMut;
use futures_util::{SinkExt as _, StreamExt as _};
use rmcp::ServerHandler;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::direct::Direct;
use super::framing::{Decoder, Frame, Framing, MAX_MESSAGE};

/// Who may come in.
#[derive(Clone, Default)]
pub struct HttpOptions {
    /// Names by which we may be called beside those of this machine's loopback.
    pub hosts: Vec<String>,
    /// Pages that may call us, as `scheme://host:port`, beside those of our own address.
    pub origins: Vec<String>,
    /// What a caller has to show; without it everybody on this machine may come in.
    pub token: Option<String>,
}

impl std::fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let token = self.token.as_ref().map(|_| "***");
        f.debug_struct("HttpOptions")
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .field("token", &token)
            .finish()
    }
}

/// An address that cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// It is open to other machines, and nothing is asked of them.
    #[error(
        "cannot serve {address}: other machines reach it and no token is set\n\nhint: serve 127.0.0.1, or set a token"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// The system refuses.
    #[error("cannot serve {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// Takes the address to serve. Other machines are let in only with a token.
pub async fn bind(address: SocketAddr, options: &HttpOptions) -> Result<TcpListener, HttpError> {
    if !address.ip().is_loopback() && options.token.as_ref().is_none_or(String::is_empty) {
        return Err(HttpError::Open { address });
    }
    TcpListener::bind(address).await.map_err(|source| HttpError::Bind { address, source })
}

/// Serves until `end`.
pub async fn serve<H, F>(
    listener: TcpListener,
    connect: F,
    options: HttpOptions,
    end: CancellationToken,
) -> io::Result<()>
where
    H: ServerHandler + Direct + Clone,
    F: Fn() -> H + Clone + Send + Sync + 'static,
{
    let router = router(connect, options, &end);
    axum::serve(listener, router).with_graceful_shutdown(end.cancelled_owned()).await
}

/// The routes. `connect` makes what a new client talks to.
pub fn router<H, F>(connect: F, options: HttpOptions, end: &CancellationToken) -> Router
where
    H: ServerHandler + Direct + Clone,
    F: Fn() -> H + Clone + Send + Sync + 'static,
{
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(MAX_MESSAGE)
        .with_cancellation_token(end.child_token())
        // Decided by `guard`, for WebSockets as well.
        .disable_allowed_hosts();
    let sessions = Arc::new(LocalSessionManager::default());
    let make = connect.clone();
    let service = StreamableHttpService::new(move || Ok(make()), sessions, config);
    let sockets = get(move |upgrade: WebSocketUpgrade| async move {
        let upgrade = upgrade.protocols(["mcp"]).max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE);
        upgrade.on_upgrade(move |socket| talk(socket, connect()))
    });
    Router::new()
        .route("/mcp", any_service(service))
        .route("/mcp/ws", sockets)
        .layer(middleware::from_fn_with_state(Arc::new(options), guard))
}

async fn guard(State(options): State<Arc<HttpOptions>>, request: Request, next: Next) -> Response {
    match check(&options, request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err((status, text)) => {
            let mut response = (status, text).into_response();
            if status == StatusCode::UNAUTHORIZED {
                response
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
            }
            response
        }
    }
}

/// Whether a caller may come in.
fn check(options: &HttpOptions, headers: &HeaderMap, uri: &Uri) -> Result<(), (StatusCode, &'static str)> {
    let text = |name| headers.get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
    let host = text(header::HOST).or_else(|| uri.authority().map(axum::http::uri::Authority::as_str));
    let host = host.ok_or((StatusCode::MISDIRECTED_REQUEST, "the request names no host"))?;
    let known = is_loopback(host_name(host)) || options.hosts.iter().any(|known| is_same_host(known, host));
    if !known {
        return Err((StatusCode::MISDIRECTED_REQUEST, "this server does not answer to that host name"));
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let own = origin.split_once("://").is_some_and(|(_, from)| from.eq_ignore_ascii_case(host));
        if !own && !options.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            return Err((StatusCode::FORBIDDEN, "pages of that origin may not call this server"));
        }
    }
    if let Some(token) = &options.token {
        let shown = text(header::AUTHORIZATION).and_then(|value| value.split_once(' '));
        let shown =
            shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        if !shown.is_some_and(|shown| is_same_secret(shown, token)) {
            return Err((StatusCode::UNAUTHORIZED, "a bearer token is needed"));
        }
    }
    Ok(())
}

/// A host without its port.
fn host_name(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_same_host(known: &str, host: &str) -> bool {
    known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(host_name(host))
}

/// Compares digests, so that the time it takes says nothing about how much of the secret is right.
fn is_same_secret(shown: &str, secret: &str) -> bool {
    let digest = |text: &str| -> [u8; 32] { Sha256::digest(text.as_bytes()).into() };
    let (shown, secret) = (digest(shown), digest(secret));
    shown.iter().zip(secret).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

/// A client on a WebSocket: one message a frame, otherwise as on a pipe.
async fn talk(socket: WebSocket, handler: impl ServerHandler + Direct + Clone) {
    const BUFFER: usize = 64 * 1024;
    let (mut sink, mut stream) = socket.split();
    let (mut to_server, server_input) = tokio::io::duplex(BUFFER);
    let (server_output, mut from_server) = tokio::io::duplex(BUFFER);
    let incoming = async move {
        while let Some(Ok(message)) = stream.next().await {
            let text = match &message {
                Message::Text(text) => text.as_bytes(),
                Message::Binary(bytes) => bytes,
                Message::Close(_) => break,
                Message::Ping(_) | Message::Pong(_) => continue,
            };
            let mut line = BytesMut::new();
            // A message is one line, however it was written.
            let text: Vec<u8> = text.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect();
            Framing::Lines.encode(&text, &mut line);
            if to_server.write_all(&line).await.is_err() {
                break;
            }
        }
    };
    let outgoing = async move {
        let mut decoder = Decoder::with_limit(usize::MAX);
        while from_server.read_buf(decoder.buffer()).await.is_ok_and(|read| read > 0) {
            while let Some(frame) = decoder.next_frame() {
                let Frame::Message(text) = frame else { continue };
                let Ok(text) = String::from_utf8(text.to_vec()) else { continue };
                if sink.send(Message::Text(text.into())).await.is_err() {
                    return;
                }
            }
        }
        let _ = sink.close().await;
    };
    let serving = super::pipe::serve(handler, server_input, server_output);
    tokio::join!(incoming, outgoing, serving);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knock(options: &HttpOptions, headers: &[(&'static str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        check(options, &map, &Uri::from_static("/mcp")).map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn only_known_hosts_and_origins_come_in() {
        let options = HttpOptions {
            hosts: vec!["box.example".into()],
            origins: vec!["https://app.example".into()],
            token: None,
        };
        for (headers, expected) in [
            (&[("host", "localhost:80")][..], 200),
            (&[("host", "127.0.0.1:3000")], 200),
            (&[("host", "[::1]:3000")], 200),
            (&[("host", "box.example:3000")], 200),
            (&[("host", "evil.example")], 421),
            (&[("host", "localhost.evil.example:80")], 421),
            (&[], 421),
            (&[("host", "localhost:80"), ("origin", "http://localhost:80")], 200),
            (&[("host", "localhost:80"), ("origin", "https://app.example")], 200),
            (&[("host", "localhost:80"), ("origin", "http://localhost:81")], 403),
            (&[("host", "localhost:80"), ("origin", "http://evil.example")], 403),
            (&[("host", "localhost:80"), ("origin", "null")], 403),
        ] {
            assert_eq!(knock(&options, headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_token_is_needed_where_one_is_set() {
        let options = HttpOptions { token: Some("s3cret".into()), ..HttpOptions::default() };
        let with = |value| knock(&options, &[("host", "localhost"), ("authorization", value)]);
        assert_eq!(knock(&options, &[("host", "localhost")]), 401);
        assert_eq!(with("Bearer s3cret"), 200);
        assert_eq!(with("bearer s3cret"), 200);
        for wrong in ["Bearer s3cre", "Bearer s3cretX", "Basic s3cret", "s3cret", "Bearer "] {
            assert_eq!(with(wrong), 401, "{wrong}");
        }
        assert!(!format!("{options:?}").contains("s3cret"));
    }

    #[tokio::test]
    async fn other_machines_are_not_let_in_without_a_token() {
        let open: SocketAddr = "0.0.0.0:0".parse().unwrap();
        assert!(matches!(bind(open, &HttpOptions::default()).await, Err(HttpError::Open { .. })));
        let token = HttpOptions { token: Some("t".into()), ..HttpOptions::default() };
        assert!(bind(open, &token).await.is_ok());
        assert!(bind("127.0.0.1:0".parse().unwrap(), &HttpOptions::default()).await.is_ok());
    }
}
