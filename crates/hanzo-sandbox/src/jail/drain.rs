//! Reading output whose size the command chooses into memory whose size we choose.

use std::collections::VecDeque;
use std::io::{self, Read};

/// The beginning and the end of a stream, and how much there was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drained {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes; none of them is in `head`.
    pub tail: Vec<u8>,
    /// Bytes read in all.
    pub total: u64,
}

impl Drained {
    /// Bytes that are in neither `head` nor `tail`.
    pub fn omitted(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// Head and tail as text, with a line between them when something is missing.
    pub fn text(&self) -> String {
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&self.tail));
        match self.omitted() {
            0 => {
                let whole = [self.head.as_slice(), &self.tail].concat();
                String::from_utf8_lossy(&whole).into_owned()
            }
            omitted => format!("{head}\n… {omitted} bytes omitted …\n{tail}"),
        }
    }
}

/// Reads to the end, keeping the first `head` and the last `tail` bytes. The reader is always emptied, so the writer never
/// waits for us.
pub fn drain_bounded(mut from: impl Read, head: usize, tail: usize) -> io::Result<Drained> {
    let mut out = Drained::default();
    let mut ring: VecDeque<u8> = VecDeque::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let length = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // A terminal's master says EIO when the last user of the other end is gone.
            Err(error) if error.raw_os_error() == Some(5) => break,
            Err(error) => return Err(error),
        };
        out.total += length as u64;
        let room = head.saturating_sub(out.head.len()).min(length);
        out.head.extend_from_slice(&chunk[..room]);
        let rest = &chunk[room..length];
        let rest = &rest[rest.len().saturating_sub(tail)..];
        let excess = (ring.len() + rest.len()).saturating_sub(tail);
        ring.drain(..excess);
        ring.extend(rest);
    }
    out.tail = ring.into();
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_are_exact_for_every_size_around_the_bounds() {
        for size in (0..40).chain([70_000, 200_001]) {
            let input: Vec<u8> = (0..size).map(|at: usize| u8::try_from(at % 251).unwrap()).collect();
            let drained = drain_bounded(input.as_slice(), 10, 20).unwrap();
            assert_eq!(drained.total, size as u64);
            assert_eq!(drained.head, input[..size.min(10)]);
            assert_eq!(drained.tail, input[size.saturating_sub(20).max(size.min(10))..]);
            assert_eq!(drained.omitted(), size.saturating_sub(30) as u64);
        }
    }

    #[test]
    fn text_says_what_is_missing_only_when_something_is() {
        assert_eq!(drain_bounded(&b"abcdef"[..], 3, 3).unwrap().text(), "abcdef");
        assert_eq!(drain_bounded(&b"abcdefg"[..], 3, 3).unwrap().text(), "abc\n… 1 bytes omitted …\nefg");
    }
}
