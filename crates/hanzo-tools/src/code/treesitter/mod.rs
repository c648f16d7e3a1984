//! The backend that parses: tree-sitter with the grammars of nine languages.
//!
//! The grammars' own tag queries find classes and functions only, and a query costs as much as the parse. So the tree is gone
//! through once, with a table that says for each sort of node what it defines ([`grammar`]).

use std::cell::RefCell;

use tree_sitter::{Node, ParseOptions, Parser, Tree, TreeCursor};

use super::backend::{
    Backend, Fault, GaveUp, Limits, LocalBinding, NameAt, Occurrence, OccurrenceRole, Operation,
};
use super::language::Language;
use super::source::Source;
use super::symbol::FileSymbols;

mod elide;
mod extract;
mod grammar;
mod pattern;
mod query;

pub(crate) use pattern::Pattern;
pub(crate) use query::{AstMatch, AstQuery, QueryFault};

use grammar::Grammar;

/// tree-sitter, with the grammars of nine languages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeSitter;

thread_local! {
    static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
}

/// Parses `bytes`, unless that takes too long.
fn parse(grammar: &Grammar, bytes: &[u8], limits: &Limits) -> Result<Tree, GaveUp> {
    PARSER.with_borrow_mut(|parser| {
        parser.set_language(&grammar.language).map_err(|_| GaveUp)?;
        let mut watch = |_: &tree_sitter::ParseState| limits.check();
        let options = ParseOptions::new().progress_callback(&mut watch);
        let tree =
            parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options));
        // What a parse that was broken off leaves behind would go on with the next file.
        parser.reset();
        tree.ok_or(GaveUp)
    })
}

/// The symbols of a file, of which only what can define one is parsed.
fn symbols(
    grammar: &Grammar,
    language: Language,
    bytes: &[u8],
    limits: &Limits,
) -> Result<FileSymbols, GaveUp> {
    let Some(squeezed) = elide::squeezed(language, bytes) else {
        return Ok(extract::symbols(grammar, &parse(grammar, bytes, limits)?, bytes));
    };
    let tree = parse(grammar, &squeezed.text, limits)?;
    let mut symbols = extract::symbols(grammar, &tree, &squeezed.text);
    symbols.relocate(|at| squeezed.start(at), |at| squeezed.end(at));
    Ok(symbols)
}

/// Goes through a tree before its children, without recursion: a file may nest deeper than a stack is high.
fn visit<'a>(root: Node<'a>, mut enter: impl FnMut(Node<'a>, &TreeCursor<'a>, usize) -> Descend) {
    let mut cursor = root.walk();
    let mut depth = 0;
    loop {
        let descend = enter(cursor.node(), &cursor, depth);
        if matches!(descend, Descend::Stop) {
            return;
        }
        if matches!(descend, Descend::Into) && cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        while !cursor.goto_next_sibling() {
            if depth == 0 || !cursor.goto_parent() {
                return;
            }
            depth -= 1;
        }
    }
}

/// Where a walk goes on.
enum Descend {
    Into,
    Over,
    Stop,
}

impl Backend for TreeSitter {
    fn name(&self) -> &'static str {
        "tree-sitter"
    }

    fn can(&self, _: Operation, language: Language) -> bool {
        Grammar::of(language).is_some()
    }

    fn outline(&self, source: &Source, language: Language, limits: &Limits) -> Result<FileSymbols, GaveUp> {
        let grammar = Grammar::of(language).ok_or(GaveUp)?;
        symbols(grammar, language, &source.bytes, limits)
    }

    fn occurrences(
        &self,
        source: &Source,
        language: Language,
        name: &[u8],
        limits: &Limits,
    ) -> Result<Vec<Occurrence>, GaveUp> {
        let grammar = Grammar::of(language).ok_or(GaveUp)?;
        let places: Vec<usize> = memchr::memmem::find_iter(&source.bytes, name).collect();
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let tree = parse(grammar, &source.bytes, limits)?;
        let root = tree.root_node();
        let mut found = Vec::new();
        for at in places {
            if limits.check().is_break() {
                return Err(GaveUp);
            }
            let Some(node) = root.descendant_for_byte_range(at, at + name.len()) else { continue };
            let whole = node.start_byte() == at && node.end_byte() == at + name.len();
            if whole && is_name(node) {
                let role = if grammar.binds(node) { OccurrenceRole::Definition } else { OccurrenceRole::Use };
                found.push(Occurrence { start: at, end: at + name.len(), role });
            }
        }
        Ok(found)
    }

    fn name_at(
        &self,
        source: &Source,
        language: Language,
        at: usize,
        limits: &Limits,
    ) -> Result<Option<NameAt>, GaveUp> {
        let grammar = Grammar::of(language).ok_or(GaveUp)?;
        let tree = parse(grammar, &source.bytes, limits)?;
        let root = tree.root_node();
        // Right behind a name still means the name.
        let places = [(at, at + 1), (at.saturating_sub(1), at)];
        let found = places.into_iter().find_map(|(from, to)| {
            let to = to.min(source.bytes.len());
            root.descendant_for_byte_range(from.min(to), to).filter(|node| is_name(*node))
        });
        let Some(node) = found else { return Ok(None) };
        let local = local_binding(grammar, node, &source.bytes);
        Ok(Some(NameAt { start: node.start_byte(), end: node.end_byte(), local }))
    }

    fn diagnostics(
        &self,
        source: &Source,
        language: Language,
        most: usize,
        limits: &Limits,
    ) -> Result<Vec<Fault>, GaveUp> {
        let grammar = Grammar::of(language).ok_or(GaveUp)?;
        let tree = parse(grammar, &source.bytes, limits)?;
        let mut faults = Vec::new();
        visit(tree.root_node(), |node, _, _| {
            if faults.len() >= most {
                return Descend::Stop;
            }
            if !node.has_error() {
                return Descend::Over;
            }
            if node.is_missing() {
                let message = format!("`{}` is missing here", node.kind());
                faults.push(Fault { start: node.start_byte(), end: node.end_byte(), message });
            } else if node.is_error() {
                faults.push(error_fault(node, &source.bytes));
            }
            Descend::Into
        });
        Ok(faults)
    }
}

fn error_fault(node: Node<'_>, bytes: &[u8]) -> Fault {
    /// More of the text than this explains nothing.
    const SHOWN: usize = 40;
    let text = &bytes[node.byte_range()];
    let line = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())];
    let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]).into_owned();
    let more = if text.len() > shown.len() { "…" } else { "" };
    let message = match (shown.trim(), node.parent()) {
        ("", _) => "something is missing here".to_owned(),
        (shown, Some(parent)) if parent.parent().is_some() => {
            format!("`{shown}{more}` does not fit into this {}", parent.kind().replace('_', " "))
        }
        (shown, _) => format!("`{shown}{more}` does not fit here"),
    };
    Fault { start: node.start_byte(), end: node.end_byte(), message }
}

/// Whether a node is a name and not part of a comment or a string.
fn is_name(node: Node<'_>) -> bool {
    node.child_count() == 0
        && node.is_named()
        && (node.kind().ends_with("identifier") || matches!(node.kind(), "property_identifier" | "name"))
}

/// Where a name is bound in the function it stands in: the first binding of that name from the function's beginning.
fn local_binding(grammar: &Grammar, node: Node<'_>, bytes: &[u8]) -> Option<LocalBinding> {
    // A member's name is never a local's.
    if Grammar::is_member(node) {
        return None;
    }
    let name = &bytes[node.byte_range()];
    let mut above = node.parent();
    while let Some(function) = above {
        if grammar.is_function(function) {
            let mut bound = None;
            visit(function, |inner, _, _| {
                let is_same = inner.child_count() == 0 && &bytes[inner.byte_range()] == name;
                if is_same && is_name(inner) && Grammar::binds_locally(inner, function) {
                    bound = Some(inner.start_byte());
                    return Descend::Stop;
                }
                Descend::Into
            });
            if let Some(at) = bound {
                return Some(LocalBinding { at, from: function.start_byte(), to: function.end_byte() });
            }
        }
        above = function.parent();
    }
    None
}
