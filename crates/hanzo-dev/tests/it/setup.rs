use std::process::Command;

use crate::support::World;

#[test]
fn setup_writes_a_file_that_loads_and_changes_nothing() {
    let world = World::new();
    let before = world.run(&["config", "show"]).ok();
    let path = world.run(&["setup"]).ok();
    assert_eq!(path.trim(), world.home().join(".config/hanzo/settings.toml").to_str().expect("UTF-8"));
    let after = world.run(&["config", "show"]);
    assert_eq!((after.stdout.as_str(), after.stderr.as_str()), (before.as_str(), ""));
}

#[test]
fn a_file_that_is_there_is_left_alone_when_nothing_is_found() {
    for name in ["settings.toml", "settings.json"] {
        let world = World::new();
        world.write(&format!(".config/hanzo/{name}"), "");
        let ran = world.run(&["setup"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert!(ran.stderr.contains("nothing was changed") && ran.stdout.contains(name), "{ran:#?}");
        assert_eq!(world.files(), [world.home().join(".config/hanzo").join(name)]);
    }
}

#[test]
fn the_local_tier_is_ignored_by_git_and_the_project_tier_is_not() {
    let world = World::new();
    let git = |arguments: &[&str]| {
        let done =
            Command::new("git").current_dir(world.workspace()).args(arguments).output().expect("git runs");
        String::from_utf8(done.stdout).expect("UTF-8")
    };
    git(&["init", "--quiet"]);
    world.run(&["setup", "--project"]).ok();
    world.run(&["setup", "--local"]).ok();
    let seen = git(&["status", "--porcelain", "--untracked-files=all"]);
    assert!(seen.contains(".hanzo/settings.toml"), "{seen}");
    assert!(!seen.contains("settings.local"), "{seen}");
}

#[test]
fn without_a_home_it_says_what_to_set() {
    let world = World::new();
    let ran = world.run_with_env(&["setup"], &[("HOME", "")]);
    assert_eq!(ran.code, 52);
    assert!(ran.stderr.contains("\n\nhint: set `HOME`"), "{}", ran.stderr);
}
