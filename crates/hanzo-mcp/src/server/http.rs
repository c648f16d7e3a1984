//! The server over HTTP: Streamable HTTP at `/mcp`, WebSockets at `/mcp` and `/mcp/ws`, and at `/api/mcp/servers` what is known about
//! the servers that are served along. [`router`] is for the daemon to mount; [`serve`] serves it alone.
//!
//! Who may come in is decided at the door ([`HttpOptions`]) and before anything else.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, FromRequestParts as _, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use axum::serve::ListenerExt as _;
use bytes::BytesMut;
use futures_util::{SinkExt as _, StreamExt as _};
use rmcp::ServerHandler;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::direct::Direct;
use super::door::{Door, Meter, too_early};
pub use super::door::{HttpOptions, OnRefusal, Reason, Refusal};
use super::framing::{Decoder, Frame, Framing, MAX_MESSAGE};
use super::tls::TlsListener;
pub use super::tls::{Tls, TlsError};
pub use crate::rate::{ParseRateError, Rate};

/// How many refusals of a WebSocket's requests wait to be written before its requests do.
const REFUSALS: usize = 16;

/// What whoever asks for other servers is told where there are none.
const NO_OTHERS: &str = "no other servers are served here\n\nhint: start it with `--with-servers`\n";

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

/// Takes the address to serve. Other machines are let in only with a token, with TLS and without.
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
    let tls = options.tls.clone();
    let door = Arc::new(Door::new(options));
    let routes = routes(connect, Arc::clone(&door), &end);
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    let ended = end.cancelled_owned();
    if let Some(tls) = tls {
        // Through a tap only because that tells who calls.
        let listener = TlsListener::new(listener, tls, door)?.tap_io(|_| {});
        return axum::serve(listener, service).with_graceful_shutdown(ended).await;
    }
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, service).with_graceful_shutdown(ended).await
}

/// The routes. `connect` makes what a new client talks to. Callers are told apart by the `ConnectInfo<SocketAddr>` of their requests;
/// without it all are one.
pub fn router<H, F>(connect: F, options: HttpOptions, end: &CancellationToken) -> Router
where
    H: ServerHandler + Direct + Clone,
    F: Fn() -> H + Clone + Send + Sync + 'static,
{
    routes(connect, Arc::new(Door::new(options)), end)
}

fn routes<H, F>(connect: F, door: Arc<Door>, end: &CancellationToken) -> Router
where
    H: ServerHandler + Direct + Clone,
    F: Fn() -> H + Clone + Send + Sync + 'static,
{
    let config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(MAX_MESSAGE)
        .with_cancellation_token(end.child_token())
        // Decided at the door, for WebSockets as well.
        .disable_allowed_hosts();
    let sessions = Arc::new(LocalSessionManager::default());
    let make = connect.clone();
    let service = StreamableHttpService::new(move || Ok(make()), sessions, config);
    let asked = connect.clone();
    let others = move || {
        let server = asked();
        async move {
            match server.others().await {
                Some(report) => {
                    ([(header::CONTENT_TYPE, "application/json")], report.to_string()).into_response()
                }
                None => (StatusCode::NOT_FOUND, NO_OTHERS).into_response(),
            }
        }
    };
    let guarded = Arc::clone(&door);
    let ends = end.clone();
    let sockets =
        move |request: Request| upgrade(request, connect.clone(), Arc::clone(&guarded), ends.clone());
    let socket_or_http = {
        let sockets = sockets.clone();
        move |request: Request| {
            let (sockets, service) = (sockets.clone(), service.clone());
            async move {
                if wants_socket(request.headers()) {
                    return sockets(request).await;
                }
                let ends = request.method() == Method::DELETE;
                let mut response = service.handle(request).await.map(Body::new);
                if ends && response.status() == StatusCode::ACCEPTED {
                    // A session that is over is over, and not about to be: some clients complain otherwise.
                    *response.status_mut() = StatusCode::NO_CONTENT;
                }
                response
            }
        }
    };
    Router::new()
        .route("/mcp", any(socket_or_http))
        .route("/mcp/ws", any(sockets))
        .route("/api/mcp/servers", get(others))
        .layer(middleware::from_fn_with_state(door, guard))
}

async fn guard(State(door): State<Arc<Door>>, mut request: Request, next: Next) -> Response {
    let caller = caller(&request);
    match door.check(caller, request.headers(), request.uri()) {
        Ok(()) => {
            if let Some(meter) = Meter::new(&door, caller) {
                request.extensions_mut().insert(meter);
            }
            next.run(request).await
        }
        Err(reason) => reason.answer(door.rate()),
    }
}

fn caller(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.ip())
}

fn wants_socket(headers: &HeaderMap) -> bool {
    let wanted = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    wanted.is_some_and(|wanted| wanted.split(',').any(|it| it.trim().eq_ignore_ascii_case("websocket")))
}

async fn upgrade<H, F>(request: Request, connect: F, door: Arc<Door>, end: CancellationToken) -> Response
where
    H: ServerHandler + Direct + Clone,
    F: Fn() -> H + Send + 'static,
{
    let caller = caller(&request);
    let (mut parts, _) = request.into_parts();
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => upgrade,
        Err(refused) => return refused.into_response(),
    };
    let upgrade = upgrade.protocols(["mcp"]).max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE);
    upgrade.on_upgrade(move |socket| async move {
        // The server does not know of it any more, so it ends with it by itself.
        let talk = talk(socket, connect(), &door, caller);
        let _ = end.run_until_cancelled(talk).await;
    })
}

/// A client on a WebSocket: one message a frame, otherwise as on a pipe.
async fn talk(
    socket: WebSocket,
    handler: impl ServerHandler + Direct + Clone,
    door: &Door,
    caller: Option<IpAddr>,
) {
    const BUFFER: usize = 64 * 1024;
    let (mut sink, mut stream) = socket.split();
    let (mut to_server, server_input) = tokio::io::duplex(BUFFER);
    let (server_output, mut from_server) = tokio::io::duplex(BUFFER);
    let (refuse, mut refused) = mpsc::channel::<String>(REFUSALS);
    let incoming = async move {
        while let Some(Ok(message)) = stream.next().await {
            let text = match &message {
                Message::Text(text) => text.as_bytes(),
                Message::Binary(bytes) => bytes,
                Message::Close(_) => break,
                Message::Ping(_) | Message::Pong(_) => continue,
            };
            if let Some(answer) = metered(door, caller, text) {
                if refuse.send(answer).await.is_err() {
                    break;
                }
                continue;
            }
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
        loop {
            tokio::select! {
                read = from_server.read_buf(decoder.buffer()) => {
                    if !read.is_ok_and(|read| read > 0) {
                        break;
                    }
                }
                Some(answer) = refused.recv() => {
                    if sink.send(Message::Text(answer.into())).await.is_err() {
                        return;
                    }
                }
            }
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

/// Counts what a message asks for. The answer to it when that is too much; answers and notifications of clients always pass.
fn metered(door: &Door, caller: Option<IpAddr>, message: &[u8]) -> Option<String> {
    let rate = door.rate()?;
    let message: Value = serde_json::from_slice(message).ok()?;
    let requests = match &message {
        Value::Array(entries) => entries.iter().collect(),
        one => vec![one],
    };
    let requests: Vec<(&Value, &Value)> = requests
        .into_iter()
        .filter(|entry| entry["method"].is_string())
        .filter_map(|entry| Some((entry.get("id")?, entry)))
        .collect();
    let all: usize = requests.iter().map(|(_, request)| weight(request)).sum();
    let wait = (0..all).find_map(|_| door.admit(caller).err())?;
    let error = too_early(rate, wait);
    let answer = |(id, _): &(&Value, &Value)| json!({"jsonrpc": "2.0", "id": id, "error": error});
    let answers: Vec<Value> = requests.iter().map(answer).collect();
    Some(match &message {
        Value::Array(_) => Value::Array(answers).to_string(),
        _ => answers.first()?.to_string(),
    })
}

/// How much a request asks for: several calls are several requests.
fn weight(request: &Value) -> usize {
    let several = (request["method"] == "tools/batch").then(|| request["params"]["calls"].as_array());
    several.flatten().map_or(1, |calls| calls.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::super::door::TOO_MANY;
    use super::*;

    #[tokio::test]
    async fn other_machines_are_not_let_in_without_a_token() {
        let open: SocketAddr = "0.0.0.0:0".parse().unwrap();
        assert!(matches!(bind(open, &HttpOptions::default()).await, Err(HttpError::Open { .. })));
        let token = HttpOptions { token: Some("t".into()), ..HttpOptions::default() };
        assert!(bind(open, &token).await.is_ok());
        assert!(bind("127.0.0.1:0".parse().unwrap(), &HttpOptions::default()).await.is_ok());
    }

    #[test]
    fn requests_are_counted_and_nothing_else_is() {
        let rate = Rate::parse("2/h");
        let door = Door::new(HttpOptions { rate, ..HttpOptions::default() });
        let send = |message: Value| {
            let answer = metered(&door, None, message.to_string().as_bytes());
            answer.map(|answer| serde_json::from_str::<Value>(&answer).unwrap())
        };
        let ping = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        assert_eq!(send(ping(json!(1))), None);
        for free in
            [json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), json!({"id": 1, "result": {}})]
        {
            assert_eq!(send(free), None);
        }
        let batch = send(json!([ping(json!(2)), {"method": "x"}, ping(json!("3"))])).unwrap();
        assert_eq!((batch[0]["id"].clone(), batch[1]["id"].clone()), (json!(2), json!("3")));
        let refused = send(ping(json!(4))).unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(4), &json!(TOO_MANY)), "{refused}");
        assert!(refused["error"]["data"]["retry_after_ms"].as_u64().unwrap() > 3_000_000);
        assert!(refused["error"]["message"].as_str().unwrap().contains("hint:"));
        assert_eq!(metered(&door, None, b"nonsense"), None, "what is no message is complained of elsewhere");
    }
}
