//! Threads that other threads begin.

use std::sync::Arc;

use hanzo_protocol::engine::{EngineError, EngineErrorKind, ThreadOptions, ThreadSummary};
use hanzo_protocol::event::EventCursor;
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::narrowing::AllOf;
use hanzo_store::{Holder, ThreadRecord};
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::Inner;
use crate::budget::Budget;
use crate::own_tools::{Linked, OwnTools};
use crate::parts::{OpenThread, refuse};
use crate::thread::actor::{Command, When};
use crate::thread::hub::Hub;
use crate::thread::open::{Opening, store_failed};
use crate::thread::run::TurnReport;
use crate::thread::state::Input;

/// A task for a subagent.
pub(crate) struct Child<'a> {
    pub(crate) agent: String,
    pub(crate) task: String,
    pub(crate) options: ThreadOptions,
    pub(crate) parent: &'a Linked,
}

impl Inner {
    /// Has a subagent do a task and waits for its end. Dropping the future interrupts it.
    pub(crate) async fn run_child(&self, child: Child<'_>) -> Result<TurnReport, EngineError> {
        let Child { agent, task, options, parent } = child;
        let gone = || refuse(EngineErrorKind::Closed, "the thread is closed");
        let calls = parent.calls.upgrade().ok_or_else(gone)?;
        // What it writes, it writes on behalf of its parent's turn.
        calls.lend().await;
        let stance = calls.stance();
        let store = Arc::clone(&calls.journal.store);
        let id = ThreadId::new();
        let options = ThreadOptions {
            model: None,
            mode: Some(stance.mode),
            posture: Some(stance.posture),
            attendance: stance.attendance,
            max_steps: None,
            max_cost: None,
            ..options
        };
        let request = OpenThread {
            thread: id,
            workspace: &parent.record.summary.workspace,
            agent: Some(&agent),
            caller: stance.caller,
            options: &options,
            parent: Some(calls.journal.thread),
        };
        let mut parts = self.parts.threads.open(request).await?;
        parts.manifest.capabilities = parts.manifest.capabilities.clone().within(&parent.capabilities);
        // What the parent keeps to, its subagents keep to as well, also when it changes while they work.
        parts.narrowing = Arc::new(AllOf(vec![Arc::clone(&parent.narrowing), parts.narrowing]));
        // The parent keeps the files; it is its turn they belong to.
        parts.checkpoints = None;
        let configured = &parts.settings.agent;
        let wish = configured.subagent_models.get(&agent).or(configured.subagent_model.as_ref());
        let wish = wish.or(parts.manifest.model.as_ref()).unwrap_or(&parent.record.summary.model).clone();
        let model = parts.models.resolve(Some(&wish))?;
        let now = Timestamp::now();
        let summary = ThreadSummary {
            id,
            title: String::new(),
            agent: agent.clone(),
            model: model.reference.clone(),
            mode: stance.mode,
            posture: stance.posture,
            parent: Some(calls.journal.thread),
            created_at: now,
            updated_at: now,
            cursor: EventCursor::default(),
            ..parent.record.summary.clone()
        };
        let record = ThreadRecord { ephemeral: parent.record.ephemeral, ..ThreadRecord::new(summary) };
        store.create_thread(record.clone()).await.map_err(store_failed)?;
        let lease =
            Some(store.claim(id, Holder::here(self.parts.program.as_str())).await.map_err(store_failed)?);
        let opening = Opening {
            hub: Arc::new(Hub::new(id, EventCursor::default(), Some(Arc::clone(&calls.journal.hub)))),
            record,
            options,
            caller: stance.caller,
            model,
            parts,
            books: parent.record.ephemeral.then(|| Arc::clone(&self.parts.store)),
            store,
            blobs: Arc::clone(&self.parts.blobs),
            lease,
            desk: Arc::clone(&self.desk),
            budget: Arc::new(Budget::share_of(&parent.budget)),
            writing: calls.writing(),
            own: OwnTools { engine: self.me.clone(), depth: parent.depth + 1 },
            taint: stance.taint,
        };
        let handle = self.begin(opening).await?;
        let _close = Close { inbox: handle.inbox.clone(), engine: self, id };
        let (report, ended) = oneshot::channel();
        let input = Input::text(task);
        handle
            .ask(|reply| Command::Say { input, when: When::Afterwards, reply, report: Some(report) })
            .await?;
        ended.await.map_err(|_| gone())
    }
}

/// Stops a subagent's thread and gives it up when nobody waits for it any more.
struct Close<'a> {
    inbox: mpsc::Sender<Command>,
    engine: &'a Inner,
    id: ThreadId,
}

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.engine.open().remove(&self.id);
        let (reply, _) = oneshot::channel();
        if let Err(mpsc::error::TrySendError::Full(command)) = self.inbox.try_send(Command::Close { reply }) {
            let inbox = self.inbox.clone();
            tokio::spawn(async move { inbox.send(command).await });
        }
    }
}
