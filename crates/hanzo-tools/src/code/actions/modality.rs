//! What sort of thing a search text is, and so where to look for it (R297).

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::language::Language;

/// A way to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in super::super) enum Modality {
    /// Lines of text.
    Text,
    /// Syntax trees.
    Ast,
    /// Names of definitions.
    Symbol,
    /// Names of files.
    File,
    /// Likeness of meaning.
    Vector,
    /// What was remembered.
    Memory,
}

impl Modality {
    /// Whether this build can search that way.
    pub(super) fn is_available(self) -> bool {
        match self {
            Self::Text | Self::Symbol | Self::File => true,
            Self::Ast => cfg!(feature = "grammars"),
            // They join with embeddings and the memory tool.
            Self::Vector | Self::Memory => false,
        }
    }
}

/// Endings of files that are no source.
const OTHER_ENDINGS: &[&str] = &[
    "json", "toml", "yaml", "yml", "xml", "html", "css", "scss", "txt", "lock", "cfg", "ini", "conf", "env",
    "csv", "svg", "png", "log",
];

/// How to search for `query`: natural language by meaning and text, code by trees and text, an identifier by symbols and text,
/// a path or an ending by file names and text.
pub(in super::super) fn detect(query: &str) -> [Modality; 2] {
    let query = query.trim();
    let first = if is_path(query) {
        Modality::File
    } else if is_identifier(query) {
        Modality::Symbol
    } else if is_code(query) {
        Modality::Ast
    } else {
        Modality::Vector
    };
    [first, Modality::Text]
}

fn is_path(query: &str) -> bool {
    if query.contains(char::is_whitespace) || query.contains(['(', '{', ';', '=', '"', '<']) {
        return false;
    }
    let is_glob = query.contains('*') && (query.contains('.') || query.contains('/'));
    let ending = query.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let known_ending = ending.as_deref().is_some_and(|ending| OTHER_ENDINGS.contains(&ending))
        || (query.contains('.') && Language::of_path(Path::new(query)).is_some());
    let has_slash = query.contains('/') && !query.contains("//");
    is_glob || known_ending || has_slash
}

fn is_identifier(query: &str) -> bool {
    let plain = query.trim_end_matches("()").replace("::", ".").replace("->", ".");
    !plain.is_empty()
        && plain.split('.').all(|part| {
            let part = part.trim_start_matches(['$', '#', '@']);
            part.chars().next().is_some_and(|first| first.is_alphabetic() || first == '_')
                && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$')
        })
}

fn is_code(query: &str) -> bool {
    let bytes = query.as_bytes();
    let has_hole =
        bytes.windows(2).any(|pair| pair[0] == b'$' && (pair[1].is_ascii_uppercase() || pair[1] == b'$'));
    if has_hole {
        return true;
    }
    let marks = ["=>", "->", "::", "==", "!=", "&&", "||", "();", "{}", "[]", "+=", ":="];
    if marks.iter().any(|mark| query.contains(mark)) {
        return true;
    }
    // A bracket right behind a name is a call; one behind a space is an aside.
    let is_call =
        bytes.windows(2).any(|pair| (pair[0].is_ascii_alphanumeric() || pair[0] == b'_') && pair[1] == b'(');
    let is_query = query.starts_with('(') && query.contains('@');
    let is_statement = query.ends_with([';', '{']) || query.contains(" = ");
    let keyword = query.split_whitespace().next().unwrap_or_default();
    let starts_like_code = matches!(
        keyword,
        "fn" | "func"
            | "def"
            | "class"
            | "struct"
            | "enum"
            | "impl"
            | "let"
            | "const"
            | "var"
            | "import"
            | "#include"
            | "async"
            | "pub"
    ) && query.split_whitespace().count() <= 3;
    is_call || is_query || is_statement || starts_like_code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_where_to_look() {
        for (query, first) in [
            ("UserService", Modality::Symbol),
            ("parse_config", Modality::Symbol),
            ("Parser::parse", Modality::Symbol),
            ("self.index", Modality::Symbol),
            ("main()", Modality::Symbol),
            ("src/main.rs", Modality::File),
            ("*.toml", Modality::File),
            ("Cargo.toml", Modality::File),
            ("lib.rs", Modality::File),
            ("foo($A, $B)", Modality::Ast),
            ("if x == null", Modality::Ast),
            ("fn parse", Modality::Ast),
            ("open(path, \"r\")", Modality::Ast),
            ("(call_expression) @call", Modality::Ast),
            ("how are retries configured", Modality::Vector),
            ("where do we check the password?", Modality::Vector),
            ("errors (and warnings) in logs", Modality::Vector),
        ] {
            assert_eq!(detect(query), [first, Modality::Text], "{query}");
        }
    }
}
