//! Where a value comes from.

use hanzo_config::{ConfigError, Origin, Tier};
use serde_json::json;

use crate::world::World;

#[test]
fn the_winner_its_place_and_those_it_beat_are_told_in_order() {
    let world = World::new()
        .user("settings.toml", "# first line\nmodel = \"from-user\"\n")
        .file(".hanzo/settings.json", "{\n  \"default_model\": \"from-project\"\n}")
        .env("HANZO_MODEL", "from-env")
        .flag("model=from-flag");
    let config = world.load();
    for key in ["model", "default_model"] {
        let explanation = config.explain(key).unwrap();
        assert_eq!(explanation.key, "model");
        assert_eq!(explanation.value, json!("from-flag"));
        assert_eq!(explanation.origin, Origin::Flag { name: "--config".to_owned() });
        let lost: Vec<_> =
            explanation.overridden.iter().map(|c| format!("{} {}", c.value, c.origin)).collect();
        assert_eq!(
            lost,
            [
                "\"from-env\" $HANZO_MODEL",
                "\"from-project\" .hanzo/settings.json:2:20",
                "\"from-user\" ~/.config/hanzo/settings.toml:2:9",
            ]
        );
    }
    assert_eq!(config.explain("model").unwrap().to_string().lines().next(), Some("model = \"from-flag\""));
}

#[test]
fn a_default_is_called_one() {
    let config = World::new().load();
    let explanation = config.explain("agent.planner_max_steps").unwrap();
    assert_eq!((explanation.value, explanation.origin), (json!(12), Origin::Default));
    assert_eq!(config.explain("sandbox").unwrap().value["mode"], json!("auto"));
}

#[test]
fn a_growing_list_tells_the_place_of_each_part() {
    let world = World::new()
        .user("settings.toml", "[permissions]\ndeny = ['A']\n")
        .project("[permissions]\ndeny = [\n  'B',\n  'C',\n]\n");
    let explanation = world.load().explain("permissions.deny").unwrap();
    let parts: Vec<_> =
        explanation.parts.iter().map(|part| format!("{} {}", part.value, part.origin)).collect();
    assert_eq!(
        parts,
        [
            "\"A\" ~/.config/hanzo/settings.toml:2:9",
            "\"B\" .hanzo/settings.toml:3:3",
            "\"C\" .hanzo/settings.toml:4:3",
        ]
    );
    assert!(explanation.overridden.is_empty());
}

#[test]
fn entries_of_servers_and_providers_are_found_by_name() {
    let world = World::new().user(
        "settings.toml",
        "[[providers]]\nname = 'p'\nmodel = 'm'\n\n[[plugins]]\nname = 'a.b'\ncommand = 'x'\nargs = ['y']\n",
    );
    let config = world.load();
    let model = config.explain("providers.p.model").unwrap();
    assert_eq!(model.origin.to_string(), "~/.config/hanzo/settings.toml:3:9");
    assert_eq!(config.explain("providers.p.kind").unwrap().value, json!("openai"));
    let argument = config.explain("mcp_servers.\"a.b\".args[0]").unwrap();
    assert_eq!(argument.value, json!("y"));
    assert_eq!(argument.origin.to_string(), "~/.config/hanzo/settings.toml:8:9");
}

#[test]
fn every_leaf_has_an_origin() {
    let world = World::new()
        .user("settings.toml", "model = 'm'\n[agent]\nmax_steps = 1\n")
        .file(".mcp.json", r#"{"mcpServers": {"s": {"command": "c", "args": ["a"]}}}"#);
    let config = world.load();
    let origins = config.origins();
    let of = |key: &str| &origins.iter().find(|(found, _)| found == key).unwrap_or_else(|| panic!("{key}")).1;
    for key in ["model", "agent.max_steps", "mcp_servers.s.command", "mcp_servers.s.args[0]"] {
        assert!(matches!(of(key), Origin::File(_)), "{key}");
    }
    let Origin::File(place) = of("mcp_servers.s.command") else { unreachable!() };
    assert_eq!((place.tier, place.line, place.column), (Tier::McpJson, 1, 34));
    assert_eq!(place.path, world.workspace.join(".mcp.json"));
}

#[test]
fn an_unknown_key_is_answered_with_the_nearest_one() {
    let config = World::new().load();
    for (asked, near) in
        [("agent.max_step", "agent.max_steps"), ("max_steps", "agent.max_steps"), ("modle", "model")]
    {
        match config.explain(asked).unwrap_err() {
            ConfigError::NoSuchKey { suggestion, .. } => {
                assert_eq!(suggestion.as_deref(), Some(near), "{asked}");
            }
            other => panic!("{other}"),
        }
    }
    assert!(config.explain("").is_err());
    assert!(config.explain("model.x").is_err());
}
