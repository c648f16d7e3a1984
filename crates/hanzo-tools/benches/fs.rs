//! The `fs` tool against the programs people use instead: `rg` for searching, `fd` for listing, `stat` with `sha256sum` for
//! looking at files, and for `apply_patch` a minimal program that stages, flushes and renames the same bytes.
//!
//! `cargo bench -p hanzo-tools --bench fs`. The tree is the local cargo registry, or `HANZO_BENCH_TREE`, copied until it is
//! a gigabyte. Programs that are not installed are named and left out. The tools have the list of unreadable paths that a user
//! has: comparing with it is part of the work.
#![expect(clippy::print_stdout, reason = "a benchmark's product is what it prints")]

#[path = "../../../benches/src/lib.rs"]
mod harness;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hanzo_protocol::ids::{ThreadId, TraceId};
use hanzo_protocol::primitives::ContentHash;
use hanzo_protocol::tool::{ToolContext, ToolSet};
use hanzo_sandbox::SandboxConfig;
use hanzo_sandbox::paths::Workspace;
use hanzo_sandbox::protected::default_unreadable;
use hanzo_testkit::Nothing;
use hanzo_tools::contract::Cancelled;
use hanzo_tools::search::{Limits, Query, search};
use hanzo_tools::{Host, Selection, ToolOptions, toolset};
use harness::{Candidate, compare, print_table, print_verdict};
use serde_json::{Value, json};

fn workspace(root: &Path) -> Arc<Workspace> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let unreadable = default_unreadable(&home, &home.join(".config/hanzo"), &home.join(".local/share/hanzo"));
    let config = SandboxConfig { unreadable, ..SandboxConfig::default() };
    Arc::new(Workspace::open(root, &config).expect("the directory opens"))
}

/// What is found in the last file of the tree only.
const LATE: &str = "needle-in-the-last-file";

/// A tree of a gigabyte at least: copies of `source`, and a last file.
fn gigabyte_of(source: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let mut megabytes = 0;
    for copy in 0.. {
        let target = dir.path().join(format!("copy{copy}"));
        let copied = Command::new("cp").arg("-r").arg(source).arg(&target).status();
        assert!(copied.is_ok_and(|status| status.success()), "the tree can be copied");
        let size = Command::new("du").args(["-s", "--apparent-size", "-m"]).arg(&target).output();
        let size = String::from_utf8(size.expect("du runs").stdout).expect("du writes text");
        megabytes += size.split_whitespace().next().and_then(|size| size.parse::<u64>().ok()).unwrap_or(0);
        if megabytes >= 1000 || copy == 50 {
            break;
        }
    }
    fs::write(dir.path().join("zzz.txt"), format!("{LATE}\n")).expect("it writes");
    println!("tree: {megabytes} MB, copied from {}", source.display());
    dir
}

struct Tools {
    set: ToolSet,
    runtime: tokio::runtime::Runtime,
}

impl Tools {
    fn new(root: &Path, data: &Path) -> Self {
        // A store that keeps nothing, and hashes nothing: what is measured is the tool.
        let host = Host::new(workspace(root), Arc::new(Nothing), Arc::new(Nothing), ToolOptions::new(data));
        // As the program has it.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        Self { set: toolset(&Arc::new(host), &Selection::default()), runtime }
    }

    fn call(&self, arguments: Value) -> Value {
        self.calls(vec![arguments]).pop().expect("an answer")
    }

    /// One call after the other in a task, as an agent's loop makes them.
    fn calls(&self, calls: Vec<Value>) -> Vec<Value> {
        let tool = Arc::clone(self.set.get("fs").expect("there is fs"));
        let task = async move {
            let mut answers = Vec::with_capacity(calls.len());
            for arguments in calls {
                let context = ToolContext::new(ThreadId::new(), TraceId::new());
                let result = tool.execute(&context, arguments).await;
                assert!(!result.is_error, "{}", result.output);
                answers.push(result.envelope.expect("an envelope"));
            }
            answers
        };
        self.runtime.block_on(async { tokio::spawn(task).await.expect("the calls go well") })
    }
}

fn count_lines(program: &str, arguments: &[&str], directory: &Path) -> u64 {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    output.stdout.iter().fold(0, |lines, byte| lines + u64::from(*byte == b'\n'))
}

fn is_installed(program: &str) -> bool {
    let found =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        println!("\n`{program}` is not installed: its rows are left out");
    }
    found
}

fn searches(tree: &Path) {
    let workspace = workspace(tree);
    let has_rg = is_installed("rg");
    for (title, pattern, fixed) in [
        ("literal", "PhantomData", true),
        ("regex", r"fn \w+_unchecked\(", false),
        ("no match", "zzqqxxyyzz-not-there", true),
    ] {
        let query = Query { pattern: pattern.into(), fixed, path: ".".into(), ..Query::default() };
        let ours = || {
            let limits = Limits { matches: usize::MAX / 2, bytes: usize::MAX / 2 };
            let page = search(&workspace, &query, limits, None, &Cancelled::default()).expect("it searches");
            page.files.iter().map(|file| file.matches.len() as u64).sum()
        };
        let mode: &[&str] = if fixed { &["-F"] } else { &[] };
        let arguments = |extra: &[&'static str]| {
            [&["-n", "--no-config", "--color=never"], extra, mode, &["-e", pattern, "."]].concat()
        };
        let (parallel, sorted) = (arguments(&[]), arguments(&["--sort", "path"]));
        if has_rg {
            println!("\n{title}: {} matches by us, {} by rg", ours(), count_lines("rg", &parallel, tree));
        }
        let mut candidates = vec![Candidate::new("search_text, whole result", ours)];
        if has_rg {
            candidates.push(Candidate::new("rg", || count_lines("rg", &parallel, tree)));
            candidates.push(Candidate::new("rg --sort path", || count_lines("rg", &sorted, tree)));
        }
        let rows = compare(9, &mut candidates);
        print_table(&format!("search: {title}"), None, &rows);
        if has_rg {
            print_verdict(&rows[0], &rows[1], 1.3);
        }
    }
    let data = tempfile::tempdir().expect("a directory");
    let tools = Tools::new(tree, data.path());
    // As a caller gets it: the arguments checked, the envelope and the text for a model made.
    let page = |pattern: &'static str| {
        let tools = &tools;
        move || {
            let call = json!({"action": "search_text", "pattern": pattern, "limit": 50});
            tools.call(call)["data"]["matches"].as_array().map_or(0, Vec::len) as u64
        }
    };
    assert_eq!((page("fn ")(), page(LATE)()), (50, 1), "the matches are where they should be");
    let rows = compare(9, &mut [Candidate::new("search_text, 50 matches", page("fn "))]);
    print_table("search: first page, matches in the first files", None, &rows);
    let limit = Duration::from_millis(50);
    let held = if rows[0].median < limit { "held" } else { "MISSED" };
    println!("\nfirst page: {:?}, limit {limit:?}: {held}", rows[0].median);
    if has_rg {
        let late = || count_lines("rg", &["-n", "--no-config", "--sort", "path", "-e", LATE, "."], tree);
        let rows = compare(
            9,
            &mut [
                Candidate::new("search_text, 50 matches", page(LATE)),
                Candidate::new("rg --sort path", late),
            ],
        );
        print_table("search: first page, the only match in the last file", None, &rows);
        print_verdict(&rows[0], &rows[1], 1.0);
    }
}

fn lists(tree: &Path) {
    let data = tempfile::tempdir().expect("a directory");
    let tools = Tools::new(tree, data.path());
    let ours = || {
        let mut arguments = json!({"action": "list", "depth": 100, "limit": 4_000_000_000_u32});
        let mut entries = 0;
        loop {
            let answer = tools.call(arguments.clone());
            entries += answer["data"]["entries"].as_array().map_or(0, Vec::len) as u64;
            let cursor = answer["meta"]["paging"]["cursor"].clone();
            if cursor.is_null() {
                return entries;
            }
            arguments["cursor"] = cursor;
        }
    };
    let one_page = || tools.call(json!({"action": "list", "depth": 2})).to_string().len() as u64;
    let mut candidates =
        vec![Candidate::new("fs.list, all pages", &ours), Candidate::new("fs.list, first page", one_page)];
    // The same work: in path order, without what ignore files leave out.
    for program in ["fdfind", "fd"] {
        if is_installed(program) {
            let script = format!("{program} --color=never . | LC_ALL=C sort");
            println!(
                "\nlist: {} entries by us, {} by {program}",
                ours(),
                count_lines("sh", &["-c", &script], tree)
            );
            candidates.push(Candidate::new(format!("{program} | sort"), move || {
                count_lines("sh", &["-c", &script], tree)
            }));
            candidates
                .push(Candidate::new(program, move || count_lines(program, &["--color=never", "."], tree)));
            break;
        }
    }
    candidates.push(Candidate::new("find", || count_lines("find", &["."], tree)));
    let rows = compare(9, &mut candidates);
    print_table("list", None, &rows);
    if let Some(sorted) = rows.iter().find(|row| row.label.ends_with("sort")) {
        print_verdict(&rows[0], sorted, 1.5);
    }
}

/// Looking at many files. `fs.stat` answers with size, time, mode *and the hash of the content* (the contract has it so, for a
/// `base_hash`), which `stat` does not tell: whoever wants the same runs `sha256sum` as well. Each of the two gets all paths at
/// once, so that its start is shared by two thousand files, while `fs.stat` is called for every one of them, with arguments
/// checked and an envelope made.
fn stats() {
    const FILES: usize = 2000;
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let root = dir.path().canonicalize().expect("it exists").join("ws");
    fs::create_dir(&root).expect("a directory");
    let names: Vec<String> = (0..FILES).map(|n| format!("f{n}.txt")).collect();
    for name in &names {
        fs::write(root.join(name), "some line of ordinary text\n".repeat(150)).expect("it writes");
    }
    let tools = Tools::new(&root, &dir.path().join("data"));
    let look = |names: &[String]| {
        let calls = names.iter().map(|name| json!({"action": "stat", "path": name}));
        let answers = tools.calls(calls.collect());
        answers.iter().filter(|answer| answer["data"]["hash"].is_string()).count() as u64
    };
    let run = |program: &str, names: &[String]| {
        let output = Command::new(program).args(names).current_dir(&root).output().expect("it runs");
        assert!(output.status.success(), "{program} works");
        output.stdout.len() as u64
    };
    let plain = || {
        let hashes = names.iter().map(|name| {
            let path = root.join(name);
            let metadata = fs::metadata(&path).expect("it is there");
            (metadata.len(), ContentHash::of(&fs::read(&path).expect("it reads")))
        });
        hashes.collect::<Vec<_>>().len() as u64
    };
    let few = &names[..50];
    let each = || few.iter().map(|name| run("stat", std::slice::from_ref(name))).sum();
    let mut candidates = [
        Candidate::new("fs.stat, 2000 calls", || look(&names)),
        Candidate::new("stat and sha256sum, one process each, 2000 paths", || {
            run("stat", &names) + run("sha256sum", &names)
        }),
        Candidate::new("stat alone (no hashes), one process, 2000 paths", || run("stat", &names)),
        Candidate::new("in-process: metadata, read, hash, 2000 files", plain),
        Candidate::new("fs.stat, 50 calls", || look(few)),
        Candidate::new("stat alone (no hashes), 50 processes", each),
    ];
    let rows = compare(9, &mut candidates);
    print_table("stat", None, &rows);
    print_verdict(&rows[0], &rows[1], 1.5);
    print_verdict(&rows[4], &rows[5], 1.5);
}

/// Stages, flushes and renames, as plainly as it can be done: no lock, no journal, nothing read, hashed or compared.
fn minimal(files: &[(PathBuf, Vec<u8>)]) -> u64 {
    let staged: Vec<PathBuf> = files
        .iter()
        .map(|(path, content)| {
            let temporary = path.with_extension("tmp");
            let mut file = fs::File::create(&temporary).expect("a file");
            file.write_all(content).expect("it writes");
            file.sync_all().expect("it flushes");
            temporary
        })
        .collect();
    for ((path, _), temporary) in files.iter().zip(&staged) {
        fs::rename(temporary, path).expect("it renames");
    }
    if let Some((path, _)) = files.first() {
        fs::File::open(path.parent().expect("a parent")).and_then(|dir| dir.sync_all()).expect("it flushes");
    }
    files.len() as u64
}

fn edits(title: &str, count: usize, size: usize, rounds: usize) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let (root, data) = (dir.path().join("ws"), dir.path().join("data"));
    fs::create_dir(&root).expect("a directory");
    let body = "some line of ordinary text, repeated\n".repeat(size / 37 + 1);
    let content = |n: usize, turn: u64| format!("file {n}\nturn {turn}\n{body}");
    let paths: Vec<PathBuf> = (0..count).map(|n| root.join(format!("f{n}.txt"))).collect();
    for (n, path) in paths.iter().enumerate() {
        fs::write(path, content(n, 0)).expect("it writes");
    }
    let tools = Tools::new(&root.canonicalize().expect("it exists"), &data);
    let mut turn = 0;
    let mut known: Vec<Value> =
        (0..count).map(|n| json!(ContentHash::of(content(n, 0).as_bytes()).as_str())).collect();
    let ours = || {
        let mut patch = String::from("*** Begin Patch\n");
        let mut hashes = serde_json::Map::new();
        for (n, hash) in known.iter().enumerate() {
            let next = turn + 1;
            write!(patch, "*** Update File: f{n}.txt\n@@\n file {n}\n-turn {turn}\n+turn {next}\n")
                .expect("writing to a string does not fail");
            hashes.insert(format!("f{n}.txt"), hash.clone());
        }
        patch.push_str("*** End Patch\n");
        turn += 1;
        let answer = tools.call(json!({"action": "apply_patch", "patch": patch, "base_hashes": hashes}));
        for (hash, file) in known.iter_mut().zip(answer["data"]["files"].as_array().expect("files")) {
            *hash = file["hash"].clone();
        }
        count as u64
    };
    let other = dir.path().join("other");
    fs::create_dir(&other).expect("a directory");
    let files: Vec<(PathBuf, Vec<u8>)> =
        (0..count).map(|n| (other.join(format!("f{n}.txt")), content(n, 0).into_bytes())).collect();
    let theirs = || minimal(&files);
    // What is let go of in the background must not be paid for by the one whose turn is next.
    let rest = || {
        std::thread::sleep(Duration::from_millis(30));
        0
    };
    let rows = compare(
        rounds,
        &mut [
            Candidate::new("apply_patch", ours),
            Candidate::new("a rest", rest),
            Candidate::new("stage, flush, rename", theirs),
            Candidate::new("another", rest),
        ],
    );
    print_table(&format!("apply_patch: {title}"), None, &rows);
    print_verdict(&rows[0], &rows[2], 2.0);
}

fn main() {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let tree =
        std::env::var_os("HANZO_BENCH_TREE").map_or_else(|| home.join(".cargo/registry/src"), PathBuf::from);
    // `cargo bench -p hanzo-tools --bench fs -- edits` runs that part only.
    let parts: Vec<String> = std::env::args().skip(1).filter(|part| !part.starts_with('-')).collect();
    let is_wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    if is_wanted("search") || is_wanted("list") {
        let tree = gigabyte_of(&tree);
        if is_wanted("search") {
            searches(tree.path());
        }
        if is_wanted("list") {
            lists(tree.path());
        }
    }
    if is_wanted("stat") {
        stats();
    }
    if is_wanted("edits") {
        edits("one file of 10 MB", 1, 10 << 20, 25);
        edits("200 files of 4 kB", 200, 4 << 10, 9);
    }
}
