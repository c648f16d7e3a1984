//! `hanzo-dev trust`, and what other commands say about a workspace that is trusted or not.

use serde_json::json;

use crate::support::World;

const HOOK: &str = "[[hooks]]\nevent = \"pre_tool_use\"\ncommand = \"./check.sh\"\n";

#[test]
fn what_a_workspace_brings_along_waits_until_it_is_trusted_and_again_when_it_changes() {
    let world = World::new();
    world.project(HOOK);
    let hooks = |world: &World| world.run(&["config", "show", "--json"]).json()["settings"]["hooks"].clone();
    assert_eq!(hooks(&world), json!([]));
    let shown = world.run(&["config", "show"]);
    assert!(shown.stderr.contains("`hooks[0]` is off until you trust this workspace: "), "{}", shown.stderr);
    assert!(
        shown.stderr.contains("this workspace is not trusted; look at these settings"),
        "{}",
        shown.stderr
    );
    assert!(shown.stderr.contains("`hanzo-dev trust add`"), "{}", shown.stderr);
    let doctor = world.run(&["doctor"]);
    assert!(doctor.stdout.contains("is not trusted: what it brings along is not run"), "{}", doctor.stdout);

    let added = world.run(&["trust", "add"]);
    assert!(added.stdout.contains("./check.sh"), "it says what is trusted: {}", added.stdout);
    assert!(added.stderr.contains("is trusted with the setting above"), "{}", added.stderr);
    assert_eq!(hooks(&world)[0]["command"], "./check.sh");
    let shown = world.run(&["config", "show"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    assert!(world.run(&["doctor"]).stdout.contains("project is trusted"));
    let listed = world.run(&["trust", "list", "--json"]).json();
    assert_eq!(listed[0]["state"], "trusted", "{listed}");

    world.project(&HOOK.replace("check", "steal"));
    assert_eq!(hooks(&world), json!([]), "it is not what was trusted");
    let shown = world.run(&["config", "show"]);
    assert!(shown.stderr.contains("was trusted, and its settings have changed since"), "{}", shown.stderr);
    assert!(world.run(&["doctor"]).stdout.contains("its settings have changed since: they wait again"));
    assert!(world.run(&["trust", "list"]).ok().contains("changed since, so not trusted"));

    world.run(&["trust", "add"]).ok();
    assert_eq!(hooks(&world)[0]["command"], "./steal.sh");
    world.run(&["trust", "remove"]).ok();
    assert_eq!(hooks(&world), json!([]));
    assert_eq!(world.run(&["trust", "list", "--json"]).json(), json!([]));
    assert_eq!(world.run(&["trust", "remove"]).code, 42, "there is nothing to remove");
}

#[test]
fn a_workspace_is_named_listed_when_gone_and_a_broken_list_trusts_nobody() {
    let world = World::new();
    world.write("other/.git/HEAD", "").write("other/.hanzo/settings.toml", HOOK);
    let other = world.home().join("other").canonicalize().expect("it is there");
    let name = other.to_str().expect("UTF-8");
    world.run(&["trust", "add", name]).ok();
    assert!(world.run(&["trust", "list"]).ok().contains(name));
    // A workspace without settings can be trusted too: it may have agents and commands.
    let added = world.run(&["trust", "add"]);
    assert!(added.code == 0 && added.stderr.contains("nothing that needed it"), "{added:#?}");
    std::fs::remove_dir_all(&other).expect("it was there");
    let listed = world.run(&["trust", "list"]).ok();
    assert!(listed.lines().any(|line| line.starts_with(name) && line.ends_with("is not there")), "{listed}");
    world.run(&["trust", "remove", name]).ok();
    assert!(!world.run(&["trust", "list"]).ok().contains(name));

    world.write(".config/hanzo/trust.json", "{ not json");
    let listed = world.run(&["trust", "list"]);
    assert_eq!(listed.code, 52, "{listed:#?}");
    let doctor = world.run(&["doctor"]);
    assert!(doctor.stdout.contains("so that no workspace is trusted"), "{}", doctor.stdout);
}
