//! How messages are told apart on a pipe. MCP writes one JSON text a line; other clients write `Content-Length` headers as
//! language servers do. Which one a peer speaks shows in its first bytes, and it is answered in kind (C14).
//!
//! The decoder is fed bytes as they come, in whatever pieces, and never ends: whatever is wrong with a message, the next one is read.

use bytes::{Buf as _, Bytes, BytesMut};

/// The largest message that is read; a larger one is skipped to its end.
pub const MAX_MESSAGE: usize = 10 * 1024 * 1024;

/// The most of a header line. Nobody needs more for a number.
const MAX_HEADER: usize = 1024;
/// The most header lines of a message.
const MAX_HEADERS: u32 = 32;
const HEADER: &[u8] = b"content-";
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// How messages are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// One message a line.
    Lines,
    /// A `Content-Length` header before each.
    Headers,
}

impl Framing {
    /// A message as it is written.
    pub fn encode(self, message: &[u8], out: &mut BytesMut) {
        match self {
            Self::Lines => {
                out.extend_from_slice(message);
                out.extend_from_slice(b"\n");
            }
            Self::Headers => {
                out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", message.len()).as_bytes());
                out.extend_from_slice(message);
            }
        }
    }
}

/// What the decoder found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A message, which may or may not be JSON.
    Message(Bytes),
    /// A message that was too large; it has been skipped.
    TooLarge,
    /// Headers without a length that can be used; they have been skipped.
    BadHeader,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between two messages.
    Start,
    /// In a line.
    Line,
    /// In a line that is too large.
    SkipLine,
    /// Among header lines.
    Headers { length: Option<Length>, lines: u32 },
    /// In a message of known length.
    Body { length: usize },
    /// In a message of known length that is too large.
    SkipBody { left: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Known(u64),
    Unusable,
}

/// Finds messages in bytes.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    state: State,
    /// How far the buffer has been searched for the end of a line.
    searched: usize,
    limit: usize,
    framing: Option<Framing>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::with_limit(MAX_MESSAGE)
    }
}

impl Decoder {
    /// A decoder whose largest message is `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), state: State::Start, searched: 0, limit, framing: None }
    }

    /// Where to put the bytes that come next.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Whether there are bytes that are not taken yet.
    pub fn has_more(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// How the peer writes, as its first message showed.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// The next thing there is; `None` until there are more bytes.
    pub fn next_frame(&mut self) -> Option<Frame> {
        loop {
            match self.state {
                State::Start => self.start()?,
                State::Line => {
                    let Some(end) = self.line_end() else {
                        if self.buffer.len() > self.limit {
                            self.skip_all();
                            self.state = State::SkipLine;
                        }
                        return None;
                    };
                    self.state = State::Start;
                    let line = self.take_line(end);
                    if line.len() > self.limit {
                        return Some(Frame::TooLarge);
                    }
                    return Some(Frame::Message(line));
                }
                State::SkipLine => {
                    let Some(end) = self.line_end() else {
                        self.skip_all();
                        return None;
                    };
                    self.buffer.advance(end + 1);
                    self.state = State::Start;
                    return Some(Frame::TooLarge);
                }
                State::Headers { length, lines } => match self.header(length, lines) {
                    Header::Unfinished => return None,
                    Header::Taken => {}
                    Header::Bad => return Some(Frame::BadHeader),
                },
                State::Body { length } => {
                    if self.buffer.len() < length {
                        self.buffer.reserve(length - self.buffer.len());
                        return None;
                    }
                    self.state = State::Start;
                    return Some(Frame::Message(self.buffer.split_to(length).freeze()));
                }
                State::SkipBody { left } => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(self.buffer.len());
                    self.buffer.advance(here);
                    let left = left - here as u64;
                    if left > 0 {
                        self.state = State::SkipBody { left };
                        return None;
                    }
                    self.state = State::Start;
                    return Some(Frame::TooLarge);
                }
            }
        }
    }

    /// What is left when no more bytes come: a last line without its end.
    pub fn finish(&mut self) -> Option<Frame> {
        match self.state {
            State::Start | State::Line if !self.buffer.is_empty() => {
                self.state = State::Start;
                self.framing.get_or_insert(Framing::Lines);
                let end = self.buffer.len();
                let line = self.buffer.split_to(end).freeze();
                Some(Frame::Message(line))
            }
            State::SkipLine => {
                self.state = State::Start;
                Some(Frame::TooLarge)
            }
            _ => None,
        }
    }

    /// Decides how the next message is written.
    fn start(&mut self) -> Option<()> {
        if self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.advance(BYTE_ORDER_MARK.len());
        }
        let blank = self.buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.buffer.advance(blank);
        self.searched = 0;
        let seen = &self.buffer[..self.buffer.len().min(HEADER.len())];
        if seen.is_empty() {
            return None;
        }
        let found = if !seen.eq_ignore_ascii_case(&HEADER[..seen.len()]) {
            self.state = State::Line;
            Framing::Lines
        } else if seen.len() == HEADER.len() {
            self.state = State::Headers { length: None, lines: 0 };
            Framing::Headers
        } else {
            return None;
        };
        self.framing.get_or_insert(found);
        Some(())
    }

    /// Takes one header line.
    fn header(&mut self, mut length: Option<Length>, lines: u32) -> Header {
        let Some(end) = self.line_end() else {
            if self.buffer.len() <= MAX_HEADER {
                return Header::Unfinished;
            }
            // Nobody's header: it is skipped as a line that is too large.
            self.skip_all();
            self.state = State::SkipLine;
            return Header::Unfinished;
        };
        let line = &self.buffer[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            self.buffer.advance(end + 1);
            self.searched = 0;
            let limit = self.limit as u64;
            return match length {
                Some(Length::Known(length)) if length <= limit => {
                    // It fits: it is within the limit, which is a usize.
                    self.state = State::Body { length: usize::try_from(length).unwrap_or(usize::MAX) };
                    Header::Taken
                }
                Some(Length::Known(left)) => {
                    self.state = State::SkipBody { left };
                    Header::Taken
                }
                Some(Length::Unusable) | None => {
                    self.state = State::Start;
                    Header::Bad
                }
            };
        }
        let Some((name, value)) = split_header(line).filter(|_| lines < MAX_HEADERS) else {
            // It is no header, and may be the next message; but the first line only looked like one and is nothing else.
            if lines == 0 {
                self.buffer.advance(end + 1);
            }
            self.searched = 0;
            self.state = State::Start;
            return Header::Bad;
        };
        if name.eq_ignore_ascii_case(b"content-length") {
            let number = std::str::from_utf8(value).ok().and_then(|text| text.trim().parse().ok());
            length = Some(match (number, length) {
                (Some(number), None) => Length::Known(number),
                (Some(number), Some(Length::Known(before))) if number == before => Length::Known(number),
                _ => Length::Unusable,
            });
        }
        self.buffer.advance(end + 1);
        self.searched = 0;
        self.state = State::Headers { length, lines: lines + 1 };
        Header::Taken
    }

    fn line_end(&mut self) -> Option<usize> {
        let found = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let end = found.map(|at| self.searched + at);
        self.searched = if end.is_some() { 0 } else { self.buffer.len() };
        end
    }

    fn take_line(&mut self, end: usize) -> Bytes {
        let mut line = self.buffer.split_to(end);
        self.buffer.advance(1);
        if line.ends_with(b"\r") {
            line.truncate(line.len() - 1);
        }
        line.freeze()
    }

    fn skip_all(&mut self) {
        // What was grown for a large message is given back.
        self.buffer = BytesMut::new();
        self.searched = 0;
    }
}

/// What became of a header line.
enum Header {
    /// It is not whole yet.
    Unfinished,
    /// The state says what comes next.
    Taken,
    /// The headers are of no use.
    Bad,
}

/// A header line's name and value; `None` for what is no header line.
fn split_header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = &line[..colon];
    let is_name = !name.is_empty()
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_name.then_some((name, &line[colon + 1..]))
}
