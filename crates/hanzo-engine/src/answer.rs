//! One answer of a model, gathered from its stream.

use std::future::poll_fn;

use hanzo_protocol::BoxStream;
use hanzo_protocol::message::{ApiError, Message, Reasoning, StopReason, StreamEvent, ToolCall};
use hanzo_protocol::usage::Usage;

/// What a model has said so far in one step.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) reasoning: Vec<Reasoning>,
    pub(crate) calls: Vec<ToolCall>,
}

/// What an event means for the answer.
#[derive(Debug)]
pub(crate) enum Heard {
    /// It goes on.
    More,
    /// It is complete.
    Complete(StopReason, Usage),
    /// It broke off.
    Failed(ApiError),
}

impl Answer {
    /// Takes in the next event of the stream.
    pub(crate) fn hear(&mut self, event: StreamEvent) -> Heard {
        match event {
            StreamEvent::ContentDelta { text } => self.text.push_str(&text),
            // What is worth keeping comes again as a complete piece.
            StreamEvent::ReasoningDelta { .. } => {}
            StreamEvent::Reasoning(reasoning) => self.reasoning.push(reasoning),
            StreamEvent::ToolUse(call) => self.calls.push(call),
            StreamEvent::MessageStop { reason, usage } => return Heard::Complete(reason, usage),
            StreamEvent::Error(error) => return Heard::Failed(error),
        }
        Heard::More
    }

    /// The message of the answer; none when it says and does nothing, because vendors refuse an assistant message
    /// without content.
    pub(crate) fn message(self) -> Option<Message> {
        let says = !self.text.trim().is_empty() || !self.calls.is_empty();
        says.then(|| Message {
            reasoning: self.reasoning,
            ..Message::assistant(self.text).with_tool_calls(self.calls)
        })
    }
}

/// The next event of a stream.
pub(crate) async fn next(stream: &mut BoxStream<'static, StreamEvent>) -> Option<StreamEvent> {
    poll_fn(|context| stream.as_mut().poll_next(context)).await
}
