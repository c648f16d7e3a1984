//! Parsed whole and in parts, a file has the same symbols.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::super::grammar::Grammar;
use super::super::{extract, parse, symbols};
use super::*;
use crate::code::backend::Limits;
use crate::code::symbol::FileSymbols;
use crate::contract::Cancelled;

fn shown(symbols: &FileSymbols) -> Vec<String> {
    symbols.iter().map(|symbol| format!("{symbol:?}")).collect()
}

/// The symbols of a file, parsed whole and in parts, and how much was parsed then.
fn both(language: Language, bytes: &[u8]) -> (Vec<String>, Vec<String>, usize) {
    let grammar = Grammar::of(language).unwrap();
    let limits = Limits::new(std::time::Duration::from_secs(30), &Cancelled::default());
    let whole = extract::symbols(grammar, &parse(grammar, bytes, &limits).unwrap(), bytes);
    let size = squeezed(language, bytes).map_or(bytes.len(), |squeezed| squeezed.text.len());
    let parts = symbols(grammar, language, bytes, &limits).unwrap();
    (shown(&whole), shown(&parts), size)
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
        (Language::Java, "record R(int a) { static int f() { return 1; } static int g = 1; }", false),
        (Language::Java, "enum E { A(1) { int f() { return 1; } int g() { return 22; } }; }", false),
        (Language::Java, "class A { int m() { if (x) { return other_thing(1, 2, 3); } return 1; } }", true),
        (Language::JavaScript, "class A extends mixin(B) { field = 1; other = 2; third = 3; }", false),
        (Language::C, "int f(int a)\n{\n  if (a) { return '}'; }\n  return 1;\n}\n", true),
        (Language::C, "int f(int a)\n{\n#define INNER 1\n  return INNER + a;\n}\nint g;\n", false),
        (
            Language::C,
            "int f(int a)\n{\n#if X\n  a += 1;\n#else\n  a += 2;\n#endif\n  return a;\n}\nint g;\n",
            true,
        ),
        (Language::C, "struct __attribute__((packed)) s { int a; int b; int c; int d; };", false),
        (Language::C, "static const int table[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };\nint x;", true),
        (Language::Cpp, "bool A::operator==(const A& b) const { return x == b.x && y == b.y; }", true),
        (Language::Cpp, "template <> int f<int>(int a) { return other_thing(a) + 1; }", true),
        (Language::Cpp, "auto f(int a) -> int { return other_thing(a) + 1; }", true),
        (Language::Cpp, "auto s = R\"x(} \")x\"; int f() { return 1'000'000 + other_thing(2); }", true),
        (Language::JavaScript, "function f(a) { return a / 2 + /[}/]'/.test(`}${g(`}`)}`) }\nvar v;", true),
        (Language::JavaScript, "function f() { const g = async (x) => { return x + long_name + 1 } }", true),
        (Language::JavaScript, "function f() { const g = (x) => x + 1; }", false),
        (Language::JavaScript, "function f() { return { run() {}, key: function () {} }; }", false),
        (Language::JavaScript, "const o = { key: 1, run(x) { if (x) { return other_thing(x); } } };", true),
        (Language::JavaScript, "const A = () => { return <p title='}'>Don't {'}'} <b/></p>; }\nlet x;", true),
        (Language::Tsx, "const f = <T,>(x: T): T => { return <A<T> on={() => { go(1) }}>it's</A>; }", true),
        (
            Language::TypeScript,
            "class A { m(x: { a: string }): Promise<B | null> { return go(x, 1, 2, 3); } }",
            true,
        ),
        (Language::TypeScript, "type F = (x: string) => { result: string; other_field: number };\n", false),
        (
            Language::TypeScript,
            "function f() { enum Inner { A, B } interface Other { field: string } }",
            false,
        ),
        (
            Language::TypeScript,
            "class A<T extends B<C>> { m(a: D<(e: F) => G>, h?: I[]): J<K> { go(1, 2) } constructor(private l: M, readonly n = 1) {} }",
            true,
        ),
        (
            Language::TypeScript,
            "export const f = (a: string, b = 1) => go(a), o = memo((p: P) => { return 1 }), q = r({ s: 1, t() {} });",
            true,
        ),
        (
            Language::TypeScript,
            "if (aaa < bbb && ccc > ddd) { x = 1 }\nfor (const a of bbb) { go(a) }\nlet y;",
            false,
        ),
        (
            Language::TypeScript,
            "describe('x', () => { it('y', () => { const z = { a: 1 }; expect(z) }) })",
            true,
        ),
        (
            Language::Python,
            "def f(a):\n    \"\"\"Does it.\"\"\"\n    if a:\n        return 1\n    return 2\nx = 1\n",
            true,
        ),
        (
            Language::Python,
            "class A:\n    def f(self):\n        first_thing(1, 2, 3)\n        self.a = 1\n        if self.a:\n            return (1,\n  2)\n\ny = 2\n",
            true,
        ),
        (Language::Python, "def f(self):\n    if a:\n        self.x = 1\n    else:\n        go()\n", false),
        (Language::Python, "def f():\n    g = lambda x: x\n    class B:\n        c = 1\n", false),
        (
            Language::Python,
            "def f():\n    for x in y:\n        def g():\n            return some_longer_thing(1, 2)\n    return 3\n",
            true,
        ),
    ] {
        let (whole, parts, size) = both(language, text.as_bytes());
        assert_eq!(whole, parts, "{text}");
        assert!(!gone || size < text.len(), "{text}");
    }
}

#[test]
fn macros_before_a_declaration_do_not_hide_it() {
    let text = "class MY_API_ A {\n  MY_INLINE MY_OTHER const B<C> *make(int a);\n  MY_TYPE plain;\n};\nMY_PRIVATE int run(MY_TYPE a) { return 1; }\nMY_TYPE const *kept;\n";
    let (_, parts, _) = both(Language::Cpp, text.as_bytes());
    let names: Vec<&str> = parts.iter().map(|symbol| symbol.split('"').nth(1).unwrap()).collect();
    assert_eq!(names, ["A", "make", "plain", "run", "kept"]);
}

/// The names of what a text of C++ defines, by kind.
fn cpp(text: &str) -> Vec<String> {
    let grammar = Grammar::of(Language::Cpp).unwrap();
    let limits = Limits::new(std::time::Duration::from_secs(30), &Cancelled::default());
    let found = symbols(grammar, Language::Cpp, text.as_bytes(), &limits).unwrap();
    found.iter().map(|symbol| format!("{} {}", symbol.kind.name(), symbol.name)).collect()
}

#[test]
fn branches_of_the_preprocessor_are_all_there_if_they_are_whole() {
    let text = "#ifndef H\n#define H 1\n#if A\nint a();\nclass B { int b; };\n#elif C\nint c();\n#else\nint d();\n#endif\n#if 0\nint never;\n#endif\nenum E {\n F,\n#if A\n G,\n#else\n H_,\n#endif\n I };\n#endif\n";
    let all = [
        "macro H",
        "declaration a",
        "class B",
        "field b",
        "declaration c",
        "declaration d",
        "enum E",
        "variant F",
        "variant G",
        "variant H_",
        "variant I",
    ];
    assert_eq!(cpp(text), all);
}

#[test]
fn of_branches_that_are_half_of_something_the_first_counts() {
    let text = "#if A\nint f(int a) {\n#else\nint g(long a) {\n#endif\n  return a;\n}\nint h;\n";
    assert_eq!(cpp(text), ["function f", "variable h"]);
    // The second closes what it did not open.
    let text = "namespace n {\n#if A\nint a;\n#else\nint b; } namespace m {\n#endif\nint c;\n}\nint d;\n";
    assert_eq!(cpp(text), ["module n", "variable a", "variable c", "variable d"]);
    let text = "void f()\n#if A\n  const\n#else\n  volatile\n#endif\n{ if (x) { y(); } }\nint h;\n";
    assert_eq!(cpp(text), ["function f", "variable h"]);
}

#[test]
fn what_says_nothing_about_a_name_does_not_hide_it() {
    let text = "template <typename T, // > here\n  enable_if_t<(sizeof(T) > 4), int> = 0>\nclass A : public B<A<T>, C>, D {\n public:\n  explicit A(const E<F, G>& e, int i = 0) : b(e), c{1}, d(i ? 2 : 3) { go(); }\n  A(A&&) = default;\n  typename T::template H<int>::type get(std::map<int, T*> m) const MY_NOEXCEPT;\n  MY_DECLARE(A, +=)\n  bool operator<(const A& a) const { return b < a.b; }\n  enum { J = X<1, 2>::value, K = (1 < 2) };\n  const Device DEVICE_REF device;\n  int mask[N < 4 ? 1 : 2];\n};\ntemplate <class T> using P = std::pair<T, T>;\nstatic const int Q = R<1>::value + 2, S = 3;\nT u(1, 2);\n";
    let all = [
        "class A",
        "method A",
        "method A",
        "declaration get",
        "method operator<",
        "variant J",
        "variant K",
        "field device",
        "field mask",
        "type P",
        "variable Q",
        "variable S",
        "variable u",
    ];
    assert_eq!(cpp(text), all);
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
        let Some(language) = Language::of_path(&path).filter(|language| Grammar::of(*language).is_some())
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
    fn places_in_what_is_left_are_those_of_the_file(text in "[a-z{}()'\"/*#\\\\\n;:=r`_<> ]{0,200}") {
        for language in Language::ALL.iter().filter(|language| Grammar::of(**language).is_some()) {
            let Some(squeezed) = squeezed(*language, text.as_bytes()) else { continue };
            let mut last = 0;
            for (at, byte) in squeezed.text.iter().enumerate() {
                let (start, end) = (squeezed.start(at), squeezed.end(at + 1));
                prop_assert!(start >= last && start < end && end <= text.len());
                // What is not in place of a gap is what the file has there.
                prop_assert!(end - start > 1 || text.as_bytes()[start] == *byte || b" pas0int".contains(byte));
                last = start;
            }
        }
    }
}

#[test]
fn macros_among_the_values_of_a_list_are_kept() {
    let text = "static struct s { int x; } a[] = {\n  { 1 },\n#define osOpen ((int(*)(int))a[0].x)\n  { 2 },\n#define osClose(x) (a[1].x)\n  { 3 },\n};\nint after;\n";
    let kept = squeezed(Language::C, text.as_bytes()).unwrap();
    let kept = String::from_utf8(kept.text).unwrap();
    let expected =
        "static struct s { int x; } a[] = {};\n#define osOpen\n#define osClose(x)\n;\nint after;\n";
    assert_eq!(kept, expected);
}
