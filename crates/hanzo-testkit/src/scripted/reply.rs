//! What the server answers, and how badly.

use std::time::Duration;

use serde_json::{Value, json};

use super::wire;

/// The protocol of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// OpenAI chat completions.
    OpenAi,
    /// Anthropic messages.
    Anthropic,
}

/// A tool call in an answer.
#[derive(Debug, Clone)]
pub struct Call {
    /// The call's id; the wire format makes one up when absent.
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The arguments as text, so that they may be malformed.
    pub arguments: String,
}

#[derive(Debug, Clone)]
pub(super) enum Part {
    Text(String),
    Reasoning { text: String, signature: Option<String> },
    Redacted(String),
    Refusal(String),
    Call(Call),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens {
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
    pub reasoning: u64,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    /// An answer in the protocol of the request.
    Answer,
    /// These bytes as the body of an event stream.
    Body(Vec<u8>),
    /// These bytes in place of a whole HTTP response, head included.
    Response(Vec<u8>),
    /// Nothing at all.
    Silence,
}

/// What happens when the body, or what was to be sent of it, is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It ends as HTTP wants it.
    Proper,
    /// The connection is closed in the middle of the body.
    Cut,
    /// The connection is reset (RST).
    Reset,
    /// Nothing more comes, and the connection stays open.
    Hang,
    /// A comment comes again and again.
    Drip(Duration),
}

/// How the end of the body is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Chunked,
    /// By closing the connection: a cut looks like the end.
    UntilClosed,
}

/// One answer of the script. It begins with what is said ([`Reply::text`], [`Reply::tool_call`], [`Reply::status`] …) and
/// may go on with how it is delivered.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) content: Content,
    pub(super) parts: Vec<Part>,
    pub(super) tokens: Tokens,
    pub(super) stop: Option<String>,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) extra_events: Vec<(usize, Vec<u8>)>,
    pub(super) fragment: usize,
    pub(super) chunk: Option<usize>,
    pub(super) delay: Duration,
    pub(super) first_delay: Duration,
    pub(super) limit: Option<usize>,
    pub(super) end: End,
    pub(super) framing: Framing,
}

impl Reply {
    fn new(content: Content) -> Self {
        Self {
            content,
            parts: Vec::new(),
            tokens: Tokens { input: 10, cache_read: 0, cache_write: 0, output: 5, reasoning: 0 },
            stop: None,
            status: 200,
            headers: Vec::new(),
            extra_events: Vec::new(),
            fragment: 8,
            chunk: None,
            delay: Duration::ZERO,
            first_delay: Duration::ZERO,
            limit: None,
            end: End::Proper,
            framing: Framing::Chunked,
        }
    }

    fn with_part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// An answer that says `text`.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Content::Answer).and_text(text)
    }

    /// An answer that thinks `text`; say more with the `and_` methods.
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::new(Content::Answer).and_reasoning(text)
    }

    /// An answer that calls a tool.
    pub fn tool_call(name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        Self::new(Content::Answer).and_tool_call(name, arguments)
    }

    /// An answer that calls a tool with arguments that need not be JSON.
    pub fn raw_tool_call(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let call = Call { id: None, name: name.into(), arguments: arguments.into() };
        Self::new(Content::Answer).and_call(call)
    }

    /// An answer without anything in it.
    pub fn empty() -> Self {
        Self::new(Content::Answer)
    }

    /// An HTTP error with an error body as both vendors write it.
    pub fn status(status: u16) -> Self {
        let kind = match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            400..500 => "invalid_request_error",
            _ => "api_error",
        };
        let body = json!({"type": "error", "error": {"type": kind, "message": format!("scripted {status}")}});
        Self { status, ..Self::new(Content::Body(body.to_string().into_bytes())) }
            .header("content-type", "application/json")
    }

    /// These bytes as the body of an event stream.
    pub fn body(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(Content::Body(bytes.into()))
    }

    /// These bytes in place of a whole HTTP response, head included; then the connection is closed.
    pub fn response(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(Content::Response(bytes.into()))
    }

    /// Takes the request and never answers.
    pub fn hang() -> Self {
        Self::new(Content::Silence)
    }

    /// Takes the request and resets the connection.
    pub fn reset() -> Self {
        Self { end: End::Reset, ..Self::new(Content::Silence) }
    }

    /// And says `text`.
    #[must_use]
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.with_part(Part::Text(text.into()))
    }

    /// And thinks `text`. Anthropic's form has the signature `sig`.
    #[must_use]
    pub fn and_reasoning(self, text: impl Into<String>) -> Self {
        self.with_part(Part::Reasoning { text: text.into(), signature: Some("sig".into()) })
    }

    /// And thinks something encrypted (Anthropic only).
    #[must_use]
    pub fn and_redacted(self, data: impl Into<String>) -> Self {
        self.with_part(Part::Redacted(data.into()))
    }

    /// And declines in these words (OpenAI only).
    #[must_use]
    pub fn and_refusal(self, text: impl Into<String>) -> Self {
        self.with_part(Part::Refusal(text.into()))
    }

    /// And calls a tool.
    #[must_use]
    pub fn and_tool_call(self, name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        let arguments = arguments.into().to_string();
        self.and_call(Call { id: None, name: name.into(), arguments })
    }

    /// And makes this call.
    #[must_use]
    pub fn and_call(self, call: Call) -> Self {
        self.with_part(Part::Call(call))
    }

    /// Reports these tokens.
    #[must_use]
    pub fn with_usage(mut self, input: u64, output: u64) -> Self {
        self.tokens.input = input;
        self.tokens.output = output;
        self
    }

    /// Reports so many more input tokens, read from and written to the vendor's cache.
    #[must_use]
    pub fn with_cached(mut self, read: u64, written: u64) -> Self {
        self.tokens.cache_read = read;
        self.tokens.cache_write = written;
        self
    }

    /// Stops for this reason, in the words of the protocol.
    #[must_use]
    pub fn with_stop(mut self, reason: impl Into<String>) -> Self {
        self.stop = Some(reason.into());
        self
    }

    /// Puts these bytes before the `index`-th event of the stream, as they are.
    #[must_use]
    pub fn with_raw_event(mut self, index: usize, bytes: impl Into<Vec<u8>>) -> Self {
        self.extra_events.push((index, bytes.into()));
        self
    }

    /// Sends this header; one of the same name is replaced.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Answers with this body in place of the usual one of the status.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.content = Content::Body(body.into());
        self
    }

    /// So many characters to a delta; 8 otherwise.
    #[must_use]
    pub fn fragment(mut self, characters: usize) -> Self {
        self.fragment = characters.max(1);
        self
    }

    /// So many bytes to a write on the network; one event otherwise.
    #[must_use]
    pub fn chunk(mut self, bytes: usize) -> Self {
        self.chunk = Some(bytes.max(1));
        self
    }

    /// Waits so long before each write but the first.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Waits so long before answering at all.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.first_delay = delay;
        self
    }

    /// Closes the connection after so many bytes of the body.
    #[must_use]
    pub fn truncate(self, bytes: usize) -> Self {
        self.ending(bytes, End::Cut)
    }

    /// Resets the connection after so many bytes of the body.
    #[must_use]
    pub fn reset_after(self, bytes: usize) -> Self {
        self.ending(bytes, End::Reset)
    }

    /// Falls silent after so many bytes of the body, with the connection open.
    #[must_use]
    pub fn hang_after(self, bytes: usize) -> Self {
        self.ending(bytes, End::Hang)
    }

    /// After so many bytes of the body sends nothing but comments, one each `interval`.
    #[must_use]
    pub fn drip_after(self, bytes: usize, interval: Duration) -> Self {
        self.ending(bytes, End::Drip(interval))
    }

    /// Marks the end of the body by closing the connection, as old proxies do, so that a cut looks like the end.
    #[must_use]
    pub fn until_closed(mut self) -> Self {
        self.framing = Framing::UntilClosed;
        self
    }

    fn ending(mut self, bytes: usize, end: End) -> Self {
        self.limit = Some(bytes);
        self.end = end;
        self
    }

    /// The body of the whole answer in this protocol.
    pub fn bytes(&self, api: Api) -> Vec<u8> {
        self.writes(api, true).concat()
    }

    /// The body in the pieces in which it is written.
    pub(super) fn writes(&self, api: Api, with_usage: bool) -> Vec<Vec<u8>> {
        let mut events = match &self.content {
            Content::Answer => wire::events(self, api, with_usage),
            Content::Body(bytes) => vec![bytes.clone()],
            Content::Response(_) | Content::Silence => Vec::new(),
        };
        for (index, bytes) in &self.extra_events {
            events.insert((*index).min(events.len()), bytes.clone());
        }
        match self.chunk {
            Some(size) => events.concat().chunks(size).map(<[u8]>::to_vec).collect(),
            None => events,
        }
    }
}
