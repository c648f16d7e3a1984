//! From a tree to symbols, in one walk.

use tree_sitter::{Node, Tree};

use super::super::symbol::{FileSymbols, Piece, SymbolKind};
use super::grammar::{Grammar, Role};
use super::{Descend, visit};

mod c;
mod script;

use c::Declared;

/// The symbols of a parsed file.
pub(super) fn symbols(grammar: &Grammar, tree: &Tree, bytes: &[u8]) -> FileSymbols {
    let mut walk = Extract { grammar, bytes, symbols: FileSymbols::default(), scopes: Vec::new() };
    visit(tree.root_node(), |node, _, depth| {
        while walk.scopes.last().is_some_and(|scope| scope.depth >= depth) {
            walk.scopes.pop();
        }
        walk.enter(node, depth)
    });
    let mut symbols = walk.symbols;
    symbols.sort();
    symbols
}

struct Scope {
    depth: usize,
    name: Piece,
    sort: ScopeSort,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeSort {
    /// Functions in it are methods.
    Type,
    /// Variables in it are local.
    Function,
    /// A module or namespace.
    Space,
}

struct Extract<'a> {
    grammar: &'a Grammar,
    bytes: &'a [u8],
    symbols: FileSymbols,
    scopes: Vec<Scope>,
}

impl<'a> Extract<'a> {
    fn scope(&self) -> Piece {
        self.scopes.last().map(|scope| scope.name).unwrap_or_default()
    }

    fn in_function(&self) -> bool {
        // A class in a function has fields all the same.
        let nearest = self.scopes.iter().rev().find(|scope| scope.sort != ScopeSort::Space);
        nearest.is_some_and(|scope| scope.sort == ScopeSort::Function)
    }

    fn in_type(&self) -> bool {
        self.scopes.last().is_some_and(|scope| scope.sort == ScopeSort::Type)
    }

    fn open(&mut self, depth: usize, name: Piece, sort: ScopeSort) {
        let outer = self.scope();
        let name = self.symbols.inner_scope(outer, name);
        self.scopes.push(Scope { depth, name, sort });
    }

    fn text(&self, node: Node<'_>) -> &'a [u8] {
        &self.bytes[node.byte_range()]
    }

    fn name_of<'t>(&self, node: Node<'t>) -> Option<Node<'t>> {
        node.child_by_field_id(self.grammar.name)
    }

    /// Adds a symbol called as `name` says.
    fn add(&mut self, kind: SymbolKind, whole: Node<'_>, name: Node<'_>) -> Piece {
        let text = self.text(name);
        // `r#type` is called `type`.
        let kept = self.symbols.keep(text.strip_prefix(b"r#").unwrap_or(text));
        let scope = self.scope();
        self.symbols.push(kind, kept, scope, whole.byte_range(), name.start_byte());
        kept
    }

    fn enter(&mut self, node: Node<'_>, depth: usize) -> Descend {
        match self.grammar.role(node) {
            Role::Nothing => {}
            Role::Opaque | Role::PythonImport => return Descend::Over,
            Role::Named(kind) => {
                if let Some(name) = self.name_of(node) {
                    let kept = self.add(kind, node, name);
                    self.open(depth, kept, sort_of(kind));
                }
            }
            Role::Function => self.function(node, depth),
            Role::Outside(kind) => {
                if let (false, Some(name)) = (self.in_function(), self.name_of(node)) {
                    self.add(kind, node, name);
                }
            }
            Role::Anywhere(kind) => {
                if let Some(name) = self.name_of(node) {
                    self.add(kind, node, name);
                }
            }
            Role::Names(kind) => {
                if !self.in_function() {
                    let mut cursor = node.walk();
                    for name in node.children_by_field_name("name", &mut cursor) {
                        if name.is_named() {
                            self.add(kind, node, name);
                        }
                    }
                }
            }
            Role::Body => {
                let scope = Scope { depth, name: self.scope(), sort: ScopeSort::Function };
                self.scopes.push(scope);
            }
            Role::RustImpl => self.rust_impl(node, depth),
            Role::RustField => {
                if let Some(name) = self.name_of(node) {
                    self.add(SymbolKind::Field, node, name);
                }
            }
            Role::RustMacroCall => self.rust_macro_call(node),
            Role::CFunction => self.c_function(node, depth),
            Role::CDeclaration => self.c_declaration(node),
            Role::CField => self.c_field(node),
            Role::CType => self.c_type(node, depth),
            Role::CTypedef => {
                let mut cursor = node.walk();
                let declarators: Vec<_> = node.children_by_field_name("declarator", &mut cursor).collect();
                for declarator in declarators {
                    if let Some(found) = Declared::of(declarator) {
                        self.add(SymbolKind::Type, node, found.name);
                    }
                }
            }
            Role::CMacro => {
                if let Some(name) = self.name_of(node) {
                    self.add(SymbolKind::Macro, node, name);
                }
                return Descend::Over;
            }
            Role::CppNamespace => self.cpp_namespace(node, depth),
            Role::GoMethod => self.go_method(node, depth),
            Role::GoType => self.go_type(node, depth),
            Role::GoField => self.go_field(node),
            Role::GoPackage => {
                if let Some(name) = node.named_child(0) {
                    self.add(SymbolKind::Module, node, name);
                }
            }
            Role::JavaFields => self.java_fields(node),
            Role::JavaPackage => {
                let name = (0..node.named_child_count()).filter_map(|at| node.named_child(index(at)));
                if let Some(name) = name.rev().find(|child| child.kind().ends_with("identifier")) {
                    self.add(SymbolKind::Module, node, name);
                }
            }
            Role::JsVariable => self.js_variable(node, depth),
            Role::JsPair => self.js_pair(node, depth),
            Role::JsAssignment => self.js_assignment(node, depth),
            // A field of a type that a function writes out for itself is nothing to look for.
            Role::JsField if self.in_function() => {}
            Role::JsField => {
                let name = node.child_by_field_name("property").or_else(|| self.name_of(node));
                if let Some(name) = name {
                    let is_function = node
                        .child_by_field_name("value")
                        .is_some_and(|value| self.grammar.is_function(value));
                    let kind = if is_function { SymbolKind::Method } else { SymbolKind::Field };
                    self.add(kind, node, name);
                }
            }
            Role::TsModule => {
                if let Some(name) = self.name_of(node) {
                    let text = unquoted(self.text(name)).to_vec();
                    let kept = self.symbols.keep(&text);
                    let scope = self.scope();
                    self.symbols.push(SymbolKind::Module, kept, scope, node.byte_range(), name.start_byte());
                    self.open(depth, kept, ScopeSort::Space);
                }
            }
            Role::TsEnumBody => {
                let mut cursor = node.walk();
                let members: Vec<_> = node.named_children(&mut cursor).collect();
                for member in members {
                    match member.kind() {
                        "enum_assignment" => {
                            if let Some(name) = self.name_of(member) {
                                self.add(SymbolKind::Variant, member, name);
                            }
                        }
                        "property_identifier" => {
                            self.add(SymbolKind::Variant, member, member);
                        }
                        _ => {}
                    }
                }
                return Descend::Over;
            }
            Role::TsParameter => {
                // A parameter of a constructor that is a property as well.
                let mut cursor = node.walk();
                let is_property = node
                    .children(&mut cursor)
                    .any(|child| matches!(child.kind(), "accessibility_modifier" | "readonly"));
                if let (true, Some(name)) = (is_property, node.child_by_field_name("pattern")) {
                    self.add(SymbolKind::Field, node, name);
                }
            }
            Role::PythonAssignment => self.python_assignment(node),
        }
        Descend::Into
    }

    fn function(&mut self, node: Node<'_>, depth: usize) {
        let Some(name) = self.name_of(node) else {
            self.scopes.push(Scope { depth, name: self.scope(), sort: ScopeSort::Function });
            return;
        };
        let kind = if self.in_type() { SymbolKind::Method } else { SymbolKind::Function };
        let kept = self.add(kind, node, name);
        self.open(depth, kept, ScopeSort::Function);
    }

    fn rust_impl(&mut self, node: Node<'_>, depth: usize) {
        let Some(of) = node.child_by_field_name("type") else { return };
        let of = plain_type(of);
        let kept = self.add(SymbolKind::Impl, node, of);
        // Methods of different traits may have the same name; which trait it is tells them apart whatever comes before.
        let scope = match node.child_by_field_name("trait") {
            Some(implemented) => {
                let mut name = self.text(of).to_vec();
                name.push(b':');
                name.extend_from_slice(self.text(plain_type(implemented)));
                self.symbols.keep(&name)
            }
            None => kept,
        };
        self.open(depth, scope, ScopeSort::Type);
    }

    /// What a macro such as `thread_local!` or `bitflags!` defines stands in it as tokens.
    fn rust_macro_call(&mut self, node: Node<'_>) {
        if self.in_function() {
            return;
        }
        let Some(body) = node.named_child(index(node.named_child_count().saturating_sub(1))) else { return };
        if body.kind() != "token_tree" {
            return;
        }
        let mut keyword: Option<SymbolKind> = None;
        visit(body, |token, _, depth| {
            if depth > 1 {
                // Bodies hold more than definitions.
                return Descend::Over;
            }
            let text = self.text(token);
            if token.child_count() == 0 {
                if let (Some(kind), "identifier") = (keyword, token.kind()) {
                    if text != b"mut" {
                        self.add(kind, token, token);
                        keyword = None;
                    }
                } else {
                    keyword = match text {
                        b"fn" => Some(SymbolKind::Function),
                        b"struct" => Some(SymbolKind::Struct),
                        b"enum" => Some(SymbolKind::Enum),
                        b"trait" => Some(SymbolKind::Trait),
                        b"mod" => Some(SymbolKind::Module),
                        b"static" => Some(SymbolKind::Variable),
                        _ => None,
                    };
                }
            } else {
                keyword = None;
            }
            if depth == 0 { Descend::Into } else { Descend::Over }
        });
    }

    fn go_method(&mut self, node: Node<'_>, depth: usize) {
        let Some(name) = self.name_of(node) else { return };
        let receiver = node
            .child_by_field_name("receiver")
            .and_then(|list| list.named_child(0))
            .and_then(|parameter| parameter.child_by_field_name("type"))
            .map(plain_type);
        let text = self.text(name);
        let kept = self.symbols.keep(text);
        let scope = match receiver {
            Some(receiver) => {
                let text = self.text(receiver);
                self.symbols.keep(text)
            }
            None => Piece::default(),
        };
        self.symbols.push(SymbolKind::Method, kept, scope, node.byte_range(), name.start_byte());
        let inner = self.symbols.inner_scope(scope, kept);
        self.scopes.push(Scope { depth, name: inner, sort: ScopeSort::Function });
    }

    fn go_type(&mut self, node: Node<'_>, depth: usize) {
        let Some(name) = self.name_of(node) else { return };
        let kind = match node.child_by_field_name("type").map(|of| of.kind()) {
            Some("struct_type") => SymbolKind::Struct,
            Some("interface_type") => SymbolKind::Interface,
            _ => SymbolKind::Type,
        };
        let kept = self.add(kind, node, name);
        self.open(depth, kept, ScopeSort::Type);
    }

    fn go_field(&mut self, node: Node<'_>) {
        // A type without a name in a function is nothing to look for.
        if self.in_function() {
            return;
        }
        let mut cursor = node.walk();
        let names: Vec<_> = node.children_by_field_name("name", &mut cursor).collect();
        if names.is_empty()
            && let Some(embedded) = node.child_by_field_name("type")
        {
            self.add(SymbolKind::Field, node, plain_type(embedded));
        }
        for name in names {
            self.add(SymbolKind::Field, node, name);
        }
    }

    fn java_fields(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let declarators: Vec<_> = node.children_by_field_name("declarator", &mut cursor).collect();
        for declarator in declarators {
            if let Some(name) = self.name_of(declarator) {
                self.add(SymbolKind::Field, node, name);
            }
        }
    }

    fn python_assignment(&mut self, node: Node<'_>) {
        let Some(left) = node.child_by_field_name("left") else { return };
        let inside = self.in_function();
        if left.kind() == "identifier"
            && node.child_by_field_name("right").is_some_and(|right| right.kind() == "lambda")
        {
            self.add(if self.in_type() { SymbolKind::Method } else { SymbolKind::Function }, node, left);
            return;
        }
        // `self.x = …` in a method makes a field of the class.
        if inside {
            let scopes = self.scopes.len();
            let (Some(object), Some(attribute)) =
                (left.child_by_field_name("object"), left.child_by_field_name("attribute"))
            else {
                return;
            };
            let of_class = scopes.checked_sub(2).map(|at| &self.scopes[at]);
            if let Some(class) = of_class.filter(|scope| scope.sort == ScopeSort::Type)
                && self.text(object) == b"self"
            {
                let scope = class.name;
                let text = self.text(attribute);
                let kept = self.symbols.keep(text);
                self.symbols.push(SymbolKind::Field, kept, scope, node.byte_range(), attribute.start_byte());
            }
            return;
        }
        let kind_of = |text: &[u8], in_type: bool| {
            let is_constant =
                text.iter().any(u8::is_ascii_uppercase) && !text.iter().any(u8::is_ascii_lowercase);
            match (in_type, is_constant) {
                (true, _) => SymbolKind::Field,
                (_, true) => SymbolKind::Constant,
                _ => SymbolKind::Variable,
            }
        };
        let mut names = vec![left];
        if matches!(left.kind(), "pattern_list" | "tuple_pattern" | "list_pattern") {
            let mut cursor = left.walk();
            names = left.named_children(&mut cursor).collect();
        }
        for name in names.into_iter().filter(|name| name.kind() == "identifier") {
            let kind = kind_of(self.text(name), self.in_type());
            self.add(kind, node, name);
        }
    }
}

fn sort_of(kind: SymbolKind) -> ScopeSort {
    match kind {
        SymbolKind::Method | SymbolKind::Function | SymbolKind::Macro => ScopeSort::Function,
        SymbolKind::Module => ScopeSort::Space,
        _ => ScopeSort::Type,
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\''] | [b'`', inner @ .., b'`'] => inner,
        other => other,
    }
}

/// The name in a type: `Vec` of `&'a mut std::vec::Vec<T>`.
fn plain_type(node: Node<'_>) -> Node<'_> {
    let mut node = node;
    // Types nest, but not without end in anything a person wrote.
    for _ in 0..16 {
        let inner = match node.kind() {
            "generic_type" | "reference_type" | "template_type" | "parenthesized_type" => {
                node.child_by_field_name("type").or_else(|| node.child_by_field_name("name"))
            }
            "scoped_type_identifier" | "qualified_type" | "qualified_identifier" | "scoped_identifier" => {
                node.child_by_field_name("name")
            }
            "pointer_type" => node.child_by_field_name("type").or_else(|| node.named_child(0)),
            _ => None,
        };
        match inner.or_else(|| (node.kind() == "generic_type").then(|| node.named_child(0)).flatten()) {
            Some(inner) => node = inner,
            None => break,
        }
    }
    node
}
