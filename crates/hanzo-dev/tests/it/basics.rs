use std::process::Stdio;

use crate::support::World;

#[test]
fn the_version_is_the_one_git_describes() {
    let printed = World::new().run(&["--version"]).ok();
    let version = printed.trim().strip_prefix("hanzo-dev ").expect("the name comes first");
    assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{version}");
}

#[test]
fn no_arguments_show_the_help_and_are_a_usage_error() {
    let ran = World::new().run(&[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("Usage: hanzo-dev"), "{}", ran.stderr);
}

#[test]
fn help_names_every_command_on_stdout() {
    let help = World::new().run(&["--help"]).ok();
    for word in ["config", "permissions", "completions", "man", "--directory", "--model"] {
        assert!(help.contains(word), "{word} is missing from\n{help}");
    }
}

#[test]
fn a_mistyped_command_gets_a_suggestion() {
    let ran = World::new().run(&["confg"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("'config'"), "{}", ran.stderr);
}

#[test]
fn every_shell_has_completions_that_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = World::new().run(&["completions", shell]).ok();
        assert!(script.contains("permissions") && script.contains("hanzo-dev"), "{shell}:\n{script}");
    }
    assert_eq!(World::new().run(&["completions", "tcsh"]).code, 2);
}

#[test]
fn the_manual_page_is_roff_with_every_command() {
    let page = World::new().run(&["man"]).ok();
    assert!(page.contains(".TH hanzo-dev 1"), "{page}");
    assert!(page.contains("permissions") && page.contains("completions"), "{page}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let world = World::new();
    let mut child = world
        .command(&["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let done = child.wait_with_output().expect("the program ends");
    assert_eq!(done.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
}

#[test]
fn another_directory_can_be_named_and_must_exist() {
    let world = World::new();
    world.write("other/.hanzo/settings.toml", "model = \"there\"");
    let other = world.home().join("other");
    let shown = world.run(&["-C", other.to_str().expect("UTF-8"), "config", "explain", "model"]).ok();
    assert!(shown.contains("there"), "{shown}");

    let ran = world.run(&["-C", "/no/such/place", "config", "show"]);
    assert_eq!(ran.code, 42);
    assert!(ran.stderr.contains("/no/such/place"), "{}", ran.stderr);
}

#[test]
fn the_face_needs_a_terminal_and_no_command() {
    let ran = World::new().run(&["fix the test"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("needs a terminal") && ran.stderr.contains("hanzo-dev run"),
        "{}",
        ran.stderr
    );
    let ran = World::new().run(&["fix", "config", "path"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("in quotes"), "{}", ran.stderr);
}
