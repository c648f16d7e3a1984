//! The backend for languages without a grammar, and for files a grammar gives up on: patterns over lines.

use std::sync::OnceLock;

use grep_matcher::{Captures as _, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::backend::{Backend, Fault, GaveUp, Limits, NameAt, Occurrence, OccurrenceRole, Operation};
use super::language::Language;
use super::source::Source;
use super::symbol::{FileSymbols, Piece, SymbolKind};

/// Patterns over lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heuristic;

/// A sort of symbol, and the pattern whose first group is its name.
type Rule = (SymbolKind, &'static str);

use SymbolKind::{
    Class, Constant, Enum, Function, Interface, Macro, Method, Module, Section, Struct, Trait, Type, Variable,
};

const MODIFIERS: &str = r"(?:(?:pub(?:\([^)]*\))?|public|private|protected|internal|fileprivate|open|static|final|abstract|sealed|override|virtual|async|export|default|declare|extern|unsafe|const|inline|suspend|data|partial|readonly|implicit|case|lazy|mutating|external|operator)\s+)*";

/// The patterns of a language; `MODS` stands for words such as `public static`.
fn rules(language: Language) -> &'static [Rule] {
    match language {
        Language::Rust => &[
            (Function, r#"^\s*MODS(?:extern\s+"[^"]*"\s+)?fn\s+(\w+)"#),
            (Struct, r"^\s*MODSstruct\s+(\w+)"),
            (Enum, r"^\s*MODSenum\s+(\w+)"),
            (Trait, r"^\s*MODStrait\s+(\w+)"),
            (Module, r"^\s*MODSmod\s+(\w+)"),
            (Type, r"^\s*MODStype\s+(\w+)"),
            (Macro, r"^\s*macro_rules!\s*(\w+)"),
            (Constant, r"^\s*(?:pub(?:\([^)]*\))?\s+)?const\s+(\w+)\s*:"),
        ],
        Language::JavaScript | Language::TypeScript | Language::Tsx => &[
            (Function, r"^\s*MODSfunction\s*\*?\s*([\w$]+)"),
            (Class, r"^\s*MODSclass\s+([\w$]+)"),
            (Interface, r"^\s*MODSinterface\s+([\w$]+)"),
            (Type, r"^\s*MODStype\s+([\w$]+)\s*(?:<[^=]*>)?\s*="),
            (Enum, r"^\s*MODSenum\s+([\w$]+)"),
            (Variable, r"^(?:export\s+)?(?:const|let|var)\s+([\w$]+)"),
        ],
        Language::Python => &[
            (Function, r"^\s*(?:async\s+)?def\s+(\w+)"),
            (Class, r"^\s*class\s+(\w+)"),
            (Variable, r"^(\w+)\s*(?::[^=\n]+)?=[^=]"),
        ],
        Language::Go => &[
            (Function, r"^func\s+(\w+)"),
            (Method, r"^func\s*\([^)]*\)\s*(\w+)"),
            (Type, r"^type\s+(\w+)"),
            (Constant, r"^const\s+(\w+)"),
            (Variable, r"^var\s+(\w+)"),
        ],
        Language::Java | Language::CSharp | Language::Dart => &[
            (Class, r"^\s*MODS(?:class|record|struct)\s+(\w+)"),
            (Interface, r"^\s*MODS@?interface\s+(\w+)"),
            (Enum, r"^\s*MODSenum\s+(\w+)"),
            (Module, r"^\s*(?:namespace|package|library)\s+([\w.]+)"),
            (
                Method,
                r"^\s+(?:(?:public|private|protected|internal|static|final|abstract|override|virtual|async|synchronized)\s+)+[\w<>\[\],.?]+\s+(\w+)\s*\(",
            ),
        ],
        Language::C | Language::Cpp | Language::ObjectiveC => &[
            (Macro, r"^\s*#\s*define\s+(\w+)"),
            (Struct, r"^\s*(?:typedef\s+)?struct\s+(\w+)[^;()]*$"),
            (Class, r"^\s*(?:class|@interface|@implementation)\s+(\w+)[^;]*$"),
            (Enum, r"^\s*(?:typedef\s+)?enum\s+(?:class\s+)?(\w+)[^;]*$"),
            (Module, r"^\s*namespace\s+([\w:]+)"),
            (Function, r"^[A-Za-z_][\w\s*&:<>,]*?[\s*&:](~?\w+)\s*\([^;{}]*\)\s*(?:const)?\s*\{?\s*$"),
            (Method, r"^[-+]\s*\([^)]*\)\s*(\w+)"),
        ],
        Language::Kotlin | Language::Scala | Language::Swift => &[
            (Function, r"^\s*MODS(?:fun|func|def)\s+(?:<[^>]*>\s*)?(?:[\w?]+\.)?(\w+)"),
            (Class, r"^\s*MODS(?:class|object|actor|extension)\s+(\w+)"),
            (Struct, r"^\s*MODSstruct\s+(\w+)"),
            (Interface, r"^\s*MODS(?:interface|protocol)\s+(\w+)"),
            (Trait, r"^\s*MODStrait\s+(\w+)"),
            (Enum, r"^\s*MODSenum\s+(?:class\s+)?(\w+)"),
            (Type, r"^\s*MODS(?:typealias|type)\s+(\w+)"),
            (Variable, r"^MODS(?:val|var|let)\s+(\w+)"),
        ],
        Language::Ruby => &[
            (Class, r"^\s*class\s+([\w:]+)"),
            (Module, r"^\s*module\s+([\w:]+)"),
            (Method, r"^\s*def\s+(?:self\.)?([\w?!=]+)"),
            (Constant, r"^\s*([A-Z]\w*)\s*=[^=]"),
        ],
        Language::Php => &[
            (Function, r"^\s*MODSfunction\s+&?(\w+)"),
            (Class, r"^\s*MODSclass\s+(\w+)"),
            (Interface, r"^\s*MODSinterface\s+(\w+)"),
            (Trait, r"^\s*MODStrait\s+(\w+)"),
            (Module, r"^\s*namespace\s+([\w\\]+)"),
        ],
        Language::Elixir => &[
            (Module, r"^\s*def(?:module|protocol|impl)\s+([\w.]+)"),
            (Function, r"^\s*defp?\s+(\w+[?!]?)"),
            (Macro, r"^\s*defmacrop?\s+(\w+[?!]?)"),
        ],
        Language::Haskell => &[
            (Type, r"^(?:data|newtype|type)\s+(\w+)"),
            (Class, r"^class\s+(?:[^=]*=>\s*)?(\w+)"),
            (Function, r"^([a-z_][\w']*)\s*::"),
            (Module, r"^module\s+([\w.]+)"),
        ],
        Language::Lua => &[
            (Function, r"^\s*(?:local\s+)?function\s+([\w.:]+)"),
            (Function, r"^\s*(?:local\s+)?([\w.]+)\s*=\s*function\b"),
        ],
        Language::Perl => &[(Function, r"^\s*sub\s+(\w+)"), (Module, r"^\s*package\s+([\w:]+)")],
        Language::Shell => &[
            (Function, r"^\s*(?:function\s+)?([\w:-]+)\s*\(\s*\)"),
            (Function, r"^\s*function\s+([\w:-]+)"),
            (Variable, r"^(?:export\s+|readonly\s+|declare\s+(?:-\w+\s+)*)?([A-Za-z_]\w*)="),
        ],
        Language::Sql => &[
            (
                Struct,
                r#"(?i)^\s*create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:table|(?:materialized\s+)?view)\s+(?:if\s+not\s+exists\s+)?[\[`"]?([\w.]+)"#,
            ),
            (
                Function,
                r#"(?i)^\s*create\s+(?:or\s+replace\s+)?(?:function|procedure|trigger)\s+[\[`"]?([\w.]+)"#,
            ),
            (
                Type,
                r#"(?i)^\s*create\s+(?:type|domain|(?:unique\s+)?index)\s+(?:if\s+not\s+exists\s+)?[\[`"]?([\w.]+)"#,
            ),
        ],
        Language::Make => {
            &[(Section, r"^([\w./%-]+)\s*:(?:[^=]|$)"), (Variable, r"^\s*(?:export\s+)?(\w+)\s*[:?+]?=")]
        }
        Language::Markdown => &[(Section, r"^#{1,6}\s+(.{1,120}?)\s*#*\s*$")],
        Language::Protobuf => &[
            (Struct, r"^\s*message\s+(\w+)"),
            (Enum, r"^\s*enum\s+(\w+)"),
            (Interface, r"^\s*service\s+(\w+)"),
            (Method, r"^\s*rpc\s+(\w+)"),
            (Module, r"^\s*package\s+([\w.]+)"),
        ],
        Language::Zig => &[
            (Function, r"^\s*MODSfn\s+(\w+)"),
            (Struct, r"^\s*(?:pub\s+)?const\s+(\w+)\s*=\s*(?:packed\s+|extern\s+)?(?:struct|union|enum)"),
            (Variable, r"^(?:pub\s+)?(?:const|var)\s+(\w+)"),
        ],
    }
}

fn compiled(language: Language) -> &'static [(SymbolKind, RegexMatcher)] {
    static TABLE: [OnceLock<Vec<(SymbolKind, RegexMatcher)>>; Language::ALL.len()] =
        [const { OnceLock::new() }; Language::ALL.len()];
    TABLE[language as usize].get_or_init(|| {
        rules(language)
            .iter()
            .map(|(kind, pattern)| {
                // Bytes instead of Unicode's tables, which take a hundred times as long to compile: any byte that is no
                // ASCII may be in a name.
                let pattern = pattern.replace("MODS", MODIFIERS).replace(r"\w", r"[\w\x80-\xFF]");
                let matcher = RegexMatcherBuilder::new()
                    .multi_line(true)
                    .unicode(false)
                    .line_terminator(Some(b'\n'))
                    .build(&pattern);
                (*kind, matcher.expect("the patterns are tested"))
            })
            .collect()
    })
}

/// A longer line is no line a person wrote a definition on.
const MAX_LINE: usize = 4096;

impl Backend for Heuristic {
    fn name(&self) -> &'static str {
        "heuristic"
    }

    fn can(&self, operation: Operation, _: Language) -> bool {
        matches!(operation, Operation::Outline | Operation::Occurrences)
    }

    fn outline(&self, source: &Source, language: Language, limits: &Limits) -> Result<FileSymbols, GaveUp> {
        let mut found: Vec<(usize, usize, SymbolKind)> = Vec::new();
        let mut start = 0;
        let matchers = compiled(language);
        // By blocks of whole lines, so that there is a place to stop, and without the lines that are too long.
        while start < source.bytes.len() {
            let end = block_end(&source.bytes, start);
            let block = &source.bytes[start..end];
            let is_one_long_line =
                block.len() > MAX_LINE && memchr::memchr(b'\n', &block[..block.len() - 1]).is_none();
            if !is_one_long_line {
                for (kind, matcher) in matchers {
                    let mut captures = matcher.new_captures().map_err(|_| GaveUp)?;
                    let _ = matcher.captures_iter(block, &mut captures, |captures| {
                        if let Some(name) = captures.get(1) {
                            found.push((start + name.start(), start + name.end(), *kind));
                        }
                        true
                    });
                }
            }
            start = end;
            // At the end, so that a busy machine shows at least the first block.
            if limits.check().is_break() {
                break;
            }
        }
        found.sort_by_key(|(from, ..)| *from);
        found.dedup_by_key(|(from, ..)| *from);
        let mut symbols = FileSymbols::default();
        for (from, to, kind) in found {
            let name = symbols.keep(&source.bytes[from..to]);
            let line_start = memchr::memrchr(b'\n', &source.bytes[..from]).map_or(0, |at| at + 1);
            let line_end =
                memchr::memchr(b'\n', &source.bytes[to..]).map_or(source.bytes.len(), |at| to + at);
            symbols.push(kind, name, Piece::default(), line_start..line_end, from);
        }
        Ok(symbols)
    }

    fn occurrences(
        &self,
        source: &Source,
        language: Language,
        name: &[u8],
        limits: &Limits,
    ) -> Result<Vec<Occurrence>, GaveUp> {
        let defined: Vec<usize> =
            self.outline(source, language, limits)?.iter().map(|symbol| symbol.at as usize).collect();
        let bytes = &source.bytes;
        let found = memchr::memmem::find_iter(bytes, name).filter(|at| {
            let end = at + name.len();
            let is_word = !at.checked_sub(1).is_some_and(|before| is_word(bytes[before]))
                && !bytes.get(end).copied().is_some_and(is_word);
            is_word && !in_comment_line(bytes, *at)
        });
        Ok(found
            .map(|start| {
                let role =
                    if defined.contains(&start) { OccurrenceRole::Definition } else { OccurrenceRole::Use };
                Occurrence { start, end: start + name.len(), role }
            })
            .collect())
    }

    fn name_at(&self, source: &Source, _: Language, at: usize, _: &Limits) -> Result<Option<NameAt>, GaveUp> {
        let bytes = &source.bytes;
        let at = at.min(bytes.len());
        let start = bytes[..at].iter().rposition(|byte| !is_word(*byte)).map_or(0, |found| found + 1);
        let end = bytes[at..].iter().position(|byte| !is_word(*byte)).map_or(bytes.len(), |found| at + found);
        Ok((start < end && end - start <= 256).then_some(NameAt { start, end, local: None }))
    }

    fn diagnostics(&self, _: &Source, _: Language, _: usize, _: &Limits) -> Result<Vec<Fault>, GaveUp> {
        Err(GaveUp)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn in_comment_line(bytes: &[u8], at: usize) -> bool {
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |found| found + 1);
    let line = bytes[start..at].trim_ascii_start();
    [b"//".as_slice(), b"# ", b"--", b"* ", b"/*", b";;"].iter().any(|mark| line.starts_with(mark))
}

/// The end of a block of whole lines; a line that is too long is a block of its own.
fn block_end(bytes: &[u8], start: usize) -> usize {
    const BLOCK: usize = 256 << 10;
    let line_end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at + 1);
    if line_end - start > MAX_LINE {
        return line_end;
    }
    let mut end = line_end;
    while end < bytes.len() && end - start < BLOCK {
        let next = memchr::memchr(b'\n', &bytes[end..]).map_or(bytes.len(), |at| end + at + 1);
        if next - end > MAX_LINE {
            break;
        }
        end = next;
    }
    end
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::contract::Cancelled;

    fn outline(language: Language, text: &str) -> Vec<(String, SymbolKind)> {
        let source = Source::from_text(text, language);
        let limits = Limits::new(Duration::from_secs(5), &Cancelled::default());
        let symbols = Heuristic.outline(&source, language, &limits).unwrap();
        symbols.iter().map(|symbol| (symbol.name.to_owned(), symbol.kind)).collect()
    }

    #[test]
    fn all_patterns_compile() {
        for language in Language::ALL {
            assert!(!compiled(*language).is_empty());
        }
    }

    #[test]
    fn lines_of_many_languages_say_what_they_define() {
        for (language, text, name, kind) in [
            (Language::Ruby, "  def self.find!(x)\n", "find!", Method),
            (Language::Kotlin, "internal data class Point(val x: Int)\n", "Point", Class),
            (Language::Swift, "public protocol Shape {\n", "Shape", Interface),
            (Language::Shell, "build_all() {\n", "build_all", Function),
            (Language::Sql, "CREATE TABLE IF NOT EXISTS users (\n", "users", Struct),
            (Language::Make, "all: a b\n", "all", Section),
            (Language::Markdown, "## Two words ##\n", "Two words", Section),
            (Language::Elixir, "  defp inner(x), do: x\n", "inner", Function),
            (Language::Protobuf, "message Ping {\n", "Ping", Struct),
            (Language::Php, "  public static function go()\n", "go", Function),
            (Language::Lua, "function M.run(x)\n", "M.run", Function),
            (Language::CSharp, "    public async Task<int> RunAsync(int x)\n", "RunAsync", Method),
            (Language::Zig, "pub fn main() !void {\n", "main", Function),
            (Language::Haskell, "parse :: String -> Int\n", "parse", Function),
            (Language::Perl, "sub work {\n", "work", Function),
            (Language::Scala, "  case class Ok(x: Int)\n", "Ok", Class),
            (Language::Rust, "pub(crate) async fn go() {\n", "go", Function),
            (Language::C, "static int add(int a, int b)\n{\n", "add", Function),
        ] {
            assert_eq!(outline(language, text), [(name.to_owned(), kind)], "{text}");
        }
    }

    #[test]
    fn a_line_without_end_is_passed_over_and_the_rest_is_read() {
        let text = format!("def a\n{}\ndef b\n", "x".repeat(10 << 20));
        let names: Vec<String> = outline(Language::Ruby, &text).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
