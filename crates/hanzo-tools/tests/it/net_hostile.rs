//! `net` and servers that mean no good. Each of these ends in time, says what it was, and leaves nothing behind.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hanzo_net::guard::Lookup;
use hanzo_protocol::tool::{ToolCaller, ToolResult};
use serde_json::{Value, json};

use crate::net::{code, data};
use crate::site::{Reply, Site};
use crate::world::World;

/// What is asked of each call is a second or less; the rest is for a machine that has other things to do.
const LIMIT: Duration = Duration::from_secs(20);

/// Fails instead of waiting for ever.
async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.unwrap_or_else(|_| panic!("it took more than {LIMIT:?}"))
}

fn impatient() -> World {
    World::with(|options| options.net.idle = Duration::from_millis(300))
}

/// What is beneath the workspace.
fn left_behind(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(&world.workspace).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn head(lines: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{lines}\r\n").into_bytes()
}

/// A server for each way to stall or to lie about a length.
async fn liar() -> Site {
    Site::start(|asked| match asked.path().as_str() {
        "/silent" => Reply::Stall(Vec::new()),
        "/half" => Reply::Stall([head("content-length: 10\r\n"), b"abc".to_vec()].concat()),
        "/drip" => Reply::Drip(head("content-length: 1000\r\n"), b'x', Duration::from_millis(50)),
        "/drip-head" => Reply::Drip(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), b'x', Duration::from_millis(50)),
        "/drip-chunks" => {
            Reply::Drip(head("transfer-encoding: chunked\r\n"), b'0', Duration::from_millis(50))
        }
        "/short" => Reply::Bytes([head("content-length: 1000\r\n"), b"abc".to_vec()].concat()),
        "/long" => Reply::Bytes([head("content-length: 3\r\n"), vec![b'x'; 1000]].concat()),
        "/minus" => Reply::Bytes([head("content-length: -3\r\n"), b"abc".to_vec()].concat()),
        "/words" => Reply::Bytes([head("content-length: three\r\n"), b"abc".to_vec()].concat()),
        "/two" => {
            Reply::Bytes([head("content-length: 3\r\ncontent-length: 4\r\n"), b"abcd".to_vec()].concat())
        }
        "/chunk" => {
            Reply::Bytes([head("transfer-encoding: chunked\r\n"), b"zz\r\nabc\r\n".to_vec()].concat())
        }
        "/no-last-chunk" => {
            Reply::Bytes([head("transfer-encoding: chunked\r\n"), b"3\r\nabc\r\n".to_vec()].concat())
        }
        "/huge" => Reply::Stall(head("content-length: 9223372036854775807\r\n")),
        "/all-ones" => Reply::Stall(head("content-length: 18446744073709551615\r\n")),
        _ => Reply::Bytes(b"\x16\x03\x01 no HTTP".to_vec()),
    })
    .await
}

const LIES: [(&str, &str); 14] = [
    ("/silent", "TIMEOUT"),
    ("/half", "TIMEOUT"),
    ("/drip", "TIMEOUT"),
    ("/drip-head", "TIMEOUT"),
    ("/drip-chunks", "TIMEOUT"),
    ("/short", "UNAVAILABLE"),
    ("/minus", "UNAVAILABLE"),
    ("/words", "UNAVAILABLE"),
    ("/two", "UNAVAILABLE"),
    ("/chunk", "UNAVAILABLE"),
    ("/no-last-chunk", "UNAVAILABLE"),
    ("/nonsense", "UNAVAILABLE"),
    ("/all-ones", "UNAVAILABLE"),
    ("/huge", "TOO_LARGE"),
];

#[tokio::test]
async fn a_download_from_a_server_that_stalls_or_lies_ends_in_time_and_leaves_nothing() {
    let site = liar().await;
    let world = impatient();
    for (path, expected) in LIES {
        let arguments =
            json!({"action": "download", "url": site.url(path), "output": "new/dir/file", "timeout": 1});
        let (code, message) = within(world.error("net", arguments)).await;
        assert!(
            code == expected || (path == "/drip-chunks" && code == "UNAVAILABLE"),
            "{path}: {code} {message}"
        );
        assert!(!world.path("new/dir/file").exists() && !world.path("new/dir/file.part").exists(), "{path}");
    }
    // No more than was promised.
    let arguments = json!({"action": "download", "url": site.url("/long"), "output": "long"});
    assert_eq!(within(data(&world, arguments)).await["size"], 3);
}

#[tokio::test]
async fn a_request_to_a_server_that_stalls_or_lies_ends_in_time() {
    let site = liar().await;
    let world = impatient();
    for (path, expected) in LIES {
        let arguments = json!({"action": "request", "url": site.url(path), "timeout": 1});
        let (code, message) = within(world.error("net", arguments)).await;
        // What a request takes is bounded whatever the server says it has, so it waits for that.
        let expected = if path == "/huge" { "TIMEOUT" } else { expected };
        assert!(
            code == expected || (path == "/drip-chunks" && code == "UNAVAILABLE"),
            "{path}: {code} {message}"
        );
    }
    let long = within(data(&world, json!({"action": "request", "url": site.url("/long")}))).await;
    assert_eq!(long["text"], "xxx");
}

#[tokio::test]
async fn redirections_in_circles_end_for_downloads_and_websockets_too() {
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&visits);
    let site = Site::start(move |asked| {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        match asked.path().as_str() {
            "/a" => Reply::redirect(302, "/b"),
            "/b" => Reply::redirect(307, "/a"),
            _ => Reply::redirect(308, &format!("/{number}")),
        }
    })
    .await;
    let world = World::new();
    for path in ["/a", "/on"] {
        let arguments = json!({"action": "download", "url": site.url(path), "output": "file"});
        assert_eq!(within(world.error("net", arguments)).await.0, "UNAVAILABLE");
        assert!(visits.swap(0, Ordering::Relaxed) <= 11, "{path}");
        let socket = site.url(path).replace("http", "ws");
        let (code, message) = within(world.error("net", json!({"action": "websocket", "url": socket}))).await;
        assert_eq!(code, "UNAVAILABLE", "{message}");
        assert_eq!(visits.swap(0, Ordering::Relaxed), 1, "a WebSocket is not redirected");
    }
    assert!(left_behind(&world).is_empty());
}

fn gzipped(megabytes: usize, byte: u8) -> Vec<u8> {
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..megabytes {
        bomb.write_all(&vec![byte; 1 << 20]).unwrap();
    }
    bomb.finish().unwrap()
}

#[tokio::test]
async fn content_bombs_are_defused() {
    let one = gzipped(20, b'a');
    let mut two = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    two.write_all(&one).unwrap();
    let (two, size) = (two.finish().unwrap(), one.len());
    let page = |text: &str, times: usize| Reply::ok("text/html", text.repeat(times));
    let site = Site::start(move |asked| {
        let packed = |coding: &str, bomb: &[u8]| {
            Reply::with(200, &[("content-type", "text/plain"), ("content-encoding", coding)], bomb)
        };
        match asked.path().as_str() {
            "/once" => packed("gzip", &one),
            "/twice" => packed("gzip, gzip", &two),
            "/nested" => page("<div><ul><li><b>", 20_000),
            "/unclosed" => page("<a href='", 20_000),
            "/entities" => page("&amp;&#x10ffff;&nosuch;", 20_000),
            "/table" => page("<table><tr><td>", 20_000),
            _ => page("<!--", 20_000),
        }
    })
    .await;
    let world = World::new();
    let ask = |path: &str| json!({"action": "request", "url": site.url(path), "as": "markdown"});
    let once = within(data(&world, ask("/once"))).await;
    assert_eq!(once["size"], 5 << 20, "it ends at the usual bound");
    assert!(once["text"].as_str().unwrap().len() <= 40_000);
    within(world.call("net", ask("/twice"))).await;
    for path in ["/nested", "/unclosed", "/entities", "/table", "/comment"] {
        let page = within(data(&world, ask(path))).await;
        assert!(page["text"].as_str().unwrap().len() <= 40_000, "{path}");
    }
    // What is saved is saved as it came.
    let saved = json!({"action": "download", "url": site.url("/once"), "output": "bomb.gz"});
    assert_eq!(within(data(&world, saved)).await["size"], size);
}

#[tokio::test]
async fn a_body_without_an_end_is_cut_and_a_file_without_an_end_refused() {
    let site =
        Site::start(|_| Reply::Stall([head("content-type: text/plain\r\n"), vec![b'x'; 400_000]].concat()))
            .await;
    let world = impatient();
    let ask = json!({"action": "request", "url": site.url("/"), "max_bytes": 100_000});
    assert_eq!(within(data(&world, ask)).await["size"], 100_000);
    let save = json!({"action": "download", "url": site.url("/"), "output": "file", "max_bytes": 100_000});
    assert_eq!(within(world.error("net", save)).await.0, "TOO_LARGE");
    assert!(left_behind(&world).is_empty());
}

/// A name that moves each time it is looked up, and the number of times it was.
struct Moving {
    addresses: Mutex<VecDeque<IpAddr>>,
    asked: AtomicUsize,
}

impl Moving {
    fn new(addresses: &[&str]) -> Arc<Self> {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Self { addresses: Mutex::new(addresses), asked: AtomicUsize::new(0) })
    }
}

impl Lookup for Moving {
    fn lookup(&self, _: String) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut addresses = self.addresses.lock().unwrap();
        // The last one stays.
        let address = if addresses.len() > 1 { addresses.pop_front() } else { addresses.front().copied() };
        Box::pin(async move { Ok(address.into_iter().collect()) })
    }
}

fn failed(result: ToolResult) -> String {
    code(result)
}

/// `127.0.0.2` stands for the public internet, which is not there in a test: the user's exception makes it free. What listens on
/// `127.0.0.1` is the secret.
#[tokio::test]
async fn a_name_that_moves_between_the_check_and_the_connection_gets_nowhere() {
    let secret = Site::start(|_| Reply::ok("text/plain", "secret")).await;
    let port = secret.address.port();
    let outside = Site::start_at(([127, 0, 0, 2], port).into(), |asked| match asked.path().as_str() {
        "/again" => Reply::redirect(302, "/secret"),
        _ => Reply::ok("text/plain", "public"),
    })
    .await;
    let world = |addresses: &[&str]| {
        let moving = Moving::new(addresses);
        let free =
            |options: &mut hanzo_tools::ToolOptions| options.net.private_hosts = vec!["127.0.0.2".into()];
        (World::with_lookup(free, moving.clone()), moving)
    };
    let url = |path: &str| format!("http://rebind.test:{port}{path}");
    let request = |path: &str| json!({"action": "request", "url": url(path)});

    // The address that was checked is the one that is connected to: there is no second look.
    let (steady, moving) = world(&["127.0.0.2", "127.0.0.1"]);
    let result = within(steady.call_as(ToolCaller::Remote, "net", request("/"))).await;
    assert!(result.output.contains("public"), "{}", result.output);
    assert_eq!(moving.asked.load(Ordering::Relaxed), 1);

    // A later look finds the secret's address, and is checked like the first.
    let result = within(steady.call_as(ToolCaller::Remote, "net", request("/"))).await;
    assert_eq!(failed(result), "DENIED");
    let (moved, _) = world(&["127.0.0.2", "127.0.0.1"]);
    let result = within(moved.call_as(ToolCaller::Remote, "net", request("/again"))).await;
    assert_eq!(failed(result), "DENIED", "a redirection to the same name");
    let (moved, _) = world(&["127.0.0.2", "127.0.0.1"]);
    let download = json!({"action": "download", "url": url("/again"), "output": "file"});
    let result = within(moved.call_as(ToolCaller::Remote, "net", download)).await;
    assert_eq!(failed(result), "DENIED");
    assert!(left_behind(&moved).is_empty());

    let (socket, moving) = world(&["127.0.0.2", "127.0.0.1"]);
    let connect = json!({"action": "websocket", "url": format!("ws://rebind.test:{port}/")});
    let result = within(socket.call_as(ToolCaller::Remote, "net", connect.clone())).await;
    assert_eq!(failed(result), "UNAVAILABLE", "it reached the server that is no WebSocket");
    assert_eq!(moving.asked.load(Ordering::Relaxed), 1);
    assert_eq!(failed(within(socket.call_as(ToolCaller::Remote, "net", connect)).await), "DENIED");

    assert!(secret.asked().is_empty(), "{:?}", secret.asked());
    assert_eq!(outside.asked().len(), 4);
    // The positive control: for the user at this machine the secret is there.
    let (user, _) = world(&["127.0.0.1"]);
    assert_eq!(data(&user, request("/")).await["text"], "secret");
}

/// Never answers.
struct Silent;

impl Lookup for Silent {
    fn lookup(&self, _: String) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn names_and_handshakes_that_never_come_are_not_waited_for() {
    let world = World::with_lookup(|_| {}, Arc::new(Silent));
    let with = |action: &str, more: Value| {
        let mut arguments = json!({"action": action, "timeout": 0.3});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    for arguments in [
        with("dns", json!({"host": "slow.test"})),
        with("request", json!({"url": "http://slow.test/"})),
        with("download", json!({"url": "http://slow.test/", "output": "x"})),
        with("websocket", json!({"url": "ws://slow.test/"})),
    ] {
        assert_eq!(within(world.error("net", arguments.clone())).await.0, "TIMEOUT", "{arguments}");
    }
    let silent = Site::start(|_| Reply::Stall(Vec::new())).await;
    let socket = with("websocket", json!({"url": silent.url("/").replace("http", "ws")}));
    assert_eq!(within(World::new().error("net", socket)).await.0, "TIMEOUT");
    // TLS that never begins, either.
    for url in [silent.url("/").replace("http", "https"), silent.url("/").replace("http", "wss")] {
        let action = if url.starts_with("wss") { "websocket" } else { "request" };
        let arguments = with(action, json!({ "url": url }));
        assert_eq!(within(World::new().error("net", arguments)).await.0, "TIMEOUT", "{url}");
    }
}

#[tokio::test]
async fn a_second_download_to_the_same_place_is_told_and_the_first_goes_on() {
    let site = Site::start(|asked| match asked.path().as_str() {
        "/slow" => Reply::Stall([head("content-length: 10\r\netag: \"1\"\r\n"), b"abc".to_vec()].concat()),
        _ => Reply::ok("text/plain", "other"),
    })
    .await;
    let world = World::with(|options| options.net.idle = Duration::from_secs(2));
    let get = |path: &str| json!({"action": "download", "url": site.url(path), "output": "file"});
    let first = world.error("net", get("/slow"));
    let second = async {
        crate::world::eventually("the beginning", || world.path("file.part").exists()).await;
        world.error("net", get("/fast")).await
    };
    let (first, second) = within(async { tokio::join!(first, second) }).await;
    assert_eq!(second.0, "CONFLICT", "{}", second.1);
    assert_eq!(first.0, "TIMEOUT", "{}", first.1);
    assert_eq!(std::fs::read(world.path("file.part")).unwrap(), b"abc");
    // Another file in the same place begins anew.
    within(data(&world, get("/fast"))).await;
    assert_eq!(std::fs::read(world.path("file")).unwrap(), b"other");
    assert_eq!(left_behind(&world), ["file"]);
}
