//! The tools the engine has of its own, because they act on threads and not on a workspace: `agent` has a subagent do
//! something, `ask` puts a question to the user, `plan` keeps the agent's plan.

mod agent;
mod ask;
mod plan;

use std::sync::{Arc, OnceLock, Weak};

use hanzo_protocol::engine::ThreadOptions;
use hanzo_protocol::message::ToolSchema;
use hanzo_protocol::narrowing::Narrowing;
use hanzo_protocol::tool::{Tool, ToolCaller};
use hanzo_store::ThreadRecord;
use serde_json::Value;
use serde_json::value::to_raw_value;

pub(crate) use self::ask::put as put_question;
pub(crate) use self::plan::Plan;
use crate::agents::{Catalog, Manifest};
use crate::budget::Budget;
use crate::capability::Capabilities;
use crate::engine::Inner;
use crate::parts::ThreadParts;
use crate::thread::calls::Calls;
use crate::thread::desk::Desk;
use crate::thread::journal::Journal;

/// How deep subagents may have subagents.
const DEEPEST: u32 = 2;

/// Makes the tools of a thread.
pub(crate) struct OwnTools {
    pub(crate) engine: Weak<Inner>,
    /// How many threads are above this one.
    pub(crate) depth: u32,
}

/// What the tools need of a thread that does not exist yet when they are made.
#[derive(Clone)]
pub(crate) struct Link(Arc<OnceLock<Linked>>);

pub(crate) struct Linked {
    pub(crate) calls: Weak<Calls>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) record: ThreadRecord,
    pub(crate) capabilities: Capabilities,
    pub(crate) narrowing: Arc<dyn Narrowing>,
    pub(crate) depth: u32,
}

impl Link {
    /// Connects the tools with the thread they belong to.
    pub(crate) fn connect(&self, linked: Linked) {
        // A second thread for the same tools does not exist.
        let _ = self.0.set(linked);
    }

    fn get(&self) -> Option<&Linked> {
        self.0.get()
    }
}

impl OwnTools {
    /// The tools the thread's agent may use.
    pub(crate) fn build(
        &self,
        parts: &ThreadParts,
        plan: Plan,
        journal: &Arc<Journal>,
        desk: &Arc<Desk>,
        options: &ThreadOptions,
    ) -> (Vec<Arc<dyn Tool>>, Link) {
        let link = Link(Arc::default());
        let manifest = &parts.manifest;
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        if is_shown(manifest, "plan") {
            tools.push(Arc::new(plan::PlanTool::new(Arc::clone(journal), plan)));
        }
        if is_shown(manifest, "ask") {
            tools.push(Arc::new(ask::AskTool::new(
                Arc::clone(journal),
                Arc::clone(desk),
                options.attendance,
            )));
        }
        if is_shown(manifest, "agent") && self.depth < DEEPEST {
            let catalog = Catalog {
                config: Some(&parts.places.config),
                project: Some((&parts.workspace, parts.trust)),
            };
            // Whoever calls from elsewhere chooses the agent; what each may do stays within this thread's agent.
            let agents: Vec<Manifest> = if options.caller == ToolCaller::Remote && self.depth == 0 {
                catalog.list().0
            } else {
                manifest.may_spawn.iter().filter_map(|name| catalog.get(name).ok()).collect()
            };
            if !agents.is_empty() {
                tools.push(Arc::new(agent::AgentTool::new(
                    self.engine.clone(),
                    link.clone(),
                    &agents,
                    options,
                )));
            }
        }
        (tools, link)
    }
}

fn is_shown(manifest: &Manifest, tool: &str) -> bool {
    manifest.capabilities.may_use(tool)
}

fn schema(name: &str, description: impl Into<String>, parameters: &Value) -> ToolSchema {
    ToolSchema {
        name: name.to_owned(),
        description: description.into(),
        parameters: to_raw_value(parameters).expect("a JSON value can be written as JSON"),
    }
}
