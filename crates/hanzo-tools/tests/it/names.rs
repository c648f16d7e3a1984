//! Other names for actions, the classic profile, and which tools are enabled.

use hanzo_sandbox::SandboxConfig;
use hanzo_tools::registry::Names;
use hanzo_tools::{Profile, Selection};
use serde_json::json;

use crate::support::Stage;

fn stage(selection: &Selection) -> Stage {
    Stage::with(selection, &SandboxConfig::default())
}

#[test]
fn aliases_can_be_called_and_are_not_listed() {
    let stage = Stage::new();
    stage.write("a.txt", "needle\n");
    let listed: Vec<String> = stage.tools.schemas().into_iter().map(|schema| schema.name).collect();
    for (name, arguments) in [
        ("read_file", json!({"path": "a.txt"})),
        ("file_read", json!({"file_path": "a.txt"})),
        ("fs.read", json!({"uri": "a.txt"})),
        ("fs_read", json!({"path": "a.txt"})),
        ("ls", json!({})),
        ("glob", json!({"pattern": "*.txt"})),
        ("list_directory", json!({"path": ".", "recursive": true})),
        ("grep", json!({"pattern": "needle", "-i": true, "output_mode": "content"})),
        ("write_file", json!({"path": "b.txt", "content": "b"})),
        ("create_directory", json!({"path": "d"})),
        ("move_file", json!({"source": "b.txt", "destination": "d/b.txt"})),
        ("delete_file", json!({"path": "d/b.txt", "confirm": true})),
    ] {
        assert!(!listed.contains(&name.to_owned()), "{name}");
        let result = stage.call(name, arguments);
        assert!(!result.is_error, "{name}: {}", result.output);
    }
    let edit = json!({"path": "a.txt", "old_text": "needle", "new_text": "pin"});
    let refused = stage.call("edit_file", edit);
    assert!(
        refused.output.contains("CONFLICT"),
        "an alias is no way round the base hash: {}",
        refused.output
    );
}

#[test]
fn strict_turns_the_aliases_off() {
    let stage = stage(&Selection { names: Names::Strict, ..Selection::default() });
    assert!(stage.tools.get("fs").is_some());
    for name in ["read_file", "fs.read", "fs_read", "grep"] {
        assert!(stage.tools.get(name).is_none(), "{name}");
    }
}

#[test]
fn the_classic_profile_lists_the_old_names_and_takes_the_base_hash_from_what_was_read() {
    let stage = stage(&Selection { profile: Profile::Classic, ..Selection::default() });
    let listed: Vec<String> = stage.tools.schemas().into_iter().map(|schema| schema.name).collect();
    for name in ["read_file", "write_file", "edit_file", "multi_edit", "move_file", "ls", "glob", "grep"] {
        assert!(listed.contains(&name.to_owned()), "{listed:?}");
    }
    assert!(!listed.contains(&"fs".to_owned()));
    let path = stage.write("a.txt", "one two\n");
    let edit = |old: &str, new: &str| {
        stage.call("edit_file", json!({"path": "a.txt", "old_text": old, "new_text": new}))
    };
    assert!(edit("one", "1").output.contains("CONFLICT"), "it was not read");
    assert!(!stage.call("read_file", json!({"path": "a.txt"})).is_error);
    assert!(!edit("one", "1").is_error);
    assert!(!edit("two", "2").is_error, "what was written is known too");
    std::fs::write(&path, "1 2 3\n").unwrap();
    let stale = edit("2", "two");
    assert!(stale.output.contains("CONFLICT") && stale.output.contains("+1 2 3"), "{}", stale.output);
    assert_eq!(stage.text("a.txt"), "1 2 3\n");

    let overwrite = || stage.call("write_file", json!({"path": "a.txt", "content": "new"}));
    assert!(overwrite().output.contains("CONFLICT"));
    stage.call("read_file", json!({"path": "a.txt"}));
    assert!(!overwrite().is_error);
    assert_eq!(stage.text("a.txt"), "new");
    let multi = json!({"path": "a.txt", "edits": [{"old_text": "n", "new_text": "N"}, {"old_text": "w", "new_text": "W"}]});
    assert!(!stage.call("multi_edit", multi).is_error);
    assert_eq!(stage.text("a.txt"), "NeW");
}

#[test]
fn enabled_names_tools_actions_or_aliases_and_what_is_unknown_is_told() {
    let enabled = |names: &[&str]| Selection {
        enabled: names.iter().map(ToString::to_string).collect(),
        ..Selection::default()
    };
    let some = stage(&enabled(&["fs.read", "grep"]));
    let error = some.err(json!({"action": "write", "path": "x", "content": ""}));
    assert_eq!(error["code"], "UNKNOWN_ACTION");
    assert_eq!(error["details"]["available"], json!(["read", "search_text", "help", "schema", "status"]));
    assert!(some.tools.get("write_file").is_none());
    assert!(stage(&enabled(&["nothing"])).tools.schemas().is_empty());
    assert_eq!(enabled(&["fs", "fs.fly", "read_file", "fs.read", "wings"]).unknown(), ["fs.fly", "wings"]);
}
