//! What must end in a typed error, quickly, with nothing changed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::Stage;

fn code(stage: &Stage, arguments: serde_json::Value) -> String {
    let started = Instant::now();
    let error = stage.err(arguments.clone());
    assert!(started.elapsed() < Duration::from_secs(2), "{arguments} took {:?}", started.elapsed());
    error["code"].as_str().unwrap().to_owned()
}

#[test]
fn special_files_do_not_hang() {
    let stage = Stage::new();
    let fifo = stage.root.join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for action in ["read", "list"] {
        let got = code(&stage, json!({"action": action, "path": "fifo"}));
        assert_eq!(got, "UNSUPPORTED", "{action}");
    }
    assert_eq!(code(&stage, json!({"action": "read", "path": "/dev/zero"})), "UNSUPPORTED");
    let edits = json!([{"old_text": "a", "new_text": "b"}]);
    assert_eq!(
        code(&stage, json!({"action": "apply_patch", "path": "fifo", "edits": edits, "base_hash": "x"})),
        "UNSUPPORTED"
    );
    assert_eq!(stage.ok(json!({"action": "search_text", "pattern": "x"}))["matches"], json!([]));
    assert_eq!(stage.ok(json!({"action": "list"}))["entries"][0]["kind"], "special");
}

#[test]
fn loops_and_foreign_addresses_are_typed_errors() {
    let stage = Stage::new();
    symlink("b", stage.root.join("a")).unwrap();
    symlink("a", stage.root.join("b")).unwrap();
    symlink(".", stage.root.join("self")).unwrap();
    assert_eq!(code(&stage, json!({"action": "read", "path": "a"})), "IO");
    assert!(stage.ok(json!({"action": "list", "depth": 50}))["entries"].as_array().unwrap().len() <= 3);
    for path in ["http://x/y", "file://server/share", "file:///a/../b", "", "a\0b"] {
        assert_eq!(code(&stage, json!({"action": "read", "path": path})), "INVALID_ARGUMENTS", "{path:?}");
    }
    for path in ["missing", "missing/deeper", "file:///nowhere/at/all"] {
        assert_eq!(code(&stage, json!({"action": "read", "path": path})), "NOT_FOUND", "{path}");
    }
    assert_eq!(code(&stage, json!({"action": "read", "path": "."})), "INVALID_ARGUMENTS");
}

#[test]
fn a_file_of_four_gigabytes_is_answered_at_once_and_not_edited() {
    let stage = Stage::new();
    let file = fs::File::create(stage.root.join("huge")).unwrap();
    file.set_len(4 << 30).unwrap();
    let started = Instant::now();
    let read = stage.ok(json!({"action": "read", "path": "huge"}));
    assert_eq!((&read["size"], &read["binary"]), (&json!(4_u64 << 30), &json!("application/octet-stream")));
    assert_eq!((read.get("text"), read.get("hash")), (None, None), "it was not gone through");
    let edits = json!([{"old_text": "a", "new_text": "b"}]);
    let edit = json!({"action": "apply_patch", "path": "huge", "edits": edits, "base_hash": "x"});
    assert_eq!(code(&stage, edit), "TOO_LARGE");
    let stat = stage.ok(json!({"action": "stat", "path": "huge"}));
    assert_eq!((&stat["size"], stat.get("hash")), (&json!(4_u64 << 30), None));
    stage.ok(json!({"action": "search_text", "pattern": "x"}));
    assert!(started.elapsed() < Duration::from_secs(5), "zeros are binary: {:?}", started.elapsed());

    // Text at the start, nothing for gigabytes after it: the first lines are there at once too.
    let huge = fs::File::options().write(true).open(stage.root.join("huge")).unwrap();
    std::io::Write::write_all(&mut &huge, "größe\n".repeat(10_000).as_bytes()).unwrap();
    let read = stage.ok(json!({"action": "read", "path": "huge", "offset": 7, "limit": 2}));
    assert_eq!((&read["text"], read.get("hash")), (&json!("größe\ngröße\n"), None));
    // A cursor goes on where the page ended.
    let page = |cursor: &serde_json::Value| {
        let arguments = json!({"action": "read", "path": "huge", "limit": 3, "cursor": cursor});
        stage.call("fs", arguments).envelope.unwrap()
    };
    let first = page(&json!(null));
    let second = page(&first["meta"]["paging"]["cursor"]);
    assert_eq!(second["data"]["range"]["start"]["line"], 3);
    assert_eq!(second["data"]["text"], "größe\ngröße\ngröße\n");
}

#[test]
fn a_file_too_large_for_memory_is_read_in_parts() {
    use std::io::Write as _;

    let stage = Stage::new();
    let path = stage.root.join("log");
    let mut file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    let line = |n: u64| format!("line {n:07} of a long log, größer as it goes on\n");
    let count = (65 << 20) / line(0).len() as u64;
    for n in 0..count {
        file.write_all(line(n).as_bytes()).unwrap();
    }
    write!(file, "the end").unwrap();
    drop(file);
    let size = fs::metadata(&path).unwrap().len();
    let sum = std::process::Command::new("sha256sum").arg(&path).output().unwrap();
    let hash =
        format!("sha256:{}", String::from_utf8(sum.stdout).unwrap().split_whitespace().next().unwrap());
    let read = |more: serde_json::Value| {
        let mut arguments = json!({"action": "read", "path": "log"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let result = stage.call("fs", arguments);
        assert!(!result.is_error, "{}", result.output);
        result.envelope.unwrap()
    };
    // Each of these goes through the whole file.
    let first = read(json!({"limit": 2}));
    assert_eq!(first["data"]["text"], format!("{}{}", line(0), line(1)));
    assert_eq!(first["data"]["hash"], hash);
    assert_eq!((&first["data"]["lines"], &first["data"]["size"]), (&json!(count + 1), &json!(size)));
    assert!(first["meta"]["paging"]["cursor"].is_string(), "there is more");
    let range = json!({"start": {"line": count - 1, "col": 5}, "end": {"line": count, "col": 4}});
    let ranged = read(json!({"range": range}));
    assert_eq!(ranged["data"]["text"], format!("{}the ", &line(count - 1)[5..]));
    assert_eq!(ranged["data"]["range"], range);
    assert!(ranged["meta"]["paging"]["cursor"].is_null());

    let edits = json!([{"old_text": "the end", "new_text": "x"}]);
    let edit = json!({"action": "apply_patch", "path": "log", "edits": edits, "base_hash": hash});
    let error = stage.err(edit);
    assert_eq!(error["code"], "TOO_LARGE");
    assert!(error["message"].as_str().unwrap().contains("change it with a command"), "{error}");
    assert_eq!(fs::metadata(&path).unwrap().len(), size);
}

#[test]
fn a_name_that_is_not_utf8_has_a_uri() {
    let stage = Stage::new();
    fs::write(stage.root.join(OsStr::from_bytes(b"odd-\xff.txt")), "needle\n").unwrap();
    let uri = stage.ok(json!({"action": "list"}))["entries"][0]["uri"].clone();
    assert!(uri.as_str().unwrap().ends_with("odd-%FF.txt"));
    let read = stage.ok(json!({"action": "read", "uri": uri}));
    assert_eq!(read["text"], "needle\n");
    stage.ok(json!({"action": "apply_patch", "uri": uri, "base_hash": read["hash"], "old_text": "needle", "new_text": "pin"}));
    let found = stage.ok(json!({"action": "search_text", "pattern": "pin"}))["matches"][0].clone();
    assert_eq!(found["uri"], uri);
}

#[test]
fn patterns_that_explode_are_bounded_and_wrong_ones_are_explained() {
    let stage = Stage::new();
    stage.write("a.txt", "a".repeat(100_000));
    for pattern in ["(a*)*$b", "(a|aa)+$", "a{0,50}{0,50}{0,50}{0,50}", &"(".repeat(5000)] {
        let started = Instant::now();
        stage.call("fs", json!({"action": "search_text", "pattern": pattern}));
        assert!(started.elapsed() < Duration::from_secs(3), "{pattern}");
    }
    let error = stage.err(json!({"action": "search_text", "pattern": "foo("}));
    assert_eq!(error["code"], "INVALID_ARGUMENTS");
    assert!(error["message"].as_str().unwrap().contains("`fixed`"), "{error}");
    assert_eq!(
        code(&stage, json!({"action": "search_text", "pattern": "x", "glob": "[a"})),
        "INVALID_ARGUMENTS"
    );
    assert_eq!(
        code(&stage, json!({"action": "search_text", "pattern": "x", "type": "klingon"})),
        "INVALID_ARGUMENTS"
    );
    assert_eq!(code(&stage, json!({"action": "search_text", "pattern": ""})), "INVALID_ARGUMENTS");
}

#[test]
fn a_deep_tree_is_walked_to_its_end() {
    let stage = Stage::new();
    let mut deep = stage.root.clone();
    for _ in 0..150 {
        deep.push("dir");
    }
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("leaf.txt"), "needle").unwrap();
    let found = stage.ok(json!({"action": "search_text", "pattern": "needle"}));
    assert_eq!(found["matches"].as_array().unwrap().len(), 1);
}

#[test]
fn secrets_are_closed_to_reading_searching_and_listing_behind_them() {
    let config = hanzo_sandbox::SandboxConfig {
        unreadable: vec!["secret".into(), "key.pem".into()],
        ..hanzo_sandbox::SandboxConfig::default()
    };
    let stage = Stage::with(&hanzo_tools::Selection::default(), &config);
    stage.write("secret/deep/a.txt", "needle\n");
    stage.write("key.pem", "needle\n");
    fs::hard_link(stage.root.join("key.pem"), stage.root.join("other.txt")).unwrap();
    stage.write("open.txt", "needle\n");
    let found = stage.ok(json!({"action": "search_text", "pattern": "needle"}));
    let uris: Vec<&str> =
        found["matches"].as_array().unwrap().iter().map(|found| found["uri"].as_str().unwrap()).collect();
    assert_eq!(uris.len(), 1, "{uris:?}");
    assert!(uris[0].ends_with("open.txt"));
    assert_eq!(code(&stage, json!({"action": "read", "path": "secret/deep/a.txt"})), "SANDBOX_DENIED");
}

#[test]
fn a_file_nobody_may_write_is_left_alone() {
    let stage = Stage::new();
    let path = stage.write("locked/a.txt", "a\n");
    let hash = stage.hash("locked/a.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let result = stage.call("fs", json!({
        "action": "apply_patch", "path": "locked/a.txt", "base_hash": hash, "old_text": "a", "new_text": "b",
    }));
    // Root may write everything; everybody else is refused.
    if rustix::process::geteuid().is_root() {
        assert!(!result.is_error);
    } else {
        assert!(result.output.contains("DENIED"), "{}", result.output);
        assert_eq!(stage.text("locked/a.txt"), "a\n");
    }
}

#[test]
fn a_huge_file_is_moved_and_removed_without_reading_it() {
    let stage = Stage::new();
    fs::File::create(stage.root.join("huge")).unwrap().set_len(4 << 30).unwrap();
    let started = Instant::now();
    stage.ok(json!({"action": "mv", "path": "huge", "to": "deeper/huge"}));
    let removed = stage.ok(json!({"action": "rm", "path": "deeper/huge", "confirm": true}));
    assert_eq!((&removed["removed"], removed.get("hash")), (&json!(1), None));
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert!(!stage.root.join("deeper/huge").exists());
}

#[test]
fn a_deep_tree_is_listed_made_moved_and_removed() {
    let stage = Stage::new();
    let deep = vec!["d"; 300].join("/");
    stage.ok(json!({"action": "mkdir", "path": deep}));
    stage.ok(json!({"action": "write", "path": format!("{deep}/leaf.txt"), "content": "x\n"}));
    let mut arguments = json!({"action": "list", "depth": 1000, "limit": 70});
    let mut seen = 0;
    loop {
        let page = stage.call("fs", arguments.clone()).envelope.unwrap();
        seen += page["data"]["entries"].as_array().unwrap().len();
        let cursor = page["meta"]["paging"]["cursor"].clone();
        if cursor.is_null() {
            break;
        }
        arguments["cursor"] = cursor;
    }
    assert_eq!(seen, 301);
    stage.ok(json!({"action": "mv", "path": "d", "to": "e"}));
    assert_eq!(stage.ok(json!({"action": "rm", "path": "e", "confirm": true}))["removed"], 301);
    assert_eq!(fs::read_dir(&stage.root).unwrap().count(), 0);
}

#[test]
fn globs_that_explode_are_bounded() {
    let stage = Stage::new();
    stage.write(&"a".repeat(200), "a".repeat(1000));
    let started = Instant::now();
    for glob in [
        "{a,b}".repeat(40),
        "**/".repeat(3000),
        "*a".repeat(2000),
        "{".repeat(500),
        "[!a]".repeat(3000),
        format!("{{{}}}", vec!["a*b*c*d"; 2000].join(",")),
        "a*".repeat(90) + "b",
    ] {
        for arguments in [
            json!({"action": "list", "pattern": glob}),
            json!({"action": "search_text", "pattern": "a", "glob": glob}),
        ] {
            let result = stage.call("fs", arguments);
            let error = result.envelope.unwrap()["error"].clone();
            assert!(error.is_null() || error["code"] == "INVALID_ARGUMENTS", "{glob}: {error}");
            assert!(started.elapsed() < Duration::from_secs(20), "{glob}");
        }
    }
}

/// Another program makes, fills, empties, renames and removes files while they are looked at.
#[test]
fn files_that_change_underneath_are_whole_answers_or_typed_errors() {
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Also when a check fails: the other thread would go on for ever.
    struct StopAtEnd<'a>(&'a AtomicBool);

    impl Drop for StopAtEnd<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    let stage = Stage::new();
    let stop = AtomicBool::new(false);
    let root = &stage.root;
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        scope.spawn(|| {
            for turn in 0_usize.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let (file, other) = (root.join(format!("d{}/f", turn % 3)), root.join("moved"));
                let _ = fs::create_dir_all(file.parent().unwrap());
                let _ = fs::write(&file, "needle\n".repeat(turn % 5000));
                let _ = fs::rename(&file, &other);
                let _ = fs::write(&file, "");
                let _ = fs::remove_dir_all(file.parent().unwrap());
                let _ = symlink("moved", &file);
            }
        });
        let started = Instant::now();
        let rounds = hanzo_testkit::scale::rounds(1000);
        for _ in 0..rounds {
            for arguments in [
                json!({"action": "list", "depth": 5}),
                json!({"action": "search_text", "pattern": "needle", "limit": 5}),
                json!({"action": "read", "path": "moved"}),
                json!({"action": "stat", "path": "d0/f"}),
                json!({"action": "apply_patch", "path": "moved", "base_hash": "x", "old_text": "n", "new_text": "m"}),
                json!({"action": "rm", "path": "d2", "confirm": true}),
            ] {
                let envelope = stage.call("fs", arguments.clone()).envelope.unwrap();
                let code = envelope["error"]["code"].as_str().unwrap_or("fine").to_owned();
                let known = [
                    "fine",
                    "NOT_FOUND",
                    "CONFLICT",
                    "IO",
                    "ALREADY_EXISTS",
                    "INVALID_ARGUMENTS",
                    "AMBIGUOUS",
                ];
                assert!(known.contains(&code.as_str()), "{arguments}: {envelope}");
            }
        }
        assert!(started.elapsed() < Duration::from_mins(2), "{:?}", started.elapsed());
    });
}
