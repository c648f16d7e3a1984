//! What the nodes of each grammar mean.

use std::sync::OnceLock;

use tree_sitter::Node;

use super::super::language::Language;
use super::super::symbol::SymbolKind;

/// What a node defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing; what is in it may.
    Nothing,
    /// Nothing, nor does anything in it: a string, a comment.
    Opaque,
    /// A symbol with a `name` field; what is in it belongs to it.
    Named(SymbolKind),
    /// A function: a method when it is in a type.
    Function,
    /// As [`Role::Named`], but only outside functions.
    Outside(SymbolKind),
    /// As [`Role::Named`], without anything in it.
    Anywhere(SymbolKind),
    /// Several names in `name` fields, outside functions.
    Names(SymbolKind),
    /// A function without a name, or a block that is one: names in it are local.
    Body,
    RustImpl,
    RustField,
    RustMacroCall,
    CFunction,
    CDeclaration,
    CField,
    CType,
    CTypedef,
    CMacro,
    CppNamespace,
    GoMethod,
    GoType,
    GoField,
    GoPackage,
    JavaFields,
    JavaPackage,
    JsVariable,
    JsPair,
    JsAssignment,
    JsField,
    TsModule,
    TsEnumBody,
    TsParameter,
    PythonAssignment,
    PythonImport,
}

/// A grammar with what its nodes mean.
pub(super) struct Grammar {
    pub(super) language: tree_sitter::Language,
    roles: Vec<Role>,
    pub(super) name: u16,
}

use Role::{
    Anywhere, Body, CDeclaration, CField, CFunction, CMacro, CType, CTypedef, CppNamespace, Function,
    GoField, GoMethod, GoPackage, GoType, JavaFields, JavaPackage, JsAssignment, JsField, JsPair, JsVariable,
    Named, Names, Nothing, Opaque, Outside, PythonAssignment, PythonImport, RustField, RustImpl,
    RustMacroCall, TsEnumBody, TsModule, TsParameter,
};
use SymbolKind::{
    Class, Constant, Enum, Interface, Macro, Method, Module, Struct, Trait, Type, Union, Variable, Variant,
};

type Roles = &'static [(&'static str, Role)];

const RUST: Roles = &[
    ("function_item", Function),
    ("function_signature_item", Function),
    ("struct_item", Named(Struct)),
    ("enum_item", Named(Enum)),
    ("union_item", Named(Union)),
    ("enum_variant", Named(Variant)),
    ("field_declaration", RustField),
    ("trait_item", Named(Trait)),
    ("type_item", Named(Type)),
    ("associated_type", Named(Type)),
    ("const_item", Anywhere(Constant)),
    ("static_item", Anywhere(Variable)),
    ("mod_item", Named(Module)),
    ("macro_definition", Named(Macro)),
    ("impl_item", RustImpl),
    ("macro_invocation", RustMacroCall),
    ("closure_expression", Body),
    ("string_literal", Opaque),
    ("raw_string_literal", Opaque),
    ("line_comment", Opaque),
    ("block_comment", Opaque),
    ("token_tree", Opaque),
    ("attribute_item", Opaque),
    ("use_declaration", Opaque),
];

const SCRIPT: Roles = &[
    ("function_declaration", Function),
    ("generator_function_declaration", Function),
    ("function_expression", Function),
    ("generator_function", Function),
    ("arrow_function", Body),
    ("class_declaration", Named(Class)),
    ("class", Named(Class)),
    ("method_definition", Named(Method)),
    ("field_definition", JsField),
    ("variable_declarator", JsVariable),
    ("pair", JsPair),
    ("assignment_expression", JsAssignment),
    ("string", Opaque),
    ("comment", Opaque),
    ("regex", Opaque),
    ("import_statement", Opaque),
];

const TYPED_SCRIPT: Roles = &[
    ("abstract_class_declaration", Named(Class)),
    ("interface_declaration", Named(Interface)),
    ("type_alias_declaration", Named(Type)),
    ("enum_declaration", Named(Enum)),
    ("enum_body", TsEnumBody),
    ("function_signature", Function),
    ("method_signature", Named(Method)),
    ("abstract_method_signature", Named(Method)),
    ("property_signature", JsField),
    ("public_field_definition", JsField),
    ("internal_module", TsModule),
    ("module", TsModule),
    ("required_parameter", TsParameter),
    ("optional_parameter", TsParameter),
];

const PYTHON: Roles = &[
    ("function_definition", Function),
    ("class_definition", Named(Class)),
    ("assignment", PythonAssignment),
    ("type_alias_statement", Nothing),
    ("lambda", Body),
    ("string", Opaque),
    ("comment", Opaque),
    ("import_statement", PythonImport),
    ("import_from_statement", PythonImport),
];

const GO: Roles = &[
    ("function_declaration", Function),
    ("method_declaration", GoMethod),
    ("type_spec", GoType),
    ("type_alias", Named(Type)),
    ("const_spec", Names(Constant)),
    ("var_spec", Names(Variable)),
    ("field_declaration", GoField),
    ("method_elem", Outside(Method)),
    ("package_clause", GoPackage),
    ("func_literal", Body),
    ("interpreted_string_literal", Opaque),
    ("raw_string_literal", Opaque),
    ("comment", Opaque),
];

const JAVA: Roles = &[
    ("class_declaration", Named(Class)),
    ("interface_declaration", Named(Interface)),
    ("enum_declaration", Named(Enum)),
    ("record_declaration", Named(Class)),
    ("annotation_type_declaration", Named(Interface)),
    ("annotation_type_element_declaration", Named(Method)),
    ("method_declaration", Function),
    ("constructor_declaration", Function),
    ("compact_constructor_declaration", Function),
    ("field_declaration", JavaFields),
    ("constant_declaration", JavaFields),
    ("enum_constant", Named(Variant)),
    ("package_declaration", JavaPackage),
    ("lambda_expression", Body),
    ("static_initializer", Body),
    ("block_comment", Opaque),
    ("line_comment", Opaque),
    ("string_literal", Opaque),
    ("import_declaration", Opaque),
];

const C: Roles = &[
    ("function_definition", CFunction),
    ("declaration", CDeclaration),
    ("field_declaration", CField),
    ("struct_specifier", CType),
    ("union_specifier", CType),
    ("enum_specifier", CType),
    ("enumerator", Named(Variant)),
    ("type_definition", CTypedef),
    ("preproc_def", CMacro),
    ("preproc_function_def", CMacro),
    ("string_literal", Opaque),
    ("comment", Opaque),
    ("preproc_include", Opaque),
    ("initializer_list", Opaque),
    ("parameter_list", Opaque),
];

const CPP: Roles = &[
    ("class_specifier", CType),
    ("namespace_definition", CppNamespace),
    ("namespace_alias_definition", Outside(Module)),
    ("alias_declaration", Anywhere(Type)),
    ("concept_definition", Outside(Type)),
    ("lambda_expression", Body),
    ("raw_string_literal", Opaque),
];

impl Grammar {
    /// The grammar of a language, if there is one.
    pub(super) fn of(language: Language) -> Option<&'static Self> {
        macro_rules! grammars {
            ($($name:ident => $grammar:expr, $roles:expr;)+) => {
                match language {
                    $(Language::$name => {
                        static GRAMMAR: OnceLock<Grammar> = OnceLock::new();
                        Some(GRAMMAR.get_or_init(|| Grammar::new($grammar.into(), $roles)))
                    })+
                    _ => None,
                }
            };
        }
        grammars! {
            Rust => tree_sitter_rust::LANGUAGE, &[RUST];
            JavaScript => tree_sitter_javascript::LANGUAGE, &[SCRIPT];
            TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT, &[SCRIPT, TYPED_SCRIPT];
            Tsx => tree_sitter_typescript::LANGUAGE_TSX, &[SCRIPT, TYPED_SCRIPT];
            Python => tree_sitter_python::LANGUAGE, &[PYTHON];
            Go => tree_sitter_go::LANGUAGE, &[GO];
            Java => tree_sitter_java::LANGUAGE, &[JAVA];
            C => tree_sitter_c::LANGUAGE, &[C];
            Cpp => tree_sitter_cpp::LANGUAGE, &[C, CPP];
        }
    }

    fn new(language: tree_sitter::Language, lists: &[Roles]) -> Self {
        let mut roles = vec![Nothing; language.node_kind_count()];
        for (kind, role) in lists.iter().copied().flatten() {
            // A kind may have several numbers, and a keyword the same name as a node.
            for (number, slot) in roles.iter_mut().enumerate() {
                let id = u16::try_from(number).unwrap_or(u16::MAX);
                if language.node_kind_is_named(id) && language.node_kind_for_id(id) == Some(kind) {
                    *slot = *role;
                }
            }
        }
        let name = language.field_id_for_name("name").map_or(0, std::num::NonZeroU16::get);
        Self { language, roles, name }
    }

    pub(super) fn role(&self, node: Node<'_>) -> Role {
        self.roles.get(usize::from(node.kind_id())).copied().unwrap_or(Nothing)
    }

    /// Whether names in a node are local to it.
    pub(super) fn is_function(&self, node: Node<'_>) -> bool {
        match self.role(node) {
            Function | Body | CFunction | GoMethod => true,
            Named(Method) => node.child_by_field_name("body").is_some(),
            _ => false,
        }
    }

    /// Whether a name is one of a member: what stands behind a dot.
    pub(super) fn is_member(node: Node<'_>) -> bool {
        if matches!(node.kind(), "field_identifier" | "property_identifier" | "private_property_identifier") {
            return true;
        }
        let Some(parent) = node.parent() else { return false };
        let is_field = |field: &str| parent.child_by_field_name(field) == Some(node);
        match parent.kind() {
            "attribute" => is_field("attribute"),
            "field_access" => is_field("field"),
            "method_invocation" => is_field("name") && parent.child_by_field_name("object").is_some(),
            "scoped_identifier" | "qualified_identifier" | "keyword_argument" => is_field("name"),
            _ => false,
        }
    }

    /// Whether a name is given its meaning where it stands.
    pub(super) fn binds(&self, node: Node<'_>) -> bool {
        let mut inner = node;
        let mut above = node.parent();
        while let Some(parent) = above {
            let is_declarator =
                parent.kind().ends_with("declarator") && parent.kind() != "variable_declarator";
            if is_declarator && parent.child_by_field_name("declarator") == Some(inner) {
                (inner, above) = (parent, parent.parent());
                continue;
            }
            let holds = |field: &str| parent.child_by_field_name(field) == Some(inner);
            return match self.role(parent) {
                Nothing | Opaque | Body => {
                    matches!(parent.kind(), "variable_declarator" | "const_spec" | "var_spec")
                        && holds("name")
                }
                PythonAssignment | JsAssignment => holds("left"),
                JsPair => holds("key"),
                CFunction | CDeclaration | CField | CTypedef => holds("declarator"),
                RustImpl => false,
                _ => holds("name") || holds("property"),
            };
        }
        false
    }

    /// Whether a name is bound as a parameter or a variable of `function`.
    pub(super) fn binds_locally(node: Node<'_>, function: Node<'_>) -> bool {
        let mut inner = node;
        let mut above = node.parent();
        while let Some(parent) = above {
            if parent == function {
                // `x => …` and `lambda x: …`; a function's own name is not local to it.
                return parent.child_by_field_name("parameter") == Some(inner);
            }
            let holds = |field: &str| parent.child_by_field_name(field) == Some(inner);
            let kind = parent.kind();
            match kind {
                "let_declaration" | "let_condition" | "match_arm" | "for_expression" => {
                    return holds("pattern");
                }
                "for_statement"
                | "for_in_clause"
                | "for_in_statement"
                | "range_clause"
                | "short_var_declaration"
                | "assignment"
                | "named_expression"
                | "enhanced_for_statement" => {
                    return holds("left") || holds("name");
                }
                "parameter"
                | "parameter_declaration"
                | "required_parameter"
                | "optional_parameter"
                | "formal_parameter"
                | "spread_parameter"
                | "typed_parameter"
                | "default_parameter"
                | "typed_default_parameter"
                | "catch_formal_parameter"
                | "optional_parameter_declaration"
                | "variadic_parameter_declaration"
                | "resource" => {
                    let named = ["pattern", "name", "declarator"].iter().any(|field| holds(field));
                    return named || (kind == "typed_parameter" && inner == node);
                }
                "parameters"
                | "formal_parameters"
                | "closure_parameters"
                | "lambda_parameters"
                | "inferred_parameters"
                | "as_pattern_target"
                | "with_item"
                | "except_clause"
                | "catch_clause" => return true,
                "variable_declarator" | "init_declarator" | "declaration" => {
                    if holds("name") || (kind != "variable_declarator" && holds("declarator")) {
                        return true;
                    }
                    return false;
                }
                "var_spec" | "const_spec" => return node == inner && holds_name(parent, inner),
                "type" | "type_annotation" | "call" | "call_expression" | "attribute" | "subscript"
                | "field_expression" | "member_expression" | "arguments" | "argument_list" | "block" => {
                    return false;
                }
                _ => {}
            }
            (inner, above) = (parent, parent.parent());
        }
        false
    }
}

fn holds_name(parent: Node<'_>, inner: Node<'_>) -> bool {
    let mut cursor = parent.walk();
    parent.children_by_field_name("name", &mut cursor).any(|name| name == inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new version of a grammar may rename nodes; this says so before symbols go missing.
    #[test]
    fn every_node_of_the_tables_is_in_its_grammar() {
        let lists: [(Language, &[Roles]); 9] = [
            (Language::Rust, &[RUST]),
            (Language::JavaScript, &[SCRIPT]),
            (Language::TypeScript, &[TYPED_SCRIPT]),
            (Language::Tsx, &[TYPED_SCRIPT]),
            (Language::Python, &[PYTHON]),
            (Language::Go, &[GO]),
            (Language::Java, &[JAVA]),
            (Language::C, &[C]),
            (Language::Cpp, &[C, CPP]),
        ];
        for (language, roles) in lists {
            let grammar = Grammar::of(language).unwrap();
            for (kind, _) in roles.iter().copied().flatten() {
                assert_ne!(grammar.language.id_for_node_kind(kind, true), 0, "{language:?} has no {kind}");
            }
        }
    }
}
