//! Reading, listing, making, moving, removing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use hanzo_protocol::item::Taint;
use hanzo_protocol::tool::ToolCaller;
use serde_json::{Value, json};

use crate::support::Stage;

#[test]
fn a_file_is_read_by_ranges_and_pages_with_one_hash() {
    let stage = Stage::new();
    let text: String = (0..10).map(|line| format!("line {line}\n")).collect();
    stage.write("a.txt", &text);
    let whole = stage.ok(json!({"action": "read", "path": "a.txt"}));
    assert_eq!((&whole["lines"], &whole["text"]), (&json!(10), &json!(text)));
    assert_eq!(whole["range"], json!({"start": {"line": 0, "col": 0}, "end": {"line": 10, "col": 0}}));

    let part = stage.ok(json!({"action": "read", "path": "a.txt", "offset": 3, "limit": 2}));
    assert_eq!(part["text"], "line 3\nline 4\n");
    assert_eq!(part["hash"], whole["hash"], "the hash is the whole file's");
    let span = json!({"start": {"line": 1, "col": 2}, "end": {"line": 2, "col": 4}});
    let part = stage.ok(json!({"action": "read", "path": "a.txt", "range": span}));
    assert_eq!((&part["text"], &part["range"]), (&json!("ne 1\nline"), &span));

    let mut arguments = json!({"action": "read", "path": "a.txt", "limit": 4});
    let mut collected = String::new();
    loop {
        let envelope = stage.call("fs", arguments.clone()).envelope.unwrap();
        collected.push_str(envelope["data"]["text"].as_str().unwrap());
        if envelope["meta"]["paging"]["more"] == json!(false) {
            break;
        }
        arguments["cursor"] = envelope["meta"]["paging"]["cursor"].clone();
    }
    assert_eq!(collected, text);
    assert_eq!(stage.err(json!({"action": "read", "path": "a.txt", "offset": 10}))["details"]["lines"], 10);
}

#[test]
fn a_large_file_comes_in_bounded_pages_and_an_empty_one_is_empty() {
    let stage = Stage::new();
    let line = "x".repeat(1000);
    stage.write("big.txt", format!("{line}\n").repeat(500));
    let result = stage.call("fs", json!({"action": "read", "path": "big.txt"}));
    assert!(result.output.len() < 45_000 && result.output.len() > 30_000, "{}", result.output.len());
    assert_eq!(result.envelope.unwrap()["meta"]["paging"]["more"], true);
    stage.write("one-line.json", "y".repeat(300_000));
    assert!(stage.call("fs", json!({"action": "read", "path": "one-line.json"})).output.len() < 45_000);
    stage.write("empty", "");
    assert_eq!(stage.ok(json!({"action": "read", "path": "empty"}))["text"], "");
}

#[test]
fn encodings_are_recognised_or_named_and_binary_is_noted() {
    let stage = Stage::new();
    let utf16: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain("größe\r\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    stage.write("utf16.txt", &utf16);
    stage.write("bom.txt", "\u{FEFF}hi\n");
    stage.write("latin.txt", b"gr\xf6\xdfe\n");
    stage.write("bin", b"\x7fELF\x00\x01\x02\xff");
    let read = |path: &str| stage.ok(json!({"action": "read", "path": path}));
    assert_eq!(
        (&read("utf16.txt")["text"], &read("utf16.txt")["encoding"]),
        (&json!("größe\r\n"), &json!("utf-16le"))
    );
    assert_eq!(
        (&read("bom.txt")["text"], &read("bom.txt")["encoding"]),
        (&json!("hi\n"), &json!("utf-8-bom"))
    );
    assert_eq!(read("bin")["binary"], "application/x-elf");
    assert_eq!(read("bin")["text"], Value::Null);
    assert!(read("latin.txt")["binary"].is_string(), "no encoding is guessed");
    let named = stage.ok(json!({"action": "read", "path": "latin.txt", "encoding": "windows-1252"}));
    assert_eq!(named["text"], "größe\n");
    let error = stage.err(json!({"action": "read", "path": "latin.txt", "encoding": "klingon"}));
    assert_eq!(error["code"], "INVALID_ARGUMENTS");
}

#[test]
fn an_image_is_attached() {
    let stage = Stage::new();
    stage.write("dot.png", b"\x89PNG\r\n\x1a\n\x00\x00");
    let result = stage.call("fs", json!({"action": "read", "path": "dot.png"}));
    assert_eq!(result.attachments.len(), 1);
    assert_eq!(result.attachments[0].media_type, "image/png");
}

#[test]
fn content_from_outside_is_tainted_and_not_for_remote_callers() {
    let stage = Stage::new();
    fs::write(stage.outside.join("o.txt"), "other").unwrap();
    stage.write("in.txt", "own");
    for arguments in [
        json!({"action": "read", "path": "../outside/o.txt"}),
        json!({"action": "search_text", "pattern": "other", "path": "../outside"}),
        json!({"action": "list", "path": stage.outside}),
    ] {
        let result = stage.call("fs", arguments.clone());
        assert_eq!(result.taint, Some(Taint::Outside), "{arguments}: {}", result.output);
        let remote = stage.call_as(ToolCaller::Remote, "fs", arguments.clone());
        assert!(remote.output.contains("DENIED") && !remote.output.contains("other\n"), "{arguments}");
    }
    assert_eq!(stage.call("fs", json!({"action": "read", "path": "in.txt"})).taint, None);
}

#[test]
fn a_listing_has_depth_pattern_and_pages_and_knows_ignore_files() {
    let stage = Stage::new();
    for name in ["a.b", "a/x.rs", "a/y.txt", "a-b", "target/t.rs", "z.rs", ".hidden", "a/deep/er/q.rs"] {
        stage.write(name, "");
    }
    fs::create_dir(stage.root.join(".git")).unwrap();
    stage.write(".gitignore", "target\n*.txt\n");
    let names = |arguments: Value| -> Vec<String> {
        let data = stage.ok(arguments);
        let prefix = format!("file://{}/", stage.root.display());
        let entries = data["entries"].as_array().unwrap();
        entries.iter().map(|entry| entry["uri"].as_str().unwrap().replace(&prefix, "")).collect()
    };
    assert_eq!(names(json!({"action": "list"})), ["a-b", "a.b", "a", "z.rs"]);
    assert_eq!(names(json!({"action": "list", "pattern": "**/*.rs"})), ["a/deep/er/q.rs", "a/x.rs", "z.rs"]);
    assert_eq!(names(json!({"action": "list", "path": "a", "depth": 2})), ["a/deep", "a/deep/er", "a/x.rs"]);
    let all = names(json!({"action": "list", "all": true, "depth": 9}));
    assert!(
        all.contains(&"target/t.rs".into())
            && all.contains(&".hidden".into())
            && all.contains(&"a/y.txt".into())
    );

    let whole = names(json!({"action": "list", "depth": 9}));
    let mut paged = Vec::new();
    let mut arguments = json!({"action": "list", "depth": 9, "limit": 1});
    loop {
        let fresh = Stage {
            tools: hanzo_tools::toolset(&stage.host, &hanzo_tools::Selection::default()),
            ..Stage::new()
        };
        let envelope = fresh.call("fs", arguments.clone()).envelope.unwrap();
        paged.extend(envelope["data"]["entries"].as_array().unwrap().clone());
        if envelope["meta"]["paging"]["more"] == json!(false) {
            break;
        }
        arguments["cursor"] = envelope["meta"]["paging"]["cursor"].clone();
    }
    assert_eq!(paged.len(), whole.len(), "page by page is the whole, also with tools made anew");
    arguments["depth"] = json!(2);
    assert_eq!(stage.err(arguments)["code"], "INVALID_ARGUMENTS", "a cursor is good for its own query");
}

#[test]
fn write_makes_new_files_only_with_their_directories() {
    let stage = Stage::new();
    let data = stage.ok(json!({"action": "write", "path": "a/b/c.txt", "content": "hi\n"}));
    assert_eq!(stage.text("a/b/c.txt"), "hi\n");
    assert_eq!(data["hash"].as_str().unwrap(), stage.hash("a/b/c.txt"));
    let error = stage.err(json!({"action": "write", "path": "a/b/c.txt", "content": "x"}));
    assert_eq!(error["code"], "ALREADY_EXISTS");
    assert!(error["message"].as_str().unwrap().contains("apply_patch"));
    assert_eq!(stage.text("a/b/c.txt"), "hi\n");
    for outside in ["../outside/x", "/etc/hanzo-test"] {
        let error = stage.err(json!({"action": "write", "path": outside, "content": "x"}));
        assert_eq!(error["code"], "SANDBOX_DENIED", "{error}");
    }
    assert!(fs::read_dir(&stage.outside).unwrap().next().is_none());
}

#[test]
fn mkdir_mv_rm_and_stat_do_what_they_say() {
    let stage = Stage::new();
    stage.ok(json!({"action": "mkdir", "path": "d/e"}));
    stage.write("f.txt", "f");
    fs::set_permissions(stage.root.join("f.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    let stat = stage.ok(json!({"action": "stat", "path": "f.txt"}));
    assert_eq!((&stat["size"], &stat["kind"], &stat["mode"]), (&json!(1), &json!("file"), &json!("640")));
    assert_eq!(stat["hash"].as_str().unwrap(), stage.hash("f.txt"));
    assert!(stat["mtime"].as_str().unwrap().ends_with('Z'));

    stage.ok(json!({"action": "mv", "path": "f.txt", "to": "d/new/g.txt"}));
    assert_eq!(stage.text("d/new/g.txt"), "f");
    stage.write("h.txt", "h");
    assert_eq!(
        stage.err(json!({"action": "mv", "path": "h.txt", "to": "d/new/g.txt"}))["code"],
        "ALREADY_EXISTS"
    );

    let error = stage.err(json!({"action": "rm", "path": "d"}));
    assert_eq!(error["code"], "CONFIRMATION_REQUIRED");
    assert!(stage.root.join("d").exists());
    assert_eq!(stage.ok(json!({"action": "rm", "path": "d", "confirm": true}))["removed"], 4);
    assert!(!stage.root.join("d").exists());
    assert_eq!(stage.err(json!({"action": "rm", "path": "d", "confirm": true}))["code"], "NOT_FOUND");
}

#[test]
fn removing_a_tree_takes_links_and_not_what_they_lead_to_and_no_repository() {
    let stage = Stage::new();
    fs::write(stage.outside.join("keep.txt"), "keep").unwrap();
    stage.write("t/a", "");
    std::os::unix::fs::symlink(&stage.outside, stage.root.join("t/link")).unwrap();
    stage.ok(json!({"action": "rm", "path": "t", "confirm": true}));
    assert!(stage.outside.join("keep.txt").exists());
    stage.write("r/.git/HEAD", "x");
    stage.write("r/a", "x");
    assert_eq!(stage.err(json!({"action": "rm", "path": "r", "confirm": true}))["code"], "DENIED");
    assert!(stage.root.join("r/a").exists());
}
