//! The engine API, answered in this process. Open threads are actors (`thread::actor`); this is the way to them, and
//! to what is stored of the others.

mod ask;
mod commands;
mod open;
mod subagent;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::stream::{self, StreamExt as _};
use hanzo_protocol::engine::{
    Attendance, Done, EngineClient, EngineError, EngineErrorKind, Request, Response, ThreadConfigure,
    ThreadResume,
};
use hanzo_protocol::event::{Event, EventCursor};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::{BoxFuture, BoxStream};
use hanzo_sandbox::paths::Workspace;
use hanzo_store::Store;
use tokio::sync::{Semaphore, mpsc, oneshot};

pub(crate) use self::subagent::Child;
use crate::agents::ProjectTrust;
use crate::commands::CommandSource;
use crate::own_tools::put_question;
use crate::parts::{EngineParts, Jobs, McpServers, Models, Places, ToolChanges, refuse};
use crate::thread::actor::{Command, When};
use crate::thread::calls::Calls;
use crate::thread::desk::Desk;
use crate::thread::hub::Hub;
use crate::thread::open::store_failed;
use crate::thread::reader;
use crate::thread::state::Input;

/// Runs threads. Cheap to clone; all clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    parts: EngineParts,
    me: Weak<Inner>,
    desk: Arc<Desk>,
    open: Mutex<HashMap<ThreadId, Arc<Handle>>>,
    /// The hubs of threads somebody watches that are not open.
    watched: Mutex<HashMap<ThreadId, Weak<Hub>>>,
    /// One thread is opened at a time, so that two requests do not open the same one twice.
    opening: Semaphore,
    closed: AtomicBool,
}

/// The way to an open thread, and what requests need of it without troubling its actor.
pub(crate) struct Handle {
    id: ThreadId,
    inbox: mpsc::Sender<Command>,
    calls: Arc<Calls>,
    store: Arc<dyn Store>,
    models: Arc<dyn Models>,
    places: Places,
    workspace: Arc<Workspace>,
    trust: ProjectTrust,
    commands: Vec<Arc<dyn CommandSource>>,
    jobs: Arc<dyn Jobs>,
    mcp_servers: Arc<dyn McpServers>,
    tool_changes: Option<Arc<dyn ToolChanges>>,
}

impl Handle {
    /// Asks the actor and waits for its answer.
    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, EngineError>>) -> Command,
    ) -> Result<T, EngineError> {
        let (reply, answer) = oneshot::channel();
        let gone = || refuse(EngineErrorKind::Closed, "the thread is closed\n\nhint: resume it");
        self.inbox.send(command(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl Engine {
    /// An engine made of these parts. Nothing is opened or started yet.
    pub fn new(parts: EngineParts) -> Self {
        let inner = Arc::new_cyclic(|me| Inner {
            parts,
            me: Weak::clone(me),
            desk: Arc::default(),
            open: Mutex::default(),
            watched: Mutex::default(),
            opening: Semaphore::new(1),
            closed: AtomicBool::new(false),
        });
        Self { inner }
    }

    /// Asks the user of an open thread something on behalf of somebody else, such as an MCP server, and waits for as long as it
    /// takes. `None` when nobody is there to answer.
    pub async fn ask_user(&self, thread: ThreadId, question: String, choices: Vec<String>) -> Option<String> {
        let calls = Arc::clone(&self.inner.handle(thread).ok()?.calls);
        let attendance = calls.stance().attendance;
        // A server that is told nothing when nobody is there need not be recorded as having asked.
        if attendance == Attendance::Headless {
            return None;
        }
        put_question(&calls.journal, &self.inner.desk, attendance, question, choices).await.ok()?
    }

    /// Interrupts every turn, stores what there is to store and gives up every thread. Requests after it are refused.
    pub async fn shutdown(&self) {
        self.inner.closed.store(true, Ordering::Relaxed);
        let open: Vec<Arc<Handle>> = self.inner.open().drain().map(|(_, handle)| handle).collect();
        for handle in open {
            // One whose actor is gone is closed already.
            let _ = handle.ask(|reply| Command::Close { reply }).await;
        }
    }
}

impl EngineClient for Engine {
    fn call(&self, request: Request) -> BoxFuture<'_, Result<Response, EngineError>> {
        match request {
            // What is asked most often does not carry the room about that all the others need.
            Request::ToolCall(call) => Box::pin(async {
                self.inner.is_open()?;
                self.inner.tool_call(call).await.map(Response::ToolCall)
            }),
            other => Box::pin(self.inner.answer(other)),
        }
    }

    fn subscribe(&self, thread: ThreadId, cursor: EventCursor) -> BoxStream<'_, Event> {
        // An open thread is listened to from now on, not only from when somebody takes the first notification: in one that is
        // forgotten, calls are told only to those who listen.
        if let Ok(handle) = self.inner.handle(thread) {
            let hub = Arc::clone(&handle.calls.journal.hub);
            return reader::read(thread, hub, Arc::clone(&handle.store), cursor);
        }
        let begin = async move {
            match self.inner.hub(thread).await {
                Ok((hub, store)) => reader::read(thread, hub, store, cursor),
                Err(_) => Box::pin(stream::empty()) as BoxStream<'static, Event>,
            }
        };
        Box::pin(stream::once(begin).flatten())
    }
}

impl Inner {
    async fn answer(&self, request: Request) -> Result<Response, EngineError> {
        self.is_open()?;
        Ok(match request {
            Request::ThreadStart(start) => Response::ThreadStart(self.start(start).await?),
            Request::ThreadResume(resume) => Response::ThreadResume(self.resume(resume).await?),
            Request::ThreadFork(fork) => Response::ThreadFork(self.fork(fork).await?),
            Request::ThreadList(list) => Response::ThreadList(self.threads(list).await?),
            Request::ThreadRead(read) => Response::ThreadRead(self.read(read).await?),
            Request::ThreadRename(rename) => Response::ThreadRename(self.rename(rename).await?),
            Request::ThreadDelete(at) => {
                self.delete(at.thread_id).await?;
                Response::ThreadDelete(Done {})
            }
            Request::ThreadCompact(at) => {
                let handle = self.handle(at.thread_id)?;
                handle.ask(|reply| Command::Compact { reply }).await?;
                Response::ThreadCompact(Done {})
            }
            Request::ThreadRewind(rewind) => {
                let handle = self.handle(rewind.thread_id)?;
                let (to, what) = (rewind.checkpoint, rewind.what);
                Response::ThreadRewind(handle.ask(|reply| Command::Rewind { to, what, reply }).await?)
            }
            Request::ThreadPreview(preview) => {
                let handle = self.handle(preview.thread_id)?;
                let to = preview.checkpoint;
                Response::ThreadPreview(handle.ask(|reply| Command::Preview { to, reply }).await?)
            }
            Request::ThreadExport(export) => Response::ThreadExport(self.export(export).await?),
            Request::ThreadSubscribe(subscribe) => {
                // The stream itself is `EngineClient::subscribe`; here only whether there is something to watch.
                self.hub(subscribe.thread_id).await?;
                Response::ThreadSubscribe(Done {})
            }
            Request::ThreadConfigure(change) => {
                let handle = self.handle(change.thread_id)?;
                Response::ThreadConfigure(handle.ask(|reply| Command::Configure { change, reply }).await?)
            }
            Request::TurnStart(turn) => {
                let handle = self.handle(turn.thread_id)?;
                let text = self.expand(&handle, turn.text).await?;
                let input = Input { text, attachments: turn.attachments, posture: turn.posture };
                Response::TurnStart(self.say(&handle, input, When::Afterwards).await?)
            }
            Request::TurnSteer(turn) => {
                let handle = self.handle(turn.thread_id)?;
                let text = self.expand(&handle, turn.text).await?;
                let input = Input { text, attachments: turn.attachments, posture: None };
                Response::TurnSteer(self.say(&handle, input, When::AtOnce).await?)
            }
            Request::TurnInterrupt(at) => {
                self.handle(at.thread_id)?.ask(|reply| Command::Interrupt { reply }).await?;
                Response::TurnInterrupt(Done {})
            }
            Request::ToolCall(call) => Response::ToolCall(self.tool_call(call).await?),
            Request::ApprovalRespond(respond) => {
                self.desk.answer(respond)?;
                Response::ApprovalRespond(Done {})
            }
            Request::QuestionRespond(respond) => {
                self.desk.answer_question(respond)?;
                Response::QuestionRespond(Done {})
            }
            Request::CommandRun(run) => Response::CommandRun(self.run_command(run).await?),
            Request::WorkspaceTrust(decision) => {
                self.parts.trust.set(&decision).await?;
                Response::WorkspaceTrust(Done {})
            }
            Request::List(list) => Response::List(self.list(list).await?),
        })
    }

    fn is_open(&self) -> Result<(), EngineError> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(refuse(EngineErrorKind::Closed, "the engine is shutting down"));
        }
        Ok(())
    }

    fn handle(&self, id: ThreadId) -> Result<Arc<Handle>, EngineError> {
        let handle = self.open().get(&id).filter(|handle| !handle.inbox.is_closed()).cloned();
        let not_open = || format!("thread `{id}` is not open here\n\nhint: `thread/resume` opens it");
        handle.ok_or_else(|| refuse(EngineErrorKind::NotFound, not_open()))
    }

    /// Where a thread is kept.
    fn store_of(&self, id: ThreadId) -> Arc<dyn Store> {
        self.open().get(&id).map_or_else(|| Arc::clone(&self.parts.store), |handle| Arc::clone(&handle.store))
    }

    /// The notifications of a thread, open or not.
    async fn hub(&self, id: ThreadId) -> Result<(Arc<Hub>, Arc<dyn Store>), EngineError> {
        if let Ok(handle) = self.handle(id) {
            return Ok((Arc::clone(&handle.calls.journal.hub), Arc::clone(&handle.store)));
        }
        let record = self.parts.store.thread(id).await.map_err(store_failed)?;
        let record = record.ok_or_else(|| no_thread(id))?;
        Ok((self.watched_hub(id, record.summary.cursor), Arc::clone(&self.parts.store)))
    }

    /// The hub somebody already watches, or a new one.
    fn watched_hub(&self, id: ThreadId, last: EventCursor) -> Arc<Hub> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|_, hub| hub.strong_count() > 0);
        if let Some(hub) = watched.get(&id).and_then(Weak::upgrade).filter(|hub| !hub.is_closed()) {
            return hub;
        }
        let hub = Arc::new(Hub::new(id, last, None));
        watched.insert(id, Arc::downgrade(&hub));
        hub
    }

    /// A thread that is open already is given what a resume asks for.
    async fn reconfigure(
        &self,
        handle: &Handle,
        resume: ThreadResume,
    ) -> Result<hanzo_protocol::engine::ThreadSummary, EngineError> {
        let ThreadResume { thread_id, options } = resume;
        let change = ThreadConfigure {
            thread_id,
            model: options.model,
            mode: options.mode,
            posture: options.posture,
            effort: options.effort,
        };
        handle.ask(|reply| Command::Configure { change, reply }).await
    }

    fn open(&self) -> MutexGuard<'_, HashMap<ThreadId, Arc<Handle>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_thread(id: ThreadId) -> EngineError {
    refuse(EngineErrorKind::NotFound, format!("there is no thread `{id}`\n\nhint: `thread/list` lists them"))
}
