//! `vcs` where repositories are not as usual: a linked worktree, a bare repository, a merge under way, names that are no text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::world::World;

fn git_in(directory: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn begin(directory: &Path) {
    git_in(directory, &["init", "-q", "-b", "main"]);
    git_in(directory, &["config", "user.name", "Ada"]);
    git_in(directory, &["config", "user.email", "ada@example.org"]);
    std::fs::write(directory.join("one.txt"), "a\nb\nc\n").unwrap();
    git_in(directory, &["add", "."]);
    git_in(directory, &["commit", "-qm", "First"]);
}

fn vcs(action: &str, mut arguments: Value) -> Value {
    arguments["action"] = json!(action);
    arguments
}

#[tokio::test]
async fn every_action_works_in_a_linked_worktree() {
    let world = World::new();
    let main = world.workspace.parent().unwrap().join("main");
    std::fs::create_dir(&main).unwrap();
    begin(&main);
    // The workspace is there already, and empty.
    git_in(&main, &["worktree", "add", "-q", "-b", "side", world.workspace.to_str().unwrap()]);
    let status = world.ok("vcs", vcs("status", json!({}))).await;
    assert_eq!((&status["branch"], &status["clean"]), (&json!("side"), &json!(true)));
    world.write("one.txt", "a\nB\nc\n");
    let diff = world.ok("vcs", vcs("diff", json!({}))).await["diff"].as_str().unwrap().to_owned();
    assert!(diff.contains("-b\n+B\n"), "{diff}");
    world.ok("vcs", vcs("stash", json!({"op": "push"}))).await;
    world.ok("vcs", vcs("apply", json!({"patch": diff}))).await;
    let made = world.ok("vcs", vcs("commit", json!({"message": "Second", "all": true}))).await;
    assert_eq!(git_in(&main, &["rev-parse", "side"]).trim(), made["commit"].as_str().unwrap());
    assert_eq!(world.ok("vcs", vcs("log", json!({}))).await["commits"][0]["subject"], "Second");
    assert_eq!(world.ok("vcs", vcs("show", json!({}))).await["subject"], "Second");
    let blame = world.ok("vcs", vcs("blame", json!({"path": "one.txt"}))).await;
    assert_eq!(blame["hunks"][1]["subject"], "Second");
    world.ok("vcs", vcs("stash", json!({"op": "drop"}))).await;
    world.ok("vcs", vcs("branch", json!({"op": "create", "name": "third"}))).await;
    world.ok("vcs", vcs("checkout", json!({"ref": "third"}))).await;
    let (code, message) = world.error("vcs", vcs("checkout", json!({"ref": "main"}))).await;
    assert_eq!(code, "CONFLICT", "{message}");
    let trees = world.ok("vcs", vcs("worktree", json!({}))).await;
    assert_eq!(trees["worktrees"].as_array().unwrap().len(), 2, "{trees}");
    let config = world.ok("vcs", vcs("config", json!({"name": "user.name"}))).await;
    assert_eq!(config["entries"].as_array().unwrap().last().unwrap()["value"], "Ada");
    assert_eq!(
        std::fs::read_to_string(main.join("one.txt")).unwrap(),
        "a\nb\nc\n",
        "the other tree is as it was"
    );
}

#[tokio::test]
async fn a_bare_repository_has_a_history_and_no_working_tree() {
    let world = World::new();
    let main = world.workspace.parent().unwrap().join("main");
    std::fs::create_dir(&main).unwrap();
    begin(&main);
    git_in(&main, &["clone", "-q", "--bare", ".", world.workspace.to_str().unwrap()]);
    assert_eq!(world.ok("vcs", vcs("log", json!({}))).await["commits"][0]["subject"], "First");
    assert_eq!(world.ok("vcs", vcs("show", json!({"ref": "HEAD:one.txt"}))).await["text"], "a\nb\nc\n");
    for (action, arguments) in [
        ("status", json!({})),
        ("diff", json!({})),
        ("commit", json!({"message": "m", "all": true})),
        ("checkout", json!({"ref": "main"})),
        ("stash", json!({"op": "push"})),
        ("apply", json!({"patch": "--- a/one.txt\n+++ b/one.txt\n@@ -1 +1 @@\n-a\n+b\n"})),
    ] {
        let (code, message) = world.error("vcs", vcs(action, arguments)).await;
        assert_eq!(code, "UNSUPPORTED", "{action}: {message}");
        assert!(message.contains("the repository is bare"), "{message}");
    }
}

/// A directory that looks like a git directory is one to git, with a configuration its author chose.
#[tokio::test]
async fn a_git_directory_among_the_files_runs_nothing() {
    let world = World::new();
    begin(&world.workspace);
    let (nested, trap) = (world.path("vendor/data"), world.path("trap"));
    std::fs::create_dir_all(&nested).unwrap();
    git_in(&nested, &["init", "-q", "--bare", "."]);
    let run = format!("touch {}; true", trap.display());
    for name in
        ["core.fsmonitor", "diff.external", "core.pager", "core.sshCommand", "uploadpack.packObjectsHook"]
    {
        git_in(&nested, &["config", name, &run]);
    }
    git_in(&nested, &["config", "core.bare", "false"]);
    git_in(&nested, &["config", "core.worktree", ".."]);
    // The control: git alone walks into it.
    let _ = Command::new("git").arg("status").current_dir(&nested).output().unwrap();
    assert!(trap.exists(), "the trap does not work");
    std::fs::remove_file(&trap).unwrap();
    for action in ["status", "diff", "log", "show", "branch", "stash", "fetch", "config"] {
        let _ = world.call("vcs", vcs(action, json!({"cwd": "vendor/data"}))).await;
        assert!(!trap.exists(), "{action}");
    }
}

#[tokio::test]
async fn in_the_middle_of_a_merge_nothing_is_lost() {
    let world = World::new();
    begin(&world.workspace);
    let git = |arguments: &[&str]| git_in(&world.workspace, arguments);
    git(&["checkout", "-q", "-b", "theirs"]);
    world.write("one.txt", "a\nTHEIRS\nc\n");
    world.write("two.txt", "2\n");
    git(&["add", "."]);
    git(&["commit", "-qm", "Theirs"]);
    git(&["checkout", "-q", "main"]);
    world.write("one.txt", "a\nOURS\nc\n");
    git(&["commit", "-qam", "Ours"]);
    let merge =
        Command::new("git").args(["merge", "-q", "theirs"]).current_dir(&world.workspace).output().unwrap();
    assert!(!merge.status.success(), "it conflicts");

    let status = world.ok("vcs", vcs("status", json!({}))).await;
    let entry = |path: &str| {
        let entries = status["entries"].as_array().unwrap();
        entries.iter().find(|entry| entry["path"] == path).unwrap_or_else(|| panic!("{status}")).clone()
    };
    assert_eq!(entry("one.txt")["worktree"], "unmerged");
    assert_eq!(entry("two.txt")["index"], "added");
    let diff = world.ok("vcs", vcs("diff", json!({}))).await;
    assert!(diff["diff"].as_str().unwrap().contains("OURS"), "{diff}");
    let before = std::fs::read_to_string(world.path("one.txt")).unwrap();
    for (action, arguments) in [
        ("checkout", json!({"ref": "theirs"})),
        ("stash", json!({"op": "push"})),
        ("commit", json!({"message": "too early"})),
    ] {
        let (code, message) = world.error("vcs", vcs(action, arguments)).await;
        assert_eq!(code, "CONFLICT", "{action}: {message}");
        assert!(message.contains("a merge is under way"), "{message}");
        assert_eq!(std::fs::read_to_string(world.path("one.txt")).unwrap(), before);
    }
    world.write("one.txt", "a\nBOTH\nc\n");
    world.ok("vcs", vcs("commit", json!({"message": "Merge theirs", "all": true}))).await;
    assert_eq!(git(&["log", "-1", "--format=%P"]).split_whitespace().count(), 2, "it is a merge");
    assert_eq!(world.ok("vcs", vcs("status", json!({}))).await["clean"], true);
}

#[tokio::test]
async fn names_that_are_no_text_are_told_of_and_break_nothing() {
    let world = World::new();
    begin(&world.workspace);
    let odd = world.workspace.join(OsStr::from_bytes(b"odd-\xff\n.txt"));
    std::fs::write(&odd, "x\n").unwrap();
    let status = world.ok("vcs", vcs("status", json!({}))).await;
    assert_eq!(status["entries"][0]["worktree"], "untracked");
    assert!(status["entries"][0]["path"].as_str().unwrap().starts_with("odd-"), "{status}");
    git_in(&world.workspace, &["add", "."]);
    git_in(&world.workspace, &["commit", "-qm", "odd"]);
    std::fs::write(&odd, "y\n").unwrap();
    let diff = world.ok("vcs", vcs("diff", json!({}))).await;
    assert!(diff["diff"].as_str().unwrap().contains("-x\n+y\n"), "{diff}");
    let counts = world.ok("vcs", vcs("diff", json!({"stat": true}))).await;
    assert_eq!(counts["files"].as_array().unwrap().len(), 1);
    assert_eq!(world.ok("vcs", vcs("show", json!({}))).await["subject"], "odd");
}
