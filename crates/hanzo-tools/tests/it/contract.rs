//! The contract: help, schemas, mistakes in arguments, reach, intents, paging.

use hanzo_protocol::tool::{Effect, Place};
use hanzo_tools::unified;
use serde_json::{Value, json};

use crate::support::Stage;

#[test]
fn the_default_action_is_help_in_markdown_with_every_action() {
    let stage = Stage::new();
    for tool in unified(&stage.host) {
        let result = stage.call(tool.name(), json!({}));
        for action in tool.action_names() {
            assert!(result.output.contains(&format!("## {action}")), "{}: {action}", tool.name());
        }
        assert_eq!(result.envelope.unwrap()["meta"]["action"], "help");
    }
}

/// What the contract calls anti-patterns: a tool that does everything, a second way to edit, places in a form of their own.
#[test]
fn there_is_no_tool_for_everything_no_second_way_to_edit_and_one_form_of_a_place() {
    let stage = Stage::new();
    let tools = unified(&stage.host);
    let all: usize = tools.iter().map(|tool| tool.action_names().len()).sum();
    assert!(tools.iter().all(|tool| tool.action_names().len() * 3 < all), "a third of all actions is in one");
    let root = stage.root.display().to_string();
    stage.write("d/a.txt", "one\n");
    for path in [
        "d/a.txt",
        "./d//a.txt",
        "d/../d/a.txt",
        &format!("{root}/d/a.txt"),
        &format!("file://{root}/d/./a.txt"),
    ] {
        for action in ["read", "stat"] {
            let data = stage.ok(json!({"action": action, "path": path}));
            assert_eq!(data["uri"], format!("file://{root}/d/a.txt"), "{action} {path}");
        }
    }
    let write = stage.err(json!({"action": "write", "path": "d/a.txt", "content": "two\n"}));
    assert_eq!(write["code"], "ALREADY_EXISTS", "what exists is changed by patches");
    assert_eq!(stage.text("d/a.txt"), "one\n");
    let found = stage.ok(json!({"action": "search_text", "pattern": "one"}));
    let range = json!({"start": {"line": 0, "col": 0}, "end": {"line": 0, "col": 3}});
    let place = found.to_string();
    assert!(place.contains(&format!("file://{root}/d/a.txt")), "{found}");
    assert_eq!(found["matches"][0]["range"], range, "{found}");
}

#[test]
fn schemas_are_valid_without_references_and_accept_the_examples() {
    let stage = Stage::new();
    for tool in unified(&stage.host) {
        let data = stage.call(tool.name(), json!({"action": "schema"})).envelope.unwrap()["data"].clone();
        // That of `ws` has all tools.
        let data = data["tools"].get(tool.name()).cloned().unwrap_or(data);
        let help = stage.call(tool.name(), json!({})).output;
        let examples = help.split("```json\n").skip(1).map(|rest| rest.split("\n```").next().unwrap());
        for example in examples {
            let example: Value = serde_json::from_str(example).unwrap();
            let action = example["action"].as_str().unwrap();
            let validator = jsonschema::validator_for(&data["actions"][action]["input"]).unwrap();
            assert!(validator.is_valid(&example), "{example}");
        }
        for (action, schemas) in data["actions"].as_object().unwrap() {
            for side in ["input", "output"] {
                let schema = &schemas[side];
                assert!(jsonschema::meta::is_valid(schema), "{action} {side}");
                assert!(!schema.to_string().contains("$ref"), "{action} {side}");
            }
        }
    }
    let read = stage.ok(json!({"action": "schema"}))["actions"]["read"]["input"].clone();
    let validator = jsonschema::validator_for(&read).unwrap();
    assert!(validator.is_valid(&json!({"action": "read", "path": "x", "offset": 3})));
    assert!(validator.is_valid(&json!({"action": "read", "uri": "file:///x"})), "other names are part of it");
    assert!(!validator.is_valid(&json!({"action": "read"})));
    assert!(!validator.is_valid(&json!({"action": "read", "path": "x", "unknown": 1})));
    assert!(!validator.is_valid(&json!({"action": "read", "path": 7})));
}

#[test]
fn the_advertised_schema_is_flat_small_and_the_same_every_time() {
    let stage = Stage::new();
    let again = Stage::new();
    let mut total = 0;
    for (tool, other) in stage.tools.schemas().into_iter().zip(again.tools.schemas()) {
        let parameters: Value = serde_json::from_str(tool.parameters.get()).unwrap();
        assert_eq!(parameters["type"], "object");
        for banned in ["oneOf", "anyOf", "allOf", "enum", "not"] {
            assert!(parameters.get(banned).is_none(), "{}: {banned} at the root", tool.name);
        }
        assert!(!tool.parameters.get().contains("$ref"));
        for (name, field) in parameters["properties"].as_object().unwrap() {
            assert!(field.get("type").is_some_and(Value::is_string), "{}.{name}: {field}", tool.name);
        }
        assert_eq!(
            tool.parameters.get(),
            other.parameters.get(),
            "a thread's first request repeats the last one's"
        );
        assert_eq!(tool.description, other.description);
        let size = serde_json::to_string(&tool).unwrap().len();
        let most = match tool.name.as_str() {
            "fs" | "vcs" => 2500,
            "proc" => 1750,
            _ => 1000,
        };
        assert!(size <= most, "{} takes {size} bytes of every request", tool.name);
        total += size;
    }
    assert!(total <= 7500, "all tools take {total} bytes of every request");
}

#[test]
fn an_unknown_action_is_answered_with_the_list_and_the_nearest() {
    let error = Stage::new().err(json!({"action": "serch_text"}));
    assert_eq!(error["code"], "UNKNOWN_ACTION");
    assert!(error["message"].as_str().unwrap().contains("did you mean `search_text`?"), "{error}");
    let available = error["details"]["available"].as_array().unwrap();
    assert!(available.contains(&json!("read")) && available.contains(&json!("help")), "{error}");
}

#[test]
fn a_mistake_in_the_arguments_names_the_field_and_what_it_takes() {
    let stage = Stage::new();
    for (arguments, field, words) in [
        (json!({"action": "read"}), "path", "missing"),
        (json!({"action": "read", "path": 7}), "path", "string"),
        (json!({"action": "read", "path": "x", "offset": "many"}), "offset", "integer"),
        (json!({"action": "read", "path": "x", "offset": -1}), "offset", "at least 0"),
        (json!({"action": "read", "pth": "x"}), "pth", "did you mean `path`?"),
        (json!({"action": "search_text", "pattern": ["a"]}), "pattern", "string"),
        (json!({"action": "read", "path": "x", "intent": "hope"}), "intent", "inspect"),
        (json!({"action": "read", "path": "a", "uri": "b"}), "path", "twice"),
    ] {
        let error = stage.err(arguments.clone());
        assert_eq!(error["code"], "INVALID_ARGUMENTS", "{arguments}");
        assert_eq!(error["details"]["field"], field, "{arguments}: {error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{arguments}: {error}");
    }
    for arguments in [json!("read"), json!(null), json!({"action": 5}), json!([])] {
        assert_eq!(stage.err(arguments.clone())["code"], "INVALID_ARGUMENTS", "{arguments}");
    }
    let nested = json!({"action": "apply_patch", "path": "x", "edits": [{"old_text": 1, "new_text": "b"}]});
    assert_eq!(stage.err(nested)["details"]["field"], "edits[0].old_text");
}

#[test]
fn other_names_of_fields_mean_the_same_and_null_is_absent() {
    let stage = Stage::new();
    let path = stage.write("a.txt", "one\ntwo\n");
    let uri = format!("file://{}", path.display());
    for arguments in [
        json!({"action": "read", "path": "a.txt"}),
        json!({"action": "read", "uri": uri}),
        json!({"action": "read", "file_path": path, "range": null, "encoding": null}),
        json!({"action": "fs.read", "path": "./a.txt"}),
    ] {
        let data = stage.ok(arguments.clone());
        assert_eq!(data["uri"], uri, "{arguments}");
        assert_eq!(data["text"], "one\ntwo\n");
    }
    let quoted = json!({
        "action": "apply_patch", "path": "a.txt", "base_hash": stage.hash("a.txt"),
        "edits": "[{\"old_text\":\"one\",\"new_text\":\"ONE\"}]",
    });
    stage.ok(quoted);
    assert_eq!(stage.text("a.txt"), "ONE\ntwo\n");
}

#[test]
fn an_intent_is_echoed_and_only_narrows() {
    let stage = Stage::new();
    stage.write("a.txt", "x");
    let result = stage.call("fs", json!({"action": "read", "path": "a.txt", "intent": "inspect"}));
    assert_eq!(result.envelope.unwrap()["meta"]["intent"], "inspect");
    for intent in ["inspect", "verify", "ship"] {
        let error = stage.err(json!({"action": "write", "path": "b.txt", "content": "", "intent": intent}));
        assert_eq!(error["code"], "DENIED", "{intent}");
    }
    assert!(!stage.root.join("b.txt").exists());
    stage.ok(json!({"action": "write", "path": "b.txt", "content": "", "intent": "apply"}));
}

#[test]
fn reach_says_the_action_the_effect_and_where_the_files_really_are() {
    let stage = Stage::new();
    stage.write("dir/a.txt", "x");
    std::os::unix::fs::symlink(&stage.outside, stage.root.join("out")).unwrap();
    std::fs::write(stage.outside.join("o.txt"), "o").unwrap();
    let reach = |tool: &str, arguments: Value| stage.tools.get(tool).unwrap().reach(&arguments);

    let read = reach("fs_read", json!({"path": "dir/../dir/a.txt"}));
    assert_eq!((read.action.as_str(), read.effect), ("fs.read", Effect::Read));
    assert_eq!(read.paths[0].real, stage.root.join("dir/a.txt"));
    assert_eq!(read.paths[0].place, Place::Inside);

    for (arguments, real) in [
        (json!({"action": "read", "path": "out/o.txt"}), stage.outside.join("o.txt")),
        (json!({"action": "read", "path": "../outside/o.txt"}), stage.outside.join("o.txt")),
        (
            json!({"action": "write", "path": "out/new/deep.txt", "content": ""}),
            stage.outside.join("new/deep.txt"),
        ),
    ] {
        let reached = reach("fs", arguments.clone());
        assert_eq!(reached.paths[0].place, Place::Outside, "{arguments}");
        assert_eq!(reached.paths[0].real, real, "{arguments}");
    }
    let new = reach("fs", json!({"action": "write", "path": "new/deep/file.txt", "content": ""}));
    assert_eq!((new.effect, new.paths[0].place), (Effect::Write, Place::Inside));
    assert_eq!(new.paths[0].real, stage.root.join("new/deep/file.txt"));

    let moved = reach("fs", json!({"action": "mv", "path": "dir/a.txt", "to": "../outside/b.txt"}));
    assert_eq!(moved.paths.len(), 2);
    assert_eq!(moved.paths[1].place, Place::Outside);

    let patch =
        "*** Begin Patch\n*** Update File: dir/a.txt\n*** Move to: /etc/x\n@@\n-x\n+y\n*** End Patch\n";
    let patched = reach("fs", json!({"action": "apply_patch", "patch": patch}));
    let places: Vec<Place> = patched.paths.iter().map(|path| path.place).collect();
    assert_eq!(places, [Place::Inside, Place::Outside]);

    for nonsense in [json!({"action": "apply_patch", "path": 3}), json!({"action": "nothing"}), json!(7)] {
        assert_eq!(reach("fs", nonsense.clone()).effect, Effect::Write, "{nonsense}");
    }
    assert_eq!(reach("fs", json!({})).action, "fs.help");
}

#[test]
fn output_is_short_for_a_model_and_whole_for_a_program() {
    let stage = Stage::new();
    stage.write("a.txt", "say \"hi\"\n\tthere\n");
    let result = stage.call("fs", json!({"action": "read", "path": "a.txt"}));
    assert!(result.output.ends_with("\n\nsay \"hi\"\n\tthere\n"), "{}", result.output);
    let envelope = result.envelope.unwrap();
    assert!(!result.output.contains(envelope["meta"]["trace_id"].as_str().unwrap()));
    let keys: Vec<&String> = envelope.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["ok", "data", "error", "meta"]);
}

#[test]
fn a_pipe_of_actions_needs_no_interpretation_between_them() {
    let stage = Stage::new();
    stage.write("src/a.rs", "fn main() {\n    error();\n}\n");
    let found = stage.ok(json!({"action": "search_text", "pattern": "error"}))["matches"][0].clone();
    let read = stage.ok(json!({"action": "read", "uri": found["uri"], "range": found["range"]}));
    assert_eq!(read["text"], "error");
    let patch = "@@ -2 +2 @@\n fn main() {\n-    error();\n+    fine();\n }\n";
    let done = stage.ok(json!({
        "action": "apply_patch", "uri": found["uri"], "patch": patch, "base_hash": read["hash"],
    }));
    assert_eq!(stage.text("src/a.rs"), "fn main() {\n    fine();\n}\n");
    let diff =
        stage.ok(json!({"action": "diff", "hash_a": read["hash"], "hash_b": done["files"][0]["hash"]}));
    assert!(diff["diff"].as_str().unwrap().contains("-    error();\n+    fine();\n"), "{diff}");
    let unknown = format!("sha256:{}", "0".repeat(64));
    let error = stage.err(json!({"action": "diff", "hash_a": unknown, "hash_b": unknown}));
    assert_eq!(error["code"], "NOT_FOUND");
}
