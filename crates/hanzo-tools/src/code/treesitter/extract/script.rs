//! JavaScript and TypeScript: what variables, objects and assignments define.

use tree_sitter::Node;

use super::super::super::symbol::SymbolKind;
use super::super::{Descend, visit};
use super::{Extract, Scope, ScopeSort, unquoted};

impl Extract<'_> {
    pub(super) fn js_variable(&mut self, node: Node<'_>, depth: usize) {
        let Some(name) = self.name_of(node) else { return };
        if name.kind() != "identifier" {
            if !self.in_function() {
                self.js_pattern(node, name);
            }
            return;
        }
        let value = node.child_by_field_name("value");
        let is_function = value.is_some_and(|value| self.grammar.is_function(value));
        let is_class = value.is_some_and(|value| value.kind() == "class");
        let is_constant = node.parent().is_some_and(|list| {
            list.child_by_field_name("kind").is_some_and(|word| self.text(word) == b"const")
        });
        let kind = match (is_function, is_class) {
            (true, _) => SymbolKind::Function,
            (_, true) => SymbolKind::Class,
            _ if self.in_function() => return,
            _ if is_constant => SymbolKind::Constant,
            _ => SymbolKind::Variable,
        };
        let kept = self.add(kind, node, name);
        // What an object or a function holds belongs to its name.
        match (is_function, is_class) {
            (true, _) => self.open(depth, kept, ScopeSort::Function),
            (_, true) => self.open(depth, kept, ScopeSort::Type),
            _ if value.is_some_and(|value| value.kind() == "object") => {
                self.open(depth, kept, ScopeSort::Space);
            }
            _ => {}
        }
    }

    /// `const { a, b: c } = …`
    fn js_pattern(&mut self, whole: Node<'_>, pattern: Node<'_>) {
        visit(pattern, |node, cursor, _| {
            let is_bound = match node.kind() {
                "shorthand_property_identifier_pattern" => true,
                "identifier" => cursor.field_name() != Some("right") && cursor.field_name() != Some("key"),
                _ => false,
            };
            if is_bound {
                self.add(SymbolKind::Variable, whole, node);
            }
            if self.grammar.is_function(node) { Descend::Over } else { Descend::Into }
        });
    }

    pub(super) fn js_pair(&mut self, node: Node<'_>, depth: usize) {
        let (Some(key), Some(value)) = (node.child_by_field_name("key"), node.child_by_field_name("value"))
        else {
            return;
        };
        if key.kind() == "computed_property_name" {
            return;
        }
        let is_function = self.grammar.is_function(value);
        if !is_function && self.in_function() {
            return;
        }
        let text = unquoted(self.text(key)).to_vec();
        let kept = self.symbols.keep(&text);
        let scope = self.scope();
        let kind = if is_function { SymbolKind::Method } else { SymbolKind::Field };
        self.symbols.push(kind, kept, scope, node.byte_range(), key.start_byte());
        match value.kind() {
            _ if is_function => self.open(depth, kept, ScopeSort::Function),
            "object" => self.open(depth, kept, ScopeSort::Space),
            _ => {}
        }
    }

    pub(super) fn js_assignment(&mut self, node: Node<'_>, depth: usize) {
        let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right"))
        else {
            return;
        };
        let is_function = self.grammar.is_function(right);
        let is_class = right.kind() == "class";
        if left.kind() != "member_expression" {
            return;
        }
        let (Some(object), Some(property)) =
            (left.child_by_field_name("object"), left.child_by_field_name("property"))
        else {
            return;
        };
        let object = self.text(object);
        // Only plain paths such as `exports` and `Thing.prototype` are scopes.
        let is_plain = object.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_$.".contains(byte));
        if !is_plain || !(is_function || is_class || (!self.in_function() && object != b"this")) {
            return;
        }
        let is_prototype = object.ends_with(b".prototype");
        let object = object.strip_suffix(b".prototype").unwrap_or(object);
        let scope = match object {
            b"exports" | b"module.exports" | b"module" | b"this" => self.scope(),
            other => {
                let other = other.to_vec();
                let inner = self.symbols.keep(&other);
                let outer = self.scope();
                self.symbols.inner_scope(outer, inner)
            }
        };
        let text = self.text(property);
        let kept = self.symbols.keep(text);
        let kind = match (is_class, is_function) {
            (true, _) => SymbolKind::Class,
            (_, true) if is_prototype => SymbolKind::Method,
            (_, true) => SymbolKind::Function,
            _ => SymbolKind::Field,
        };
        self.symbols.push(kind, kept, scope, node.byte_range(), property.start_byte());
        let inner = self.symbols.inner_scope(scope, kept);
        let sort = match (is_class, is_function) {
            (true, _) => ScopeSort::Type,
            (_, true) => ScopeSort::Function,
            _ => ScopeSort::Space,
        };
        self.scopes.push(Scope { depth, name: inner, sort });
    }
}
