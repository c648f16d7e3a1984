//! From the bytes of an answer to its events: the part every protocol shares.

use hanzo_protocol::message::{ApiError, ApiErrorKind, StreamEvent};
use hanzo_sse::SseDecoder;

use crate::failure;

/// The most an answer may hold in calls or in reasoning: far above what a model writes, far below what hurts.
pub(crate) const LONGEST_GATHERED: usize = 16 * 1024 * 1024;
/// The most text an answer may hold in all.
const LONGEST_ANSWER: usize = LONGEST_GATHERED;
/// How much is kept of a body in which no event was seen, to find out what it is.
const LONGEST_HEAD: usize = 64 * 1024;

/// Whether something came that counts against silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// Nothing, or a sign of life without content.
    None,
    /// A piece of the answer.
    Some,
}

/// Puts a protocol's events together. Calls and the final event are given out by [`complete`](Self::complete) only, when
/// the whole answer is known to be there, so that a cut answer never has a call.
pub(crate) trait Assembler: Send {
    /// Reads one event.
    fn event(&mut self, data: &str, out: &mut Vec<StreamEvent>) -> Result<Step, ApiError>;

    /// Reads an answer that came as one document.
    fn document(&mut self, text: &str, out: &mut Vec<StreamEvent>) -> Result<(), ApiError>;

    /// Whether the model has said why it stopped, so that only formalities can be missing.
    fn has_stopped(&self) -> bool;

    /// Gives out what was gathered, and the final event.
    fn complete(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), ApiError>;
}

/// What an event was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A sign of life.
    Idle,
    /// A piece of the answer.
    Content,
    /// The mark after which nothing comes.
    End,
}

/// Reads one answer.
pub(crate) struct Reader {
    decoder: SseDecoder,
    assembler: Box<dyn Assembler>,
    head: Vec<u8>,
    seen_event: bool,
    passed: usize,
    over: bool,
}

impl Reader {
    pub(crate) fn new(assembler: Box<dyn Assembler>) -> Self {
        Self {
            decoder: SseDecoder::new(),
            assembler,
            head: Vec::new(),
            seen_event: false,
            passed: 0,
            over: false,
        }
    }

    /// Whether the final event was given out.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether only formalities can be missing.
    pub(crate) fn has_stopped(&self) -> bool {
        self.assembler.has_stopped()
    }

    /// Takes the next bytes; adds what they complete to `out`, the final event included when it is reached.
    pub(crate) fn feed(&mut self, chunk: &[u8], out: &mut Vec<StreamEvent>) -> Progress {
        if self.over {
            return Progress::None;
        }
        let mut progress = Progress::None;
        let mut failed = None;
        let mut ended = false;
        let before = out.len();
        let Self { decoder, assembler, seen_event, .. } = self;
        decoder.decode(chunk, |event| {
            *seen_event = true;
            if ended || failed.is_some() {
                return;
            }
            match assembler.event(event.data, out) {
                Ok(Step::Idle) => {}
                Ok(Step::Content) => progress = Progress::Some,
                Ok(Step::End) => ended = true,
                Err(error) => failed = Some(error),
            }
        });
        if let Some(error) = self.decoder.take_error() {
            // The event that was dropped may lie before those that were read.
            out.truncate(before);
            failed = Some(failure::plain(ApiErrorKind::Malformed, error.to_string()));
        }
        self.passed += out[before..].iter().map(text_length).sum::<usize>();
        if self.passed > LONGEST_ANSWER && failed.is_none() {
            let message = format!("the answer is longer than {LONGEST_ANSWER} bytes");
            failed = Some(failure::plain(ApiErrorKind::Malformed, message));
        }
        if !self.seen_event && self.head.len() < LONGEST_HEAD {
            let room = LONGEST_HEAD - self.head.len();
            self.head.extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
        if let Some(error) = failed {
            self.fail(error, out);
        } else if ended {
            self.complete(out);
        }
        progress
    }

    /// The body has ended as HTTP wants it.
    pub(crate) fn end(&mut self, out: &mut Vec<StreamEvent>) {
        if self.over {
            return;
        }
        if self.assembler.has_stopped() {
            // Some vendors leave the closing mark out.
            return self.complete(out);
        }
        let head = String::from_utf8_lossy(&self.head).into_owned();
        if !self.seen_event && head.trim_start().starts_with('{') {
            // A document in place of a stream, and its type does not say so.
            return self.document(&head, out);
        }
        self.fail(failure::plain(ApiErrorKind::Network, "the answer ended before it was complete"), out);
    }

    /// The answer came as one document.
    pub(crate) fn document(&mut self, text: &str, out: &mut Vec<StreamEvent>) {
        match self.assembler.document(text, out) {
            Ok(()) => self.complete(out),
            Err(error) => self.fail(error, out),
        }
    }

    /// Gives out what was gathered, and the final event.
    pub(crate) fn complete(&mut self, out: &mut Vec<StreamEvent>) {
        let before = out.len();
        match self.assembler.complete(out) {
            Ok(()) => self.over = true,
            Err(error) => {
                out.truncate(before);
                self.fail(error, out);
            }
        }
    }

    /// Ends the answer with an error.
    pub(crate) fn fail(&mut self, error: ApiError, out: &mut Vec<StreamEvent>) {
        self.over = true;
        out.push(StreamEvent::Error(error));
    }
}

fn text_length(event: &StreamEvent) -> usize {
    match event {
        StreamEvent::ContentDelta { text } | StreamEvent::ReasoningDelta { text } => text.len(),
        _ => 0,
    }
}

/// The JSON of an event, or why it is none.
pub(crate) fn parse(data: &str) -> Result<serde_json::Value, ApiError> {
    serde_json::from_str(data).map_err(|error| {
        let start: String = data.chars().take(80).collect();
        failure::plain(
            ApiErrorKind::Malformed,
            format!("the answer holds what is not JSON ({error}): {start}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use hanzo_testkit::scripted::{Api, Reply};
    use serde_json::json;

    use super::*;

    fn reader(api: Api) -> Reader {
        Reader::new(match api {
            Api::OpenAi => crate::openai::assembler(),
            Api::Anthropic => crate::anthropic::assembler(),
        })
    }

    fn events(api: Api, pieces: &[&[u8]]) -> Vec<StreamEvent> {
        let mut reader = reader(api);
        let mut out = Vec::new();
        for piece in pieces {
            reader.feed(piece, &mut out);
        }
        reader.end(&mut out);
        out
    }

    fn reply() -> Reply {
        Reply::reasoning("Hm, ü. ")
            .and_text("Schaue 🦀. ")
            .and_tool_call("fs", json!({"path": "grün.rs"}))
            .and_tool_call("proc", json!({"command": "rm -rf build"}))
            .fragment(16)
    }

    #[test]
    fn a_split_at_every_byte_gives_the_same_events() {
        for api in [Api::OpenAi, Api::Anthropic] {
            let bytes = reply().bytes(api);
            let whole = events(api, &[&bytes]);
            assert!(matches!(whole.last(), Some(StreamEvent::MessageStop { .. })));
            for at in 0..=bytes.len() {
                assert_eq!(events(api, &[&bytes[..at], &bytes[at..]]), whole, "{api:?} at {at}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(events(api, &single), whole, "{api:?} byte by byte");
        }
    }

    #[test]
    fn an_end_at_every_byte_is_one_last_event_and_no_half_call() {
        for api in [Api::OpenAi, Api::Anthropic] {
            let bytes = reply().bytes(api);
            let calls = |events: &[StreamEvent]| {
                events.iter().filter(|it| matches!(it, StreamEvent::ToolUse(_))).count()
            };
            for at in 0..bytes.len() {
                let got = events(api, &[&bytes[..at]]);
                let ends = got
                    .iter()
                    .filter(|it| matches!(it, StreamEvent::MessageStop { .. } | StreamEvent::Error(_)));
                assert_eq!(ends.count(), 1, "{api:?} at {at}");
                match got.last() {
                    Some(StreamEvent::Error(_)) => assert_eq!(calls(&got), 0, "{api:?} at {at}"),
                    _ => assert_eq!(calls(&got), 2, "{api:?} at {at}"),
                }
            }
        }
    }

    #[test]
    fn any_bytes_end_in_exactly_one_last_event() {
        use proptest::prelude::*;
        proptest!(|(pieces in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            prop::sample::select(vec![
                b"data: ".to_vec(), b"\n\n".to_vec(), b"[DONE]".to_vec(), b"{}".to_vec(), b"null".to_vec(),
                b"{\"choices\":[{\"delta\":{\"content\":\"x\"}}]}".to_vec(),
                b"{\"choices\":[{\"delta\":{\"tool_calls\":[{}]},\"finish_reason\":\"stop\"}]}".to_vec(),
                b"{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\"}}".to_vec(),
                b"{\"type\":\"content_block_delta\",\"delta\":{\"partial_json\":\"{\"}}".to_vec(),
                b"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}".to_vec(),
                b"{\"type\":\"message_stop\"}".to_vec(),
            ]),
        ], 0..30))| {
            for api in [Api::OpenAi, Api::Anthropic] {
                let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
                let got = events(api, &pieces);
                let last = |event: &StreamEvent| matches!(event, StreamEvent::MessageStop { .. } | StreamEvent::Error(_));
                prop_assert_eq!(got.iter().filter(|it| last(it)).count(), 1);
                prop_assert!(got.last().is_some_and(last));
            }
        });
    }
}
