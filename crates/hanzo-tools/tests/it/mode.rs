//! `mode`: sets of actions to keep to. What the gate asks is `Host::modes` as a `Narrowing`.

use std::sync::Arc;

use hanzo_protocol::narrowing::{AllOf, Narrowing};
use hanzo_protocol::tool::{Effect, Reach, ToolCaller};
use serde_json::{Value, json};

use crate::support::Stage;

fn ok(stage: &Stage, arguments: &Value) -> Value {
    let result = stage.call("mode", arguments.clone());
    assert!(!result.is_error, "{arguments}: {}", result.output);
    result.envelope.unwrap()["data"].clone()
}

/// Whether the gate would let a call through, as far as modes are concerned.
fn left_in(stage: &Stage, tool: &str, arguments: &Value) -> Result<(), String> {
    let reach = stage.tools.get(tool).unwrap().reach(arguments);
    stage.host.modes.check(&reach).map_err(|narrowed| narrowed.to_string())
}

#[test]
fn there_are_more_than_ten_and_each_can_be_shown_and_activated() {
    let modes = ok(&Stage::new(), &json!({"action": "list"}))["modes"].as_array().unwrap().clone();
    assert!(modes.len() >= 10, "{modes:?}");
    for intent in ["inspect", "apply", "verify", "ship"] {
        assert!(modes.iter().any(|mode| mode["name"] == intent), "{intent}");
    }
    for mode in &modes {
        let stage = Stage::new();
        let shown = ok(&stage, &json!({"action": "show", "name": mode["name"]}));
        assert!(
            !shown["guidance"].as_str().unwrap().is_empty() && !shown["tools"].as_array().unwrap().is_empty()
        );
        assert_eq!(
            ok(&stage, &json!({"action": "current"}))["active"],
            json!([]),
            "showing does not activate"
        );
        let active = ok(&stage, &json!({"action": "activate", "name": mode["name"]}));
        assert_eq!(active["active"], json!([mode["name"]]));
        assert!(left_in(&stage, "fs", &json!({"action": "read", "path": "x"})).is_ok(), "{mode}");
        assert!(
            stage.host.modes.check(&Reach::new("agent.run", Effect::Read)).is_err(),
            "{mode}: a subagent is no way out"
        );
        assert!(stage.host.modes.check(&Reach::new("mcp__x__y", Effect::Read)).is_err(), "{mode}");
        for always in
            ["mode.leave", "mode.list", "plan.update", "think.think", "ws.detect", "ui.ask", "proc.help"]
        {
            assert!(stage.host.modes.check(&Reach::new(always, Effect::Read)).is_ok(), "{mode}: {always}");
        }
    }
}

#[test]
fn an_active_mode_denies_what_is_outside_its_set_with_a_reason() {
    let stage = Stage::new();
    let write = json!({"action": "write", "path": "a.txt", "content": ""});
    assert!(left_in(&stage, "fs", &write).is_ok(), "without a mode everything is left in");
    ok(&stage, &json!({"action": "activate", "name": "Inspect"}));
    let reason = left_in(&stage, "fs", &write).unwrap_err();
    assert!(
        reason.contains("`fs.write`")
            && reason.contains("the mode `inspect`")
            && reason.contains("mode.leave"),
        "{reason}"
    );
    for (tool, arguments) in [
        ("proc", json!({"action": "exec", "command": "ls"})),
        ("bash", json!({"command": "ls"})),
        ("write_file", json!({"path": "a", "content": ""})),
        ("vcs", json!({"action": "commit", "message": "x"})),
        ("test", json!({"action": "run"})),
        ("proc", json!({"action": 5})),
    ] {
        assert!(left_in(&stage, tool, &arguments).is_err(), "{tool} {arguments}");
    }
    for (tool, arguments) in [
        ("fs", json!({"action": "search_text", "pattern": "x"})),
        ("vcs", json!({"action": "diff"})),
        ("test", json!({"action": "list"})),
    ] {
        assert_eq!(left_in(&stage, tool, &arguments), Ok(()), "{tool} {arguments}");
    }
}

#[test]
fn modes_only_narrow_each_other() {
    let stage = Stage::new();
    ok(&stage, &json!({"action": "activate", "name": "verify"}));
    assert!(left_in(&stage, "test", &json!({"action": "run"})).is_ok());
    let both = ok(&stage, &json!({"action": "activate", "name": "apply"}));
    assert_eq!(both["active"], json!(["verify", "apply"]));
    assert!(left_in(&stage, "test", &json!({"action": "run"})).is_err());
    assert!(left_in(&stage, "fs", &json!({"action": "write", "path": "a", "content": ""})).is_err());
    assert!(left_in(&stage, "fs", &json!({"action": "read", "path": "a"})).is_ok());
    for _ in 0..10 {
        ok(&stage, &json!({"action": "activate", "name": "verify"}));
    }
    assert_eq!(ok(&stage, &json!({"action": "current"}))["active"], json!(["verify", "apply"]));
}

#[test]
fn files_that_may_be_changed_are_looked_at_where_they_really_are() {
    let stage = Stage::new();
    stage.write("src/main.rs", "");
    std::os::unix::fs::symlink(stage.root.join("src"), stage.root.join("docs")).unwrap();
    ok(&stage, &json!({"action": "activate", "name": "documenter"}));
    let write = |path: &str| left_in(&stage, "fs", &json!({"action": "write", "path": path, "content": ""}));
    assert!(write("README.md").is_ok() && write("guide/start.md").is_ok());
    assert!(write("src/lib.rs").is_err());
    assert!(write("docs/lib.rs").is_err(), "a link does not make it documentation");
    assert!(write("../outside/x.md").is_err());
}

#[test]
fn leaving_is_no_reader_and_not_for_callers_from_elsewhere() {
    let stage = Stage::new();
    ok(&stage, &json!({"action": "activate", "name": "teacher"}));
    let reach = stage.tools.get("mode").unwrap().reach(&json!({"action": "leave"}));
    assert_eq!((reach.action.as_str(), reach.effect), ("mode.leave", Effect::Write));
    let refused = stage.call_as(ToolCaller::Remote, "mode", json!({"action": "leave"}));
    assert!(refused.output.starts_with("error DENIED"), "{}", refused.output);
    assert_eq!(ok(&stage, &json!({"action": "leave"}))["left"], json!(["teacher"]));
    assert!(stage.host.modes.names().is_empty());
    let unknown = stage.call("mode", json!({"action": "activate", "name": "god"}));
    assert!(
        unknown.output.contains("NOT_FOUND") && unknown.output.contains("reviewer"),
        "{}",
        unknown.output
    );
}

#[test]
fn a_subagent_is_within_its_parents_modes() {
    let (parent, child) = (Stage::new(), Stage::new());
    ok(&parent, &json!({"action": "activate", "name": "teacher"}));
    let both = AllOf(vec![parent.host.modes.clone() as Arc<dyn Narrowing>, child.host.modes.clone()]);
    assert!(both.check(&Reach::new("fs.write", Effect::Write)).is_err());
    assert!(both.check(&Reach::new("fs.read", Effect::Read)).is_ok());
}

#[test]
fn the_users_own_modes_are_read_from_their_directory() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("quiet.toml"), "about = 'Reads only'\ntools = ['fs.read']\n")
        .unwrap();
    std::fs::write(directory.path().join("inspect.toml"), "about = 'Mine'\ntools = ['fs.stat']\n").unwrap();
    std::fs::write(directory.path().join("broken.toml"), "tools = 7\n").unwrap();
    let modes = hanzo_tools::mode::Modes::new("/ws", Some(directory.path().into()));
    modes.activate("quiet").unwrap();
    assert!(modes.check(&Reach::new("fs.read", Effect::Read)).is_ok());
    assert!(modes.check(&Reach::new("fs.stat", Effect::Read)).is_err());
    assert_eq!(modes.all().iter().flatten().filter(|mode| mode.name == "inspect").count(), 1);
    assert!(modes.all().iter().flatten().any(|mode| mode.about == "Mine"));
    let error = modes.activate("broken").unwrap_err();
    assert!(error.message.contains("broken"), "{error}");
}
