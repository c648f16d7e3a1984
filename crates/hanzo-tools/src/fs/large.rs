//! Reading a part of a file that is too large to be held in memory: one pass, in pieces, keeping only the part.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use encoding_rs::Encoding;
use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::{ContentHash, ContentHasher};

use crate::contract::Cancelled;

/// Read at a time.
const PIECE: usize = 1 << 20;
/// Up to this size the whole file is gone through for its hash and its number of lines; of a larger one only what is before
/// the end of the part is.
pub(super) const MAX_HASHED: u64 = 1 << 30;
/// What is looked at to tell text from other content.
const HEAD: usize = 8 << 10;

/// Which lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) first: u32,
    /// The line before which to stop.
    pub(super) end: u32,
    /// Bytes kept; what follows in the line is passed over.
    pub(super) bytes: usize,
}

/// Lines of a file.
#[derive(Debug)]
pub(super) struct Lines {
    /// The beginning of the file.
    pub(super) head: Vec<u8>,
    pub(super) bytes: Vec<u8>,
    /// How many lines that are, the one that was cut included.
    pub(super) count: u32,
    /// Whether lines follow.
    pub(super) more: bool,
    /// Of the whole file, where it was gone through.
    pub(super) whole: Option<(ContentHash, u32)>,
}

/// Goes through `file` for the lines that are wanted.
pub(super) fn lines(
    file: &mut File,
    path: &Path,
    wanted: Wanted,
    cancelled: &Cancelled,
) -> Result<Lines, ToolError> {
    let io = |fault: std::io::Error| {
        ToolError::new(ErrorCode::Io, format!("cannot read `{}`: {fault}", path.display()))
    };
    let size = file.metadata().map_err(io)?.len();
    let mut hasher = (size <= MAX_HASHED).then(ContentHasher::default);
    let mut reader = LineReader { wanted, line: 0, open: false, bytes: Vec::new(), count: 0, closed: false };
    let mut head = Vec::new();
    let mut piece = vec![0; PIECE];
    let mut more = false;
    loop {
        cancelled.check()?;
        let length = match file.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => length,
            Err(fault) if fault.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(fault) => return Err(io(fault)),
        };
        let piece = &piece[..length];
        if head.len() < HEAD {
            head.extend_from_slice(&piece[..length.min(HEAD - head.len())]);
        }
        if let Some(hasher) = &mut hasher {
            hasher.update(piece);
        }
        let rest = reader.take(piece);
        more |= !rest.is_empty();
        match &hasher {
            Some(_) => reader.count_only(rest),
            // Other than text has no lines to look for.
            None if more || memchr::memchr(0, &head).is_some() => break,
            None => {}
        }
    }
    reader.end();
    let whole = hasher.map(|hasher| (hasher.finish(), reader.line));
    Ok(Lines { head, bytes: reader.bytes, count: reader.count, more, whole })
}

struct LineReader {
    wanted: Wanted,
    /// Lines that ended.
    line: u32,
    /// The last line has begun and not ended.
    open: bool,
    bytes: Vec<u8>,
    count: u32,
    closed: bool,
}

impl LineReader {
    /// Takes what is wanted of a piece; what is left when there is enough.
    fn take<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let mut rest = piece;
        while !rest.is_empty() && !self.closed {
            let feed = memchr::memchr(b'\n', rest);
            let (line, after) = rest.split_at(feed.map_or(rest.len(), |feed| feed + 1));
            if self.line >= self.wanted.first {
                let room = self.wanted.bytes.saturating_sub(self.bytes.len());
                self.bytes.extend_from_slice(&line[..line.len().min(room)]);
                self.count += u32::from(!self.open);
            }
            self.open = feed.is_none();
            self.line = self.line.saturating_add(u32::from(feed.is_some()));
            self.closed = !self.open
                && self.line > self.wanted.first
                && (self.line >= self.wanted.end || self.bytes.len() >= self.wanted.bytes);
            rest = after;
        }
        rest
    }

    fn count_only(&mut self, piece: &[u8]) {
        if let Some(last) = piece.last() {
            let feeds = memchr::memchr_iter(b'\n', piece).count();
            self.line = self.line.saturating_add(u32::try_from(feeds).unwrap_or(u32::MAX));
            self.open = *last != b'\n';
        }
    }

    fn end(&mut self) {
        self.line = self.line.saturating_add(u32::from(self.open));
        self.open = false;
    }
}

/// Whether line feeds can be found in `encoding` without decoding it.
pub(super) fn has_plain_line_feeds(encoding: &'static Encoding) -> bool {
    encoding.is_ascii_compatible()
}

/// The bytes without a character that was cut in the middle.
pub(super) fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_lines_are_those_of_the_whole_text(
            text in "[ab\n]{0,60}", first in 0_u32..12, length in 1_u32..8, bytes in 1_usize..30,
        ) {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.rewind().unwrap();
            let wanted = Wanted { first, end: first + length, bytes };
            let found = lines(&mut file, Path::new("f"), wanted, &Cancelled::default()).unwrap();
            let all: Vec<&str> = text.split_inclusive('\n').collect();
            let (hash, count) = found.whole.unwrap();
            prop_assert_eq!(hash, ContentHash::of(text.as_bytes()));
            prop_assert_eq!(count as usize, all.len());
            let rest = all.get(first as usize..).unwrap_or_default();
            let part = rest[..rest.len().min(found.count as usize)].concat();
            prop_assert!(found.count <= length);
            prop_assert_eq!(&found.bytes, &part.as_bytes()[..part.len().min(bytes)]);
            prop_assert_eq!(found.more, rest.len() > found.count as usize);
            // It stops for one of two reasons, or at the end.
            prop_assert!(!found.more || found.count == length || part.len() >= bytes);
        }
    }
}
