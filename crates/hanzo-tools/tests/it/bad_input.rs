//! Every action of every tool with arguments that make no sense: a typed error, soon, and nothing changed. The arguments are made
//! from the actions' own schemas and examples, so that a new action is part of it without a word here.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hanzo_protocol::tool::ToolCaller;
use hanzo_tools::unified;
use serde_json::{Value, json};

use crate::support::Stage;

/// The codes an error may have; `ERROR` is for what nobody thought of.
const TYPED: [&str; 12] = [
    "INVALID_ARGUMENTS",
    "NOT_FOUND",
    "CONFLICT",
    "DENIED",
    "SANDBOX_DENIED",
    "UNSUPPORTED",
    "TOO_LARGE",
    "AMBIGUOUS",
    "ALREADY_EXISTS",
    "CONFIRMATION_REQUIRED",
    "IO",
    "UNAVAILABLE",
];

/// The examples of every action, with the tool and the exact schema.
fn examples(stage: &Stage) -> Vec<(String, Value, Value)> {
    let mut found = Vec::new();
    for tool in unified(&stage.host) {
        let schemas = stage.call(tool.name(), json!({"action": "schema"})).envelope.unwrap()["data"].clone();
        // `ws` answers with the schemas of every tool.
        let schemas = if tool.name() == "ws" { schemas["tools"]["ws"].clone() } else { schemas };
        let help = stage.call(tool.name(), json!({})).output;
        let examples = help.split("```json\n").skip(1).map(|rest| rest.split("\n```").next().unwrap());
        for example in examples {
            let example: Value = serde_json::from_str(example).unwrap();
            let schema = schemas["actions"][example["action"].as_str().unwrap()]["input"].clone();
            found.push((tool.name().to_owned(), example, schema));
        }
    }
    assert!(found.len() >= 20, "there are more actions than {}", found.len());
    found
}

/// All that is beneath a directory: names, and what is in plain files.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut rest = vec![root.to_owned()];
    while let Some(directory) = rest.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            let content = if kind.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
            all.insert(entry.path(), content);
            if kind.is_dir() {
                rest.push(entry.path());
            }
        }
    }
    all
}

/// Locks and journals aside, all is as it was.
fn assert_unchanged(stage: &Stage, mut before: BTreeMap<PathBuf, Vec<u8>>) {
    let mut after = snapshot(stage.dir.path());
    for all in [&mut after, &mut before] {
        all.retain(|path, _| !path.starts_with(&stage.data));
    }
    assert_eq!(after, before);
}

fn refused(stage: &Stage, tool: &str, arguments: &Value) -> String {
    let started = Instant::now();
    let result = stage.call_as(ToolCaller::Remote, tool, arguments.clone());
    assert!(started.elapsed() < Duration::from_secs(3), "{tool} {arguments} took {:?}", started.elapsed());
    assert!(result.is_error, "{tool} {arguments} should fail: {}", result.output);
    let error = result.envelope.unwrap()["error"].clone();
    let code = error["code"].as_str().unwrap().to_owned();
    assert!(!error["message"].as_str().unwrap().is_empty(), "{tool} {arguments}");
    code
}

#[test]
fn wrong_types_and_missing_and_unknown_fields() {
    let stage = Stage::new();
    stage.write("src/main.rs", "1\n");
    let before = snapshot(stage.dir.path());
    let mut checked = 0;
    for (tool, example, schema) in examples(&stage) {
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut check = |arguments: Value| {
            if !validator.is_valid(&arguments) {
                assert_eq!(refused(&stage, &tool, &arguments), "INVALID_ARGUMENTS", "{tool} {arguments}");
                checked += 1;
            }
        };
        let mut unknown = example.clone();
        unknown["zzqq"] = json!(1);
        check(unknown);
        for field in example.as_object().unwrap().keys().filter(|field| *field != "action") {
            let mut missing = example.clone();
            missing.as_object_mut().unwrap().shift_remove(field);
            check(missing);
        }
        for field in schema["properties"].as_object().unwrap().keys().filter(|field| *field != "action") {
            for wrong in [
                json!(7),
                json!(-1),
                json!(1.5),
                json!(1e300),
                json!("x"),
                json!(true),
                json!([1]),
                json!([[]]),
                json!({"a": {"b": 1}}),
                json!({}),
            ] {
                let mut arguments = example.clone();
                arguments[field] = wrong;
                check(arguments);
            }
        }
    }
    assert!(checked > 500, "only {checked} wrong calls were made");
    assert_eq!(snapshot(stage.dir.path()), before);
}

/// Paths nobody should get anywhere with.
fn hostile_paths() -> Vec<String> {
    let mut paths: Vec<String> = [
        "..",
        "../outside/x",
        "a/../../outside/x",
        "/etc/passwd",
        "/",
        "http://x/y",
        "ssh://host/x",
        "file://server/share",
        "file:///a/../b",
        "file:relative",
        "a\0b",
        "",
        "loop-a",
        "loop-a/x",
        "out/x",
        "fifo",
        "fifo/x",
        "plain.txt/x",
        "/dev/zero",
        "/dev/full",
        "/proc/self/mem",
        "/proc/self/fd/0",
        ".git/config",
        ".git/hooks/pre-commit",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.push("n".repeat(300));
    paths.push("d/".repeat(5000));
    paths
}

fn with_traps() -> Stage {
    let stage = Stage::new();
    stage.write("plain.txt", "1\n");
    fs::write(stage.outside.join("x"), "secret\n").unwrap();
    fs::create_dir_all(stage.root.join(".git/hooks")).unwrap();
    symlink("loop-b", stage.root.join("loop-a")).unwrap();
    symlink("loop-a", stage.root.join("loop-b")).unwrap();
    symlink(&stage.outside, stage.root.join("out")).unwrap();
    assert!(Command::new("mkfifo").arg(stage.root.join("fifo")).status().unwrap().success());
    stage
}

#[test]
fn paths_that_lead_out_around_or_nowhere() {
    let stage = with_traps();
    let before = snapshot(stage.dir.path());
    // A link and a FIFO are themselves things to look at, move and remove.
    let may = |action: &str, path: &str| {
        ["stat", "mv", "rm"].contains(&action) && ["loop-a", "fifo"].contains(&path)
    };
    let mut checked = 0;
    for (tool, example, schema) in examples(&stage) {
        let action = example["action"].as_str().unwrap().to_owned();
        let fields = schema["properties"].as_object().unwrap().keys();
        for field in fields.filter(|field| ["path", "to", "cwd"].contains(&field.as_str())) {
            for path in hostile_paths() {
                if may(&action, &path) {
                    continue;
                }
                let mut arguments = example.clone();
                arguments[field] = json!(path);
                // The example's own file does not exist; what moves has to.
                if action == "mv" && field == "to" {
                    arguments["path"] = json!("plain.txt");
                }
                if ["list", "search_text", "stat", "read"].contains(&action.as_str()) && path == ".git/config"
                {
                    continue;
                }
                // Nothing here can start programs, so `proc` and `vcs` fail in any case; the point is that they do.
                let code = refused(&stage, &tool, &arguments);
                assert!(TYPED.contains(&code.as_str()), "{tool} {arguments}: {code}");
                checked += 1;
            }
        }
    }
    assert!(checked > 150, "only {checked} hostile paths were tried");
    assert_unchanged(&stage, before);
}

#[test]
fn patches_with_hostile_paths_in_each_grammar() {
    let stage = with_traps();
    let before = snapshot(stage.dir.path());
    let hash = stage.hash("plain.txt");
    for path in hostile_paths().iter().filter(|path| !path.contains('\0')) {
        let grammars = [
            format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"),
            format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch"),
            format!("*** Begin Patch\n*** Update File: {path}\n@@\n-1\n+2\n*** End Patch"),
            format!(
                "*** Begin Patch\n*** Update File: plain.txt\n*** Move to: {path}\n@@\n-1\n+2\n*** End Patch"
            ),
            format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"),
            format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-1\n+2\n"),
            format!("--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"),
            format!("diff --git a/plain.txt b/{path}\nrename from plain.txt\nrename to {path}\n"),
            format!(
                "diff --git a/{path} b/{path}\nnew file mode 120000\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+/etc\n"
            ),
        ];
        for patch in grammars {
            // A name in a unified diff loses its first slash with the prefix, and is then an ordinary one inside.
            let inside = ["/etc/passwd", "/dev/zero", "/dev/full", "/proc/self/mem", "/proc/self/fd/0"];
            if patch.contains("+++ ") && inside.contains(&path.as_str()) {
                continue;
            }
            let arguments = json!({
                "action": "apply_patch", "patch": patch, "base_hashes": {"plain.txt": hash, path.as_str(): hash},
            });
            let code = refused(&stage, "fs", &arguments);
            assert!(TYPED.contains(&code.as_str()), "{patch}: {code}");
        }
    }
    assert_unchanged(&stage, before);
}

/// As somebody who may not: root may everything, so root tries as `nobody`.
#[test]
fn permission_denied_is_a_typed_error_and_changes_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;

    const TEST: &str = "bad_input::permission_denied_is_a_typed_error_and_changes_nothing";
    const INNER: &str = "HANZO_TEST_NOBODY";
    if rustix::process::geteuid().is_root() && std::env::var_os(INNER).is_none() {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let mut command = Command::new("/proc/self/exe");
        command.args(["--exact", TEST, "--nocapture"]).env(INNER, "1").env("TMPDIR", place.path());
        let output = command.uid(65534).gid(65534).current_dir("/").stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "it ran");
        return;
    }
    let stage = Stage::new();
    stage.write("closed/a.txt", "a\n");
    stage.write("secret.txt", "s\n");
    stage.write("fixed.txt", "f\n");
    let hash = stage.hash("secret.txt");
    let fixed = stage.hash("fixed.txt");
    let mode = |name: &str, mode: u32| {
        fs::set_permissions(stage.root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    stage.write("shut/a.txt", "a\n");
    mode("shut", 0o000);
    mode("closed", 0o500);
    mode("secret.txt", 0o000);
    mode("fixed.txt", 0o444);
    let edit = |path: &str, hash: &str, old: &str| json!({"action": "apply_patch", "path": path, "base_hash": hash, "old_text": old, "new_text": "x"});
    let closed = stage.hash("closed/a.txt");
    for arguments in [
        json!({"action": "read", "path": "secret.txt"}),
        json!({"action": "stat", "path": "secret.txt"}),
        json!({"action": "list", "path": "shut"}),
        json!({"action": "search_text", "pattern": "a", "path": "shut"}),
        json!({"action": "search_text", "pattern": "s", "path": "secret.txt"}),
        json!({"action": "read", "path": "shut/a.txt"}),
        json!({"action": "rm", "path": "shut", "confirm": true}),
        edit("secret.txt", &hash, "s"),
        edit("fixed.txt", &fixed, "f"),
        edit("closed/a.txt", &closed, "a"),
        json!({"action": "write", "path": "closed/new", "content": "x"}),
        json!({"action": "mkdir", "path": "closed/new"}),
        json!({"action": "mv", "path": "closed/a.txt", "to": "b.txt"}),
        json!({"action": "mv", "path": "fixed.txt", "to": "closed/b.txt"}),
        json!({"action": "rm", "path": "closed/a.txt", "confirm": true}),
        json!({"action": "write", "path": "/etc/hanzo-test", "content": "x"}),
    ] {
        let error = stage.err(arguments.clone());
        let code = error["code"].as_str().unwrap();
        assert!(["DENIED", "SANDBOX_DENIED"].contains(&code), "{arguments}: {error}");
    }
    // What may not be read is passed over, and nothing is made up about it.
    assert_eq!(stage.ok(json!({"action": "search_text", "pattern": "s", "path": "."}))["matches"], json!([]));
    mode("closed", 0o700);
    mode("shut", 0o700);
    mode("secret.txt", 0o600);
    let texts = ["closed/a.txt", "secret.txt", "fixed.txt"].map(|name| stage.text(name));
    assert_eq!(texts, ["a\n", "s\n", "f\n"]);
    assert_eq!(fs::read_dir(stage.root.join("closed")).unwrap().count(), 1, "nothing is left behind");
}
