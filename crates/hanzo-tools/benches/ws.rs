//! `ws.detect` on a repository of 100,000 files, beside listing the same tree with `find`. The limit is 100 ms.

fn main() {
    #[cfg(unix)]
    unix::main();
}

#[cfg(unix)]
#[expect(clippy::print_stdout, reason = "a benchmark's product is what it prints")]
mod unix {
    use std::fs::{self, File};
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use hanzo_protocol::ids::{ThreadId, TraceId};
    use hanzo_protocol::tool::ToolContext;
    use hanzo_sandbox::SandboxConfig;
    use hanzo_sandbox::paths::Workspace;
    use hanzo_testkit::blobs::MemoryBlobs;
    use hanzo_testkit::plain_spawner::PlainSpawner;
    use hanzo_tools::{Host, Selection, ToolOptions, toolset};
    use serde_json::json;

    const FILES: usize = 100_000;
    const ROUNDS: usize = 20;
    const LIMIT: Duration = Duration::from_millis(100);

    fn grow(root: &Path) {
        for number in 0..FILES / 100 {
            let directory = root.join(format!("p{}/d{number}", number % 20));
            fs::create_dir_all(&directory).expect("a directory can be made");
            for file in 0..100 {
                File::create(directory.join(format!("f{file}.rs"))).expect("a file can be made");
            }
        }
        fs::write(root.join("Cargo.toml"), "[workspace]\n").expect("a file can be written");
    }

    pub(super) fn main() {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ws-{}", std::process::id()));
        fs::create_dir(&root).expect("the workspace can be made");
        grow(&root);
        let paths = Workspace::open(&root, &SandboxConfig::default()).expect("the workspace opens");
        let host = Host::new(
            Arc::new(paths),
            Arc::new(PlainSpawner::new(&root)),
            Arc::new(MemoryBlobs::default()),
            ToolOptions::new(root.with_extension("data")),
        );
        let tools = toolset(&Arc::new(host), &Selection::default());
        let ws = tools.get("ws").expect("the tool is there");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the runtime starts");
        let context = ToolContext::new(ThreadId::new(), TraceId::new());
        let detect = || {
            let result = runtime.block_on(ws.execute(&context, json!({"action": "detect"})));
            assert!(!result.is_error, "{}", result.output);
            result.output.len()
        };
        let find = || {
            let output = Command::new("find").arg(&root).stdin(Stdio::null()).output();
            output.map_or(0, |output| output.stdout.len())
        };
        // They take turns, so that the noise of the machine falls on both alike.
        let mut times = [const { Vec::new() }; 2];
        for round in 0..=ROUNDS {
            for (times, work) in times.iter_mut().zip([&find as &dyn Fn() -> usize, &detect]) {
                let began = Instant::now();
                std::hint::black_box(work());
                // The first round warms up.
                if round > 0 {
                    times.push(began.elapsed());
                }
            }
        }
        let [find, detect] = times.map(|mut times: Vec<Duration>| {
            times.sort_unstable();
            times[times.len() / 2]
        });
        let held = if detect < LIMIT { "held" } else { "MISSED" };
        println!("### Looking at {FILES} files\n\n| candidate | median |\n| --- | --- |");
        println!("| find | {find:.1?} |\n| ws.detect | {detect:.1?} |\n\nlimit {LIMIT:?}: {held}");
        let _ = fs::remove_dir_all(&root);
    }
}
