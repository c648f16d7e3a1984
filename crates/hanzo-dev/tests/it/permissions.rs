use serde_json::{Value, json};

use crate::support::World;

fn explain(world: &World, tool: &str, args: &Value, more: &[&str]) -> Value {
    let args = args.to_string();
    let all = [&["permissions", "explain", "--json", "--tool", tool, "--args", &args], more].concat();
    world.run(&all).json()
}

#[test]
fn without_rules_readers_run_and_writers_ask() {
    let world = World::new();
    assert_eq!(explain(&world, "fs.read", &json!({"path": "a"}), &[])["decision"], "allow");
    assert_eq!(explain(&world, "fs.write", &json!({"path": "a"}), &[])["decision"], "ask");
    assert_eq!(explain(&world, "proc.exec", &json!({"command": "ls"}), &[])["decision"], "ask");
    assert_eq!(explain(&world, "mcp__x__y", &json!({}), &[])["decision"], "ask");
}

#[test]
fn the_rule_its_file_and_the_simple_command_are_named() {
    let world = World::new();
    world.user("[permissions]\nallow = [\"Bash\"]\ndeny = [\"Bash(rm -rf*)\"]\n");
    let args = json!({"command": "ls && sudo rm -r -f build"});
    let shown = explain(&world, "proc.exec", &args, &[]);
    assert_eq!(shown["decision"], "deny");
    assert_eq!(shown["rule"]["text"], "Bash(rm -rf*)");
    assert_eq!(shown["rule"]["origin"], "~/.config/hanzo/settings.toml:3:9");
    assert!(shown["command"].as_str().is_some_and(|command| command.contains("rm -r -f build")), "{shown:#}");

    let text = world.run(&["permissions", "explain", "--tool", "bash", "--args", &args.to_string()]).ok();
    assert!(text.starts_with("deny: ") && text.contains("settings.toml:3:9"), "{text}");
}

#[test]
fn a_projects_deny_counts_and_its_allow_waits_for_trust() {
    let world = World::new();
    world.user("[permissions]\nallow = [\"Bash(cargo:*)\"]\n");
    world.project("[permissions]\nallow = [\"Bash(make:*)\"]\ndeny = [\"Bash(cargo publish:*)\"]\n");
    let command = |command: &str| json!({ "command": command });
    assert_eq!(explain(&world, "proc.exec", &command("cargo test"), &[])["decision"], "allow");
    assert_eq!(explain(&world, "proc.exec", &command("cargo publish"), &[])["decision"], "deny");
    assert_eq!(explain(&world, "proc.exec", &command("make"), &[])["decision"], "ask");
    assert_eq!(explain(&world, "proc.exec", &command("make"), &["--trusted"])["decision"], "allow");
}

#[test]
fn rules_can_come_from_a_file_in_every_spelling() {
    let world = World::new();
    world
        .write("project/table.json", r#"{"allow": ["Bash(ls:*)"], "deny": ["Bash(rm:*)"]}"#)
        .write("project/settings.toml", "[permissions]\nallow = [\"Bash(ls:*)\"]\ndeny = [\"Bash(rm:*)\"]\n")
        .write("project/table.toml", "allow = [\"Bash(ls:*)\"]\ndeny = [\"Bash(rm:*)\"]\n")
        .write("project/full.json", r#"{"allow": [{"rule": "Bash(ls:*)", "match": ["ls -la"], "not_match": ["lsof"]}], "deny": ["Bash(rm:*)"]}"#);
    for file in ["table.json", "settings.toml", "table.toml", "full.json"] {
        let rules = ["--rules", file];
        assert_eq!(
            explain(&world, "proc.exec", &json!({"command": "ls -la"}), &rules)["decision"],
            "allow",
            "{file}"
        );
        assert_eq!(
            explain(&world, "proc.exec", &json!({"command": "/bin/rm x"}), &rules)["decision"],
            "deny",
            "{file}"
        );
        assert_eq!(
            explain(&world, "proc.exec", &json!({"command": "ls; x"}), &rules)["decision"],
            "ask",
            "{file}"
        );
    }
    world.write("project/hip.json", r#"[{"tool_pattern": "mcp__*", "mode": "deny", "reason": "not here"}]"#);
    let shown = explain(&world, "mcp__a__b", &json!({}), &["--rules", "hip.json"]);
    assert_eq!((&shown["decision"], &shown["rule"]["reason"]), (&json!("deny"), &json!("not here")));
}

#[test]
fn rules_of_the_settings_may_carry_examples_too() {
    let world = World::new();
    world.user(
        "[permissions]\nallow = [{ rule = \"Bash(ls:*)\", match = [\"ls -la\"], reason = \"harmless\" }]\n",
    );
    let shown = explain(&world, "proc.exec", &json!({"command": "ls"}), &[]);
    assert_eq!((&shown["decision"], &shown["rule"]["reason"]), (&json!("allow"), &json!("harmless")));

    world.user("[permissions]\nallow = [{ rule = \"Bash(ls:*)\", not_match = [\"ls -la\"] }]\n");
    let ran = world.run(&["permissions", "explain", "--tool", "bash"]);
    assert_eq!(ran.code, 52);
    assert!(ran.stderr.contains("settings.toml:2:10") && ran.stderr.contains("ls -la"), "{}", ran.stderr);
}

#[test]
fn arguments_can_be_piped_in() {
    let arguments = ["permissions", "explain", "--tool", "proc.exec", "--args", "-"];
    let shown = World::new().run_with_input(&arguments, r#"{"command": "ls"}"#).ok();
    assert!(shown.starts_with("ask: "), "{shown}");
}

#[test]
fn what_a_model_wrote_cannot_drive_the_terminal() {
    let args = json!({"command": "ls \u{1b}]0;owned\u{7}\u{202e}"}).to_string();
    let shown = World::new().run(&["permissions", "explain", "--tool", "proc.exec", "--args", &args]).ok();
    assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{shown:?}");
}
