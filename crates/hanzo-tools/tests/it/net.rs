//! `net`: requests, redirections, guards, downloads, WebSockets, and servers that mean no good.

use std::io::Write as _;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hanzo_net::Url;
use hanzo_net::guard::Lookup;
use hanzo_protocol::BoxFuture;
use hanzo_protocol::item::Taint;
use hanzo_protocol::primitives::ContentHash;
use hanzo_protocol::tool::{Effect, Place, ReachConfinement, ToolCaller, ToolResult};
use hanzo_tools::net::Browser;
use serde_json::{Value, json};

use crate::site::{Reply, Site};
use crate::world::{Shown, World};

pub async fn data(world: &World, arguments: Value) -> Value {
    world.ok("net", arguments).await
}

fn error(result: ToolResult) -> (String, String) {
    assert!(result.is_error, "{}", result.output);
    let error = result.envelope.unwrap()["error"].clone();
    (error["code"].as_str().unwrap().to_owned(), error["message"].as_str().unwrap().to_owned())
}

pub fn code(result: ToolResult) -> String {
    error(result).0
}

/// Every name is at this address.
struct Everywhere(IpAddr);

impl Lookup for Everywhere {
    fn lookup(&self, _: String) -> Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>> {
        let address = self.0;
        Box::pin(async move { Ok(vec![address]) })
    }
}

fn loopback() -> Arc<Everywhere> {
    Arc::new(Everywhere(IpAddr::from([127, 0, 0, 1])))
}

#[tokio::test]
async fn a_request_carries_what_was_asked_and_the_answer_is_marked_as_foreign() {
    let site = Site::start(|asked| match asked.path().as_str() {
        "/json" => {
            Reply::with(201, &[("content-type", "application/json"), ("etag", "\"7\"")], asked.body.clone())
        }
        _ => Reply::ok("text/plain; charset=iso-8859-1", b"h\xe4h"),
    })
    .await;
    let world = World::new();
    let result = world
        .call(
            "net",
            json!({"action": "request", "url": site.url("/json"), "method": "POST", "body": "{\"a\":1}", "headers": {"X-Mine": "yes"}}),
        )
        .await;
    assert_eq!(result.taint, Some(Taint::Network));
    let got = result.envelope.unwrap()["data"].clone();
    assert_eq!((&got["status"], &got["text"]), (&json!(201), &json!("{\"a\":1}")));
    assert_eq!(got["headers"], json!({"etag": "\"7\""}));
    let asked = &site.asked()[0];
    assert_eq!(asked.line(), "POST /json");
    assert_eq!(asked.header("content-type").as_deref(), Some("application/json"));
    assert_eq!(asked.header("x-mine").as_deref(), Some("yes"));
    assert!(asked.header("user-agent").unwrap().starts_with("hanzo-dev/"));

    let got = data(&world, json!({"action": "request", "url": site.url("/"), "show_headers": "all"})).await;
    assert_eq!(got["text"], "häh");
    assert_eq!(got["headers"]["connection"], "close");
    // A status that is no success is an answer, not a failure of the tool.
    let missing = Site::start(|_| Reply::with(404, &[], "no")).await;
    assert_eq!(data(&world, json!({"action": "request", "url": missing.url("/")})).await["status"], 404);
}

#[tokio::test]
async fn pages_become_markdown_when_asked_and_long_text_is_behind_a_ref() {
    let long = "<p>word</p>".repeat(20_000);
    let site = Site::start(move |asked| match asked.path().as_str() {
        "/long" => Reply::ok("text/html", &long),
        _ => Reply::ok("text/html", "<title>T</title><h1>Hi</h1><p>a <a href='/b'>link</a></p>"),
    })
    .await;
    let world = World::new();
    let page = data(&world, json!({"action": "request", "url": site.url("/a"), "as": "markdown"})).await;
    assert_eq!(page["title"], "T");
    assert_eq!(page["text"], format!("# Hi\n\na [link]({})\n", site.url("/b")));
    let raw = data(&world, json!({"action": "request", "url": site.url("/a")})).await;
    assert!(raw["text"].as_str().unwrap().starts_with("<title>"));
    let fetched = world.ok("web_fetch", json!({"url": site.url("/a"), "prompt": "what is it"})).await;
    assert_eq!(fetched["text"], page["text"], "the tool of that name reads pages");

    let long = data(&world, json!({"action": "request", "url": site.url("/long"), "as": "markdown"})).await;
    assert_eq!(long["text"].as_str().unwrap().len(), 40_000);
    let whole = world.call("fs", json!({"action": "read", "path": long["ref"]})).await;
    assert_eq!(whole.taint, Some(Taint::Network), "what is behind the ref is as foreign as before");
    assert_eq!(whole.envelope.unwrap()["data"]["size"], 20_000 * 6 - 1);
}

#[tokio::test]
async fn what_is_no_text_is_kept_behind_a_ref() {
    let bytes = [b"\x89PNG\r\n\x1a\n".as_slice(), &[0, 1, 2]].concat();
    let expected = ContentHash::of(&bytes);
    let site = Site::start(move |_| Reply::ok("image/png", &bytes)).await;
    let world = World::new();
    let result = world.call("net", json!({"action": "request", "url": site.url("/")})).await;
    assert_eq!(result.attachments.len(), 1);
    let got = result.envelope.unwrap()["data"].clone();
    assert_eq!(got["ref"], format!("blob:{expected}"));
    assert_eq!(got["text"], Value::Null);
}

#[tokio::test]
async fn redirections_are_followed_and_credentials_stay_with_their_origin() {
    let other = Site::start(|_| Reply::ok("text/plain", "there")).await;
    let away = other.url("/landed");
    let first = Site::start(move |asked| match asked.path().as_str() {
        "/near" => Reply::redirect(302, "/far"),
        "/far" => Reply::redirect(301, &away),
        "/keep" => Reply::redirect(307, &away),
        "/file" => Reply::redirect(302, "file:///etc/passwd"),
        _ => Reply::ok("text/plain", "here"),
    })
    .await;
    let world = World::new();
    let secrets =
        json!({"Authorization": "Bearer s3cret", "Cookie": "c", "X-Api-Key": "k", "Accept": "text/plain"});
    let got = data(&world, json!({"action": "request", "url": first.url("/near"), "method": "POST", "body": "b", "headers": secrets})).await;
    assert_eq!(got["text"], "there");
    assert_eq!(got["url"], other.url("/landed"));
    assert_eq!(got["redirects"], json!([first.url("/far"), other.url("/landed")]));
    assert_eq!(first.asked()[1].header("authorization").as_deref(), Some("Bearer s3cret"), "the same origin");
    let there = &other.asked()[0];
    assert_eq!(there.line(), "GET /landed");
    assert_eq!(there.header("accept").as_deref(), Some("text/plain"));
    assert!(
        !there.head.contains("s3cret")
            && there.header("cookie").is_none()
            && there.header("x-api-key").is_none()
    );

    // A body is not handed on to somebody else.
    let held =
        data(&world, json!({"action": "request", "url": first.url("/keep"), "method": "POST", "body": "b"}))
            .await;
    assert_eq!(held["status"], 307);
    assert!(held["note"].as_str().unwrap().contains("another origin"), "{held}");
    for (policy, path, status) in
        [("none", "/near", 302), ("same_origin", "/far", 301), ("follow", "/file", 302)]
    {
        let got =
            data(&world, json!({"action": "request", "url": first.url(path), "redirects": policy})).await;
        assert_eq!(got["status"], status, "{policy} {path}");
        assert!(got["note"].is_string());
    }
    assert_eq!(other.asked().len(), 1);
}

#[tokio::test]
async fn redirections_in_circles_and_without_end_are_ended() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let site = Site::start(move |asked| {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        match asked.path().as_str() {
            "/a" => Reply::redirect(302, "/b"),
            "/b" => Reply::redirect(302, "/a"),
            "/self" => Reply::redirect(302, "/self"),
            _ => Reply::redirect(302, &format!("/on/{number}")),
        }
    })
    .await;
    let world = World::new();
    for (path, words, most) in [("/a", "circle", 2), ("/self", "circle", 1), ("/on", "without an end", 11)] {
        count.store(0, Ordering::Relaxed);
        let (code, message) = world.error("net", json!({"action": "request", "url": site.url(path)})).await;
        assert_eq!(code, "UNAVAILABLE");
        assert!(message.contains(words), "{message}");
        assert!(count.load(Ordering::Relaxed) <= most, "{path}: {count:?}");
    }
}

#[tokio::test]
async fn remote_callers_reach_nothing_private_by_any_name() {
    let site = Site::start(|_| Reply::ok("text/plain", "secret")).await;
    let port = site.address.port();
    let world = World::with_lookup(|_| {}, loopback());
    let remote = |arguments: Value| world.call_as(ToolCaller::Remote, "net", arguments);
    for host in [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "rebind.test",
        "0.0.0.0",
        "169.254.169.254",
        "10.1.2.3",
        "100.64.0.1",
    ] {
        let url = format!("http://{host}:{port}/");
        let refused = error(remote(json!({"action": "request", "url": url})).await);
        assert_eq!(refused.0, "DENIED", "{url}: {}", refused.1);
        let refused = code(remote(json!({"action": "download", "url": url, "output": "x"})).await);
        assert_eq!(refused, "DENIED", "{url}");
        let refused =
            code(remote(json!({"action": "websocket", "url": format!("ws://{host}:{port}/")})).await);
        assert_eq!(refused, "DENIED", "{url}");
    }
    assert_eq!(code(remote(json!({"action": "dns", "host": "rebind.test"})).await), "DENIED");
    assert_eq!(code(remote(json!({"action": "open", "url": site.url("/")})).await), "DENIED");
    assert!(site.asked().is_empty(), "nothing arrived: {:?}", site.asked());
    assert!(!world.path("x").exists());
    // The positive control: the same name and address, for the user at this machine.
    let url = format!("http://rebind.test:{port}/");
    assert_eq!(data(&world, json!({"action": "request", "url": url})).await["text"], "secret");
}

#[tokio::test]
async fn each_redirection_of_a_remote_caller_is_checked_again() {
    let inner = Site::start(|_| Reply::ok("text/plain", "secret")).await;
    let (port, address) = (inner.address.port(), inner.url("/"));
    let outer = Site::start(move |asked| match asked.path().as_str() {
        "/name" => Reply::redirect(302, &format!("http://inner.test:{port}/")),
        "/address" => Reply::redirect(302, &address),
        _ => Reply::ok("text/plain", "public"),
    })
    .await;
    // The first host is an exception, what it leads to is not.
    let world =
        World::with_lookup(|options| options.net.private_hosts = vec!["outer.test".into()], loopback());
    let at = |path: &str| json!({"action": "request", "url": format!("http://outer.test:{}{path}", outer.address.port())});
    let result = world.call_as(ToolCaller::Remote, "net", at("/")).await;
    assert!(result.output.contains("public"), "{}", result.output);
    for path in ["/name", "/address"] {
        let refused = error(world.call_as(ToolCaller::Remote, "net", at(path)).await);
        assert_eq!(refused.0, "DENIED", "{path}: {}", refused.1);
    }
    assert!(inner.asked().is_empty());
}

#[tokio::test]
async fn small_answers_that_become_large_end_at_the_bound() {
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..20 {
        bomb.write_all(&vec![b'a'; 1 << 20]).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    let site = Site::start(move |_| {
        Reply::with(200, &[("content-type", "text/plain"), ("content-encoding", "gzip")], &bomb)
    })
    .await;
    let world = World::new();
    let started = Instant::now();
    let got = data(&world, json!({"action": "request", "url": site.url("/"), "max_bytes": 100_000})).await;
    assert_eq!(got["size"], 100_000);
    assert!(got["note"].as_str().unwrap().contains("max_bytes"), "{got}");
    assert!(started.elapsed() < Duration::from_secs(10));
    // A stream without an end, too.
    let endless = Site::start(|_| {
        let mut reply = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_vec();
        reply.extend(vec![b'x'; 300_000]);
        Reply::Stall(reply)
    })
    .await;
    let got = data(&world, json!({"action": "request", "url": endless.url("/"), "max_bytes": 250_000})).await;
    assert_eq!(got["size"], 250_000);
}

#[tokio::test]
async fn servers_that_stall_drip_or_talk_nonsense_are_left() {
    let site = Site::start(|asked| match asked.path().as_str() {
        "/silent" => Reply::Stall(Vec::new()),
        "/half" => Reply::Stall(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc".to_vec()),
        "/drip" => Reply::Drip(
            b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n".to_vec(),
            b'x',
            Duration::from_millis(50),
        ),
        "/drip-head" => Reply::Drip(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), b'x', Duration::from_millis(50)),
        "/cut" => Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc".to_vec()),
        "/nonsense" => Reply::Bytes(b"\x16\x03\x01 what\r\n\r\n".to_vec()),
        "/headers" => {
            let mut reply = b"HTTP/1.1 200 OK\r\n".to_vec();
            for number in 0..20_000 {
                reply.extend(format!("x-{number}: {}\r\n", "y".repeat(100)).into_bytes());
            }
            reply.extend(b"\r\nbody");
            Reply::Bytes(reply)
        }
        "/gzip" => Reply::with(200, &[("content-encoding", "gzip")], "this is not gzip"),
        _ => Reply::ok("text/plain", b"\xff\xfe\xfd bad"),
    })
    .await;
    let world = World::with(|options| options.net.idle = Duration::from_millis(400));
    for (path, expected) in [
        ("/silent", "TIMEOUT"),
        ("/half", "TIMEOUT"),
        ("/drip", "TIMEOUT"),
        ("/drip-head", "TIMEOUT"),
        ("/cut", "UNAVAILABLE"),
        ("/nonsense", "UNAVAILABLE"),
        ("/headers", "UNAVAILABLE"),
        ("/gzip", "UNAVAILABLE"),
    ] {
        let started = Instant::now();
        let (code, message) =
            world.error("net", json!({"action": "request", "url": site.url(path), "timeout": 1.5})).await;
        assert_eq!(code, expected, "{path}: {message}");
        assert!(started.elapsed() < Duration::from_secs(15), "{path}: {:?}", started.elapsed());
    }
    let (_, message) = world.error("net", json!({"action": "request", "url": site.url("/half")})).await;
    assert!(message.contains("stalled"), "{message}");
    let odd = data(&world, json!({"action": "request", "url": site.url("/")})).await;
    assert!(odd["note"].as_str().is_some_and(|note| note.contains("replaced")), "{odd}");
    // Nobody listens.
    let (code, message) =
        world.error("net", json!({"action": "request", "url": "http://127.0.0.1:1/"})).await;
    assert_eq!(code, "UNAVAILABLE", "{message}");
}

#[tokio::test]
async fn bad_arguments_are_answered_with_what_is_wrong() {
    let world = World::new();
    for arguments in [
        json!({"action": "request", "url": "example.com"}),
        json!({"action": "request", "url": "file:///etc/passwd"}),
        json!({"action": "request", "url": "http://"}),
        json!({"action": "request", "url": "http://a/", "headers": {"Host": "b"}}),
        json!({"action": "request", "url": "http://a/", "headers": {"X": "a\r\nY: b"}}),
        json!({"action": "request", "url": "http://a/", "method": "SMASH"}),
        json!({"action": "request", "url": "http://a/", "timeout": 0}),
        json!({"action": "download", "url": "http://a/", "output": "x", "sha256": "beef"}),
        json!({"action": "websocket"}),
        json!({"action": "websocket", "url": "http://a/"}),
        json!({"action": "dns", "host": "http://a/"}),
    ] {
        let (code, message) = world.error("net", arguments.clone()).await;
        assert_eq!(code, "INVALID_ARGUMENTS", "{arguments}: {message}");
    }
    assert_eq!(world.error("net", json!({"action": "websocket", "ws_id": "ws_9"})).await.0, "NOT_FOUND");
    let inspect =
        json!({"action": "request", "url": "http://127.0.0.1:1/", "method": "DELETE", "intent": "inspect"});
    assert_eq!(world.error("net", inspect).await.0, "DENIED");
}

#[tokio::test]
async fn the_gate_is_told_the_effect_the_file_and_the_way_out() {
    let world = World::new();
    let reach = |arguments: Value| world.reach("net", &arguments);
    for action in ["request", "download", "open", "websocket", "dns"] {
        let reached = reach(json!({"action": action, "url": "http://a/", "output": "x"}));
        assert_eq!((reached.effect, reached.action), (Effect::Network, format!("net.{action}")));
    }
    let saved = reach(json!({"action": "download", "url": "http://a/", "output": "d/x"}));
    assert_eq!((saved.paths[0].real.clone(), saved.paths[0].place), (world.path("d/x"), Place::Inside));
    let out = reach(json!({"action": "download", "url": "http://a/", "output": "/etc/x"}));
    assert_eq!(out.paths[0].place, Place::Outside);
    assert_eq!(reach(json!({"action": "open", "url": "http://a/"})).confinement, ReachConfinement::Outside);
    assert_eq!(reach(json!({"action": "request", "url": "http://a/"})).confinement, ReachConfinement::Inside);
}

#[tokio::test]
async fn what_was_brought_in_is_still_foreign_when_the_thread_is_opened_again() {
    let site = Site::start(|asked| match asked.path().as_str() {
        "/big" => Reply::ok("text/plain", "far away\n".repeat(30_000)),
        _ => Reply::ok("text/plain", "from elsewhere"),
    })
    .await;
    let mut world = World::new();
    let saved = json!({"action": "download", "url": site.url("/f"), "output": "f.txt"});
    let kept = [
        ("net", world.call("net", saved).await),
        ("net.request", world.call("net", json!({"action": "request", "url": site.url("/big")})).await),
    ];
    world.write("own.txt", "our own, from here");
    world.reopen();
    let search = json!({"action": "search_text", "pattern": "from"});
    assert_eq!(world.call("fs", search.clone()).await.taint, None, "nothing is known yet");
    for (name, result) in &kept {
        world.tools().get(name).unwrap().remind(result);
    }
    assert_eq!(world.call("fs", search).await.taint, Some(Taint::Network));
    let mut foreign = vec!["f.txt".to_owned()];
    foreign.extend(kept[1].1.envelope.as_ref().unwrap()["data"]["ref"].as_str().map(str::to_owned));
    assert_eq!(foreign.len(), 2, "{:?}", kept[1].1.envelope);
    for path in foreign {
        let read = world.call("fs", json!({"action": "read", "path": path})).await;
        assert_eq!(read.taint, Some(Taint::Network), "{}", read.output);
    }
    assert_eq!(world.call("fs", json!({"action": "read", "path": "own.txt"})).await.taint, None);
}

#[tokio::test]
async fn a_download_is_saved_whole_or_not_at_all() {
    let content = vec![b'z'; 300_000];
    let hash = ContentHash::of(&content);
    let site = Site::start({
        let content = content.clone();
        move |asked| match asked.path().as_str() {
            "/gone" => Reply::with(404, &[], "no"),
            "/cut" => Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc".to_vec()),
            _ => Reply::ok("application/zip", &content),
        }
    })
    .await;
    let world = World::new();
    let shown = Arc::new(Shown::default());
    let get =
        |path: &str, output: &str| json!({"action": "download", "url": site.url(path), "output": output});
    let result = world.call_shown("net", get("/f", "sub/dir/f.zip"), Some(shown.clone())).await;
    assert_eq!(result.taint, Some(Taint::Network), "{}", result.output);
    let got = result.envelope.unwrap()["data"].clone();
    assert_eq!((&got["hash"], &got["size"]), (&json!(hash.as_str()), &json!(300_000)));
    assert_eq!(std::fs::read(world.path("sub/dir/f.zip")).unwrap(), content);
    assert!(shown.0.lock().unwrap().concat().contains("300000 of 300000 bytes (100 %)"), "{:?}", shown.0);
    let read = world.call("fs", json!({"action": "read", "path": "sub/dir/f.zip"})).await;
    assert_eq!(read.taint, Some(Taint::Network), "a downloaded file is foreign when it is read");
    world.write("own.txt", "own");
    for (pattern, taint) in [("zzz", Some(Taint::Network)), ("own", None)] {
        let found = world.call("fs", json!({"action": "search_text", "pattern": pattern})).await;
        assert_eq!(found.taint, taint, "{}", found.output);
    }
    std::fs::remove_file(world.path("own.txt")).unwrap();

    assert_eq!(world.error("net", get("/f", "sub/dir/f.zip")).await.0, "ALREADY_EXISTS");
    let mut again = get("/f", "sub/dir/f.zip");
    again["overwrite"] = json!(true);
    data(&world, again).await;
    assert_eq!(world.error("net", get("/gone", "g")).await.0, "NOT_FOUND");
    assert_eq!(world.error("net", get("/cut", "c")).await.0, "UNAVAILABLE");
    let mut wrong = get("/f", "w");
    wrong["sha256"] = json!("0".repeat(64));
    assert_eq!(world.error("net", wrong).await.0, "CONFLICT");
    let mut large = get("/f", "l");
    large["max_bytes"] = json!(1000);
    assert_eq!(world.error("net", large).await.0, "TOO_LARGE");
    let mut right = get("/f", "r");
    right["sha256"] = json!(hash.as_str().to_uppercase().replace("SHA256", "sha256"));
    data(&world, right).await;
    let names = |directory: &str| {
        let entries = std::fs::read_dir(world.path(directory)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names("."), ["r", "sub"], "what failed left nothing");
    assert_eq!(names("sub/dir"), ["f.zip"]);
    // Neither the outside nor what the sandbox protects is written.
    for output in ["/etc/hanzo-test", "../out", ".git/hooks/post-checkout"] {
        std::fs::create_dir_all(world.path(".git/hooks")).unwrap();
        let (code, message) = world.error("net", get("/f", output)).await;
        assert_eq!(code, "SANDBOX_DENIED", "{output}: {message}");
    }
}

#[tokio::test]
async fn a_download_that_breaks_off_goes_on_where_it_ended() {
    let content: Vec<u8> = (0..200_000_u32).map(|number| (number % 251) as u8).collect();
    let version = Arc::new(AtomicUsize::new(1));
    let served = (content.clone(), Arc::clone(&version));
    let site = Site::start(move |asked| {
        let (content, version) = &served;
        let tag = format!("\"v{}\"", version.load(Ordering::Relaxed));
        let from = asked
            .header("range")
            .map(|range| range.trim_start_matches("bytes=").trim_end_matches('-').parse::<usize>().unwrap());
        match from {
            Some(from) if asked.header("if-range").as_ref() == Some(&tag) => {
                let range = format!("bytes {from}-{}/{}", content.len() - 1, content.len());
                Reply::with(206, &[("etag", &tag), ("content-range", &range)], &content[from..])
            }
            // The first answer breaks off in the middle.
            None if version.load(Ordering::Relaxed) == 1 => {
                let head =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\netag: {tag}\r\n\r\n", content.len());
                Reply::Bytes([head.as_bytes(), &content[..120_000]].concat())
            }
            _ => Reply::with(200, &[("etag", &tag)], &content[..50_000]),
        }
    })
    .await;
    let world = World::new();
    let get = |output: &str| json!({"action": "download", "url": site.url("/f"), "output": output});
    let (code, message) = world.error("net", get("f.bin")).await;
    assert_eq!(code, "UNAVAILABLE");
    assert!(message.contains("goes on from there") && world.path("f.bin.part").exists(), "{message}");
    assert!(!world.path("f.bin").exists());
    let got = data(&world, get("f.bin")).await;
    let resumed = got["resumed_at"].as_u64().unwrap();
    assert!(resumed > 0 && resumed <= 120_000, "{got}");
    assert_eq!(got["hash"], ContentHash::of(&content).as_str());
    assert_eq!(std::fs::read(world.path("f.bin")).unwrap(), content);
    assert!(!world.path("f.bin.part").exists());
    assert_eq!(site.asked()[1].header("range"), Some(format!("bytes={resumed}-")));

    // Another version in the meantime: the old beginning is not put before its end.
    world.error("net", get("g.bin")).await;
    version.store(2, Ordering::Relaxed);
    let got = data(&world, get("g.bin")).await;
    assert_eq!((&got["size"], &got["resumed_at"]), (&json!(50_000), &Value::Null));
    assert_eq!(std::fs::read(world.path("g.bin")).unwrap(), content[..50_000]);
    // Somebody's own file of that name is not taken for ours.
    world.write("h.bin.part", "mine");
    assert_eq!(world.error("net", get("h.bin")).await.0, "ALREADY_EXISTS");
    assert_eq!(std::fs::read(world.path("h.bin.part")).unwrap(), b"mine");
}

#[tokio::test]
async fn names_are_looked_up() {
    let world = World::with_lookup(|_| {}, Arc::new(Everywhere("93.184.216.34".parse().unwrap())));
    let got = data(&world, json!({"action": "dns", "host": "example.com"})).await;
    assert_eq!(got["addresses"], json!([{"address": "93.184.216.34", "reach": "public"}]));
    let system = World::new();
    let got = system.ok("dns_lookup", json!({"hostname": "localhost"})).await;
    assert_eq!(got["addresses"][0]["reach"], "loopback", "{got}");
}

#[tokio::test]
async fn where_nobody_sits_no_page_is_opened() {
    let alone = World::new();
    let (code, message) = alone.error("net", json!({"action": "open", "url": "http://a.test/"})).await;
    assert_eq!(code, "UNSUPPORTED");
    assert!(message.contains("http://a.test/"), "{message}");
    for url in ["file:///etc/passwd", "javascript:alert(1)", "--help"] {
        assert_eq!(alone.error("net", json!({"action": "open", "url": url})).await.0, "INVALID_ARGUMENTS");
    }
}

/// Remembers the pages it was to open.
#[derive(Default)]
struct Remembering(Mutex<Vec<String>>);

impl Browser for Remembering {
    fn open<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<(), String>> {
        let refused = url.path() == "/no";
        self.0.lock().unwrap().push(url.to_string());
        Box::pin(async move { if refused { Err("it is broken".into()) } else { Ok(()) } })
    }
}

#[tokio::test]
async fn a_page_goes_to_the_browser_of_whoever_is_there() {
    let browser = Arc::new(Remembering::default());
    let world = World::with_browser(browser.clone());
    let opened = data(&world, json!({"action": "open", "url": "http://me:secret@a.test/b c"})).await;
    assert_eq!(opened["opened"], "http://a.test/b%20c");
    let (code, message) = world.error("net", json!({"action": "open", "url": "http://a.test/no"})).await;
    assert_eq!(code, "UNAVAILABLE");
    assert!(message.contains("it is broken") && message.contains("tell the user"), "{message}");
    let remote =
        world.call_as(ToolCaller::Remote, "net", json!({"action": "open", "url": "http://a.test/"})).await;
    assert_eq!(error(remote).0, "DENIED");
    assert_eq!(*browser.0.lock().unwrap(), ["http://me:secret@a.test/b%20c", "http://a.test/no"]);
}
