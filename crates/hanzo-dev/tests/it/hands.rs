//! The tools that run programs, in the real jail.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hanzo_dev::spawner::JailSpawner;
use hanzo_protocol::ids::{ThreadId, TraceId};
use hanzo_protocol::spawn::Spawner;
use hanzo_protocol::tool::{ToolContext, ToolResult, ToolSet};
use hanzo_sandbox::SandboxConfig;
use hanzo_sandbox::jail::JailConfig;
use hanzo_sandbox::paths::Workspace;
use hanzo_testkit::blobs::MemoryBlobs;
use hanzo_testkit::place::seen_from_a_jail;
use hanzo_tools::{Host, Selection, ToolOptions, toolset};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A workspace in a jail, and a place outside it that the jail can see.
struct Jailed {
    tools: ToolSet,
    host: Arc<Host>,
    workspace: PathBuf,
    outside: PathBuf,
    _directory: TempDir,
}

impl Jailed {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ToolOptions)) -> Self {
        let place = seen_from_a_jail(env!("CARGO_TARGET_TMPDIR").as_ref());
        let directory = tempfile::tempdir_in(place).unwrap();
        let base = directory.path().canonicalize().unwrap();
        let (workspace, outside, data) = (base.join("ws"), base.join("outside"), base.join("data"));
        for path in [&workspace, &outside, &data] {
            std::fs::create_dir(path).unwrap();
        }
        // A repository from the start: a jail protects what is there when it is made.
        git(&workspace, &["init", "-q", "-b", "main"]);
        let mut config = JailConfig::new(&workspace);
        config.host_binary = env!("CARGO_BIN_EXE_hanzo-dev").into();
        let spawner: Arc<dyn Spawner> = Arc::new(JailSpawner::start(config).unwrap());
        let paths = Workspace::open(&workspace, &SandboxConfig::default()).unwrap();
        let mut options = ToolOptions::new(data);
        change(&mut options);
        let host = Host::new(Arc::new(paths), spawner, Arc::new(MemoryBlobs::default()), options);
        let host = Arc::new(host);
        let tools = toolset(&host, &Selection::default());
        Self { tools, host, workspace, outside, _directory: directory }
    }

    async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        let context = ToolContext::new(ThreadId::new(), TraceId::new());
        self.tools.get(tool).unwrap().execute(&context, arguments).await
    }

    async fn ok(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone()).await;
        assert!(!result.is_error, "{arguments}: {result:#?}");
        result.envelope.unwrap()["data"].clone()
    }

    async fn exec(&self, command: impl Into<Value>) -> Value {
        self.ok("proc", json!({"action": "exec", "command": command.into()})).await
    }
}

fn git(directory: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Whether a process with this word in its command line runs anywhere on the machine.
fn runs(word: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let zombie = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
        !zombie && String::from_utf8_lossy(&line).contains(word)
    })
}

async fn gone_within_a_second(word: &str) {
    let limit = Instant::now() + Duration::from_secs(1);
    while runs(word) {
        assert!(Instant::now() < limit, "something survived");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn unique_sleep(number: u32) -> String {
    format!("{number}.{}", std::process::id())
}

/// A tree that tries to get away: another session, twice forked, deaf to signals.
fn stubborn(sleep: &str) -> String {
    format!(
        "(setsid sh -c 'trap \"\" TERM HUP INT; sleep {sleep} & sleep {sleep}' &) ; echo up; sleep {sleep}"
    )
}

#[tokio::test]
async fn a_command_writes_the_workspace_and_nothing_outside() {
    let jailed = Jailed::new();
    let victim = jailed.outside.join("victim");
    let line = format!("echo in > inside; echo out > {}", victim.display());
    // The control: without the jail the same line writes both.
    let free = Command::new("sh").args(["-c", &line]).current_dir(&jailed.workspace).status().unwrap();
    assert!(free.success() && victim.exists());
    std::fs::remove_file(&victim).unwrap();
    std::fs::remove_file(jailed.workspace.join("inside")).unwrap();

    let result = jailed.call("proc", json!({"action": "exec", "command": line})).await;
    assert!(!victim.exists(), "ESCAPED");
    assert_eq!(std::fs::read_to_string(jailed.workspace.join("inside")).unwrap(), "in\n");
    assert_eq!(
        result.denial.as_deref(),
        Some(format!("write to {}", victim.display()).as_str()),
        "{result:#?}"
    );
    let data = &result.envelope.unwrap()["data"];
    assert_ne!(data["exit_code"], 0);
    assert!(data["denial"]["evidence"].as_str().unwrap().contains("victim"));

    let unconfined = json!({"action": "exec", "command": line, "unconfined": true});
    let refused = jailed.call("proc", unconfined).await;
    assert_eq!(refused.envelope.unwrap()["error"]["code"], "UNSUPPORTED", "there is no way out here");
    assert!(!victim.exists());
}

#[tokio::test]
async fn a_hostile_repository_changes_nothing_outside() {
    let jailed = Jailed::new();
    let (workspace, trap) = (&jailed.workspace, jailed.outside.join("trap"));
    std::fs::write(workspace.join("a.txt"), "one\n").unwrap();
    git(workspace, &["add", "."]);
    git(workspace, &["commit", "-qm", "First"]);
    let run = format!("sh -c 'echo x >> {}; cat'", trap.display());
    for name in [
        "core.fsmonitor",
        "diff.external",
        "core.pager",
        "core.sshCommand",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
        "diff.evil.command",
        "gpg.program",
        "credential.helper",
        "core.editor",
        "core.askPass",
        "merge.evil.driver",
        "uploadpack.packObjectsHook",
    ] {
        git(workspace, &["config", name, &run]);
    }
    std::fs::write(workspace.join(".gitattributes"), "*.txt filter=evil diff=evil merge=evil\n").unwrap();
    std::fs::write(workspace.join("a.txt"), "two\n").unwrap();
    // The control: git alone walks into it.
    let _ = Command::new("git").args(["diff"]).current_dir(workspace).output().unwrap();
    assert!(trap.exists(), "the trap does not work");
    std::fs::remove_file(&trap).unwrap();

    let commit = json!({"action": "commit", "message": "m", "paths": ["a.txt"]});
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-two\n+three\n";
    for call in [
        json!({"action": "status"}),
        json!({"action": "apply", "patch": patch, "index": true}),
        json!({"action": "apply", "patch": patch}),
        json!({"action": "branch", "op": "create", "name": "other"}),
        json!({"action": "worktree", "op": "add", "paths": "trees/x", "name": "x"}),
        json!({"action": "diff"}),
        json!({"action": "diff", "ref": "HEAD"}),
        json!({"action": "show"}),
        json!({"action": "log"}),
        json!({"action": "blame", "path": "a.txt"}),
        json!({"action": "stash", "op": "push"}),
        json!({"action": "stash", "op": "pop"}),
        commit,
        json!({"action": "checkout", "ref": "HEAD~1"}),
        json!({"action": "fetch"}),
        json!({"action": "push"}),
        json!({"action": "config", "op": "list"}),
        json!({"action": "config", "name": "core.editor", "value": "x"}),
    ] {
        let _ = jailed.call("vcs", call.clone()).await;
        assert!(!trap.exists(), "ESCAPED by {call}");
    }
    // What can run programs later is closed to the sandbox.
    let ran = jailed.exec("echo '[alias]' >> .git/config; git config alias.x '!true'; echo '#!/bin/sh' > .git/hooks/post-commit; echo tried").await;
    assert!(ran["stdout"].as_str().unwrap().contains("tried"));
    assert!(!std::fs::read_to_string(workspace.join(".git/config")).unwrap().contains("alias"));
    assert!(!workspace.join(".git/hooks/post-commit").exists());
}

#[tokio::test]
async fn git_works_in_the_jail() {
    let jailed = Jailed::new();
    git(&jailed.workspace, &["config", "user.name", "Ada"]);
    git(&jailed.workspace, &["config", "user.email", "ada@example.org"]);
    std::fs::write(jailed.workspace.join("a.txt"), "one\n").unwrap();
    let vcs = |call: Value| jailed.ok("vcs", call);
    assert_eq!(vcs(json!({"action": "status"})).await["entries"][0]["path"], "a.txt");
    vcs(json!({"action": "commit", "message": "First", "paths": ["a.txt"]})).await;
    std::fs::write(jailed.workspace.join("a.txt"), "two\n").unwrap();
    let diff = vcs(json!({"action": "diff"})).await["diff"].as_str().unwrap().to_owned();
    assert!(diff.contains("-one\n+two\n"));
    vcs(json!({"action": "checkout", "paths": "a.txt"})).await;
    vcs(json!({"action": "apply", "patch": diff})).await;
    assert_eq!(std::fs::read_to_string(jailed.workspace.join("a.txt")).unwrap(), "two\n");
    vcs(json!({"action": "stash", "op": "push"})).await;
    vcs(json!({"action": "stash", "op": "pop"})).await;
    vcs(json!({"action": "branch", "op": "create", "name": "fix"})).await;
    vcs(json!({"action": "branch", "op": "rename", "name": "fix", "to": "mend"})).await;
    vcs(json!({"action": "branch", "op": "delete", "name": "mend"})).await;
    vcs(json!({"action": "checkout", "ref": "next", "create": true})).await;
    vcs(json!({"action": "commit", "message": "Second", "all": true})).await;
    vcs(json!({"action": "worktree", "op": "add", "paths": "trees/x", "name": "x"})).await;
    vcs(json!({"action": "worktree", "op": "remove", "paths": "trees/x"})).await;
    let log = vcs(json!({"action": "log"})).await;
    assert_eq!(
        (&log["commits"][0]["subject"], &log["commits"][0]["author"]),
        (&json!("Second"), &json!("Ada <ada@example.org>"))
    );
    let config = jailed.call("vcs", json!({"action": "config", "name": "user.name", "value": "Eve"})).await;
    assert_eq!(config.envelope.unwrap()["error"]["code"], "UNSUPPORTED");
    let fetch = jailed.call("vcs", json!({"action": "fetch"})).await;
    assert_eq!(fetch.envelope.unwrap()["error"]["code"], "SANDBOX_DENIED");
}

#[tokio::test]
async fn a_server_in_the_background_answers_the_next_command() {
    let jailed = Jailed::new();
    let server = "import socket\ns=socket.socket()\ns.bind(('127.0.0.1',0))\ns.listen()\nopen('port','w').write(str(s.getsockname()[1])+'\\n')\nwhile True:\n    c,_=s.accept()\n    c.sendall(b'hello from the server\\n')\n    c.close()\n";
    let python = Command::new("python3").arg("--version").output().is_ok();
    assert!(python, "the test needs python3 to listen");
    let started = json!({"action": "exec", "command": ["python3", "-c", server], "background": true});
    let started = jailed.ok("proc", started).await;
    assert_eq!(started["status"], "running");
    let line = "while ! test -s port; do sleep 0.02; done; exec 3<>/dev/tcp/127.0.0.1/$(cat port); cat <&3";
    assert_eq!(jailed.exec(line).await["stdout"], "hello from the server\n");
    // The same started as a shell user would, with nothing waiting for its output.
    std::fs::remove_file(jailed.workspace.join("port")).unwrap();
    std::fs::write(jailed.workspace.join("server.py"), server).unwrap();
    let started = jailed.exec("python3 server.py & echo started").await;
    assert_eq!((&started["status"], &started["leftovers"]), (&json!("exited"), &json!(true)));
    assert_eq!(jailed.exec(line).await["stdout"], "hello from the server\n");
    jailed.ok("proc", json!({"action": "kill", "proc_id": started["proc_id"]})).await;
    gone_within_a_second("server.py").await;
}

#[tokio::test]
async fn nothing_survives_a_time_limit_a_kill_an_interrupt_or_the_thread() {
    let jailed = Jailed::new();
    let sleep = unique_sleep(4001);
    let line = stubborn(&sleep);
    let ran = jailed.ok("proc", json!({"action": "exec", "command": line, "timeout": 0.4})).await;
    assert_eq!((&ran["status"], &ran["stdout"]), (&json!("timed_out"), &json!("up\n")));
    gone_within_a_second(&sleep).await;

    let ran = jailed.ok("proc", json!({"action": "exec", "command": line, "background": true})).await;
    while !runs(&sleep) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let killed = jailed.ok("proc", json!({"action": "kill", "proc_id": ran["proc_id"]})).await;
    assert_eq!(killed["status"], "killed");
    gone_within_a_second(&sleep).await;

    let interrupted = jailed.call("proc", json!({"action": "exec", "command": line}));
    assert!(tokio::time::timeout(Duration::from_millis(400), interrupted).await.is_err());
    gone_within_a_second(&sleep).await;

    jailed.ok("proc", json!({"action": "exec", "command": line, "background": true})).await;
    jailed.exec(format!("setsid sleep {sleep} >/dev/null 2>&1 &")).await;
    while !runs(&sleep) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    jailed.host.jobs.end(Duration::from_secs(1)).await;
    gone_within_a_second(&sleep).await;
}

#[tokio::test]
async fn a_signal_reaches_the_program() {
    let jailed = Jailed::new();
    let line = "trap 'echo asked; exit 7' TERM; echo up; while :; do sleep 0.05; done";
    let ran = jailed.ok("proc", json!({"action": "exec", "command": line, "background": true})).await;
    let id = &ran["proc_id"];
    while jailed.ok("proc", json!({"action": "logs", "proc_id": id})).await["stdout"] != "up\n" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let killed = jailed.ok("proc", json!({"action": "kill", "proc_id": id, "signal": "TERM"})).await;
    assert_eq!((&killed["status"], &killed["exit_code"]), (&json!("exited"), &json!(7)));
}

#[tokio::test]
async fn a_terminal_is_one_and_can_be_written_to() {
    let jailed = Jailed::new();
    let call = json!({"action": "exec", "command": "test -t 0 && test -t 1 && stty size; echo $TERM; printf '\\033[31mred\\033[0m\\n'", "pty": {"rows": 33, "cols": 77}});
    let ran = jailed.ok("proc", call).await;
    assert_eq!((&ran["stdout"], &ran["exit_code"]), (&json!("33 77\nxterm-256color\nred\n"), &json!(0)));
    let call = json!({"action": "exec", "command": "stty -echo; read -p 'name? ' name; echo hello $name", "pty": true, "background": true});
    let ran = jailed.ok("proc", call).await;
    let id = &ran["proc_id"];
    while !jailed.ok("proc", json!({"action": "logs", "proc_id": id})).await["stdout"]
        .as_str()
        .unwrap()
        .contains("name?")
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    jailed.ok("proc", json!({"action": "write", "proc_id": id, "stdin": "Ada\n"})).await;
    let logs = jailed.ok("proc", json!({"action": "logs", "proc_id": id, "wait": 10})).await;
    assert_eq!(logs["stdout"], "name? hello Ada\n");
}

#[tokio::test]
async fn input_and_odd_bytes_pass() {
    let jailed = Jailed::new();
    let long = "y".repeat(300_000);
    let ran = jailed
        .ok("proc", json!({"action": "exec", "command": "wc -c; printf '\\377\\000ok\\n'", "stdin": long}))
        .await;
    assert_eq!(ran["stdout"], "300000\n\u{fffd}ok\n");
    let ran = jailed.exec(json!(["cat", "/nonexistent"])).await;
    assert_eq!(ran["exit_code"], 1);
    let missing = jailed.call("proc", json!({"action": "exec", "command": ["no-such-program"]})).await;
    assert_eq!(missing.envelope.unwrap()["error"]["code"], "NOT_FOUND");
}

#[tokio::test]
async fn a_flood_of_output_is_held() {
    let jailed = Jailed::with(|options| options.proc.jobs.spool_limit = 1 << 20);
    let ran = jailed.exec("head -c 100000000 /dev/zero | tr '\\0' z; echo; echo end").await;
    assert_eq!(ran["exit_code"], 0);
    let text = ran["stdout"].as_str().unwrap();
    assert!(text.ends_with("\nend\n") && text.contains("were not kept") && text.len() < 31_000);
}

#[tokio::test]
async fn a_test_runner_in_the_jail_leaves_its_report_to_us_and_cannot_pass_off_another_file() {
    let jailed = Jailed::new();
    let script = jailed.workspace.join("node_modules/.bin/jest");
    std::fs::create_dir_all(script.parent().unwrap()).unwrap();
    std::fs::write(jailed.workspace.join("package.json"), r#"{"devDependencies": {"jest": "*"}}"#).unwrap();
    let report = r#"{"testResults":[{"assertionResults":[{"fullName":"a","status":"passed"}]}]}"#;
    let outside = jailed.outside.join("report");
    std::fs::write(&outside, report).unwrap();
    let run = async |line: &str| {
        let find = "for word; do case $word in --outputFile=*) out=${word#*=};; esac; done";
        std::fs::write(&script, format!("#!/bin/sh\n{find}\necho $out\n{line}\n")).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, executable).unwrap();
        jailed.ok("test", json!({"action": "run", "wait": 60})).await
    };
    let passed = run(&format!("echo '{report}' > \"$out\"")).await;
    assert_eq!((passed["status"].as_str(), passed["pass"].as_u64()), (Some("passed"), Some(1)), "{passed:#}");
    let link = run(&format!("ln -s '{}' \"$out\"", outside.display())).await;
    assert_eq!((link["status"].as_str(), link["pass"].as_u64()), (Some("error"), Some(0)), "{link:#}");
    let directory =
        format!("dir=$(dirname \"$out\"); rm -r \"$dir\" && ln -s '{}' \"$dir\"", jailed.outside.display());
    let moved = run(&directory).await;
    assert_eq!((moved["status"].as_str(), moved["pass"].as_u64()), (Some("error"), Some(0)), "{moved:#}");
    assert!(outside.exists(), "what a link points to is left alone");
    let left = jailed.exec("ls /tmp").await;
    assert!(!left["stdout"].as_str().unwrap().contains("hanzo-test"), "{left:#}");
}
