//! A workspace with tools, for the tests.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hanzo_protocol::BoxFuture;
use hanzo_protocol::blob::{BlobError, BlobStore};
use hanzo_protocol::ids::{ThreadId, TraceId};
use hanzo_protocol::primitives::ContentHash;
use hanzo_protocol::spawn::{Confinement, Process, SpawnError, SpawnRequest, Spawner};
use hanzo_protocol::tool::{ToolCaller, ToolContext, ToolResult, ToolSet};
use hanzo_sandbox::SandboxConfig;
use hanzo_sandbox::paths::Workspace;
use hanzo_tools::{Host, Selection, ToolOptions, toolset};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Content in memory.
#[derive(Default)]
pub struct Blobs(Mutex<HashMap<ContentHash, Vec<u8>>>);

impl BlobStore for Blobs {
    fn put<'a>(&'a self, content: &'a [u8]) -> BoxFuture<'a, Result<ContentHash, BlobError>> {
        let hash = ContentHash::of(content);
        self.0.lock().unwrap().insert(hash.clone(), content.to_vec());
        Box::pin(async move { Ok(hash) })
    }

    fn get<'a>(&'a self, hash: &'a ContentHash) -> BoxFuture<'a, Result<Option<Vec<u8>>, BlobError>> {
        let found = self.0.lock().unwrap().get(hash).cloned();
        Box::pin(async move { Ok(found) })
    }
}

/// These tests start no processes.
struct NoSpawner;

impl Spawner for NoSpawner {
    fn confinement(&self) -> Confinement {
        Confinement { level: "path-check".into(), writable: Vec::new(), network: false, tmp: None }
    }

    fn spawn(&self, _: SpawnRequest) -> BoxFuture<'_, Result<Box<dyn Process>, SpawnError>> {
        Box::pin(async { Err(SpawnError::Confinement("no processes here".into())) })
    }
}

pub struct Stage {
    pub dir: TempDir,
    pub root: PathBuf,
    pub outside: PathBuf,
    pub data: PathBuf,
    pub host: Arc<Host>,
    pub tools: ToolSet,
    pub runtime: tokio::runtime::Runtime,
}

impl Stage {
    pub fn new() -> Self {
        Self::with(&Selection::default(), &SandboxConfig::default())
    }

    pub fn with(selection: &Selection, config: &SandboxConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (root, outside, data) = (base.join("ws"), base.join("outside"), base.join("data"));
        for directory in [&root, &outside, &data] {
            fs::create_dir(directory).unwrap();
        }
        let host = host(&root, &data, config);
        let tools = toolset(&host, selection);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { dir, root, outside, data, host, tools, runtime }
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap()
    }

    pub fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.call_as(ToolCaller::Local, tool, arguments)
    }

    pub fn call_as(&self, caller: ToolCaller, tool: &str, arguments: Value) -> ToolResult {
        let found = self.tools.get(tool).unwrap_or_else(|| panic!("there is no tool {tool}"));
        let mut context = ToolContext::new(ThreadId::new(), TraceId::new());
        context.caller = caller;
        self.runtime.block_on(found.execute(&context, arguments))
    }

    /// Calls `fs`; the data.
    pub fn ok(&self, arguments: Value) -> Value {
        let result = self.call("fs", arguments.clone());
        assert!(!result.is_error, "{arguments}: {}", result.output);
        result.envelope.unwrap()["data"].clone()
    }

    /// Calls `fs`; the error.
    pub fn err(&self, arguments: Value) -> Value {
        let result = self.call("fs", arguments.clone());
        assert!(result.is_error, "{arguments} should fail: {}", result.output);
        result.envelope.unwrap()["error"].clone()
    }

    pub fn hash(&self, name: &str) -> String {
        self.ok(json!({"action": "read", "path": name}))["hash"].as_str().unwrap().to_owned()
    }
}

pub fn host(root: &Path, data: &Path, config: &SandboxConfig) -> Arc<Host> {
    let workspace = Workspace::open(root, config).unwrap();
    let options = ToolOptions::new(data);
    Arc::new(Host::new(Arc::new(workspace), Arc::new(NoSpawner), Arc::new(Blobs::default()), options))
}
