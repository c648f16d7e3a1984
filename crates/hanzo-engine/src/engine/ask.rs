//! Requests about threads: input, calls from faces, and reading what is there.

use std::sync::Arc;

use hanzo_protocol::engine::{
    EngineError, EngineErrorKind, Exported, List, ListKind, Listed, Page, ThreadExport, ThreadList,
    ThreadRead, ThreadSummary, ToolCallRequest, TurnStarted,
};
use hanzo_protocol::ids::{ThreadId, ToolCallId, TraceId};
use hanzo_protocol::item::Item;
use hanzo_protocol::message::ToolCall;
use hanzo_protocol::tool::{Effect, ToolResult, ToolSet};
use hanzo_store::export::{self, WithAudit};
use hanzo_store::{AuditFilter, ItemQuery, ThreadFilter};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::commands::registry;
use super::{Handle, Inner};
use crate::agents::Catalog;
use crate::gate::{CallOrigin, GateStep};
use crate::parts::refuse;
use crate::thread::actor::{Command, When};
use crate::thread::calls::{Calls, LiveCall};
use crate::thread::conversation::INTERRUPTED;
use crate::thread::open::store_failed;
use crate::thread::state::Input;

/// How many items a page has when nobody says.
const PAGE: u32 = 200;

impl Inner {
    pub(super) async fn say(
        &self,
        handle: &Handle,
        input: Input,
        when: When,
    ) -> Result<TurnStarted, EngineError> {
        if input.text.trim().is_empty() && input.attachments.is_empty() {
            return Err(refuse(EngineErrorKind::InvalidParams, "there is nothing in this input"));
        }
        handle.ask(|reply| Command::Say { input, when, reply, report: None }).await
    }

    /// Runs one call through the gate. It is kept in the thread, but the model did not make it and is not told of it. Dropping
    /// the future cancels it.
    pub(super) async fn tool_call(&self, request: ToolCallRequest) -> Result<ToolResult, EngineError> {
        let handle = self.handle(request.thread_id)?;
        let calls = Arc::clone(&handle.calls);
        let call = ToolCall {
            id: ToolCallId::new(TraceId::new().to_string()),
            name: request.tool,
            arguments: request.arguments.to_string(),
        };
        let item = request.item_id;
        if item.is_some() && !calls.journal.is_forgotten() {
            let message = "the ids of stored items are the engine's to give\n\nhint: leave out `itemId`";
            return Err(refuse(EngineErrorKind::InvalidParams, message));
        }
        let classified = calls.gate.classify_read(&call, request.arguments);
        let (live, classified) = calls.prepare(&call, classified, item, None, Timestamp::now());
        let mut open = OpenCall { calls: Arc::clone(&calls), live: Some(Arc::clone(&live)) };
        calls.begin(&live).await.map_err(store_failed)?;
        let stance = GateStep { origin: CallOrigin::Face, ..calls.stance() };
        let gated = tokio::select! {
            gated = calls.run(&stance, classified, &live) => Some(gated),
            () = calls.stopped() => None,
        };
        let Some(gated) = gated else { return Ok(ToolResult::failure(INTERRUPTED)) };
        open.live = None;
        calls.settle(&[live]).await.map_err(store_failed)?;
        Ok(gated.result)
    }

    pub(super) async fn threads(&self, list: ThreadList) -> Result<Page<ThreadSummary>, EngineError> {
        let ThreadList { workspace, search, cursor, limit } = list;
        let filter = ThreadFilter { workspace, search, parent: None, cursor, limit };
        let page = self.parts.store.threads(filter).await.map_err(store_failed)?;
        let entries = page.entries.into_iter().map(|record| record.summary).collect();
        Ok(Page { entries, next: page.next })
    }

    pub(super) async fn read(&self, read: ThreadRead) -> Result<Page<Item>, EngineError> {
        let store = self.store_of(read.thread_id);
        if store.thread(read.thread_id).await.map_err(store_failed)?.is_none() {
            return Err(super::no_thread(read.thread_id));
        }
        let limit = Some(read.limit.unwrap_or(PAGE));
        let query = ItemQuery { page: read.cursor, limit, ..ItemQuery::all(read.thread_id) };
        let page = store.items(query).await.map_err(store_failed)?;
        Ok(Page { entries: page.entries.into_iter().map(|stored| stored.item).collect(), next: page.next })
    }

    pub(super) async fn export(&self, request: ThreadExport) -> Result<Exported, EngineError> {
        let store = self.store_of(request.thread_id);
        let text = export::export(store.as_ref(), request.thread_id, request.format, WithAudit::No);
        Ok(Exported { text: text.await.map_err(store_failed)? })
    }

    pub(super) async fn list(&self, list: List) -> Result<Listed, EngineError> {
        let thread = || {
            let unnamed = || refuse(EngineErrorKind::InvalidParams, "this depends on the thread; name one");
            self.handle(list.thread_id.ok_or_else(unnamed)?)
        };
        let entries = match list.kind {
            ListKind::Models => values(thread()?.models.list())?,
            ListKind::Agents => {
                let handle = thread()?;
                let config = Some(handle.places.config.as_path());
                let catalog = Catalog { config, project: Some((&handle.workspace, handle.trust)) };
                let described = catalog.list().0.into_iter().map(|agent| {
                    json!({"name": agent.name, "description": agent.description, "origin": agent.origin})
                });
                described.collect()
            }
            ListKind::Tools => {
                let handle = thread()?;
                // Some threads never have a turn: those of clients that only call tools.
                if handle.tool_changes.as_ref().is_some_and(|changes| changes.is_due()) {
                    handle.ask(|reply| Command::Refresh { reply }).await?;
                }
                tools(&handle.calls.gate.tools())?
            }
            ListKind::Commands => values(registry(&*thread()?).list())?,
            ListKind::Audit => {
                let filter = AuditFilter { thread: list.thread_id, ..AuditFilter::default() };
                let store =
                    list.thread_id.map_or_else(|| Arc::clone(&self.parts.store), |id| self.store_of(id));
                values(store.audit(filter).await.map_err(store_failed)?.entries)?
            }
            ListKind::Checkpoints => values(self.checkpoints(list.thread_id).await?)?,
            ListKind::Jobs => values(thread()?.jobs.list())?,
            ListKind::McpServers => values(thread()?.mcp_servers.list())?,
            other => {
                let message = format!("{other:?} are not listed by this engine");
                return Err(refuse(EngineErrorKind::NotFound, message));
            }
        };
        Ok(Listed { entries })
    }

    async fn checkpoints(
        &self,
        thread: Option<ThreadId>,
    ) -> Result<Vec<hanzo_store::CheckpointRecord>, EngineError> {
        let unnamed = || refuse(EngineErrorKind::InvalidParams, "checkpoints belong to a thread; name one");
        let thread = thread.ok_or_else(unnamed)?;
        self.store_of(thread).checkpoints(thread).await.map_err(store_failed)
    }
}

/// The tools as faces list them: what a model is told, and the effects their calls can have.
fn tools(tools: &ToolSet) -> Result<Vec<Value>, EngineError> {
    let mut entries = values(tools.schemas())?;
    for entry in &mut entries {
        let tool = entry["name"].as_str().and_then(|name| tools.get(name));
        let actions = entry["parameters"]["properties"]["action"]["enum"].as_array();
        let probes: Vec<Value> = match actions {
            Some(actions) => actions.iter().map(|action| json!({ "action": action })).collect(),
            None => vec![json!({})],
        };
        let mut effects: Vec<Effect> = Vec::new();
        for probe in probes {
            let effect = tool.map_or(Effect::Execute, |tool| tool.reach(&probe).effect);
            if !effects.contains(&effect) {
                effects.push(effect);
            }
        }
        entry["effects"] = json!(effects);
    }
    Ok(entries)
}

fn values<T: Serialize>(entries: impl IntoIterator<Item = T>) -> Result<Vec<Value>, EngineError> {
    let written: Result<Vec<Value>, _> = entries.into_iter().map(serde_json::to_value).collect();
    written.map_err(|error| refuse(EngineErrorKind::Store, format!("an entry cannot be written: {error}")))
}

/// A call from a face while it runs. Dropped before its end, it is answered as interrupted.
struct OpenCall {
    calls: Arc<Calls>,
    live: Option<Arc<LiveCall>>,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some(live) = self.live.take() {
            live.interrupt();
            let calls = Arc::clone(&self.calls);
            // Should the runtime be gone, opening the thread again answers it.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { calls.settle(&[live]).await });
            }
        }
    }
}
