//! `vcs` through the tool, on real repositories.

use std::process::Command;

use hanzo_protocol::tool::{Effect, ReachConfinement};
use serde_json::{Value, json};

use crate::world::World;

/// A world whose workspace is a repository with two commits.
fn repository() -> World {
    let world = World::new();
    git(&world, &["init", "-q", "-b", "main"]);
    git(&world, &["config", "user.name", "Ada"]);
    git(&world, &["config", "user.email", "ada@example.org"]);
    world.write("one.txt", "a\nb\nc\n");
    git(&world, &["add", "."]);
    git(&world, &["commit", "-qm", "First"]);
    world.write("one.txt", "a\nB\nc\n");
    world.write("sub/two.txt", "2\n");
    git(&world, &["add", "."]);
    git(&world, &["commit", "-qm", "Second\n\nWith a body."]);
    world
}

fn git(world: &World, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(&world.workspace).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn vcs(action: &str, mut arguments: Value) -> Value {
    arguments["action"] = json!(action);
    arguments
}

fn read(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.path(name)).unwrap()
}

#[tokio::test]
async fn status_tells_branch_and_changes() {
    let world = repository();
    let status = world.ok("vcs", vcs("status", json!({}))).await;
    assert_eq!((&status["branch"], &status["clean"]), (&json!("main"), &json!(true)));
    world.write("one.txt", "changed\n");
    world.write("ä new", "");
    git(&world, &["mv", "sub/two.txt", "sub/three.txt"]);
    let status = world.ok("vcs", vcs("status", json!({}))).await;
    assert_eq!(
        status["entries"],
        json!([
            {"path": "one.txt", "worktree": "modified"},
            {"path": "sub/three.txt", "index": "renamed", "from": "sub/two.txt"},
            {"path": "ä new", "worktree": "untracked"},
        ])
    );
    assert_eq!(status["commit"], git(&world, &["rev-parse", "HEAD"]).trim());
}

#[tokio::test]
async fn a_diff_applies_elsewhere_and_back() {
    let world = repository();
    let clone = repository();
    world.write("one.txt", "a\nB\nc\nd\n");
    world.write("sub/no newline", "x");
    std::fs::remove_file(world.path("sub/two.txt")).unwrap();
    git(&world, &["add", "-A"]);
    let plain = world.ok("vcs", vcs("diff", json!({}))).await;
    assert_eq!(plain["diff"], "", "everything is staged");
    let staged = world.ok("vcs", vcs("diff", json!({"staged": true}))).await;
    let patch = staged["diff"].as_str().unwrap();
    let applied = clone.ok("vcs", vcs("apply", json!({"patch": patch, "index": true}))).await;
    assert_eq!(applied["files"].as_array().unwrap().len(), 3, "{applied}");
    assert_eq!(read(&clone, "one.txt"), "a\nB\nc\nd\n");
    assert_eq!(read(&clone, "sub/no newline"), "x");
    assert!(!clone.path("sub/two.txt").exists());
    assert_eq!(clone.ok("vcs", vcs("diff", json!({"staged": true}))).await["diff"], patch);

    // A second time it does not fit, and nothing changes.
    let (code, message) = clone.error("vcs", vcs("apply", json!({"patch": patch}))).await;
    assert!(["CONFLICT", "ALREADY_EXISTS"].contains(&code.as_str()), "{code} {message}");
    let counts = clone.ok("vcs", vcs("diff", json!({"ref": "HEAD", "stat": true}))).await;
    assert_eq!(counts["files"][0], json!({"path": "one.txt", "added": 1, "deleted": 0}));
}

/// The hashes of `names` as `fs.read` tells them.
async fn hashes(world: &World, names: &[&str]) -> Value {
    let mut all = json!({});
    for name in names {
        all[name] = world.ok("fs", json!({"action": "read", "path": name})).await["hash"].clone();
    }
    all
}

#[tokio::test]
async fn a_diff_of_git_is_a_patch_for_fs_and_the_other_way_round() {
    let (here, there) = (repository(), repository());
    here.write("one.txt", "a\nB\nc\nd\n");
    here.write("sub/new ä.txt", "fresh\nno newline at the end");
    std::fs::remove_file(here.path("sub/two.txt")).unwrap();
    git(&here, &["add", "-A"]);
    let patch = here.ok("vcs", vcs("diff", json!({"ref": "HEAD"}))).await["diff"].clone();
    let base = hashes(&there, &["one.txt", "sub/two.txt"]).await;
    let applied = there.ok("fs", json!({"action": "apply_patch", "patch": patch, "base_hashes": base})).await;
    assert_eq!(applied["files"].as_array().unwrap().len(), 3, "{applied}");
    for name in ["one.txt", "sub/new ä.txt"] {
        assert_eq!(read(&here, name), read(&there, name));
    }
    assert!(!there.path("sub/two.txt").exists());

    // What `fs.apply_patch` says it did is a patch for git, and takes a third checkout to the same state.
    let third = repository();
    third.ok("vcs", vcs("apply", json!({"patch": applied["diff"], "index": true}))).await;
    git(&there, &["add", "-A"]);
    assert_eq!(git(&third, &["write-tree"]), git(&there, &["write-tree"]));
    assert_eq!(git(&third, &["write-tree"]), git(&here, &["write-tree"]));
}

#[tokio::test]
async fn hostile_and_broken_patches_change_nothing() {
    let world = repository();
    let outside = world.workspace.parent().unwrap().join("victim");
    std::fs::write(&outside, "safe\n").unwrap();
    for patch in [
        "",
        "nonsense",
        "--- a/../victim\n+++ b/../victim\n@@ -1 +1 @@\n-safe\n+broken\n",
        &format!("--- {0}\n+++ {0}\n@@ -1 +1 @@\n-safe\n+broken\n", outside.display()),
        "--- a/.git/config\n+++ b/.git/config\n@@ -0,0 +1 @@\n+[core]\n",
        "--- a/one.txt\n+++ b/one.txt\n@@ -1 +1 @@\n-nowhere\n+x\n",
    ] {
        let before = git(&world, &["status", "--porcelain"]);
        let (code, _) = world.error("vcs", vcs("apply", json!({"patch": patch}))).await;
        assert_ne!(code, "ERROR", "{patch}");
        assert_eq!(git(&world, &["status", "--porcelain"]), before);
    }
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "safe\n");
}

#[tokio::test]
async fn a_commit_takes_its_message_from_outside_any_shell() {
    let world = repository();
    world.write("new.txt", "n\n");
    world.write("one.txt", "other\n");
    let message = "Add `$(touch pwned)` \"quotes\"\n\n-F /etc/passwd";
    let made = world.ok("vcs", vcs("commit", json!({"message": message, "files": ["new.txt"]}))).await;
    assert_eq!(made["commit"], git(&world, &["rev-parse", "HEAD"]).trim());
    assert_eq!(git(&world, &["log", "-1", "--format=%B"]).trim(), message);
    assert_eq!(git(&world, &["show", "--stat", "--format="]).matches('|').count(), 1, "only what was named");
    assert!(!world.path("pwned").exists());
    let (code, _) = world.error("vcs", vcs("commit", json!({"message": "x"}))).await;
    assert_eq!(code, "CONFLICT", "nothing is staged");
    world.ok("vcs", vcs("commit", json!({"message": "all", "all": true}))).await;
    assert_eq!(git(&world, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn branches_are_listed_made_renamed_and_deleted() {
    let world = repository();
    let made = world.ok("vcs", vcs("branch", json!({"op": "create", "name": "fix", "ref": "HEAD~1"}))).await;
    assert_eq!(made["branches"][0]["name"], "fix");
    assert_eq!(made["branches"][1]["current"], true);
    assert_eq!(made["branches"][0]["subject"], "First");
    let twice = world.error("vcs", vcs("branch", json!({"op": "create", "name": "fix"}))).await;
    assert_eq!(twice.0, "ALREADY_EXISTS");
    world.ok("vcs", vcs("branch", json!({"op": "rename", "name": "fix", "to": "mend"}))).await;
    let out = world.ok("vcs", vcs("checkout", json!({"ref": "mend"}))).await;
    assert_eq!(out["branch"], "mend");
    assert_eq!(read(&world, "one.txt"), "a\nb\nc\n");
    let out = world.ok("vcs", vcs("checkout", json!({"ref": "third", "create": true}))).await;
    assert_eq!(out["branch"], "third");
    world.ok("vcs", vcs("checkout", json!({"ref": "main"}))).await;
    world.write("one.txt", "spoiled\n");
    let (code, _) = world.error("vcs", vcs("checkout", json!({"ref": "mend"}))).await;
    assert_eq!(code, "CONFLICT", "changes are not thrown away");
    world.ok("vcs", vcs("checkout", json!({"paths": "one.txt"}))).await;
    assert_eq!(read(&world, "one.txt"), "a\nB\nc\n");
    world.ok("vcs", vcs("branch", json!({"op": "delete", "name": "mend"}))).await;
    let listed = world.ok("vcs", vcs("branch", json!({}))).await;
    assert_eq!(listed["branches"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn history_is_structured_and_paged() {
    let world = repository();
    let log = world.ok("vcs", vcs("log", json!({}))).await;
    let first = &log["commits"][0];
    assert_eq!((&first["subject"], &first["body"]), (&json!("Second"), &json!("With a body.")));
    assert_eq!(first["author"], "Ada <ada@example.org>");
    assert_eq!(log["commits"].as_array().unwrap().len(), 2);
    let page = world.call("vcs", vcs("log", json!({"limit": 1}))).await.envelope.unwrap();
    let cursor = &page["meta"]["paging"]["cursor"];
    let next = world.ok("vcs", vcs("log", json!({"limit": 1, "cursor": cursor}))).await;
    assert_eq!(next["commits"][0]["subject"], "First");
    let of_path = world.ok("vcs", vcs("log", json!({"path": "sub/two.txt"}))).await;
    assert_eq!(of_path["commits"].as_array().unwrap().len(), 1);

    let blame = world.ok("vcs", vcs("blame", json!({"path": "one.txt"}))).await;
    let rows: Vec<(u64, &str, &str)> = blame["hunks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| (h["line"].as_u64().unwrap(), h["subject"].as_str().unwrap(), h["text"].as_str().unwrap()))
        .collect();
    assert_eq!(rows, [(0, "First", "a\n"), (1, "Second", "B\n"), (2, "First", "c\n")]);

    let show = world.ok("vcs", vcs("show", json!({"ref": "HEAD"}))).await;
    assert_eq!(show["subject"], "Second");
    assert!(show["diff"].as_str().unwrap().starts_with("diff --git a/one.txt b/one.txt\n"), "{show}");
    let file = world.ok("vcs", vcs("show", json!({"ref": "HEAD~1:one.txt"}))).await;
    assert_eq!(file["text"], "a\nb\nc\n");
}

#[tokio::test]
async fn a_long_diff_comes_in_pages_that_make_the_whole() {
    let world = repository();
    let long: Vec<String> = (0..20_000).map(|number| format!("line {number}\n")).collect();
    world.write("one.txt", long.concat());
    let (mut whole, mut call) = (String::new(), vcs("diff", json!({})));
    for _ in 0..20 {
        let page = world.call("vcs", call.clone()).await.envelope.unwrap();
        whole.push_str(page["data"]["diff"].as_str().unwrap());
        let paging = &page["meta"]["paging"];
        if paging["more"] == false {
            break;
        }
        call["cursor"] = paging["cursor"].clone();
    }
    assert_eq!(whole, git(&world, &["diff"]));
}

#[tokio::test]
async fn changes_are_put_aside_and_further_trees_made() {
    let world = repository();
    world.write("one.txt", "wip\n");
    let pushed = world.ok("vcs", vcs("stash", json!({"op": "push", "message": "-half done"}))).await;
    assert_eq!(pushed["stashes"][0]["subject"], "On main: -half done");
    assert_eq!(read(&world, "one.txt"), "a\nB\nc\n");
    let popped = world.ok("vcs", vcs("stash", json!({"op": "pop"}))).await;
    assert_eq!(popped["stashes"], json!([]));
    assert_eq!(read(&world, "one.txt"), "wip\n");
    assert_eq!(world.error("vcs", vcs("stash", json!({"op": "drop"}))).await.0, "NOT_FOUND");

    let add = vcs("worktree", json!({"op": "add", "paths": "trees/fix", "name": "fix"}));
    let trees = world.ok("vcs", add).await;
    assert_eq!(trees["worktrees"][1]["branch"], "fix");
    assert_eq!(read(&world, "trees/fix/one.txt"), "a\nB\nc\n");
    let trees = world.ok("vcs", vcs("worktree", json!({"op": "remove", "paths": "trees/fix"}))).await;
    assert_eq!(trees["worktrees"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn configuration_is_read_inside_and_changed_outside() {
    let world = repository();
    let got = world.ok("vcs", vcs("config", json!({"name": "user.name"}))).await;
    let last = got["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(last, &json!({"name": "user.name", "value": "Ada"}), "the repository's own counts");
    assert_eq!(world.error("vcs", vcs("config", json!({"name": "no.such"}))).await.0, "NOT_FOUND");
    let all = world.ok("vcs", vcs("config", json!({"op": "list"}))).await;
    let names: Vec<&str> =
        all["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"user.name") && !names.contains(&"core.hookspath"), "{names:?}");
    let set = vcs("config", json!({"name": "user.name", "value": "-Grace"}));
    let reach = world.reach("vcs", &set);
    assert_eq!((reach.effect, reach.confinement), (Effect::Write, ReachConfinement::Outside));
    world.ok("vcs", set).await;
    assert_eq!(git(&world, &["config", "user.name"]).trim(), "-Grace");
    world.ok("vcs", vcs("config", json!({"op": "unset", "name": "user.name"}))).await;
}

#[tokio::test]
async fn fetch_and_push_talk_to_configured_remotes_only() {
    let world = repository();
    let elsewhere = repository();
    git(&elsewhere, &["checkout", "-q", "--detach"]);
    let address = elsewhere.workspace.to_str().unwrap();
    git(&world, &["remote", "add", "origin", address]);
    world.ok("vcs", vcs("fetch", json!({}))).await;
    world.write("one.txt", "pushed\n");
    world.ok("vcs", vcs("commit", json!({"message": "Push me", "all": true}))).await;
    world.ok("vcs", vcs("push", json!({"ref": "main:refs/heads/theirs"}))).await;
    assert_eq!(git(&elsewhere, &["log", "-1", "--format=%s", "theirs"]).trim(), "Push me");
    for remote in [address, "ext::sh -c 'touch pwned'", "-u", "--upload-pack=x"] {
        let (code, _) = world.error("vcs", vcs("fetch", json!({"remote": remote}))).await;
        assert!(["INVALID_ARGUMENTS", "NOT_FOUND"].contains(&code.as_str()), "{remote}: {code}");
    }
    assert!(!world.path("pwned").exists());
    assert_eq!(world.error("vcs", vcs("push", json!({"ref": "+main"}))).await.0, "INVALID_ARGUMENTS");
    assert_eq!(world.reach("vcs", &vcs("push", json!({}))).effect, Effect::Network);
}

#[tokio::test]
async fn nothing_a_model_writes_is_an_option() {
    let world = repository();
    for (action, arguments) in [
        ("diff", json!({"ref": "--output=pwned"})),
        ("show", json!({"ref": "--output=pwned"})),
        ("log", json!({"ref": "--output=pwned"})),
        ("checkout", json!({"ref": "--orphan=pwned"})),
        ("checkout", json!({"ref": "-f"})),
        ("branch", json!({"op": "create", "name": "-D"})),
        ("branch", json!({"op": "delete", "name": "--all"})),
        ("branch", json!({"op": "create", "name": "x", "ref": "-f"})),
        ("blame", json!({"path": "one.txt", "ref": "--contents=/etc/passwd"})),
        ("stash", json!({"op": "drop", "ref": "--quiet"})),
        ("worktree", json!({"op": "add", "paths": "t", "name": "--force"})),
        ("config", json!({"name": "--file=/etc/passwd"})),
        ("diff", json!({"ref": "a\nb"})),
        ("branch", json!({"op": "push", "name": "x"})),
        ("branch", json!({"op": "fly"})),
        ("stash", json!({"op": "rename"})),
        ("blame", json!({"paths": ["one.txt", "sub"]})),
        ("blame", json!({})),
        ("commit", json!({"message": " "})),
        ("commit", json!({"message": "m", "paths": []})),
        ("diff", json!({"nonsense": 1})),
        ("diff", json!({"staged": "yes"})),
    ] {
        let call = vcs(action, arguments);
        assert_eq!(world.error("vcs", call.clone()).await.0, "INVALID_ARGUMENTS", "{call}");
    }
    // A path that looks like one is a path.
    world.write("--output=pwned", "x\n");
    world.ok("vcs", vcs("diff", json!({"paths": ["--output=pwned"]}))).await;
    world.ok("vcs", vcs("commit", json!({"message": "odd name", "paths": ["--output=pwned"]}))).await;
    assert!(!world.path("pwned").exists());
    for (action, arguments, code) in [
        ("diff", json!({"ref": "no-such-branch"}), "NOT_FOUND"),
        ("log", json!({"ref": "no-such-branch"}), "NOT_FOUND"),
        ("show", json!({"ref": "HEAD:missing"}), "NOT_FOUND"),
        ("checkout", json!({"ref": "no-such-branch"}), "NOT_FOUND"),
        ("branch", json!({"op": "delete", "name": "no-such-branch"}), "NOT_FOUND"),
        ("branch", json!({"op": "create", "name": "bad..name"}), "INVALID_ARGUMENTS"),
        ("blame", json!({"path": "missing"}), "NOT_FOUND"),
        ("status", json!({"cwd": "missing"}), "NOT_FOUND"),
        ("diff", json!({"cursor": "made.up"}), "INVALID_ARGUMENTS"),
    ] {
        let call = vcs(action, arguments);
        let (given, message) = world.error("vcs", call.clone()).await;
        assert_eq!(given, code, "{call}: {message}");
    }
}

#[tokio::test]
async fn without_a_repository_the_error_says_so() {
    let world = World::new();
    for action in ["status", "diff", "log"] {
        let (code, message) = world.error("vcs", vcs(action, json!({}))).await;
        assert_eq!(code, "NOT_FOUND");
        assert!(message.contains("hint: there is no repository here"), "{message}");
    }
}

#[tokio::test]
async fn what_a_repository_wants_to_run_does_not_run() {
    let world = repository();
    let trap = world.path("trap");
    let run = format!("touch {}; true", trap.display());
    world.write(".git/hooks/pre-commit", format!("#!/bin/sh\n{run}\n"));
    world.write(".git/hooks/post-checkout", format!("#!/bin/sh\n{run}\n"));
    for hook in ["pre-commit", "post-checkout"] {
        let path = world.path(&format!(".git/hooks/{hook}"));
        Command::new("chmod").arg("+x").arg(path).status().unwrap();
    }
    git(&world, &["config", "core.fsmonitor", &run]);
    git(&world, &["config", "diff.external", &run]);
    git(&world, &["config", "core.pager", &run]);
    git(&world, &["config", "diff.spy.textconv", &run]);
    git(&world, &["config", "diff.spy.command", &run]);
    world.write(".gitattributes", "*.txt diff=spy\n");
    world.write("one.txt", "changed\n");
    // The control: git alone runs them.
    git(&world, &["diff"]);
    assert!(trap.exists());
    std::fs::remove_file(&trap).unwrap();

    world.ok("vcs", vcs("status", json!({}))).await;
    let diff = world.ok("vcs", vcs("diff", json!({}))).await;
    assert!(diff["diff"].as_str().unwrap().contains("+changed\n"));
    world.ok("vcs", vcs("show", json!({}))).await;
    world.ok("vcs", vcs("log", json!({}))).await;
    world.ok("vcs", vcs("commit", json!({"message": "m", "all": true}))).await;
    world.ok("vcs", vcs("checkout", json!({"ref": "HEAD~1"}))).await;
    assert!(!trap.exists());
}

#[tokio::test]
async fn what_a_call_does_depends_on_its_input() {
    let world = repository();
    for (call, effect) in [
        (vcs("status", json!({})), Effect::Read),
        (vcs("branch", json!({})), Effect::Read),
        (vcs("branch", json!({"op": "list"})), Effect::Read),
        (vcs("branch", json!({"op": "create", "name": "x"})), Effect::Write),
        (vcs("stash", json!({"op": "pop"})), Effect::Write),
        (vcs("worktree", json!({})), Effect::Read),
        (vcs("config", json!({"name": "a.b"})), Effect::Read),
        (vcs("config", json!({"name": "a.b", "value": "c"})), Effect::Write),
        (vcs("fetch", json!({})), Effect::Network),
        (vcs("branch", json!({"op": 5})), Effect::Write),
    ] {
        assert_eq!(world.reach("vcs", &call).effect, effect, "{call}");
    }
    let patch = "--- a/one.txt\n+++ b/one.txt\n@@ -1 +1 @@\n-a\n+b\n";
    let reach = world.reach("vcs", &vcs("apply", json!({"patch": patch})));
    assert_eq!(reach.paths[0].real, world.path("one.txt"));
}
