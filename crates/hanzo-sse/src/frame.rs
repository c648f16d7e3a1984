//! The event as callers see it: borrowed while it is being delivered, owned when they want to keep it.

use crate::{SseDecoder, SseError};

/// One event, borrowed from the decoder for the duration of the callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The event type, when an `event` field of this event gave a non-empty one. `None` means `message`.
    pub event: Option<&'a str>,
    /// The data, its lines joined by `\n`.
    pub data: &'a str,
    /// The id, when this event carried one. `Some("")` resets the last event id.
    pub id: Option<&'a str>,
    /// The reconnection time in milliseconds, when this event carried a valid one.
    pub retry: Option<u64>,
}

/// One event that owns its text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseFrame {
    /// The event type, when an `event` field of this event gave a non-empty one. `None` means `message`.
    pub event: Option<String>,
    /// The data, its lines joined by `\n`.
    pub data: String,
    /// The id, when this event carried one. `Some("")` resets the last event id.
    pub id: Option<String>,
    /// The reconnection time in milliseconds, when this event carried a valid one.
    pub retry: Option<u64>,
}

impl From<SseEvent<'_>> for SseFrame {
    fn from(event: SseEvent<'_>) -> Self {
        Self {
            event: event.event.map(str::to_owned),
            data: event.data.to_owned(),
            id: event.id.map(str::to_owned),
            retry: event.retry,
        }
    }
}

/// Collects the events of a stream as owned [`SseFrame`]s, whatever the chunks it arrives in.
///
/// A thin layer over [`SseDecoder`] for callers who would rather hold a list than pass a closure.
///
/// ```
/// use hanzo_sse::SseFrameBuffer;
///
/// let mut buffer = SseFrameBuffer::new();
/// assert!(buffer.feed("event: greeting\nda").is_empty());
/// let frames = buffer.feed("ta: hello\n\n");
/// assert_eq!(frames[0].event.as_deref(), Some("greeting"));
/// assert_eq!(frames[0].data, "hello");
/// ```
#[derive(Debug, Clone, Default)]
pub struct SseFrameBuffer {
    decoder: SseDecoder,
}

impl SseFrameBuffer {
    /// A buffer at the start of a stream, with the [default limit](crate::DEFAULT_LIMIT).
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer that drops events of more than `bytes` bytes; see [`SseDecoder::with_limit`].
    pub fn with_limit(bytes: usize) -> Self {
        Self { decoder: SseDecoder::with_limit(bytes) }
    }

    /// Takes the next piece of the stream and returns the events it completes.
    pub fn feed(&mut self, chunk: &str) -> Vec<SseFrame> {
        self.feed_bytes(chunk.as_bytes())
    }

    /// Like [`feed`](Self::feed), for chunks that may begin or end inside a character.
    pub fn feed_bytes(&mut self, chunk: &[u8]) -> Vec<SseFrame> {
        let mut frames = Vec::new();
        self.decoder.decode(chunk, |event| frames.push(event.into()));
        frames
    }

    /// What went wrong since the last call, if anything. See [`SseDecoder::take_error`].
    pub fn take_error(&mut self) -> Option<SseError> {
        self.decoder.take_error()
    }

    /// The value for `Last-Event-ID` when reconnecting. See [`SseDecoder::last_event_id`].
    pub fn last_event_id(&self) -> &str {
        self.decoder.last_event_id()
    }

    /// The last valid `retry`, in milliseconds. See [`SseDecoder::reconnection_time`].
    pub fn reconnection_time(&self) -> Option<u64> {
        self.decoder.reconnection_time()
    }
}
