//! `code`: symbols, definitions, uses, trees.

use std::fs;

use hanzo_protocol::tool::ToolCaller;
use hanzo_sandbox::SandboxConfig;
use hanzo_tools::{Selection, toolset};
use serde_json::{Value, json};

use crate::support::{Stage, host};

impl Stage {
    /// Calls `code`; the whole envelope.
    pub fn code(&self, arguments: Value) -> Value {
        self.call("code", arguments).envelope.unwrap()
    }

    /// Calls `code`; the data.
    pub fn code_ok(&self, arguments: Value) -> Value {
        let shown = arguments.to_string();
        let envelope = self.code(arguments);
        assert_eq!(envelope["ok"], json!(true), "{shown}: {envelope}");
        envelope["data"].clone()
    }

    /// Calls `code`; the code of the error and its message.
    pub fn code_err(&self, arguments: Value) -> (String, String) {
        let shown = arguments.to_string();
        let envelope = self.code(arguments);
        assert_eq!(envelope["ok"], json!(false), "{shown}: {envelope}");
        let part = |name: &str| envelope["error"][name].as_str().unwrap().to_owned();
        (part("code"), part("message"))
    }

    /// The ids of the symbols a search finds.
    pub fn ids(&self, query: &str) -> Vec<String> {
        let data = self.code_ok(json!({"action": "search_symbol", "query": query}));
        assert_eq!(data["complete"], json!(true));
        ids(&data["symbols"])
    }
}

pub fn ids(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|row| row["symbol_id"].as_str().unwrap_or("-").to_owned()).collect()
}

fn lines(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|row| row["range"]["start"]["line"].as_u64().unwrap()).collect()
}

/// What follows the file in a symbol id: `kind:Outer.name`.
fn outline(stage: &Stage, name: &str) -> Vec<String> {
    let data = stage.code_ok(json!({"action": "outline", "uri": name}));
    ids(&data["symbols"]).iter().map(|id| id.split_once('#').unwrap().1.to_owned()).collect()
}

/// A file of each language, and what an outline says of it.
pub const SAMPLES: &[(&str, &str, &str)] = &[
    (
        "a.rs",
        "mod m { pub const N: u8 = 1; static S: u8 = 2; }\nstruct P { x: u8 }\nenum E { A, B(u8) }\ntrait T { type O; fn t(&self); }\nimpl T for P { fn t(&self) { fn inner() {} let local = 1; } }\nimpl P { fn new() {} }\ntype Y = u8; union U { a: u8 }\nmacro_rules! mac { () => {} }\nfn main() {}\nthread_local! { static LOCAL: u8 = 1; }\n",
        "module:m constant:m.N variable:m.S struct:P field:P.x enum:E variant:E.A variant:E.B trait:T type:T.O method:T.t impl:P method:P:T.t function:P:T.t.inner impl:P~2 method:P.new type:Y union:U field:U.a macro:mac function:main variable:LOCAL",
    ),
    (
        "a.js",
        "function f() { var local; function g() {} }\nclass A extends B { constructor() {} #p = 1; get x() {} static y = () => 1 }\nconst h = () => { };\nlet v = 1;\nA.prototype.m = function () {};\nexports.e = function* () {};\nconst o = { k: function () {}, n: 1, s() {} };\n",
        "function:f function:f.g class:A method:A.constructor field:A.#p method:A.x method:A.y function:h variable:v method:A.m function:e constant:o method:o.k field:o.n method:o.s",
    ),
    (
        "a.ts",
        "export function f(): void {}\ninterface I { p: number; m(): void }\ntype T = string;\nenum E { A, B = 2 }\nnamespace N { export const c = 1 }\nabstract class C { constructor(private q: number) {} abstract a(): void; r = 1 }\ndeclare function d(): void;\n",
        "function:f interface:I field:I.p method:I.m type:T enum:E variant:E.A variant:E.B module:N constant:N.c class:C method:C.constructor field:C.constructor.q method:C.a field:C.r function:d",
    ),
    (
        "a.tsx",
        "export const App = () => <div>hi</div>;\nfunction B() { return <App />; }\n",
        "function:App function:B",
    ),
    (
        "a.py",
        "LIMIT = 1\nname: str = 'x'\na, b = 1, 2\nclass C:\n    field = 1\n    def m(self):\n        self.made = 1\n        local = 2\n    async def n(self): pass\ndef f():\n    def inner(): pass\n",
        "constant:LIMIT variable:name variable:a variable:b class:C field:C.field method:C.m field:C.made method:C.n function:f function:f.inner",
    ),
    (
        "a.go",
        "package p\nconst A, B = 1, 2\nvar v int\ntype S struct { X, y int; Embedded }\ntype I interface { M() }\ntype F func()\nfunc f() { var local int }\nfunc (s *S) m() {}\n",
        "module:p constant:A constant:B variable:v struct:S field:S.X field:S.y field:S.Embedded interface:I method:I.M type:F function:f method:S.m",
    ),
    (
        "A.java",
        "package a.b;\npublic class A { int x, y; A() {} void m() { int local; } enum E { P, Q } interface I { void i(); } record R(int z) {} @interface N { int v(); } }\n",
        "module:a.b class:A field:A.x field:A.y method:A.A method:A.m enum:A.E variant:A.E.P variant:A.E.Q interface:A.I method:A.I.i class:A.R interface:A.N method:A.N.v",
    ),
    (
        "a.c",
        "#define MAX 3\n#define ADD(a, b) ((a) + (b))\nstruct s { int x; char *y[2]; };\nunion u { int i; };\nenum e { ONE, TWO };\ntypedef struct { int z; } t;\ntypedef int (*fp)(void);\nint proto(int a);\nextern int ext;\nstatic int v = 1, *w;\nint *add(int a, int b) { int local; return 0; }\n",
        "macro:MAX macro:ADD struct:s field:s.x field:s.y union:u field:u.i enum:e variant:e.ONE variant:e.TWO field:t.z type:t type:fp declaration:proto declaration:ext variable:v variable:w function:add",
    ),
    (
        "a.cpp",
        "namespace n { class A { public: A(); ~A() {} int f() const { return 1; } template <class T> void g(T t) {} int m_; bool operator==(const A&) const; }; }\nint n::A::h() { return 2; }\nusing X = int;\nenum class K { P };\nnamespace o::p::q { int deep(); }\n",
        "module:n class:n.A declaration:n.A.A method:n.A.~A method:n.A.f method:n.A.g field:n.A.m_ declaration:n.A.operator== method:n.A.h type:X enum:K variant:K.P module:o module:o.p module:o.p.q declaration:o.p.q.deep",
    ),
];

#[test]
fn an_outline_has_what_a_file_defines_in_nine_languages() {
    let stage = Stage::new();
    for (name, text, expected) in SAMPLES {
        stage.write(name, text);
        assert_eq!(outline(&stage, name).join(" "), *expected, "{name}");
        let envelope = stage.code(json!({"action": "outline", "uri": name}));
        assert_eq!(envelope["meta"]["backend"], json!("tree-sitter"), "{name}");
    }
}

#[test]
fn other_languages_are_read_by_patterns_and_the_answer_says_so() {
    let stage = Stage::new();
    stage.write("a.rb", "class A\n  def run!\n  end\nend\n");
    stage.write("tool", "#!/bin/sh\ngo() { :; }\n");
    fs::set_permissions(stage.root.join("tool"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    assert_eq!(outline(&stage, "a.rb"), ["class:A", "method:run!"]);
    let envelope = stage.code(json!({"action": "search_symbol", "query": "go"}));
    assert_eq!(envelope["meta"]["backend"], json!("heuristic"));
    assert_eq!(ids(&envelope["data"]["symbols"]), ["sym:tool#function:go"]);
    let (code, message) = stage.code_err(json!({"action": "diagnostics", "uri": "a.rb"}));
    assert_eq!((code.as_str(), message.contains("ruby")), ("UNSUPPORTED", true));
    stage.write("notes.xyz", "hello");
    assert_eq!(stage.code_err(json!({"action": "outline", "uri": "notes.xyz"})).0, "UNSUPPORTED");
}

#[test]
fn a_symbol_is_found_by_a_part_of_its_name_in_a_place_and_of_a_kind() {
    let stage = Stage::new();
    stage.write("src/user.rs", "pub struct User;\nimpl User {\n    pub fn get_name(&self) {}\n}\n");
    stage.write("src/deep/other.py", "def get_name_of():\n    pass\nclass UserService:\n    pass\n");
    stage.write("target/gen.rs", "fn get_name_ignored() {}\n");
    stage.write(".gitignore", "target\n");
    fs::create_dir(stage.root.join(".git")).unwrap();
    assert_eq!(
        stage.ids("get_name"),
        ["sym:src/user.rs#method:User.get_name", "sym:src/deep/other.py#function:get_name_of"]
    );
    assert_eq!(stage.ids("User::get_name"), ["sym:src/user.rs#method:User.get_name"]);
    let data = stage.code_ok(json!({"action": "search_symbol", "query": "user", "kind": "class"}));
    assert_eq!(ids(&data["symbols"]), ["sym:src/deep/other.py#class:UserService"]);
    let data = stage.code_ok(json!({"action": "search_symbol", "query": "name", "path": "src/deep"}));
    assert_eq!(ids(&data["symbols"]).len(), 1);
    let row = &data["symbols"][0];
    assert_eq!(row["snippet"], json!("def get_name_of():"));
    assert_eq!(row["at"], json!({"line": 0, "col": 4}));
    assert_eq!(row["range"], json!({"start": {"line": 0, "col": 0}, "end": {"line": 1, "col": 8}}));
    assert_eq!(stage.code_err(json!({"action": "search_symbol", "query": " "})).0, "INVALID_ARGUMENTS");
    assert_eq!(
        stage.code_err(json!({"action": "search_symbol", "query": "x", "kind": "klass"})).0,
        "INVALID_ARGUMENTS"
    );
    assert_eq!(
        stage.code_err(json!({"action": "search_symbol", "query": "x", "path": "nowhere"})).0,
        "NOT_FOUND"
    );
}

#[test]
fn pages_of_symbols_follow_one_another_without_gap() {
    let stage = Stage::new();
    let text: Vec<String> = (0..25).map(|number| format!("fn item_{number:02}() {{}}\n")).collect();
    let text = text.concat();
    stage.write("a.rs", text);
    let mut found = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let envelope =
            stage.code(json!({"action": "search_symbol", "query": "item", "limit": 10, "cursor": cursor}));
        found.extend(ids(&envelope["data"]["symbols"]));
        cursor = envelope["meta"]["paging"]["cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(found.len(), 25);
    found.dedup();
    assert_eq!(found.len(), 25);
}

#[test]
fn a_name_leads_to_its_definition_in_another_file_or_in_its_function() {
    let stage = Stage::new();
    stage.write(
        "src/lib.rs",
        "pub fn helper(count: u32) -> u32 {\n    let total = count + 1;\n    total * count\n}\n",
    );
    stage.write(
        "src/main.rs",
        "use lib::helper;\nfn main() {\n    let x = helper(3);\n    println!(\"{}\", x);\n}\n",
    );
    stage.write("other/helper.py", "def helper(): pass\n");
    let at = |uri: &str, line: u32, col: u32| {
        stage.code_ok(json!({"action": "definition", "uri": uri, "position": {"line": line, "col": col}}))
    };
    let data = at("src/main.rs", 2, 14);
    assert_eq!(ids(&data["symbols"]), ["sym:src/lib.rs#function:helper"], "Python's is another language");
    let data = at("src/lib.rs", 2, 5);
    assert_eq!(lines(&data["symbols"]), [1], "a variable of the function");
    let data = at("src/lib.rs", 2, 13);
    assert_eq!(data["symbols"][0]["range"]["start"], json!({"line": 0, "col": 14}), "a parameter");
    let data = stage.code_ok(json!({"action": "definition", "uri": "src/main.rs", "line": 2, "col": 12}));
    assert_eq!(lines(&data["symbols"]), [0], "line and col beside each other");
    let data = stage.code_ok(json!({"action": "definition", "symbol_id": "sym:helper"}));
    assert_eq!(ids(&data["symbols"]).len(), 2);
    let (code, message) = stage
        .code_err(json!({"action": "definition", "uri": "src/main.rs", "position": {"line": 1, "col": 10}}));
    assert_eq!(code, "NOT_FOUND", "{message}");
    let (code, _) = stage
        .code_err(json!({"action": "definition", "uri": "src/main.rs", "position": {"line": 99, "col": 0}}));
    assert_eq!(code, "INVALID_ARGUMENTS");
    assert_eq!(stage.code_err(json!({"action": "definition"})).0, "INVALID_ARGUMENTS");
    assert_eq!(
        stage.code_err(json!({"action": "definition", "symbol_id": "sym:src/lib.rs#function:gone"})).0,
        "NOT_FOUND"
    );
}

#[test]
fn what_stands_before_a_name_says_which_of_several_is_meant() {
    let stage = Stage::new();
    stage.write(
        "a.rs",
        "struct A;\nstruct B;\nimpl A { fn new() {} }\nimpl B { fn new() {} }\nfn main() { B::new(); A::new(); }\n",
    );
    let first = |col: u32| {
        let data = stage
            .code_ok(json!({"action": "definition", "uri": "a.rs", "position": {"line": 4, "col": col}}));
        ids(&data["symbols"])[0].clone()
    };
    assert_eq!(first(15), "sym:a.rs#method:B.new");
    assert_eq!(first(25), "sym:a.rs#method:A.new");
    assert_eq!(first(12), "sym:a.rs#struct:B", "the type, not its implementation");
}

#[test]
fn uses_are_found_across_files_and_not_in_comments_or_strings() {
    let stage = Stage::new();
    stage.write("a.ts", "export function work() {}\n// work is not here\nconst s = 'work';\nwork();\n");
    stage.write(
        "b.js",
        "import { work } from './a';\nobj.work();\nfunction f(work) { return work; }\nworker();\n",
    );
    stage.write("c.py", "work()\n");
    let data = stage.code_ok(json!({"action": "references", "symbol_id": "sym:a.ts#function:work"}));
    assert_eq!(data["matched_by"], json!("name"));
    assert_eq!(lines(&data["references"]), [0, 3, 0, 1, 2, 2]);
    assert_eq!(data["references"][4]["symbol_id"], json!("sym:b.js#function:f"), "the symbol it is in");
    let local = json!({"action": "references", "uri": "b.js", "position": {"line": 2, "col": 27}});
    let data = stage.code_ok(local);
    assert_eq!(data["matched_by"], json!("scope"));
    assert_eq!(lines(&data["references"]), [2, 2]);
    let mut found = 0;
    let mut cursor = Value::Null;
    loop {
        let envelope = stage.code(
            json!({"action": "references", "symbol_id": "sym:a.ts#function:work", "limit": 4, "cursor": cursor}),
        );
        found += envelope["data"]["references"].as_array().unwrap().len();
        cursor = envelope["meta"]["paging"]["cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(found, 6);
}

#[test]
fn a_symbol_id_survives_edits_elsewhere_in_the_file() {
    let stage = Stage::new();
    let before = "impl A {\n    fn run(&self) {}\n}\nfn run() {}\nfn run() {}\n";
    stage.write("a.rs", before);
    let found = stage.ids("run");
    assert_eq!(found, ["sym:a.rs#function:run", "sym:a.rs#function:run~2", "sym:a.rs#method:A.run"]);
    let line = |id: &str| {
        let data = stage.code_ok(json!({"action": "definition", "symbol_id": id}));
        lines(&data["symbols"])
    };
    assert_eq!(line("sym:a.rs#method:A.run"), [1]);
    assert_eq!(line("sym:a.rs#function:run~2"), [4]);
    let after = format!("// new\n\nstruct Before {{ run: u8 }}\nfn other() {{}}\n{before}fn later() {{}}\n");
    stage.write("a.rs", after);
    assert_eq!(line("sym:a.rs#method:A.run"), [5]);
    assert_eq!(line("sym:a.rs#function:run~2"), [8]);
}

#[test]
fn what_changes_underneath_is_seen() {
    let stage = Stage::new();
    stage.write("a.rs", "fn old_name() {}\n");
    stage.write("b.rs", "fn stays() {}\n");
    assert_eq!(stage.ids("old_name").len(), 1);
    stage.write("a.rs", "\n\nfn new_name() {}\n");
    assert_eq!(stage.ids("new_name"), ["sym:a.rs#function:new_name"]);
    assert_eq!(stage.ids("old_name").len(), 0);
    fs::remove_file(stage.root.join("a.rs")).unwrap();
    assert_eq!(stage.ids("new_name").len(), 0);
    stage.ok(json!({"action": "write", "path": "c/fresh.rs", "content": "fn made_by_fs() {}\n"}));
    assert_eq!(stage.ids("made_by_fs"), ["sym:c/fresh.rs#function:made_by_fs"]);
    stage.ok(json!({"action": "mv", "from": "c/fresh.rs", "to": "c/moved.rs"}));
    assert_eq!(stage.ids("made_by_fs"), ["sym:c/moved.rs#function:made_by_fs"]);
}

#[test]
fn the_index_is_kept_on_disk_and_a_torn_one_is_built_again() {
    let stage = Stage::new();
    for number in 0..20 {
        stage.write(&format!("f{number}.rs"), format!("fn kept_{number}() {{}}\n"));
    }
    assert_eq!(stage.ids("kept_7").len(), 1);
    let directory = stage.data.join("code");
    let file = || {
        fs::read_dir(&directory).ok().and_then(|list| {
            list.flatten()
                .map(|entry| entry.path())
                .find(|path| path.extension().is_some_and(|ending| ending == "index"))
        })
    };
    let waited = std::time::Instant::now();
    while file().is_none() && waited.elapsed().as_secs() < 10 {
        std::thread::yield_now();
    }
    let file = file().expect("the index is written");
    let Stage { dir, root, data, tools, host: first, runtime, .. } = stage;
    drop((tools, first, runtime));
    let whole = fs::read(&file).unwrap();
    for content in [whole.clone(), whole[..whole.len() / 2].to_vec(), b"rubbish".to_vec(), Vec::new()] {
        fs::write(&file, &content).unwrap();
        fs::write(root.join("f3.rs"), "fn changed_while_away() {}\n").unwrap();
        let again = host(&root, &data, &SandboxConfig::default());
        let tools = toolset(&again, &Selection::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let outside = root.clone();
        let stage = Stage {
            dir: tempfile::tempdir().unwrap(),
            root: root.clone(),
            outside,
            data: data.clone(),
            host: again,
            tools,
            runtime,
        };
        assert_eq!(stage.ids("kept_7").len(), 1);
        assert_eq!(stage.ids("changed_while_away").len(), 1);
        assert!(!stage.ids("kept_3").contains(&"sym:f3.rs#function:kept_3".to_owned()));
    }
    drop(dir);
}

#[test]
fn trees_are_searched_by_query_and_by_code_with_holes() {
    let stage = Stage::new();
    stage.write("a.rs", "fn one() { two(1, 2); }\nfn two(a: u8, b: u8) {}\n");
    stage.write("b.py", "two(1, 2)\n");
    let query = json!({"action": "query", "query": "(function_item name: (identifier) @name)"});
    let data = stage.code_ok(query);
    assert_eq!(data["languages"], json!(["rust"]));
    assert_eq!(ids(&data["matches"]), ["sym:a.rs#function:one", "sym:a.rs#function:two"]);
    let only =
        json!({"action": "query", "query": "((identifier) @n (#eq? @n \"two\"))", "language": "python"});
    assert_eq!(lines(&stage.code_ok(only)["matches"]), [0]);
    let data = stage.code_ok(json!({"action": "query", "query": "two($A, $B)"}));
    assert_eq!(data["matches"].as_array().unwrap().len(), 2);
    let data = stage.code_ok(json!({"action": "query", "query": "two($A, $B)", "path": "a.rs"}));
    assert_eq!(data["matches"].as_array().unwrap().len(), 1);
    for (query, language, says) in [
        ("(function_itm) @x", "rust", "function_itm"),
        ("(function_item", "rust", "cannot be used"),
        ("(function_item)", "rust", "captures nothing"),
        ("(x) @y", "cobol", "no language"),
        ("fn (((", "rust", "neither"),
    ] {
        let (code, message) =
            stage.code_err(json!({"action": "query", "query": query, "language": language}));
        assert_eq!(code, "INVALID_ARGUMENTS");
        assert!(message.contains(says), "{message}");
    }
    assert_eq!(
        stage.code_err(json!({"action": "query", "query": "(x) @y", "language": "ruby"})).0,
        "UNSUPPORTED"
    );
}

#[test]
fn syntax_errors_are_shown_with_their_place() {
    let stage = Stage::new();
    stage.write("good.rs", "fn main() {}\n");
    let data = stage.code_ok(json!({"action": "diagnostics", "uri": "good.rs"}));
    assert_eq!((&data["diagnostics"], &data["checked"]), (&json!([]), &json!("syntax")));
    for (name, text, line) in [
        ("bad.rs", "fn main() {\n    let x = ;\n}\n", 1),
        ("bad.py", "def f(:\n    pass\n", 0),
        ("bad.go", "package p\nfunc f( {\n}\n", 1),
        ("bad.ts", "const x: = 1;\n", 0),
        ("Bad.java", "class A {\n  void m( {}\n}\n", 1),
        ("bad.c", "int main() {\n  return 1 +;\n}\n", 1),
    ] {
        stage.write(name, text);
        let data = stage.code_ok(json!({"action": "diagnostics", "uri": name}));
        assert!(lines(&data["diagnostics"]).contains(&line), "{name}: {data}");
        assert!(!data["diagnostics"][0]["message"].as_str().unwrap().is_empty());
    }
}

#[test]
fn one_search_finds_out_what_is_meant() {
    let stage = Stage::new();
    stage.write("src/retry.rs", "/// How often a request is retried.\npub struct RetryPolicy { pub attempts: u32 }\nfn go() { policy.wait(3, x); }\n");
    stage.write("docs/RetryPolicy.md", "# Notes\nRetryPolicy is configured here.\n");
    let search = |query: &str| stage.code_ok(json!({"action": "search", "query": query}));
    let data = search("RetryPolicy");
    assert_eq!(data["modalities"], json!(["symbol", "text"]));
    assert_eq!(data["results"][0]["symbol_id"], json!("sym:src/retry.rs#struct:RetryPolicy"));
    assert!(data["results"].as_array().unwrap().iter().any(|row| row["by"] == "text"));
    let data = search("retry.rs");
    assert_eq!(data["modalities"], json!(["file", "text"]));
    assert!(data["results"][0]["uri"].as_str().unwrap().ends_with("src/retry.rs"));
    let data = search("policy.wait($N, $$$)");
    assert_eq!(data["modalities"], json!(["ast", "text"]));
    assert_eq!(data["results"][0]["symbol_id"], json!("sym:src/retry.rs#function:go"));
    let data = search("how often is a request retried?");
    assert_eq!((&data["modalities"], &data["unavailable"]), (&json!(["text"]), &json!(["vector"])));
    assert_eq!(data["results"][0]["range"]["start"]["line"], json!(0));
    let data = stage.code_ok(json!({"action": "search", "query": "x", "modality": "memory"}));
    assert_eq!((&data["unavailable"], &data["results"]), (&json!(["memory"]), &json!([])));
}

#[test]
fn what_may_not_be_read_is_not_shown() {
    let config = SandboxConfig { unreadable: vec!["secret".into()], ..SandboxConfig::default() };
    let stage = Stage::with(&Selection::default(), &config);
    stage.write("secret/key.rs", "fn secret_name() {}\n");
    stage.write("open.rs", "fn open_name() { secret_name(); }\n");
    assert_eq!(stage.ids("name"), ["sym:open.rs#function:open_name"]);
    assert_eq!(stage.code_err(json!({"action": "outline", "uri": "secret/key.rs"})).0, "SANDBOX_DENIED");
    let outside = stage.outside.join("x.rs");
    fs::write(&outside, "fn outer() {}\n").unwrap();
    let arguments = json!({"action": "outline", "uri": outside.to_str().unwrap()});
    let local = stage.call("code", arguments.clone());
    assert!(!local.is_error && local.taint.is_some(), "{}", local.output);
    let remote = stage.call_as(ToolCaller::Remote, "code", arguments);
    assert_eq!(remote.envelope.unwrap()["error"]["code"], json!("DENIED"));
}

#[test]
fn the_gate_is_told_the_file_and_that_nothing_changes() {
    let stage = Stage::new();
    stage.write("a.rs", "fn f() {}\n");
    let tool = stage.tools.get("code").unwrap();
    for (arguments, action, path) in [
        (json!({"action": "outline", "uri": "a.rs"}), "code.outline", "a.rs"),
        (json!({"action": "definition", "symbol_id": "sym:a.rs#function:f"}), "code.definition", "a.rs"),
        (json!({"action": "search_symbol", "query": "f"}), "code.search_symbol", "."),
        (json!({"action": "query", "query": "(x) @y", "path": "a.rs"}), "code.query", "a.rs"),
    ] {
        let reach = tool.reach(&arguments);
        assert_eq!(reach.action, action);
        assert!(reach.effect.is_read_only());
        assert_eq!(reach.paths[0].given, path);
    }
}
