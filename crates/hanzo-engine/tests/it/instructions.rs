use std::path::Path;

use hanzo_engine::instructions::{Found, LARGEST_FILE, Nested, Scope, Search, find};

use crate::ground::Ground;

fn found(ground: &Ground, cwd: &str) -> Found {
    let workspace = ground.workspace();
    find(&Search { workspace: &workspace, cwd: Path::new(cwd), config: Some(&ground.config()) })
}

fn labels(found: &Found) -> Vec<&str> {
    found.files.iter().map(|file| file.label.as_str()).collect()
}

#[test]
fn files_come_from_the_general_to_the_closest() {
    let ground = Ground::new();
    ground.write(ground.config().join("AGENTS.md"), "mine");
    ground.write("AGENTS.md", "root");
    ground.write("a/b/AGENTS.md", "close");
    ground.write("other/AGENTS.md", "elsewhere");
    let found = found(&ground, "a/b/c");
    assert_eq!(labels(&found), ["your AGENTS.md", "AGENTS.md", "a/b/AGENTS.md"]);
    assert_eq!(found.files[0].scope, Scope::User);
    assert_eq!(found.files[2].scope, Scope::Directory("a/b".into()));
    assert_eq!(found.notices, []);
}

#[test]
fn other_agents_files_stand_in_where_a_directory_has_no_agents_md() {
    let ground = Ground::new();
    ground.write("AGENTS.md", "agents");
    ground.write("CLAUDE.md", "claude");
    ground.write("a/GEMINI.md", "gemini");
    ground.write("a/b/CLAUDE.md", "claude");
    ground.write("a/b/GEMINI.md", "gemini");
    assert_eq!(labels(&found(&ground, "a/b")), ["AGENTS.md", "a/GEMINI.md", "a/b/CLAUDE.md"]);
}

#[test]
fn byte_order_marks_line_ends_and_odd_bytes_do_no_harm() {
    let ground = Ground::new();
    ground.write("AGENTS.md", b"\xef\xbb\xbfone\r\ntwo \xff\n");
    assert_eq!(found(&ground, "").files[0].text, "one\ntwo \u{fffd}\n");
    ground.write("AGENTS.md", " \n");
    assert_eq!(labels(&found(&ground, "")), [""; 0]);
}

#[test]
fn a_long_file_is_cut_at_a_character_and_says_so() {
    let ground = Ground::new();
    ground.write("AGENTS.md", "é".repeat(LARGEST_FILE));
    let found = found(&ground, "");
    let text = &found.files[0].text;
    assert!(text.contains("was left out because it is too long") && !text.contains('\u{fffd}'));
    assert!(text.len() < LARGEST_FILE + 100);
    assert_eq!(found.notices.len(), 1);
    assert!(found.notices[0].text.contains("AGENTS.md"), "{:?}", found.notices);
}

#[test]
fn all_files_together_are_bounded() {
    let ground = Ground::new();
    for depth in 1..20 {
        ground.write(format!("{}AGENTS.md", "d/".repeat(depth)), "x".repeat(20_000));
    }
    let cwd = "d/".repeat(19);
    let sum: usize = found(&ground, &cwd).files.iter().map(|file| file.text.len()).sum();
    assert!((60_000..110_000).contains(&sum), "{sum}");
}

#[test]
fn a_link_out_of_the_workspace_is_refused_and_one_inside_is_followed() {
    let ground = Ground::new();
    ground.write(ground.outside().join("private.md"), "a secret");
    ground.write("CLAUDE.md", "inside");
    ground.link("AGENTS.md", "CLAUDE.md");
    assert_eq!(found(&ground, "").files[0].text, "inside");
    std::fs::remove_file(ground.root().join("AGENTS.md")).unwrap();
    ground.link("AGENTS.md", ground.outside().join("private.md"));
    let found = found(&ground, "");
    assert!(found.files.is_empty(), "and no other file takes its place: {found:?}");
    assert!(found.notices[0].text.contains("leads out of the workspace"), "{:?}", found.notices);
}

#[test]
fn what_cannot_be_read_is_a_notice() {
    let ground = Ground::new();
    std::fs::create_dir(ground.root().join("AGENTS.md")).unwrap();
    std::fs::create_dir(ground.config().join("AGENTS.md")).unwrap();
    ground.write("sub/x", "");
    ground.link("sub/AGENTS.md", "nowhere");
    let found = found(&ground, "sub");
    assert!(found.files.is_empty());
    assert_eq!(found.notices.len(), 3, "{:?}", found.notices);
}

#[test]
fn a_directory_outside_has_no_say() {
    let ground = Ground::new();
    ground.write(ground.outside().join("AGENTS.md"), "outside");
    ground.write("AGENTS.md", "root");
    assert_eq!(labels(&found(&ground, "../outside")), ["AGENTS.md"]);
}

#[test]
fn a_directory_entered_later_tells_its_instructions_once() {
    let ground = Ground::new();
    ground.write("AGENTS.md", "root");
    ground.write("a/AGENTS.md", "about a");
    ground.write("a/b/CLAUDE.md", "about b");
    ground.write("a/b/x.rs", "");
    let workspace = ground.workspace();
    let mut nested = Nested::new(Path::new(""));
    assert_eq!(nested.entered(&workspace, Path::new("x.rs")).fragment, None, "the root's are in the prompt");
    let text = nested.entered(&workspace, &ground.root().join("a/b/x.rs")).fragment.unwrap().text;
    let (outer, inner) = (text.find("## a/AGENTS.md\nabout a"), text.find("## a/b/CLAUDE.md\nabout b"));
    assert!(outer.unwrap() < inner.unwrap(), "{text}");
    assert_eq!(nested.entered(&workspace, Path::new("a/b/y.rs")).fragment, None);
    assert_eq!(nested.entered(&workspace, Path::new("../outside/x")).fragment, None);
}

#[test]
fn a_thread_opened_again_does_not_tell_twice() {
    let ground = Ground::new();
    ground.write("a/AGENTS.md", "about a");
    let mut nested = Nested::new(Path::new(""));
    nested.mark_told("a");
    assert_eq!(nested.entered(&ground.workspace(), Path::new("a/x.rs")).fragment, None);
}
