//! An answer in OpenAI's format.

use hanzo_protocol::message::{ApiError, ApiErrorKind, Reasoning, StopReason, StreamEvent};
use hanzo_protocol::usage::Usage;
use serde_json::{Value, json};

use super::calls::Calls;
use crate::failure;
use crate::reader::{self, Assembler, LONGEST_GATHERED, Step};

/// Marks a signature that holds one of a vendor's `reasoning_details`, as it came.
pub(super) const DETAILS: &str = "reasoning_details:";
/// Marks a signature that holds the `extra_content` of a call: Gemini signs its thoughts there.
pub(super) const CALL_EXTRA: &str = "extra_content:";

/// The answer so far.
#[derive(Default)]
pub(super) struct Answer {
    calls: Calls,
    reasoning: String,
    details: Vec<Value>,
    details_size: usize,
    finish: Option<String>,
    refused: bool,
    usage: Usage,
}

impl Assembler for Answer {
    fn event(&mut self, data: &str, out: &mut Vec<StreamEvent>) -> Result<Step, ApiError> {
        match data.trim() {
            "[DONE]" => return self.done(),
            "" => return Ok(Step::Idle),
            _ => {}
        }
        self.chunk(&reader::parse(data)?, out)
    }

    fn document(&mut self, text: &str, out: &mut Vec<StreamEvent>) -> Result<(), ApiError> {
        let document = reader::parse(text)?;
        self.chunk(&document, out)?;
        if self.finish.is_none() && document["choices"][0]["message"].is_null() {
            return Err(failure::plain(ApiErrorKind::Malformed, "the answer is not a chat completion"));
        }
        Ok(())
    }

    fn has_stopped(&self) -> bool {
        self.finish.is_some()
    }

    fn complete(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), ApiError> {
        let finish = self.finish.take().unwrap_or_default();
        let cut = matches!(finish.as_str(), "length" | "max_tokens" | "model_length");
        let calls = self.calls.complete(cut)?;
        self.keep_reasoning(out);
        for complete in &calls {
            if let Some(extra) = &complete.extra {
                let kept = json!({"id": complete.call.id.as_str(), "extra_content": extra});
                let signature = Some(format!("{CALL_EXTRA}{kept}"));
                out.push(StreamEvent::Reasoning(Reasoning { text: String::new(), signature }));
            }
        }
        let reason = if cut {
            StopReason::MaxTokens
        } else if self.refused || finish == "content_filter" {
            StopReason::Refusal
        } else if calls.is_empty() {
            StopReason::EndTurn
        } else {
            // Some say `stop` although they call.
            StopReason::ToolUse
        };
        out.extend(calls.into_iter().map(|complete| StreamEvent::ToolUse(complete.call)));
        out.push(StreamEvent::MessageStop { reason, usage: self.usage });
        Ok(())
    }
}

impl Answer {
    /// The closing mark. Some never say why they stopped; then calls that are whole show that nothing was cut.
    fn done(&mut self) -> Result<Step, ApiError> {
        if self.finish.is_none() {
            if !self.calls.are_whole() {
                return Err(failure::plain(
                    ApiErrorKind::Network,
                    "the answer ended in the middle of a tool call",
                ));
            }
            self.finish = Some("stop".to_owned());
        }
        Ok(Step::End)
    }

    fn chunk(&mut self, chunk: &Value, out: &mut Vec<StreamEvent>) -> Result<Step, ApiError> {
        if let Some(error) = failure::in_answer(chunk) {
            return Err(error);
        }
        if !chunk.is_object() {
            return Err(failure::plain(
                ApiErrorKind::Malformed,
                "the answer holds an event that is not an object",
            ));
        }
        let mut step = Step::Idle;
        let choice = &chunk["choices"][0];
        // Where usage stands when it is not where OpenAI has it: Moonshot, Groq.
        for usage in [&chunk["usage"], &choice["usage"], &chunk["x_groq"]["usage"]] {
            if usage.is_object() {
                self.usage = read_usage(usage);
                step = Step::Content;
            }
        }
        let delta = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        if self.delta(delta, out)? == Step::Content {
            step = Step::Content;
        }
        if let Some(finish) = choice["finish_reason"].as_str().filter(|finish| !finish.is_empty()) {
            if finish == "error" {
                return Err(failure::plain(ApiErrorKind::Overloaded, "the vendor broke off with an error"));
            }
            self.finish = Some(finish.to_owned());
            step = Step::Content;
        }
        Ok(step)
    }

    fn delta(&mut self, delta: &Value, out: &mut Vec<StreamEvent>) -> Result<Step, ApiError> {
        let before = out.len();
        let mut step = Step::Idle;
        // Those that send two of these send the same text in both.
        let reasoning =
            [&delta["reasoning_content"], &delta["reasoning"]].into_iter().find_map(Value::as_str);
        let details = delta["reasoning_details"].as_array().map(Vec::as_slice).unwrap_or_default();
        let from_details: String = match reasoning {
            Some(_) => String::new(),
            None => details.iter().filter_map(|it| it["text"].as_str().or(it["summary"].as_str())).collect(),
        };
        self.think(reasoning.unwrap_or(&from_details), out)?;
        for detail in details {
            self.keep_detail(detail)?;
            step = Step::Content;
        }
        match &delta["content"] {
            Value::String(text) => say(text, out),
            Value::Array(parts) => {
                for part in parts {
                    self.part(part, out)?;
                }
            }
            _ => {}
        }
        if let Some(refusal) = delta["refusal"].as_str().filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            say(refusal, out);
        }
        for fragment in delta["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default() {
            self.calls.add(fragment)?;
            step = Step::Content;
        }
        Ok(if out.len() > before { Step::Content } else { step })
    }

    /// A part of content that is a list, as Mistral sends it when a model thinks.
    fn part(&mut self, part: &Value, out: &mut Vec<StreamEvent>) -> Result<(), ApiError> {
        match &part["thinking"] {
            Value::String(text) => self.think(text, out)?,
            Value::Array(parts) => {
                for part in parts {
                    self.think(part["text"].as_str().unwrap_or_default(), out)?;
                }
            }
            _ => say(part["text"].as_str().unwrap_or_default(), out),
        }
        Ok(())
    }

    fn think(&mut self, text: &str, out: &mut Vec<StreamEvent>) -> Result<(), ApiError> {
        if text.is_empty() {
            return Ok(());
        }
        self.reasoning.push_str(text);
        if self.reasoning.len() > LONGEST_GATHERED {
            return Err(failure::plain(ApiErrorKind::Malformed, "the answer's reasoning has no end"));
        }
        out.push(StreamEvent::ReasoningDelta { text: text.to_owned() });
        Ok(())
    }

    /// Keeps a detail to send it back. They come in fragments too: those of one kind and index are one.
    fn keep_detail(&mut self, detail: &Value) -> Result<(), ApiError> {
        self.details_size += detail.to_string().len();
        if self.details_size > LONGEST_GATHERED {
            return Err(failure::plain(ApiErrorKind::Malformed, "the answer's reasoning has no end"));
        }
        let continued = self
            .details
            .last_mut()
            .filter(|last| last["type"] == detail["type"] && last.get("index") == detail.get("index"));
        match (continued.and_then(Value::as_object_mut), detail.as_object()) {
            (Some(last), Some(more)) => {
                for (name, value) in more {
                    match (last.get_mut(name), value) {
                        (Some(Value::String(known)), Value::String(more))
                            if matches!(name.as_str(), "text" | "summary" | "data") =>
                        {
                            known.push_str(more);
                        }
                        (_, Value::Null) => {}
                        _ => {
                            last.insert(name.clone(), value.clone());
                        }
                    }
                }
            }
            _ => self.details.push(detail.clone()),
        }
        Ok(())
    }

    fn keep_reasoning(&mut self, out: &mut Vec<StreamEvent>) {
        let text = std::mem::take(&mut self.reasoning);
        let mut details = std::mem::take(&mut self.details).into_iter().map(|it| format!("{DETAILS}{it}"));
        let first = details.next();
        if !text.is_empty() || first.is_some() {
            out.push(StreamEvent::Reasoning(Reasoning { text, signature: first }));
        }
        for signature in details {
            out.push(StreamEvent::Reasoning(Reasoning { text: String::new(), signature: Some(signature) }));
        }
    }
}

fn say(text: &str, out: &mut Vec<StreamEvent>) {
    if !text.is_empty() {
        out.push(StreamEvent::ContentDelta { text: text.to_owned() });
    }
}

/// The tokens, counted our way: theirs include what was cached in the prompt.
fn read_usage(usage: &Value) -> Usage {
    let number = |value: &Value| value.as_u64();
    let prompt = number(&usage["prompt_tokens"]).unwrap_or(0);
    let details = &usage["prompt_tokens_details"];
    let cache_read = [&details["cached_tokens"], &usage["prompt_cache_hit_tokens"], &usage["cached_tokens"]]
        .into_iter()
        .find_map(number)
        .unwrap_or(0)
        .min(prompt);
    let cache_write = number(&details["cache_write_tokens"]).unwrap_or(0).min(prompt - cache_read);
    Usage {
        input_tokens: prompt - cache_read - cache_write,
        cache_read_tokens: cache_read,
        cache_write_tokens: cache_write,
        output_tokens: number(&usage["completion_tokens"]).unwrap_or(0),
        reasoning_tokens: number(&usage["completion_tokens_details"]["reasoning_tokens"]).unwrap_or(0),
    }
}
