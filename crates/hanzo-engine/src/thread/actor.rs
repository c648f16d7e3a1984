//! The task that owns an open thread. Requests come through a bounded inbox; one turn runs at a time, and whatever arrives
//! meanwhile joins it, waits for its end, or stops it.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};

use futures_util::FutureExt as _;
use hanzo_protocol::engine::{
    EngineError, EngineErrorKind, RewindPreview, RewindWhat, ThreadConfigure, ThreadSummary, TurnStarted,
};
use hanzo_protocol::event::EventContent;
use hanzo_protocol::ids::{CheckpointId, ThreadId, TurnId};
use hanzo_protocol::message::{ApiError, ApiErrorKind, Effort};
use hanzo_store::{Store, ThreadChange};
use tokio::sync::{mpsc, oneshot};

use super::calls::Calls;
use super::open::store_failed;
use super::run::TurnReport;
use super::state::{Failure, Input, Steering, Thread};
use crate::fold::Cause;
use crate::parts::{Model, Models, refuse};

/// How many requests wait for an actor before their senders do.
const INBOX: usize = 64;
/// How many inputs wait for the running turn to end. A face that sends more is out of control.
const MOST_QUEUED: usize = 100;

type Reply<T> = oneshot::Sender<Result<T, EngineError>>;

/// What an open thread can be asked.
pub(crate) enum Command {
    /// The user says something.
    Say { input: Input, when: When, reply: Reply<TurnStarted>, report: Option<oneshot::Sender<TurnReport>> },
    /// Stop the turn.
    Interrupt { reply: Reply<()> },
    /// Work differently from the next turn on.
    Configure { change: ThreadConfigure, reply: Reply<ThreadSummary> },
    /// Another title.
    Rename { title: String, reply: Reply<ThreadSummary> },
    /// Fold older work.
    Compact { reply: Reply<bool> },
    /// Go back.
    Rewind { to: CheckpointId, what: RewindWhat, reply: Reply<ThreadSummary> },
    /// What going back would do to the files.
    Preview { to: CheckpointId, reply: Reply<RewindPreview> },
    /// Take the tools that are there now, unless a turn runs.
    Refresh { reply: Reply<()> },
    /// How it stands.
    Describe { reply: Reply<Description> },
    /// Stop everything and give the thread up.
    Close { reply: Reply<()> },
}

/// When an input is heard while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// After the turn.
    Afterwards,
    /// Before its next step.
    AtOnce,
}

/// How a thread stands.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    pub(crate) summary: ThreadSummary,
    pub(crate) effort: Option<Effort>,
    /// The estimate of the next request and the window, in tokens; from the last moment no turn was running.
    pub(crate) context: (u64, Option<u64>),
}

/// An input that waits for its turn.
struct Work {
    turn: TurnId,
    input: Input,
    report: Option<oneshot::Sender<TurnReport>>,
}

/// What answers requests, also while a turn has the thread.
struct Front {
    id: ThreadId,
    summary: ThreadSummary,
    effort: Option<Effort>,
    context: (u64, Option<u64>),
    /// Another model from the next turn on.
    model: Option<Model>,
    models: Arc<dyn Models>,
    store: Arc<dyn Store>,
    calls: Arc<Calls>,
    steering: Steering,
    queue: VecDeque<Work>,
}

/// The task of an open thread.
pub(crate) struct Actor {
    thread: Thread,
    front: Front,
    inbox: mpsc::Receiver<Command>,
}

impl Actor {
    /// The actor of a thread, and the way to reach it.
    pub(crate) fn new(thread: Thread) -> (Self, mpsc::Sender<Command>) {
        let (sender, inbox) = mpsc::channel(INBOX);
        let front = Front {
            id: thread.id,
            summary: thread.summary.clone(),
            effort: thread.effort,
            context: thread.context(),
            model: None,
            models: Arc::clone(&thread.parts.models),
            store: Arc::clone(&thread.journal.store),
            calls: Arc::clone(&thread.calls),
            steering: Arc::clone(&thread.steering),
            queue: VecDeque::new(),
        };
        (Self { thread, front, inbox }, sender)
    }

    /// Runs until the thread is closed.
    pub(crate) async fn run(mut self) {
        let closing = loop {
            match self.front.queue.pop_front() {
                Some(work) => {
                    if let Some(closing) = self.turn(work).await {
                        break closing;
                    }
                }
                None => match self.inbox.recv().await {
                    None => break None,
                    Some(Command::Close { reply }) => break Some(reply),
                    Some(command) => self.idle(command).await,
                },
            }
        };
        self.thread.journal.flush().await;
        let hub = Arc::clone(&self.thread.journal.hub);
        // The lease goes with the thread, before anybody is told that it is free.
        drop(self);
        hub.close();
        if let Some(reply) = closing {
            let _ = reply.send(Ok(()));
        }
    }

    /// A request while no turn runs.
    async fn idle(&mut self, command: Command) {
        match command {
            Command::Say { input, reply, report, .. } => {
                let turn = TurnId::new();
                self.front.queue.push_back(Work { turn, input, report });
                let _ = reply.send(Ok(TurnStarted::Started { turn_id: turn }));
            }
            Command::Interrupt { reply } => {
                self.front.calls.stop();
                let _ = reply.send(Ok(()));
            }
            Command::Compact { reply } => {
                let folded = self.thread.fold(Cause::Asked).await;
                self.front.context = self.thread.context();
                let _ = reply.send(folded.map_err(|failure| match failure {
                    Failure::Store(error) => store_failed(error),
                    Failure::Api(error) => refuse(EngineErrorKind::Conflict, error.message),
                }));
            }
            Command::Rewind { to, what, reply } => {
                let rewound = self.thread.rewind(to, what).await;
                self.front.context = self.thread.context();
                let _ = reply.send(rewound.map(|()| self.front.summary()));
            }
            Command::Preview { to, reply } => {
                let _ = reply.send(self.thread.preview(to).await);
            }
            Command::Refresh { reply } => {
                self.thread.refresh_tools();
                self.front.context = self.thread.context();
                let _ = reply.send(Ok(()));
            }
            other => self.front.answer(other, None).await,
        }
    }

    /// Runs a turn. Returns whom to tell when the thread is to be closed.
    async fn turn(&mut self, work: Work) -> Option<Option<Reply<()>>> {
        self.front.apply(&mut self.thread);
        let Self { thread, front, inbox } = self;
        let mut interrupted = None;
        let mut closing = None;
        let outcome = {
            let turn = AssertUnwindSafe(thread.run(work.turn, work.input)).catch_unwind();
            tokio::pin!(turn);
            loop {
                tokio::select! {
                    outcome = &mut turn => break Some(outcome.unwrap_or_else(|_| Err(panicked()))),
                    command = inbox.recv() => match command {
                        Some(Command::Interrupt { reply }) => {
                            interrupted = Some(reply);
                            break None;
                        }
                        Some(Command::Close { reply }) => {
                            closing = Some(Some(reply));
                            break None;
                        }
                        None => {
                            closing = Some(None);
                            break None;
                        }
                        Some(command) => front.answer(command, Some(work.turn)).await,
                    },
                }
            }
        };
        // Everything the turn had under way is gone with its future.
        front.calls.stop();
        let report = thread.rest(outcome).await;
        front.after_turn(thread);
        if let Some(reply) = interrupted {
            let _ = reply.send(Ok(()));
        }
        if let Some(waiting) = work.report {
            let _ = waiting.send(report);
        }
        closing
    }
}

impl Front {
    /// A request that can be answered whether or not a turn runs.
    async fn answer(&mut self, command: Command, turn: Option<TurnId>) {
        match command {
            Command::Say { input, when, reply, report } => {
                let _ = reply.send(self.say(input, when, report, turn));
            }
            Command::Configure { change, reply } => {
                let _ = reply.send(self.configure(change).await);
            }
            Command::Rename { title, reply } => {
                let change = ThreadChange { title: Some(title.clone()), ..ThreadChange::default() };
                let renamed = self.store.update_thread(self.id, change).await.map_err(store_failed);
                if renamed.is_ok() {
                    self.summary.title = title;
                }
                let _ = reply.send(renamed.map(|_| self.summary()));
            }
            Command::Describe { reply } => {
                let description =
                    Description { summary: self.summary(), effort: self.effort, context: self.context };
                let _ = reply.send(Ok(description));
            }
            Command::Compact { reply } => {
                let _ = reply.send(Err(busy()));
            }
            Command::Rewind { reply, .. } => {
                let _ = reply.send(Err(busy()));
            }
            Command::Preview { reply, .. } => {
                let _ = reply.send(Err(busy()));
            }
            // The next turn takes them.
            Command::Interrupt { reply } | Command::Close { reply } | Command::Refresh { reply } => {
                let _ = reply.send(Ok(()));
            }
        }
    }

    fn say(
        &mut self,
        input: Input,
        when: When,
        report: Option<oneshot::Sender<TurnReport>>,
        turn: Option<TurnId>,
    ) -> Result<TurnStarted, EngineError> {
        let waiting = self.queue.len();
        if let (Some(turn_id), When::AtOnce) = (turn, when) {
            let mut steering = self.steering.lock().unwrap_or_else(PoisonError::into_inner);
            if steering.len() >= MOST_QUEUED {
                return Err(refuse(EngineErrorKind::Conflict, "too many inputs wait already"));
            }
            steering.push_back(input);
            return Ok(TurnStarted::Steered { turn_id });
        }
        if waiting >= MOST_QUEUED {
            return Err(refuse(EngineErrorKind::Conflict, "too many inputs wait already"));
        }
        self.queue.push_back(Work { turn: TurnId::new(), input, report });
        Ok(TurnStarted::Queued { ahead: u32::try_from(waiting).unwrap_or(u32::MAX) })
    }

    async fn configure(&mut self, change: ThreadConfigure) -> Result<ThreadSummary, EngineError> {
        let model = change.model.as_deref().map(|wish| self.models.resolve(Some(wish))).transpose()?;
        let stored = ThreadChange {
            model: model.as_ref().map(|model| model.reference.clone()),
            mode: change.mode,
            posture: change.posture,
            effort: change.effort.map(Some),
            ..ThreadChange::default()
        };
        self.store.update_thread(self.id, stored).await.map_err(store_failed)?;
        if let Some(model) = model {
            self.summary.model.clone_from(&model.reference);
            self.model = Some(model);
        }
        self.summary.mode = change.mode.unwrap_or(self.summary.mode);
        self.summary.posture = change.posture.unwrap_or(self.summary.posture);
        self.effort = change.effort.or(self.effort);
        Ok(self.summary())
    }

    /// Gives the thread what was configured since its last turn.
    fn apply(&mut self, thread: &mut Thread) {
        thread.next_model = self.model.take().or(thread.next_model.take());
        thread.summary.clone_from(&self.summary);
        thread.effort = self.effort;
        thread.calls.set_stance(thread.capture().gate);
    }

    fn after_turn(&mut self, thread: &mut Thread) {
        // A plan that was accepted, or asked for, in the turn.
        self.summary.mode = thread.own_mode.take().unwrap_or(self.summary.mode);
        // A rename during the turn came here; a title made of the first input was made there.
        if self.summary.title.is_empty() {
            self.summary.title.clone_from(&thread.summary.title);
        }
        self.context = thread.context();
        // What was said too late to join the turn is the next one.
        let late = std::mem::take(&mut *self.steering.lock().unwrap_or_else(PoisonError::into_inner));
        for input in late.into_iter().rev() {
            self.queue.push_front(Work { turn: TurnId::new(), input, report: None });
        }
    }

    fn summary(&self) -> ThreadSummary {
        ThreadSummary { cursor: self.calls.journal.hub.last(), ..self.summary.clone() }
    }
}

impl Thread {
    /// The estimate of the next request, and the window.
    pub(crate) fn context(&self) -> (u64, Option<u64>) {
        (self.estimator.request(self.size), self.model.context_window)
    }

    /// Tells those who watch that the thread exists.
    pub(crate) fn announce(&self) {
        let thread = ThreadSummary { cursor: self.journal.hub.last(), ..self.summary.clone() };
        self.journal.hub.emit(EventContent::ThreadStarted { thread });
    }
}

fn busy() -> EngineError {
    refuse(EngineErrorKind::Conflict, "a turn is running\n\nhint: wait for its end, or interrupt it")
}

fn panicked() -> ApiError {
    ApiError {
        kind: ApiErrorKind::Local,
        message: "the turn ended by a mistake in this program\n\nhint: the thread can go on; please report what you did".to_owned(),
        status: None,
        retry_after_ms: None,
    }
}
