//! What tests of the client share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hanzo_mcp::client::{
    Manager, ManagerParts, Phase, RemoteTool, ServerConfig, StdioConfig, TransportConfig,
};
use hanzo_protocol::ids::{ThreadId, TraceId};
use hanzo_protocol::tool::{OutputSink, Tool as _, ToolContext, ToolResult};
use hanzo_testkit::plain_spawner::PlainSpawner;
use serde_json::Value;

/// An example of this crate, which `cargo test` has built.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is not built; run the tests with `cargo test`", path.display());
    path
}

/// A server called `name`: the stage in these modes.
pub fn stage(name: &str, modes: &[&str]) -> ServerConfig {
    program(name, "stage", modes)
}

pub fn program(name: &str, example_name: &str, arguments: &[&str]) -> ServerConfig {
    let mut argv = vec![example(example_name).into_os_string()];
    argv.extend(arguments.iter().map(Into::into));
    ServerConfig::new(name, TransportConfig::Stdio(StdioConfig { argv, env: Vec::new() }))
}

pub fn parts(servers: Vec<ServerConfig>) -> ManagerParts {
    ManagerParts::new(servers, Arc::new(PlainSpawner::new(std::env::temp_dir())))
}

/// A manager whose servers have answered or failed.
pub async fn settled(parts: ManagerParts) -> Manager {
    let manager = Manager::start(parts);
    manager.settled().await;
    manager
}

pub fn context() -> ToolContext {
    ToolContext::new(ThreadId::new(), TraceId::new())
}

pub fn tool(manager: &Manager, name: &str) -> Arc<RemoteTool> {
    manager.tool(name).unwrap_or_else(|| panic!("no {name}; {:?}", manager.status()))
}

pub async fn call(manager: &Manager, name: &str, arguments: Value) -> ToolResult {
    tool(manager, name).execute(&context(), arguments).await
}

pub fn phase(manager: &Manager, server: &str) -> Phase {
    manager.status().into_iter().find(|status| status.name == server).unwrap().phase
}

/// Waits for `test` to hold, looking often: a program that dies at once is being started for a few milliseconds only.
pub async fn until(manager: &Manager, test: impl Fn(&Manager) -> bool) {
    let wait = async {
        while !test(manager) {
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), wait).await;
    assert!(waited.is_ok(), "it never came to that: {:?}", manager.status());
}

/// Remembers what it was told.
#[derive(Default)]
pub struct Heard(pub Mutex<Vec<String>>);

impl Heard {
    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl OutputSink for Heard {
    fn push(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}
