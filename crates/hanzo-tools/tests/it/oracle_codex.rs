//! The `*** Begin Patch` grammar against the program it comes from, and searches against `rg`. Neither is part of a machine that
//! builds this, so these run when a variable names the program: `HANZO_ORACLE_APPLY_PATCH` (codex, called by that name) and
//! `HANZO_ORACLE_RG`. `cargo xtask interop` sets both.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};

use hanzo_testkit::not_run;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use crate::support::Stage;

/// The program a variable names; without it the test says that it did not run.
fn oracle(variable: &str) -> Option<String> {
    let program = std::env::var(variable).ok();
    if program.is_none() {
        not_run(&format!("the program {variable} names (`cargo xtask interop`)"));
    }
    program
}

fn lines() -> impl Strategy<Value = Vec<&'static str>> {
    let line = prop_oneof![Just("a"), Just("b"), Just("}"), Just("fn f() {"), Just("  x"), Just("long line")];
    proptest::collection::vec(line, 1..20)
}

/// A patch that changes some lines of a file, with `context` lines around each change.
fn patch(old: &[&str], changes: &[(prop::sample::Index, u8)], context: usize) -> String {
    let mut text = String::from("*** Begin Patch\n*** Update File: f\n");
    let mut places: Vec<(usize, u8)> =
        changes.iter().map(|(at, what)| (at.index(old.len()), *what)).collect();
    places.sort_unstable();
    let mut next = 0;
    for (at, what) in places {
        if at < next {
            continue;
        }
        text.push_str("@@\n");
        for line in &old[at.saturating_sub(context).max(next)..at] {
            writeln!(text, " {line}").unwrap();
        }
        match what % 3 {
            0 => writeln!(text, "-{}\n+changed", old[at]).unwrap(),
            1 => writeln!(text, "-{}", old[at]).unwrap(),
            _ => writeln!(text, " {}\n+new", old[at]).unwrap(),
        }
        let end = (at + 1 + context).min(old.len());
        for line in &old[at + 1..end] {
            writeln!(text, " {line}").unwrap();
        }
        next = end;
    }
    text.push_str("*** End Patch\n");
    text
}

#[test]
fn begin_patch_does_what_codex_does_or_refuses() {
    let Some(program) = oracle("HANZO_ORACLE_APPLY_PATCH") else { return };
    let (same, refused) = (Cell::new(0_u32), Cell::new(0_u32));
    let strategy =
        (lines(), proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), 0_usize..3);
    let mut runner =
        TestRunner::new(Config { cases: hanzo_testkit::scale::rounds(4000), ..Config::default() });
    runner
        .run(&strategy, |(old, changes, context)| {
            let patch = patch(&old, &changes, context);
            let text = format!("{}\n", old.join("\n"));
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("f"), &text).unwrap();
            let status = Command::new(&program)
                .arg(&patch)
                .current_dir(dir.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            let theirs = status.success().then(|| fs::read_to_string(dir.path().join("f")).unwrap());
            let stage = Stage::new();
            stage.write("f", &text);
            let hash = stage.hash("f");
            let result =
                stage.call("fs", json!({"action": "apply_patch", "patch": patch, "base_hash": hash}));
            if result.is_error {
                refused.set(refused.get() + 1);
                prop_assert_eq!(stage.text("f"), text);
            } else {
                same.set(same.get() + 1);
                prop_assert_eq!(Some(stage.text("f")), theirs, "{}", patch);
            }
            Ok(())
        })
        .unwrap();
    let (same, refused) = (same.get(), refused.get());
    eprintln!("{same} patches gave what codex gives, {refused} were refused");
    assert!(same > refused / 4, "hardly anything was compared: {same} of {}", same + refused);
}

/// One heading of a patch over several files.
#[derive(Debug, Clone)]
enum Heading {
    Add(u8, Vec<&'static str>),
    Delete(u8),
    Update(u8, Option<u8>, &'static str),
}

fn headings() -> impl Strategy<Value = Vec<Heading>> {
    let file = 0_u8..6;
    let word = prop_oneof![Just("alpha"), Just("beta"), Just("gone")];
    let heading = prop_oneof![
        (file.clone(), proptest::collection::vec(Just("new"), 1..3))
            .prop_map(|(at, lines)| Heading::Add(at, lines)),
        file.clone().prop_map(Heading::Delete),
        (file.clone(), proptest::option::of(file), word)
            .prop_map(|(at, to, word)| Heading::Update(at, to, word)),
    ];
    // Half of them fit the files there are, so that more is compared than who refuses what.
    prop_oneof![proptest::collection::vec(heading, 1..5), fitting()]
}

/// Headings that each are about another file and find what they want there.
fn fitting() -> impl Strategy<Value = Vec<Heading>> {
    let there = |at: u8, word: &'static str, new: u8| {
        prop_oneof![
            Just(None),
            Just(Some(Heading::Delete(at))),
            Just(Some(Heading::Update(at, None, word))),
            Just(Some(Heading::Update(at, Some(new), word))),
        ]
    };
    let fresh = (3_u8..6, 1_usize..3).prop_map(|(at, lines)| Heading::Add(at, vec!["new"; lines]));
    (there(0, "beta", 3), there(1, "beta", 4), there(2, "alpha", 5), proptest::option::of(fresh))
        .prop_filter_map("a patch has a heading", |(a, b, c, fresh)| {
            let headings: Vec<Heading> = [a, b, c, fresh].into_iter().flatten().collect();
            (!headings.is_empty()).then_some(headings)
        })
}

fn several(headings: &[Heading]) -> String {
    let name = |file: u8| ["a", "b", "dir/c", "new/d", "e", "x/y/f"][usize::from(file)];
    let mut text = String::from("*** Begin Patch\n");
    for heading in headings {
        match heading {
            Heading::Add(at, lines) => {
                writeln!(text, "*** Add File: {}", name(*at)).unwrap();
                for line in lines {
                    writeln!(text, "+{line}").unwrap();
                }
            }
            Heading::Delete(at) => writeln!(text, "*** Delete File: {}", name(*at)).unwrap(),
            Heading::Update(at, to, word) => {
                writeln!(text, "*** Update File: {}", name(*at)).unwrap();
                if let Some(to) = to {
                    writeln!(text, "*** Move to: {}", name(*to)).unwrap();
                }
                writeln!(text, "@@\n-{word}\n+changed").unwrap();
            }
        }
    }
    text + "*** End Patch\n"
}

/// Every file beneath a directory with its content.
fn tree(root: &std::path::Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut rest = vec![root.to_owned()];
    while let Some(directory) = rest.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                rest.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(root).unwrap().display().to_string();
                files.push((name, fs::read_to_string(entry.path()).unwrap()));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn adding_deleting_and_moving_does_what_codex_does_or_changes_nothing() {
    let Some(program) = oracle("HANZO_ORACLE_APPLY_PATCH") else { return };
    let start = [("a", "alpha\nbeta\n"), ("b", "beta\n"), ("dir/c", "alpha\n")];
    let (same, refused) = (Cell::new(0_u32), Cell::new(0_u32));
    let mut runner =
        TestRunner::new(Config { cases: hanzo_testkit::scale::rounds(4000), ..Config::default() });
    let run = runner.run(&headings(), |headings| {
        let patch = several(&headings);
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("dir")).unwrap();
        let stage = Stage::new();
        let mut hashes = serde_json::Map::new();
        for (name, text) in start {
            fs::write(dir.path().join(name), text).unwrap();
            stage.write(name, text);
            hashes.insert(name.into(), json!(stage.hash(name)));
        }
        let status = Command::new(&program)
            .arg(&patch)
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let before = tree(&stage.root);
        let result =
            stage.call("fs", json!({"action": "apply_patch", "patch": patch, "base_hashes": hashes}));
        if result.is_error {
            refused.set(refused.get() + 1);
            prop_assert_eq!(tree(&stage.root), before, "{}", patch);
        } else {
            same.set(same.get() + 1);
            prop_assert!(status.success(), "codex refuses:\n{}", patch);
            prop_assert_eq!(tree(&stage.root), tree(dir.path()), "{}", patch);
        }
        Ok(())
    });
    run.unwrap();
    let (same, refused) = (same.get(), refused.get());
    eprintln!("{same} patches over several files gave what codex gives, {refused} were refused");
    assert!(same > refused / 4, "hardly anything was compared: {same} of {}", same + refused);
}

#[test]
fn searches_find_what_ripgrep_finds() {
    let Some(program) = oracle("HANZO_ORACLE_RG") else { return };
    let stage = Stage::new();
    let word = |n: usize| {
        ["needle", "Needle", "pin", "hay needle hay", "", "fn needle() {", "ünïcode needle"][n % 7]
    };
    for file in 0..120 {
        let text: String = (0..file % 13).map(|line| format!("{}\n", word(file * 7 + line * 3))).collect();
        let directory = ["", "src/", "src/deep/", "target/", ".hidden/", "docs.d/"][file % 6];
        let extension = ["rs", "txt", "md", "py"][file % 4];
        stage.write(&format!("{directory}f{file}.{extension}"), text);
    }
    fs::create_dir(stage.root.join(".git")).unwrap();
    stage.write(".gitignore", "/target\n*.md\n!keep.md\n");
    stage.write("src/.gitignore", "f1*.rs\n");
    stage.write("src/deep/.ignore", "*.py\n");
    stage.write("keep.md", "needle\n");
    for (arguments, flags) in [
        (json!({"pattern": "needle"}), vec![]),
        (json!({"pattern": "needle", "ignore_case": true}), vec!["-i"]),
        (json!({"pattern": "n[e]+dle\\b"}), vec![]),
        (json!({"pattern": "needle() {", "fixed": true}), vec!["-F"]),
        (json!({"pattern": "needle", "glob": "*.txt"}), vec!["-g", "*.txt"]),
        (json!({"pattern": "needle", "glob": "!*.txt"}), vec!["-g", "!*.txt"]),
        (json!({"pattern": "needle", "type": "rust"}), vec!["-t", "rust"]),
        (json!({"pattern": "needle", "word": true}), vec!["-w"]),
        (json!({"pattern": "needle", "all": true}), vec!["--no-ignore", "--hidden", "-g", "!.git"]),
        (json!({"pattern": "needle", "path": "src"}), vec!["src"]),
    ] {
        let pattern = arguments["pattern"].as_str().unwrap().to_owned();
        let (paths, options): (Vec<&str>, Vec<&str>) = flags.iter().partition(|flag| **flag == "src");
        let output = Command::new(&program)
            .args(["--no-config", "-n", "--no-heading", "--color=never", "--sort", "path"])
            .args(&options)
            .args(["-e", &pattern])
            .args(if paths.is_empty() { vec!["."] } else { paths })
            .current_dir(&stage.root)
            .output()
            .unwrap();
        let mut theirs: Vec<String> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| line.strip_prefix("./").unwrap_or(line).to_owned())
            .collect();
        let mut call = arguments.clone();
        call["action"] = json!("search_text");
        call["limit"] = json!(100_000);
        let data = stage.ok(call);
        let prefix = format!("file://{}/", stage.root.display());
        let mut ours: Vec<String> = data["matches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| {
                let line = found["range"]["start"]["line"].as_u64().unwrap() + 1;
                let name = found["uri"].as_str().unwrap().replace(&prefix, "");
                format!("{name}:{line}:{}", found["text"].as_str().unwrap())
            })
            .collect();
        assert!(!theirs.is_empty(), "{flags:?}");
        // Both go by path; ripgrep compares components, we compare bytes.
        theirs.sort();
        ours.sort();
        assert_eq!(ours, theirs, "{flags:?}");
    }
}
