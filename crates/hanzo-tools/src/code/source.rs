//! A source file in memory: read through the path layer, told from binary data, with places in it as callers count them.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::{Position, Range};
use hanzo_sandbox::paths::{OpenDir, Workspace};

use super::language::Language;
use crate::contract::place;

/// A larger file is data, whatever its name says. The largest source in common use (SQLite in one file) has 9 MB.
pub(crate) const MAX_SOURCE: u64 = 16 << 20;
/// A snippet is cut to this many bytes.
const MAX_SNIPPET: usize = 240;

/// What tells whether a file is still the one that was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    pub(crate) modified_ns: i64,
    pub(crate) inode: u64,
}

impl Stamp {
    pub(crate) fn new(size: u64, modified_ns: i128, inode: u64) -> Self {
        Self { size, modified_ns: i64::try_from(modified_ns).unwrap_or(i64::MAX), inode }
    }

    fn of(file: &File) -> std::io::Result<Self> {
        let data = file.metadata()?;
        let modified = i128::from(data.mtime()) * 1_000_000_000 + i128::from(data.mtime_nsec());
        Ok(Self::new(data.size(), modified, data.ino()))
    }
}

/// Why a file is not looked at as source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotSource {
    Binary,
    TooLarge,
    Unreadable,
}

/// The text of a file. Places in it are byte offsets; [`Source::range`] makes of them what callers count.
#[derive(Debug)]
pub struct Source {
    pub(crate) language: Option<Language>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) stamp: Stamp,
    /// Of the content as it is on disk.
    pub(crate) hash: u64,
    /// Where its lines end, once somebody asks for a place.
    breaks: OnceLock<Vec<usize>>,
}

impl Source {
    /// Reads the file at `path`, where it really is.
    pub(crate) fn open(workspace: &Workspace, path: &Path) -> Result<(PathBuf, Self), ToolError> {
        let found = workspace.stat(path).map_err(|error| place::failure(&error))?;
        let file = workspace.open_read(path).map_err(|error| place::failure(&error))?;
        let source = Self::read(&file, Language::of_path(&found.location)).map_err(|why| {
            let shown = path.display();
            let (code, what) = match why {
                NotSource::Binary => (ErrorCode::Unsupported, "holds binary data, not source text"),
                NotSource::TooLarge => {
                    (ErrorCode::Unsupported, "is larger than 16 MB; use `fs` to read or search it")
                }
                NotSource::Unreadable => (ErrorCode::Io, "could not be read to its end; try again"),
            };
            ToolError::new(code, format!("`{shown}` {what}"))
        })?;
        Ok((found.location, source))
    }

    /// Reads a file listed in `dir`.
    pub(crate) fn open_in(
        workspace: &Workspace,
        dir: &OpenDir,
        name: &std::ffi::OsStr,
        language: Option<Language>,
    ) -> Result<Self, NotSource> {
        let file = workspace.open_read_in(dir, name).map_err(|_| NotSource::Unreadable)?;
        Self::read(&file, language)
    }

    pub(crate) fn read(file: &File, language: Option<Language>) -> Result<Self, NotSource> {
        let stamp = Stamp::of(file).map_err(|_| NotSource::Unreadable)?;
        if stamp.size > MAX_SOURCE {
            return Err(NotSource::TooLarge);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(stamp.size).unwrap_or(0) + 1);
        // A file may grow while it is read.
        file.take(MAX_SOURCE + 1).read_to_end(&mut bytes).map_err(|_| NotSource::Unreadable)?;
        if bytes.len() as u64 > MAX_SOURCE {
            return Err(NotSource::TooLarge);
        }
        let hash = hash(&bytes);
        let bytes = as_utf8(bytes).ok_or(NotSource::Binary)?;
        let language = refined(language, &bytes);
        Ok(Self { language, bytes, stamp, hash, breaks: OnceLock::new() })
    }

    #[cfg(test)]
    pub(crate) fn from_text(text: &str, language: Language) -> Self {
        let bytes = text.as_bytes().to_vec();
        Self {
            language: Some(language),
            hash: hash(&bytes),
            bytes,
            stamp: Stamp::default(),
            breaks: OnceLock::new(),
        }
    }

    /// A stretch of bytes as callers count it.
    pub(crate) fn range(&self, start: usize, end: usize) -> Range {
        Range { start: self.position(start), end: self.position(end) }
    }

    pub(crate) fn position(&self, at: usize) -> Position {
        let at = at.min(self.bytes.len());
        let breaks = self.breaks.get_or_init(|| memchr::memchr_iter(b'\n', &self.bytes).collect());
        let line = breaks.partition_point(|line_break| *line_break < at);
        let line_start = line.checked_sub(1).map_or(0, |before| breaks[before] + 1);
        Position { line: number(line), col: number(characters(&self.bytes[line_start..at])) }
    }

    /// The byte offset of a place; a column past the end of its line is the line's end.
    pub(crate) fn offset(&self, position: Position) -> Option<usize> {
        let mut start = 0;
        for _ in 0..position.line {
            start += memchr::memchr(b'\n', &self.bytes[start..])? + 1;
        }
        let line = &self.bytes[start..];
        let line = &line[..memchr::memchr(b'\n', line).unwrap_or(line.len())];
        let mut left = position.col;
        let mut at = 0;
        while left > 0 && at < line.len() {
            at += 1;
            while at < line.len() && line[at] & 0xC0 == 0x80 {
                at += 1;
            }
            left -= 1;
        }
        Some(start + at)
    }

    /// The line that `at` is in, for showing.
    pub(crate) fn snippet(&self, at: usize) -> String {
        let at = at.min(self.bytes.len());
        let start = memchr::memrchr(b'\n', &self.bytes[..at]).map_or(0, |found| found + 1);
        let rest = &self.bytes[start..];
        let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
        let column = at - start;
        if line.len() <= MAX_SNIPPET {
            return String::from_utf8_lossy(line).trim().to_owned();
        }
        let from = column.saturating_sub(MAX_SNIPPET / 4).min(line.len() - MAX_SNIPPET);
        let part = String::from_utf8_lossy(&line[from..from + MAX_SNIPPET]);
        let head = if from > 0 { "…" } else { "" };
        let tail = if from + MAX_SNIPPET < line.len() { "…" } else { "" };
        format!("{head}{}{tail}", part.trim_matches('\u{FFFD}').trim())
    }

    /// The text between two offsets.
    pub(crate) fn text(&self, start: usize, end: usize) -> &[u8] {
        let end = end.min(self.bytes.len());
        &self.bytes[start.min(end)..end]
    }
}

/// Source text is UTF-8 or nearly so; UTF-16 is turned into it, and whatever has a zero byte is binary.
fn as_utf8(bytes: Vec<u8>) -> Option<Vec<u8>> {
    if let Some((encoding, length)) = encoding_rs::Encoding::for_bom(&bytes) {
        if encoding == encoding_rs::UTF_8 {
            return Some(bytes[length..].to_vec()).filter(|bytes| memchr::memchr(0, bytes).is_none());
        }
        let (text, _) = encoding.decode_without_bom_handling(&bytes[length..]);
        return Some(text.into_owned().into_bytes());
    }
    memchr::memchr(0, &bytes).is_none().then_some(bytes)
}

/// What the content says about the language that the name does not.
pub(crate) fn refined(language: Option<Language>, bytes: &[u8]) -> Option<Language> {
    match language {
        // A header may be either's.
        Some(Language::C) if looks_like_cpp(bytes) => Some(Language::Cpp),
        None => Language::of_first_line(bytes),
        known => known,
    }
}

/// Whether C is rather C++: it begins lines as only that does.
fn looks_like_cpp(bytes: &[u8]) -> bool {
    let marks = ["\nnamespace ", "\ntemplate", "\nclass ", "\n public:", "\npublic:", "\nusing ", "std::"];
    marks.iter().any(|mark| memchr::memmem::find(bytes, mark.as_bytes()).is_some())
        || memchr::memmem::find_iter(bytes, "::").take(100).any(|at| is_path(&bytes[..at], &bytes[at + 2..]))
}

/// Whether `::` between two texts is part of a name in code, and not in a comment.
fn is_path(before: &[u8], behind: &[u8]) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    let line = &before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..];
    let is_code = |mark: &str| memchr::memmem::find(line, mark.as_bytes()).is_none();
    is_letter(behind.first())
        && (before.ends_with(b">") || is_letter(before.last()))
        && !line.trim_ascii_start().starts_with(b"*")
        && ["//", "/*", "\""].iter().all(|mark| is_code(mark))
}

/// Characters as a decoder would count them: every byte that does not go on with one.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// A hash of content: quick, stable across builds, and not a defence against somebody who looks for collisions, which would
/// show them their own stale symbols.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    const FIRST: u64 = 0x9E37_79B9_7F4A_7C15;
    const SECOND: u64 = 0xD6E8_FEB8_6659_FD93;
    let fold = |state: u64, word: u64| {
        let product = u128::from(state ^ word ^ FIRST) * u128::from(SECOND ^ word.rotate_left(32));
        #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
        let folded = (product as u64) ^ ((product >> 64) as u64);
        folded
    };
    let mut state = fold(FIRST, bytes.len() as u64);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        state = fold(state.rotate_left(5), u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    fold(state, u64::from_le_bytes(last))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_count_characters_and_come_back_as_bytes() {
        let source = Source::from_text("äb\n\tç = 1\r\nend", Language::Rust);
        let at = source.bytes.iter().position(|byte| *byte == b'=').unwrap();
        assert_eq!(source.position(at), Position { line: 1, col: 3 });
        assert_eq!(source.offset(Position { line: 1, col: 3 }), Some(at));
        assert_eq!(source.offset(Position { line: 9, col: 0 }), None);
        assert_eq!(source.offset(Position { line: 0, col: 99 }), Some(3));
        assert_eq!(source.snippet(at), "ç = 1");
    }

    #[test]
    fn utf_16_is_read_and_binary_is_not() {
        let wide: Vec<u8> =
            [0xFF, 0xFE].into_iter().chain("fn x() {}".bytes().flat_map(|byte| [byte, 0])).collect();
        assert_eq!(as_utf8(wide).as_deref(), Some(b"fn x() {}".as_slice()));
        assert_eq!(as_utf8(b"\x7FELF\0\0".to_vec()), None);
        assert_eq!(as_utf8(b"caf\xE9".to_vec()).as_deref(), Some(b"caf\xE9".as_slice()));
    }

    proptest! {
        #[test]
        fn offsets_and_positions_agree(text in "[a-zäß\n ]{0,80}", pick in any::<prop::sample::Index>()) {
            let source = Source::from_text(&text, Language::C);
            let at = pick.index(text.len() + 1);
            prop_assume!(text.is_char_boundary(at));
            prop_assert_eq!(source.offset(source.position(at)), Some(at));
        }

        #[test]
        fn one_changed_byte_changes_the_hash(mut bytes in proptest::collection::vec(any::<u8>(), 1..64), pick in any::<prop::sample::Index>()) {
            let before = hash(&bytes);
            let at = pick.index(bytes.len());
            bytes[at] ^= 1;
            prop_assert_ne!(before, hash(&bytes));
        }
    }
}
