//! `code`: how fast a tree is indexed (beside a bare parse of the same files, and universal-ctags where it is installed), a changed
//! file is indexed again, and symbols are found among 500,000.
//!
//! `HANZO_BENCH_TREES` is a list of directories, separated by colons, that are indexed; `cargo xtask bench code` fetches one for
//! each language. Without it, this repository is.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark's product is what it prints")]
#![expect(clippy::cast_precision_loss, reason = "a throughput is read to three digits")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hanzo_protocol::ids::{ThreadId, TraceId};
use hanzo_protocol::tool::{ToolContext, ToolSet};
use hanzo_sandbox::SandboxConfig;
use hanzo_sandbox::paths::Workspace;
use hanzo_testkit::Nothing;
use hanzo_tools::{Host, Selection, ToolOptions, toolset};
use serde_json::{Value, json};

struct Stage {
    tools: ToolSet,
    runtime: tokio::runtime::Runtime,
}

impl Stage {
    fn new(root: &Path, data: &Path) -> Self {
        let workspace = Workspace::open(root, &SandboxConfig::default()).unwrap();
        let host =
            Host::new(Arc::new(workspace), Arc::new(Nothing), Arc::new(Nothing), ToolOptions::new(data));
        let tools = toolset(&Arc::new(host), &Selection::default());
        Self { tools, runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap() }
    }

    fn call(&self, arguments: Value) -> Value {
        let context = ToolContext::new(ThreadId::new(), TraceId::new());
        let tool = self.tools.get("code").unwrap();
        self.runtime.block_on(tool.execute(&context, arguments)).envelope.unwrap()
    }

    fn find(&self, query: &str) -> Value {
        self.call(json!({"action": "search_symbol", "query": query}))
    }

    fn build(&self) -> Duration {
        let began = Instant::now();
        while self.find("zzzz_there_is_no_such_name")["data"]["complete"] != json!(true) {}
        began.elapsed()
    }
}

/// Processor time of this process, all threads.
fn cpu() -> Duration {
    Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime)).unwrap()
}

fn grammar(path: &Path, is_cpp: bool) -> Option<tree_sitter::Language> {
    Some(match path.extension()?.to_str()? {
        "rs" => tree_sitter_rust::LANGUAGE.into(),
        "js" | "jsx" | "mjs" | "cjs" => tree_sitter_javascript::LANGUAGE.into(),
        "ts" | "mts" | "cts" => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        "tsx" => tree_sitter_typescript::LANGUAGE_TSX.into(),
        "py" => tree_sitter_python::LANGUAGE.into(),
        "go" => tree_sitter_go::LANGUAGE.into(),
        "java" => tree_sitter_java::LANGUAGE.into(),
        "c" => tree_sitter_c::LANGUAGE.into(),
        "h" if !is_cpp => tree_sitter_c::LANGUAGE.into(),
        "h" | "cc" | "cpp" | "hpp" | "cxx" | "hh" => tree_sitter_cpp::LANGUAGE.into(),
        _ => return None,
    })
}

/// Processor time of parsing all files with tree-sitter, and nothing else: what an index that looks at every byte cannot beat.
fn bare(files: &[PathBuf]) -> Duration {
    let is_cpp =
        files.iter().any(|path| path.extension().is_some_and(|ending| ending == "cc" || ending == "hpp"));
    let mut parser = tree_sitter::Parser::new();
    let mut spent = Duration::ZERO;
    for path in files {
        let Some(language) = grammar(path, is_cpp) else { continue };
        let text = fs::read(path).unwrap();
        parser.set_language(&language).unwrap();
        let before = cpu();
        std::hint::black_box(parser.parse(&text, None));
        spent += cpu().saturating_sub(before);
    }
    spent
}

fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or_default()
        .split_once(':')
        .unwrap()
        .1
        .trim()
        .to_owned()
}

fn sources(directory: &Path, bytes: &mut u64, files: &mut Vec<PathBuf>) {
    const ENDINGS: &[&str] = &[
        "rs", "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "py", "go", "java", "c", "h", "cc",
        "cpp", "hpp", "cxx", "hh",
    ];
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Ok(kind) = entry.file_type() else { continue };
        if name.starts_with('.') || name == "target" || name == "node_modules" {
            continue;
        }
        if kind.is_dir() {
            sources(&entry.path(), bytes, files);
        } else if kind.is_file() && name.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending))
        {
            *bytes += entry.metadata().map_or(0, |data| data.len());
            files.push(entry.path());
        }
    }
}

fn ctags(directory: &Path) -> Option<Duration> {
    let began = Instant::now();
    let status = Command::new("ctags")
        .current_dir(directory)
        .args(["-R", "-f", "/dev/null", "--exclude=target", "--exclude=node_modules", "."])
        .stderr(Stdio::null())
        .status();
    status.ok().filter(std::process::ExitStatus::success).map(|_| began.elapsed())
}

/// MB/s of one core that a cold index must reach.
const LEAST_RATE: f64 = 8.0;

/// The last two parts of a path.
fn name_of(root: &Path) -> String {
    let parts: Vec<_> = root.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

fn cold(root: &Path) {
    let data = tempfile::tempdir().unwrap();
    let (mut bytes, mut files) = (0, Vec::new());
    sources(root, &mut bytes, &mut files);
    let stage = Stage::new(root, data.path());
    let before = cpu();
    let wall = stage.build();
    let spent = cpu().saturating_sub(before);
    let megabytes = bytes as f64 / 1e6;
    let theirs = ctags(root)
        .map_or_else(|| "–".to_owned(), |time| format!("{:.1} MB/s", megabytes / time.as_secs_f64()));
    let rate = megabytes / spent.as_secs_f64();
    println!(
        "| {} | {} | {megabytes:.1} MB | {:.2} s | {rate:.1} MB/s | {:.1}× | {:.1} MB/s | {theirs} |",
        name_of(root),
        files.len(),
        wall.as_secs_f64(),
        rate / LEAST_RATE,
        megabytes / bare(&files).as_secs_f64(),
    );
}

/// A tree of 500,000 symbols with names as people give them.
fn large(root: &Path) {
    const VERBS: &[&str] =
        &["get", "set", "parse", "build", "open", "close", "read", "write", "find", "make", "load", "save"];
    const NOUNS: &[&str] =
        &["User", "Config", "Index", "Token", "Buffer", "Session", "Path", "Query", "Node", "Page", "Frame"];
    for directory in 0..100 {
        let place = root.join(format!("module{directory}"));
        fs::create_dir_all(&place).unwrap();
        for file in 0..100 {
            let mut text = String::new();
            for number in 0..17 {
                let verb = VERBS[(number + file) % VERBS.len()];
                let noun = NOUNS[(number + directory) % NOUNS.len()];
                let unique = directory * 100 + file;
                writeln!(text, "pub fn {verb}_{}_{unique}_{number}() {{}}", noun.to_lowercase()).unwrap();
                writeln!(text, "pub struct {noun}{unique}N{number} {{\n    pub {verb}: u32,\n}}").unwrap();
            }
            fs::write(place.join(format!("file{file}.rs")), text).unwrap();
        }
    }
}

fn timed(rounds: usize, mut work: impl FnMut()) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() - 1])
}

/// The slowest queries of one and two letters, digits and `_` that find something, each the better of two. One that finds nothing
/// waits for another look at the tree, which is measured by itself.
fn slowest(stage: &Stage) -> String {
    let letters: Vec<char> = ('a'..='z').chain('0'..='9').chain(['_']).collect();
    let ones = letters.iter().map(char::to_string);
    let twos = letters.iter().flat_map(|first| letters.iter().map(move |second| format!("{first}{second}")));
    let mut times: Vec<(Duration, String)> = ones
        .chain(twos)
        .filter(|query| {
            stage.find(query)["data"]["symbols"].as_array().is_some_and(|found| !found.is_empty())
        })
        .map(|query| {
            let time = || {
                let began = Instant::now();
                std::hint::black_box(stage.find(&query));
                began.elapsed()
            };
            (time().min(time()), query)
        })
        .collect();
    times.sort_unstable();
    let shown: Vec<String> =
        times.iter().rev().take(3).map(|(time, query)| format!("`{query}` {time:.2?}")).collect();
    shown.join(", ")
}

fn row(what: &str, median: Duration, worst: Duration, limit_ms: u64) {
    let limit = Duration::from_millis(limit_ms);
    let ratio = limit.as_secs_f64() / median.as_secs_f64();
    println!("| {what} | {median:.2?} | {worst:.2?} | {limit_ms} ms | {ratio:.1}× |");
}

fn main() {
    println!(
        "### code: cold index\n\n| tree | files | source | wall | rate per core | of the least (8 MB/s) | bare parse, one core | universal-ctags, one core |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let trees = std::env::var("HANZO_BENCH_TREES").unwrap_or_default();
    if trees.is_empty() {
        cold(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    }
    for tree in trees.split(':').filter(|tree| !tree.is_empty()) {
        cold(&PathBuf::from(tree));
    }

    let work = tempfile::tempdir().unwrap();
    let (root, data) = (work.path().join("ws"), work.path().join("data"));
    large(&root);
    let stage = Stage::new(&root, &data);
    let wall = stage.build();
    println!(
        "\n### code: a large tree, 10,000 files\n\n| what | median | worst | limit | limit / median |\n| --- | --- | --- | --- | --- |"
    );
    println!("| cold index | {wall:.2?} | | | |");
    std::thread::sleep(Duration::from_millis(500));
    for query in [
        "parse_user_17_3",
        "parseuser",
        "get_",
        "get",
        "Config42",
        "e",
        "q",
        "se",
        "er",
        "User99N1",
        "prsUsr",
    ] {
        let (median, worst) = timed(30, || {
            std::hint::black_box(stage.find(query));
        });
        row(&format!("search_symbol `{query}`"), median, worst, 5);
    }
    println!("| search_symbol, the slowest of every one and two letters | {} | | 5 ms | |", slowest(&stage));
    let (median, worst) = timed(20, || {
        std::hint::black_box(stage.find("zzzz"));
    });
    println!("| nothing found, after another look at the tree | {median:.2?} | {worst:.2?} | | |");
    let file = root.join("module7/file7.rs");
    let text = fs::read_to_string(&file).unwrap();
    let uri = file.to_string_lossy().into_owned();
    let mut number = 0;
    let (median, worst) = timed(20, || {
        number += 1;
        fs::write(&file, format!("{text}\npub fn fresh_{number}() {{}}\n")).unwrap();
        // Reading it through `fs` is what tells the index; a definition in it must then be found.
        let context = ToolContext::new(ThreadId::new(), TraceId::new());
        let fs_tool = stage.tools.get("fs").unwrap();
        stage.runtime.block_on(fs_tool.execute(&context, json!({"action": "read", "path": uri, "limit": 1})));
        let found = stage.find(&format!("fresh_{number}"));
        assert_eq!(found["data"]["symbols"].as_array().unwrap().len(), 1, "{found}");
    });
    row("a changed file, read, indexed again and found", median, worst, 10);
    drop(stage);
    std::thread::sleep(Duration::from_millis(1500));
    let (median, worst) = timed(3, || {
        let stage = Stage::new(&root, &data);
        std::hint::black_box(stage.find("parse_user_17_3"));
    });
    println!("| first answer of a new process, index on disk | {median:.2?} | {worst:.2?} | | |");
    println!("\npeak memory of this process: {}", peak_memory());
}
