//! Code with holes, as a pattern: `foo($A, $$$)` finds every call of `foo` with at least one argument.
//!
//! `$NAME` stands for one node, and the same name for the same text each time; `$$$` stands for any number of nodes.

use std::collections::HashMap;
use std::time::Duration;

use tree_sitter::Node;

use super::super::backend::{GaveUp, Limits};
use super::super::language::Language;
use super::super::source::Source;
use super::grammar::Grammar;
use super::{AstMatch, Descend, parse, visit};
use crate::contract::Cancelled;

/// A pattern nests no deeper than a person would write.
const MAX_DEPTH: usize = 64;
/// `$$$` in one list.
const MAX_RESTS: usize = 2;
/// How holes are written so that every grammar takes them for names.
const HOLE: &str = "hole__";
const REST: &str = "rest__";

/// A pattern, parsed in a language.
#[derive(Debug)]
pub(crate) struct Pattern {
    language: Language,
    shape: Shape,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    Hole(String),
    Rest,
    Leaf(u16, Vec<u8>),
    Inner(u16, Vec<Shape>),
}

impl Pattern {
    /// The pattern `text` in `language`; `None` when it is no code there.
    pub(crate) fn new(language: Language, text: &str) -> Option<Self> {
        let grammar = Grammar::of(language)?;
        let written = with_holes(text);
        let limits = Limits::new(Duration::from_millis(200), &Cancelled::default());
        // A fragment may be code only in a body, or only at the top.
        let wrapped = match language {
            Language::Java => format!("class C {{ void m() {{ {written} ; }} }}"),
            Language::Go => format!("package p\nfunc f() {{ {written} }}"),
            Language::C | Language::Cpp => format!("void f() {{ {written} ; }}"),
            Language::Rust => format!("fn f() {{ {written} }}"),
            _ => written.clone(),
        };
        for candidate in [&wrapped, &written] {
            let tree = parse(grammar, candidate.as_bytes(), &limits).ok()?;
            let from = candidate.find(&written)?;
            let root = tree.root_node();
            let Some(mut node) = root.descendant_for_byte_range(from, from + written.trim_end().len()) else {
                continue;
            };
            // The root itself, or a statement that is nothing but an expression, says less than what is in it.
            while node.named_child_count() == 1
                && let Some(only) = node.named_child(0)
                && (node.parent().is_none() || node.kind() == "expression_statement")
            {
                node = only;
            }
            if node.has_error() || node.parent().is_none() {
                continue;
            }
            let shape = shape_of(node, candidate.as_bytes(), 0)?;
            if matches!(shape, Shape::Inner(..)) {
                return Some(Self { language, shape });
            }
        }
        None
    }

    /// Where the pattern matches in a file, at most `most` times.
    pub(crate) fn run(&self, source: &Source, most: usize, limits: &Limits) -> Result<Vec<AstMatch>, GaveUp> {
        let grammar = Grammar::of(self.language).ok_or(GaveUp)?;
        let tree = parse(grammar, &source.bytes, limits)?;
        let mut found = Vec::new();
        visit(tree.root_node(), |node, _, _| {
            if found.len() >= most {
                return Descend::Stop;
            }
            if node.is_named() && matches(&self.shape, node, &source.bytes, &mut HashMap::new()) {
                found.push(AstMatch {
                    capture: "match".into(),
                    start: node.start_byte(),
                    end: node.end_byte(),
                });
            }
            Descend::Into
        });
        Ok(found)
    }
}

fn with_holes(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        written.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(behind) = rest.strip_prefix("$$$") {
            let name = behind
                .find(|letter: char| !(letter.is_ascii_uppercase() || letter == '_'))
                .unwrap_or(behind.len());
            written.push_str(REST);
            rest = &behind[name..];
            continue;
        }
        let name = rest[1..]
            .find(|letter: char| !(letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_'));
        let name = &rest[1..][..name.unwrap_or(rest.len() - 1)];
        if name.starts_with(|letter: char| letter.is_ascii_uppercase()) {
            written.push_str(HOLE);
            written.push_str(name);
        } else {
            written.push('$');
            written.push_str(name);
        }
        rest = &rest[1 + name.len()..];
    }
    written.push_str(rest);
    written
}

fn shape_of(node: Node<'_>, bytes: &[u8], depth: usize) -> Option<Shape> {
    if depth > MAX_DEPTH {
        return None;
    }
    let text = &bytes[node.byte_range()];
    let is_word = text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let trimmed = text.strip_suffix(b";").unwrap_or(text);
    if is_word || (trimmed.len() < text.len() && node.named_child_count() == 1) {
        if trimmed == REST.as_bytes() {
            return Some(Shape::Rest);
        }
        if let Some(name) = text.strip_prefix(HOLE.as_bytes()).filter(|_| is_word) {
            return Some(Shape::Hole(String::from_utf8_lossy(name).into_owned()));
        }
    }
    let mut cursor = node.walk();
    let children: Vec<_> = node.children(&mut cursor).filter(|child| !is_noise(*child)).collect();
    if children.is_empty() {
        return Some(Shape::Leaf(node.kind_id(), text.to_vec()));
    }
    let inner: Option<Vec<Shape>> =
        children.into_iter().map(|child| shape_of(child, bytes, depth + 1)).collect();
    let inner = inner?;
    // Every further one multiplies the ways to try.
    let rests = inner.iter().filter(|shape| **shape == Shape::Rest).count();
    (rests <= MAX_RESTS).then_some(Shape::Inner(node.kind_id(), inner))
}

/// Separators and comments are there or not without meaning much.
fn is_noise(node: Node<'_>) -> bool {
    matches!(node.kind(), "," | ";" | "comment" | "line_comment" | "block_comment")
}

fn matches(shape: &Shape, node: Node<'_>, bytes: &[u8], holes: &mut HashMap<String, Vec<u8>>) -> bool {
    match shape {
        Shape::Hole(name) => {
            let text = &bytes[node.byte_range()];
            if let Some(bound) = holes.get(name) {
                return bound == text;
            }
            holes.insert(name.clone(), text.to_vec());
            true
        }
        Shape::Rest => true,
        Shape::Leaf(kind, text) => node.kind_id() == *kind && bytes[node.byte_range()] == **text,
        Shape::Inner(kind, shapes) => {
            if node.kind_id() != *kind {
                return false;
            }
            let mut cursor = node.walk();
            let children: Vec<_> = node.children(&mut cursor).filter(|child| !is_noise(*child)).collect();
            matches_all(shapes, &children, bytes, holes)
        }
    }
}

fn matches_all(
    shapes: &[Shape],
    nodes: &[Node<'_>],
    bytes: &[u8],
    holes: &mut HashMap<String, Vec<u8>>,
) -> bool {
    let Some((first, rest)) = shapes.split_first() else { return nodes.is_empty() };
    if *first == Shape::Rest {
        return (0..=nodes.len()).any(|taken| {
            let mut tried = holes.clone();
            let fits = matches_all(rest, &nodes[taken..], bytes, &mut tried);
            if fits {
                *holes = tried;
            }
            fits
        });
    }
    match nodes.split_first() {
        Some((node, others)) => {
            matches(first, *node, bytes, holes) && matches_all(rest, others, bytes, holes)
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(language: Language, pattern: &str, text: &str) -> Vec<String> {
        let source = Source::from_text(text, language);
        let limits = Limits::new(Duration::from_secs(5), &Cancelled::default());
        let pattern = Pattern::new(language, pattern).unwrap_or_else(|| panic!("{pattern} is no pattern"));
        let found = pattern.run(&source, 100, &limits).unwrap();
        found.into_iter().map(|found| text[found.start..found.end].to_owned()).collect()
    }

    #[test]
    fn code_with_holes_finds_code_of_that_shape() {
        let rust = "fn main() { let a = foo(1, 2); foo(a, a); bar(foo(x)); } // foo(1, 1)";
        assert_eq!(found(Language::Rust, "foo($A, $B)", rust), ["foo(1, 2)", "foo(a, a)"]);
        assert_eq!(found(Language::Rust, "foo($A, $A)", rust), ["foo(a, a)"]);
        assert_eq!(found(Language::Rust, "foo($$$)", rust), ["foo(1, 2)", "foo(a, a)", "foo(x)"]);
        let python = "print(x)\nprint(x, y)\n";
        assert_eq!(found(Language::Python, "print($X)", python), ["print(x)"]);
        let script = "if (a == null) { go(); }\nif (b == null) stop();";
        assert_eq!(found(Language::JavaScript, "$X == null", script), ["a == null", "b == null"]);
        let c = "int main() { free(p); free(q->r); }";
        assert_eq!(found(Language::C, "free($X)", c), ["free(p)", "free(q->r)"]);
        let go = "package m\nfunc f() { if err != nil { return err } }";
        assert_eq!(found(Language::Go, "if $E != nil { return $E }", go).len(), 1);
        let java = "class A { void f() { x.close(); y.open(); } }";
        assert_eq!(found(Language::Java, "$X.close()", java), ["x.close()"]);
    }

    #[test]
    fn text_that_is_no_code_is_no_pattern() {
        assert!(Pattern::new(Language::Rust, "fn (((").is_none());
        assert!(Pattern::new(Language::Rust, "name").is_none(), "a single name is no shape");
    }
}
