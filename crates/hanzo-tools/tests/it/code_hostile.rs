//! `code` with sources nobody would write, or somebody would to do harm. Every test has a time within which all must be answered.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::code::ids;
use crate::support::Stage;

/// Brackets in one another.
const DEEP: usize = 200_000;
/// A line of 10 MB.
const LONG: usize = 10 << 20;
/// Things next to each other, as children of one node.
const MANY: usize = 50_000;

/// Fails when what is in `work` takes longer than on a slow and busy machine.
fn within(limit: Duration, work: impl FnOnce()) {
    let began = Instant::now();
    work();
    assert!(began.elapsed() < limit, "it took {:?}", began.elapsed());
}

/// What every action says about a file, and about a name the file does not have.
fn ask_all(stage: &Stage, name: &str) -> Vec<Value> {
    let position = json!({"line": 1, "col": 5});
    let calls = [
        json!({"action": "outline", "uri": name}),
        json!({"action": "diagnostics", "uri": name}),
        json!({"action": "definition", "uri": name, "position": position}),
        json!({"action": "references", "uri": name, "position": position}),
        json!({"action": "query", "query": "(identifier) @name", "path": name, "limit": 5}),
        json!({"action": "search", "query": "fine", "path": name}),
    ];
    calls.into_iter().map(|call| stage.code(call)).collect()
}

/// The index is complete and still finds what is in other files.
fn still_finds(stage: &Stage, name: &str, expected: &[&str]) {
    let began = Instant::now();
    loop {
        let data = stage.code_ok(json!({"action": "search_symbol", "query": name}));
        if data["complete"] == json!(true) {
            assert_eq!(ids(&data["symbols"]), expected);
            return;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "the index is never complete");
    }
}

fn deep(name: &str, text: String) {
    within(Duration::from_mins(1), || {
        let stage = Stage::new();
        stage.write("ok.rs", "fn fine() {}\n");
        stage.write(name, text);
        for action in ["outline", "diagnostics"] {
            // Given up on, or answered: each is an answer.
            let envelope = stage.code(json!({"action": action, "uri": name}));
            assert!(envelope["ok"].is_boolean(), "{envelope}");
        }
        still_finds(&stage, "fine", &["sym:ok.rs#function:fine"]);
    });
}

#[test]
fn brackets_in_brackets_of_javascript() {
    deep("deep.js", format!("{}1{}\nfunction after() {{}}\n", "[".repeat(DEEP), "]".repeat(DEEP)));
}

#[test]
fn brackets_in_brackets_of_python() {
    deep("deep.py", format!("x = {}\ndef after(): pass\n", "(".repeat(DEEP)));
}

#[test]
fn brackets_in_brackets_of_c() {
    deep("deep.c", format!("int x = {}1;\n", "-(".repeat(DEEP)));
}

#[test]
fn blocks_in_blocks_of_rust() {
    deep("deep.rs", format!("fn f() {{ {}{} }}\n", "{".repeat(DEEP), "}".repeat(DEEP)));
}

#[test]
fn blocks_that_are_never_closed() {
    deep("open.rs", format!("fn f() {{ {} }}\n", "{".repeat(DEEP)));
}

#[test]
fn templates_and_elements_in_one_another() {
    deep("deep.jsx", format!("let x = {}", "`${<a>{".repeat(DEEP / 4)));
}

#[test]
fn conditionals_in_conditionals() {
    let text = format!("{}int x;\n{}", "#if A\n{\n".repeat(DEEP / 8), "#else\n}\n#endif\n".repeat(DEEP / 8));
    deep("deep.h", text);
}

#[test]
fn a_line_of_ten_megabytes() {
    within(Duration::from_mins(1), || {
        let stage = Stage::new();
        let long = "x".repeat(LONG);
        stage.write("a.js", format!("var a = \"{long}\";\nfunction behind_js() {{}}\n"));
        stage.write("b.rb", format!("x = '{long}'\ndef behind_rb\nend\n"));
        stage.write("c.py", format!("x = '{long}'\ndef behind_py(): pass\n"));
        stage.write("d.go", format!("package p\n// {long}\nfunc behind_go() {{}}\n"));
        for name in ["a.js", "b.rb", "c.py", "d.go"] {
            let ending = &name[2..];
            still_finds(
                &stage,
                &format!("behind_{ending}"),
                &[&format!("sym:{name}#{}:behind_{ending}", kind(name))],
            );
            let outline = stage.code(json!({"action": "outline", "uri": name}));
            assert!(outline.to_string().len() < 10_000, "an answer does not hold the line");
        }
    });
}

fn kind(name: &str) -> &'static str {
    if name.ends_with("rb") { "method" } else { "function" }
}

fn crowded(name: &str, text: String) {
    within(Duration::from_mins(1), || {
        let stage = Stage::new();
        stage.write(name, text);
        for envelope in ask_all(&stage, name) {
            assert!(envelope["ok"].is_boolean());
            assert!(envelope.to_string().len() < 100_000, "a page is not the whole file");
        }
    });
}

#[test]
fn many_values_on_one_line() {
    crowded("a.py", format!("x = [{}]\ndef behind(): pass\n", "1,".repeat(MANY)));
}

#[test]
fn many_blocks_on_one_line() {
    crowded("a.ts", format!("f({{}}{});\nfunction behind() {{}}\n", ",{}".repeat(MANY)));
}

#[test]
fn many_uses_on_one_line() {
    crowded("a.go", format!("package p\nvar fine = []int{{{}}}\n", "fine,".repeat(MANY)));
}

#[test]
fn binary_data_with_the_name_of_source() {
    within(Duration::from_secs(30), || {
        let stage = Stage::new();
        stage.write("binary.rs", b"\x7FELF\0\0fn hidden_in_binary() {}\n");
        stage.write("latin.py", b"def caf\xE9(): pass\ndef plain_latin(): pass\n");
        stage.write("empty.rs", "");
        assert_eq!(stage.ids("hidden_in_binary").len(), 0);
        assert_eq!(stage.ids("plain_latin").len(), 1);
        assert_eq!(stage.code_err(json!({"action": "outline", "uri": "binary.rs"})).0, "UNSUPPORTED");
        let empty = stage.code_ok(json!({"action": "outline", "uri": "empty.rs"}));
        assert_eq!(empty["symbols"], json!([]));
    });
}

#[test]
fn names_that_lead_nowhere() {
    within(Duration::from_secs(30), || {
        let stage = Stage::new();
        std::os::unix::fs::symlink("loop.rs", stage.root.join("loop.rs")).unwrap();
        let odd = std::ffi::OsStr::from_bytes(b"odd\xFF.rs");
        fs::write(stage.root.join(odd), "fn odd_name() {}\n").unwrap();
        stage.write("ok.rs", "fn fine() {}\n");
        still_finds(&stage, "fine", &["sym:ok.rs#function:fine"]);
        assert_eq!(stage.code(json!({"action": "outline", "uri": "loop.rs"}))["ok"], json!(false));
    });
}

#[test]
fn a_file_that_changes_while_it_is_asked_about() {
    within(Duration::from_mins(1), || {
        let stage = Stage::new();
        let path = stage.root.join("a.rs");
        let text = |round: usize| format!("{}fn name_{round}() {{}}\n", "\n".repeat(round % 50));
        fs::write(&path, text(0)).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0.. {
                    if stop.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    fs::write(&path, text(round)).unwrap();
                }
            });
            for _ in 0..100 {
                let data = stage.code_ok(json!({"action": "search_symbol", "query": "name_"}));
                for row in data["symbols"].as_array().unwrap() {
                    // What is shown fits together: the line is the one the symbol is on.
                    let name = row["symbol_id"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
                    assert!(row["snippet"].as_str().unwrap().contains(&name), "{row}");
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    });
}
