//! `net.websocket`.
//!
//! A connection lives between calls: a task of its own reads ahead a bounded number of messages and answers pings, so a server
//! that talks much waits instead of filling our memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use hanzo_net::stream::{self, ConnectError, Connection};
use hanzo_protocol::envelope::{ErrorCode, Intent, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::tool::{Effect, TimeLimit, ToolCaller};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

use super::{Deadline, Seconds, exchange, parse_url, refused};
use crate::contract::{Action, Answer, Call};

/// How long making a connection may take, unless the caller says otherwise.
const USUAL: Duration = Duration::from_secs(30);
/// How long a call waits for messages, unless the caller says otherwise.
const WAIT: Duration = Duration::from_secs(5);
/// How long the other side has to say goodbye.
const FAREWELL: Duration = Duration::from_secs(1);
/// The largest message that is taken.
const MAX_MESSAGE: usize = 1 << 20;
/// How many messages are read ahead; with the bound on each, what a connection may hold.
const READ_AHEAD: usize = 32;
/// How many connections a thread may have.
const MAX_OPEN: usize = 8;
/// How many messages and how much text one answer has.
const MAX_MESSAGES: u32 = 100;
const MAX_TEXT: usize = 40_000;

/// The open connections of a thread.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    open: Mutex<HashMap<String, Arc<Socket>>>,
    next: AtomicU64,
}

impl Sockets {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Socket>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn full(&self) -> Result<(), ToolError> {
        let open = self.lock();
        if open.len() < MAX_OPEN {
            return Ok(());
        }
        let mut names: Vec<&String> = open.keys().collect();
        names.sort();
        let message = format!("{MAX_OPEN} WebSockets are open already; end one with `close`");
        Err(ToolError::new(ErrorCode::RateLimited, message).with_details(json!({ "open": names })))
    }

    fn add(&self, socket: Socket) -> (String, Arc<Socket>) {
        let id = format!("ws_{}", self.next.fetch_add(1, Ordering::Relaxed) + 1);
        let socket = Arc::new(socket);
        self.lock().insert(id.clone(), Arc::clone(&socket));
        (id, socket)
    }

    fn find(&self, id: &str, caller: ToolCaller) -> Result<Arc<Socket>, ToolError> {
        let found = self.lock().get(id).filter(|socket| socket.caller == caller).cloned();
        found.ok_or_else(|| {
            ToolError::new(ErrorCode::NotFound, format!("no WebSocket `{id}` is open; connect with `url`"))
        })
    }
}

#[derive(Debug)]
struct Socket {
    caller: ToolCaller,
    outgoing: mpsc::Sender<Message>,
    incoming: tokio::sync::Mutex<mpsc::Receiver<Incoming>>,
    tasks: [JoinHandle<()>; 2],
}

impl Socket {
    /// Says that it is over, and waits a little for the answer: whoever just hangs up looks like a fault.
    async fn bid_farewell(&self) {
        let answered = async {
            if self.outgoing.send(Message::Close(None)).await.is_err() {
                return;
            }
            let mut incoming = self.incoming.lock().await;
            while !matches!(incoming.recv().await, Some(Incoming::Closed(_)) | None) {}
        };
        let _ = tokio::time::timeout(FAREWELL, answered).await;
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// What the other side sent.
#[derive(Debug)]
enum Incoming {
    Text(String),
    Binary(Vec<u8>),
    Closed(Closed),
}

/// How a connection ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Closed {
    /// The code of the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
    /// What the other side, or the system, said.
    reason: String,
}

/// Talks to a WebSocket.
pub(super) struct WebSocket;

/// The arguments of `net.websocket`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WebSocketInput {
    /// ws or wss, to connect.
    url: Option<String>,
    /// An open connection.
    ws_id: Option<String>,
    /// Texts to send.
    #[serde(default)]
    send: Vec<String>,
    /// How many messages to wait for.
    messages: Option<u32>,
    /// How many seconds to wait for them.
    wait: Option<Seconds>,
    /// End the connection afterwards.
    #[serde(default)]
    close: bool,
    /// Names and values.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Seconds.
    timeout: Option<Seconds>,
}

/// The answer of `net.websocket`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WebSocketOutput {
    /// The connection, as long as it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    ws_id: Option<String>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed: Option<Closed>,
    /// What came.
    messages: Vec<Received>,
}

/// A message.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Received {
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Where the whole is kept of one that is long or no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    r#ref: Option<String>,
}

impl Action for WebSocket {
    const NAME: &'static str = "websocket";
    const SUMMARY: &'static str = "connect (url) or go on (ws_id), send, receive";
    const EXAMPLE: &'static str = r#"{"url":"ws://localhost:9000/","send":["hello"],"messages":1}"#;
    const WORST: Effect = Effect::Network;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] =
        &[("uri", "url"), ("id", "ws_id"), ("message", "send")];
    const HIDDEN: &'static [&'static str] = &["close", "timeout", "messages", "wait"];
    const QUIET: &'static [&'static str] = &["url", "ws_id", "send", "headers"];
    const INTENTS: Option<&'static [Intent]> = Some(&[Intent::Verify, Intent::Ship]);
    type Input = WebSocketInput;
    type Output = WebSocketOutput;

    fn effect(&self, _: &WebSocketInput) -> Effect {
        Effect::Network
    }

    fn time_limit(&self, _: &WebSocketInput) -> TimeLimit {
        TimeLimit::Own
    }

    async fn run(
        &self,
        call: &Call<'_>,
        input: WebSocketInput,
    ) -> Result<Answer<WebSocketOutput>, ToolError> {
        let deadline = Deadline::after(input.timeout, USUAL)?;
        let wait = input.wait.map_or(Ok(WAIT), Seconds::duration)?;
        let sockets = &call.host.net.sockets;
        let (id, socket) = match (&input.url, &input.ws_id) {
            (Some(url), None) => {
                sockets.full()?;
                let doing = "connecting the WebSocket";
                let socket = deadline.limit(doing, connect(call, url, &input.headers)).await??;
                sockets.add(socket)
            }
            (None, Some(id)) => (id.clone(), sockets.find(id, call.context.caller)?),
            _ => {
                return Err(ToolError::new(
                    ErrorCode::InvalidArguments,
                    "either `url`, to connect, or `ws_id`, to go on, is needed",
                ));
            }
        };
        for text in input.send {
            let sent = deadline.limit("sending", socket.outgoing.send(Message::text(text))).await?;
            if sent.is_err() {
                // How it ended is in what was received.
                break;
            }
        }
        let count = input.messages.unwrap_or(1).min(MAX_MESSAGES);
        let (incoming, mut closed) = receive(&socket, count, wait).await;
        let mut messages = Vec::new();
        for message in incoming {
            messages.push(match message {
                Ok(text) if text.len() <= MAX_TEXT => Received { text: Some(text), r#ref: None },
                Ok(mut text) => {
                    let kept = super::keep(call, text.as_bytes()).await?;
                    text.truncate(text.floor_char_boundary(MAX_TEXT));
                    Received { text: Some(text), r#ref: Some(kept) }
                }
                Err(bytes) => Received { text: None, r#ref: Some(super::keep(call, &bytes).await?) },
            });
        }
        if input.close && closed.is_none() {
            socket.bid_farewell().await;
            closed = Some(Closed { code: None, reason: "ended by us".to_owned() });
        }
        if closed.is_some() {
            sockets.lock().remove(&id);
        }
        let output = WebSocketOutput { ws_id: closed.is_none().then_some(id), closed, messages };
        Ok(Answer::new(output).tainted(Some(Taint::Network)))
    }
}

async fn connect(
    call: &Call<'_>,
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<Socket, ToolError> {
    let url = parse_url(url, &["ws", "wss"])?;
    let guard = call.host.net.guard(call.context.caller);
    let connection = stream::connect(&guard, &url).await.map_err(|error| match error {
        ConnectError::Guard(error) => refused(&error),
        other => ToolError::new(ErrorCode::Unavailable, other.to_string()),
    })?;
    let mut request = url.as_str().into_client_request().map_err(|error| handshake_failure(&error, &url))?;
    for (name, value) in exchange::headers(headers)?.drain() {
        if let Some(name) = name {
            request.headers_mut().insert(name, value);
        }
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE))
        .max_write_buffer_size(4 * MAX_MESSAGE);
    let (socket, _) = tokio_tungstenite::client_async_with_config(request, connection, Some(config))
        .await
        .map_err(|error| handshake_failure(&error, &url))?;
    let (sink, stream) = socket.split();
    let (outgoing, to_send) = mpsc::channel(READ_AHEAD);
    let (received, incoming) = mpsc::channel(READ_AHEAD);
    let tasks = [tokio::spawn(send_all(sink, to_send)), tokio::spawn(read_all(stream, received))];
    Ok(Socket { caller: call.context.caller, outgoing, incoming: tokio::sync::Mutex::new(incoming), tasks })
}

fn handshake_failure(error: &tungstenite::Error, url: &hanzo_net::Url) -> ToolError {
    let host = exchange::host(url);
    match error {
        tungstenite::Error::Http(response) => {
            let status = response.status().as_u16();
            ToolError::new(
                ErrorCode::Unavailable,
                format!("`{host}` answered {status} instead of a WebSocket"),
            )
            .with_details(json!({ "status": status }))
        }
        other => ToolError::new(ErrorCode::Unavailable, format!("`{host}` gives no WebSocket: {other}")),
    }
}

async fn send_all(
    mut sink: SplitSink<WebSocketStream<Connection>, Message>,
    mut messages: mpsc::Receiver<Message>,
) {
    while let Some(message) = messages.recv().await {
        // What is wrong with the connection, the reading side says.
        if sink.send(message).await.is_err() {
            return;
        }
    }
}

async fn read_all(mut stream: SplitStream<WebSocketStream<Connection>>, received: mpsc::Sender<Incoming>) {
    // Room first: while nobody takes what is here, nothing more is read.
    while let Ok(room) = received.reserve().await {
        let incoming = loop {
            match stream.next().await {
                Some(Ok(Message::Text(text))) => break Incoming::Text(text.as_str().to_owned()),
                Some(Ok(Message::Binary(bytes))) => break Incoming::Binary(bytes.to_vec()),
                Some(Ok(Message::Close(frame))) => {
                    let (code, reason) = frame.map_or((None, String::new()), |frame| {
                        (Some(u16::from(frame.code)), frame.reason.as_str().to_owned())
                    });
                    break Incoming::Closed(Closed { code, reason });
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    break Incoming::Closed(Closed { code: None, reason: error.to_string() });
                }
                None => {
                    let reason = "the connection ended without a farewell".to_owned();
                    break Incoming::Closed(Closed { code: None, reason });
                }
            }
        };
        let over = matches!(incoming, Incoming::Closed(_));
        room.send(incoming);
        if over {
            // The farewell is answered while the stream is read to its end.
            while let Some(Ok(_)) = stream.next().await {}
            return;
        }
    }
}

/// Waits for `count` messages, no longer than `wait`, and takes what else is there already.
async fn receive(
    socket: &Socket,
    count: u32,
    wait: Duration,
) -> (Vec<Result<String, Vec<u8>>>, Option<Closed>) {
    let mut incoming = socket.incoming.lock().await;
    let until = tokio::time::Instant::now() + wait;
    let mut messages = Vec::new();
    let mut size = 0;
    while size < MAX_TEXT && messages.len() < MAX_MESSAGES as usize {
        let message = if messages.len() < count as usize {
            tokio::time::timeout_at(until, incoming.recv()).await.ok().flatten()
        } else {
            incoming.try_recv().ok()
        };
        match message {
            Some(Incoming::Text(text)) => {
                size += text.len();
                messages.push(Ok(text));
            }
            Some(Incoming::Binary(bytes)) => messages.push(Err(bytes)),
            Some(Incoming::Closed(closed)) => return (messages, Some(closed)),
            None => break,
        }
    }
    (messages, None)
}
