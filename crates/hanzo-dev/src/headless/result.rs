//! What a run came to: counted while it happens, written at its end.

use std::time::Instant;

use hanzo_protocol::event::{Event, EventContent};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::item::{ItemContent, ToolCallStatus};
use hanzo_protocol::usage::{Cost, Usage};
use serde::Serialize;
use serde_json::Value;

use crate::exit::Exit;

/// The object a run ends with. The names are those headless agents share, hence the underscores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunResult {
    /// Always `result`.
    pub r#type: &'static str,
    /// `success`, or what sort of error.
    pub subtype: &'static str,
    /// Whether it is one.
    pub is_error: bool,
    /// The wall clock.
    pub duration_ms: u64,
    /// Model requests.
    pub num_turns: u64,
    /// The agent's last words.
    pub result: String,
    /// The thread, under the name other programs use.
    pub session_id: Option<ThreadId>,
    /// The thread.
    pub thread_id: Option<ThreadId>,
    /// Tokens.
    pub usage: Tokens,
    /// The price, where it is known.
    pub total_cost_usd: Option<f64>,
    /// Calls that were refused because nobody could be asked.
    pub refused: u32,
    /// Requests that did not begin with the one before, so that the vendor's cache could not help.
    pub prefix_breaks: u32,
    /// The answer as the schema wants it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Value>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The code the program ends with.
    pub exit_code: u8,
}

/// Tokens under the names headless agents share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Input that was neither read from a cache nor written to one.
    pub input_tokens: u64,
    /// The answers, reasoning included.
    pub output_tokens: u64,
    /// Input read from the cache.
    pub cache_read_input_tokens: u64,
    /// Input written to the cache.
    pub cache_creation_input_tokens: u64,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_input_tokens: usage.cache_read_tokens,
            cache_creation_input_tokens: usage.cache_write_tokens,
        }
    }
}

/// What is counted while a run goes on.
#[derive(Debug)]
pub struct Tally {
    started: Instant,
    /// The thread, once there is one.
    pub thread: Option<ThreadId>,
    /// The agent's last words in this turn.
    pub answer: String,
    structured: Option<Value>,
    steps: u64,
    usage: Usage,
    cost: Option<Cost>,
    refused: u32,
    prefix_breaks: u32,
    /// Whether a call succeeded after the last one that was refused.
    recovered: bool,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            thread: None,
            answer: String::new(),
            structured: None,
            steps: 0,
            usage: Usage::default(),
            cost: None,
            refused: 0,
            prefix_breaks: 0,
            recovered: true,
        }
    }
}

impl Tally {
    /// Another turn begins; what was said before is not its answer.
    pub fn begin_turn(&mut self) {
        self.answer.clear();
    }

    /// Counts what happened.
    pub fn event(&mut self, event: &Event) {
        match &event.content {
            EventContent::ItemCompleted { item } => match &item.content {
                ItemContent::AgentMessage { text } => text.clone_into(&mut self.answer),
                ItemContent::ToolCall(call) => match call.status {
                    ToolCallStatus::Denied => self.recovered = false,
                    ToolCallStatus::Completed => self.recovered = true,
                    _ => {}
                },
                _ => {}
            },
            EventContent::TurnCompleted { summary, .. } => {
                self.steps += summary.steps;
                self.usage += summary.usage;
                self.refused += summary.refused;
                self.prefix_breaks += summary.prefix_breaks;
                self.cost = match (self.cost, summary.cost) {
                    (Some(before), Some(more)) => Some(before + more),
                    (before, more) => before.or(more),
                };
            }
            _ => {}
        }
    }

    /// Whether calls were refused for lack of a person and nothing worked after the last of them: what the agent says then
    /// is at best an account of what it could not do.
    pub fn is_stuck(&self) -> bool {
        self.refused > 0 && !self.recovered
    }

    /// The answer is `text`, which is `value`.
    pub fn accept(&mut self, (text, value): (String, Value)) {
        self.answer = text;
        self.structured = Some(value);
    }

    /// The result of a run that ends with `exit`.
    pub fn result(&self, exit: Exit, error: Option<String>) -> RunResult {
        RunResult {
            r#type: "result",
            subtype: exit.subtype(),
            is_error: exit != Exit::Ok,
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            num_turns: self.steps,
            result: self.answer.clone(),
            session_id: self.thread,
            thread_id: self.thread,
            usage: self.usage.into(),
            total_cost_usd: self.cost.map(Cost::usd),
            refused: self.refused,
            prefix_breaks: self.prefix_breaks,
            structured_output: self.structured.clone(),
            error: error.or_else(|| words(exit).map(str::to_owned)),
            exit_code: exit.code(),
        }
    }
}

/// What to say when a run ends so and nothing else was said.
pub fn words(exit: Exit) -> Option<&'static str> {
    Some(match exit {
        Exit::Ok => return None,
        Exit::TurnLimit => {
            "the agent was stopped: it reached the most model requests it may make\n\nhint: `--max-turns` or `agent.max_steps` is the limit; `--continue` goes on"
        }
        Exit::NoProgress => "the agent was stopped: it kept repeating calls that led nowhere",
        Exit::ApprovalNeeded => {
            "the agent could not go on: it needed your consent and nobody could be asked\n\nhint: `--allow RULE` allows such calls; `hanzo-dev audit` lists what was refused and by which rule"
        }
        Exit::Budget => {
            "the agent was stopped: the budget is spent\n\nhint: `--max-cost` is the limit; `--continue` goes on"
        }
        Exit::Timeout => {
            "the agent was stopped: the time is over\n\nhint: `--timeout` is the limit; `--continue` goes on"
        }
        Exit::Interrupted => "interrupted",
        Exit::Terminated => "terminated",
        _ => "the agent could not finish",
    })
}
