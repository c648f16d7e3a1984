//! Finding symbols by a part of their name, the likeliest first.

use super::super::symbol::SymbolKind;
use super::table::{Hit, Letters, Table};

/// What is looked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct SymbolQuery {
    /// A name or a part of one; `Outer.name` and `Outer::name` say what it is in.
    pub(crate) text: String,
    pub(crate) kind: Option<SymbolKind>,
    /// Only files under this path, relative to the workspace; empty for all.
    pub(crate) under: String,
}

/// How well a name fits; less is better.
const EXACT: u32 = 0;
const EXACT_BUT_CASE: u32 = 1;
const PREFIX: u32 = 2;
const WORD: u32 = 3;
const INSIDE: u32 = 4;
const LETTERS: u32 = 5;
/// With fewer letters than this, most names fit.
const FEW: usize = 3;

impl Table {
    /// The symbols that fit, the best first: `limit` of them behind the first `skip`, and whether there are more.
    pub(crate) fn search(&self, query: &SymbolQuery, skip: usize, limit: usize) -> (Vec<Hit<'_>>, bool) {
        let (scope, name) = split(&query.text);
        let needle: Vec<u8> = name.bytes().map(|byte| byte.to_ascii_lowercase()).collect();
        if needle.is_empty() {
            return (Vec::new(), false);
        }
        let wanted = skip + limit + 1;
        let best = self.fitting(&needle, name, wanted);
        let is_cut = best.is_cut;
        let (mut found, mut more) = self.expand(best.names, query, &scope, skip, limit);
        if is_cut && !more {
            // Too few of the best names are of the kind or in the place wanted: look at all.
            let all = self.fitting(&needle, name, usize::MAX);
            (found, more) = self.expand(all.names, query, &scope, skip, limit);
        }
        if !found.is_empty() {
            return (found, more);
        }
        let mut names = Vec::new();
        self.by_letters(&needle, &mut names);
        self.expand(names, query, &scope, skip, limit)
    }

    fn fitting(&self, needle: &[u8], name: &str, wanted: usize) -> Best {
        let mut best = Best::new(wanted);
        if needle.len() < FEW {
            self.with_few_letters(needle, name, &mut best);
        } else {
            self.names_with(needle, |number, at, whole| {
                let fit = self.fit(number, at, needle, name);
                best.push((fit, length(whole), number));
            });
        }
        best
    }

    /// How well a name fits that has `needle` at an offset.
    fn fit(&self, number: u32, at: usize, needle: &[u8], name: &str) -> u32 {
        match at {
            0 if self.lower(number).len() > needle.len() => PREFIX,
            0 if self.name_text(number) == name => EXACT,
            0 => EXACT_BUT_CASE,
            _ if self.begins_word(number, at) => WORD,
            _ => INSIDE,
        }
    }

    /// One or two letters are in most names. Those that cannot be among the best any more are told by their letters.
    fn with_few_letters(&self, needle: &[u8], name: &str, best: &mut Best) {
        let wanted = needle.iter().fold(0, |bits, byte| bits | Letters::bit(*byte));
        let first = Letters::bit(needle[0]);
        for (number, letters) in self.letters().filter(|(_, letters)| letters.any & wanted == wanted) {
            let lower = self.lower(number);
            let whole = length(lower.len());
            let hope = match letters.initial & first {
                0 => INSIDE,
                _ if lower.starts_with(needle) => EXACT,
                _ => WORD,
            };
            if best.is_beyond(hope, whole) {
                continue;
            }
            let places = memchr::memmem::find_iter(lower, needle);
            if let Some(fit) = places.map(|at| self.fit(number, at, needle, name)).min() {
                best.push((fit, whole, number));
            }
        }
    }

    /// `gtUsr` finds `getUser`: all letters, in order.
    fn by_letters(&self, needle: &[u8], names: &mut Vec<(u32, u32, u32)>) {
        if needle.len() < FEW {
            return;
        }
        let wanted = needle.iter().fold(0, |bits, byte| bits | Letters::bit(*byte));
        for (number, _) in self.letters().filter(|(_, letters)| letters.any & wanted == wanted) {
            let lower = self.lower(number);
            // A few letters are found in any long name.
            if lower.len() > needle.len() * 4 || lower.first() != needle.first() {
                continue;
            }
            let mut rest = needle;
            for byte in lower {
                if rest.first() == Some(byte) {
                    rest = &rest[1..];
                }
            }
            if rest.is_empty() {
                names.push((LETTERS, length(lower.len()), number));
            }
        }
    }

    /// From names to symbols: only as many names are put in order as the page needs.
    fn expand(
        &self,
        mut names: Vec<(u32, u32, u32)>,
        query: &SymbolQuery,
        scope: &str,
        skip: usize,
        limit: usize,
    ) -> (Vec<Hit<'_>>, bool) {
        let wanted = skip + limit + 1;
        let mut found: Vec<u32> = Vec::new();
        let mut ordered = 0;
        let mut step = wanted.saturating_mul(2);
        while ordered < names.len() && found.len() < wanted {
            let chunk = step.min(names.len() - ordered);
            // Where few names are of the kind wanted, small steps would go over the rest too often.
            step = step.saturating_mul(8);
            let rest = &mut names[ordered..];
            let order = |a: &(u32, u32, u32), b: &(u32, u32, u32)| {
                (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| self.name_text(a.2).cmp(self.name_text(b.2)))
            };
            if chunk < rest.len() {
                rest.select_nth_unstable_by(chunk - 1, order);
            }
            rest[..chunk].sort_unstable_by(order);
            for (_, _, name) in &rest[..chunk] {
                if found.len() >= wanted {
                    break;
                }
                let mut symbols: Vec<(SymbolKind, &str, u32)> = self
                    .chain(*name)
                    .filter_map(|number| {
                        self.quick(number).map(|(path, kind, within)| (number, path, kind, within))
                    })
                    .filter(|(_, path, kind, within)| {
                        query.kind.is_none_or(|wanted| kind.satisfies(wanted))
                            && is_under(path, &query.under)
                            && is_within(within, scope)
                    })
                    .map(|(number, path, kind, _)| (kind, path, number))
                    .collect();
                symbols.sort_unstable();
                found.extend(symbols.into_iter().map(|(_, _, number)| number));
            }
            ordered += chunk;
        }
        let more = found.len() > skip + limit;
        let hits =
            found.into_iter().skip(skip).take(limit).filter_map(|number| self.entry_hit(number)).collect();
        (hits, more)
    }
}

/// The best names so far. When there are far more than a page needs, the worst are let go of.
struct Best {
    names: Vec<(u32, u32, u32)>,
    wanted: usize,
    /// Names that fit no better than this are not taken.
    worst: Option<(u32, u32)>,
    is_cut: bool,
    cut_at: usize,
}

impl Best {
    fn new(wanted: usize) -> Self {
        let cut_at = wanted.saturating_mul(8).saturating_add(1024);
        Self { names: Vec::new(), wanted, worst: None, is_cut: false, cut_at }
    }

    /// Whether a name that fits so well at best is not taken any more.
    fn is_beyond(&mut self, fit: u32, whole: u32) -> bool {
        let is_beyond = self.worst.is_some_and(|worst| (fit, whole) > worst);
        self.is_cut |= is_beyond;
        is_beyond
    }

    fn push(&mut self, name: (u32, u32, u32)) {
        if self.is_beyond(name.0, name.1) {
            return;
        }
        self.names.push(name);
        if self.names.len() > self.cut_at {
            let keep = self.wanted.saturating_mul(2);
            self.names.select_nth_unstable_by_key(keep, |name| (name.0, name.1));
            let worst = (self.names[keep].0, self.names[keep].1);
            // Those as good as the last one stay: their names decide, and that costs more to look at.
            self.names.retain(|name| (name.0, name.1) <= worst);
            self.worst = Some(worst);
            self.is_cut = true;
            self.cut_at = self.cut_at.max(self.names.len() * 2);
        }
    }
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// `Outer::Inner.name` is `name` in `Outer.Inner`.
pub(crate) fn split(text: &str) -> (String, &str) {
    let text = text.trim().trim_end_matches("()");
    let cut = ["::", ".", "->"].iter().filter_map(|mark| text.rfind(mark).map(|at| (at, mark.len()))).max();
    match cut {
        Some((at, length)) if at + length < text.len() && at > 0 => {
            let scope = text[..at].replace("::", ".").replace("->", ".");
            (scope, &text[at + length..])
        }
        _ => (String::new(), text.trim_start_matches(['.', ':'])),
    }
}

/// Whether `scope` ends with `wanted`, in whole names.
pub(crate) fn is_within(scope: &str, wanted: &str) -> bool {
    if wanted.is_empty() {
        return true;
    }
    // The trait of an implementation is not part of how callers write it.
    let plain: Vec<&str> = scope.split('.').map(|name| name.split(':').next().unwrap_or(name)).collect();
    let wanted: Vec<&str> = wanted.split('.').map(|name| name.split(':').next().unwrap_or(name)).collect();
    plain.len() >= wanted.len()
        && plain[plain.len() - wanted.len()..]
            .iter()
            .zip(&wanted)
            .all(|(have, want)| have.eq_ignore_ascii_case(want))
}

/// Whether `path` is `under` or in it.
pub(crate) fn is_under(path: &str, under: &str) -> bool {
    under.is_empty()
        || path
            .strip_prefix(under)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || under.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::index::table::FileRecord;
    use crate::code::source::Stamp;
    use crate::code::symbol::{FileSymbols, Piece};

    fn record() -> FileRecord {
        FileRecord { stamp: Stamp::default(), hash: 0, language: None, by_grammar: true, uncertain: false }
    }

    fn file(names: &[(&str, &str, SymbolKind)]) -> FileSymbols {
        let mut symbols = FileSymbols::default();
        for (at, (scope, name, kind)) in names.iter().enumerate() {
            let name = symbols.keep(name.as_bytes());
            let scope = if scope.is_empty() { Piece::default() } else { symbols.keep_scope(scope) };
            symbols.push(*kind, name, scope, at..at + 1, at);
        }
        symbols
    }

    fn names(table: &Table, query: &SymbolQuery) -> Vec<String> {
        table.search(query, 0, 50).0.iter().map(|hit| hit.symbol.name.to_owned()).collect()
    }

    fn query(text: &str) -> SymbolQuery {
        SymbolQuery { text: text.into(), ..SymbolQuery::default() }
    }

    #[test]
    fn the_name_itself_goes_before_its_beginning_a_word_in_it_and_any_part() {
        let mut table = Table::default();
        let all = ["reuser", "getUser", "user_name", "User", "user", "set_user"];
        table.insert("a", record(), &file(&all.map(|name| ("", name, SymbolKind::Function))));
        assert_eq!(
            names(&table, &query("user")),
            ["user", "User", "user_name", "getUser", "set_user", "reuser"]
        );
        assert_eq!(
            names(&table, &query("us")),
            ["User", "user", "user_name", "getUser", "set_user", "reuser"]
        );
        assert_eq!(names(&table, &query("u"))[..3], ["User", "user", "user_name"]);
        assert_eq!(names(&table, &query("n")), ["user_name"]);
        assert_eq!(names(&table, &query("gtUsr")), ["getUser"]);
        assert_eq!(names(&table, &query("zzz")), [""; 0]);
        assert_eq!(names(&table, &query("")), [""; 0]);
    }

    #[test]
    fn a_scope_a_kind_and_a_place_narrow_it() {
        let mut table = Table::default();
        let symbols = [
            ("Parser", "parse", SymbolKind::Method),
            ("x.Lexer:Iterator", "parse", SymbolKind::Method),
            ("", "parse", SymbolKind::Function),
        ];
        table.insert("src/a.rs", record(), &file(&symbols));
        table.insert("srcx/b.rs", record(), &file(&[("", "parse", SymbolKind::Field)]));
        let scopes = |query: &SymbolQuery| -> Vec<String> {
            table.search(query, 0, 9).0.iter().map(|hit| hit.symbol.scope.to_owned()).collect()
        };
        assert_eq!(scopes(&query("Parser::parse")), ["Parser"]);
        assert_eq!(scopes(&query("x.lexer.parse()")), ["x.Lexer:Iterator"]);
        let functions = SymbolQuery { kind: Some(SymbolKind::Function), ..query("parse") };
        assert_eq!(table.search(&functions, 0, 9).0.len(), 3, "a method is a function too");
        let under = SymbolQuery { under: "src".into(), ..query("parse") };
        assert_eq!(table.search(&under, 0, 9).0.len(), 3);
        let (page, more) = table.search(&query("parse"), 1, 2);
        assert_eq!((page.len(), more), (2, true));
        let (rest, more) = table.search(&query("parse"), 3, 2);
        assert_eq!((rest.len(), more), (1, false));
    }

    #[test]
    fn a_changed_file_answers_with_its_new_symbols_and_dead_ones_are_swept() {
        let mut table = Table::default();
        let many: Vec<String> = (0..3000).map(|number| format!("name{number}")).collect();
        let many: Vec<(&str, &str, SymbolKind)> =
            many.iter().map(|name| ("Outer", name.as_str(), SymbolKind::Method)).collect();
        table.insert("other", record(), &file(&[("", "keep", SymbolKind::Class)]));
        for _ in 0..20 {
            table.insert("a", record(), &file(&many));
        }
        assert_eq!(table.symbol_count(), 3001);
        assert_eq!(table.file_count(), 2);
        assert!(table.entries_len() < 40_000, "dead ones were swept");
        assert_eq!(names(&table, &query("name2999")), ["name2999"]);
        assert_eq!(table.named("name7")[0].symbol.scope, "Outer");
        table.remove("a");
        assert_eq!(names(&table, &query("name2999")), [""; 0]);
        assert_eq!(names(&table, &query("keep")), ["keep"]);
    }

    #[test]
    fn those_of_one_name_in_a_file_are_told_apart_by_number() {
        let mut table = Table::default();
        table.insert("a", record(), &file(&[("", "f", SymbolKind::Function); 3]));
        let ordinals: Vec<u32> = table.file("a").iter().map(|hit| hit.ordinal).collect();
        assert_eq!(ordinals, [1, 2, 3]);
    }
}
