//! Threads that begin, go on, are copied and end.

use std::sync::Arc;

use hanzo_protocol::engine::{
    EngineError, EngineErrorKind, ThreadFork, ThreadRename, ThreadResume, ThreadStart, ThreadSummary,
};
use hanzo_protocol::event::EventCursor;
use hanzo_protocol::ids::ThreadId;
use hanzo_store::{Holder, SqliteStore, Store, ThreadChange, ThreadRecord};
use jiff::Timestamp;
use tokio::sync::Semaphore;

use super::{Handle, Inner, no_thread};
use crate::agents::DEFAULT_AGENT;
use crate::budget::Budget;
use crate::own_tools::OwnTools;
use crate::parts::{OpenThread, refuse};
use crate::thread::actor::{Actor, Command};
use crate::thread::open::{Opening, store_failed};

impl Inner {
    pub(super) async fn start(&self, start: ThreadStart) -> Result<ThreadSummary, EngineError> {
        let ThreadStart { workspace, agent, ephemeral, options } = start;
        let workspace = absolute(&workspace)?;
        let id = ThreadId::new();
        let request = OpenThread {
            thread: id,
            workspace: &workspace,
            agent: agent.as_deref(),
            caller: options.caller,
            options: &options,
            parent: None,
        };
        let parts = self.parts.threads.open(request).await?;
        let wish = options.model.as_deref().or(parts.manifest.model.as_deref());
        let model = parts.models.resolve(wish)?;
        let now = Timestamp::now();
        let summary = ThreadSummary {
            id,
            title: String::new(),
            workspace: parts.workspace.path().to_owned(),
            agent: agent.unwrap_or_else(|| DEFAULT_AGENT.to_owned()),
            model: model.reference.clone(),
            mode: options.mode.unwrap_or_default(),
            posture: options.posture.unwrap_or(parts.settings.approval),
            parent: None,
            created_at: now,
            updated_at: now,
            cursor: EventCursor::default(),
        };
        let record = ThreadRecord { effort: options.effort, ephemeral, ..ThreadRecord::new(summary) };
        let store: Arc<dyn Store> = if ephemeral {
            Arc::new(SqliteStore::in_memory().await.map_err(store_failed)?)
        } else {
            Arc::clone(&self.parts.store)
        };
        store.create_thread(record.clone()).await.map_err(store_failed)?;
        let lease =
            Some(store.claim(id, Holder::here(self.parts.program.as_str())).await.map_err(store_failed)?);
        let budget = Arc::new(Budget::new(options.max_cost));
        let opening = Opening {
            hub: self.watched_hub(id, EventCursor::default()),
            record,
            caller: options.caller,
            options,
            model,
            parts,
            books: ephemeral.then(|| Arc::clone(&self.parts.store)),
            store,
            blobs: Arc::clone(&self.parts.blobs),
            lease,
            desk: Arc::clone(&self.desk),
            budget,
            writing: Arc::new(Semaphore::new(1)),
            own: OwnTools { engine: self.me.clone(), depth: 0 },
            taint: None,
        };
        let handle = self.begin(opening).await?;
        describe(&handle).await
    }

    pub(super) async fn resume(&self, resume: ThreadResume) -> Result<ThreadSummary, EngineError> {
        let _one_at_a_time =
            self.opening.acquire().await.map_err(|_| refuse(EngineErrorKind::Closed, "closed"))?;
        let id = resume.thread_id;
        if let Ok(handle) = self.handle(id) {
            return self.reconfigure(&handle, resume).await;
        }
        let options = resume.options;
        let store = Arc::clone(&self.parts.store);
        // Claimed first, so that what is read is what the last holder left.
        let lease =
            Some(store.claim(id, Holder::here(self.parts.program.as_str())).await.map_err(store_failed)?);
        let mut record = store.thread(id).await.map_err(store_failed)?.ok_or_else(|| no_thread(id))?;
        let request = OpenThread {
            thread: id,
            workspace: &record.summary.workspace,
            agent: Some(&record.summary.agent),
            caller: options.caller,
            options: &options,
            parent: record.summary.parent,
        };
        let parts = self.parts.threads.open(request).await?;
        let wish = options
            .model
            .clone()
            .or_else(|| Some(record.summary.model.clone()).filter(|name| !name.is_empty()));
        let model = parts.models.resolve(wish.as_deref())?;
        record.summary.model.clone_from(&model.reference);
        record.summary.mode = options.mode.unwrap_or(record.summary.mode);
        record.summary.posture = options.posture.unwrap_or(record.summary.posture);
        record.effort = options.effort.or(record.effort);
        let change = ThreadChange {
            model: Some(record.summary.model.clone()),
            mode: Some(record.summary.mode),
            posture: Some(record.summary.posture),
            effort: Some(record.effort),
            ..ThreadChange::default()
        };
        store.update_thread(id, change).await.map_err(store_failed)?;
        let opening = Opening {
            hub: self.watched_hub(id, record.summary.cursor),
            budget: Arc::new(Budget::new(options.max_cost)),
            record,
            caller: options.caller,
            options,
            model,
            parts,
            books: None,
            store,
            blobs: Arc::clone(&self.parts.blobs),
            lease,
            desk: Arc::clone(&self.desk),
            writing: Arc::new(Semaphore::new(1)),
            own: OwnTools { engine: self.me.clone(), depth: 0 },
            taint: None,
        };
        let handle = self.begin(opening).await?;
        describe(&handle).await
    }

    /// Opens a thread and starts its actor.
    pub(super) async fn begin(&self, opening: Opening) -> Result<Arc<Handle>, EngineError> {
        let store = Arc::clone(&opening.store);
        let models = Arc::clone(&opening.parts.models);
        let (places, trust) = (opening.parts.places.clone(), opening.parts.trust);
        let (workspace, commands) = (Arc::clone(&opening.parts.workspace), opening.parts.commands.clone());
        let (jobs, mcp_servers) = (Arc::clone(&opening.parts.jobs), Arc::clone(&opening.parts.mcp_servers));
        let tool_changes = opening.parts.tool_changes.clone();
        let id = opening.record.id();
        let thread = opening.open().await?;
        thread.announce();
        let calls = thread.calls();
        let (actor, inbox) = Actor::new(thread);
        let handle = Arc::new(Handle {
            id,
            inbox,
            calls,
            store,
            models,
            places,
            workspace,
            trust,
            commands,
            jobs,
            mcp_servers,
            tool_changes,
        });
        self.open().insert(id, Arc::clone(&handle));
        tokio::spawn(actor.run());
        Ok(handle)
    }

    /// Copies a thread. The copy is stored and not open: `thread/resume` goes on with it.
    pub(super) async fn fork(&self, fork: ThreadFork) -> Result<ThreadSummary, EngineError> {
        let store = self.store_of(fork.thread_id);
        let source = store.thread(fork.thread_id).await.map_err(store_failed)?;
        let source = source.ok_or_else(|| no_thread(fork.thread_id))?;
        if source.ephemeral {
            return Err(refuse(EngineErrorKind::Conflict, "a thread that is not stored cannot be copied"));
        }
        let now = Timestamp::now();
        let summary = ThreadSummary {
            id: ThreadId::new(),
            created_at: now,
            updated_at: now,
            parent: None,
            ..source.summary
        };
        let record = ThreadRecord {
            effort: source.effort,
            forked_from: Some(fork.thread_id),
            // The copy says what its original said, so what the last request began with holds for it as well.
            state: source.state,
            ..ThreadRecord::new(summary.clone())
        };
        store.fork_thread(fork.thread_id, fork.until, record).await.map_err(store_failed)?;
        Ok(summary)
    }

    pub(super) async fn rename(&self, rename: ThreadRename) -> Result<ThreadSummary, EngineError> {
        if let Ok(handle) = self.handle(rename.thread_id) {
            let title = rename.title;
            return handle.ask(|reply| Command::Rename { title, reply }).await;
        }
        let change = ThreadChange { title: Some(rename.title), ..ThreadChange::default() };
        let record = self.parts.store.update_thread(rename.thread_id, change).await.map_err(store_failed)?;
        Ok(record.summary)
    }

    pub(super) async fn delete(&self, id: ThreadId) -> Result<(), EngineError> {
        let store = self.store_of(id);
        self.close(id).await;
        // The store refuses when somebody else works in it.
        store.delete_thread(id).await.map_err(store_failed)
    }

    /// Stops a thread and gives it up, if it is open.
    pub(super) async fn close(&self, id: ThreadId) {
        let handle = self.open().remove(&id);
        if let Some(handle) = handle {
            // One whose actor is gone is closed already.
            let _ = handle.ask(|reply| Command::Close { reply }).await;
        }
    }
}

async fn describe(handle: &Handle) -> Result<ThreadSummary, EngineError> {
    Ok(handle.ask(|reply| Command::Describe { reply }).await?.summary)
}

fn absolute(path: &std::path::Path) -> Result<std::path::PathBuf, EngineError> {
    path.canonicalize().map_err(|error| {
        let message =
            format!("cannot work in `{}`: {error}\n\nhint: name a directory that exists", path.display());
        refuse(EngineErrorKind::InvalidParams, message)
    })
}
