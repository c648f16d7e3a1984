//! One user input until the agent rests: ask the model, run the calls it makes, tell it what came of them, and ask again
//! (seed 004 §3.4). Who talks to the model, who runs tools and who consents is passed in (seed 000 §2).
//!
//! There is one loop, `drive`. A thread of the engine is one thing it can drive; [`TurnLoop`] is the other: the same
//! loop over a plain list of messages, for programs that want nothing but the three roles.
//!
//! The conversation is valid for the next request whenever [`TurnLoop::run`] is over, be it by success, by an error or
//! because its future was dropped: no call of the model is ever without an answer.

use std::collections::VecDeque;
use std::sync::Arc;

use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::message::{
    ApiError, Effort, Message, ModelRequest, StopReason, StreamEvent, ToolCall, ToolSchema,
};
use hanzo_protocol::roles::{ApiClient, PermissionDecision, PermissionPrompter};
use hanzo_protocol::tool::{ToolExecutor, ToolResult};
use hanzo_protocol::usage::Usage;
use serde_json::Value;

use crate::answer::{Answer, Heard, next};
use crate::compaction::SessionCompactor;
use crate::thread::conversation::{INTERRUPTED, text_of};

/// Sees each event of the model's stream as it arrives.
pub type Observer<'a> = &'a mut (dyn FnMut(&StreamEvent) + Send);

/// What a turn is made of. Both methods leave a conversation that is valid for the next request, also when they fail.
pub(crate) trait Steps: Send {
    /// Why a step fails.
    type Error;
    /// Why a turn ends.
    type End: From<EndReason>;
    /// A call of the model that is ready to be run.
    type Call: Send;

    /// Sends the conversation and adds the answer to it.
    fn ask(&mut self) -> impl Future<Output = Result<Asked<Self::Call, Self::End>, Self::Error>> + Send;

    /// Runs the calls of the answer and adds their results.
    fn answer(
        &mut self,
        calls: Vec<Self::Call>,
    ) -> impl Future<Output = Result<Option<Self::End>, Self::Error>> + Send;

    /// Whether there is something to tell a model that rests, so that it is asked once more.
    fn has_more(&self) -> bool {
        false
    }
}

/// What asking led to.
pub(crate) enum Asked<Call, End> {
    /// Calls to run.
    Calls(Vec<Call>),
    /// The model made none, and this is why it stopped.
    Rests(StopReason),
    /// The model was not asked.
    Ends(End),
}

/// Runs a turn: steps until the model rests, a step ends it, or there have been `max_steps`, where 0 is no limit.
pub(crate) async fn drive<S: Steps>(steps: &mut S, max_steps: u32) -> Result<(S::End, u32), S::Error> {
    let mut taken = 0;
    loop {
        taken += 1;
        match steps.ask().await? {
            Asked::Calls(calls) => {
                if let Some(end) = steps.answer(calls).await? {
                    return Ok((end, taken));
                }
            }
            Asked::Rests(_) if steps.has_more() => {}
            Asked::Rests(stop) => return Ok((EndReason::Answered(stop).into(), taken)),
            Asked::Ends(end) => return Ok((end, taken - 1)),
        }
        if taken == max_steps {
            return Ok((EndReason::StepLimit.into(), taken));
        }
    }
}

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

/// Runs turns over a list of messages.
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
        let mut running = Running { roles: self, messages, thread, observer, usage: Usage::default() };
        let (reason, steps) = drive(&mut running, self.options.max_steps).await?;
        Ok(TurnOutcome { reason, usage: running.usage, steps })
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

/// A turn over a list of messages while it runs.
struct Running<'a> {
    roles: &'a TurnLoop,
    messages: &'a mut Vec<Message>,
    thread: ThreadId,
    observer: Observer<'a>,
    usage: Usage,
}

impl Steps for Running<'_> {
    type Error = TurnError;
    type End = EndReason;
    type Call = ToolCall;

    /// Of an answer that breaks off, the text stays in the conversation, for the user has seen it; unless there were
    /// calls, which nobody is going to run.
    async fn ask(&mut self) -> Result<Asked<ToolCall, EndReason>, TurnError> {
        if let Some(compactor) = &self.roles.options.compactor
            && compactor.needs_compaction(self.messages)
        {
            *self.messages = compactor.compact(self.messages).messages;
        }
        let mut stream = self.roles.api.send_message(&self.roles.request(self.messages));
        let mut answer = Answer::default();
        let error = loop {
            let Some(event) = next(&mut stream).await else { break TurnError::CutOff };
            (self.observer)(&event);
            match answer.hear(event) {
                Heard::More => {}
                Heard::Complete(reason, usage) => {
                    self.usage += usage;
                    let calls = answer.calls.clone();
                    self.messages.extend(answer.message());
                    let rests = calls.is_empty();
                    return Ok(if rests { Asked::Rests(reason) } else { Asked::Calls(calls) });
                }
                Heard::Failed(error) => break error.into(),
            }
        };
        if answer.calls.is_empty() {
            // A vendor takes its own reasoning back only whole.
            self.messages.extend(Answer { reasoning: Vec::new(), ..answer }.message());
        }
        Err(error)
    }

    async fn answer(&mut self, calls: Vec<ToolCall>) -> Result<Option<EndReason>, TurnError> {
        let mut open = OpenCalls { messages: self.messages, calls: calls.into() };
        while let Some(call) = open.calls.front() {
            let result = self.roles.answer_call(call, self.thread).await;
            open.answer(text_of(&result));
        }
        Ok(None)
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

fn parse_arguments(arguments: &str) -> Result<Value, String> {
    match serde_json::from_str(arguments) {
        Ok(input @ Value::Object(_)) => Ok(input),
        Ok(_) => Err("the call was not run: its arguments must be a JSON object".to_owned()),
        Err(fault) => Err(format!("the call was not run: its arguments are not valid JSON ({fault})")),
    }
}
