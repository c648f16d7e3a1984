//! `fs.apply_patch`: the three forms, base hashes, all or nothing, bytes preserved.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hanzo_protocol::ids::{ThreadId, TraceId};
use hanzo_protocol::tool::ToolContext;
use hanzo_sandbox::SandboxConfig;
use hanzo_tools::{Selection, toolset};
use serde_json::{Value, json};

use crate::support::{Stage, host};

fn edit(stage: &Stage, name: &str, old: &str, new: &str) -> Value {
    json!({
        "action": "apply_patch", "path": name, "base_hash": stage.hash(name),
        "edits": [{"old_text": old, "new_text": new}],
    })
}

#[test]
fn the_three_forms_do_the_same_and_return_hash_and_diff() {
    let unified = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    let begin = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** End Patch";
    for change in [
        json!({"patch": unified}),
        json!({"patch": begin}),
        json!({"path": "a.txt", "edits": [{"old_text": "two", "new_text": "2"}]}),
        json!({"path": "a.txt", "old_text": "two", "new_text": "2"}),
        json!({"path": "a.txt", "old_string": "two", "new_string": "2"}),
    ] {
        let stage = Stage::new();
        stage.write("a.txt", "one\ntwo\nthree\n");
        let mut arguments = change.clone();
        arguments["action"] = json!("apply_patch");
        arguments["base_hash"] = json!(stage.hash("a.txt"));
        let data = stage.ok(arguments);
        assert_eq!(stage.text("a.txt"), "one\n2\nthree\n", "{change}");
        assert_eq!(data["files"][0]["hash"].as_str().unwrap(), stage.hash("a.txt"));
        assert_eq!(data["diff"], unified, "the answer's diff is the change itself");
    }
}

#[test]
fn an_existing_file_is_not_touched_without_its_hash_and_a_stale_one_is_explained() {
    let stage = Stage::new();
    let path = stage.write("a.txt", "one\n");
    let old = stage.hash("a.txt");
    let without = json!({"action": "apply_patch", "path": "a.txt", "old_text": "one", "new_text": "1"});
    assert_eq!(stage.err(without.clone())["code"], "CONFLICT");
    fs::write(&path, "one\nmore\n").unwrap();
    let mut stale = without;
    stale["base_hash"] = json!(old);
    let error = stage.err(stale.clone());
    assert_eq!((&error["code"], &error["details"]["expected"]), (&json!("CONFLICT"), &json!(old)));
    assert_eq!(error["details"]["actual"].as_str().unwrap(), stage.hash("a.txt"));
    assert!(error["details"]["diff"].as_str().unwrap().contains("+more"), "{error}");
    assert_eq!(stage.text("a.txt"), "one\nmore\n");
    stale["base_hash"] = json!("abc123");
    assert_eq!(stage.err(stale)["code"], "CONFLICT", "whatever is not the hash is a conflict");
}

/// Large files take other ways: they are hashed, compared and their difference found while they are written.
#[test]
fn a_large_file_is_edited_as_a_small_one_is() {
    let stage = Stage::new();
    let body = "a line of a large file\n".repeat(200_000);
    let (before, after) = (format!("{body}old\n{body}"), format!("{body}new\n{body}"));
    let path = stage.write("a.txt", &before);
    let data = stage.ok(edit(&stage, "a.txt", "old", "new"));
    assert!(stage.text("a.txt") == after);
    assert_eq!(data["files"][0]["hash"].as_str().unwrap(), stage.hash("a.txt"));
    let context = " a line of a large file\n".repeat(3);
    let hunk = format!("@@ -199998,7 +199998,7 @@\n{context}-old\n+new\n{context}");
    assert_eq!(data["diff"], format!("--- a/a.txt\n+++ b/a.txt\n{hunk}"));

    let stale = json!(data["files"][0]["old_hash"]);
    for (old, new) in [("new", "newer"), ("not there", "x")] {
        let error = stage.err(json!({
            "action": "apply_patch", "path": "a.txt", "base_hash": stale, "edits": [{"old_text": old, "new_text": new}],
        }));
        assert_eq!((&error["code"], &error["details"]["expected"]), (&json!("CONFLICT"), &stale), "{old}");
    }
    assert!(fs::read(&path).unwrap() == after.as_bytes(), "a stale hash is seen before anything is replaced");

    // Several edits, one of which is about what another has made, and bytes that are not the text.
    for mark in ["", "\u{feff}"] {
        stage.write("a.txt", format!("{mark}{body}one\nold\n{body}"));
        let data = stage.ok(json!({
            "action": "apply_patch", "path": "a.txt", "base_hash": stage.hash("a.txt"), "edits": [
                {"old_text": "old", "new_text": "new"},
                {"old_text": "one", "new_text": "1"},
                {"old_text": "new\n", "new_text": "newer\nby a line\n"},
            ],
        }));
        let after = format!("{mark}{body}1\nnewer\nby a line\n{body}");
        assert!(fs::read(&path).unwrap() == after.as_bytes(), "{mark:?}");
        assert_eq!(data["files"][0]["hash"].as_str().unwrap(), stage.hash("a.txt"));
        let diff = data["diff"].as_str().unwrap();
        assert!(diff.contains("-one\n-old\n+1\n+newer\n+by a line\n"), "{diff}");
    }
    assert_no_leftovers(&stage);
}

#[test]
fn context_is_found_at_an_offset_and_never_guessed() {
    let stage = Stage::new();
    let body: String = (0..30).map(|n| format!("line {n}\n")).collect();
    stage.write("a.txt", format!("extra\nextra\n{body}"));
    let patch = "@@ -10,3 +10,3 @@\n line 9\n-line 10\n+LINE 10\n line 11\n";
    let hash = stage.hash("a.txt");
    stage.ok(json!({"action": "apply_patch", "path": "a.txt", "patch": patch, "base_hash": hash}));
    assert!(stage.text("a.txt").contains("line 9\nLINE 10\nline 11\n"));

    stage.write("twice.txt", "x\nsame\ny\nx\nsame\ny\n");
    let ambiguous = "@@ -3,3 +3,3 @@\n x\n-same\n+other\n y\n";
    let error = stage.err(json!({
        "action": "apply_patch", "path": "twice.txt", "patch": ambiguous, "base_hash": stage.hash("twice.txt"),
    }));
    assert_eq!(error["code"], "AMBIGUOUS");
    assert_eq!(error["details"]["candidates"], json!(["line 0", "line 3"]));
    let stated = "@@ -4,3 +4,3 @@\n x\n-same\n+other\n y\n";
    stage.ok(json!({
        "action": "apply_patch", "path": "twice.txt", "patch": stated, "base_hash": stage.hash("twice.txt"),
    }));
    assert_eq!(stage.text("twice.txt"), "x\nsame\ny\nx\nother\ny\n", "the line says which is meant");

    let error = stage.err(edit(&stage, "twice.txt", "x", "z"));
    assert_eq!(
        (&error["code"], &error["details"]["candidates"]),
        (&json!("AMBIGUOUS"), &json!(["line 0", "line 3"]))
    );
    let missing = "@@ -1,2 +1,2 @@\n x\n-nope\n+other\n";
    let error = stage.err(json!({
        "action": "apply_patch", "path": "twice.txt", "patch": missing, "base_hash": stage.hash("twice.txt"),
    }));
    assert_eq!(error["code"], "NOT_FOUND");
    assert!(error["message"].as_str().unwrap().contains("`same` and not `nope`"), "{error}");
}

#[test]
fn several_files_change_all_or_none() {
    let stage = Stage::new();
    stage.write("a.txt", "a\n");
    stage.write("b.txt", "b\n");
    stage.write("c.txt", "c\n");
    let patch = |b: &str| {
        format!(
            "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+A\n*** Update File: b.txt\n*** Move to: sub/b2.txt\n@@\n-{b}\n+B\n\
             *** Delete File: c.txt\n*** Add File: new/d.txt\n+d\n*** End Patch\n"
        )
    };
    let hashes =
        json!({"a.txt": stage.hash("a.txt"), "b.txt": stage.hash("b.txt"), "c.txt": stage.hash("c.txt")});
    let call = |b: &str| json!({"action": "apply_patch", "patch": patch(b), "base_hashes": hashes});
    assert_eq!(stage.err(call("wrong"))["code"], "NOT_FOUND");
    assert_eq!((stage.text("a.txt").as_str(), stage.root.join("new").exists()), ("a\n", false));
    let data = stage.ok(call("b"));
    assert_eq!(data["files"].as_array().unwrap().len(), 4);
    assert_eq!(
        (stage.text("a.txt"), stage.text("sub/b2.txt"), stage.text("new/d.txt")),
        ("A\n".into(), "B\n".into(), "d\n".into())
    );
    assert!(!stage.root.join("b.txt").exists() && !stage.root.join("c.txt").exists());
    assert_no_leftovers(&stage);
}

fn assert_no_leftovers(stage: &Stage) {
    for directory in [&stage.root, &stage.data] {
        let mut rest = vec![directory.clone()];
        while let Some(directory) = rest.pop() {
            for entry in fs::read_dir(directory).unwrap().flatten() {
                let name = entry.file_name().into_string().unwrap();
                assert!(!name.starts_with(".hanzo-tmp-"), "{name}");
                assert!(!name.contains(".json"), "a journal is left: {name}");
                if entry.file_type().unwrap().is_dir() {
                    rest.push(entry.path());
                }
            }
        }
    }
}

#[test]
fn a_failure_in_the_middle_puts_everything_back() {
    let stage = Stage::new();
    stage.write("a.txt", "a\n");
    fs::create_dir(stage.root.join(".hanzo")).unwrap();
    stage.write(".hanzo/settings.toml", "x\n");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+A\n*** Update File: .hanzo/settings.toml\n@@\n-x\n+y\n*** End Patch";
    let hashes =
        json!({"a.txt": stage.hash("a.txt"), ".hanzo/settings.toml": stage.hash(".hanzo/settings.toml")});
    let error = stage.err(json!({"action": "apply_patch", "patch": patch, "base_hashes": hashes}));
    assert_eq!(error["code"], "SANDBOX_DENIED", "{error}");
    assert_eq!((stage.text("a.txt"), stage.text(".hanzo/settings.toml")), ("a\n".into(), "x\n".into()));
    assert_no_leftovers(&stage);
}

#[test]
fn line_ends_marks_encodings_and_modes_stay_as_they_are() {
    let stage = Stage::new();
    let check = |name: &str, before: &[u8], old: &str, new: &str, after: &[u8]| {
        let path = stage.write(name, before);
        let mut arguments = edit(&stage, name, old, new);
        if name.starts_with("latin") {
            arguments["encoding"] = json!("windows-1252");
        }
        stage.ok(arguments);
        assert_eq!(fs::read(path).unwrap(), after, "{name}");
    };
    let utf16 = |text: &str| -> Vec<u8> {
        [0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect()
    };
    check("crlf", b"a\r\nb\r\nc\r\n", "a\nb", "a\nx\ny", b"a\r\nx\r\ny\r\nc\r\n");
    check("mixed", b"a\r\nb\nc\r\n", "b\n", "x\n", b"a\r\nx\nc\r\n");
    check("bom", b"\xef\xbb\xbfa\nb\n", "b", "c", b"\xef\xbb\xbfa\nc\n");
    check("no-newline", b"a\nb", "b", "c", b"a\nc");
    check("utf16", &utf16("größe\r\nx\r\n"), "x", "y", &utf16("größe\r\ny\r\n"));
    check("latin1", b"gr\xf6\xdfe\n", "größe", "Öl", b"\xd6l\n");

    let hunks = |name: &str, before: &[u8], patch: &str, after: &[u8]| {
        let path = stage.write(name, before);
        let hash = stage.hash(name);
        stage.ok(json!({"action": "apply_patch", "path": name, "patch": patch, "base_hash": hash}));
        assert_eq!(fs::read(path).unwrap(), after, "{name}: {patch}");
    };
    hunks("crlf2", b"a\r\nb\r\nc\r\n", "@@ -1,3 +1,4 @@\n a\n-b\n+x\n+y\n c\n", b"a\r\nx\r\ny\r\nc\r\n");
    hunks("open", b"a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n", b"a\nb\nc");
    hunks("open2", b"a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n", b"a\nc\n");

    let path = stage.write("run.sh", "#!/bin/sh\necho 1\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("run.sh", stage.root.join("link.sh")).unwrap();
    stage.ok(edit(&stage, "link.sh", "1", "2"));
    assert_eq!(stage.text("run.sh"), "#!/bin/sh\necho 2\n");
    assert!(stage.root.join("link.sh").symlink_metadata().unwrap().is_symlink(), "the link stays a link");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    let error = stage.err({
        stage.write("latin2", b"\xf6\n");
        let mut arguments = edit(&stage, "latin2", "ö", "日");
        arguments["encoding"] = json!("windows-1252");
        arguments
    });
    assert_eq!(error["code"], "INVALID_ARGUMENTS", "what the encoding cannot write is refused");
}

#[test]
fn of_two_writers_with_one_hash_exactly_one_wins() {
    let stage = Stage::new();
    let path = stage.write("a.txt", "0\n");
    let rounds = hanzo_testkit::scale::rounds(1000);
    let hosts = [(); 2].map(|()| host(&stage.root, &stage.data, &SandboxConfig::default()));
    for round in 0..rounds {
        let hash = stage.hash("a.txt");
        let won = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for (writer, host) in hosts.iter().enumerate() {
                let (hash, won) = (hash.clone(), Arc::clone(&won));
                scope.spawn(move || {
                    let tools = toolset(host, &Selection::default());
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    let patch = format!("@@ -1 +1 @@\n-{round}\n+{}\n", round + 1);
                    let arguments =
                        json!({"action": "apply_patch", "path": "a.txt", "patch": patch, "base_hash": hash});
                    let context = ToolContext::new(ThreadId::new(), TraceId::new());
                    let result = runtime.block_on(tools.get("fs").unwrap().execute(&context, arguments));
                    let _ = writer;
                    if result.is_error {
                        assert!(result.output.contains("CONFLICT"), "{}", result.output);
                    } else {
                        won.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(won.load(Ordering::Relaxed), 1, "round {round}");
    }
    assert_eq!(fs::read_to_string(path).unwrap(), format!("{rounds}\n"));
}

#[test]
fn beside_a_foreign_writer_an_edit_works_or_is_a_conflict_and_leaves_nothing_behind() {
    use std::sync::atomic::AtomicBool;

    let stage = Stage::new();
    let path = stage.write("a.txt", "ours 0\n");
    let stop = Arc::new(AtomicBool::new(false));
    // Replaces the file by renaming, as editors do, with content nobody else writes.
    let foreign = std::thread::spawn({
        let (stop, path) = (Arc::clone(&stop), path.clone());
        move || {
            let mut written = 0_usize;
            while !stop.load(Ordering::Relaxed) {
                written += 1;
                let temporary = path.with_extension("foreign");
                fs::write(&temporary, format!("foreign {written}\n")).unwrap();
                fs::rename(&temporary, &path).unwrap();
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
            written
        }
    });
    let (mut edits, mut conflicts) = (0, 0);
    for round in 0..hanzo_testkit::scale::rounds(2000) {
        let before = stage.ok(json!({"action": "read", "path": "a.txt"}));
        let text = before["text"].as_str().unwrap().trim_end();
        let arguments = json!({
            "action": "apply_patch", "path": "a.txt", "base_hash": before["hash"],
            "edits": [{"old_text": text, "new_text": format!("edited {round}")}],
        });
        let result = stage.call("fs", arguments);
        if result.is_error {
            assert!(result.output.contains("CONFLICT"), "{}", result.output);
            conflicts += 1;
        } else {
            edits += 1;
        }
    }
    stop.store(true, Ordering::Relaxed);
    assert!(foreign.join().unwrap() > 0);
    assert!(edits + conflicts > 0);
    assert_no_leftovers(&stage);
}

#[test]
fn hostile_paths_and_malformed_patches_change_nothing() {
    let stage = Stage::new();
    stage.write("a.txt", "a\n");
    let add = |path: &str| format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch");
    for path in [
        "../outside/x",
        "/etc/hanzo-test",
        "a.txt/x",
        ".git/config",
        ".git/hooks/pre-commit",
        "a/../../outside/y",
    ] {
        let result = stage.call("fs", json!({"action": "apply_patch", "patch": add(path)}));
        assert!(result.is_error, "{path}: {}", result.output);
    }
    for patch in [
        "",
        "nothing",
        "*** Begin Patch\n",
        "*** Begin Patch\n*** End Patch",
        "*** Begin Patch\n*** Update File: a.txt\nfoo\n*** End Patch",
        "--- a/a.txt\n+++ b/a.txt\n",
        "--- a/a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
        "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n",
        "@@ -1 +1 @@\n-a\n+a\n",
    ] {
        let result = stage.call(
            "fs",
            json!({
                "action": "apply_patch", "path": "a.txt", "patch": patch, "base_hash": stage.hash("a.txt"),
            }),
        );
        assert!(result.is_error, "{patch}: {}", result.output);
    }
    assert_eq!(stage.text("a.txt"), "a\n");
    assert!(fs::read_dir(&stage.outside).unwrap().next().is_none());
    assert_no_leftovers(&stage);
}
