//! `ws`: what the workspace is, and the manual of all tools.

use std::time::Instant;

use hanzo_protocol::tool::{Effect, ToolCaller};
use hanzo_sandbox::SandboxConfig;
use hanzo_tools::{Selection, unified};
use serde_json::{Value, json};

use crate::support::Stage;

fn ok(stage: &Stage, arguments: &Value) -> Value {
    let result = stage.call("ws", arguments.clone());
    assert!(!result.is_error, "{arguments}: {}", result.output);
    result.envelope.unwrap()["data"].clone()
}

#[test]
fn a_project_of_several_languages_is_recognised() {
    let stage = Stage::new();
    stage.write("Cargo.toml", "[package]\nname='x'\n");
    stage.write("src/main.rs", "");
    stage.write("src/lib.rs", "");
    stage.write("web/package.json", r#"{"devDependencies":{"vitest":"1"}}"#);
    stage.write("web/pnpm-lock.yaml", "");
    stage.write("web/a.ts", "");
    stage.write("tools/pyproject.toml", "[tool.pytest.ini_options]\n");
    stage.write("Makefile", "");
    stage.write(".git/HEAD", "ref: refs/heads/feature/x\n");
    stage.write("node_modules/x/y.py", "");
    let data = ok(&stage, &json!({"action": "detect"}));
    assert_eq!(data["root"], format!("file://{}", stage.root.display()));
    assert_eq!(
        data["languages"],
        json!([{"language": "Rust", "files": 2}, {"language": "TypeScript", "files": 1}])
    );
    let builds: Vec<&str> =
        data["build"].as_array().unwrap().iter().map(|b| b["tool"].as_str().unwrap()).collect();
    assert_eq!(builds, ["cargo", "make", "python", "pnpm"], "{data:#}");
    let suites: Vec<String> = data["test"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["suite"].as_str().unwrap().replace("nextest", "cargo"))
        .collect();
    assert_eq!(suites, ["cargo", "tools:pytest", "web:vitest"], "{data:#}");
    assert_eq!(
        (data["vcs"]["kind"].as_str(), data["vcs"]["branch"].as_str()),
        (Some("git"), Some("feature/x"))
    );
    assert_eq!(data["complete"], true);
    assert!(data["backends"]["test"].as_array().unwrap().contains(&json!("pytest")));
    let inner = ok(&stage, &json!({"action": "detect", "path": "web"}));
    assert_eq!(inner["vcs"]["kind"], "git", "{inner:#}");
    let missing = stage.call("ws", json!({"action": "detect", "path": "nowhere"}));
    assert!(missing.output.starts_with("error NOT_FOUND"), "{}", missing.output);
}

#[test]
fn hostile_files_are_no_trouble() {
    let stage = Stage::new();
    stage.write("package.json", vec![b'['; 200_000]);
    stage.write("Cargo.toml", [0xff, 0xfe, 0]);
    stage.write("go.mod", "module \"\n".repeat(1000));
    stage.write("setup.cfg", "");
    std::os::unix::fs::symlink(&stage.root, stage.root.join("loop")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", stage.root.join("pyproject.toml")).unwrap();
    let mut deep = stage.root.clone();
    for _ in 0..60 {
        deep.push("d");
    }
    std::fs::create_dir_all(&deep).unwrap();
    let data = ok(&stage, &json!({"action": "detect"}));
    assert_eq!(data["complete"], false, "{data:#}");
    assert_eq!(data["build"][0]["tool"], "cargo");
}

#[test]
fn the_capabilities_name_the_sandbox_and_tell_strangers_less() {
    let stage = Stage::new();
    let data = ok(&stage, &json!({"action": "capabilities"}));
    assert_eq!(data["sandbox"], json!({"level": "path-check", "network": false, "way_out": false}));
    assert!(data["lsp"].is_array() && data["test_runners"].is_array());
    stage.call("mode", json!({"action": "activate", "name": "inspect"}));
    assert_eq!(ok(&stage, &json!({"action": "capabilities"}))["modes"], json!(["inspect"]));
    let remote = stage.call_as(ToolCaller::Remote, "ws", json!({"action": "capabilities"}));
    assert!(remote.envelope.unwrap()["data"]["sandbox"].get("writable").is_none());
}

#[test]
fn help_and_schema_are_those_of_all_tools() {
    let stage = Stage::new();
    let help = stage.call("ws", json!({"action": "help"})).output;
    let schema = ok(&stage, &json!({"action": "schema"}));
    for tool in unified(&stage.host) {
        assert!(help.contains(&format!("# {}\n", tool.name())), "{}", tool.name());
        for action in tool.action_names() {
            assert!(help.contains(&format!("## {action}\n")), "{}.{action}", tool.name());
            let schemas = &schema["tools"][tool.name()]["actions"][action];
            assert!(jsonschema::meta::is_valid(&schemas["input"]), "{}.{action}", tool.name());
        }
    }
    let one = ok(&stage, &json!({"action": "help", "tool": "test"}))["text"].as_str().unwrap().to_owned();
    assert!(one.starts_with("# test") && !one.contains("# fs"));
    let unknown = stage.call("ws", json!({"action": "help", "tool": "tset"}));
    assert!(unknown.output.starts_with("error UNKNOWN_TOOL"), "{}", unknown.output);
    assert!(stage.call("ws", json!({})).output.starts_with("# ws"), "without an action it is its own");

    let some = Stage::with(
        &Selection { enabled: vec!["ws".into(), "fs.read".into()], ..Selection::default() },
        &SandboxConfig::default(),
    );
    let help = some.call("ws", json!({"action": "help"})).output;
    assert!(
        help.contains("# fs")
            && help.contains("## read")
            && !help.contains("## write")
            && !help.contains("# proc")
    );
}

#[test]
fn by_default_a_model_is_shown_the_usual_tools_and_can_call_the_others() {
    let stage = Stage::new();
    let listed: Vec<String> = stage.tools.schemas().into_iter().map(|schema| schema.name).collect();
    assert_eq!(listed, ["fs", "proc", "code", "vcs", "test"]);
    for name in ["ws", "think", "mode", "ws.detect", "mode_list", "think.critic"] {
        assert!(stage.tools.get(name).is_some(), "{name}");
    }
    let chosen = Selection { enabled: vec!["fs".into(), "mode".into()], ..Selection::default() };
    let stage = Stage::with(&chosen, &SandboxConfig::default());
    let listed: Vec<String> = stage.tools.schemas().into_iter().map(|schema| schema.name).collect();
    assert_eq!(listed, ["fs", "mode"]);
    assert!(stage.tools.get("ws").is_none());
    let everything = ["fs", "proc", "vcs", "test", "ws", "think", "mode"];
    let all = Selection { enabled: everything.map(str::to_owned).to_vec(), ..Selection::default() };
    let stage = Stage::with(&all, &SandboxConfig::default());
    for schema in stage
        .tools
        .schemas()
        .iter()
        .filter(|schema| ["test", "ws", "think", "mode"].contains(&schema.name.as_str()))
    {
        let size = serde_json::to_string(&schema).unwrap().len();
        assert!(size <= 1000, "{} takes {size} bytes of every request", schema.name);
    }
    for (tool, action) in [("ws", "detect"), ("ws", "schema"), ("think", "think"), ("mode", "activate")] {
        assert_eq!(stage.tools.get(tool).unwrap().reach(&json!({ "action": action })).effect, Effect::Read);
    }
}

/// A soak looks at as many files as the requirement names; a busy machine and a build without optimisation get more time.
#[test]
fn a_look_at_a_large_tree_is_bounded() {
    let stage = Stage::new();
    let files = hanzo_testkit::scale::rounds(100_000);
    for directory in 0..files / 100 {
        let path = stage.root.join(format!("p{}/d{directory}", directory % 20));
        std::fs::create_dir_all(&path).unwrap();
        for file in 0..100 {
            std::fs::File::create(path.join(format!("f{file}.rs"))).unwrap();
        }
    }
    stage.write("Cargo.toml", "[workspace]\n");
    let mut times = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let data = ok(&stage, &json!({"action": "detect"}));
        times.push(began.elapsed());
        assert!(
            data["files_seen"].as_u64().unwrap() > 100 && data["build"][0]["tool"] == "cargo",
            "{data:#}"
        );
    }
    times.sort();
    println!("ws.detect on {files} files: {times:?}");
    assert!(times[0].as_millis() < 1_000, "{times:?}");
}
