//! The parser: one pass over each chunk, no second look at a byte once its chunk is gone.
//!
//! Lines that lie whole in a chunk are parsed where they are, and what they contribute to the event is *held* as a
//! slice of the chunk. What cannot be held is *kept*, in buffers that are reused from event to event: the beginning
//! of a line that the chunk cuts, and every further `data` line of an event, which has to be joined to the first.
//!
//! Everything here works on bytes. Field names and line ends are ASCII, and a malformed UTF-8 sequence never
//! swallows an ASCII byte, so decoding each value by itself gives what decoding the whole stream first would give.

use crate::scan::line_end;
use crate::{SseError, SseEvent};

/// The default limit of one event: far above what a model or a tool server sends, far below what hurts.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// The four fields that mean something. They differ in their first byte, which is all a cut line has to remember.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Id,
    Retry,
}

impl Field {
    fn starting_with(byte: u8) -> Option<Self> {
        match byte {
            b'd' => Some(Self::Data),
            b'e' => Some(Self::Event),
            b'i' => Some(Self::Id),
            b'r' => Some(Self::Retry),
            _ => None,
        }
    }

    const fn name(self) -> &'static [u8] {
        match self {
            Self::Data => b"data",
            Self::Event => b"event",
            Self::Id => b"id",
            Self::Retry => b"retry",
        }
    }
}

/// How far the current line has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Line {
    #[default]
    Start,
    /// The first `matched` bytes of the name of `field`.
    Name {
        field: Field,
        matched: usize,
    },
    /// The name and its colon: one space may follow that is not part of the value.
    Colon(Field),
    Value(Field),
    /// A comment, an unknown field, or part of an event that is being dropped.
    Ignored,
}

/// The parts of the current event that lie whole in the current chunk.
#[derive(Default)]
struct Held<'c> {
    data: Option<&'c [u8]>,
    event: Option<&'c [u8]>,
    id: Option<&'c [u8]>,
}

impl Held<'_> {
    fn len(&self) -> usize {
        [self.data, self.event, self.id].into_iter().flatten().map(<[u8]>::len).sum()
    }
}

/// A reused buffer. `present` tells an empty value from none.
#[derive(Debug, Clone, Default)]
struct Kept {
    bytes: Vec<u8>,
    present: bool,
}

impl Kept {
    fn clear(&mut self) {
        self.bytes.clear();
        self.present = false;
    }

    /// Begins a new value in place of the old one.
    fn restart(&mut self) {
        self.bytes.clear();
        self.present = true;
    }

    /// Grows like a vector but never past `limit`, which the caller has checked to be enough.
    fn push(&mut self, more: &[u8], limit: usize) {
        let needed = self.bytes.len() + more.len();
        if needed > self.bytes.capacity() {
            let target = needed.max(self.bytes.capacity().saturating_mul(2).min(limit)).max(64.min(limit));
            self.bytes.reserve_exact(target - self.bytes.len());
        }
        self.bytes.extend_from_slice(more);
    }

    fn value(&self) -> Option<&[u8]> {
        self.present.then_some(&self.bytes)
    }
}

/// Reused space for text that was not valid UTF-8.
#[derive(Debug, Clone, Default)]
struct Repaired {
    data: String,
    event: String,
}

/// Parses a stream of server-sent events by the rules of the HTML standard and hands out each event as it ends.
///
/// [`decode`](Self::decode) lends the event to a closure. Nothing is allocated per event: the text is borrowed from
/// the chunk when the chunk holds all of it, and from a buffer that is reused otherwise.
///
/// An event that is still open when the stream ends is never delivered, as the standard asks: just drop the decoder.
#[derive(Debug, Clone)]
pub struct SseDecoder {
    limit: usize,
    /// How much of a byte order mark has been seen; all of it also stands for "there was none".
    mark_matched: usize,
    /// The last byte was a CR, which ended its line; an LF right after it belongs to the same line end.
    after_cr: bool,
    line: Line,
    data: Kept,
    event: Kept,
    id: Kept,
    /// The id being read. It replaces `id` only at the end of its line: a NUL on the way makes it void.
    next_id: Kept,
    retry: Option<u64>,
    /// The digits read so far of the `retry` line being read.
    next_retry: Option<u64>,
    dropping: bool,
    error: Option<SseError>,
    last_event_id: String,
    reconnection_time: Option<u64>,
    repaired: Repaired,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }
}

impl SseDecoder {
    /// A decoder at the start of a stream, with the [default limit](DEFAULT_LIMIT).
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder that drops any event whose data, type and id together take more than `bytes` bytes.
    ///
    /// The count does not depend on the chunking. Comments and unknown fields are not stored and do not count. Each
    /// of the decoder's buffers stays within the limit; only text that has to be repaired because it was not UTF-8
    /// can take three times as much, as one bad byte becomes a three-byte `U+FFFD`.
    pub fn with_limit(bytes: usize) -> Self {
        Self {
            limit: bytes,
            mark_matched: 0,
            after_cr: false,
            line: Line::Start,
            data: Kept::default(),
            event: Kept::default(),
            id: Kept::default(),
            next_id: Kept::default(),
            retry: None,
            next_retry: None,
            dropping: false,
            error: None,
            last_event_id: String::new(),
            reconnection_time: None,
            repaired: Repaired::default(),
        }
    }

    /// Takes the next bytes of the stream and calls `on_event` for every event they complete, in order.
    ///
    /// ```
    /// use hanzo_sse::SseDecoder;
    ///
    /// let mut decoder = SseDecoder::new();
    /// let mut answer = String::new();
    /// for chunk in [&b"data: caf\xC3"[..], b"\xA9\n\ndata:  au lait\n\n"] {
    ///     decoder.decode(chunk, |event| answer.push_str(event.data));
    /// }
    /// assert_eq!(answer, "café au lait");
    /// ```
    pub fn decode(&mut self, chunk: &[u8], mut on_event: impl FnMut(SseEvent<'_>)) {
        let Some(mut rest) = self.finish_cut_line(chunk) else { return };
        let mut held = Held::default();
        while let Some((&first, tail)) = rest.split_first() {
            if self.after_cr {
                self.after_cr = false;
                if first == b'\n' {
                    rest = tail;
                    continue;
                }
            }
            let Some(end) = line_end(rest) else {
                self.keep(&held);
                self.read_part_of_line(rest);
                return;
            };
            let line = &rest[..end];
            if line.is_empty() {
                self.dispatch(&held, &mut on_event);
                held = Held::default();
            } else if !self.hold(line, &mut held) {
                self.keep(&std::mem::take(&mut held));
                self.read_part_of_line(line);
                self.end_line();
            }
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
        }
        self.keep(&held);
    }

    /// What went wrong since the last call, if anything: once, however many events it befell. Parsing goes on.
    pub fn take_error(&mut self) -> Option<SseError> {
        self.error.take()
    }

    /// The last event id as the standard defines it, the value for `Last-Event-ID` when reconnecting. It changes
    /// when an event ends, even one without data; empty when there was none or when it was reset.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// The last valid `retry` in milliseconds. It takes effect when its line ends, even in an event without data.
    pub fn reconnection_time(&self) -> Option<u64> {
        self.reconnection_time
    }

    /// Reads on in what the last chunk cut: the byte order mark or a line. Returns what follows, or `None` when the
    /// cut line is not over yet.
    fn finish_cut_line<'c>(&mut self, chunk: &'c [u8]) -> Option<&'c [u8]> {
        let mut rest = chunk;
        if self.mark_matched < BYTE_ORDER_MARK.len() {
            rest = self.skip_byte_order_mark(rest);
        }
        if self.line == Line::Start {
            return Some(rest);
        }
        let Some(end) = line_end(rest) else {
            self.read_part_of_line(rest);
            return None;
        };
        self.read_part_of_line(&rest[..end]);
        self.end_line();
        self.after_cr = rest[end] == b'\r';
        Some(&rest[end + 1..])
    }

    fn skip_byte_order_mark<'c>(&mut self, mut rest: &'c [u8]) -> &'c [u8] {
        while let Some((&byte, tail)) = rest.split_first()
            && self.mark_matched < BYTE_ORDER_MARK.len()
        {
            if byte == BYTE_ORDER_MARK[self.mark_matched] {
                self.mark_matched += 1;
                rest = tail;
            } else {
                if self.mark_matched > 0 {
                    // Half a mark is the beginning of a field name that nobody knows.
                    self.line = Line::Ignored;
                }
                self.mark_matched = BYTE_ORDER_MARK.len();
            }
        }
        rest
    }

    /// Tries to take in a whole line without copying. `false` leaves everything as it was.
    #[inline]
    fn hold<'c>(&mut self, line: &'c [u8], held: &mut Held<'c>) -> bool {
        if self.dropping {
            return true;
        }
        let Some((field, value)) = split_line(line) else { return true };
        let (data, event, id) = (self.data.bytes.len(), self.event.bytes.len(), self.id.bytes.len());
        let before = data + event + id + held.len();
        let (kept, slot) = match field {
            Field::Data if self.data.present || held.data.is_some() => return false,
            Field::Id if value.contains(&0) => return false,
            Field::Retry => return false,
            Field::Data => (&mut self.data, &mut held.data),
            Field::Event => (&mut self.event, &mut held.event),
            Field::Id => (&mut self.id, &mut held.id),
        };
        let replaced = kept.bytes.len() + slot.map_or(0, <[u8]>::len);
        if before - replaced + value.len() > self.limit {
            self.drop_event();
            self.line = Line::Start;
            *held = Held::default();
            return true;
        }
        kept.clear();
        *slot = Some(value);
        true
    }

    /// Copies what is held, because its chunk ends or because more is to be joined to it.
    fn keep(&mut self, held: &Held<'_>) {
        let limit = self.limit;
        for (value, kept) in
            [(held.data, &mut self.data), (held.event, &mut self.event), (held.id, &mut self.id)]
        {
            if let Some(value) = value {
                kept.restart();
                kept.push(value, limit);
            }
        }
    }

    /// Reads bytes of the current line that contain no line end.
    fn read_part_of_line(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, tail)) = bytes.split_first() {
            match self.line {
                Line::Start => {
                    self.line = match Field::starting_with(byte) {
                        Some(field) if !self.dropping => Line::Name { field, matched: 1 },
                        _ => Line::Ignored,
                    };
                }
                Line::Name { field, matched } => match field.name().get(matched) {
                    Some(&expected) if byte == expected => {
                        self.line = Line::Name { field, matched: matched + 1 };
                    }
                    None if byte == b':' => self.begin_value(field),
                    _ => self.line = Line::Ignored,
                },
                Line::Colon(field) => {
                    self.line = Line::Value(field);
                    if byte != b' ' {
                        continue;
                    }
                }
                Line::Value(field) => return self.extend_value(field, bytes),
                Line::Ignored => return,
            }
            bytes = tail;
        }
    }

    /// Ends a line that was read in parts.
    fn end_line(&mut self) {
        if let Line::Name { field, matched } = self.line
            && matched == field.name().len()
        {
            // A name without a colon is the field with an empty value.
            self.begin_value(field);
        }
        match self.line {
            Line::Colon(Field::Id) | Line::Value(Field::Id) => {
                std::mem::swap(&mut self.id, &mut self.next_id);
            }
            Line::Value(Field::Retry) if self.next_retry.is_some() => {
                self.retry = self.next_retry;
                self.reconnection_time = self.next_retry;
            }
            _ => {}
        }
        self.line = Line::Start;
    }

    fn begin_value(&mut self, field: Field) {
        self.line = Line::Colon(field);
        match field {
            Field::Data if self.data.present => self.extend_value(Field::Data, b"\n"),
            Field::Data => self.data.restart(),
            Field::Event => self.event.restart(),
            Field::Id => self.next_id.restart(),
            Field::Retry => self.next_retry = None,
        }
    }

    /// Adds to the value being read. What can no longer become valid turns the line into one to ignore.
    fn extend_value(&mut self, field: Field, more: &[u8]) {
        let (data, event, id) = (self.data.bytes.len(), self.event.bytes.len(), self.id.bytes.len());
        match field {
            Field::Data | Field::Event if data + event + id + more.len() > self.limit => self.drop_event(),
            Field::Data => self.data.push(more, self.limit),
            Field::Event => self.event.push(more, self.limit),
            Field::Id => {
                let nul = more.iter().position(|byte| *byte == 0);
                let more = &more[..nul.unwrap_or(more.len())];
                if data + event + self.next_id.bytes.len() + more.len() > self.limit {
                    self.drop_event();
                } else if nul.is_some() {
                    self.line = Line::Ignored;
                } else {
                    self.next_id.push(more, self.limit);
                }
            }
            Field::Retry => match more.iter().copied().try_fold(self.next_retry.unwrap_or(0), append_digit) {
                Some(number) => self.next_retry = Some(number),
                None => self.line = Line::Ignored,
            },
        }
    }

    /// Gives up on the current event: its memory is released, and the rest of it will be skipped.
    #[cold]
    fn drop_event(&mut self) {
        self.error = Some(SseError::EventTooLarge { limit: self.limit });
        self.dropping = true;
        self.line = Line::Ignored;
        self.data = Kept::default();
        self.event = Kept::default();
        self.id = Kept::default();
        self.next_id = Kept::default();
    }

    /// A blank line: the event is complete, or there was none.
    #[inline]
    fn dispatch(&mut self, held: &Held<'_>, on_event: &mut impl FnMut(SseEvent<'_>)) {
        self.dropping = false;
        let id = held.id.or(self.id.value());
        if let Some(id) = id {
            self.last_event_id.clear();
            push_lossy(&mut self.last_event_id, id);
        }
        if let Some(data) = held.data.or(self.data.value()) {
            let event = held.event.or(self.event.value()).filter(|event| !event.is_empty());
            on_event(SseEvent {
                event: event.map(|event| text(event, &mut self.repaired.event)),
                data: text(data, &mut self.repaired.data),
                id: id.map(|_| self.last_event_id.as_str()),
                retry: self.retry,
            });
        }
        self.data.clear();
        self.event.clear();
        self.id.clear();
        self.retry = None;
    }
}

/// The field and value of a whole line, or `None` for comments and unknown fields.
#[inline]
fn split_line(line: &[u8]) -> Option<(Field, &[u8])> {
    // Patterns instead of `Field::name`: the compiler makes one comparison of a known width of each.
    let (field, after_name) = match line {
        [b'd', b'a', b't', b'a', after @ ..] => (Field::Data, after),
        [b'e', b'v', b'e', b'n', b't', after @ ..] => (Field::Event, after),
        [b'i', b'd', after @ ..] => (Field::Id, after),
        [b'r', b'e', b't', b'r', b'y', after @ ..] => (Field::Retry, after),
        _ => return None,
    };
    match after_name {
        [b':', b' ', value @ ..] | [b':', value @ ..] | value @ [] => Some((field, value)),
        _ => None,
    }
}

fn append_digit(number: u64, byte: u8) -> Option<u64> {
    let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
    number.checked_mul(10)?.checked_add(digit)
}

#[inline]
fn text<'a>(bytes: &'a [u8], repaired: &'a mut String) -> &'a str {
    std::str::from_utf8(bytes).unwrap_or_else(|_| {
        repaired.clear();
        push_lossy(repaired, bytes);
        repaired
    })
}

/// `String::from_utf8_lossy` into space we own already.
fn push_lossy(target: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        target.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            target.push(char::REPLACEMENT_CHARACTER);
        }
    }
}
