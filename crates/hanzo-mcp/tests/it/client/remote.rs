//! Servers at an address.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use hanzo_mcp::client::{Manager, Phase, RemoteConfig, SecretText, ServerConfig, TransportConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::stage::{call, parts, phase, settled};

/// What a small server knows: a tool that says text back.
fn answer(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "small", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            json!({"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]})
        }
        _ => return Some(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}})),
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

struct Request {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request { line: line.trim_end().to_owned(), headers, body: Vec::new() };
    let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    request.body = vec![0; length];
    stream.read_exact(&mut request.body).await.ok()?;
    Some(request)
}

fn reply(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// Serves requests with `respond`, each connection on its own; says where.
async fn serve<F, R>(respond: F) -> String
where
    F: Fn(Request) -> R + Send + Sync + 'static,
    R: Future<Output = String> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let respond = Arc::new(respond);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let respond = Arc::clone(&respond);
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                while let Some(request) = read(&mut stream).await {
                    let text = respond(request).await;
                    if stream.write_all(text.as_bytes()).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    format!("http://{address}")
}

fn http(url: &str) -> ServerConfig {
    let mut remote = RemoteConfig::new(url);
    remote.headers.push(("X-Key".into(), SecretText::new("open sesame")));
    ServerConfig::new("r", TransportConfig::Http(remote))
}

async fn one(config: ServerConfig) -> Manager {
    settled(parts(vec![config])).await
}

#[tokio::test]
async fn streamable_http_keeps_its_session_and_sends_its_headers() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let url = serve(move |request| {
        let calls = Arc::clone(&counted);
        async move {
            if request.header("x-key") != Some("open sesame") {
                return reply("401 Unauthorized", "www-authenticate: Bearer\r\n", "");
            }
            if !request.line.starts_with("POST") {
                return reply("405 Method Not Allowed", "", "");
            }
            let message: Value = serde_json::from_slice(&request.body).unwrap();
            let method = message["method"].as_str().unwrap_or_default();
            let session = "mcp-session-id: s-1\r\ncontent-type: application/json\r\n";
            if method == "initialize" {
                return reply("200 OK", session, &answer(&message).unwrap().to_string());
            }
            if method != "server/discover" && request.header("mcp-session-id") != Some("s-1") {
                return reply("400 Bad Request", "", "no session");
            }
            let Some(answered) = answer(&message) else { return reply("202 Accepted", "", "") };
            if method != "tools/call" {
                return reply("200 OK", "content-type: application/json\r\n", &answered.to_string());
            }
            calls.fetch_add(1, Ordering::Relaxed);
            // Some answers come as JSON and some as a stream of events.
            let body = format!("event: message\nid: 1\ndata: {answered}\n\n");
            reply("200 OK", "content-type: text/event-stream\r\n", &body)
        }
    })
    .await;
    let manager = one(http(&format!("{url}/mcp"))).await;
    assert_eq!(phase(&manager, "r"), Phase::Connected, "{:?}", manager.status());
    assert_eq!(manager.status()[0].protocol.as_deref(), Some("2025-06-18"));
    assert_eq!(call(&manager, "mcp__r__echo", json!({"text": "over http"})).await.output, "over http");
    assert_eq!(calls.load(Ordering::Relaxed), 1);

    let nobody = ServerConfig::new("r", TransportConfig::Http(RemoteConfig::new(format!("{url}/mcp"))));
    let refused = one(nobody).await;
    let why = refused.status()[0].error.clone().unwrap();
    assert!(why.contains("wants a login") && why.contains("hint:"), "{why}");
}

/// A server that ends its stream in the middle of a call is asked for the rest, from the last event on (resumption).
#[tokio::test]
async fn a_stream_that_breaks_is_taken_up_where_it_broke() {
    let resumed = Arc::new(Mutex::new(Vec::<String>::new()));
    let seen = Arc::clone(&resumed);
    let pending = Arc::new(Mutex::new(None::<Value>));
    let url = serve(move |request| {
        let (seen, pending) = (Arc::clone(&seen), Arc::clone(&pending));
        async move {
            let stream = "mcp-session-id: s-1\r\ncontent-type: text/event-stream\r\n";
            if request.line.starts_with("GET") {
                let Some(last) = request.header("last-event-id").map(str::to_owned) else {
                    return reply("405 Method Not Allowed", "", "");
                };
                let step = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(last.clone());
                    seen.len()
                };
                assert_eq!(request.header("mcp-session-id"), Some("s-1"));
                // The first time it breaks again.
                if step == 1 {
                    return reply("200 OK", stream, "id: e-2\nretry: 10\ndata:\n\n");
                }
                let answered = pending.lock().unwrap().take().map(|message| answer(&message).unwrap());
                return reply(
                    "200 OK",
                    stream,
                    &format!("id: e-3\ndata: {}\n\n", answered.unwrap_or_default()),
                );
            }
            if !request.line.starts_with("POST") {
                return reply("200 OK", "", "");
            }
            let message: Value = serde_json::from_slice(&request.body).unwrap();
            match message["method"].as_str().unwrap_or_default() {
                "initialize" => {
                    let json = "mcp-session-id: s-1\r\ncontent-type: application/json\r\n";
                    reply("200 OK", json, &answer(&message).unwrap().to_string())
                }
                "tools/call" => {
                    *pending.lock().unwrap() = Some(message);
                    reply("200 OK", stream, "id: e-1\nretry: 10\ndata:\n\n")
                }
                _ => match answer(&message) {
                    Some(answer) => {
                        reply("200 OK", "content-type: application/json\r\n", &answer.to_string())
                    }
                    None => reply("202 Accepted", "", ""),
                },
            }
        }
    })
    .await;
    let manager = one(http(&url)).await;
    assert_eq!(phase(&manager, "r"), Phase::Connected, "{:?}", manager.status());
    let done = call(&manager, "mcp__r__echo", json!({"text": "in the end"})).await;
    assert_eq!(done.output, "in the end", "{done:?}");
    assert_eq!(*resumed.lock().unwrap(), ["e-1", "e-2"]);
}

#[tokio::test]
async fn a_server_may_not_send_us_elsewhere() {
    let elsewhere = Arc::new(AtomicUsize::new(0));
    let visits = Arc::clone(&elsewhere);
    let trap = serve(move |_| {
        visits.fetch_add(1, Ordering::Relaxed);
        async { reply("200 OK", "", "") }
    })
    .await;
    let url = serve(move |_| {
        let location = format!("location: {trap}/steal\r\n");
        async move { reply("307 Temporary Redirect", &location, "") }
    })
    .await;
    let manager = one(http(&url)).await;
    assert_eq!(phase(&manager, "r"), Phase::Failed);
    assert_eq!(elsewhere.load(Ordering::Relaxed), 0, "nothing was sent there");
}

/// A server of the older transport; `endpoint` is what its stream begins with.
async fn older(endpoint: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (events, streams) = mpsc::unbounded_channel::<String>();
    let streams = Arc::new(tokio::sync::Mutex::new(Some(streams)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (events, streams) = (events.clone(), Arc::clone(&streams));
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                while let Some(request) = read(&mut stream).await {
                    if request.line.starts_with("GET /sse") {
                        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                        let first = format!("{head}event: endpoint\ndata: {endpoint}\n\n");
                        stream.write_all(first.as_bytes()).await.unwrap();
                        let taken = streams.lock().await.take();
                        let Some(mut events) = taken else { return };
                        while let Some(event) = events.recv().await {
                            if stream.write_all(event.as_bytes()).await.is_err() {
                                return;
                            }
                        }
                    }
                    let text = if request.line.starts_with("POST /messages?session=7") {
                        let message: Value = serde_json::from_slice(&request.body).unwrap();
                        if let Some(answered) = answer(&message) {
                            let _ = events.send(format!("event: message\ndata: {answered}\n\n"));
                        }
                        reply("202 Accepted", "", "")
                    } else {
                        reply("404 Not Found", "", "")
                    };
                    stream.write_all(text.as_bytes()).await.unwrap();
                }
            });
        }
    });
    format!("http://{address}/sse")
}

#[tokio::test]
async fn the_older_event_stream_works_too() {
    let url = older("/messages?session=7").await;
    let manager = one(ServerConfig::new("r", TransportConfig::Sse(RemoteConfig::new(url)))).await;
    assert_eq!(phase(&manager, "r"), Phase::Connected, "{:?}", manager.status());
    assert_eq!(call(&manager, "mcp__r__echo", json!({"text": "over sse"})).await.output, "over sse");
}

#[tokio::test]
async fn the_older_event_stream_may_not_name_another_origin() {
    let url = older("http://127.0.0.1:1/messages?session=7").await;
    let manager = one(ServerConfig::new("r", TransportConfig::Sse(RemoteConfig::new(url)))).await;
    let why = manager.status()[0].error.clone().unwrap();
    assert!(why.contains("another origin"), "{why}");
}

#[tokio::test]
async fn a_websocket_carries_messages() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        use tokio_tungstenite::tungstenite::Message;
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                #[expect(clippy::result_large_err, reason = "the library says what a refusal is")]
                let greet = |request: &http::Request<()>, mut response: http::Response<()>| {
                    assert_eq!(request.headers()["sec-websocket-protocol"], "mcp");
                    response
                        .headers_mut()
                        .insert("sec-websocket-protocol", http::HeaderValue::from_static("mcp"));
                    Ok(response)
                };
                let mut socket = tokio_tungstenite::accept_hdr_async(stream, greet).await.unwrap();
                while let Some(Ok(Message::Text(text))) = socket.next().await {
                    if let Some(answered) = answer(&serde_json::from_str(&text).unwrap()) {
                        socket.send(Message::text(answered.to_string())).await.unwrap();
                    }
                }
            });
        }
    });
    let remote = RemoteConfig::new(format!("ws://{address}/ws"));
    let manager = one(ServerConfig::new("r", TransportConfig::WebSocket(remote))).await;
    assert_eq!(phase(&manager, "r"), Phase::Connected, "{:?}", manager.status());
    assert_eq!(
        call(&manager, "mcp__r__echo", json!({"text": "over a socket"})).await.output,
        "over a socket"
    );
}

#[tokio::test]
async fn metadata_services_and_dead_addresses_are_told_apart() {
    let to = |name: &str, url: &str| {
        let mut config = ServerConfig::new(name, TransportConfig::Http(RemoteConfig::new(url)));
        config.timeout = Duration::from_secs(2);
        config
    };
    let servers = vec![
        to("cloud", "http://169.254.169.254/latest/meta-data"),
        to("google", "http://metadata.google.internal/"),
        to("dead", "http://127.0.0.1:9/mcp"),
    ];
    let manager = settled(parts(servers)).await;
    let why = |index: usize| manager.status()[index].error.clone().unwrap();
    assert!(why(0).contains("metadata") && why(1).contains("metadata"), "{} {}", why(0), why(1));
    assert!(why(2).contains("cannot connect"), "{}", why(2));
}
