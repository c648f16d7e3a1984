//! The output of one stream of a process: its beginning and end in memory, all of it up to a bound in a file once it is too
//! long for memory. What lies beyond the bound is counted, and reading says so.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::text::View;

/// What is kept in memory of an output that goes on in a file: this much of its beginning, and as much of its end. Shorter
/// outputs never touch the disk, which is most of them.
const MEMORY: usize = 64 << 10;

/// One stream's output.
#[derive(Debug)]
pub(crate) struct Capture {
    /// The first bytes, or all.
    head: Vec<u8>,
    /// The last bytes, as a ring that begins at `tail_start`; empty until the file is needed.
    tail: Vec<u8>,
    tail_start: usize,
    spool: Option<Spool>,
    /// How many bytes from the start can be read back.
    kept: u64,
    total: u64,
    limit: u64,
    directory: PathBuf,
    /// Why the file does not hold more, when it is not the bound.
    fault: Option<String>,
}

/// A stretch of an output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Where it begins, which is later than asked when what was asked is gone.
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Capture {
    /// Keeps at most `limit` bytes in a file of `directory`, which is made only if it is needed.
    pub(crate) fn new(directory: PathBuf, limit: u64) -> Self {
        Self {
            head: Vec::new(),
            tail: Vec::new(),
            tail_start: 0,
            spool: None,
            kept: 0,
            total: 0,
            limit: limit.max(MEMORY as u64),
            directory,
            fault: None,
        }
    }

    /// How much was written in all.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// How much of it was counted only: neither in the file nor in the end that is in memory.
    pub(crate) fn dropped(&self) -> u64 {
        (self.total - self.tail.len() as u64).saturating_sub(self.kept)
    }

    /// Why the file ended before its bound.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = MEMORY - self.head.len();
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(first);
        if rest.is_empty() {
            self.kept = self.total;
            return;
        }
        self.push_tail(rest);
        if self.spool.is_none() && self.fault.is_none() {
            self.kept = self.head.len() as u64;
            match Spool::create(&self.directory)
                .and_then(|spool| spool.write_at(&self.head, 0).map(|()| spool))
            {
                Ok(spool) => self.spool = Some(spool),
                Err(error) => self.fault = Some(error.to_string()),
            }
        }
        let start = self.total - rest.len() as u64;
        let Some(spool) = self.spool.as_ref().filter(|_| self.fault.is_none() && self.kept == start) else {
            return;
        };
        let room = usize::try_from(self.limit - self.kept).unwrap_or(usize::MAX);
        let fits = &rest[..rest.len().min(room)];
        match spool.write_at(fits, self.kept) {
            Ok(()) => self.kept += fits.len() as u64,
            // A full disk is no reason to stop a program that is running.
            Err(error) => self.fault = Some(error.to_string()),
        }
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(MEMORY)..];
        let grow = bytes.len().min(MEMORY - self.tail.len());
        self.tail.extend_from_slice(&bytes[..grow]);
        let rest = &bytes[grow..];
        let until_wrap = rest.len().min(MEMORY - self.tail_start);
        self.tail[self.tail_start..self.tail_start + until_wrap].copy_from_slice(&rest[..until_wrap]);
        self.tail[..rest.len() - until_wrap].copy_from_slice(&rest[until_wrap..]);
        self.tail_start = (self.tail_start + rest.len()) % MEMORY;
    }

    fn tail_bytes(&self) -> Vec<u8> {
        let mut bytes = self.tail[self.tail_start..].to_vec();
        bytes.extend_from_slice(&self.tail[..self.tail_start]);
        bytes
    }

    /// Beginning and end, as far as they are in memory.
    pub(crate) fn with_view<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        let tail = self.tail_bytes();
        let gap = self.total - self.head.len() as u64 - tail.len() as u64;
        look(&View { head: &self.head, gap, tail: &tail })
    }

    /// The last `count` bytes that are in memory.
    pub(crate) fn last(&self, count: usize) -> Vec<u8> {
        let mut bytes = if self.tail.len() < count { self.head.clone() } else { Vec::new() };
        // Only joined when nothing lies between them.
        if self.total != (self.head.len() + self.tail.len()) as u64 {
            bytes.clear();
        }
        bytes.extend(self.tail_bytes());
        bytes.split_off(bytes.len().saturating_sub(count))
    }

    /// At most `count` bytes from `offset` on, or from where there is something again.
    pub(crate) fn read(&self, offset: u64, count: usize) -> io::Result<Piece> {
        let tail_offset = self.total - self.tail.len() as u64;
        let slice = |bytes: &[u8], start: u64| {
            let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
            bytes[start..].iter().copied().take(count).collect::<Vec<u8>>()
        };
        if self.tail.is_empty() || offset < self.head.len() as u64 {
            let offset = offset.min(self.total);
            return Ok(Piece { offset, bytes: slice(&self.head, offset) });
        }
        if let Some(spool) = self.spool.as_ref().filter(|_| offset < self.kept) {
            let there = usize::try_from(self.kept - offset).unwrap_or(usize::MAX);
            let mut bytes = vec![0; count.min(there)];
            spool.read_exact_at(&mut bytes, offset)?;
            return Ok(Piece { offset, bytes });
        }
        let offset = offset.max(tail_offset).min(self.total);
        Ok(Piece { offset, bytes: slice(&self.tail_bytes(), offset - tail_offset) })
    }

    /// Where the last `lines` lines begin, looking back at most `limit` bytes.
    pub(crate) fn offset_of_last_lines(&self, lines: usize, limit: usize) -> io::Result<u64> {
        let mut end = self.total;
        let mut missing = lines + 1;
        let floor = self.total.saturating_sub(limit as u64);
        let mut is_last = true;
        while end > floor {
            let start = end.saturating_sub(32 << 10).max(floor);
            let piece = self.read(start, usize::try_from(end - start).unwrap_or(usize::MAX))?;
            let there = &piece.bytes
                [..piece.bytes.len().min(usize::try_from(end.saturating_sub(piece.offset)).unwrap_or(0))];
            for (index, byte) in there.iter().enumerate().rev() {
                // The newline that ends the output begins no line.
                if *byte == b'\n'
                    && !(std::mem::take(&mut is_last) && piece.offset + index as u64 + 1 == self.total)
                {
                    missing -= 1;
                    if missing <= 1 {
                        return Ok(piece.offset + index as u64 + 1);
                    }
                }
                is_last = false;
            }
            if piece.offset > start {
                return Ok(piece.offset);
            }
            end = start;
        }
        Ok(floor)
    }
}

/// A file that nobody else can open.
#[derive(Debug)]
struct Spool {
    file: File,
    #[cfg(not(unix))]
    path: PathBuf,
}

impl Spool {
    fn create(directory: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        std::fs::create_dir_all(directory)?;
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!(".output-{}-{number}", std::process::id()));
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let file = match options.open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            // Without a name it is gone with us, however we end.
            #[cfg(unix)]
            std::fs::remove_file(&path)?;
            return Ok(Self {
                file,
                #[cfg(not(unix))]
                path,
            });
        }
    }

    #[cfg(unix)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, offset)
    }

    #[cfg(unix)]
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, bytes, offset)
    }

    #[cfg(not(unix))]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        use std::io::{Seek as _, SeekFrom, Write as _};
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    #[cfg(not(unix))]
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        use std::io::{Read as _, Seek as _, SeekFrom};
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }
}

#[cfg(not(unix))]
impl Drop for Spool {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(capture: &Capture) -> (Vec<u8>, u64) {
        let (mut bytes, mut offset, mut skipped) = (Vec::new(), 0, 0);
        while offset < capture.total() {
            let piece = capture.read(offset, 10_000).unwrap();
            skipped += piece.offset - offset;
            offset = piece.offset + piece.bytes.len() as u64;
            assert!(!piece.bytes.is_empty());
            bytes.extend(piece.bytes);
        }
        (bytes, skipped)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn what_fits_is_all_there_and_what_does_not_is_counted(
            sizes in prop::collection::vec(0usize..90_000, 0..12),
            limit in 0u64..600_000,
        ) {
            let directory = tempfile::tempdir().unwrap();
            let mut capture = Capture::new(directory.path().into(), limit);
            let mut expected = Vec::new();
            for (index, size) in sizes.iter().enumerate() {
                let bytes: Vec<u8> = (0..*size).map(|at| u8::try_from((at * 31 + index * 7 + at / 251) % 256).unwrap()).collect();
                capture.push(&bytes);
                expected.extend(bytes);
            }
            prop_assert_eq!(capture.total(), expected.len() as u64);
            let (bytes, skipped) = all(&capture);
            prop_assert_eq!(skipped, capture.dropped());
            prop_assert_eq!(bytes.len() as u64 + skipped, capture.total());
            if skipped == 0 {
                prop_assert!(bytes == expected);
            } else {
                prop_assert!(skipped <= capture.total() - limit.max(MEMORY as u64));
                prop_assert!(expected.starts_with(&bytes[..usize::try_from(capture.kept).unwrap()]));
                prop_assert!(expected.ends_with(&bytes[bytes.len() - MEMORY..]));
            }
            capture.with_view(|view| {
                assert!(expected.starts_with(view.head) && expected.ends_with(view.tail));
                assert_eq!(view.head.len() as u64 + view.gap + view.tail.len() as u64, capture.total());
            });
            prop_assert!(expected.ends_with(&capture.last(1000)));
            prop_assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the file has no name");
        }
    }

    #[test]
    fn the_last_lines_are_found() {
        let mut capture = Capture::new(std::env::temp_dir(), 1 << 20);
        let lines: Vec<String> = (0..30_000).map(|number| format!("line {number}\n")).collect();
        let text = lines.concat();
        capture.push(text.as_bytes());
        for lines in [1, 2, 100, 20_000, 40_000] {
            let offset = capture.offset_of_last_lines(lines, 1 << 20).unwrap();
            let rest = &text[usize::try_from(offset).unwrap()..];
            assert_eq!(rest.lines().count(), lines.min(30_000), "{lines}");
        }
        capture.push(b"no newline");
        let offset = capture.offset_of_last_lines(1, 1 << 20).unwrap();
        assert_eq!(capture.read(offset, 100).unwrap().bytes, b"no newline");
    }

    #[test]
    fn a_disk_that_takes_nothing_loses_the_middle_and_says_so() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut capture = Capture::new(file.path().into(), 1 << 20);
        capture.push(&vec![b'a'; MEMORY]);
        assert_eq!(capture.fault(), None);
        capture.push(&vec![b'b'; MEMORY]);
        capture.push(&vec![b'c'; MEMORY]);
        assert!(capture.fault().is_some());
        assert_eq!(capture.dropped(), MEMORY as u64);
        assert_eq!(capture.last(3), b"ccc");
    }
}
