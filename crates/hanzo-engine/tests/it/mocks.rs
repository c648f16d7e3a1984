//! The three roles played by scripts, and an executor of futures: no network, no runtime.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use futures_core::Stream;
use hanzo_protocol::ids::{ThreadId, ToolCallId};
use hanzo_protocol::message::{Message, ModelRequest, StopReason, StreamEvent, ToolCall};
use hanzo_protocol::roles::{ApiClient, PermissionDecision, PermissionPrompter};
use hanzo_protocol::tool::{ToolExecutor, ToolResult};
use hanzo_protocol::usage::Usage;
use hanzo_protocol::{BoxFuture, BoxStream};
use serde_json::Value;

/// What a mock has recorded.
pub fn locked<T>(recorded: &Mutex<T>) -> MutexGuard<'_, T> {
    recorded.lock().expect("nothing panics while it records")
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end. It must be `Send`, as a runtime with several threads would want it.
pub fn block_on<T>(future: impl Future<Output = T> + Send) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Yields its events, each after having been pending once; then ends, or never does.
struct Script {
    events: VecDeque<StreamEvent>,
    ready: bool,
    hangs: bool,
    dropped: Arc<Mutex<usize>>,
}

impl Stream for Script {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        self.ready = !self.ready;
        if self.ready {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.events.pop_front() {
            None if self.hangs => Poll::Pending,
            event => Poll::Ready(event),
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        *locked(&self.dropped) += 1;
    }
}

/// A model that gives prepared answers and records what it was asked.
#[derive(Default)]
pub struct Model {
    pub answers: Mutex<VecDeque<Vec<StreamEvent>>>,
    pub requests: Mutex<Vec<ModelRequest>>,
    pub hangs: bool,
    pub dropped_streams: Arc<Mutex<usize>>,
}

impl Model {
    pub fn saying(answers: Vec<Vec<StreamEvent>>) -> Self {
        Self { answers: Mutex::new(answers.into()), ..Self::default() }
    }

    pub fn asked(&self, index: usize) -> Vec<Message> {
        locked(&self.requests)[index].messages.clone()
    }
}

impl ApiClient for Model {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn send_message(&self, request: &ModelRequest) -> BoxStream<'static, StreamEvent> {
        locked(&self.requests).push(request.clone());
        let events = locked(&self.answers).pop_front().expect("the script has an answer").into();
        let dropped = Arc::clone(&self.dropped_streams);
        Box::pin(Script { events, ready: false, hangs: self.hangs, dropped })
    }
}

/// Tools that record their calls. `echo` returns its input, `fail` fails, `hang` never returns.
#[derive(Default)]
pub struct Tools(pub Mutex<Vec<(String, Value, ThreadId)>>);

impl Tools {
    pub fn calls(&self) -> Vec<String> {
        locked(&self.0).iter().map(|(name, input, _)| format!("{name} {input}")).collect()
    }
}

impl ToolExecutor for Tools {
    fn execute<'a>(&'a self, name: &'a str, input: Value, thread: ThreadId) -> BoxFuture<'a, ToolResult> {
        locked(&self.0).push((name.to_owned(), input.clone(), thread));
        Box::pin(async move {
            match name {
                "hang" => std::future::pending().await,
                "fail" => ToolResult::failure("IO: the disk is full"),
                "fail with output" => {
                    ToolResult { output: "half of it".into(), ..ToolResult::failure("cut short") }
                }
                "fail silently" => ToolResult { output: String::new(), ..ToolResult::failure("no reason") },
                _ => ToolResult::success(format!("ran {name} {input}")),
            }
        })
    }
}

/// Decides by a function, and records what it was asked.
pub struct Prompter(pub fn(&str, &Value) -> PermissionDecision, pub Mutex<Vec<String>>);

impl Prompter {
    pub fn new(decide: fn(&str, &Value) -> PermissionDecision) -> Self {
        Self(decide, Mutex::default())
    }
}

impl PermissionPrompter for Prompter {
    fn request_permission<'a>(
        &'a self,
        tool_name: &'a str,
        input: &'a Value,
    ) -> BoxFuture<'a, PermissionDecision> {
        locked(&self.1).push(format!("{tool_name} {input}"));
        Box::pin(std::future::ready((self.0)(tool_name, input)))
    }
}

pub fn text(text: &str) -> StreamEvent {
    StreamEvent::ContentDelta { text: text.into() }
}

pub fn call(id: &str, name: &str, arguments: &str) -> StreamEvent {
    StreamEvent::ToolUse(ToolCall { id: ToolCallId::new(id), name: name.into(), arguments: arguments.into() })
}

pub fn stop(reason: StopReason) -> StreamEvent {
    let usage = Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() };
    StreamEvent::MessageStop { reason, usage }
}
