use serde_json::json;

use crate::support::World;

#[test]
fn show_prints_toml_that_is_itself_a_settings_file() {
    let world = World::new();
    world.user("model = \"deepseek\"\n[agent]\nmax_steps = 7\n");
    let shown = world.run(&["config", "show"]).ok();
    let parsed: toml::Table = toml::from_str(&shown).expect("TOML");
    assert_eq!(parsed["model"].as_str(), Some("deepseek"));
    assert_eq!(parsed["agent"]["max_steps"].as_integer(), Some(7));

    let copy = World::new();
    copy.user(&shown);
    let again = copy.run(&["config", "show"]);
    assert_eq!((again.stderr.as_str(), again.stdout.as_str()), ("", shown.as_str()));
}

#[test]
fn precedence_is_flag_environment_local_project_user_default() {
    let world = World::new();
    let model = |world: &World, arguments: &[&str], environment: &[(&str, &str)]| {
        let all = [&["config", "explain", "model", "--json"], arguments].concat();
        world.run_with_env(&all, environment).json()["value"].clone()
    };
    assert_eq!(model(&world, &[], &[]), json!(null));
    world.user("model = \"user\"");
    assert_eq!(model(&world, &[], &[]), json!("user"));
    world.project("model = \"project\"");
    assert_eq!(model(&world, &[], &[]), json!("project"));
    world.write("project/.hanzo/settings.local.json", "{\"model\": \"local\"}");
    assert_eq!(model(&world, &[], &[]), json!("local"));
    let environment = [("HANZO_MODEL", "environment")];
    assert_eq!(model(&world, &[], &environment), json!("environment"));
    assert_eq!(model(&world, &["--config", "model=config"], &environment), json!("config"));
    assert_eq!(model(&world, &["--model", "flag", "--config", "model=config"], &environment), json!("flag"));
}

#[test]
fn explain_says_where_a_value_came_from_and_what_it_overrode() {
    let world = World::new();
    world.user("model = \"mine\"").project("# ours\nmodel = \"theirs\"");
    let shown = world.run(&["config", "explain", "model"]).ok();
    assert!(shown.contains("\"theirs\"") && shown.contains(".hanzo/settings.toml:2:9"), "{shown}");
    assert!(
        shown.contains("instead of \"mine\"") && shown.contains("~/.config/hanzo/settings.toml:1:9"),
        "{shown}"
    );
}

#[test]
fn explain_suggests_the_key_that_was_meant() {
    let ran = World::new().run(&["config", "explain", "agent.max_step"]);
    assert_eq!(ran.code, 42);
    assert!(ran.stderr.contains("agent.max_steps"), "{}", ran.stderr);
}

#[test]
fn path_names_every_tier_and_works_when_a_file_is_broken() {
    let world = World::new();
    world.user("model = ");
    let shown = world.run(&["config", "path"]).ok();
    let user: Vec<&str> = shown.lines().filter(|line| line.starts_with("user ")).collect();
    assert!(user.len() == 1 && !user[0].contains("not there"), "{shown}");
    assert!(shown.contains("project") && shown.contains("local") && shown.contains(".mcp.json"), "{shown}");
    assert!(shown.contains("(not there)"), "{shown}");
    let json = world.run(&["config", "path", "--json"]).json();
    assert_eq!(json[0]["present"], json!(true), "{json}");
}

#[test]
fn secrets_are_masked_everywhere() {
    let world = World::new();
    world.user("api_key = \"sk-canary-1\"\n[[providers]]\nname = \"p\"\nkind = \"openai\"\nbase_url = \"https://x.test\"\nmodel = \"m\"\nheaders = { Authorization = \"Bearer canary-2\" }\n");
    let environment = [("HANZO_API_KEY", "sk-canary-3")];
    for arguments in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["config", "show", "--origins"],
        &["config", "explain", "api_key"],
        &["config", "explain", "providers"],
        &["--config", "api_key=sk-canary-4", "config", "show", "--origins"],
    ] {
        let ran = world.run_with_env(arguments, &environment);
        assert!(!format!("{ran:?}").contains("canary"), "{arguments:?}: {ran:#?}");
        assert!(ran.ok().contains("***"), "{arguments:?}");
    }
}

#[test]
fn an_untrusted_workspace_cannot_loosen_anything_and_is_told_so() {
    let world = World::new();
    world.project(
        "[permissions]\nallow = [\"Bash\"]\ndeny = [\"Bash(git push:*)\"]\n[sandbox]\nmode = \"off\"\n",
    );
    let ran = world.run(&["config", "show", "--json"]);
    assert!(ran.stderr.contains("permissions.allow") && ran.stderr.contains("trust"), "{}", ran.stderr);
    let shown = ran.json();
    assert_eq!(shown["settings"]["permissions"]["allow"], json!([]));
    assert_eq!(shown["settings"]["permissions"]["deny"], json!(["Bash(git push:*)"]));
    assert_eq!(shown["disabled"].as_array().map(Vec::len), Some(2), "{shown:#}");

    let trusted = world.run(&["config", "show", "--json", "--trusted"]).json();
    assert_eq!(trusted["settings"]["permissions"]["allow"], json!(["Bash"]));
}

#[test]
fn origins_are_shown_behind_each_value() {
    let world = World::new();
    world.user("[agent]\nmax_steps = 3\n");
    let shown = world.run(&["config", "show", "--origins"]).ok();
    assert_eq!(shown, "agent.max_steps = 3  # ~/.config/hanzo/settings.toml:2:13\n");
    let nothing = World::new().run(&["config", "show", "--origins"]).ok();
    assert!(nothing.starts_with("# nothing is set"), "{nothing}");
}
