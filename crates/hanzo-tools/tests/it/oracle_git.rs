//! Unified diffs against `git apply` and GNU `patch`: on random files and random edits, where both apply a patch the results are
//! the same, and where ours is an error nothing changed.
//!
//! What git refuses and we accept, always with every old line there exactly, and at the stated line or in one place only:
//! - a hunk without context before or after its changes that is not at the file's start or end: git takes the missing context
//!   for an anchor, we take a place that is the only one;
//! - line ends: a patch without carriage returns on a file with them, and a last line that has or has not its break. The
//!   file keeps its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use hanzo_testkit::not_run;
use proptest::prelude::*;
use serde_json::json;

use crate::support::Stage;

/// Lines from a small alphabet, so that context repeats.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("a"),
        Just("b"),
        Just("}"),
        Just(""),
        Just("  x"),
        Just("long line of text"),
        Just("ü")
    ];
    (proptest::collection::vec(line, 0..25), any::<bool>(), any::<bool>()).prop_map(|(lines, ended, crlf)| {
        let end = if crlf { "\r\n" } else { "\n" };
        let mut text = lines.join(end);
        if ended && !text.is_empty() {
            text.push_str(end);
        }
        text
    })
}

/// Another text, made from the first by a few changes of lines.
fn edited(text: &str, edits: &[(prop::sample::Index, u8)]) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    for (at, what) in edits {
        let at = at.index(lines.len() + 1);
        match what % 3 {
            0 => lines.insert(at, "new\n".into()),
            1 if at < lines.len() => drop(lines.remove(at)),
            _ if at < lines.len() => lines[at] = "changed\n".into(),
            _ => lines.push("end".into()),
        }
    }
    lines.concat()
}

fn git(directory: &Path, arguments: &[&str]) -> (bool, Vec<u8>) {
    let output = Command::new("git")
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status.success(), output.stdout)
}

/// The diff git makes between two texts, as for a file called `f`.
fn diff(old: &str, new: &str, context: usize) -> String {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("a")).unwrap();
    fs::create_dir(dir.path().join("b")).unwrap();
    fs::write(dir.path().join("a/f"), old).unwrap();
    fs::write(dir.path().join("b/f"), new).unwrap();
    let unified = format!("-U{context}");
    let (_, text) =
        git(dir.path(), &["diff", "--no-index", "--no-prefix", "--no-color", &unified, "a/f", "b/f"]);
    String::from_utf8(text).unwrap()
}

/// What `git apply` makes of `base`; `None` when it refuses.
fn by_git(base: &str, patch: &str) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f"), base).unwrap();
    fs::write(dir.path().join("p"), patch).unwrap();
    let (applied, _) = git(dir.path(), &["apply", "--whitespace=nowarn", "p"]);
    applied.then(|| fs::read_to_string(dir.path().join("f")).unwrap_or_default())
}

/// What we make of it.
fn by_us(base: &str, patch: &str) -> Result<String, String> {
    let stage = Stage::new();
    stage.write("f", base);
    let hash = stage.hash("f");
    let result =
        stage.call("fs", json!({"action": "apply_patch", "path": "f", "patch": patch, "base_hash": hash}));
    let after = stage.text("f");
    if result.is_error {
        assert_eq!(after, base, "an error leaves the file alone");
        return Err(result.output);
    }
    Ok(after)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: hanzo_testkit::scale::rounds(2000), ..ProptestConfig::default() })]

    #[test]
    fn a_diff_of_git_applies_to_the_file_it_was_made_for(
        old in text(), edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let new = edited(&old, &edits);
        prop_assume!(old != new && !old.is_empty() && !new.is_empty());
        let patch = diff(&old, &new, 3);
        prop_assert_eq!(by_us(&old, &patch), Ok(new), "{}", patch);
    }

    #[test]
    fn on_another_file_we_do_what_git_does_or_refuse(
        old in text(), context in 1_usize..4,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        drift in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
    ) {
        let new = edited(&old, &edits);
        let base = edited(&old, &drift);
        prop_assume!(old != new && !old.is_empty() && !new.is_empty() && !base.is_empty());
        let patch = diff(&old, &new, context);
        let Ok(ours) = by_us(&base, &patch) else { return Ok(()) };
        match by_git(&base, &patch) {
            Some(theirs) => prop_assert_eq!(&ours, &theirs, "{}", patch),
            None => prop_assert!(is_no_guess(&base, &patch), "git refuses this on {:?}:\n{}", base, patch),
        }
        if let Some(theirs) = by_patch(&base, &patch) {
            prop_assert_eq!(ours, theirs, "GNU patch differs: {}", patch);
        }
    }
}

/// What GNU `patch` makes of `base` without fuzz; `None` when it refuses or is not there.
fn by_patch(base: &str, patch: &str) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f"), base).unwrap();
    fs::write(dir.path().join("p"), patch).unwrap();
    let arguments = ["--binary", "--fuzz=0", "--force", "--silent", "--no-backup-if-mismatch", "f", "p"];
    let output = Command::new("patch").args(arguments).current_dir(dir.path()).stdin(Stdio::null()).output();
    output.ok()?.status.success().then(|| fs::read_to_string(dir.path().join("f")).unwrap_or_default())
}

/// Whether every hunk's old lines are at the line it states, counting what hunks before it added, or in one place only. What ends
/// the file without a newline is another line than one that goes on, unless nothing fits then.
fn is_no_guess(base: &str, patch: &str) -> bool {
    let base: Vec<&str> = base.split_inclusive('\n').collect();
    let mut hunks: Vec<(usize, Vec<String>)> = Vec::new();
    for line in patch.split('\n') {
        let old = line.strip_prefix(' ').or_else(|| line.strip_prefix('-'));
        if let Some(rest) = line.strip_prefix("@@ -") {
            let number = rest.split([',', ' ']).next().unwrap().parse::<usize>().unwrap();
            hunks.push((number.saturating_sub(1), Vec::new()));
        } else if let (Some(hunk), Some(old)) = (hunks.last_mut(), old) {
            hunk.1.push(format!("{old}\n"));
        } else if let (Some(hunk), true) = (hunks.last_mut(), line.starts_with('\\'))
            && let Some(last) = hunk.1.last_mut()
        {
            last.truncate(last.trim_end_matches('\n').len());
        }
    }
    let plain = |line: &str| line.trim_end_matches(['\r', '\n']).to_owned();
    hunks.iter().all(|(stated, old)| {
        let places = |same: &dyn Fn(&str, &str) -> bool| -> Vec<usize> {
            let windows = base.windows(old.len().max(1)).enumerate();
            let fits = |lines: &[&str]| lines.iter().zip(old).all(|(line, old)| same(line, old));
            windows.filter(|(_, lines)| fits(lines)).map(|(at, _)| at).collect()
        };
        let exact = places(&|line, old| line == old);
        let loose = places(&|line, old| plain(line) == plain(old));
        old.is_empty() || exact.len() == 1 || loose.len() == 1 || loose.contains(stated)
    })
}

#[test]
fn a_line_that_ends_the_file_is_another_than_one_that_goes_on() {
    let old = "\nlong line of text\na\na\n\nlong line of text";
    let patch = diff(old, "long line of text\na\na\nlong line of text", 1);
    let moved = by_us(&format!("new\n{old}"), &patch);
    assert_eq!(moved.as_deref(), Ok("new\nlong line of text\na\na\nlong line of text"), "{patch}");
}

/// The second hunk's lines are where the first one's are, and once more; that the first place is taken says nothing about the second.
#[test]
fn a_place_is_not_the_right_one_because_the_other_is_taken() {
    let old = "a\na\n\nü\na\na\nb\na\nb\na\nb\nb\n\nü\n\nü\n";
    let new = "a\n\nü\na\na\nb\na\nb\na\nb\nb\n\nü\n\nü\nnew\n";
    let base = "a\na\n\nü\na\na\nb\na\nb\na\nb\nb\n\nü\nü\n";
    let patch = diff(old, new, 2);
    assert_eq!(by_git(base, &patch), None, "{patch}");
    let refused = by_us(base, &patch).unwrap_err();
    assert!(refused.contains("are there 2 times"), "{refused}");
    // Nothing but the taken place is left.
    let refused = by_us("a\na\n\nü\nb\n", &patch).unwrap_err();
    assert!(refused.contains("which an earlier hunk changes"), "{refused}");
}

#[test]
fn gnu_patch_takes_our_diffs() {
    let (old, new) = ("one\ntwo\nthree", "1\ntwo\n3\nfour");
    let stage = Stage::new();
    stage.write("f", old);
    let edits = json!([{"old_text": "three", "new_text": "3\nfour"}, {"old_text": "one", "new_text": "1"}]);
    let hash = stage.hash("f");
    let data = stage.ok(json!({"action": "apply_patch", "path": "f", "edits": edits, "base_hash": hash}));
    if Command::new("patch").arg("--version").output().is_err() {
        return not_run("GNU `patch`");
    }
    assert_eq!(by_patch(old, data["diff"].as_str().unwrap()).as_deref(), Some(new));
}

#[test]
fn our_own_diffs_are_taken_by_git_and_back() {
    let stage = Stage::new();
    stage.write("f", "one\ntwo\nthree");
    let hash = stage.hash("f");
    let edits = json!([{"old_text": "three", "new_text": "3\nfour"}, {"old_text": "one", "new_text": "1"}]);
    let data = stage.ok(json!({"action": "apply_patch", "path": "f", "edits": edits, "base_hash": hash}));
    let patch = data["diff"].as_str().unwrap();
    assert_eq!(by_git("one\ntwo\nthree", patch).as_deref(), Some("1\ntwo\n3\nfour"));
    assert_eq!(by_us("one\ntwo\nthree", patch).as_deref(), Ok("1\ntwo\n3\nfour"));
}
