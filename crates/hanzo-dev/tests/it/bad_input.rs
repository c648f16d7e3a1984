//! Broken input: a clear error that names the file and the place, exit code 52, nothing written.

use crate::support::{Ran, World};

const USER: &str = ".config/hanzo/settings.toml";
const USER_JSON: &str = ".config/hanzo/settings.json";

#[track_caller]
fn broken(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, 52, "{ran:#?}");
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    for word in words {
        assert!(ran.stderr.contains(word), "`{word}` is missing from: {}", ran.stderr);
    }
}

#[test]
fn broken_files_are_named_with_line_and_column() {
    for (name, content, place) in [
        (USER, &b"model = \n"[..], "settings.toml:1:"),
        (USER, b"a = 1\n[agent\n", "settings.toml:2:"),
        (USER_JSON, b"{\"model\": \"x\",\n \"agent\": }", "settings.json:2:"),
        (USER_JSON, b"{\"agent\": {\"max_steps\": \"ten\"}}", "settings.json:1:25"),
        (USER, b"[agent]\nmax_steps = \"ten\"\n", "settings.toml:2:13"),
        (USER, b"model = [1]\n", "settings.toml:1:9"),
        (USER, b"ok = 1\nmodel = \"\xff\xfe\"\n", "settings.toml:2:"),
        ("project/.mcp.json", b"{\"mcpServers\": 5}", ".mcp.json:1:"),
        ("project/.hanzo/settings.local.json", b"[]", "settings.local.json:1:1"),
    ] {
        let world = World::new();
        world.write(name, content);
        let before = world.files();
        broken(&world.run(&["config", "show"]), &[place]);
        assert_eq!(world.files(), before, "nothing is written");
    }
}

#[test]
fn a_directory_where_a_file_should_be_is_named() {
    let world = World::new();
    std::fs::create_dir_all(world.home().join(USER)).expect("a directory");
    broken(&world.run(&["config", "show"]), &["settings.toml", "directory"]);
}

#[cfg(unix)]
#[test]
fn an_unreadable_file_is_named() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    world.write(".config/hanzo/x", "");
    // A loop of links is unreadable to everyone, root included.
    symlink("settings.toml", world.home().join(USER)).expect("a link");
    broken(&world.run(&["config", "show"]), &["settings.toml"]);
}

#[test]
fn a_huge_file_is_refused() {
    let world = World::new();
    world.write(USER, vec![b'#'; 5 << 20]);
    broken(&world.run(&["config", "show"]), &["settings.toml", "MiB"]);
}

#[test]
fn two_formats_in_one_tier_are_an_error_that_names_both() {
    let world = World::new();
    world.write(USER, "").write(USER_JSON, "{}");
    broken(&world.run(&["config", "show"]), &["settings.toml", "settings.json"]);
}

#[test]
fn a_cycle_of_variables_is_an_error() {
    let world = World::new();
    world.user("[env]\nA = \"${B}\"\nB = \"${A}\"\n[mcp_servers.x]\ncommand = \"run\"\nargs = [\"${A}\"]\n");
    broken(&world.run(&["config", "show"]), &["settings.toml", "A"]);
}

#[test]
fn an_unset_variable_is_an_error_with_its_place() {
    let world = World::new();
    world.user("[mcp_servers.x]\nurl = \"https://x.test/${NOT_SET}\"\n");
    broken(&world.run(&["config", "show"]), &["settings.toml:2:", "NOT_SET"]);
}

#[test]
fn a_byte_order_mark_is_no_error() {
    let world = World::new();
    world.write(USER, "\u{feff}model = \"x\"\n");
    assert!(world.run(&["config", "explain", "model"]).ok().contains("\"x\""));
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let world = World::new();
        world.write(USER_JSON, format!("{{\"x\": {}1{}}}", open.repeat(100_000), close.repeat(100_000)));
        broken(&world.run(&["config", "show"]), &["settings.json:1:"]);
    }
}

#[test]
fn a_broken_rule_is_named_with_its_place() {
    let world = World::new();
    world.user("[permissions]\ndeny = [\"Bash(rm\"]\n");
    broken(&world.run(&["permissions", "explain", "--tool", "bash"]), &["settings.toml:2:9", "Bash(rm"]);
}

#[test]
fn a_broken_file_of_rules_is_named() {
    let world = World::new();
    world
        .write("project/r.json", "{\"allow\": 5}")
        .write("project/r.toml", "allow = [")
        .write("project/k.json", "{\"alow\": []}");
    std::fs::create_dir_all(world.workspace().join("d.json")).expect("a directory");
    for file in ["r.json", "r.toml", "k.json", "d.json", "missing.json"] {
        let ran = world.run(&["permissions", "explain", "--tool", "bash", "--rules", file]);
        broken(&ran, &[file]);
    }
}

#[test]
fn arguments_that_are_no_json_object_are_bad_input_with_a_hint() {
    for args in ["{", "[]", "5", ""] {
        let ran = World::new().run(&["permissions", "explain", "--tool", "bash", "--args", args]);
        assert_eq!(ran.code, 42, "{ran:#?}");
        assert!(ran.stderr.contains("--args") && ran.stderr.contains("\n\nhint: "), "{}", ran.stderr);
    }
}
