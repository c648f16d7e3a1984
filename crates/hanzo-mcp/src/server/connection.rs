//! What a client is connected to: threads of its own in the engine, begun when they are needed and forgotten when it leaves.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_util::StreamExt as _;
use hanzo_protocol::engine::{
    Attendance, EngineClient, EngineError, EngineErrorKind, List, ListKind, Posture, Request, Response,
    ThreadAt, ThreadOptions, ThreadStart,
};
use hanzo_protocol::event::{EventContent, EventCursor};
use hanzo_protocol::ids::{ItemId, ThreadId};
use hanzo_protocol::item::{Approval, Question};
use hanzo_protocol::tool::ToolCaller;
use rmcp::service::{Peer, RoleServer};
use serde_json::Value;
use tokio::sync::{OnceCell, mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use super::consent::Asking;
use super::news::Offered;
use super::others::Others;

/// What every client of a server is bound to.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The directory its calls work in.
    pub workspace: PathBuf,
    /// The agent whose capabilities bound it; the default one when absent.
    pub agent: Option<String>,
    /// What to do about calls no rule speaks of; as configured when absent.
    pub posture: Option<Posture>,
    /// How many agents are above this server, when one of them started it.
    pub depth: u32,
    /// The version to tell clients.
    pub version: String,
    /// Where contexts are kept; they are forgotten with the server when absent.
    pub contexts: Option<PathBuf>,
    /// What is offered now, where that changes while clients are connected: they are told then.
    pub news: Option<watch::Receiver<Offered>>,
    /// Servers of other people whose resources are served, too.
    pub others: Option<Arc<dyn Others>>,
}

impl ServerOptions {
    /// A server for `workspace`, everything else as usual.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            agent: None,
            posture: None,
            depth: 0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            contexts: None,
            news: None,
            others: None,
        }
    }
}

/// How a client can be asked, and through what.
pub(super) struct Known {
    pub(super) asking: Asking,
    pub(super) peer: Peer<RoleServer>,
}

/// The threads of one client. Those who can be asked and those who cannot differ in how consent is got, so there are two, and
/// either only when it is needed.
pub(super) struct Connection {
    pub(super) engine: Arc<dyn EngineClient>,
    options: Arc<ServerOptions>,
    attended: OnceCell<Arc<Thread>>,
    headless: OnceCell<Arc<Thread>>,
    /// How the client can be asked, once a call has shown it.
    known: Mutex<Option<Arc<Known>>>,
    /// The tools its threads have, as the number they are known by.
    seen: AtomicU64,
    /// Tells the client what changed.
    telling: OnceLock<AbortOnDropHandle<()>>,
}

impl Connection {
    pub(super) fn new(engine: Arc<dyn EngineClient>, options: Arc<ServerOptions>) -> Self {
        let seen = options.news.as_ref().map_or(0, |news| news.borrow().tools);
        Self {
            engine,
            options,
            attended: OnceCell::new(),
            headless: OnceCell::new(),
            known: Mutex::new(None),
            seen: AtomicU64::new(seen),
            telling: OnceLock::new(),
        }
    }

    /// Runs `telling` for as long as the client is there. It greets once.
    pub(super) fn tell(&self, telling: impl Future<Output = ()> + Send + 'static) {
        self.telling.get_or_init(|| AbortOnDropHandle::new(tokio::spawn(telling)));
    }

    /// Has the threads take the tools there are, when these are others than they have: a client calls what it was told of. Costs
    /// nothing worth mentioning otherwise.
    pub(super) async fn catch_up(&self) -> Result<(), EngineError> {
        let Some(news) = &self.options.news else { return Ok(()) };
        let now = news.borrow().tools;
        if self.seen.swap(now, Ordering::Relaxed) == now {
            return Ok(());
        }
        for thread in [&self.attended, &self.headless].into_iter().filter_map(|thread| thread.get()) {
            self.list_of(ListKind::Tools, thread.id).await?;
        }
        Ok(())
    }

    /// The thread in which `attendance` holds.
    pub(super) async fn thread(&self, attendance: Attendance) -> Result<&Arc<Thread>, EngineError> {
        let cell = match attendance {
            Attendance::Attended => &self.attended,
            Attendance::Headless => &self.headless,
        };
        cell.get_or_try_init(|| self.start(attendance)).await
    }

    /// A call has shown how the client can be asked, which stays so while it is connected.
    pub(super) fn learn(&self, asking: Asking, peer: &Peer<RoleServer>) {
        let mut known = lock(&self.known);
        if known.as_ref().is_none_or(|known| known.asking != asking) {
            *known = Some(Arc::new(Known { asking, peer: peer.clone() }));
        }
    }

    /// How the client can be asked is open again.
    pub(super) fn unlearn(&self) {
        *lock(&self.known) = None;
    }

    /// How the client can be asked and the thread its calls are made in, where that is known and the thread has the tools there are.
    pub(super) fn known(&self) -> Option<(Arc<Known>, &Arc<Thread>)> {
        let known = lock(&self.known).clone()?;
        let thread = match known.asking.attendance() {
            Attendance::Attended => self.attended.get(),
            Attendance::Headless => self.headless.get(),
        };
        thread.filter(|_| self.is_caught_up()).map(|thread| (known, thread))
    }

    fn is_caught_up(&self) -> bool {
        let news = self.options.news.as_ref();
        news.is_none_or(|news| news.borrow().tools == self.seen.load(Ordering::Relaxed))
    }

    /// Any thread, for what does not depend on it.
    pub(super) async fn any_thread(&self) -> Result<&Arc<Thread>, EngineError> {
        match self.attended.get() {
            Some(thread) => Ok(thread),
            None => self.thread(Attendance::Headless).await,
        }
    }

    async fn start(&self, attendance: Attendance) -> Result<Arc<Thread>, EngineError> {
        let options = ThreadOptions {
            attendance,
            posture: self.options.posture,
            caller: ToolCaller::Remote,
            ..ThreadOptions::default()
        };
        let start = ThreadStart {
            workspace: self.options.workspace.clone(),
            agent: self.options.agent.clone(),
            ephemeral: true,
            options,
        };
        match self.engine.call(Request::ThreadStart(start)).await? {
            Response::ThreadStart(summary) => Ok(Arc::new(Thread {
                id: summary.id,
                workspace: summary.workspace,
                engine: Arc::clone(&self.engine),
                calls: Arc::new(Mutex::new(Calls::from(summary.cursor))),
            })),
            _ => Err(unexpected()),
        }
    }

    /// Servers of other people whose resources are served, too.
    pub(super) fn others(&self) -> Option<&dyn Others> {
        self.options.others.as_deref()
    }

    /// A listing of the engine.
    pub(super) async fn list(&self, kind: ListKind) -> Result<Vec<Value>, EngineError> {
        self.list_of(kind, self.any_thread().await?.id).await
    }

    async fn list_of(&self, kind: ListKind, thread: ThreadId) -> Result<Vec<Value>, EngineError> {
        match self.engine.call(Request::List(List { kind, thread_id: Some(thread) })).await? {
            Response::List(listed) => Ok(listed.entries),
            _ => Err(unexpected()),
        }
    }
}

/// An engine that answers another question than the one it was asked.
pub(super) fn unexpected() -> EngineError {
    EngineError { kind: EngineErrorKind::Closed, message: "the engine answered another question".to_owned() }
}

/// A thread of a client. It is forgotten with the client.
pub(super) struct Thread {
    pub(super) id: ThreadId,
    pub(super) workspace: PathBuf,
    engine: Arc<dyn EngineClient>,
    calls: Arc<Mutex<Calls>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        lock(&self.calls).watch = None;
        // Without a runtime the engine has ended, and the thread with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let engine = Arc::clone(&self.engine);
            let thread_id = self.id;
            runtime.spawn(async move { engine.call(Request::ThreadDelete(ThreadAt { thread_id })).await });
        }
    }
}

/// Something that happens to a call while it runs.
#[derive(Debug)]
pub(super) enum Happening {
    /// It wrote something.
    Output(String),
    /// It needs consent.
    Approval(Box<Approval>),
    /// It asks the user something.
    Question(Question),
}

/// How many happenings wait for whoever drives the call. Output takes only half of it, for there may be more than anybody reads; the
/// rest is for questions, of which a call has one at a time.
const HAPPENINGS: usize = 64;

/// The calls of a thread that are watched.
struct Calls {
    own: HashMap<ItemId, mpsc::Sender<Happening>>,
    /// Calls that run an agent: what its subagents' calls need comes under ids nobody here knows.
    agents: Vec<ItemId>,
    /// Hands what happens in the thread to the calls it happens to, while there are any: to be watched costs every call something.
    watch: Option<AbortOnDropHandle<()>>,
    /// Up to where the thread has been watched.
    seen: EventCursor,
}

impl From<EventCursor> for Calls {
    fn from(seen: EventCursor) -> Self {
        Self { own: HashMap::new(), agents: Vec::new(), watch: None, seen }
    }
}

/// What happens to one call.
pub(super) struct Happenings {
    item: ItemId,
    calls: Arc<Mutex<Calls>>,
    next: mpsc::Receiver<Happening>,
}

impl Happenings {
    /// The next thing that happens; waits for ever when nothing does.
    pub(super) async fn next(&mut self) -> Happening {
        match self.next.recv().await {
            Some(happening) => happening,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Happenings {
    fn drop(&mut self) {
        let mut calls = lock(&self.calls);
        calls.own.remove(&self.item);
        calls.agents.retain(|agent| *agent != self.item);
        if calls.own.is_empty() {
            calls.watch = None;
        }
    }
}

/// What a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    /// A tool.
    Tool,
    /// An agent.
    Agent,
}

impl Thread {
    /// Watches the call whose item is, or is to be, `item`. What has happened to it is told as well.
    pub(super) fn watch(&self, item: ItemId, runs: Runs) -> Happenings {
        let (sender, next) = mpsc::channel(HAPPENINGS);
        let mut calls = lock(&self.calls);
        calls.own.insert(item, sender);
        if runs == Runs::Agent {
            calls.agents.push(item);
        }
        if calls.watch.is_none() {
            calls.watch = Some(self.start_watching(calls.seen));
        }
        drop(calls);
        Happenings { item, calls: Arc::clone(&self.calls), next }
    }

    fn start_watching(&self, seen: EventCursor) -> AbortOnDropHandle<()> {
        let calls = Arc::clone(&self.calls);
        let engine = Arc::clone(&self.engine);
        let id = self.id;
        AbortOnDropHandle::new(tokio::spawn(async move {
            let mut events = engine.subscribe(id, seen);
            while let Some(event) = events.next().await {
                let mut calls = lock(&calls);
                calls.seen = event.cursor;
                calls.route(event.content);
            }
        }))
    }
}

impl Calls {
    fn route(&self, content: EventContent) {
        match content {
            EventContent::ItemDelta { item_id, delta } => {
                if let Some(call) = self.own.get(&item_id)
                    && call.capacity() > HAPPENINGS / 2
                {
                    let _ = call.try_send(Happening::Output(delta));
                }
            }
            EventContent::ApprovalRequested { approval } => {
                if let Some(call) = self.own.get(&approval.item_id).or_else(|| self.agent()) {
                    let _ = call.try_send(Happening::Approval(Box::new(approval)));
                }
            }
            EventContent::QuestionAsked { question } => {
                if let Some(call) = self.agent() {
                    let _ = call.try_send(Happening::Question(question));
                }
            }
            _ => {}
        }
    }

    fn agent(&self) -> Option<&mpsc::Sender<Happening>> {
        self.agents.last().and_then(|agent| self.own.get(agent))
    }
}

/// What is behind these locks is whole at every moment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
