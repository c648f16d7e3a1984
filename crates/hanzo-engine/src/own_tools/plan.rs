//! `plan`: the agent's own list of steps. Each change is an item, so that faces can show it and it survives a fold.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hanzo_protocol::BoxFuture;
use hanzo_protocol::item::{Item, ItemContent, PlanStatus, PlanStep};
use hanzo_protocol::message::ToolSchema;
use hanzo_protocol::tool::{Effect, Reach, Tool, ToolContext, ToolResult};
use serde::Deserialize;
use serde_json::{Value, json};

use super::schema;
use crate::thread::journal::{Beside, Journal};
use crate::thread::state::new_item;

/// The most steps of a plan, and the longest text of one.
const MOST_STEPS: usize = 100;
const LONGEST_STEP: usize = 2_000;

/// The steps as they stand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan(Vec<PlanStep>);

impl Plan {
    /// The newest plan among a thread's items.
    pub(crate) fn of(items: &[Item]) -> Self {
        let newest = items.iter().rev().find_map(|item| match &item.content {
            ItemContent::Plan { steps } => Some(steps.clone()),
            _ => None,
        });
        Self(newest.unwrap_or_default())
    }

    fn text(&self) -> String {
        if self.0.is_empty() {
            return "there is no plan".to_owned();
        }
        let line = |(index, step): (usize, &PlanStep)| {
            format!("{}. [{}] {}", index + 1, word(step.status), step.text)
        };
        self.0.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    }
}

fn word(status: PlanStatus) -> &'static str {
    match status {
        PlanStatus::Pending => "pending",
        PlanStatus::Active => "active",
        PlanStatus::Done => "done",
        PlanStatus::Dropped => "dropped",
    }
}

pub(super) struct PlanTool {
    schema: ToolSchema,
    journal: Arc<Journal>,
    plan: Mutex<Plan>,
}

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
enum Input {
    Create {
        steps: Vec<String>,
    },
    Update {
        step: usize,
        status: Option<PlanStatus>,
        text: Option<String>,
    },
    List,
    Get {
        step: usize,
    },
    /// The user has accepted it: the gate asks before this runs.
    Exit {
        plan: String,
    },
}

impl PlanTool {
    pub(super) fn new(journal: Arc<Journal>, plan: Plan) -> Self {
        let description = "Keep a plan for work of several steps. `create` replaces the plan, `update` changes one step, `list` and \
                           `get` show it; in plan mode `exit` has the user accept `plan`. Steps count from 1. Keep exactly one step \
                           active while you work.";
        let parameters = json!({
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["create", "update", "list", "get", "exit"]},
                "steps": {"type": "array", "items": {"type": "string"}, "description": "create"},
                "step": {"type": "integer", "description": "update, get: which step"},
                "status": {
                    "type": "string",
                    "enum": ["pending", "active", "done", "dropped"],
                    "description": "update",
                },
                "plan": {"type": "string", "description": "exit"},
                "text": {"type": "string", "description": "update: its new words"},
            },
            "required": ["action"],
        });
        Self { schema: schema("plan", description, &parameters), journal, plan: Mutex::new(plan) }
    }

    async fn act(&self, input: Input) -> Result<String, String> {
        let changed = match input {
            Input::List => return Ok(self.plan().text()),
            Input::Exit { plan } if plan.trim().is_empty() => {
                return Err("there is no plan in `plan`".to_owned());
            }
            Input::Exit { .. } => return Ok("the user accepted the plan: carry it out now".to_owned()),
            Input::Get { step } => {
                let plan = self.plan();
                let index = place(&plan, step)?;
                return Ok(format!("{step}. [{}] {}", word(plan.0[index].status), plan.0[index].text));
            }
            Input::Create { steps } => {
                if steps.is_empty() || steps.len() > MOST_STEPS {
                    return Err(format!("a plan has between 1 and {MOST_STEPS} steps"));
                }
                let step = |text: String| PlanStep { text: clipped(text), status: PlanStatus::Pending };
                Plan(steps.into_iter().map(step).collect())
            }
            Input::Update { step, status, text } => {
                let mut plan = self.plan().clone();
                let index = place(&plan, step)?;
                let entry = &mut plan.0[index];
                entry.status = status.unwrap_or(entry.status);
                if let Some(text) = text {
                    entry.text = clipped(text);
                }
                plan
            }
        };
        let content = ItemContent::Plan { steps: changed.0.clone() };
        let item = new_item(self.journal.thread, self.journal.turn(), content);
        self.journal.write(&[item], Beside::default()).await.map_err(|error| error.to_string())?;
        let text = changed.text();
        *self.plan() = changed;
        Ok(text)
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(plan: &Plan, step: usize) -> Result<usize, String> {
    let known = step.checked_sub(1).filter(|index| *index < plan.0.len());
    known.ok_or_else(|| format!("there is no step {step}; the plan has {}", plan.0.len()))
}

fn clipped(mut text: String) -> String {
    if text.len() > LONGEST_STEP {
        text.truncate(text.floor_char_boundary(LONGEST_STEP));
    }
    text
}

impl Tool for PlanTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn reach(&self, arguments: &Value) -> Reach {
        let action = arguments["action"].as_str().unwrap_or("list");
        if action == "exit" {
            return Reach::new("plan.exit", Effect::Write);
        }
        let known = ["create", "update", "list", "get"].contains(&action);
        // Planning changes nothing in the world, so that it is there in plan mode as well.
        Reach::new(format!("plan.{}", if known { action } else { "list" }), Effect::Read)
    }

    fn execute<'a>(&'a self, _: &'a ToolContext, arguments: Value) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            match serde_json::from_value::<Input>(arguments) {
                Ok(input) => match self.act(input).await {
                    Ok(text) => ToolResult::success(text),
                    Err(error) => ToolResult::failure(error),
                },
                Err(error) => ToolResult::failure(format!("INVALID_ARGUMENTS: {error}")),
            }
        })
    }
}
