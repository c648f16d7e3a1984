//! `code`: how fast a tree is indexed (against universal-ctags, where it is installed), a changed file is indexed again, and
//! symbols are found among 500,000.
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

use hanzo_protocol::BoxFuture;
use hanzo_protocol::blob::{BlobError, BlobStore};
use hanzo_protocol::ids::{ThreadId, TraceId};
use hanzo_protocol::primitives::ContentHash;
use hanzo_protocol::spawn::{Confinement, Process, SpawnError, SpawnRequest, Spawner};
use hanzo_protocol::tool::{ToolContext, ToolSet};
use hanzo_sandbox::SandboxConfig;
use hanzo_sandbox::paths::Workspace;
use hanzo_tools::{Host, Selection, ToolOptions, toolset};
use serde_json::{Value, json};

struct Nothing;

impl BlobStore for Nothing {
    fn put<'a>(&'a self, content: &'a [u8]) -> BoxFuture<'a, Result<ContentHash, BlobError>> {
        let hash = ContentHash::of(content);
        Box::pin(async move { Ok(hash) })
    }

    fn get<'a>(&'a self, _: &'a ContentHash) -> BoxFuture<'a, Result<Option<Vec<u8>>, BlobError>> {
        Box::pin(async { Ok(None) })
    }
}

impl Spawner for Nothing {
    fn confinement(&self) -> Confinement {
        Confinement { level: "none".into(), writable: Vec::new(), network: false, tmp: None }
    }

    fn spawn(&self, _: SpawnRequest) -> BoxFuture<'_, Result<Box<dyn Process>, SpawnError>> {
        Box::pin(async { Err(SpawnError::Confinement("not here".into())) })
    }
}

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
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
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

fn sources(directory: &Path, bytes: &mut u64, files: &mut u64) {
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
            *files += 1;
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
    let (mut bytes, mut files) = (0, 0);
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
        "| {} | {files} | {megabytes:.1} MB | {:.2} s | {:.1} MB/s | {rate:.1} MB/s | {:.1}× | {theirs} |",
        name_of(root),
        wall.as_secs_f64(),
        megabytes / wall.as_secs_f64(),
        rate / LEAST_RATE,
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

fn row(what: &str, median: Duration, worst: Duration, limit_ms: u64) {
    let limit = Duration::from_millis(limit_ms);
    let ratio = limit.as_secs_f64() / median.as_secs_f64();
    println!("| {what} | {median:.2?} | {worst:.2?} | {limit_ms} ms | {ratio:.1}× |");
}

fn main() {
    println!(
        "### code: cold index\n\n| tree | files | source | wall | wall rate | rate per core | of the least (8 MB/s) | universal-ctags, one core |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let trees = std::env::var("HANZO_BENCH_TREES").unwrap_or_default();
    if trees.is_empty() {
        cold(&Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates"));
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
    for query in ["parse_user_17_3", "parseuser", "get_", "Config42", "e", "q", "se", "User99N1", "prsUsr"] {
        let (median, worst) = timed(30, || {
            std::hint::black_box(stage.find(query));
        });
        row(&format!("search_symbol `{query}`"), median, worst, 5);
    }
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
