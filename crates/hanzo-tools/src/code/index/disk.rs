//! The index on disk: one file per workspace, written whole and put in place by a rename.
//!
//! It is a cache. A file of another version, or one that is torn or changed, is not read, and the index is built again.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::language::Language;
use super::super::source::{Stamp, hash};
use super::super::symbol::SymbolKind;
use super::table::{Entry, FileRecord, NONE, Slot, Table};

/// Counts up with every change to the format, the languages, the kinds, or what extractors find.
const VERSION: u8 = 1;
const MAGIC: [u8; 8] = [b'H', b'Z', b'C', b'O', b'D', b'E', 0, VERSION];
/// A larger file is none of ours.
const MAX_FILE: u64 = 2 << 30;
const NO_LANGUAGE: u8 = u8::MAX;

/// Writes `table` to `path`.
pub(super) fn save(table: &Table, path: &Path) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let body = encode(table);
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}-{count}.tmp", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(&MAGIC)?;
        file.write_all(&hash(&body).to_le_bytes())?;
        file.write_all(&body)?;
        // No flush to the disk: after a crash of the machine the checksum tells, and the index is built again.
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Reads what [`save`] wrote; `None` when there is nothing that can be trusted.
pub(super) fn load(path: &Path) -> Option<Table> {
    let file = OpenOptions::new().read(true).open(path).ok()?;
    let size = file.metadata().ok().filter(|data| data.is_file() && data.len() <= MAX_FILE)?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
    file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    let rest = bytes.strip_prefix(&MAGIC)?;
    let (sum, body) = rest.split_first_chunk::<8>()?;
    (u64::from_le_bytes(*sum) == hash(body)).then(|| decode(body)).flatten()
}

/// Strings are numbered by their first use among what is alive, so that dead ones are left behind.
struct Renumbered {
    numbers: Vec<u32>,
    used: Vec<u32>,
}

impl Renumbered {
    fn new(count: usize) -> Self {
        Self { numbers: vec![NONE; count], used: Vec::new() }
    }

    fn number(&mut self, old: u32) -> u64 {
        let number = &mut self.numbers[old as usize];
        if *number == NONE {
            *number = u32::try_from(self.used.len()).unwrap_or(NONE);
            self.used.push(old);
        }
        u64::from(*number)
    }
}

fn encode(table: &Table) -> Vec<u8> {
    let mut names = Renumbered::new(table.names.len());
    let mut scopes = Renumbered::new(table.scopes.len());
    let mut files = Vec::new();
    let alive: Vec<&Slot> = table.slots.iter().filter(|slot| slot.alive).collect();
    put(&mut files, alive.len() as u64);
    for slot in alive {
        put_text(&mut files, &slot.path);
        let record = &slot.record;
        put(&mut files, record.stamp.size);
        files.extend_from_slice(&record.stamp.modified_ns.to_le_bytes());
        put(&mut files, record.stamp.inode);
        files.extend_from_slice(&record.hash.to_le_bytes());
        files.push(record.language.map_or(NO_LANGUAGE, |language| language as u8));
        files.push(u8::from(record.by_grammar) | u8::from(record.uncertain) << 1);
        put(&mut files, u64::from(slot.count));
        let mut last = 0;
        for entry in table.of_slot(slot) {
            put(&mut files, names.number(entry.name));
            put(&mut files, if entry.scope == NONE { 0 } else { scopes.number(entry.scope) + 1 });
            files.push(entry.kind as u8);
            // Symbols are in the order of their names' places.
            put(&mut files, u64::from(entry.at.wrapping_sub(last)));
            put(&mut files, u64::from(entry.at.wrapping_sub(entry.start)));
            put(&mut files, u64::from(entry.end.wrapping_sub(entry.start)));
            last = entry.at;
        }
    }
    let mut body = Vec::with_capacity(files.len() + table.names.bytes.len() + table.scopes.bytes.len());
    for (numbered, texts) in [(&names, &table.names), (&scopes, &table.scopes)] {
        put(&mut body, numbered.used.len() as u64);
        for old in &numbered.used {
            put_text(&mut body, texts.text(*old));
        }
    }
    body.extend_from_slice(&files);
    body
}

fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7F).unwrap_or(0) | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap_or(0));
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        self.number().and_then(|value| u32::try_from(value).ok())
    }

    /// A count of things of which each takes at least `least` bytes, so that a wrong one reserves no memory.
    fn count(&mut self, least: usize) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len() / least).then_some(count)
    }

    fn word(&mut self) -> Option<[u8; 8]> {
        let (first, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(*first)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.count(1)?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

fn decode(body: &[u8]) -> Option<Table> {
    let mut reader = Reader(body);
    let mut table = Table::default();
    for texts in [&mut table.names, &mut table.scopes] {
        for expected in 0..reader.count(1)? {
            // A text that was there already would shift all numbers behind it.
            if texts.number(reader.text()?) as usize != expected {
                return None;
            }
        }
    }
    table.heads = vec![NONE; table.names.len()];
    for slot in 0..reader.count(20)? {
        let path: Arc<str> = reader.text()?.into();
        let size = reader.number()?;
        let modified_ns = i64::from_le_bytes(reader.word()?);
        let stamp = Stamp { size, modified_ns, inode: reader.number()? };
        let content = u64::from_le_bytes(reader.word()?);
        let language = match reader.byte()? {
            NO_LANGUAGE => None,
            number => Some(Language::from_number(number)?),
        };
        let flags = reader.byte()?;
        let record = FileRecord {
            stamp,
            hash: content,
            language,
            by_grammar: flags & 1 != 0,
            uncertain: flags & 2 != 0,
        };
        let count = reader.count(6)?;
        let first = u32::try_from(table.entries.len()).ok()?;
        let file = u32::try_from(slot).ok()?;
        let mut last = 0_u32;
        for _ in 0..count {
            let name = reader.small()?;
            let scope = reader.small()?;
            let kind = SymbolKind::from_number(reader.byte()?)?;
            let at = last.wrapping_add(reader.small()?);
            let start = at.wrapping_sub(reader.small()?);
            let end = start.wrapping_add(reader.small()?);
            last = at;
            if scope as usize > table.scopes.len() {
                return None;
            }
            let number = u32::try_from(table.entries.len()).ok()?;
            let next = std::mem::replace(table.heads.get_mut(name as usize)?, number);
            let scope = scope.checked_sub(1).unwrap_or(NONE);
            table.entries.push(Entry { name, scope, start, end, at, next, file, kind });
        }
        let count = u32::try_from(count).ok()?;
        table.slots.push(Slot { path: Arc::clone(&path), record, first, count, alive: true });
        if table.paths.insert(path, file).is_some() {
            return None;
        }
    }
    reader.0.is_empty().then_some(table)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::code::symbol::FileSymbols;

    fn table() -> Table {
        let mut table = Table::default();
        for (path, modified_ns, language) in
            [("a.rs", 5, Some(Language::Rust)), ("dir/ü.x", -7, None), ("a.rs", 9, Some(Language::Rust))]
        {
            let mut symbols = FileSymbols::default();
            let outer = symbols.keep(b"Outer");
            let name = symbols.keep(path.as_bytes());
            symbols.push(SymbolKind::Class, outer, super::super::super::symbol::Piece::default(), 3..90, 9);
            symbols.push(SymbolKind::Method, name, outer, 10..20, 15);
            let record = FileRecord {
                stamp: Stamp { size: 100, modified_ns, inode: 1 << 40 },
                hash: u64::MAX,
                language,
                by_grammar: true,
                uncertain: language.is_none(),
            };
            table.insert(path, record, &symbols);
        }
        table
    }

    fn shown(table: &Table) -> Vec<String> {
        let mut lines: Vec<String> = table
            .paths()
            .flat_map(|(path, record)| {
                table.file(path).into_iter().map(move |hit| format!("{path} {record:?} {:?}", hit.symbol))
            })
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn what_is_written_is_read_again_without_what_is_dead() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/index");
        let table = table();
        save(&table, &path).unwrap();
        let read = load(&path).unwrap();
        assert_eq!(shown(&read), shown(&table));
        assert_eq!(read.symbol_count(), 4);
        assert_eq!(read.entries_len(), 4);
        assert_eq!(read.named("Outer").len(), 2);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_torn_or_changed_file_or_another_version_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("index");
        save(&table(), &path).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(load(&path).is_none(), "cut to {cut}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            fs::write(&path, &changed).unwrap();
            assert!(load(&path).is_none(), "changed at {at}");
        }
        assert!(load(directory.path()).is_none());
    }

    proptest! {
        /// Even with a checksum that fits, no body makes trouble.
        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&body);
        }

        #[test]
        fn no_changed_body_panics(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut body = encode(&table());
            let at = at.index(body.len());
            body[at] = byte;
            if let Some(table) = decode(&body) {
                let _ = shown(&table);
                let _ = encode(&table);
            }
        }
    }
}
