//! `hanzo-dev mcp --http` and `mcp --with-servers` as their owner and their clients see them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hanzo_mcp::client::hip10::{self, Options};
use serde_json::{Value, json};

use crate::mcp_server::Client;
use crate::support::World;

const TOKEN: &str = "correct-horse";

/// A file for tests of TLS.
fn pem(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../hanzo-mcp/tests/tls").join(name)
}

/// The program, serving until it is dropped.
struct Site {
    child: Child,
    address: String,
    said: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn open(world: &World, arguments: &[&str]) -> Self {
        let mut all = vec!["mcp", "--http", "127.0.0.1:0"];
        all.extend(arguments);
        let mut command = world.command(&all);
        command
            .env("HANZO_MCP_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = Arc::<Mutex<Vec<String>>>::default();
        let (heard, stderr) = (Arc::clone(&said), BufReader::new(child.stderr.take().unwrap()));
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| heard.lock().unwrap().push(line));
        });
        let mut site = Self { child, address: String::new(), said };
        let line = site.wait_for("serving MCP at ");
        line.rsplit(' ').next().unwrap().clone_into(&mut site.address);
        site
    }

    /// The first line with `words` on standard error.
    fn wait_for(&self, words: &str) -> String {
        let end = Instant::now() + Duration::from_secs(30);
        while Instant::now() < end {
            if let Some(line) = self.said.lock().unwrap().iter().find(|line| line.contains(words)) {
                return line.clone();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("no `{words}` in {:?}", self.said.lock().unwrap());
    }

    fn socket(&self) -> Options {
        let address = self.address.replace("http", "ws").replace("127.0.0.1", "localhost");
        Options::new(address).authority(pem("ca.pem"))
    }

    /// What is at a path: the status and the body.
    fn get(&self, token: &str, path: &str) -> (String, String) {
        let host = self.address.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().to_owned(), body.to_owned())
    }

    /// One call by HTTP: the status and what was answered. `None` without curl.
    fn curl(&self, token: &str, tool: &str, arguments: &Value) -> Option<(String, String)> {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "curl", "version": "0"}, "io.modelcontextprotocol/clientCapabilities": {}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": meta}});
        let done = Command::new("curl")
            .args(["-sS", "-w", "\n%{http_code}", "--cacert"])
            .arg(pem("ca.pem"))
            .args(["-H", &format!("authorization: Bearer {token}"), "-H", "content-type: application/json"])
            .args([
                "-H",
                "accept: application/json, text/event-stream",
                "-H",
                "mcp-protocol-version: 2026-07-28",
            ])
            .args(["-H", "mcp-method: tools/call", "-H", &format!("mcp-name: {tool}")])
            .args(["-d", &call.to_string(), &self.address.replace("127.0.0.1", "localhost")])
            .output()
            .ok()?;
        let text = String::from_utf8(done.stdout).unwrap();
        let (body, status) = text.rsplit_once('\n').unwrap_or_else(|| panic!("{:?}", done.stderr));
        Some((status.to_owned(), body.to_owned()))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn in_a_runtime<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn tls() -> [String; 4] {
    let path = |name| pem(name).display().to_string();
    ["--tls-cert".into(), path("server.pem"), "--tls-key".into(), path("server.key")]
}

#[test]
fn calls_over_tls_are_in_the_audit_and_those_without_the_token_never_happened() {
    let world = World::new();
    world.write("project/a.txt", "hello\n");
    let tls = tls();
    let site = Site::open(&world, &tls.each_ref().map(String::as_str));
    assert!(site.address.starts_with("https://127.0.0.1:"), "{}", site.address);
    let read = || json!({"action": "read", "path": "a.txt"});
    let audit = || -> Vec<Value> {
        let text = world.run(&["audit", "--json"]).ok();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    // What only reads is answered before its entry is on the disk.
    let reads = |expected: usize| {
        let end = Instant::now() + Duration::from_secs(20);
        while audit().iter().filter(|entry| entry["action"] == "read").count() != expected {
            assert!(Instant::now() < end, "{expected} reads in {:?}", audit());
        }
    };

    let refused =
        in_a_runtime(hip10::Client::connect_with(site.socket().token("wrong-horse"))).err().unwrap();
    assert!(refused.to_string().contains("401"), "{refused}");
    let curl = site.curl("wrong-horse", "fs", &read());
    if let Some((status, body)) = &curl {
        assert_eq!((status.as_str(), body.as_str()), ("401", "a bearer token is needed"));
    }
    assert_eq!(audit(), Vec::<Value>::new(), "nobody asked the gate");
    let line = site.wait_for("refused a caller at 127.0.0.1: the bearer token is missing or wrong");
    assert!(line.starts_with("warning: 20"), "when it was is in the line: {line}");

    in_a_runtime(async {
        let client = hip10::Client::connect_with(site.socket().token(TOKEN)).await.unwrap();
        let outcome = client.execute_tool("fs", read(), None).await.unwrap();
        assert_eq!(outcome.structured.unwrap()["data"]["text"], "hello\n");
    });
    reads(1);
    match site.curl(TOKEN, "fs", &read()) {
        Some((status, body)) => {
            assert!(status == "200" && body.contains("hello"), "{status}: {body}");
            reads(2);
        }
        None => hanzo_testkit::not_run("curl is not installed, so nothing was called over HTTPS"),
    }
    let said = site.said.lock().unwrap().concat();
    assert!(!said.contains(TOKEN) && !said.contains("wrong-horse"), "{said}");
}

#[test]
fn what_is_wrong_with_the_options_is_said_before_anything_is_served() {
    let world = World::new();
    let path = |name: &str| pem(name).display().to_string();
    let (cert, key, other, none) =
        (path("server.pem"), path("server.key"), path("other.key"), path("nothing"));
    let start = ["mcp", "--http", "127.0.0.1:0"];
    for (more, says) in [
        (vec!["--tls-cert", &none, "--tls-key", &key], "cannot read the certificate"),
        (vec!["--tls-cert", &cert, "--tls-key", &other], "does not belong to the certificate"),
        (vec!["--tls-cert", &key, "--tls-key", &key], "there is no certificate in"),
        (vec!["--tls-cert", &cert], "--tls-key"),
        (vec!["--tls-key", &key], "--tls-cert"),
        (vec!["--rate-limit", "fast"], "hint: write `600/min`"),
    ] {
        let ran = world.run(&[&start[..], &more].concat());
        assert!(ran.code != 0 && ran.stderr.contains(says), "{more:?}: {ran:?}");
    }
    let ran = world.run(&["mcp", "--tls-cert", &cert, "--tls-key", &key]);
    assert!(ran.code != 0 && ran.stderr.contains("--http"), "{ran:?}");
    let ran = world.run(&["mcp", "--http", "0.0.0.0:0", "--tls-cert", &cert, "--tls-key", &key]);
    assert!(ran.code != 0 && ran.stderr.contains("no token is set"), "TLS is not a token: {ran:?}");
}

#[test]
fn a_client_that_asks_too_often_is_told_when_to_ask_again() {
    let world = World::new();
    let site = Site::open(&world, &["--rate-limit", "4/h"]);
    in_a_runtime(async {
        // The connection and the greeting are two of them.
        let client = hip10::Client::connect_with(site.socket().token(TOKEN)).await.unwrap();
        for _ in 0..2 {
            client.request("ping", json!({})).await.unwrap();
        }
        let hip10::Error::Refused { code, message, data } =
            client.request("ping", json!({})).await.unwrap_err()
        else {
            panic!("the server says no");
        };
        assert!(code == -32_029 && message.contains("4/h") && message.contains("hint:"), "{message}");
        assert!(data.unwrap()["retry_after_ms"].as_u64().unwrap() > 3_000_000);
    });
    site.wait_for("too many requests");
}

/// A server in the shell that has another tool, prompt and resource once `grow` was called.
const GROWING: &str = r#"
n=1
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  more() { if [ $n = 2 ]; then printf '%s' "$1"; fi; }
  case "$line" in
    *'"method":"initialize"'*)
      say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}},"serverInfo":{"name":"sh","version":"1"}}';;
    *'"method":"tools/list"'*)
      say '{"tools":[{"name":"grow","inputSchema":{"type":"object"}}'"$(more ',{"name":"new","inputSchema":{"type":"object"}}')"']}';;
    *'"method":"prompts/list"'*) say '{"prompts":['"$(more '{"name":"greet","description":"Greets"}')"']}';;
    *'"method":"resources/list"'*) say '{"resources":['"$(more '{"uri":"notes://one","name":"one","mimeType":"text/markdown"}')"']}';;
    *'"method":"resources/templates/list"'*) say '{"resourceTemplates":[]}';;
    *'"method":"resources/read"'*) say '{"contents":[{"uri":"notes://one","text":"what is noted"}]}';;
    *'"method":"tools/call"'*)
      say '{"content":[{"type":"text","text":"done"}]}'
      if [ $n = 1 ]; then
        n=2
        for list in tools prompts resources; do printf '{"jsonrpc":"2.0","method":"notifications/%s/list_changed"}\n' $list; done
      fi;;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
  esac
done
"#;

fn resources(client: &mut Client) -> Vec<Value> {
    let mut all = Vec::new();
    let mut params = json!({});
    loop {
        let page = client.ask("resources/list", &params)["result"].clone();
        all.extend(page["resources"].as_array().unwrap().iter().cloned());
        if page["nextCursor"].is_null() {
            return all;
        }
        params = json!({"cursor": page["nextCursor"]});
    }
}

#[test]
fn a_client_hears_of_what_other_servers_offer_later_and_can_use_it() {
    let world = World::new();
    world.write("project/server.sh", GROWING);
    world.user("[permissions]\nallow = [\"Mcp(s/grow)\", \"Mcp(s/new)\", \"Mcp(s/resources/read)\"]\n[mcp_servers.s]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n");
    let mut client = Client::of(world.command(&["mcp", "--with-servers"]));
    let greeting = client.greet(&json!({}));
    assert_eq!(greeting["result"]["capabilities"]["prompts"]["listChanged"], true, "{greeting}");
    let listed = client.ask("tools/list", &json!({})).to_string();
    assert!(listed.contains("\"mcp__s__grow\"") && !listed.contains("\"mcp__s__new\""), "{listed}");
    assert!(!client.ask("prompts/list", &json!({})).to_string().contains("greet"));
    let served = |client: &mut Client| {
        let found = resources(client).into_iter().find(|it| it["name"] == "one (s)");
        found.map(|it| (it["uri"].as_str().unwrap().to_owned(), it["mimeType"].clone()))
    };
    assert_eq!(served(&mut client), None);

    assert_eq!(client.call("mcp__s__grow", &json!({}))["isError"], false);
    let mut heard = Vec::new();
    while heard.len() < 3 {
        let method = client.hear()["method"].as_str().unwrap_or_default().to_owned();
        if !heard.contains(&method) {
            heard.push(method);
        }
    }
    heard.sort();
    let expected = ["prompts", "resources", "tools"].map(|list| format!("notifications/{list}/list_changed"));
    assert_eq!(heard, expected);
    // It can be called without being listed first, and is listed.
    let called = client.call("mcp__s__new", &json!({}));
    assert_eq!(called["content"][0]["text"], "done", "{called}");
    assert!(client.ask("tools/list", &json!({})).to_string().contains("\"mcp__s__new\""));
    let prompts = client.ask("prompts/list", &json!({})).to_string();
    assert!(prompts.contains("greet"), "{prompts}");
    let (uri, kind) = served(&mut client).expect("it is listed");
    assert_eq!(kind, "text/markdown");
    let read = client.ask("resources/read", &json!({ "uri": uri }));
    assert_eq!(read["result"]["contents"][0]["text"], "what is noted", "{read}");
    for unlisted in ["mcp://s/notes%3A%2F%2Ftwo", "mcp://t/notes%3A%2F%2Fone"] {
        let missing = client.ask("resources/read", &json!({ "uri": unlisted }));
        assert_eq!(missing["error"]["code"], -32_002, "only what is listed is read: {missing}");
    }
}

/// However a server ends, what it answered is kept whole: no value is missing, torn, or left behind.
#[test]
fn contexts_outlive_a_server_that_is_killed() {
    let world = World::new();
    let large = |round: u32, number: u32| json!(format!("{round}-{number}-").repeat(20_000));
    let (mut answered, mut kept_apart) = (0, 0);
    for round in 0..hanzo_testkit::scale::few_or_full(12, 300) {
        let mut client = Client::start(&world, &[]);
        let before = client.ask("context/get", &json!({"keys": ["a", "b"]}))["result"].clone();
        assert!(before["version"].as_u64().unwrap() >= answered, "{answered} changes were answered");
        for entry in before["entries"].as_array().unwrap() {
            assert!(
                entry["error"].is_null() && entry["value"].is_string(),
                "round {round}: {}",
                entry["error"]
            );
            kept_apart += 1;
        }
        answered = before["version"].as_u64().unwrap();
        for number in 0..=round % 4 {
            let entries = json!([{"key": "a", "value": large(round, number)}, {"key": "b", "value": large(number, round)}]);
            let done = client.ask("context/update", &json!({ "entries": entries }));
            answered = done["result"]["version"].as_u64().unwrap_or_else(|| panic!("{done}"));
        }
        // One more, in the middle of which it ends.
        client.next += 1;
        let entries = json!([{"key": "a", "value": large(7, round)}, {"key": "b", "value": large(8, round)}]);
        client.send(&json!({"jsonrpc": "2.0", "id": client.next, "method": "context/update", "params": {"entries": entries}}));
        std::thread::sleep(Duration::from_micros(u64::from(round * 700 % 9_000)));
        client.kill();
    }
    assert!(kept_apart > 4);
    let mut client = Client::start(&world, &[]);
    client.ask("context/update", &json!({"entries": [{"key": "c", "value": 1}]}));
    let values =
        world.files().into_iter().filter(|path| path.display().to_string().contains("default.values"));
    assert_eq!(values.count(), 2, "nothing is left behind");
}

/// A token is kept when the server takes it, for the address it was given for, where only the user can read it.
#[test]
fn a_token_is_kept_for_a_server_and_sent_nowhere_else() {
    let there = World::new();
    let site = Site::open(&there, &[]);
    let world = World::new();
    let settings = |url: &str, more: &str| {
        world.user(&format!(
            "[mcp_servers.s]\ntype = \"http\"\nurl = \"{url}\"\nallow_private = true\n{more}"
        ));
    };
    settings(&site.address, "");
    let refused = world.run(&["mcp", "test", "s"]);
    assert!(refused.code == 1 && refused.stderr.contains("`hanzo-dev mcp login s`"), "{refused:?}");
    let login = |token: &str| world.run_with_input(&["mcp", "login", "s"], token);
    let kept = || world.files().into_iter().find(|file| file.ends_with("credentials.json"));

    let wrong = login("wrong-horse\n");
    assert!(wrong.code == 41 && wrong.stderr.contains("does not accept"), "{wrong:?}");
    assert_eq!((login("").code, login("two words").code), (42, 42));
    assert_eq!(kept(), None);
    let done = login(&format!("{TOKEN}\n"));
    assert!(done.code == 0 && done.stdout.contains("connected"), "{done:?}");
    assert!(!format!("{done:?}").contains(TOKEN), "{done:?}");
    let file = kept().expect("it is kept");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    world.run(&["mcp", "test", "s"]).ok();
    assert!(!world.run(&["mcp", "get", "s"]).ok().contains(TOKEN));

    // The same name at another address, which is the same server by another name.
    settings(&site.address.replace("127.0.0.1", "localhost"), "");
    assert_eq!(world.run(&["mcp", "test", "s"]).code, 1, "it is not sent there");
    settings(&site.address, "headers = { authorization = \"Bearer other\" }\n");
    let said = login(TOKEN);
    assert!(said.code == 42 && said.stderr.contains("settings of `s`"), "{said:?}");
    assert_eq!(world.run(&["mcp", "test", "s"]).code, 1, "what the settings say goes first");
    settings(&site.address, "");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = world.run(&["mcp", "test", "s"]);
    assert!(open.code == 52 && open.stderr.contains("chmod 600"), "{open:?}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    world.run(&["mcp", "test", "s"]).ok();
    let gone = world.run(&["mcp", "logout", "s"]);
    assert!(gone.code == 0 && gone.stderr.contains("forgotten"), "{gone:?}");
    assert_eq!(world.run(&["mcp", "test", "s"]).code, 1);
    assert!(world.run(&["mcp", "logout", "s"]).stderr.contains("no token is kept"));
    world.user("[mcp_servers.p]\ncommand = \"true\"\n");
    assert_eq!(world.run_with_input(&["mcp", "login", "p"], TOKEN).code, 42, "a program is sent no token");
}

#[test]
fn programs_are_told_which_servers_are_configured_and_connected() {
    let world = World::new();
    world.write("project/server.sh", GROWING);
    world.user("[mcp_servers.s]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n[mcp_servers.gone]\ncommand = \"/nonexistent\"\n");
    let site = Site::open(&world, &["--with-servers"]);
    assert_eq!(site.get("wrong-horse", "/api/mcp/servers").0, "401");
    let (status, body) = site.get(TOKEN, "/api/mcp/servers");
    let report: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{status} {body}"));
    let configured = json!([{"name": "s", "transport": "stdio"}, {"name": "gone", "transport": "stdio"}]);
    assert_eq!(report["configured"], configured);
    let connected = json!([{"name": "s", "tools_count": 1, "tools": ["grow"], "connected": true}]);
    assert_eq!(report["connected"], connected);
    let alone = Site::open(&world, &[]);
    let (status, body) = alone.get(TOKEN, "/api/mcp/servers");
    assert!(status == "404" && body.contains("--with-servers"), "{status} {body}");
}
