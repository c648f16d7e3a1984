//! The index in memory: every symbol of the tree, found by its name.
//!
//! Symbols lie in one list, those of a file next to each other, and those of one name are chained through it. Names are kept
//! once, in lower case as well, and most of them in the order an answer shows them (`order`). A file that changes gets a new
//! stretch at the end; the old one is dead and is swept out when there is too much of it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::super::language::Language;
use super::super::source::{Stamp, hash};
use super::super::symbol::{FileSymbols, SymbolKind, SymbolView};
use super::order::Order;

pub(super) const NONE: u32 = u32::MAX;

/// What is known of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileRecord {
    pub(crate) stamp: Stamp,
    /// Of the content.
    pub(crate) hash: u64,
    pub(crate) language: Option<Language>,
    /// Who found the symbols.
    pub(crate) by_grammar: bool,
    /// The file was changed so shortly before it was read that its time does not tell whether it changed again.
    pub(crate) uncertain: bool,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) path: Arc<str>,
    pub(super) record: FileRecord,
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) alive: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(super) name: u32,
    pub(super) scope: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) at: u32,
    /// The next of the same name.
    pub(super) next: u32,
    pub(super) file: u32,
    pub(crate) kind: SymbolKind,
}

/// A string table: each text once.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) bytes: Vec<u8>,
    /// In ASCII lower case, every text with a zero byte before and behind; the same offsets as `bytes`.
    pub(super) lower: Vec<u8>,
    pub(super) starts: Vec<u32>,
    /// By the hash of the text; few collide, and those are chained.
    pub(super) numbers: HashMap<u64, u32, BuildHasherDefault<Identity>>,
    pub(super) clash: HashMap<Box<str>, u32>,
}

/// Whether a word begins with `first`: behind `_`, or with a capital letter.
pub(super) fn begins_word(before: u8, first: u8) -> bool {
    !before.is_ascii_alphanumeric() || (first.is_ascii_uppercase() && !before.is_ascii_uppercase())
}

/// Keys are hashes already.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(bytes);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

impl Texts {
    pub(super) fn number(&mut self, text: &str) -> u32 {
        let key = hash(text.as_bytes());
        match self.numbers.get(&key) {
            Some(number) if self.text(*number) == text => return *number,
            Some(_) => {
                if let Some(number) = self.clash.get(text) {
                    return *number;
                }
                let number = self.append(text);
                self.clash.insert(text.into(), number);
                return number;
            }
            None => {}
        }
        let number = self.append(text);
        self.numbers.insert(key, number);
        number
    }

    pub(super) fn append(&mut self, text: &str) -> u32 {
        if self.bytes.is_empty() {
            self.bytes.push(0);
            self.lower.push(0);
        }
        let number = u32::try_from(self.starts.len()).unwrap_or(NONE);
        self.starts.push(u32::try_from(self.bytes.len()).unwrap_or(NONE));
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        self.lower.extend(text.bytes().map(|byte| byte.to_ascii_lowercase()));
        self.lower.push(0);
        number
    }

    fn span(&self, number: u32) -> (usize, usize) {
        let at = number as usize;
        let start = self.starts[at] as usize;
        let end = self.starts.get(at + 1).map_or(self.bytes.len(), |next| *next as usize);
        (start, end - 1)
    }

    pub(super) fn text(&self, number: u32) -> &str {
        std::str::from_utf8(self.bytes_of(number)).unwrap_or_default()
    }

    pub(super) fn bytes_of(&self, number: u32) -> &[u8] {
        let (start, end) = self.span(number);
        &self.bytes[start..end]
    }

    /// The text in lower case.
    pub(super) fn lower_of(&self, number: u32) -> &[u8] {
        let (start, end) = self.span(number);
        &self.lower[start..end]
    }

    /// Whether a word begins at an offset of a text.
    pub(super) fn begins_word(&self, number: u32, at: usize) -> bool {
        let place = self.starts[number as usize] as usize + at;
        begins_word(self.bytes[place - 1], self.bytes[place])
    }

    /// The number of a text that is there.
    pub(super) fn find(&self, text: &str) -> Option<u32> {
        match self.numbers.get(&hash(text.as_bytes())) {
            Some(number) if self.text(*number) == text => Some(*number),
            _ => self.clash.get(text).copied(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }
}

/// The index in memory.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(super) slots: Vec<Slot>,
    pub(super) paths: HashMap<Arc<str>, u32>,
    pub(super) entries: Vec<Entry>,
    pub(super) dead: usize,
    pub(super) names: Texts,
    pub(super) heads: Vec<u32>,
    pub(super) scopes: Texts,
    pub(super) order: Order,
    /// How often what is dead was swept out, and names got other numbers.
    sweeps: u64,
}

/// An order of a table's names.
#[derive(Debug)]
pub(crate) struct Ordered {
    order: Order,
    sweeps: u64,
}

/// A symbol of the index with the file it is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit<'a> {
    pub(crate) path: &'a str,
    pub(crate) language: Option<Language>,
    pub(crate) by_grammar: bool,
    /// The hash of the content it was found in.
    pub(crate) content: u64,
    pub(crate) symbol: SymbolView<'a>,
    /// Which of those with the same kind, name and scope in the file, from 1.
    pub(crate) ordinal: u32,
}

impl Table {
    /// Files in it.
    pub(crate) fn file_count(&self) -> usize {
        self.paths.len()
    }

    /// Symbols in it.
    pub(crate) fn symbol_count(&self) -> usize {
        self.entries.len() - self.dead
    }

    pub(crate) fn record(&self, path: &str) -> Option<&FileRecord> {
        self.paths.get(path).map(|slot| &self.slots[*slot as usize].record)
    }

    pub(crate) fn set_record(&mut self, path: &str, record: FileRecord) {
        if let Some(slot) = self.paths.get(path) {
            self.slots[*slot as usize].record = record;
        }
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = (&Arc<str>, &FileRecord)> {
        self.paths.iter().map(|(path, slot)| (path, &self.slots[*slot as usize].record))
    }

    /// Puts a file's symbols in, instead of those it had.
    pub(crate) fn insert(&mut self, path: &str, record: FileRecord, symbols: &FileSymbols) {
        self.retire(path);
        let slot = u32::try_from(self.slots.len()).unwrap_or(NONE);
        let path: Arc<str> = path.into();
        let first = u32::try_from(self.entries.len()).unwrap_or(NONE);
        for symbol in symbols.iter() {
            let name = self.names.number(symbol.name);
            let scope = if symbol.scope.is_empty() { NONE } else { self.scopes.number(symbol.scope) };
            self.heads.resize(self.names.len(), NONE);
            let next = std::mem::replace(
                &mut self.heads[name as usize],
                u32::try_from(self.entries.len()).unwrap_or(NONE),
            );
            self.entries.push(Entry {
                name,
                scope,
                start: symbol.start,
                end: symbol.end,
                at: symbol.at,
                next,
                file: slot,
                kind: symbol.kind,
            });
        }
        let count = u32::try_from(symbols.len()).unwrap_or(NONE);
        self.slots.push(Slot { path: Arc::clone(&path), record, first, count, alive: true });
        self.paths.insert(path, slot);
        if self.dead > 20_000 && self.dead > self.entries.len() / 3 {
            self.sweep();
        }
    }

    /// Takes a file out.
    pub(crate) fn remove(&mut self, path: &str) -> bool {
        self.retire(path)
    }

    fn retire(&mut self, path: &str) -> bool {
        let Some(slot) = self.paths.remove(path) else { return false };
        let slot = &mut self.slots[slot as usize];
        slot.alive = false;
        self.dead += slot.count as usize;
        true
    }

    /// Leaves out what is dead.
    fn sweep(&mut self) {
        let old = std::mem::take(self);
        self.sweeps = old.sweeps + 1;
        for slot in old.slots.iter().filter(|slot| slot.alive) {
            let symbols = old.collect(slot);
            self.insert(&slot.path, slot.record.clone(), &symbols);
        }
    }

    fn collect(&self, slot: &Slot) -> FileSymbols {
        let mut symbols = FileSymbols::default();
        for entry in self.of_slot(slot) {
            let name = symbols.keep(self.names.text(entry.name).as_bytes());
            let scope = match entry.scope {
                NONE => super::super::symbol::Piece::default(),
                scope => symbols.keep_scope(self.scopes.text(scope)),
            };
            symbols.push(
                entry.kind,
                name,
                scope,
                entry.start as usize..entry.end as usize,
                entry.at as usize,
            );
        }
        symbols
    }

    pub(super) fn of_slot(&self, slot: &Slot) -> &[Entry] {
        &self.entries[slot.first as usize..(slot.first + slot.count) as usize]
    }

    fn hit(&self, number: u32) -> Option<Hit<'_>> {
        let entry = &self.entries[number as usize];
        let slot = &self.slots[entry.file as usize];
        if !slot.alive {
            return None;
        }
        let same = |other: &&Entry| {
            other.name == entry.name
                && other.scope == entry.scope
                && other.kind == entry.kind
                && other.at < entry.at
        };
        let before = self.of_slot(slot).iter().filter(same).count();
        Some(self.hit_as(slot, entry, u32::try_from(before + 1).unwrap_or(u32::MAX)))
    }

    fn hit_as<'a>(&'a self, slot: &'a Slot, entry: &'a Entry, ordinal: u32) -> Hit<'a> {
        Hit {
            path: &slot.path,
            language: slot.record.language,
            by_grammar: slot.record.by_grammar,
            content: slot.record.hash,
            symbol: self.view(entry),
            ordinal,
        }
    }

    fn view(&self, entry: &Entry) -> SymbolView<'_> {
        SymbolView {
            name: self.names.text(entry.name),
            scope: self.scope_text(entry),
            kind: entry.kind,
            start: entry.start,
            end: entry.end,
            at: entry.at,
        }
    }

    /// The symbols of a file, in its order.
    pub(crate) fn file(&self, path: &str) -> Vec<Hit<'_>> {
        let Some(slot) = self.paths.get(path) else { return Vec::new() };
        let slot = &self.slots[*slot as usize];
        let mut seen: HashMap<(u32, u32, SymbolKind), u32> = HashMap::new();
        let entries = self.of_slot(slot).iter();
        entries
            .map(|entry| {
                let ordinal = seen.entry((entry.name, entry.scope, entry.kind)).or_default();
                *ordinal += 1;
                self.hit_as(slot, entry, *ordinal)
            })
            .collect()
    }

    /// The symbols called exactly `name`.
    pub(crate) fn named(&self, name: &str) -> Vec<Hit<'_>> {
        let number = self.names.find(name);
        number
            .map_or_else(Vec::new, |number| self.chain(number).filter_map(|entry| self.hit(entry)).collect())
    }

    pub(super) fn chain(&self, name: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.heads[name as usize];
        std::iter::successors((first != NONE).then_some(first), |number| {
            let next = self.entries[*number as usize].next;
            (next != NONE).then_some(next)
        })
    }

    pub(super) fn entry_hit(&self, number: u32) -> Option<Hit<'_>> {
        self.hit(number)
    }

    /// A symbol of the chain, if its file still has it, without counting its ordinal.
    pub(super) fn quick(&self, number: u32) -> Option<(&Entry, &str)> {
        let entry = &self.entries[number as usize];
        let slot = &self.slots[entry.file as usize];
        slot.alive.then_some((entry, &*slot.path))
    }

    pub(super) fn scope_text(&self, entry: &Entry) -> &str {
        if entry.scope == NONE { "" } else { self.scopes.text(entry.scope) }
    }

    /// Whether the names ought to be put in order again.
    pub(crate) fn is_behind(&self) -> bool {
        self.order.is_behind(&self.names)
    }

    /// All names in order, for `set_order`: what takes long of it needs no more than to read the table.
    pub(crate) fn ordered(&self) -> Ordered {
        Ordered { order: Order::of(&self.names), sweeps: self.sweeps }
    }

    /// Takes an order, unless the names were numbered anew since.
    pub(crate) fn set_order(&mut self, ordered: Ordered) {
        if ordered.sweeps == self.sweeps && ordered.order.len() >= self.order.len() {
            self.order = ordered.order;
        }
    }
}

#[cfg(test)]
impl Table {
    pub(super) fn entries_len(&self) -> usize {
        self.entries.len()
    }
}
