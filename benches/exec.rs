//! What running a program through `proc.exec` costs over running it: `cat` of a small file, plain and jailed, and git's status
//! through `vcs`. Everything is in the same run; the limit is a part of the few milliseconds between a model's reply and the
//! next request.

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}

#[cfg(target_os = "linux")]
#[expect(clippy::print_stdout, reason = "a benchmark's product is what it prints")]
mod linux {
    use std::path::Path;
    use std::process::{Command as Plain, Stdio};
    use std::sync::Arc;
    use std::time::Duration;

    use hanzo_benches::{Candidate, compare, print_table};
    use hanzo_dev::spawner::JailSpawner;
    use hanzo_protocol::ids::{ThreadId, TraceId};
    use hanzo_protocol::spawn::Spawner;
    use hanzo_protocol::tool::{ToolContext, ToolSet};
    use hanzo_sandbox::SandboxConfig;
    use hanzo_sandbox::jail::{Command, Jail, JailConfig};
    use hanzo_sandbox::paths::Workspace;
    use hanzo_testkit::blobs::MemoryBlobs;
    use hanzo_testkit::plain_spawner::PlainSpawner;
    use hanzo_tools::{Host, Selection, ToolOptions, toolset};
    use serde_json::{Value, json};

    const ROUNDS: usize = 300;

    fn plain(argv: &[&str], workspace: &Path) -> u64 {
        let output =
            Plain::new(argv[0]).args(&argv[1..]).current_dir(workspace).stdin(Stdio::null()).output();
        output.map_or(0, |output| output.stdout.len() as u64)
    }

    fn tools(workspace: &Path, spawner: Arc<dyn Spawner>) -> ToolSet {
        let paths = Workspace::open(workspace, &SandboxConfig::default()).expect("the workspace opens");
        let options = ToolOptions::new(workspace.with_extension("data"));
        let host = Host::new(Arc::new(paths), spawner, Arc::new(MemoryBlobs::default()), options);
        toolset(&Arc::new(host), &Selection::default())
    }

    pub(super) fn main() {
        hanzo_sandbox::run_personality();
        let workspace = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("exec-{}", std::process::id()));
        std::fs::create_dir(&workspace).expect("the workspace can be made");
        let workspace = workspace.canonicalize().expect("the workspace is there");
        plain(&["git", "init", "--quiet"], &workspace);
        std::fs::write(workspace.join("file"), "a line\n".repeat(100)).expect("the file can be written");

        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("the runtime starts");
        let jail = Jail::start(JailConfig::new(&workspace)).expect("the jail starts");
        let free = tools(&workspace, Arc::new(PlainSpawner::new(&workspace)));
        let spawner = JailSpawner::start(JailConfig::new(&workspace)).expect("the jail starts");
        let jailed = tools(&workspace, Arc::new(spawner));
        let call = |tools: &ToolSet, tool: &str, arguments: Value| {
            let context = ToolContext::new(ThreadId::new(), TraceId::new());
            let tool = Arc::clone(tools.get(tool).expect("the tool is there"));
            // In a task, as the engine runs it.
            let result = runtime.block_on(async {
                tokio::spawn(async move { tool.execute(&context, arguments).await }).await
            });
            result.map_or(
                0,
                |result| if result.is_error { panic!("{result:?}") } else { result.output.len() as u64 },
            )
        };
        let list = json!({"action": "exec", "command": ["cat", "file"]});
        let line = json!({"action": "exec", "command": "cat file"});
        let status = json!({"action": "status"});
        let rows = compare(
            ROUNDS,
            &mut [
                Candidate::new("std::process, `cat file`", || plain(&["cat", "file"], &workspace)),
                Candidate::new("proc.exec [cat, file], no jail", || call(&free, "proc", list.clone())),
                Candidate::new("the jail alone, `cat file`", || {
                    let child = jail.spawn(Command::new(["cat", "file"])).expect("it starts");
                    child
                        .wait_with_output(1 << 16, 1 << 16)
                        .map_or(0, |output| output.stdout.head.len() as u64)
                }),
                Candidate::new("proc.exec [cat, file], jailed", || call(&jailed, "proc", list.clone())),
                Candidate::new("std::process, `bash -c 'cat file'`", || {
                    plain(&["bash", "-c", "cat file"], &workspace)
                }),
                Candidate::new("proc.exec \"cat file\", jailed", || call(&jailed, "proc", line.clone())),
                Candidate::new("std::process, `git status`", || {
                    plain(&["git", "status", "--porcelain=v2"], &workspace)
                }),
                Candidate::new("vcs.status, jailed", || call(&jailed, "vcs", status.clone())),
            ],
        );
        print_table("Running a program through a tool", None, &rows);
        println!();
        let over = |a: usize, b: usize| rows[a].median.saturating_sub(rows[b].median);
        for (a, b, limit) in [
            (1, 0, Duration::from_micros(500)),
            (3, 2, Duration::from_micros(500)),
            (3, 0, Duration::from_millis(3)),
            (5, 4, Duration::from_millis(3)),
            (7, 6, Duration::from_millis(3)),
        ] {
            let held = if over(a, b) < limit { "held" } else { "MISSED" };
            println!("{}: {:?} over {}, limit {limit:?}: {held}", rows[a].label, over(a, b), rows[b].label);
        }
        drop((jail, free, jailed));
        runtime.shutdown_timeout(Duration::from_secs(1));
        let _ = std::fs::remove_dir_all(workspace);
    }
}
