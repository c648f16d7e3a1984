//! An engine over a real store in a temporary directory, a scripted model, and tools that record what happens to them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use hanzo_config::Settings;
use hanzo_engine::Engine;
use hanzo_engine::agents::{Catalog, DEFAULT_AGENT, ProjectTrust};
use hanzo_engine::capability::Capabilities;
use hanzo_engine::parts::{
    EngineParts, Jobs, Model, ModelInfo, Models, NoJobs, NoMcpServers, OpenThread, Places, RuleSaver,
    SandboxState, ThreadFactory, ThreadParts, TrustKeeper,
};
use hanzo_hooks::{Hooks, Shell};
use hanzo_permissions::{BoxState, Decision, Policy};
use hanzo_protocol::engine::{
    EngineClient as _, EngineError, EngineErrorKind, Request, Response, ThreadAt, ThreadOptions, ThreadRead,
    ThreadStart, ThreadSummary, TurnStart, TurnStarted, WorkspaceTrust,
};
use hanzo_protocol::event::{Event, EventContent, EventCursor};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::item::{Item, ItemContent, Taint, ToolCallItem, TurnSummary};
use hanzo_protocol::message::{ApiError, Message, ModelRequest, Role, StreamEvent, ToolSchema};
use hanzo_protocol::narrowing::{Narrowing, Unnarrowed};
use hanzo_protocol::roles::ApiClient;
use hanzo_protocol::tool::{Effect, Reach, Tool, ToolContext, ToolResult, ToolSet};
use hanzo_protocol::usage::Price;
use hanzo_protocol::{BoxFuture, BoxStream};
use hanzo_sandbox::SandboxConfig;
use hanzo_sandbox::paths::Workspace;
use hanzo_store::{Checkpointer, FileBlobs, OpenOptions, SqliteStore, Store};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mocks::locked;

/// How the scripted model answers one request.
pub enum Said {
    /// All of it, and that is its end.
    Whole(Vec<StreamEvent>),
    /// All of it, and then nothing for ever.
    AndHangs(Vec<StreamEvent>),
}

/// A model that gives prepared answers and keeps what it was asked.
#[derive(Default)]
pub struct Brain {
    pub answers: Mutex<VecDeque<Said>>,
    pub requests: Mutex<Vec<ModelRequest>>,
    pub always: Option<fn(&ModelRequest) -> Vec<StreamEvent>>,
}

impl ApiClient for Brain {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn send_message(&self, request: &ModelRequest) -> BoxStream<'static, StreamEvent> {
        locked(&self.requests).push(request.clone());
        let prepared = locked(&self.answers).pop_front();
        match prepared.or_else(|| self.always.map(|answer| Said::Whole(answer(request)))) {
            Some(Said::Whole(events)) => Box::pin(stream::iter(events)),
            Some(Said::AndHangs(events)) => Box::pin(stream::iter(events).chain(stream::pending())),
            None => panic!("the script has no answer to {:?}", shape(&request.messages)),
        }
    }
}

impl Brain {
    pub fn saying(answers: Vec<Vec<StreamEvent>>) -> Arc<Self> {
        Self::with(answers.into_iter().map(Said::Whole))
    }

    pub fn with(answers: impl IntoIterator<Item = Said>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() })
    }

    pub fn shapes(&self) -> Vec<Vec<String>> {
        locked(&self.requests).iter().map(|request| shape(&request.messages)).collect()
    }
}

/// A request, one line per message; the system prompt and the environment by name only.
pub fn shape(messages: &[Message]) -> Vec<String> {
    let line = |message: &Message| {
        let calls: Vec<&str> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
        match message.role {
            Role::System => "system".to_owned(),
            Role::User if message.content.starts_with("<environment>") => "environment".to_owned(),
            Role::User => format!("user: {}", message.content),
            Role::Tool => {
                format!(
                    "{}: {}",
                    message.tool_call_id.as_ref().unwrap(),
                    message.content.lines().next().unwrap_or("")
                )
            }
            Role::Assistant if calls.is_empty() => format!("assistant: {}", message.content),
            Role::Assistant => format!("assistant: {} {calls:?}", message.content),
        }
    };
    messages.iter().map(line).collect()
}

/// What the tools have seen.
#[derive(Default)]
pub struct Seen {
    pub log: Mutex<Vec<String>>,
    running: AtomicUsize,
    pub most_at_once: AtomicUsize,
    pub dropped: AtomicUsize,
}

struct Running<'a>(&'a Seen, bool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        if !self.1 {
            self.0.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// `look` and `far` read, `change`, `hang` and `send` do not. Each returns what it was given; `hang` never does.
struct Probe {
    schema: ToolSchema,
    effect: Effect,
    seen: Arc<Seen>,
}

impl Tool for Probe {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn reach(&self, _: &Value) -> Reach {
        Reach::new(self.schema.name.clone(), self.effect)
    }

    fn remind(&self, result: &ToolResult) {
        if let Some(taint) = result.taint {
            locked(&self.seen.log).push(format!("remind {} {taint:?}", self.schema.name));
        }
    }

    fn execute<'a>(&'a self, _: &'a ToolContext, arguments: Value) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let name = self.schema.name.as_str();
            locked(&self.seen.log).push(format!("begin {name} {arguments}"));
            let now = self.seen.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.seen.most_at_once.fetch_max(now, Ordering::SeqCst);
            let mut running = Running(&self.seen, false);
            if name == "hang" {
                std::future::pending::<()>().await;
            }
            // The later of two calls is over first.
            let wait = 30_u64.saturating_sub(10 * arguments["n"].as_u64().unwrap_or(3));
            tokio::time::sleep(Duration::from_millis(wait)).await;
            running.1 = true;
            locked(&self.seen.log).push(format!("end {name} {arguments}"));
            let taint = (name == "far").then_some(Taint::Network);
            let text = match arguments["text"].as_str() {
                Some(text) => text.to_owned(),
                None => format!("{name} {arguments}"),
            };
            ToolResult { taint, ..ToolResult::success(text) }
        })
    }
}

fn tools(seen: &Arc<Seen>) -> ToolSet {
    let mut tools = ToolSet::default();
    for (name, effect) in [
        ("look", Effect::Read),
        ("far", Effect::Read),
        ("change", Effect::Write),
        ("hang", Effect::Execute),
        ("send", Effect::Network),
    ] {
        let schema = ToolSchema {
            name: name.into(),
            description: format!("{name}s"),
            parameters: RawValue::from_string(json!({"type": "object"}).to_string()).unwrap(),
        };
        tools.insert(Arc::new(Probe { schema, effect, seen: Arc::clone(seen) }));
    }
    tools
}

/// Everything a test may want to change before the engine is made.
pub struct Setup {
    pub brain: Arc<dyn ApiClient>,
    pub seen: Arc<Seen>,
    pub home: Arc<TempDir>,
    pub workspace: PathBuf,
    pub window: Option<u64>,
    pub price: Option<Price>,
    pub settings: Settings,
    pub policy: Policy,
    pub checkpoints: bool,
    pub blobs: FileBlobs,
    pub jobs: Arc<dyn Jobs>,
    /// What threads that are no subagent's keep to.
    pub narrowing: Arc<dyn Narrowing>,
}

impl Setup {
    pub fn new(brain: Arc<dyn ApiClient>) -> Self {
        let home = TempDir::new().unwrap();
        let workspace = home.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&workspace).unwrap();
        let blobs = FileBlobs::open(home.path().join("blobs")).unwrap();
        Self {
            brain,
            seen: Arc::default(),
            home: Arc::new(home),
            workspace,
            window: None,
            price: None,
            settings: Settings::default(),
            policy: Policy { mode: Decision::Allow, ..Policy::default() },
            checkpoints: false,
            blobs,
            jobs: Arc::new(NoJobs),
            narrowing: Arc::new(Unnarrowed),
        }
    }

    pub async fn store(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(self.home.path().join("data"), OpenOptions::default()).await.unwrap().0)
    }

    pub async fn engine(self) -> Bench {
        let store = self.store().await;
        self.engine_over(store)
    }

    pub fn engine_over(self, store: Arc<dyn Store>) -> Bench {
        let setup = Arc::new(self);
        let parts = EngineParts {
            store,
            blobs: Arc::new(setup.blobs.clone()),
            threads: Arc::new(Factory(Arc::clone(&setup))),
            trust: Arc::new(NoTrust),
            program: "a test".into(),
        };
        Bench { engine: Engine::new(parts), setup }
    }
}

struct Factory(Arc<Setup>);

impl ThreadFactory for Factory {
    fn open<'a>(&'a self, request: OpenThread<'a>) -> BoxFuture<'a, Result<ThreadParts, EngineError>> {
        Box::pin(async move {
            let setup = &self.0;
            let workspace = Workspace::open(request.workspace, &SandboxConfig::default()).unwrap();
            let config = setup.home.path().join("config");
            let manifest = Catalog { config: Some(&config), project: None }
                .get(request.agent.unwrap_or(DEFAULT_AGENT))
                .unwrap();
            let checkpoints =
                setup.checkpoints.then(|| Checkpointer::new(request.workspace, setup.blobs.clone()));
            Ok(ThreadParts {
                narrowing: match request.parent {
                    None => Arc::clone(&setup.narrowing),
                    Some(_) => Arc::new(Unnarrowed),
                },
                settings: Arc::new(setup.settings.clone()),
                policy: setup.policy.clone(),
                models: Arc::new(OneModel(Arc::clone(setup))),
                tools: tools(&setup.seen),
                tool_changes: None,
                sandbox: Arc::new(Boxed),
                hooks: Arc::new(Hooks::new(Vec::new(), Arc::new(Shell::new()))),
                manifest,
                remote: Capabilities::nothing(),
                workspace: Arc::new(workspace),
                trust: ProjectTrust::Trusted,
                resources: None,
                commands: Vec::new(),
                jobs: Arc::clone(&setup.jobs),
                mcp_servers: Arc::new(NoMcpServers),
                checkpoints,
                places: Places {
                    config,
                    data: setup.home.path().join("data"),
                    workspace: request.workspace.to_owned(),
                    home: None,
                },
                rules: Arc::new(NoRules),
                notices: Vec::new(),
            })
        })
    }
}

struct OneModel(Arc<Setup>);

impl Models for OneModel {
    fn resolve(&self, reference: Option<&str>) -> Result<Model, EngineError> {
        let reference = reference.unwrap_or("test/one").to_owned();
        if !reference.starts_with("test/") {
            return Err(EngineError { kind: EngineErrorKind::NotFound, message: "no such model".into() });
        }
        Ok(Model {
            name: reference.trim_start_matches("test/").to_owned(),
            reference,
            client: Arc::clone(&self.0.brain),
            context_window: self.0.window,
            price: self.0.price,
            max_tokens: None,
        })
    }

    fn list(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

struct Boxed;

impl SandboxState for Boxed {
    fn state(&self) -> BoxState {
        BoxState::On
    }

    fn level(&self) -> String {
        "full".into()
    }

    fn network(&self) -> bool {
        false
    }
}

struct NoRules;

impl RuleSaver for NoRules {
    fn save<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}

struct NoTrust;

impl TrustKeeper for NoTrust {
    fn set<'a>(&'a self, _: &'a WorkspaceTrust) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async { Ok(()) })
    }
}

/// An engine and what it is made of.
pub struct Bench {
    pub engine: Engine,
    pub setup: Arc<Setup>,
}

/// Calls a method and takes its answer apart.
macro_rules! ask {
    ($engine:expr, $method:ident, $params:expr) => {
        match hanzo_protocol::engine::EngineClient::call(
            &$engine,
            hanzo_protocol::engine::Request::$method($params),
        )
        .await
        {
            Ok(hanzo_protocol::engine::Response::$method(answer)) => Ok(answer),
            Ok(other) => panic!("another method answered: {other:?}"),
            Err(error) => Err(error),
        }
    };
}
pub(crate) use ask;

impl Bench {
    pub async fn thread(&self) -> ThreadSummary {
        self.thread_with(ThreadOptions::default()).await
    }

    pub async fn thread_with(&self, options: ThreadOptions) -> ThreadSummary {
        let start =
            ThreadStart { workspace: self.setup.workspace.clone(), agent: None, ephemeral: false, options };
        ask!(self.engine, ThreadStart, start).unwrap()
    }

    pub async fn say(&self, thread: ThreadId, text: &str) -> TurnStarted {
        let turn = TurnStart { thread_id: thread, text: text.into(), attachments: Vec::new(), posture: None };
        ask!(self.engine, TurnStart, turn).unwrap()
    }

    pub async fn steer(&self, thread: ThreadId, text: &str) -> TurnStarted {
        let turn = TurnStart { thread_id: thread, text: text.into(), attachments: Vec::new(), posture: None };
        ask!(self.engine, TurnSteer, turn).unwrap()
    }

    pub async fn interrupt(&self, thread: ThreadId) {
        ask!(self.engine, TurnInterrupt, ThreadAt { thread_id: thread }).unwrap();
    }

    /// Says something and waits for the end of the turn.
    pub async fn turn(&self, thread: ThreadId, text: &str) -> (Vec<Event>, Result<TurnSummary, ApiError>) {
        let mut watch = self.watch(thread).await;
        self.say(thread, text).await;
        watch.turn().await
    }

    /// Watches from now on.
    pub async fn watch(&self, thread: ThreadId) -> Watch<'_> {
        let cursor = match self.engine.call(Request::ThreadResume(resume(thread))).await.unwrap() {
            Response::ThreadResume(summary) => summary.cursor,
            other => panic!("{other:?}"),
        };
        Watch(self.engine.subscribe(thread, cursor))
    }

    pub async fn items(&self, thread: ThreadId) -> Vec<Item> {
        let read = ThreadRead { thread_id: thread, cursor: None, limit: Some(u32::MAX) };
        ask!(self.engine, ThreadRead, read).unwrap().entries
    }

    pub async fn calls(&self, thread: ThreadId) -> Vec<ToolCallItem> {
        let call = |item: Item| match item.content {
            ItemContent::ToolCall(call) => Some(call),
            _ => None,
        };
        self.items(thread).await.into_iter().filter_map(call).collect()
    }

    pub fn log(&self) -> Vec<String> {
        locked(&self.setup.seen.log).clone()
    }

    /// Waits until a tool has seen this.
    pub async fn until_logged(&self, entry: &str) {
        let begun = std::time::Instant::now();
        while !self.log().iter().any(|line| line == entry) {
            assert!(begun.elapsed() < Duration::from_secs(10), "`{entry}` is not in {:?}", self.log());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        Path::new(&self.setup.workspace).join(name)
    }
}

pub fn resume(thread: ThreadId) -> hanzo_protocol::engine::ThreadResume {
    hanzo_protocol::engine::ThreadResume { thread_id: thread, options: ThreadOptions::default() }
}

/// A subscription. Waiting for something that does not come is a failure after ten seconds.
pub struct Watch<'a>(pub BoxStream<'a, Event>);

impl Watch<'_> {
    pub async fn next(&mut self) -> Event {
        let next = tokio::time::timeout(Duration::from_secs(10), self.0.next()).await;
        next.expect("nothing came").expect("the thread was closed")
    }

    /// Everything up to and including the first event that `wanted` takes.
    pub async fn until<T>(&mut self, wanted: impl Fn(&EventContent) -> Option<T>) -> (Vec<Event>, T) {
        let mut events = Vec::new();
        loop {
            let event = self.next().await;
            let found = wanted(&event.content);
            events.push(event);
            if let Some(found) = found {
                return (events, found);
            }
        }
    }

    /// Everything up to the end of the turn, and how it ended.
    pub async fn turn(&mut self) -> (Vec<Event>, Result<TurnSummary, ApiError>) {
        self.until(|content| match content {
            EventContent::TurnCompleted { summary, .. } => Some(Ok(summary.clone())),
            EventContent::TurnFailed { error, .. } => Some(Err(error.clone())),
            _ => None,
        })
        .await
    }

    pub async fn until_delta(&mut self) {
        self.until(|content| matches!(content, EventContent::ItemDelta { .. }).then_some(())).await;
    }
}

/// The items of events that are complete, one line each.
pub fn completed(events: &[Event]) -> Vec<String> {
    let line = |event: &Event| match &event.content {
        EventContent::ItemCompleted { item } => Some(name(item)),
        _ => None,
    };
    events.iter().filter_map(line).collect()
}

pub fn name(item: &Item) -> String {
    match &item.content {
        ItemContent::UserMessage { text, .. } => format!("user: {text}"),
        ItemContent::AgentMessage { text } => format!("agent: {text} {:?}", item.visibility),
        ItemContent::Reasoning(reasoning) => format!("reasoning: {} {:?}", reasoning.text, item.visibility),
        ItemContent::ToolCall(call) => format!("{}: {:?}", call.call_id, call.status),
        ItemContent::Fragment { kind, .. } => format!("fragment {kind}"),
        ItemContent::Notice { text, .. } => format!("notice: {text}"),
        other => serde_json::to_value(other).unwrap()["type"].as_str().unwrap().to_owned(),
    }
}

pub fn cursor(number: u64) -> EventCursor {
    EventCursor(number)
}
