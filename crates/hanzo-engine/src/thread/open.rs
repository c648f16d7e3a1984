//! Opening a thread: a new one, or one that was stored and perhaps left in the middle of something.

use std::path::Path;
use std::sync::Arc;

use hanzo_permissions::{Policy, Rule};
use hanzo_protocol::blob::BlobStore;
use hanzo_protocol::engine::{EngineError, EngineErrorKind, ThreadOptions};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::item::{Item, ItemContent, NoticeLevel, Taint, ToolCallStatus, Visibility};
use hanzo_protocol::message::{Message, ModelRequest, ToolSchema};
use hanzo_protocol::tool::{Tool, ToolCaller, ToolSet};
use hanzo_store::{ItemQuery, Lease, Store, StoreError, ThreadRecord};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::calls::{Calls, close};
use super::checkpoints::Checkpoints;
use super::conversation::Weaver;
use super::desk::Desk;
use super::hub::Hub;
use super::journal::{Beside, Journal};
use super::prefix::{LastRequest, Sent, was_cut_since};
use super::retries;
use super::state::{Steering, Thread, Turn};
use crate::agents::Manifest;
use crate::budget::Budget;
use crate::fold::{self, ENVIRONMENT_KIND};
use crate::gate::{CallOrigin, Gate, GateLimits, GateParts, GateStep};
use crate::instructions::{self, Nested};
use crate::own_tools::{Linked, OwnTools, Plan};
use crate::parts::{Model, ThreadParts, refuse};
use crate::prompt::{self, PromptParts};
use crate::tokens::{Estimator, Size};

/// A thread that is about to be opened.
pub(crate) struct Opening {
    pub(crate) record: ThreadRecord,
    pub(crate) options: ThreadOptions,
    pub(crate) caller: ToolCaller,
    pub(crate) model: Model,
    pub(crate) parts: ThreadParts,
    pub(crate) store: Arc<dyn Store>,
    /// Where the audit is kept of a thread whose own store is forgotten.
    pub(crate) books: Option<Arc<dyn Store>>,
    pub(crate) blobs: Arc<dyn BlobStore>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) lease: Option<Lease>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) writing: Arc<Semaphore>,
    pub(crate) own: OwnTools,
    /// Untrusted content the parent had seen when it began this thread.
    pub(crate) taint: Option<Taint>,
}

impl Opening {
    /// Opens the thread. Calls that were under way when its process died are answered as interrupted; nothing is run again.
    pub(crate) async fn open(self) -> Result<Thread, EngineError> {
        let Self {
            record,
            options,
            caller,
            model,
            mut parts,
            store,
            books,
            blobs,
            hub,
            lease,
            desk,
            budget,
            writing,
            own,
            taint,
        } = self;
        let id = record.id();
        let mut policy = std::mem::take(&mut parts.policy);
        add_rules(&mut policy, &options)?;
        let stored = store.items(ItemQuery::active(id)).await.map_err(store_failed)?.entries;
        let mut items: Vec<Item> = stored.into_iter().map(|stored| stored.item).collect();
        let last = items.iter().map(|item| item.id).max();
        let journal = Journal::new(id, Arc::clone(&store), Arc::clone(&hub), last).with_books(books);
        let journal = Arc::new(journal);
        answer_open_calls(&journal, &mut items).await.map_err(store_failed)?;
        remind(&parts.tools, &items);
        let (kept, cut) = (LastRequest::from_state(&record.state), was_cut_since(&items));
        let items = fold::arrange(items);
        recall(&parts, store.as_ref(), id, &journal).await.map_err(store_failed)?;
        listen_to_retries(&parts, &journal);

        let mut nested = Nested::new(Path::new(""));
        let system = system_prompt(&parts, &journal)?;
        let mut tools = std::mem::take(&mut parts.tools);
        let plan = Plan::of(&items);
        let depth = own.depth;
        let (own, link) = own.build(&parts, plan, &journal, &desk, &options);
        add_tools(&mut tools, &own);
        let limits = GateLimits {
            timeout: std::time::Duration::from_secs(u64::from(parts.settings.tools.timeout_seconds)),
            ..GateLimits::default()
        };
        let gate = Gate::new(GateParts {
            narrowing: Arc::clone(&parts.narrowing),
            thread: id,
            workspace: parts.workspace.path().to_owned(),
            tools: tools.clone(),
            policy,
            capabilities: parts.manifest.capabilities.clone(),
            remote: parts.remote.clone(),
            hooks: Arc::clone(&parts.hooks),
            sandbox: Arc::clone(&parts.sandbox),
            rules: Arc::clone(&parts.rules),
            blobs: Arc::clone(&blobs),
            limits,
        });
        let stance = GateStep {
            mode: record.summary.mode,
            posture: record.summary.posture,
            attendance: options.attendance,
            caller,
            origin: CallOrigin::Agent,
            user: None,
            taint: None,
        };
        let calls = Arc::new(Calls::new(Arc::clone(&journal), gate, desk, writing, stance));
        let capabilities = parts.manifest.capabilities.clone();
        link.connect(Linked {
            calls: Arc::downgrade(&calls),
            budget: Arc::clone(&budget),
            record: record.clone(),
            capabilities,
            narrowing: Arc::clone(&parts.narrowing),
            depth,
        });
        let request = ModelRequest {
            model: model.name.clone(),
            messages: vec![Message::system(system)],
            tools: shown(&tools, &parts.manifest),
            temperature: parts.settings.agent.temperature,
            max_tokens: model.max_tokens,
            effort: record.effort,
        };
        let checkpointer = parts.checkpoints.take();
        let checkpoints = Checkpoints::new(id, store, parts.workspace.path(), checkpointer);
        told_directories(&items, &mut nested);
        for notice in std::mem::take(&mut parts.notices) {
            journal.notice(NoticeLevel::Warning, notice);
        }
        let mut thread = Thread {
            id,
            journal,
            calls,
            blobs,
            parts,
            effort: record.effort,
            ephemeral: record.ephemeral,
            inherited_taint: taint,
            summary: record.summary,
            options,
            caller,
            model,
            next_model: None,
            request,
            weaver: Weaver::default(),
            size: Size::default(),
            estimator: Estimator::new(),
            reported: kept.as_ref().filter(|_| !cut).map_or(0, |kept| kept.reported),
            sent: None,
            recorded: kept.as_ref().map(|kept| kept.prefix.clone()),
            kept: None,
            telling: 0,
            budget,
            steering: Steering::default(),
            checkpoints,
            nested,
            surroundings: surroundings(&items),
            told_mode: super::planning::told(&items),
            own_mode: None,
            own,
            turn: Turn::default(),
            _lease: lease,
        };
        thread.rebuild(&items).await;
        // A conversation that was cut since is another telling of it than the last request had.
        let telling = if cut { 0 } else { thread.telling };
        thread.sent = kept.as_ref().map(|kept| Sent { prefix: kept.prefix.clone(), telling });
        thread.kept = kept;
        Ok(thread)
    }
}

impl Thread {
    /// Takes the tools that are there now, where they are others. Only between turns: the request may not change within one.
    pub(super) fn refresh_tools(&mut self) {
        if let Some(changed) = self.parts.tool_changes.as_ref().and_then(|changes| changes.take()) {
            self.take_tools(changed);
        }
    }

    /// Other tools from now on; the engine's own stay.
    fn take_tools(&mut self, mut tools: ToolSet) {
        add_tools(&mut tools, &self.own);
        self.request.tools = shown(&tools, &self.parts.manifest);
        self.calls.gate.set_tools(tools);
        self.size = Size::of_request(&self.request);
        self.estimator.forget_last();
    }
}

/// What the model is told of the tools: those its manifest shows. The others can be called all the same, as far as the agent may.
fn shown(tools: &ToolSet, manifest: &Manifest) -> Vec<ToolSchema> {
    let mut schemas = tools.schemas();
    if let Some(show) = &manifest.show {
        schemas.retain(|schema| {
            // The same tool may be listed under another vocabulary's name; what it does says whose it is.
            let action = tools.get(&schema.name).map(|tool| tool.reach(&Value::Object(Map::new())).action);
            let owner = action.as_deref().and_then(|action| action.split('.').next()).unwrap_or(&schema.name);
            show.iter().any(|name| name == owner || *name == schema.name)
        });
    }
    schemas
}

fn add_tools(tools: &mut ToolSet, own: &[Arc<dyn Tool>]) {
    for tool in own {
        // A tool of the host of the same name goes first: it was asked for.
        if tools.get(&tool.schema().name).is_none() {
            tools.insert(Arc::clone(tool));
        }
    }
}

fn add_rules(policy: &mut Policy, options: &ThreadOptions) -> Result<(), EngineError> {
    let read = |rules: &[String]| -> Result<Vec<Rule>, EngineError> {
        let parse = |rule: &String| {
            let rule = Rule::parse(rule)
                .map_err(|error| refuse(EngineErrorKind::InvalidParams, error.to_string()))?;
            Ok(rule.with_origin("given with the thread"))
        };
        rules.iter().map(parse).collect()
    };
    policy.allow.extend(read(&options.allow)?);
    policy.deny.extend(read(&options.deny)?);
    Ok(())
}

async fn answer_open_calls(journal: &Journal, items: &mut [Item]) -> Result<(), StoreError> {
    let mut answered = Vec::new();
    for item in items {
        if let ItemContent::ToolCall(call) = &mut item.content
            && !call.status.is_final()
        {
            close(call);
            answered.push(item.clone());
        }
    }
    if !answered.is_empty() {
        journal.write(&answered, Beside::default()).await?;
        let text = "calls that were under way when the thread was last open were interrupted; they are not run again";
        journal.notice(NoticeLevel::Warning, text);
    }
    Ok(())
}

/// Has the thread confined to what it was confined to when it was last open: the calls that did so are made known again.
async fn recall(
    parts: &ThreadParts,
    store: &dyn Store,
    id: ThreadId,
    journal: &Journal,
) -> Result<(), StoreError> {
    let Some(tool) = parts.narrowing.recalls().filter(|_| journal.last_item().is_some()) else {
        return Ok(());
    };
    for item in store.calls(id, tool.to_owned()).await? {
        if let ItemContent::ToolCall(call) = &item.content
            && item.visibility != Visibility::Rewound
            && call.status == ToolCallStatus::Completed
        {
            parts.narrowing.recall(call);
        }
    }
    Ok(())
}

/// Tells those who watch when a client sends a request again.
fn listen_to_retries(parts: &ThreadParts, journal: &Arc<Journal>) {
    let journal = Arc::downgrade(journal);
    parts.models.on_retry(Arc::new(move |retry| {
        if let Some(journal) = journal.upgrade() {
            journal.notice(NoticeLevel::Warning, retries::sentence(retry));
        }
    }));
}

fn system_prompt(parts: &ThreadParts, journal: &Journal) -> Result<String, EngineError> {
    let agent = &parts.settings.agent;
    let base = prompt::replacement(agent, &parts.workspace)
        .map_err(|error| refuse(EngineErrorKind::InvalidParams, error.to_string()))?;
    let config = Some(parts.places.config.as_path());
    let search = instructions::Search { workspace: &parts.workspace, cwd: Path::new(""), config };
    let found = instructions::find(&search);
    for notice in found.notices {
        journal.notice(notice.level, notice.text);
    }
    Ok(prompt::system(&PromptParts {
        base: base.as_deref(),
        agent: &parts.manifest.system,
        custom_instructions: &parts.settings.custom_instructions,
        reasoning_language: &agent.reasoning_language,
        instructions: &found.files,
    }))
}

/// What the model was last told about today and here.
fn surroundings(items: &[Item]) -> Option<String> {
    items.iter().rev().find_map(|item| match &item.content {
        ItemContent::Fragment { kind, text }
            if kind == ENVIRONMENT_KIND && item.visibility == Visibility::Active =>
        {
            Some(text.clone())
        }
        _ => None,
    })
}

/// Tells the tools what they returned before.
fn remind(tools: &ToolSet, items: &[Item]) {
    for item in items {
        if let ItemContent::ToolCall(call) = &item.content
            && let (Some(tool), Some(result)) = (tools.get(call.called_name()), &call.result)
        {
            tool.remind(result);
        }
    }
}

/// Instruction files that were told by fragments are not told again.
fn told_directories(items: &[Item], nested: &mut Nested) {
    for item in items {
        if let ItemContent::Fragment { kind, text } = &item.content
            && kind == fold::INSTRUCTIONS_KIND
        {
            for label in text.lines().filter_map(|line| line.strip_prefix("## ")) {
                nested.mark_told(Path::new(label).parent().unwrap_or(Path::new("")));
            }
        }
    }
}

/// A failure of the store as the answer to a request.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` passes")]
pub(crate) fn store_failed(error: StoreError) -> EngineError {
    let kind = match &error {
        StoreError::NoThread { .. } | StoreError::NoCheckpoint { .. } => EngineErrorKind::NotFound,
        StoreError::Held { .. } => EngineErrorKind::Conflict,
        StoreError::Invalid { .. } => EngineErrorKind::InvalidParams,
        StoreError::Closed => EngineErrorKind::Closed,
        _ => EngineErrorKind::Store,
    };
    refuse(kind, error.to_string())
}
