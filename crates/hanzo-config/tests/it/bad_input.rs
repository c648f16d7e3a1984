//! Files that are wrong in every way: a clear error with its place, never a panic.

use hanzo_config::{ConfigError, LoadedConfig, MAX_FILE_SIZE, WarningKind};
use hanzo_testkit::scale::rounds;
use proptest::prelude::*;

use crate::world::World;

fn toml_error(text: &str) -> String {
    World::new().project(text).error().to_string()
}

fn json_error(text: &str) -> String {
    World::new().file(".hanzo/settings.json", text).error().to_string()
}

#[test]
fn wrong_types_say_where_what_and_how_to_write_it() {
    let world = World::new().project("\n[agent]\nmax_steps = \"ten\"\n");
    let error = world.error();
    assert_eq!(
        error.to_string(),
        ".hanzo/settings.toml:3:13: `agent.max_steps` must be a whole number, found the string \"ten\""
    );
    assert_eq!(error.hint().unwrap(), "write it without quotes");
    for (text, message) in [
        ("model = 5", ":1:9: `model` must be a string, found the number 5"),
        ("agent = 5", ":1:9: `agent` must be a table, found the number 5"),
        (
            "[permissions]\nallow = 'Bash'",
            ":2:9: `permissions.allow` must be a list of rules, found the string \"Bash\"",
        ),
        ("[tools]\nstrict = 1", ":2:10: `tools.strict` must be `true` or `false`, found the number 1"),
        ("[agent]\nmax_steps = 1.5", ":2:13: `agent.max_steps` must be a whole number, found the number 1.5"),
        ("[agent]\nmax_steps = -1", ":2:13: `agent.max_steps` must be between 0 and 1000000, found -1"),
        ("[agent]\ntemperature = 3", ":2:15: `agent.temperature` must be between 0 and 2, found 3"),
        ("model = 2020-01-01", ":1:9: `model` must be a string, found a date"),
        ("hooks = 'x'", ":1:9: `hooks` must be a list of tables, found the string \"x\""),
        ("[[hooks]]\nevent = 'pre_tool_use'", "`hooks[0].command` is missing"),
        (
            "[[hooks]]\nevent = 'pre_tool_use'\ncommand = 'c'\ntimeout_ms = 0",
            "must be between 1 and 600000, found 0",
        ),
        ("[[mcp_servers]]\ncommand = 'c'", "`mcp_servers[0].name` is missing"),
        ("[a2a]\nlisten_path = 'a2a'", "`a2a.listen_path` must start with `/`"),
        (
            "[[a2a.external_agents]]\nname = 'n'\nurl = 'x'",
            "must be an address that starts with http:// or https://",
        ),
        ("[[providers]]\nname = 'a/b'", "`providers.\"a/b\".name` may not be empty or contain `/`"),
        ("[[providers]]\nname = 'p'\n[[providers]]\nname = 'p'", "`providers.p` is already set at"),
    ] {
        let error = toml_error(text);
        assert!(error.contains(message), "{text}\n{error}");
    }
}

#[test]
fn a_wrong_choice_lists_the_right_ones_and_the_nearest() {
    let world = World::new().project("[sandbox]\nmode = 'workspce'\n");
    let error = world.error();
    assert_eq!(
        error.to_string(),
        ".hanzo/settings.toml:2:8: `sandbox.mode` must be one of \"off\", \"workspace\", \"allowlist\", \"auto\", \
         found the string \"workspce\""
    );
    assert_eq!(error.hint().unwrap(), "did you mean \"workspace\"?");
}

#[test]
fn unknown_keys_are_warnings_with_the_nearest_known_key() {
    let world = World::new().project("permisions = 1\nmax_steps = 3\nzzzzzz = 1\n[agent]\nmax_stpes = 3\n");
    let config = world.load();
    let shown: Vec<_> = config.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            ".hanzo/settings.toml:1:1: unknown key `permisions`; did you mean `permissions`?",
            ".hanzo/settings.toml:2:1: unknown key `max_steps`; did you mean `agent.max_steps`?",
            ".hanzo/settings.toml:3:1: unknown key `zzzzzz`",
            ".hanzo/settings.toml:5:1: unknown key `agent.max_stpes`; did you mean `agent.max_steps`?",
        ]
    );
    let camel = World::new().file(".hanzo/settings.json", r#"{"mcpServers": {}}"#).load();
    let WarningKind::UnknownKey { suggestion } = &camel.warnings()[0].kind else { panic!() };
    assert_eq!(suggestion.as_deref(), Some("mcp_servers"));
}

#[test]
fn broken_syntax_has_a_place() {
    assert!(toml_error("a = 1\nb = = 2\n").starts_with(".hanzo/settings.toml:2:5: not valid TOML: "));
    assert!(json_error("{\n  \"a\": ,\n}").starts_with(".hanzo/settings.json:2:8: not valid JSON: "));
    assert!(json_error("{\"a\": 1 \"b\": 2}").contains("expected comma"));
    assert!(json_error("[]").contains("`the document` must be a table, found a list"));
    assert!(json_error("{'model': 'x'}").contains("not valid JSON"));
}

#[test]
fn json_takes_comments_trailing_commas_and_nothing_at_all() {
    let text = "// c\n{ /* c */ \"model\": \"m\", \"skills\": {\"disabled_skills\": [\"a\",],}, }\n";
    let config = World::new().file(".hanzo/settings.json", text).load();
    assert_eq!(config.settings().model.as_deref(), Some("m"));
    for empty in ["", "  \n", "// only words\n", "{}", "{\"model\": null}"] {
        assert_eq!(
            World::new().file(".hanzo/settings.json", empty).load().settings().model,
            None,
            "{empty:?}"
        );
    }
}

#[test]
fn a_byte_order_mark_is_skipped_in_both_formats() {
    let toml = World::new().project("\u{FEFF}model = 'm'\n").load();
    assert_eq!(toml.settings().model.as_deref(), Some("m"));
    assert_eq!(toml.explain("model").unwrap().origin.to_string(), ".hanzo/settings.toml:1:9");
    let json = World::new().file(".hanzo/settings.json", "\u{FEFF}{\"model\": \"m\"}").load();
    assert_eq!(json.settings().model.as_deref(), Some("m"));
    let mcp =
        World::new().file(".mcp.json", "\u{FEFF}{\"mcpServers\": {\"s\": {\"command\": \"c\"}}}").load();
    assert_eq!(mcp.settings().mcp_servers.len(), 1);
}

#[test]
fn bytes_that_are_not_text_are_located() {
    let error = World::new().file(".hanzo/settings.toml", b"a = 1\nb = '\xFF'\n").error();
    assert_eq!(error.to_string(), ".hanzo/settings.toml:2:6: byte 11 is not valid UTF-8");
    let error = World::new().file(".hanzo/settings.toml", b"a = 1\n\0").error();
    assert_eq!(error.to_string(), ".hanzo/settings.toml:2:1: the file holds a NUL byte");
    assert!(matches!(
        World::new().file(".hanzo/settings.json", r#"{"model": "a\u0000b"}"#).error(),
        ConfigError::Nul { .. }
    ));
}

#[test]
fn duplicate_keys_are_errors_in_both_formats() {
    assert!(toml_error("model = 'a'\nmodel = 'b'\n").contains(":2:1: "));
    assert_eq!(
        json_error("{\"model\": \"a\",\n \"model\": \"b\"}"),
        ".hanzo/settings.json:2:2: `model` is already set at .hanzo/settings.json:1:2"
    );
}

#[test]
fn deep_nesting_is_refused() {
    let deep =
        |open: &str, close: &str, levels: usize| format!("{}{}", open.repeat(levels), close.repeat(levels));
    for levels in [65, 100, 400, 600, 100_000] {
        for text in [
            deep("[", "]", levels),
            format!("{{\"a\": {}}}", deep("[", "]", levels)),
            deep("{\"a\":", "}", levels),
        ] {
            World::new().file(".hanzo/settings.json", &text).error();
        }
        World::new().project(&format!("a = {}", deep("[", "]", levels))).error();
        World::new().project(&format!("a = {}", deep("{a=", "}", levels))).error();
        World::new().project(&format!("{} = 1", vec!["a"; levels].join("."))).error();
        World::new().project(&format!("[{}]", vec!["a"; levels].join("."))).error();
    }
    let error =
        World::new().file(".hanzo/settings.json", format!("{{\"a\": {}}}", deep("[", "]", 70))).error();
    assert!(matches!(error, ConfigError::TooDeep { limit: 64, .. }), "{error}");
}

#[test]
fn things_that_are_not_a_readable_file_are_errors() {
    let world = World::new();
    std::fs::create_dir(world.workspace.join(".hanzo/settings.toml")).unwrap();
    assert!(matches!(world.error(), ConfigError::NotAFile { .. }));

    let huge = " ".repeat(usize::try_from(MAX_FILE_SIZE).unwrap() + 1);
    let error = World::new().project(&huge).error();
    assert!(matches!(error, ConfigError::TooLarge { .. }), "{error}");
    let just_fits = " ".repeat(usize::try_from(MAX_FILE_SIZE).unwrap());
    World::new().project(&just_fits).load();

    // Where there is no `.mcp.json`, a sandbox that runs in the workspace holds its place with an empty directory.
    let world = World::new();
    std::fs::create_dir(world.workspace.join(".mcp.json")).unwrap();
    world.load();
    std::fs::write(world.workspace.join(".mcp.json/x"), "").unwrap();
    assert!(matches!(world.error(), ConfigError::NotAFile { .. }));

    // A file where the directory should be is no settings at all.
    let world = World::new();
    std::fs::remove_dir(world.workspace.join(".hanzo")).unwrap();
    std::fs::write(world.workspace.join(".hanzo"), "").unwrap();
    world.load();
}

#[cfg(unix)]
#[test]
fn an_unreadable_file_is_named() {
    use std::os::unix::fs::symlink;
    // A loop of links cannot be read by anybody, root included.
    let world = World::new();
    let path = world.workspace.join(".hanzo/settings.toml");
    symlink(&path, &path).unwrap();
    let error = world.error();
    assert!(matches!(error, ConfigError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("settings.toml"), "{error}");
    // A pipe must not make us wait for a writer.
    let world = World::new();
    symlink("/dev/null", world.workspace.join(".hanzo/settings.toml")).unwrap();
    assert!(matches!(world.error(), ConfigError::NotAFile { .. }));
}

/// Loads `bytes` in every place a file can stand.
fn load_everywhere(bytes: &[u8]) -> Vec<Result<LoadedConfig, ConfigError>> {
    [".hanzo/settings.toml", ".hanzo/settings.json", ".hanzo/settings.local.json", ".mcp.json", ".env"]
        .into_iter()
        .flat_map(|place| {
            let world = World::new().file(place, bytes);
            [world.try_load(), world.untrusted().try_load()]
        })
        .collect()
}

fn assert_ours_is_consistent(results: Vec<Result<LoadedConfig, ConfigError>>) {
    for result in results {
        match result {
            Ok(config) => {
                for (key, _) in config.origins() {
                    let _ = config.explain(&key).map(|explanation| explanation.to_string());
                }
            }
            Err(ConfigError::Inconsistent { message }) => {
                panic!("the checks let through what the model refuses: {message}")
            }
            Err(error) => {
                let _ = (error.to_string(), error.hint());
            }
        }
    }
}

fn documents() -> impl Strategy<Value = String> {
    let texts: Vec<String> = crate::forms::SEED_DOCUMENTS
        .iter()
        .flat_map(|toml| {
            let json: serde_json::Value = toml::from_str(toml).expect("our own document");
            [(*toml).to_owned(), json.to_string()]
        })
        .collect();
    prop::sample::select(texts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(2_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        assert_ours_is_consistent(load_everywhere(&bytes));
    }

    #[test]
    fn mutated_documents_never_panic(
        text in documents(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..6, any::<u8>()), 1..6),
    ) {
        let mut bytes = text.into_bytes();
        for (place, kind, byte) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = place.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => { bytes.remove(at); }
                2 => bytes.insert(at, byte),
                3 => bytes.truncate(at),
                4 => bytes[at] = b"{}[]\"'=,:#\n$"[usize::from(byte) % 12],
                _ => {
                    let end = (at + usize::from(byte)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.extend(piece);
                }
            }
        }
        assert_ours_is_consistent(load_everywhere(&bytes));
    }

    /// Values of any type at any known key: the checks catch what the model would refuse.
    #[test]
    fn any_value_at_any_key_is_checked(
        key in prop::sample::select(vec![
            "model", "api_key", "oauth_credentials", "agent", "agent.max_steps", "agent.subagent_models", "providers",
            "providers.p", "providers.p.price", "providers.p.extra", "providers.p.headers", "mcp_servers", "mcp_servers.s",
            "mcp_servers.s.env", "mcp_servers.s.command", "mcp_servers.s.transport", "plugins", "permissions",
            "permissions.rules", "permissions.allow", "hooks", "sandbox.limits", "sandbox.allow_write", "a2a.external_agents",
            "bridge", "env", "tools.shell", "tools.net", "skills.paths",
        ]),
        value in values(),
    ) {
        let segments: Vec<_> = key.split('.').collect();
        let document = segments.iter().rev().fold(value, |value, segment| serde_json::json!({ *segment: value }));
        assert_ours_is_consistent(load_everywhere(document.to_string().as_bytes()));
    }
}

fn values() -> impl Strategy<Value = serde_json::Value> {
    let word = prop::sample::select(vec![
        "",
        "x",
        "allow",
        "deny",
        "stdio",
        "http",
        "${A}",
        "https://h",
        "command",
        "name",
        "mode",
        "pre_tool_use",
        "\u{1b}[0m",
    ]);
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        word.prop_map(Into::into),
    ];
    let key = prop::sample::select(vec![
        "name",
        "command",
        "args",
        "url",
        "type",
        "env",
        "mode",
        "tool_pattern",
        "event",
        "allow",
        "rules",
        "headers",
        "input",
        "model",
        "models",
        "default",
        "transport",
        "disabled",
        "x y",
    ]);
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::hash_map(key.clone(), inner, 0..4).prop_map(|map| serde_json::Value::Object(
                map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
            )),
        ]
    })
}
