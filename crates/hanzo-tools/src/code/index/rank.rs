//! Finding symbols by a part of their name, the likeliest first.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use memchr::memmem::Finder;

use super::super::symbol::SymbolKind;
use super::order::Needle;
use super::table::{Hit, Table};

/// What is looked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct SymbolQuery {
    /// A name or a part of one; `Outer.name` and `Outer::name` say what it is in.
    pub(crate) text: String,
    pub(crate) kind: Option<SymbolKind>,
    /// Only files under this path, relative to the workspace; empty for all.
    pub(crate) under: String,
}

/// How well a name fits, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It is the name but for the case of letters.
    ButCase,
    /// It begins with it.
    Prefix,
    /// A word in it does.
    Word,
    /// It is anywhere in it.
    Inside,
    /// It has the letters in that order: `gtUsr` finds `getUser`.
    Letters,
}

/// With fewer letters than this, nearly all names have them in order.
const FEW: usize = 3;

impl Table {
    /// The symbols that fit, the best first: `limit` of them behind the first `skip`, and whether there are more.
    pub(crate) fn search(&self, query: &SymbolQuery, skip: usize, limit: usize) -> (Vec<Hit<'_>>, bool) {
        let (scope, name) = split(&query.text);
        let lower = name.to_ascii_lowercase();
        if lower.is_empty() {
            return (Vec::new(), false);
        }
        let needle = Needle::new(lower.as_bytes());
        let mut page =
            Page { table: self, query, scope: &scope, wanted: skip + limit + 1, found: Vec::new() };
        // The page being full is how it ends, and no more than that.
        let _ = self.with_name(&needle, name, &mut page);
        if page.found.is_empty() && lower.len() >= FEW {
            let _ = self.with_letters(&needle, &mut page);
        }
        let more = page.found.len() > skip + limit;
        let shown = page.found.into_iter().skip(skip).take(limit);
        (shown.filter_map(|number| self.entry_hit(number)).collect(), more)
    }

    /// Puts the symbols whose names have the needle in them on the page.
    fn with_name(&self, needle: &Needle<'_>, name: &str, page: &mut Page<'_>) -> ControlFlow<()> {
        let exact = self.names.find(name);
        if let Some(number) = exact {
            page.take(number)?;
        }
        let finder = Finder::new(needle.text);
        let fit = |number: u32| if exact == Some(number) { None } else { self.fit(number, &finder) };
        let is = |wanted: Fit| move |number: &u32| fit(*number) == Some(wanted);
        let late = self.late(fit);
        let (same, longer) = self.order.places(&self.names, needle.text.len());
        let order = &self.order;
        let same = order.beginning(same, needle).filter(is(Fit::ButCase));
        self.merge(same, &late, Fit::ButCase, page)?;
        let beginning = order.beginning(longer.clone(), needle).filter(is(Fit::Prefix));
        self.merge(beginning, &late, Fit::Prefix, page)?;
        let words = order.with_word(longer.clone(), needle).filter(is(Fit::Word));
        self.merge(words, &late, Fit::Word, page)?;
        let parts = order.with_part(longer, needle).filter(is(Fit::Inside));
        self.merge(parts, &late, Fit::Inside, page)
    }

    /// Puts the symbols on the page whose names have all letters of the needle in its order.
    fn with_letters(&self, needle: &Needle<'_>, page: &mut Page<'_>) -> ControlFlow<()> {
        let fit = |number: u32| self.has_letters(number, needle.text).then_some(Fit::Letters);
        let late = self.late(fit);
        let (_, longer) = self.order.places(&self.names, needle.text.len());
        let names = self.order.with_letters(longer, needle).filter(|number| fit(*number).is_some());
        self.merge(names, &late, Fit::Letters, page)
    }

    /// The names that are not in order yet and fit, put in order.
    fn late(&self, fit: impl Fn(u32) -> Option<Fit>) -> Vec<(Fit, u32)> {
        let numbers = self.order.len()..self.names.len();
        let numbers = numbers.filter_map(|number| u32::try_from(number).ok());
        let mut late: Vec<(Fit, u32)> =
            numbers.filter_map(|number| fit(number).map(|fit| (fit, number))).collect();
        late.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.in_order(a.1, b.1)));
        late
    }

    fn in_order(&self, a: u32, b: u32) -> Ordering {
        let (a, b) = (self.names.bytes_of(a), self.names.bytes_of(b));
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }

    /// Puts names that fit equally well on the page: those in order, and between them those that are not yet.
    fn merge(
        &self,
        names: impl Iterator<Item = u32>,
        late: &[(Fit, u32)],
        fit: Fit,
        page: &mut Page<'_>,
    ) -> ControlFlow<()> {
        let first = late.partition_point(|(late, _)| *late < fit);
        let end = late.partition_point(|(late, _)| *late <= fit);
        let mut late = late[first..end].iter().map(|(_, number)| *number).peekable();
        for name in names {
            while let Some(earlier) = late.next_if(|late| self.in_order(*late, name).is_lt()) {
                page.take(earlier)?;
            }
            page.take(name)?;
        }
        late.try_for_each(|name| page.take(name))
    }

    /// How well a name fits that is not the one looked for; `None` if it does not.
    fn fit(&self, number: u32, finder: &Finder<'_>) -> Option<Fit> {
        let lower = self.names.lower_of(number);
        let mut places = finder.find_iter(lower).peekable();
        let first = *places.peek()?;
        match first {
            0 if lower.len() == finder.needle().len() => Some(Fit::ButCase),
            0 => Some(Fit::Prefix),
            _ if places.any(|at| self.names.begins_word(number, at)) => Some(Fit::Word),
            _ => Some(Fit::Inside),
        }
    }

    fn has_letters(&self, number: u32, needle: &[u8]) -> bool {
        let lower = self.names.lower_of(number);
        // A few letters are found in any long name.
        if lower.len() > needle.len() * 4 || lower.first() != needle.first() {
            return false;
        }
        let mut rest = needle;
        for byte in lower {
            if rest.first() == Some(byte) {
                rest = &rest[1..];
            }
        }
        rest.is_empty()
    }
}

/// The symbols of an answer, as they are found.
struct Page<'t> {
    table: &'t Table,
    query: &'t SymbolQuery,
    scope: &'t str,
    wanted: usize,
    found: Vec<u32>,
}

impl Page<'_> {
    /// Takes the symbols of a name that are of the kind and in the place wanted, until the page is full.
    fn take(&mut self, name: u32) -> ControlFlow<()> {
        let table = self.table;
        let room = self.wanted - self.found.len();
        let mut symbols: Vec<(SymbolKind, &str, u32)> = Vec::new();
        // Thousands may have one name: those behind the worst that there is room for are not kept.
        let mut worst: Option<(SymbolKind, &str, u32)> = None;
        for number in table.chain(name) {
            let Some((entry, path)) = table.quick(number) else { continue };
            let symbol = (entry.kind, path, number);
            if self.query.kind.is_some_and(|wanted| !entry.kind.satisfies(wanted))
                || !is_under(path, &self.query.under)
                || !(self.scope.is_empty() || is_within(table.scope_text(entry), self.scope))
                || worst.is_some_and(|worst| symbol > worst)
            {
                continue;
            }
            symbols.push(symbol);
            if symbols.len() >= room.saturating_mul(4) {
                symbols.select_nth_unstable(room - 1);
                symbols.truncate(room);
                worst = symbols.last().copied();
            }
        }
        symbols.sort_unstable();
        symbols.truncate(room);
        self.found.extend(symbols.into_iter().map(|(_, _, number)| number));
        if self.found.len() < self.wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
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

    fn in_order(table: &mut Table) {
        let ordered = table.ordered();
        table.set_order(ordered);
    }

    fn names(table: &Table, query: &SymbolQuery) -> Vec<String> {
        table.search(query, 0, 50).0.iter().map(|hit| hit.symbol.name.to_owned()).collect()
    }

    fn query(text: &str) -> SymbolQuery {
        SymbolQuery { text: text.into(), ..SymbolQuery::default() }
    }

    #[test]
    fn the_name_itself_goes_before_its_beginning_a_word_in_it_and_any_part() {
        let all = ["reuser", "getUser", "user_name", "User", "user", "set_user"];
        // None in order, some, all.
        for count in [0, 3, all.len()] {
            let mut table = Table::default();
            let file = |names: &[&'static str]| {
                file(&names.iter().map(|name| ("", *name, SymbolKind::Function)).collect::<Vec<_>>())
            };
            table.insert("a", record(), &file(&all[..count]));
            in_order(&mut table);
            table.insert("b", record(), &file(&all[count..]));
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
    }

    /// What a search means, written without any of what makes it quick.
    fn plainly(all: &[String], text: &str) -> Vec<String> {
        let needle = text.to_ascii_lowercase();
        let fit = |name: &str| {
            let lower = name.to_ascii_lowercase();
            let starts_word = |at: usize| {
                let before = name.as_bytes()[at - 1];
                let first = name.as_bytes()[at];
                !before.is_ascii_alphanumeric() || first.is_ascii_uppercase() && !before.is_ascii_uppercase()
            };
            let mut places = (0..lower.len()).filter(|at| lower[*at..].starts_with(&needle)).peekable();
            let first = *places.peek()?;
            Some(match first {
                0 if name == text => 0,
                0 if lower == needle => 1,
                0 => 2,
                // Places that overlap the one before are none.
                _ => {
                    let mut end = 0;
                    let is_word = places.any(|at| {
                        let counts = at >= end;
                        end = if counts { at + needle.len() } else { end };
                        counts && starts_word(at)
                    });
                    if is_word { 3 } else { 4 }
                }
            })
        };
        let mut fitting: Vec<(u32, usize, &String)> =
            all.iter().filter_map(|name| fit(name).map(|fit| (fit, name.len(), name))).collect();
        fitting.sort_unstable();
        fitting.dedup();
        fitting.into_iter().map(|(_, _, name)| name.clone()).collect()
    }

    proptest::proptest! {
        #[test]
        fn what_is_found_is_what_a_plain_look_at_every_name_finds(
            all in proptest::collection::vec("[aAbB_1]{1,6}", 1..40),
            in_order_first in 0_usize..40,
            text in "[aAbB_1]{1,3}",
        ) {
            let mut table = Table::default();
            for (at, name) in all.iter().enumerate() {
                if at == in_order_first {
                    in_order(&mut table);
                }
                table.insert(&at.to_string(), record(), &file(&[("", name.as_str(), SymbolKind::Function)]));
            }
            let expected = plainly(&all, &text);
            let mut found = names(&table, &query(&text));
            found.dedup();
            if expected.is_empty() {
                proptest::prop_assert!(text.len() >= FEW || found.is_empty());
            } else {
                proptest::prop_assert_eq!(found, expected);
            }
        }
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
        in_order(&mut table);
        let before = table.ordered();
        for _ in 0..20 {
            table.insert("a", record(), &file(&many));
        }
        // An order from before names got other numbers is not taken.
        table.set_order(before);
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
