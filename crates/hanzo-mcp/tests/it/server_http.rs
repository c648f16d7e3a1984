//! The server at an address: over HTTP and WebSockets, secured and not.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use hanzo_mcp::server::http::{self, HttpOptions, Rate, Tls};
use hanzo_mcp::server::{Offered, Server, ServerOptions};
use hanzo_protocol::engine::Request;
use reqwest::{Certificate, Response, StatusCode};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, client_async_tls_with_config};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::server::modern;
use crate::server_engine::FakeEngine;

pub fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

fn tls() -> Tls {
    Tls::load(&file("server.pem"), &file("server.key")).unwrap()
}

/// A server at an address of this machine, until it is dropped.
pub struct Site {
    pub address: SocketAddr,
    pub engine: Arc<FakeEngine>,
    pub refused: Arc<Mutex<Vec<String>>>,
    offered: watch::Sender<Offered>,
    secured: bool,
    _end: DropGuard,
}

impl Site {
    pub async fn open(options: HttpOptions) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), options).await
    }

    pub async fn at(address: SocketAddr, mut options: HttpOptions) -> Self {
        let engine = FakeEngine::new();
        let (offered, news) = watch::channel(Offered::default());
        let mut wanted = ServerOptions::new("/project");
        wanted.news = Some(news);
        let server = Server::new(Arc::clone(&engine) as _, wanted);
        let refused = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&refused);
        options.refused = Some(Arc::new(move |refusal| told.lock().unwrap().push(refusal.to_string())));
        let secured = options.tls.is_some();
        let listener = http::bind(address, &options).await.unwrap();
        let address = listener.local_addr().unwrap();
        let end = CancellationToken::new();
        tokio::spawn(http::serve(listener, move || server.connection(), options, end.clone()));
        Self { address, engine, refused, offered, secured, _end: end.drop_guard() }
    }

    fn url(&self, scheme: &str, path: &str) -> String {
        let s = if self.secured { "s" } else { "" };
        format!("{scheme}{s}://localhost:{}{path}", self.address.port())
    }

    async fn post(&self, token: Option<&str>, message: &Value) -> Response {
        let version = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        let mut request = web()
            .post(self.url("http", "/mcp"))
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-method", message["method"].as_str().unwrap())
            .body(message.to_string());
        if let Some(version) = version {
            request = request.header("mcp-protocol-version", version);
        }
        if let Some(name) = message["params"]["name"].as_str() {
            request = request.header("mcp-name", name);
        }
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request.send().await.unwrap()
    }

    /// Calls `echo` by one request that stands for itself.
    async fn echo(&self, token: Option<&str>, text: &str) -> Response {
        let params = modern(json!({"name": "echo", "arguments": {"text": text}}), &json!({}));
        self.post(token, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await
    }

    async fn socket(&self, path: &str, token: Option<&str>) -> Result<Socket, String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut request = self.url("ws", path).into_client_request().unwrap();
        if let Some(token) = token {
            request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        let stream = TcpStream::connect(self.address).await.unwrap();
        let roots = CertificateDer::from_pem_file(file("ca.pem")).unwrap();
        let mut store = rustls::RootCertStore::empty();
        store.add(roots).unwrap();
        let config = rustls::ClientConfig::builder().with_root_certificates(store).with_no_client_auth();
        let connector = Connector::Rustls(Arc::new(config));
        let made = client_async_tls_with_config(request, stream, None, Some(connector)).await;
        Ok(Socket { socket: made.map_err(|error| error.to_string())?.0, next: 0 })
    }

    pub fn calls(&self) -> usize {
        let asked = self.engine.asked.lock().unwrap();
        asked.iter().filter(|request| matches!(request, Request::ToolCall(_))).count()
    }
}

fn web() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let vouches = Certificate::from_pem(&std::fs::read(file("ca.pem")).unwrap()).unwrap();
    reqwest::Client::builder().tls_certs_only([vouches]).no_proxy().build().unwrap()
}

struct Socket {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next: u64,
}

impl Socket {
    async fn send(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        loop {
            let heard = tokio::time::timeout(Duration::from_secs(10), self.socket.next()).await;
            if let Message::Text(text) = heard.expect("in time").expect("more to hear").unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    async fn greet(&mut self) {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        let answer = self.ask("initialize", hello).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }

    async fn echo(&mut self, text: &str) -> Value {
        self.ask("tools/call", json!({"name": "echo", "arguments": {"text": text}})).await
    }
}

/// The messages of an event stream.
struct Events {
    response: Response,
    text: String,
}

impl Events {
    fn of(response: Response) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        Self { response, text: String::new() }
    }

    async fn next(&mut self) -> Value {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.lines().filter_map(|line| line.strip_prefix("data:")).collect::<String>();
                let rest = rest.to_owned();
                self.text = rest;
                if let Ok(message) = serde_json::from_str(&data) {
                    return message;
                }
                continue;
            }
            let chunk = tokio::time::timeout(Duration::from_secs(10), self.response.chunk()).await;
            let chunk = chunk.expect("in time").unwrap().expect("more to hear");
            self.text.push_str(&String::from_utf8_lossy(&chunk));
        }
    }
}

#[tokio::test]
async fn websockets_are_at_the_address_of_http_too() {
    let site = Site::open(HttpOptions::default()).await;
    for path in ["/mcp", "/mcp/ws"] {
        let mut socket = site.socket(path, None).await.unwrap();
        socket.greet().await;
        assert_eq!(socket.echo(path).await["result"]["content"][0]["text"], path);
        // And both ways: the server asks the client.
        socket.request("tools/register", json!({"name": "own", "input_schema": {"type": "object"}})).await;
        let heard = [socket.hear().await, socket.hear().await];
        assert!(heard.iter().any(|it| it["result"]["registered"] == "own"), "{heard:?}");
        let id = socket.request("tools/execute", json!({"tool": "own", "arguments": {"n": 2}})).await;
        let asked = socket.hear().await;
        assert_eq!(
            (&asked["method"], &asked["params"]["arguments"]["n"]),
            (&json!("tools/execute"), &json!(2))
        );
        let result = json!({"content": [{"type": "text", "text": "four"}]});
        socket.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
        let answer = socket.hear().await;
        assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(id), &json!("four")));
    }
    let answer: Value = Events::of(site.echo(None, "plain").await).next().await;
    assert_eq!(answer["result"]["content"][0]["text"], "plain", "{answer}");
}

#[tokio::test]
async fn calls_over_tls_reach_the_engine_and_those_without_the_token_do_not() {
    let options = HttpOptions { token: Some("s3cret".into()), tls: Some(tls()), ..HttpOptions::default() };
    let site = Site::open(options).await;
    assert_eq!(site.echo(Some("guess"), "x").await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(site.echo(None, "x").await.status(), StatusCode::UNAUTHORIZED);
    for token in [None, Some("guess")] {
        let refused = site.socket("/mcp", token).await.err().unwrap();
        assert!(refused.contains("401"), "{refused}");
    }
    assert_eq!(site.engine.asked.lock().unwrap().len(), 0, "nothing of it reaches the engine");
    let seen = site.refused.lock().unwrap().clone();
    assert_eq!(seen.len(), 4, "and the owner sees it: {seen:?}");
    assert!(seen[0].contains("127.0.0.1") && !seen.concat().contains("guess"), "{seen:?}");

    let answer = Events::of(site.echo(Some("s3cret"), "over https").await).next().await;
    assert_eq!(answer["result"]["content"][0]["text"], "over https", "{answer}");
    let mut socket = site.socket("/mcp", Some("s3cret")).await.unwrap();
    socket.greet().await;
    assert_eq!(socket.echo("over wss").await["result"]["content"][0]["text"], "over wss");
    assert_eq!(site.calls(), 2);
}

#[tokio::test]
async fn who_does_not_speak_tls_keeps_nobody_out_and_is_seen() {
    let site = Site::open(HttpOptions { tls: Some(tls()), ..HttpOptions::default() }).await;
    // They say nothing at all.
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(site.address).await.unwrap());
    }
    let plain = web().get(format!("http://{}/mcp", site.address)).send().await.unwrap();
    assert_eq!(plain.status(), StatusCode::BAD_REQUEST);
    assert_eq!(plain.text().await.unwrap(), "this address is secured: call it by `https`");
    let answer = Events::of(site.echo(None, "here").await).next().await;
    assert_eq!(answer["result"]["content"][0]["text"], "here", "{answer}");
    let seen = site.refused.lock().unwrap().clone();
    assert_eq!(seen, ["refused a caller at 127.0.0.1: the connection could not be secured"]);
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_said_to_be_with_what_to_do() {
    let scratch = tempfile::tempdir().unwrap();
    let nonsense = scratch.path().join("nonsense.pem");
    std::fs::write(&nonsense, "hello\n").unwrap();
    let broken = scratch.path().join("broken.pem");
    std::fs::write(&broken, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    for (certificate, key, says) in [
        (scratch.path().join("none"), file("server.key"), "cannot read the certificate"),
        (file("server.pem"), scratch.path().join("none"), "cannot read the private key"),
        (scratch.path().to_owned(), file("server.key"), "cannot read the certificate"),
        (nonsense.clone(), file("server.key"), "there is no certificate in"),
        (file("server.key"), file("server.key"), "there is no certificate in"),
        (file("server.pem"), nonsense, "there is no private key in"),
        (file("server.pem"), file("server.pem"), "there is no private key in"),
        (file("server.pem"), file("other.key"), "does not belong to the certificate"),
        (file("server.pem"), file("locked.key"), "is encrypted"),
        (broken, file("server.key"), "cannot be used"),
    ] {
        let error = Tls::load(&certificate, &key).err().unwrap().to_string();
        assert!(error.contains(says) && error.contains("\n\nhint: "), "{says}: {error}");
    }
}

#[tokio::test]
async fn one_client_asks_no_more_often_than_it_may() {
    let rate = Rate::parse("3/h");
    let site = Site::open(HttpOptions { rate, ..HttpOptions::default() }).await;
    for _ in 0..3 {
        assert_eq!(site.echo(None, "x").await.status(), StatusCode::OK);
    }
    let refused = site.echo(None, "x").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let again: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((3_500..=3_600).contains(&again), "{again}");
    let said = refused.text().await.unwrap();
    assert!(said.contains("3/h") && said.contains("hint:"), "{said}");
    assert_eq!(site.calls(), 3);
    assert!(site.refused.lock().unwrap()[0].contains("too many requests"));

    // Calls that come together are counted one by one.
    let together = |number| {
        let call = json!({"tool": "echo", "arguments": {"text": "x"}});
        json!({"calls": vec![call; number]})
    };
    for (number, works) in [(3, true), (4, false)] {
        let site = Site::open(HttpOptions { rate, ..HttpOptions::default() }).await;
        let batch = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/batch", "params": modern(together(number), &json!({}))});
        let answer = Events::of(site.post(None, &batch).await).next().await;
        assert_eq!(answer["error"]["code"] == -32_029, !works, "{answer}");
        assert_eq!(site.calls(), if works { number } else { 0 });
    }

    let site = Site::open(HttpOptions { rate, ..HttpOptions::default() }).await;
    let mut socket = site.socket("/mcp", None).await.unwrap();
    socket.greet().await;
    let refused = socket.ask("tools/batch", together(2)).await;
    assert_eq!((&refused["error"]["code"], site.calls()), (&json!(-32_029), 0), "{refused}");

    let site = Site::open(HttpOptions { rate, ..HttpOptions::default() }).await;
    let mut socket = site.socket("/mcp", None).await.unwrap();
    socket.greet().await;
    assert_eq!(socket.echo("one").await["result"]["content"][0]["text"], "one");
    let refused = socket.echo("two").await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("hint:"), "{refused}");
    assert!(refused["error"]["data"]["retry_after_ms"].as_u64().unwrap() > 3_000_000, "{refused}");
    assert_eq!(site.calls(), 1);
}

#[tokio::test]
async fn whoever_listens_hears_that_a_list_has_changed() {
    let site = Site::open(HttpOptions::default()).await;
    // A session of HTTP, listening by a stream of its own.
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}});
    let greeted = site.post(None, &hello).await;
    let id = greeted.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let answer = Events::of(greeted).next().await;
    assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], true, "{answer}");
    let with_session = |request: reqwest::RequestBuilder| {
        request
            .header("mcp-session-id", &id)
            .header("mcp-protocol-version", "2025-06-18")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    };
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let told = with_session(web().post(site.url("http", "/mcp"))).body(initialized.to_string()).send().await;
    assert_eq!(told.unwrap().status(), StatusCode::ACCEPTED);
    // While it does not listen, nothing that would be said holds it up.
    for _ in 0..300 {
        site.offered.send_modify(|now| now.tools += 1);
        tokio::task::yield_now().await;
    }
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}});
    let called = with_session(web().post(site.url("http", "/mcp"))).body(call.to_string()).send().await;
    assert_eq!(Events::of(called.unwrap()).next().await["result"]["content"][0]["text"], "x");
    let mut session = Events::of(with_session(web().get(site.url("http", "/mcp"))).send().await.unwrap());
    // One without a session that subscribed.
    let wanted = modern(json!({"notifications": {"toolsListChanged": true}}), &json!({}));
    let listen = json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": wanted});
    let mut subscribed = Events::of(site.post(None, &listen).await);
    assert_eq!(subscribed.next().await["method"], "notifications/subscriptions/acknowledged");
    // One on a WebSocket.
    let mut socket = site.socket("/mcp", None).await.unwrap();
    socket.greet().await;
    socket.echo("x").await;

    site.offered.send_modify(|now| now.tools += 1);
    let changed = "notifications/tools/list_changed";
    assert_eq!(socket.hear().await["method"], changed);
    assert_eq!(session.next().await["method"], changed);
    let heard = subscribed.next().await;
    assert_eq!(heard["method"], changed);
    assert_eq!(heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l", "{heard}");

    let before = site.offered.receiver_count();
    let ended = with_session(web().delete(site.url("http", "/mcp"))).send().await.unwrap();
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    tokio::time::timeout(Duration::from_secs(10), async {
        while site.offered.receiver_count() >= before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("nobody tells the session any more");
}

#[tokio::test]
async fn a_subscription_ends_with_its_request() {
    let site = Site::open(HttpOptions::default()).await;
    let wanted = modern(json!({"notifications": {"toolsListChanged": true}}), &json!({}));
    let listen = json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": wanted});
    let before = site.offered.receiver_count();
    let mut subscribed = Events::of(site.post(None, &listen).await);
    subscribed.next().await;
    tokio::time::timeout(Duration::from_secs(5), async {
        while site.offered.receiver_count() <= before {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("it listens");
    drop(subscribed);
    tokio::time::timeout(Duration::from_secs(10), async {
        while site.offered.receiver_count() > before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("and then it does not");
}

#[tokio::test]
async fn an_address_is_free_again_when_the_server_ends() {
    let options = HttpOptions { tls: Some(tls()), ..HttpOptions::default() };
    let site = Site::open(options).await;
    let address = site.address;
    let mut open = TcpStream::connect(address).await.unwrap();
    drop(site);
    let free = async {
        while TcpListener::bind(address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), free).await.expect("it is free");
    let mut rest = Vec::new();
    let _ = open.read_to_end(&mut rest).await;
}
