//! C and C++: what declarators declare.

use tree_sitter::Node;

use super::super::super::symbol::{Piece, SymbolKind};
use super::{Extract, Scope, ScopeSort, plain_type};

impl Extract<'_> {
    pub(super) fn c_function(&mut self, node: Node<'_>, depth: usize) {
        let found = node.child_by_field_name("declarator").and_then(Declared::of);
        let Some(found) = found else {
            self.scopes.push(Scope { depth, name: self.scope(), sort: ScopeSort::Function });
            return;
        };
        let kept = self.add_declared(
            node,
            &found,
            if self.in_type() { SymbolKind::Method } else { SymbolKind::Function },
        );
        self.open(depth, kept, ScopeSort::Function);
    }

    /// Adds what a declarator declares; `A::b` is `b` in `A`.
    fn add_declared(&mut self, whole: Node<'_>, found: &Declared<'_>, kind: SymbolKind) -> Piece {
        let Some(qualifier) = found.qualifier else { return self.add(kind, whole, found.name) };
        let from = qualifier.start_byte();
        let to = found.name.start_byte();
        let qualifier = self.bytes[from..to].to_vec();
        let qualifier = plain_qualifier(&qualifier);
        let text = self.text(found.name);
        let name = self.symbols.keep(text);
        let qualifier = self.symbols.keep(&qualifier);
        let outer = self.scope();
        let scope = self.symbols.inner_scope(outer, qualifier);
        let kind = if kind == SymbolKind::Function { SymbolKind::Method } else { kind };
        self.symbols.push(kind, name, scope, whole.byte_range(), found.name.start_byte());
        name
    }

    pub(super) fn c_declaration(&mut self, node: Node<'_>) {
        if self.in_function() {
            return;
        }
        let mut cursor = node.walk();
        let declarators: Vec<_> = node.children_by_field_name("declarator", &mut cursor).collect();
        let is_extern = self.has_word(node, b"extern");
        let is_constant = self.has_word(node, b"constexpr");
        for declarator in declarators {
            let Some(found) = Declared::of(declarator) else { continue };
            let kind = match (found.is_function, is_extern) {
                (true, _) | (_, true) => SymbolKind::Declaration,
                _ if is_constant => SymbolKind::Constant,
                _ => SymbolKind::Variable,
            };
            self.add_declared(node, &found, kind);
        }
    }

    /// `namespace a::b {` is `b` in `a`.
    pub(super) fn cpp_namespace(&mut self, node: Node<'_>, depth: usize) {
        let Some(mut name) = self.name_of(node) else {
            self.scopes.push(Scope { depth, name: self.scope(), sort: ScopeSort::Space });
            return;
        };
        // A list of names is a name and the list of the others.
        loop {
            let rest = (name.kind() == "nested_namespace_specifier").then_some(name);
            let first = rest.and_then(|list| list.named_child(0)).unwrap_or(name);
            let kept = self.add(SymbolKind::Module, node, first);
            self.open(depth, kept, ScopeSort::Space);
            let count = rest.map_or(0, |list| list.named_child_count());
            match rest.and_then(|list| list.named_child(u32::try_from(count.checked_sub(1)?).ok()?)) {
                Some(next) if count > 1 => name = next,
                _ => return,
            }
        }
    }

    fn has_word(&self, node: Node<'_>, word: &[u8]) -> bool {
        let mut cursor = node.walk();
        node.children(&mut cursor).any(|child| {
            matches!(child.kind(), "storage_class_specifier" | "type_qualifier") && self.text(child) == word
        })
    }

    pub(super) fn c_field(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let declarators: Vec<_> = node.children_by_field_name("declarator", &mut cursor).collect();
        for declarator in declarators {
            if let Some(found) = Declared::of(declarator) {
                let kind = if found.is_function { SymbolKind::Declaration } else { SymbolKind::Field };
                self.add(kind, node, found.name);
            }
        }
    }

    pub(super) fn c_type(&mut self, node: Node<'_>, depth: usize) {
        if node.child_by_field_name("body").is_none() {
            return;
        }
        let kind = match node.kind() {
            "class_specifier" => SymbolKind::Class,
            "union_specifier" => SymbolKind::Union,
            "enum_specifier" => SymbolKind::Enum,
            _ => SymbolKind::Struct,
        };
        let scope = if let Some(name) = self.name_of(node).map(plain_type) {
            self.add(kind, node, name)
        } else {
            // `typedef struct { … } name;` is called as its typedef is.
            let Some(name) = typedef_name(node) else {
                self.scopes.push(Scope { depth, name: self.scope(), sort: ScopeSort::Type });
                return;
            };
            let text = self.text(name);
            self.symbols.keep(text)
        };
        self.open(depth, scope, ScopeSort::Type);
    }
}

/// `a::b::` as `a.b`, without what is in angle brackets.
fn plain_qualifier(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut nested = 0_u32;
    for byte in text {
        match byte {
            b'<' => nested += 1,
            b'>' => nested = nested.saturating_sub(1),
            _ if nested > 0 || byte.is_ascii_whitespace() => {}
            b':' => {
                if plain.last() != Some(&b'.') {
                    plain.push(b'.');
                }
            }
            other => plain.push(*other),
        }
    }
    while plain.last() == Some(&b'.') {
        plain.pop();
    }
    plain.strip_prefix(b".").map(<[u8]>::to_vec).unwrap_or(plain)
}

fn typedef_name(node: Node<'_>) -> Option<Node<'_>> {
    let parent = node.parent().filter(|parent| parent.kind() == "type_definition")?;
    parent.child_by_field_name("declarator").and_then(Declared::of).map(|found| found.name)
}

/// What a C declarator declares.
pub(super) struct Declared<'t> {
    pub(super) name: Node<'t>,
    /// What stands before `::`, when something does.
    qualifier: Option<Node<'t>>,
    is_function: bool,
}

impl<'t> Declared<'t> {
    pub(super) fn of(declarator: Node<'t>) -> Option<Self> {
        let mut node = declarator;
        let mut qualifier = None;
        let mut is_function = false;
        loop {
            let inner = match node.kind() {
                "identifier" | "field_identifier" | "type_identifier" | "destructor_name"
                | "operator_name" | "primitive_type" => {
                    return Some(Self { name: node, qualifier, is_function });
                }
                "operator_cast" => {
                    return Some(Self { name: node.child_by_field_name("type")?, qualifier, is_function });
                }
                "qualified_identifier" => {
                    qualifier = qualifier.or_else(|| node.child_by_field_name("scope"));
                    node.child_by_field_name("name")
                }
                "template_function" | "template_method" | "template_type" | "dependent_name" => {
                    node.child_by_field_name("name").or_else(|| node.named_child(0))
                }
                "function_declarator" => {
                    let inner = node.child_by_field_name("declarator");
                    // `int (*f)(void)` is a variable that points to a function.
                    is_function = inner.is_none_or(|inner| inner.kind() != "parenthesized_declarator");
                    inner
                }
                "parenthesized_declarator"
                | "reference_declarator"
                | "attributed_declarator"
                | "variadic_declarator" => {
                    let mut cursor = node.walk();
                    let mut children = node.named_children(&mut cursor);
                    children.find(|child| {
                        child.kind().ends_with("declarator") || child.kind().ends_with("identifier")
                    })
                }
                _ => node.child_by_field_name("declarator"),
            };
            node = inner?;
        }
    }
}
