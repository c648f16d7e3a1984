//! Where settings stand and which of them wins.

use hanzo_config::{
    ConfigError, Environment, InputMode, Isolation, Platform, Tier, WarningKind, find_workspace_root,
    user_config_dir,
};

use crate::world::{World, warned};

#[test]
fn a_later_tier_wins_and_flags_beat_the_environment() {
    let world = World::new().user("settings.toml", "model = 'user'\ncustom_instructions = 'kept'\n");
    assert_eq!(world.load().settings().model.as_deref(), Some("user"));
    let world = world.project("model = 'project'\n");
    assert_eq!(world.load().settings().model.as_deref(), Some("project"));
    let world = world.local("model = 'local'\n");
    assert_eq!(world.load().settings().model.as_deref(), Some("local"));
    let world = world.env("HANZO_MODEL", "environment");
    assert_eq!(world.load().settings().model.as_deref(), Some("environment"));
    let world = world.flag("model=flag");
    let config = world.load();
    assert_eq!(config.settings().model.as_deref(), Some("flag"));
    assert_eq!(config.settings().custom_instructions, "kept");
}

#[test]
fn each_tier_is_read_from_its_place_in_either_format() {
    let world = World::new()
        .user("settings.json", r#"{"input_mode": "vim"}"#)
        .file(".hanzo/settings.json", r#"{"agent": {"max_steps": 7}}"#)
        .file(".hanzo/settings.local.json", r#"{"language": "zh"}"#);
    let config = world.load();
    assert_eq!(config.settings().input_mode, InputMode::Vim);
    assert_eq!(config.settings().agent.max_steps, 7);
    assert_eq!(config.settings().language.as_deref(), Some("zh"));
    let present: Vec<_> = config.files().iter().filter(|file| file.present).map(|file| file.tier).collect();
    assert_eq!(present, [Tier::User, Tier::Project, Tier::Local]);
    let absent = config.files().iter().find(|file| file.tier == Tier::McpJson).unwrap();
    assert_eq!((absent.present, absent.path.clone()), (false, world.workspace.join(".mcp.json")));
}

#[test]
fn both_formats_in_one_tier_are_an_error_that_names_both() {
    let world = World::new().project("").file(".hanzo/settings.json", "{}");
    let error = world.error();
    assert!(matches!(error, ConfigError::TwoFormats { tier: Tier::Project, .. }));
    let text = error.to_string();
    assert!(text.contains("settings.toml") && text.contains("settings.json"), "{text}");
    assert!(error.hint().is_some());
}

#[test]
fn without_any_file_the_defaults_hold() {
    let config = World::new().load();
    let settings = config.settings();
    assert_eq!(settings.model, None);
    assert_eq!(settings.agent.planner_max_steps, 12);
    assert_eq!(settings.tools.bash_timeout_seconds, 120);
    assert_eq!(settings.sandbox.mode, Isolation::Auto);
    assert_eq!(settings.a2a.listen_path, "/a2a");
    assert!(config.warnings().is_empty());
}

#[test]
fn the_user_directory_follows_each_platforms_custom() {
    let environment = |pairs: &[(&str, &str)]| -> Environment { pairs.iter().copied().collect() };
    let unix = |pairs| user_config_dir(&environment(pairs), Platform::Unix).map(|p| p.display().to_string());
    assert_eq!(unix(&[("HOME", "/h")]).unwrap(), "/h/.config/hanzo");
    assert_eq!(unix(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]).unwrap(), "/x/hanzo");
    assert_eq!(unix(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "relative")]).unwrap(), "/h/.config/hanzo");
    assert_eq!(unix(&[("HOME", "/h"), ("HANZO_CONFIG_DIR", "/c")]).unwrap(), "/c");
    assert_eq!(unix(&[]), None);
    let windows =
        user_config_dir(&environment(&[("APPDATA", "C:\\A"), ("HOME", "/h")]), Platform::Windows).unwrap();
    assert_eq!(windows, std::path::Path::new("C:\\A").join("hanzo"));
}

#[test]
fn the_workspace_is_the_nearest_marked_directory_below_home() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("home");
    let deep = home.join("repo/a/b");
    std::fs::create_dir_all(&deep).unwrap();
    assert_eq!(find_workspace_root(&deep, Some(&home)), deep);
    // A repository of dotfiles does not make the home directory a workspace …
    std::fs::create_dir_all(home.join(".git")).unwrap();
    assert_eq!(find_workspace_root(&deep, Some(&home)), deep);
    // … unless the user stands in it.
    assert_eq!(find_workspace_root(&home, Some(&home)), home);
    // A linked worktree has a file.
    std::fs::write(home.join("repo/.git"), "gitdir: elsewhere").unwrap();
    assert_eq!(find_workspace_root(&deep, Some(&home)), home.join("repo"));
    std::fs::create_dir_all(home.join("repo/a/.hanzo")).unwrap();
    assert_eq!(find_workspace_root(&deep, Some(&home)), home.join("repo/a"));
}

#[test]
fn secrets_are_read_from_the_user_tier_only() {
    let world = World::new()
        .project("api_key = 'sk-project'\n[[providers]]\nname = 'p'\nmodel = 'm'\napi_key = 'sk-provider'\n")
        .local("oauth_credentials = { access_token = 'sk-local' }\n");
    let config = world.load();
    assert_eq!(config.settings().api_key, None);
    assert_eq!(config.settings().oauth_credentials, None);
    assert_eq!(config.settings().providers[0].api_key, None);
    assert_eq!(warned(&config), ["api_key", "oauth_credentials", "providers.p.api_key"]);
    assert!(config.warnings().iter().all(|warning| warning.kind == WarningKind::UserTierOnly));

    let world = world.user("settings.toml", "api_key = 'sk-user'\n");
    assert_eq!(world.load().settings().api_key.as_ref().unwrap().expose(), "sk-user");
    let world = world.env("HANZO_API_KEY", "sk-env");
    assert_eq!(world.load().settings().api_key.as_ref().unwrap().expose(), "sk-env");
}

#[cfg(unix)]
#[test]
fn a_key_in_a_file_others_can_read_is_worth_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new().user("settings.toml", "api_key = 'sk-user'\n");
    let path = world.home.join(".config/hanzo/settings.toml");
    let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    set(0o644);
    let config = world.load();
    assert_eq!(config.warnings()[0].kind, WarningKind::ReadableByOthers { mode: 0o644 });
    assert!(!config.warnings()[0].to_string().contains("sk-user"));
    set(0o600);
    assert!(world.load().warnings().is_empty());
}

#[test]
fn no_secret_is_shown_by_debug_json_explanations_or_errors() {
    let world = World::new()
        .user(
            "settings.toml",
            "api_key = 'canary-1'\noauth_credentials = { refresh_token = 'canary-2' }\n\
             [[providers]]\nname = 'p'\nmodel = 'm'\napi_key = 'canary-3'\nbase_url = 'https://u:canary-4@h/'\n\
             headers = { X = 'canary-5' }\nextra = { my_token = 'canary-6' }\n\
             [mcp_servers.s]\ncommand = 'x'\nenv = { K = 'canary-7', L = '${FROM_ENV}' }\n\
             [mcp_servers.r]\nurl = 'https://h/${FROM_ENV}'\nheaders = { A = 'Bearer canary-8' }\n\
             [env]\nV = 'canary-9'\n",
        )
        .env("FROM_ENV", "canary-10")
        .env("HANZO_API_KEY", "canary-11")
        .flag("oauth_credentials=canary-12");
    let config = world.load();
    let mut shown = format!("{config:?} {:?} {}", world.inputs(), config.settings().to_masked_json());
    for (key, origin) in config.origins() {
        shown += &[key.clone(), origin.to_string(), config.explain(&key).unwrap().to_string()].concat();
    }
    for key in ["providers", "mcp_servers", "env", "api_key", "oauth_credentials", "providers.p.extra"] {
        shown += &config.explain(key).unwrap().to_string();
    }
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("${FROM_ENV}"), "references are shown as written");
    let provider = &config.settings().providers[0];
    assert_eq!(provider.headers["X"].expose(), "canary-5");

    for wrong in [
        "api_key = ['canary-13']",
        "[[providers]]\nname = 'p'\nheaders = 'canary-14'",
        "[[providers]]\nname = 'p'\nextra = 'canary-15'",
        "[mcp_servers.s]\nurl = 'https://h'\nheaders = { A = ['canary-16'] }",
        "[mcp_servers.s]\ncommand = 'c'\nenv = 'canary-17'",
        "[mcp_servers.s]\ntransport = 'https://someone:a-long-canary-18-password@host.example/'",
        "env = 'canary-19'",
    ] {
        let error = World::new().user("settings.toml", wrong).error();
        assert!(!error.to_string().contains("canary"), "{error}");
    }
}

#[test]
fn the_locale_is_asked_only_when_nothing_names_a_language() {
    let world = World::new().env("LANG", "de_CH.UTF-8");
    assert_eq!(world.load().settings().language.as_deref(), Some("de-CH"));
    let world = world.user("settings.toml", "language = ''\n");
    assert_eq!(world.load().settings().language.as_deref(), Some("de-CH"));
    let world = world.env("HANZO_LANG", "zh");
    assert_eq!(world.load().settings().language.as_deref(), Some("zh"));
    assert_eq!(World::new().env("LANG", "C.UTF-8").load().settings().language, None);
    let world = World::new().env("LANG", "fr").project("language = 'en'\n");
    assert_eq!(world.load().settings().language.as_deref(), Some("en"));
}

#[test]
fn tables_merge_deeply_and_lists_replace() {
    let world = World::new()
        .user(
            "settings.toml",
            "[agent]\nmax_steps = 3\ntemperature = 0.5\n[skills]\ndisabled_skills = ['a', 'b']\n",
        )
        .project("[agent]\nmax_steps = 9\n[skills]\ndisabled_skills = ['c']\n")
        .local("[agent]\nsubagent_models = { review = 'x' }\n");
    let config = world.load();
    let agent = &config.settings().agent;
    assert_eq!((agent.max_steps, agent.temperature), (9, Some(0.5)));
    assert_eq!(agent.subagent_models["review"], "x");
    assert_eq!(config.settings().skills.disabled_skills, ["c"]);
}

#[test]
fn permission_lists_and_hooks_grow_and_no_tier_removes_a_deny() {
    let world = World::new()
        .user("settings.toml", "[permissions]\ndeny = ['Bash(rm*)']\n[[hooks]]\nevent = 'pre_tool_use'\ncommand = 'u'\n")
        .project("[permissions]\ndeny = []\nallow = ['Bash(rm*)']\n[[hooks]]\nevent = 'post_tool_use'\ncommand = 'p'\n")
        .local("[permissions]\ndeny = ['Read']\nmode = 'deny'\n");
    let config = world.load();
    let permissions = &config.settings().permissions;
    assert_eq!(permissions.deny, ["Bash(rm*)", "Read"]);
    assert_eq!(permissions.allow, ["Bash(rm*)"]);
    let commands: Vec<_> = config.settings().hooks.iter().map(|hook| hook.command.as_str()).collect();
    assert_eq!(commands, ["u", "p"]);
}

#[test]
fn paths_are_resolved_from_home_and_from_the_tier() {
    let world = World::new()
        .user(
            "settings.toml",
            "[skills]\npaths = ['~/skills', 'mine']\n[agent]\nsystem_prompt_file = 'prompt.md'\n",
        )
        .project("[sandbox]\nallow_write = ['target', '/tmp']\nworkspace_root = ''\n");
    let config = world.load();
    let settings = config.settings();
    assert_eq!(settings.skills.paths, [world.home.join("skills"), world.home.join(".config/hanzo/mine")]);
    assert_eq!(settings.agent.system_prompt_file, Some(world.home.join(".config/hanzo/prompt.md")));
    assert_eq!(settings.sandbox.allow_write, [world.workspace.join("target"), "/tmp".into()]);
    assert_eq!(settings.sandbox.workspace_root, None);
}

#[test]
fn a_prompt_and_a_prompt_file_replace_each_other_between_tiers() {
    let world = World::new()
        .user("settings.toml", "[agent]\nsystem_prompt_file = 'p.md'\n")
        .project("[agent]\nsystem_prompt = 'x'\n");
    let config = world.load();
    assert_eq!(config.settings().agent.system_prompt.as_deref(), Some("x"));
    assert_eq!(config.settings().agent.system_prompt_file, None);
    let both = World::new().project("[agent]\nsystem_prompt = 'x'\nsystem_prompt_file = 'p.md'\n").error();
    assert!(
        both.to_string().starts_with(".hanzo/settings.toml:3:1: `agent.system_prompt_file` cannot"),
        "{both}"
    );
}

#[test]
fn a_loaded_configuration_stays_as_it_is_when_its_file_changes() {
    let world = World::new().user("settings.toml", "model = \"first\"\n");
    let config = world.load();
    let world = world.user("settings.toml", "model = \"second\"\n");
    assert_eq!(config.settings().model.as_deref(), Some("first"));
    assert_eq!(config.explain("model").unwrap().value, "first");
    assert_eq!(world.load().settings().model.as_deref(), Some("second"));
}
