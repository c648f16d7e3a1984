//! The client against servers that other people wrote. They have to be installed, so these run when `HANZO_MCP_SERVERS` names the
//! directory with `node_modules` (server-everything, -filesystem, -memory), `python` (mcp-server-git, -time, -fetch) and `python-v1`
//! (`mcp<2` with its WebSocket server). `cargo xtask interop` installs them and sets it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hanzo_mcp::client::{Manager, Phase, RemoteConfig, ServerConfig, StdioConfig, TransportConfig};
use serde_json::json;

use super::stage::{call, parts, settled, tool};

fn servers() -> Option<PathBuf> {
    let directory = std::env::var_os("HANZO_MCP_SERVERS").map(PathBuf::from);
    if directory.is_none() {
        eprintln!("NOT RUN: HANZO_MCP_SERVERS names no directory (see `cargo xtask interop`)");
    }
    directory
}

fn node(directory: &Path) -> PathBuf {
    let own = directory.join("node_modules/.bin/node");
    if own.exists() { own } else { PathBuf::from("node") }
}

fn program(name: &str, argv: &[&Path]) -> ServerConfig {
    let argv: Vec<OsString> = argv.iter().map(|word| word.as_os_str().to_owned()).collect();
    ServerConfig::new(name, TransportConfig::Stdio(StdioConfig { argv, env: Vec::new() }))
}

fn report(manager: &Manager, transport: &str) {
    for status in manager.status() {
        assert_eq!(status.phase, Phase::Connected, "{status:?}");
        let (tools, prompts, resources) = status.counts.unwrap();
        eprintln!(
            "{} over {transport}: protocol {}, {tools} tools, {prompts} prompts, {resources} resources, lists in {:?}, notes: {:?}",
            status.name,
            status.protocol.unwrap_or_default(),
            status.latency.unwrap_or_default(),
            status.notes
        );
    }
}

/// A server at a port, killed when the test is over.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> Running {
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn listening(port: u16) {
    for _ in 0..400 {
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nothing listens at {port}");
}

#[tokio::test]
async fn oracle_reference_servers_over_stdio() {
    let Some(directory) = servers() else { return };
    let (node, modules) = (node(&directory), directory.join("node_modules/.bin"));
    let python = directory.join("python/bin");
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("a.txt"), "first line\n").unwrap();
    for arguments in [
        &["init", "-q"][..],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "begin"],
    ] {
        assert!(Command::new("git").arg("-C").arg(files.path()).args(arguments).status().unwrap().success());
    }
    let memory = files.path().join("memory.json");
    let mut remembers = program("memory", &[&node, &modules.join("mcp-server-memory")]);
    let TransportConfig::Stdio(stdio) = &mut remembers.transport else { unreachable!("made as one") };
    stdio.env.push(("MEMORY_FILE_PATH".into(), memory.clone().into_os_string()));
    let configs = vec![
        program("everything", &[&node, &modules.join("mcp-server-everything")]),
        program("files", &[&node, &modules.join("mcp-server-filesystem"), files.path()]),
        remembers,
        program("git", &[&python.join("mcp-server-git"), Path::new("--repository"), files.path()]),
        program("time", &[&python.join("mcp-server-time")]),
        program("fetch", &[&python.join("mcp-server-fetch"), Path::new("--ignore-robots-txt")]),
    ];
    let manager = settled(parts(configs)).await;
    report(&manager, "stdio");

    let said = call(&manager, "mcp__everything__echo", json!({"message": "hi"})).await;
    assert_eq!(said.output, "Echo: hi");
    let image = call(&manager, "mcp__everything__get-tiny-image", json!({})).await;
    assert_eq!(image.attachments.len(), 1, "{image:?}");
    let path = files.path().join("a.txt");
    let read = call(&manager, "mcp__files__read_text_file", json!({"path": path})).await;
    assert!(read.output.contains("first line"), "{}", read.output);
    let outside = call(&manager, "mcp__files__read_text_file", json!({"path": "/etc/passwd"})).await;
    assert!(outside.is_error, "{outside:?}");
    let entity = json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]});
    call(&manager, "mcp__memory__create_entities", entity).await;
    assert!(std::fs::read_to_string(&memory).unwrap().contains("Ada"));
    let log = call(&manager, "mcp__git__git_log", json!({"repo_path": files.path()})).await;
    assert!(log.output.contains("begin"), "{}", log.output);
    let time = call(&manager, "mcp__time__get_current_time", json!({"timezone": "UTC"})).await;
    assert!(time.output.contains("UTC"), "{}", time.output);
    assert!(tool(&manager, "mcp__fetch__fetch").raw().description.is_some());
    let resource = manager.listing("everything").unwrap().resources[0].uri.clone();
    assert!(manager.resource("everything", &resource).await.is_ok(), "{resource}");
    let prompt = manager
        .prompts()
        .into_iter()
        .find(|prompt| prompt.server == "everything" && prompt.prompt.arguments.is_empty());
    let text = manager.prompt(&prompt.unwrap().command, "").await.unwrap();
    assert!(!text.is_empty());
    manager.shutdown().await;
}

#[tokio::test]
async fn oracle_everything_over_http_and_the_older_event_stream() {
    let Some(directory) = servers() else { return };
    let everything = directory.join("node_modules/.bin/mcp-server-everything");
    for (mode, path) in [("streamableHttp", "mcp"), ("sse", "sse")] {
        let port = free_port();
        let _running =
            start(Command::new(node(&directory)).arg(&everything).arg(mode).env("PORT", port.to_string()));
        listening(port).await;
        let remote = RemoteConfig::new(format!("http://127.0.0.1:{port}/{path}"));
        let transport =
            if mode == "sse" { TransportConfig::Sse(remote) } else { TransportConfig::Http(remote) };
        let manager = settled(parts(vec![ServerConfig::new("everything", transport)])).await;
        report(&manager, mode);
        let said = call(&manager, "mcp__everything__echo", json!({"message": "hi"})).await;
        assert_eq!(said.output, "Echo: hi");
        manager.shutdown().await;
    }
}

#[tokio::test]
async fn oracle_the_python_server_over_a_websocket() {
    let Some(directory) = servers() else { return };
    let python = directory.join("python-v1/bin/python");
    if !python.exists() {
        eprintln!("NOT RUN: there is no {}", python.display());
        return;
    }
    let port = free_port();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/websocket_server.py");
    let _running = start(Command::new(python).arg(script).arg(port.to_string()));
    listening(port).await;
    let remote = RemoteConfig::new(format!("ws://127.0.0.1:{port}/ws"));
    let manager = settled(parts(vec![ServerConfig::new("socket", TransportConfig::WebSocket(remote))])).await;
    report(&manager, "websocket");
    assert_eq!(call(&manager, "mcp__socket__add", json!({"a": 2, "b": 3})).await.output, "5");
    manager.shutdown().await;
}
