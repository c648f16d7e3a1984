//! Parsed whole and in parts, a file has the same symbols.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::super::grammar::Grammar;
use super::super::{extract, parse, parse_for_symbols};
use super::*;
use crate::code::backend::Limits;
use crate::code::symbol::FileSymbols;
use crate::contract::Cancelled;

fn shown(symbols: &FileSymbols) -> Vec<String> {
    symbols.iter().map(|symbol| format!("{symbol:?}")).collect()
}

/// The symbols of a file, parsed whole and in parts.
fn both(language: Language, bytes: &[u8]) -> (Vec<String>, Vec<String>, usize) {
    let grammar = Grammar::of(language).unwrap();
    let limits = Limits::new(std::time::Duration::from_secs(30), &Cancelled::default());
    let whole = extract::symbols(grammar, &parse(grammar, bytes, &limits).unwrap(), bytes);
    let parts = kept(language, bytes);
    let size = parts.as_ref().map_or(bytes.len(), |parts| parts.iter().map(ExactSizeIterator::len).sum());
    let tree = parse_for_symbols(grammar, language, bytes, &limits).unwrap();
    (shown(&whole), shown(&extract::symbols(grammar, &tree, bytes)), size)
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn bodies_are_passed_over_and_what_defines_something_is_not() {
    for (language, text, gone) in [
        (
            Language::Rust,
            "fn a() { let s = \"}\"; let c = '}'; let l: &'static str; /* } */ go(); }\nfn b() {}",
            true,
        ),
        (Language::Rust, "fn a() { struct Inner { x: u8 } let long_enough = 1; }", false),
        (Language::Rust, "fn a() { let s = r#\"}\"} fn\"#; let c = b'}'; done_with_it(); }", true),
        (Language::Rust, "impl A { fn a(&self) -> u8 { self.go().and_then(|x| { x }).unwrap() } }", true),
        (
            Language::Go,
            "package p\nfunc f(x interface{}) interface{} { return long_name(x, `}`, '}') }\n",
            true,
        ),
        (Language::Go, "package p\nfunc f() { type T struct { a int }; use(T{}) }\n", false),
        (Language::Java, "class A { void m() throws E { go(\"}\", '}'); more(1, 2, 3); } int x; }", true),
        (Language::Java, "class A { void m() { run(new R() { public void run() {} }); } }", false),
        (Language::C, "int f(int a)\n{\n  if (a) { return '}'; }\n  return 1;\n}\n", true),
        (Language::C, "int f(int a)\n{\n#if X\n  if (a) {\n#else\n  {\n#endif\n  }\n}\nint g;\n", false),
        (Language::C, "struct __attribute__((packed)) s { int a; int b; int c; int d; };", false),
        (Language::C, "static const int table[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };\nint x;", true),
        (Language::Cpp, "bool A::operator==(const A& b) const { return x == b.x && y == b.y; }", true),
        (Language::Cpp, "auto s = R\"x(} \")x\"; int f() { return 1'000'000 + other_thing(2); }", true),
    ] {
        let (whole, parts, size) = both(language, text.as_bytes());
        assert_eq!(whole, parts, "{text}");
        assert_eq!(size < text.len(), gone, "{text}");
    }
}

/// `HANZO_ELIDE_TREES` is a list of directories, separated by colons, that are compared as well as this crate.
#[test]
fn files_parsed_in_parts_have_the_symbols_they_have_as_a_whole() {
    let trees = std::env::var("HANZO_ELIDE_TREES").unwrap_or_default();
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    trees.split(':').filter(|tree| !tree.is_empty()).for_each(|tree| files(Path::new(tree), &mut found));
    let (mut all, mut same, mut bytes, mut parsed) = (0, 0, 0, 0);
    let mut different = Vec::new();
    for path in found {
        let Some(language) = Language::of_path(&path).filter(|language| Rules::of(*language).is_some())
        else {
            continue;
        };
        let Ok(text) = std::fs::read(&path) else { continue };
        let language = crate::code::source::refined(Some(language), &text).unwrap_or(language);
        let (whole, parts, size) = both(language, &text);
        (all, bytes, parsed) = (all + whole.len(), bytes + text.len(), parsed + size);
        let common = whole.iter().filter(|symbol| parts.contains(symbol)).count();
        same += common;
        if common < whole.len() || whole.len() != parts.len() {
            let missing = whole.iter().find(|symbol| !parts.contains(symbol));
            let added = parts.iter().find(|symbol| !whole.contains(symbol));
            different.push(format!("{}: -{missing:?} +{added:?}", path.display()));
        }
    }
    let report =
        format!("{same} of {all} symbols, {parsed} of {bytes} bytes; {} files differ", different.len());
    assert!(parsed * 10 < bytes * 8, "{report}");
    // What is unusual enough to fool the scanner is rare; in what we write ourselves there is none.
    let most = if trees.is_empty() { 0 } else { all / 1000 };
    assert!(all - same <= most, "{report}:\n{}", different.join("\n"));
}

proptest! {
    #[test]
    fn no_text_breaks_the_scanner(text in "[a-z{}()'\"/*#\\\\\n;=r`_ ]{0,120}") {
        for language in [Language::Rust, Language::Go, Language::Java, Language::C, Language::Cpp] {
            if let Some(parts) = kept(language, text.as_bytes()) {
                let mut last = 0;
                for part in &parts {
                    prop_assert!(part.start >= last && part.end >= part.start && part.end <= text.len());
                    last = part.end;
                }
            }
        }
    }
}
