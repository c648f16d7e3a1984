//! A workspace with tools that run programs without a sandbox.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hanzo_net::guard::Lookup;
use hanzo_protocol::ids::{ThreadId, TraceId};
use hanzo_protocol::spawn::Spawner;
use hanzo_protocol::tool::{OutputSink, Reach, ToolCaller, ToolContext, ToolResult, ToolSet};
use hanzo_sandbox::SandboxConfig;
use hanzo_sandbox::paths::Workspace;
use hanzo_testkit::blobs::MemoryBlobs;
use hanzo_testkit::plain_spawner::PlainSpawner;
use hanzo_tools::net::Browser;
use hanzo_tools::proc::RunTag;
use hanzo_tools::{Host, Selection, ToolOptions, toolset};
use serde_json::Value;
use tempfile::TempDir;

pub struct World {
    pub host: Arc<Host>,
    tools: ToolSet,
    pub workspace: PathBuf,
    _directory: TempDir,
}

impl World {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut ToolOptions)) -> Self {
        Self::made(change, |workspace| Arc::new(PlainSpawner::new(workspace)))
    }

    /// With processes started by what `spawner` makes.
    pub fn made(
        change: impl FnOnce(&mut ToolOptions),
        spawner: impl FnOnce(&Path) -> Arc<dyn Spawner>,
    ) -> Self {
        Self::built(change, spawner, |host| host)
    }

    /// With names found by `lookup`.
    pub fn with_lookup(change: impl FnOnce(&mut ToolOptions), lookup: Arc<dyn Lookup>) -> Self {
        Self::changed(change, |host| host.with_lookup(lookup))
    }

    /// With a user who looks at pages in `browser`.
    pub fn with_browser(browser: Arc<dyn Browser>) -> Self {
        Self::changed(|_| {}, |host| host.with_browser(browser))
    }

    /// With another screen.
    #[cfg(feature = "ui")]
    pub fn with_ui(ui: hanzo_tools::ui::Ui) -> Self {
        Self::changed(|_| {}, |host| host.with_ui(ui))
    }

    fn changed(change: impl FnOnce(&mut ToolOptions), last: impl FnOnce(Host) -> Host) -> Self {
        Self::built(change, |workspace| Arc::new(PlainSpawner::new(workspace)), last)
    }

    fn built(
        change: impl FnOnce(&mut ToolOptions),
        spawner: impl FnOnce(&Path) -> Arc<dyn Spawner>,
        last: impl FnOnce(Host) -> Host,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().canonicalize().unwrap().join("ws");
        let data = directory.path().join("data");
        for path in [&workspace, &data] {
            std::fs::create_dir(path).unwrap();
        }
        let spawner = spawner(&workspace);
        let mut options = ToolOptions::new(&data);
        options.proc.jobs.run = RunTag::new("tests");
        change(&mut options);
        let paths = Workspace::open(&workspace, &SandboxConfig::default()).unwrap();
        let host =
            Host::new(Arc::new(paths), Arc::clone(&spawner), Arc::new(MemoryBlobs::default()), options);
        let host = Arc::new(last(host.with_outside(spawner)));
        let tools = toolset(&host, &Selection::default());
        Self { host, tools, workspace, _directory: directory }
    }

    /// The same tools as another process would make them for the same workspace.
    pub fn reopen(&mut self) {
        let old = &self.host;
        let paths = Workspace::open(&self.workspace, &SandboxConfig::default()).unwrap();
        let spawner: Arc<dyn Spawner> = Arc::new(PlainSpawner::new(&self.workspace));
        let host = Host::new(Arc::new(paths), spawner, Arc::clone(&old.blobs), old.options.clone());
        self.host = Arc::new(host);
        self.tools = toolset(&self.host, &Selection::default());
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.call_shown(tool, arguments, None).await
    }

    pub async fn call_shown(
        &self,
        tool: &str,
        arguments: Value,
        sink: Option<Arc<dyn OutputSink>>,
    ) -> ToolResult {
        let mut context = ToolContext::new(ThreadId::new(), TraceId::new());
        context.output = sink;
        self.tools.get(tool).unwrap().execute(&context, arguments).await
    }

    pub async fn call_as(&self, caller: ToolCaller, tool: &str, arguments: Value) -> ToolResult {
        let mut context = ToolContext::new(ThreadId::new(), TraceId::new());
        context.caller = caller;
        self.tools.get(tool).unwrap().execute(&context, arguments).await
    }

    /// The data of a call that goes well.
    pub async fn ok(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone()).await;
        assert!(!result.is_error, "{arguments}: {result:#?}");
        result.envelope.unwrap()["data"].clone()
    }

    /// The error of a call that does not.
    pub async fn error(&self, tool: &str, arguments: Value) -> (String, String) {
        let result = self.call(tool, arguments.clone()).await;
        assert!(result.is_error, "{arguments}: {result:#?}");
        let error = result.envelope.unwrap()["error"].clone();
        (error["code"].as_str().unwrap().to_owned(), error["message"].as_str().unwrap().to_owned())
    }

    pub fn reach(&self, tool: &str, arguments: &Value) -> Reach {
        self.tools.get(tool).unwrap().reach(arguments)
    }

    pub fn tools(&self) -> &ToolSet {
        &self.tools
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.workspace.join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }
}

/// Remembers what it was shown.
#[derive(Default)]
pub struct Shown(pub Mutex<Vec<String>>);

impl OutputSink for Shown {
    fn push(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

/// Waits until `done`, at most five seconds.
pub async fn eventually(what: &str, done: impl Fn() -> bool) {
    for _ in 0..500 {
        if done() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen");
}

/// Whether a process with this word in its command line runs.
pub fn runs(word: &str) -> bool {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit())).any(
        |entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let zombie = is_zombie(&entry.path());
            !zombie && String::from_utf8_lossy(&line).contains(word)
        },
    )
}

fn is_zombie(process: &Path) -> bool {
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}
