//! Reads shell text with the tree-sitter grammar: every command in it, wherever it stands.
//!
//! The tree is walked without recursion, so nesting costs no stack, and both parsing and walking have a budget in
//! steps rather than in time, so that the same text always gets the same answer.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::OnceLock;

use tree_sitter::{Language, Node, ParseOptions, Parser, Tree};

use super::words::{SimpleCommand, Word, dequote};
use super::{Budget, Opaque};

/// What the walk does with a node of some kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Holds nothing of its own; look inside.
    Transparent,
    Command,
    Expansion,
    Assignment,
    Heredoc,
    /// May run or hide anything: no statement about the text can be proved.
    Hard(Opaque),
}

fn role(kind: &str) -> Role {
    match kind {
        "command" => Role::Command,
        "expansion" => Role::Expansion,
        "variable_assignment" => Role::Assignment,
        "heredoc_body" => Role::Heredoc,
        "program"
        | "list"
        | "pipeline"
        | "command_name"
        | "word"
        | "string"
        | "string_content"
        | "raw_string"
        | "concatenation"
        | "number"
        | "redirected_statement"
        | "file_redirect"
        | "file_descriptor"
        | "heredoc_redirect"
        | "heredoc_start"
        | "heredoc_content"
        | "heredoc_end"
        | "herestring_redirect"
        | "command_substitution"
        | "process_substitution"
        | "subshell"
        | "compound_statement"
        | "if_statement"
        | "elif_clause"
        | "else_clause"
        | "while_statement"
        | "for_statement"
        | "do_group"
        | "case_statement"
        | "case_item"
        | "negated_command"
        | "comment"
        | "simple_expansion"
        | "variable_name"
        | "special_variable_name"
        | "variable_assignments"
        | "brace_expression"
        | "extglob_pattern"
        | "ansi_c_string" => Role::Transparent,
        "arithmetic_expansion" | "c_style_for_statement" | "binary_expression" | "subscript" | "array" => {
            Role::Hard(Opaque::Arithmetic)
        }
        "test_command" => Role::Hard(Opaque::Test),
        "function_definition" => Role::Hard(Opaque::Function),
        "declaration_command" | "unset_command" => Role::Hard(Opaque::EvaluatingBuiltin),
        "ERROR" => Role::Hard(Opaque::Syntax),
        _ => Role::Hard(Opaque::Unsupported),
    }
}

struct Grammar {
    language: Language,
    /// By kind id, so that the walk compares no strings.
    roles: Vec<Role>,
}

fn grammar() -> &'static Grammar {
    static GRAMMAR: OnceLock<Grammar> = OnceLock::new();
    GRAMMAR.get_or_init(|| {
        let language = Language::new(tree_sitter_bash::LANGUAGE);
        let count = u16::try_from(language.node_kind_count()).unwrap_or(u16::MAX);
        let roles = (0..count)
            .map(|id| {
                // Keywords and punctuation are spelled by their text; what they introduce is judged by the named
                // node around them.
                if language.node_kind_is_named(id) {
                    role(language.node_kind_for_id(id).unwrap_or_default())
                } else {
                    Role::Transparent
                }
            })
            .collect();
        Grammar { language, roles }
    })
}

thread_local! {
    // Making a parser costs more than a whole decision.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// The text as the grammar may see it, byte for byte as long: letters for what is not ASCII, blanks for controls.
///
/// The grammar's scanner is C code that hands every code point to `isdigit`, which reads out of bounds for large ones:
/// `echo {\u{10ffff}` crashed it. To bash all such characters are parts of words, as letters are. The words themselves
/// are taken from the real text.
fn mask(text: &str) -> Cow<'_, [u8]> {
    let odd = |b: u8| !b.is_ascii() || (b.is_ascii_control() && !matches!(b, b'\n' | b'\t'));
    if !text.bytes().any(odd) {
        return Cow::Borrowed(text.as_bytes());
    }
    text.bytes()
        .map(|b| match b {
            b if !b.is_ascii() => b'x',
            b if odd(b) => b' ',
            b => b,
        })
        .collect()
}

fn parse(text: &str, budget: &mut Budget) -> Result<Tree, Opaque> {
    PARSER.with_borrow_mut(|slot| {
        if slot.is_none() {
            let mut parser = Parser::new();
            parser.set_language(&grammar().language).map_err(|_| Opaque::Unsupported)?;
            *slot = Some(parser);
        }
        let Some(parser) = slot else { return Err(Opaque::Unsupported) };
        let masked = mask(text);
        let bytes: &[u8] = &masked;
        let mut progress = |_: &tree_sitter::ParseState| {
            if budget.spend_parse() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let tree = parser.parse_with_options(&mut |at, _| &bytes[at.min(bytes.len())..], None, Some(options));
        if tree.is_none() {
            // Otherwise the next text would be parsed as the continuation of this one.
            parser.reset();
        }
        tree.ok_or(Opaque::TooComplex)
    })
}

/// More openings than a command line has that someone reads. Some make the parser look ahead to the end of the text
/// again and again, which its progress reports do not count; for those the limits fall with the length of the text.
fn is_overgrown(text: &str) -> bool {
    const MAX_OPENINGS: usize = 192;
    const MAX_BARS: usize = 512;
    const MAX_HEREDOCS: usize = 16;
    const MAX_LOOKAHEAD: usize = 48 * 1024;
    let far = ["=(", "((", "${"].iter().map(|opening| text.matches(opening).count()).sum::<usize>();
    let count = |wanted: &[u8]| text.bytes().filter(|b| wanted.contains(b)).count();
    count(b"({`") > MAX_OPENINGS
        // What closes nothing, bars and hashes in a row, `=~` and `]]` outside a test are slow to recover from.
        || count(b")") > MAX_OPENINGS
        || count(b"|") > MAX_BARS
        || count(b"#") > MAX_BARS
        || text.matches("=~").count() > MAX_HEREDOCS
        || text.matches("]]").count() > MAX_OPENINGS
        || text.matches("<<").count() > MAX_HEREDOCS
        || far * text.len() > MAX_LOOKAHEAD
}

/// What a walk over the tree of some text found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Every command, in the order they stand in the text, also inside substitutions and control structures.
    pub(super) commands: Vec<SimpleCommand>,
    /// The first thing that makes the list of commands worthless as a proof.
    pub(super) hard: Option<Opaque>,
    /// The text of heredocs and here-strings, which some program will read.
    pub(super) documents: Vec<String>,
}

/// Finds the commands of `text`, which is not parsed when it is longer than `limit`.
pub(super) fn find(text: &str, limit: usize, budget: &mut Budget) -> Found {
    let mut found = Found::default();
    if text.len() > limit || budget.is_spent() || is_overgrown(text) {
        found.hard = Some(Opaque::TooComplex);
        return found;
    }
    let tree = match parse(text, budget) {
        Ok(tree) => tree,
        Err(reason) => {
            found.hard = Some(reason);
            return found;
        }
    };
    let roles = &grammar().roles;
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if !budget.spend_node() {
            found.hard.get_or_insert(Opaque::TooComplex);
            return found;
        }
        if node.is_missing() {
            found.hard.get_or_insert(Opaque::Syntax);
        }
        let role = roles.get(usize::from(node.kind_id())).copied().unwrap_or(Role::Hard(Opaque::Syntax));
        visit(&node, role, text, &mut found);
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

fn visit(node: &Node<'_>, role: Role, text: &str, found: &mut Found) {
    let source = text.get(node.byte_range()).unwrap_or_default();
    match role {
        Role::Transparent => {
            if node.kind() == "herestring_redirect" {
                found
                    .documents
                    .push(dequote(source.trim_start_matches(|c: char| c == '<' || c.is_whitespace())).text);
            }
        }
        Role::Command => {
            let command = command(node, text, source);
            match command.words.first() {
                Some(program) if program.exact && !program.text.is_empty() => {}
                Some(_) => {
                    found.hard.get_or_insert(Opaque::ProgramUnknown);
                }
                None => {}
            }
            found.commands.push(command);
        }
        Role::Expansion => {
            if !is_simple_expansion(source) {
                found.hard.get_or_insert(Opaque::Expansion);
            }
        }
        Role::Assignment => {
            if !is_harmless_assignment(source) {
                found.hard.get_or_insert(Opaque::Assignment);
            }
        }
        Role::Heredoc => {
            if source.contains('`') || source.contains("$(") || source.contains("$[") {
                found.hard.get_or_insert(Opaque::Heredoc);
            }
            found.documents.push(source.to_owned());
        }
        Role::Hard(reason) => {
            found.hard.get_or_insert(reason);
        }
    }
}

fn command(node: &Node<'_>, text: &str, source: &str) -> SimpleCommand {
    let mut cursor = node.walk();
    let words: Vec<Word> = node
        .children(&mut cursor)
        .filter(|child| {
            !matches!(
                child.kind(),
                "variable_assignment"
                    | "file_redirect"
                    | "herestring_redirect"
                    | "heredoc_redirect"
                    | "comment"
            )
        })
        .map(|child| dequote(text.get(child.byte_range()).unwrap_or_default()))
        .collect();
    SimpleCommand::from_source(words, source)
}

/// `${name}` and the forms that put in other text; not `${!x}`, `${x@P}`, subscripts and offsets, which evaluate, nor
/// backticks, which the grammar does not see in there.
fn is_simple_expansion(source: &str) -> bool {
    let Some(inner) = source.strip_prefix("${").and_then(|s| s.strip_suffix('}')) else { return false };
    let name = inner.trim_start_matches('#');
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(name.len());
    let (name, operator) = name.split_at(end);
    let operator_is_text = operator.is_empty()
        || operator.starts_with(['-', '+', '?', '%', '#', '/', '^', ','])
        || (operator.starts_with(':') && operator[1..].starts_with(['-', '+', '?', '=']))
        || operator.starts_with('=');
    !name.is_empty() && operator_is_text && !operator.contains(['[', '@', '`'])
}

/// An assignment that changes neither which program a name stands for nor what a shell runs by itself.
fn is_harmless_assignment(source: &str) -> bool {
    let Some((name, value)) = source.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let ordinary = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let steers =
        matches!(
            name,
            "PATH"
                | "ENV"
                | "IFS"
                | "SHELL"
                | "SHELLOPTS"
                | "PS4"
                | "PS1"
                | "PROMPT_COMMAND"
                | "EDITOR"
                | "VISUAL"
                | "PAGER"
                | "CDPATH"
                | "HOME"
                | "NODE_OPTIONS"
                | "RUBYOPT"
                | "PERL5OPT"
                | "PERL5LIB"
                | "PYTHONPATH"
                | "PYTHONSTARTUP"
        ) || ["LD_", "DYLD_", "BASH", "GIT_", "FUNCNAME"].iter().any(|prefix| name.starts_with(prefix));
    ordinary && !steers && !value.starts_with('(')
}
