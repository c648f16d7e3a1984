//! One user input until the agent rests: ask the model, run the calls it makes, tell it what came of them, and ask again
//! (seed 004 §3.4). Who talks to the model, who runs tools and who consents is passed in (seed 000 §2).
//!
//! The conversation is valid for the next request whenever [`TurnLoop::run`] is over, be it by success, by an error or
//! because its future was dropped: no call of the model is ever without an answer.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;

use hanzo_protocol::BoxStream;
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::message::{
    ApiError, Effort, Message, ModelRequest, Reasoning, StopReason, StreamEvent, ToolCall, ToolSchema,
};
use hanzo_protocol::roles::{ApiClient, PermissionDecision, PermissionPrompter};
use hanzo_protocol::tool::{ToolExecutor, ToolResult};
use hanzo_protocol::usage::Usage;
use serde_json::Value;

use crate::compaction::SessionCompactor;

/// What a call is answered with when the turn was interrupted before it was done.
const INTERRUPTED: &str =
    "interrupted: the turn was cancelled before this call was done; it may have run in part";

/// Sees each event of the model's stream as it arrives.
pub type Observer<'a> = &'a mut (dyn FnMut(&StreamEvent) + Send);

/// What stays the same for every request of a turn.
#[derive(Debug, Clone, Default)]
pub struct TurnOptions {
    /// The vendor's name of the model.
    pub model: String,
    /// The tools the model may call.
    pub tools: Vec<ToolSchema>,
    /// The most requests one turn makes; 0 for no limit.
    pub max_steps: u32,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// The most tokens of one answer.
    pub max_tokens: Option<u64>,
    /// How hard to think.
    pub effort: Option<Effort>,
    /// Folds the conversation before a request that would come too near to the context window; `None` for never.
    pub compactor: Option<SessionCompactor>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnOutcome {
    /// Why it ended.
    pub reason: EndReason,
    /// The tokens of all its requests.
    pub usage: Usage,
    /// How many requests it made.
    pub steps: u32,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// The model made no call; this is why it stopped.
    Answered(StopReason),
    /// The model would go on, but the turn has made the most requests it may.
    StepLimit,
}

/// Why a turn failed. The tokens of the requests before the failure have passed the observer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// The model request failed.
    #[error("the request to the model failed: {0}")]
    Api(#[from] ApiError),
    /// The stream ended without saying that the answer was complete.
    #[error("the model's answer was cut off")]
    CutOff,
}

/// What a model said in one step.
#[derive(Debug, Default)]
struct Answer {
    text: String,
    reasoning: Vec<Reasoning>,
    calls: Vec<ToolCall>,
}

/// Runs turns.
pub struct TurnLoop {
    api: Arc<dyn ApiClient>,
    tools: Arc<dyn ToolExecutor>,
    prompter: Arc<dyn PermissionPrompter>,
    options: TurnOptions,
}

impl TurnLoop {
    /// A loop over the three roles, with default options.
    pub fn new(
        api: Arc<dyn ApiClient>,
        tools: Arc<dyn ToolExecutor>,
        prompter: Arc<dyn PermissionPrompter>,
    ) -> Self {
        Self { api, tools, prompter, options: TurnOptions::default() }
    }

    /// The same loop with other options.
    #[must_use]
    pub fn with_options(mut self, options: TurnOptions) -> Self {
        self.options = options;
        self
    }

    /// Runs a turn on a conversation whose last message is the user's, and appends what is said and done. Dropping the
    /// future cancels the request or the call that is under way.
    pub async fn run(
        &self,
        messages: &mut Vec<Message>,
        thread: ThreadId,
        observer: Observer<'_>,
    ) -> Result<TurnOutcome, TurnError> {
        let mut usage = Usage::default();
        let mut steps = 0;
        loop {
            steps += 1;
            let (answer, stop, used) = self.ask(messages, observer).await?;
            usage += used;
            let calls = append(messages, answer);
            if calls.is_empty() {
                return Ok(TurnOutcome { reason: EndReason::Answered(stop), usage, steps });
            }
            self.answer_calls(messages, calls, thread).await;
            if steps == self.options.max_steps {
                return Ok(TurnOutcome { reason: EndReason::StepLimit, usage, steps });
            }
        }
    }

    /// Sends the conversation and collects the answer. Of an answer that breaks off, the text stays in the
    /// conversation, for the user has seen it; unless there were calls, which nobody is going to run.
    async fn ask(
        &self,
        messages: &mut Vec<Message>,
        observer: Observer<'_>,
    ) -> Result<(Answer, StopReason, Usage), TurnError> {
        if let Some(compactor) = &self.options.compactor
            && compactor.needs_compaction(messages)
        {
            *messages = compactor.compact(messages).messages;
        }
        let mut stream = self.api.send_message(&self.request(messages));
        let mut answer = Answer::default();
        let error = loop {
            let Some(event) = next(&mut stream).await else { break TurnError::CutOff };
            observer(&event);
            match event {
                StreamEvent::ContentDelta { text } => answer.text.push_str(&text),
                // What is worth keeping comes again as a complete piece.
                StreamEvent::ReasoningDelta { .. } => {}
                StreamEvent::Reasoning(reasoning) => answer.reasoning.push(reasoning),
                StreamEvent::ToolUse(call) => answer.calls.push(call),
                StreamEvent::MessageStop { reason, usage } => return Ok((answer, reason, usage)),
                StreamEvent::Error(error) => break error.into(),
            }
        };
        if answer.calls.is_empty() {
            // A vendor takes its own reasoning back only whole.
            append(messages, Answer { reasoning: Vec::new(), ..answer });
        }
        Err(error)
    }

    fn request(&self, messages: &[Message]) -> ModelRequest {
        ModelRequest {
            model: self.options.model.clone(),
            messages: messages.to_vec(),
            tools: self.options.tools.clone(),
            temperature: self.options.temperature,
            max_tokens: self.options.max_tokens,
            effort: self.options.effort,
        }
    }

    async fn answer_calls(&self, messages: &mut Vec<Message>, calls: Vec<ToolCall>, thread: ThreadId) {
        let mut open = OpenCalls { messages, calls: calls.into() };
        while let Some(call) = open.calls.front() {
            let result = self.answer_call(call, thread).await;
            open.answer(text_of(result));
        }
    }

    async fn answer_call(&self, call: &ToolCall, thread: ThreadId) -> ToolResult {
        let input = match parse_arguments(&call.arguments) {
            Ok(input) => input,
            Err(fault) => return ToolResult::failure(fault),
        };
        match self.prompter.request_permission(&call.name, &input).await {
            PermissionDecision::Allow => self.tools.execute(&call.name, input, thread).await,
            PermissionDecision::Deny { reason } => ToolResult::failure(format!("blocked: {reason}")),
            PermissionDecision::Escalate => {
                ToolResult::failure(format!("blocked: nobody could decide whether `{}` may run", call.name))
            }
        }
    }
}

/// The calls of the last assistant message that have no answer yet. Those left when it is dropped are answered as
/// interrupted: vendors refuse a conversation in which a call has no result.
struct OpenCalls<'a> {
    messages: &'a mut Vec<Message>,
    calls: VecDeque<ToolCall>,
}

impl OpenCalls<'_> {
    fn answer(&mut self, content: impl Into<String>) {
        if let Some(call) = self.calls.pop_front() {
            self.messages.push(Message::tool(call.id, call.name, content));
        }
    }
}

impl Drop for OpenCalls<'_> {
    fn drop(&mut self) {
        while !self.calls.is_empty() {
            self.answer(INTERRUPTED);
        }
    }
}

async fn next(stream: &mut BoxStream<'static, StreamEvent>) -> Option<StreamEvent> {
    poll_fn(|context| stream.as_mut().poll_next(context)).await
}

/// Adds an answer to the conversation and returns the calls it makes. An answer that says and does nothing is left out,
/// because vendors refuse an assistant message without content.
fn append(messages: &mut Vec<Message>, answer: Answer) -> Vec<ToolCall> {
    let Answer { text, reasoning, calls } = answer;
    if !text.trim().is_empty() || !calls.is_empty() {
        let message = Message::assistant(text).with_tool_calls(calls.clone());
        messages.push(Message { reasoning, ..message });
    }
    calls
}

fn parse_arguments(arguments: &str) -> Result<Value, String> {
    match serde_json::from_str(arguments) {
        Ok(input @ Value::Object(_)) => Ok(input),
        Ok(_) => Err("the call was not run: its arguments must be a JSON object".to_owned()),
        Err(fault) => Err(format!("the call was not run: its arguments are not valid JSON ({fault})")),
    }
}

/// What the model reads. The reason of a failure is always part of it, whatever the tool put into its output.
fn text_of(result: ToolResult) -> String {
    match result.error {
        Some(error) if result.output.is_empty() => error,
        Some(error) if !result.output.contains(&error) => format!("{error}\n{}", result.output),
        _ => result.output,
    }
}
