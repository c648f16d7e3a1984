//! An answer in Anthropic's format: blocks that begin, grow and end, one after the other.

use hanzo_protocol::ids::ToolCallId;
use hanzo_protocol::message::{ApiError, ApiErrorKind, Reasoning, StopReason, StreamEvent, ToolCall};
use hanzo_protocol::usage::Usage;
use serde_json::Value;

use crate::failure;
use crate::reader::{self, Assembler, LONGEST_GATHERED, Step};

/// Marks the signature of reasoning whose text the vendor keeps to itself.
pub(super) const REDACTED: &str = "redacted_thinking:";

/// The answer so far.
#[derive(Default)]
pub(super) struct Answer {
    open: Vec<(u64, Block)>,
    calls: Vec<ToolCall>,
    gathered: usize,
    stop: Option<String>,
    usage: Usage,
}

enum Block {
    Text,
    Thinking {
        text: String,
        signature: String,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
        given: Value,
    },
    /// A kind we do not know.
    Other,
}

impl Assembler for Answer {
    fn event(&mut self, data: &str, out: &mut Vec<StreamEvent>) -> Result<Step, ApiError> {
        // Some proxies close like the other protocol does.
        match data.trim() {
            "[DONE]" if self.stop.is_some() => return Ok(Step::End),
            "" | "[DONE]" => return Ok(Step::Idle),
            _ => {}
        }
        let event = reader::parse(data)?;
        if let Some(error) = failure::in_answer(&event) {
            return Err(error);
        }
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                self.read_usage(&event["message"]["usage"]);
                Ok(Step::Content)
            }
            "content_block_start" => self.begin(&event, out),
            "content_block_delta" => self.grow(&event, out),
            "content_block_stop" => {
                let index = event["index"].as_u64().unwrap_or_default();
                if let Some(at) = self.open.iter().position(|(open, _)| *open == index) {
                    let (_, block) = self.open.remove(at);
                    self.close(block, out);
                }
                Ok(Step::Content)
            }
            "message_delta" => {
                self.read_usage(&event["usage"]);
                if let Some(stop) = event["delta"]["stop_reason"].as_str() {
                    self.stop = Some(stop.to_owned());
                }
                Ok(Step::Content)
            }
            "message_stop" if self.stop.is_some() => Ok(Step::End),
            "message_stop" => {
                Err(failure::plain(ApiErrorKind::Network, "the answer ended without saying why it stopped"))
            }
            _ if event.is_object() => Ok(Step::Idle),
            _ => Err(failure::plain(
                ApiErrorKind::Malformed,
                "the answer holds an event that is not an object",
            )),
        }
    }

    fn document(&mut self, text: &str, out: &mut Vec<StreamEvent>) -> Result<(), ApiError> {
        let message = reader::parse(text)?;
        if let Some(error) = failure::in_answer(&message) {
            return Err(error);
        }
        let (Some(content), Some(stop)) = (message["content"].as_array(), message["stop_reason"].as_str())
        else {
            return Err(failure::plain(ApiErrorKind::Malformed, "the answer is not a message"));
        };
        self.read_usage(&message["usage"]);
        self.stop = Some(stop.to_owned());
        for block in content {
            let block = self.open_block(block, out)?;
            self.close(block, out);
        }
        Ok(())
    }

    fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }

    fn complete(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), ApiError> {
        for (_, block) in std::mem::take(&mut self.open) {
            self.close(block, out);
        }
        let stop = self.stop.take().unwrap_or_default();
        let cut = matches!(stop.as_str(), "max_tokens" | "model_context_window_exceeded");
        let mut calls = std::mem::take(&mut self.calls);
        if cut {
            // The call the model was writing when it ran out of room is not what it meant.
            calls.retain(|call| serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments).is_ok());
        }
        if calls.iter().any(|call| call.name.is_empty()) {
            return Err(failure::plain(
                ApiErrorKind::Malformed,
                "the answer holds a tool call without a name",
            ));
        }
        let reason = match stop.as_str() {
            _ if cut => StopReason::MaxTokens,
            "refusal" => StopReason::Refusal,
            _ if calls.is_empty() => StopReason::EndTurn,
            _ => StopReason::ToolUse,
        };
        out.extend(calls.into_iter().map(StreamEvent::ToolUse));
        out.push(StreamEvent::MessageStop { reason, usage: self.usage });
        Ok(())
    }
}

impl Answer {
    fn begin(&mut self, event: &Value, out: &mut Vec<StreamEvent>) -> Result<Step, ApiError> {
        let index = event["index"].as_u64().unwrap_or_default();
        let block = self.open_block(&event["content_block"], out)?;
        self.open.push((index, block));
        Ok(Step::Content)
    }

    fn open_block(&mut self, block: &Value, out: &mut Vec<StreamEvent>) -> Result<Block, ApiError> {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        self.gather(block.to_string().len())?;
        Ok(match block["type"].as_str().unwrap_or_default() {
            "text" => {
                say(&text("text"), out);
                Block::Text
            }
            "thinking" => {
                let thought = text("thinking");
                think(&thought, out);
                Block::Thinking { text: thought, signature: text("signature") }
            }
            "redacted_thinking" => {
                Block::Thinking { text: String::new(), signature: format!("{REDACTED}{}", text("data")) }
            }
            "tool_use" => Block::Call {
                id: text("id"),
                name: text("name"),
                arguments: String::new(),
                given: block["input"].clone(),
            },
            _ => Block::Other,
        })
    }

    fn grow(&mut self, event: &Value, out: &mut Vec<StreamEvent>) -> Result<Step, ApiError> {
        let index = event["index"].as_u64().unwrap_or_default();
        let delta = &event["delta"];
        let text = |name: &str| delta[name].as_str().unwrap_or_default();
        if let Some(piece) = delta["text"].as_str() {
            say(piece, out);
            return Ok(Step::Content);
        }
        self.gather(text("thinking").len() + text("signature").len() + text("partial_json").len())?;
        match self.open.iter_mut().find(|(open, _)| *open == index).map(|(_, block)| block) {
            Some(Block::Thinking { text: thought, signature }) => {
                thought.push_str(text("thinking"));
                think(text("thinking"), out);
                signature.push_str(text("signature"));
            }
            Some(Block::Call { arguments, .. }) => arguments.push_str(text("partial_json")),
            Some(Block::Text | Block::Other) => {}
            None => {
                return Err(failure::plain(
                    ApiErrorKind::Malformed,
                    "the answer goes on with a block that never began",
                ));
            }
        }
        Ok(Step::Content)
    }

    fn close(&mut self, block: Block, out: &mut Vec<StreamEvent>) {
        match block {
            Block::Text | Block::Other => {}
            Block::Thinking { text, signature } => {
                let signature = (!signature.is_empty()).then_some(signature);
                if signature.is_some() || !text.is_empty() {
                    out.push(StreamEvent::Reasoning(Reasoning { text, signature }));
                }
            }
            Block::Call { id, name, arguments, given } => {
                // A call without arguments has no fragments; a proxy may have put them all into the block's beginning.
                let arguments = match (arguments.is_empty(), &given) {
                    (false, _) => arguments,
                    (true, Value::Object(_)) => given.to_string(),
                    (true, _) => "{}".to_owned(),
                };
                self.calls.push(ToolCall { id: ToolCallId::new(id), name, arguments });
            }
        }
    }

    fn gather(&mut self, more: usize) -> Result<(), ApiError> {
        self.gathered += more;
        if self.gathered > LONGEST_GATHERED {
            return Err(failure::plain(
                ApiErrorKind::Malformed,
                "the answer's calls and reasoning are larger than any tool takes",
            ));
        }
        Ok(())
    }

    /// The counts so far. Later ones replace earlier ones: they are totals.
    fn read_usage(&mut self, usage: &Value) {
        let read = |name: &str, into: &mut u64| {
            if let Some(count) = usage[name].as_u64() {
                *into = count;
            }
        };
        read("input_tokens", &mut self.usage.input_tokens);
        read("cache_read_input_tokens", &mut self.usage.cache_read_tokens);
        read("cache_creation_input_tokens", &mut self.usage.cache_write_tokens);
        read("output_tokens", &mut self.usage.output_tokens);
    }
}

fn say(text: &str, out: &mut Vec<StreamEvent>) {
    if !text.is_empty() {
        out.push(StreamEvent::ContentDelta { text: text.to_owned() });
    }
}

fn think(text: &str, out: &mut Vec<StreamEvent>) {
    if !text.is_empty() {
        out.push(StreamEvent::ReasoningDelta { text: text.to_owned() });
    }
}
