//! `agent`: has a subagent do something. It is a thread of its own with its manifest's capabilities within those of its
//! parent, a share of the parent's money, the same gate and the same store; what it says last is the result.

use std::fmt::Write as _;
use std::sync::Weak;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::engine::ThreadOptions;
use hanzo_protocol::item::TurnEnd;
use hanzo_protocol::message::ToolSchema;
use hanzo_protocol::tool::{Effect, Reach, TimeLimit, Tool, ToolContext, ToolResult};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Link, schema};
use crate::agents::Manifest;
use crate::engine::{Child, Inner};

pub(super) struct AgentTool {
    schema: ToolSchema,
    engine: Weak<Inner>,
    link: Link,
    agents: Vec<String>,
    options: ThreadOptions,
}

#[derive(Deserialize)]
struct Input {
    agent: String,
    task: String,
}

impl AgentTool {
    pub(super) fn new(engine: Weak<Inner>, link: Link, agents: &[Manifest], options: &ThreadOptions) -> Self {
        let mut description = String::from(
            "Have another agent do a task in a thread of its own and report back. It knows nothing of this conversation, so the \
             task must say everything. Several calls in one step run side by side. The agents:",
        );
        for agent in agents {
            let _ = write!(description, "\n{}: {}", agent.name, agent.description);
        }
        let agents: Vec<String> = agents.iter().map(|agent| agent.name.clone()).collect();
        let parameters = json!({
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["run"]},
                "agent": {"type": "string", "enum": agents},
                "task": {"type": "string", "description": "What to do, which files matter, and what to report"},
            },
            "required": ["agent", "task"],
        });
        Self {
            schema: schema("agent", description, &parameters),
            engine,
            link,
            agents,
            options: options.clone(),
        }
    }

    async fn run(&self, input: Input) -> ToolResult {
        if !self.agents.contains(&input.agent) {
            let known = self.agents.join(", ");
            return ToolResult::failure(format!(
                "there is no agent `{}` to ask; there are {known}",
                input.agent
            ));
        }
        let (Some(engine), Some(linked)) = (self.engine.upgrade(), self.link.get()) else {
            return ToolResult::failure("the engine is shutting down");
        };
        let child =
            Child { agent: input.agent, task: input.task, options: self.options.clone(), parent: linked };
        let report = match engine.run_child(child).await {
            Ok(report) => report,
            Err(error) => return ToolResult::failure(format!("the agent could not be started: {error}")),
        };
        let taint = report.taint;
        let result = match report.outcome {
            Ok(summary) if summary.ended == TurnEnd::Completed => ToolResult::success(report.last_words),
            Ok(summary) => {
                let why = match summary.ended {
                    TurnEnd::StepLimit => "it reached the most steps it may take",
                    TurnEnd::BudgetReached => "its budget is spent",
                    TurnEnd::NoProgress => "it kept repeating itself",
                    _ => "it was interrupted",
                };
                let error = format!("the agent did not finish: {why}");
                ToolResult { output: format!("{error}\n{}", report.last_words), ..ToolResult::failure(error) }
            }
            Err(error) => ToolResult::failure(format!("the agent failed: {error}")),
        };
        ToolResult { taint, ..result }
    }
}

impl Tool for AgentTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn reach(&self, _: &Value) -> Reach {
        // Starting one changes nothing; whatever it does passes the gate by itself.
        Reach { time_limit: TimeLimit::Own, ..Reach::new("agent.run", Effect::Read) }
    }

    fn execute<'a>(&'a self, _: &'a ToolContext, arguments: Value) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            match serde_json::from_value::<Input>(arguments) {
                Ok(input) => self.run(input).await,
                Err(error) => ToolResult::failure(format!("INVALID_ARGUMENTS: {error}")),
            }
        })
    }
}
