//! Symbols as a file's extractor finds them, and the ids they go by.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident = $wire:literal),+ $(,)?) => {
        /// What a symbol is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[repr(u8)]
        pub enum SymbolKind {
            $($(#[doc = $doc])+ #[serde(rename = $wire)] $name,)+
        }

        impl SymbolKind {
            /// Every kind; what a search ranks higher stands first.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The name callers use.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $wire,)+
                }
            }
        }
    };
}

kinds! {
    /// A class.
    Class = "class",
    /// A struct or a record.
    Struct = "struct",
    /// A union.
    Union = "union",
    /// An interface, or a protocol.
    Interface = "interface",
    /// A trait.
    Trait = "trait",
    /// An enumeration.
    Enum = "enum",
    /// A function.
    Function = "function",
    /// A function that belongs to a type.
    Method = "method",
    /// A named type: an alias, a typedef.
    Type = "type",
    /// A macro.
    Macro = "macro",
    /// A module, namespace or package.
    Module = "module",
    /// A constant.
    Constant = "constant",
    /// A variable outside functions.
    Variable = "variable",
    /// A member of an enumeration.
    Variant = "variant",
    /// A field or property.
    Field = "field",
    /// A heading, a target of a build.
    Section = "section",
    /// An implementation block.
    Impl = "impl",
    /// A function or variable that is announced here and defined elsewhere.
    Declaration = "declaration",
}

impl SymbolKind {
    /// The kind called `name`, with a few other words for them.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let other = match name.as_str() {
            "fn" | "func" | "def" => Some(Self::Function),
            "const" => Some(Self::Constant),
            "var" => Some(Self::Variable),
            "property" | "member" => Some(Self::Field),
            "namespace" | "package" | "mod" => Some(Self::Module),
            "typedef" | "alias" => Some(Self::Type),
            "prototype" => Some(Self::Declaration),
            _ => None,
        };
        other.or_else(|| Self::ALL.iter().copied().find(|kind| kind.name() == name))
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Functions of a type and free ones are the same to a caller who does not know which it is.
    pub(crate) fn satisfies(self, wanted: Self) -> bool {
        self == wanted || (self == Self::Method && wanted == Self::Function)
    }
}

/// The symbols of one file. Their names share one string, so that a file costs a few allocations and not thousands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileSymbols {
    strings: String,
    symbols: Vec<Raw>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Raw {
    name: Piece,
    scope: Piece,
    kind: SymbolKind,
    start: u32,
    end: u32,
    at: u32,
}

/// A stretch of the strings of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    from: u32,
    to: u32,
}

/// A symbol of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolView<'a> {
    /// Its name.
    pub name: &'a str,
    /// The names of what it is in, joined by dots; empty at the top.
    pub scope: &'a str,
    /// What it is.
    pub kind: SymbolKind,
    /// Where it begins, in bytes.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
    /// Where its name stands.
    pub at: u32,
}

/// More symbols than this in one file are generated data.
pub(crate) const MAX_SYMBOLS: usize = 200_000;
/// A longer name is cut: it is no name.
const MAX_NAME: usize = 256;
const MAX_SCOPE: usize = 1024;

impl FileSymbols {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The symbols, in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = SymbolView<'_>> {
        self.symbols.iter().map(|raw| SymbolView {
            name: self.text(raw.name),
            scope: self.text(raw.scope),
            kind: raw.kind,
            start: raw.start,
            end: raw.end,
            at: raw.at,
        })
    }

    pub(crate) fn text(&self, piece: Piece) -> &str {
        &self.strings[piece.from as usize..piece.to as usize]
    }

    /// Keeps a name; bytes that are no UTF-8 are replaced.
    pub(crate) fn keep(&mut self, name: &[u8]) -> Piece {
        let from = self.strings.len();
        match std::str::from_utf8(name) {
            Ok(name) => self.strings.push_str(name),
            Err(_) => self.strings.push_str(&String::from_utf8_lossy(name)),
        }
        self.cut(from, MAX_NAME)
    }

    /// Keeps a scope that was made by [`Self::inner_scope`].
    pub(crate) fn keep_scope(&mut self, scope: &str) -> Piece {
        let from = self.strings.len();
        self.strings.push_str(scope);
        self.cut(from, MAX_SCOPE)
    }

    /// The scope inside something called `name` that is itself in `outer`.
    #[cfg(feature = "grammars")]
    pub(crate) fn inner_scope(&mut self, outer: Piece, name: Piece) -> Piece {
        if outer.from == outer.to {
            return name;
        }
        let from = self.strings.len();
        self.strings.extend_from_within(outer.from as usize..outer.to as usize);
        self.strings.push('.');
        self.strings.extend_from_within(name.from as usize..name.to as usize);
        self.cut(from, MAX_SCOPE)
    }

    fn cut(&mut self, from: usize, most: usize) -> Piece {
        if self.strings.len() - from > most {
            let mut end = from + most;
            while !self.strings.is_char_boundary(end) {
                end -= 1;
            }
            self.strings.truncate(end);
        }
        // A file is far below 4 GB, and what is kept of it is not more.
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Piece { from: number(from), to: number(self.strings.len()) }
    }

    pub(crate) fn push(
        &mut self,
        kind: SymbolKind,
        name: Piece,
        scope: Piece,
        whole: std::ops::Range<usize>,
        at: usize,
    ) {
        if self.symbols.len() >= MAX_SYMBOLS || name.from == name.to {
            return;
        }
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        self.symbols.push(Raw {
            name,
            scope,
            kind,
            start: number(whole.start),
            end: number(whole.end),
            at: number(at),
        });
    }

    /// Turns all places into those of another text, of which this is a part.
    #[cfg(feature = "grammars")]
    pub(crate) fn relocate(&mut self, start: impl Fn(usize) -> usize, end: impl Fn(usize) -> usize) {
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        for raw in &mut self.symbols {
            raw.start = number(start(raw.start as usize));
            raw.end = number(end(raw.end as usize));
            raw.at = number(start(raw.at as usize));
        }
    }

    #[cfg(feature = "grammars")]
    pub(crate) fn sort(&mut self) {
        self.symbols.sort_by_key(|raw| (raw.at, raw.start));
    }
}

/// A symbol's id, taken apart. It holds no line: it stays the same when the file is edited elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SymbolName {
    /// The file, relative to the workspace or absolute; `None` for an id that says the name only.
    pub(crate) path: Option<String>,
    pub(crate) kind: Option<SymbolKind>,
    /// With the names of what it is in.
    pub(crate) qualified: String,
    /// Which of several of the same kind and name, from 1.
    pub(crate) ordinal: u32,
}

impl SymbolName {
    /// Reads an id: `sym:path#kind:Outer.name~2`, or `sym:Outer.name`, or just the name.
    pub(crate) fn parse(id: &str) -> Self {
        let body = id.strip_prefix("sym:").unwrap_or(id);
        let Some((path, rest)) = body.split_once('#') else {
            return Self { path: None, kind: None, qualified: body.to_owned(), ordinal: 1 };
        };
        let path = path.replace("%23", "#").replace("%25", "%");
        let (kind, name) = match rest.split_once(':') {
            Some((kind, name)) if SymbolKind::named(kind).is_some() => (SymbolKind::named(kind), name),
            _ => (None, rest),
        };
        // A tilde that begins no ordinal is part of the name, as in a C++ destructor.
        let (qualified, ordinal) = match name.rsplit_once('~').map(|(head, digits)| (head, digits.parse())) {
            Some((head, Ok(ordinal))) if ordinal > 1 && !head.is_empty() => (head, ordinal),
            _ => (name, 1),
        };
        Self { path: Some(path), kind, qualified: qualified.to_owned(), ordinal }
    }
}

/// The id of a symbol.
pub(crate) fn symbol_id(path: &str, symbol: &SymbolView<'_>, ordinal: u32) -> String {
    let path = path.replace('%', "%25").replace('#', "%23");
    let mut id = format!("sym:{path}#{}:", symbol.kind.name());
    if !symbol.scope.is_empty() {
        id.push_str(symbol.scope);
        id.push('.');
    }
    id.push_str(symbol.name);
    if ordinal > 1 {
        let _ = write!(id, "~{ordinal}");
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view<'a>(name: &'a str, scope: &'a str, kind: SymbolKind) -> SymbolView<'a> {
        SymbolView { name, scope, kind, start: 0, end: 0, at: 0 }
    }

    #[test]
    fn an_id_says_path_kind_name_and_ordinal_and_comes_apart_again() {
        for (path, name, scope, kind, ordinal) in [
            ("src/a.rs", "parse", "Parser", SymbolKind::Method, 1),
            ("odd #1%.cc", "~Foo", "ns.Foo", SymbolKind::Method, 3),
            ("a.cc", "~Foo", "", SymbolKind::Method, 1),
            ("a.js", "#secret", "A", SymbolKind::Field, 2),
            ("a.rs", "x", "", SymbolKind::Function, 12),
        ] {
            let id = symbol_id(path, &view(name, scope, kind), ordinal);
            let parsed = SymbolName::parse(&id);
            let qualified = if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") };
            let expected = SymbolName { path: Some(path.into()), kind: Some(kind), qualified, ordinal };
            assert_eq!(parsed, expected, "{id}");
        }
        let short = SymbolName::parse("sym:UserService.auth");
        assert_eq!((short.path, short.qualified.as_str()), (None, "UserService.auth"));
    }

    #[test]
    fn names_are_cut_at_a_character() {
        let mut symbols = FileSymbols::default();
        let name = symbols.keep("ü".repeat(400).as_bytes());
        assert_eq!(symbols.text(name).chars().count(), 128);
        let broken = symbols.keep(b"a\xFFb");
        assert_eq!(symbols.text(broken), "a\u{FFFD}b");
    }
}
