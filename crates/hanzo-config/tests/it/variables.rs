//! `${VAR}` in servers and providers, `[env]` and `.env`.

use hanzo_config::{ConfigError, Transport};

use crate::world::World;

#[test]
fn every_text_of_a_server_and_the_address_and_headers_of_a_provider_are_expanded() {
    let world = World::new()
        .user(
            "settings.toml",
            "[mcp_servers.s]\ncommand = '${BIN:-npx}'\nargs = ['--home=${HOME_DIR}']\nenv = { K = 'v-${TOKEN}' }\n\
             [mcp_servers.r]\nurl = 'https://${HOST:-${FALLBACK}}/x'\nheaders = { A = 'Bearer ${TOKEN}' }\n\
             [[providers]]\nname = 'p'\nmodel = '${TOKEN}'\nbase_url = 'https://${HOST:-h.example}'\nheaders = { T = '${TOKEN}' }\n",
        )
        .env("HOME_DIR", "/h")
        .env("TOKEN", "t0k")
        .env("FALLBACK", "f.example");
    let config = world.load();
    let settings = config.settings();
    let Transport::Stdio { command, args, env } = &settings.mcp_servers["s"].transport else { panic!() };
    assert_eq!((command.expanded(), args[0].expanded(), env["K"].expose()), ("npx", "--home=/h", "v-t0k"));
    let Transport::Http { url, headers } = &settings.mcp_servers["r"].transport else { panic!() };
    assert_eq!((url.expanded(), headers["A"].expose()), ("https://f.example/x", "Bearer t0k"));
    assert_eq!(url.raw(), "https://${HOST:-${FALLBACK}}/x");
    let provider = &settings.providers[0];
    assert_eq!(provider.base_url.as_ref().unwrap().expanded(), "https://h.example");
    assert_eq!(provider.headers["T"].expose(), "t0k");
    assert_eq!(provider.model.as_deref(), Some("${TOKEN}"), "not a place where variables are expanded");
}

#[test]
fn an_unset_variable_names_key_and_place() {
    let world =
        World::new().user("settings.toml", "[mcp_servers.s]\ncommand = 'c'\nargs = ['ok', '${NOPE}']\n");
    let error = world.error();
    assert_eq!(
        error.to_string(),
        "~/.config/hanzo/settings.toml:3:15: `mcp_servers.s.args[1]` uses `${NOPE}`, which is not set"
    );
    assert_eq!(error.hint().unwrap(), "set `NOPE` in the environment, or write `${NOPE:-default}`");
}

#[test]
fn the_environment_beats_the_env_table_and_that_beats_dot_env() {
    let text =
        "[env]\nB = 'table'\nC = 'table'\n[mcp_servers.s]\ncommand = 'c'\nargs = ['${A:-} ${B} ${C}']\n";
    let world = World::new().user("settings.toml", text).file(".env", "A=dot\nB=dot\n").env("C", "real");
    let argument = |world: &World| {
        let config = world.load();
        let Transport::Stdio { args, .. } = &config.settings().mcp_servers["s"].transport else { panic!() };
        args[0].expanded().to_owned()
    };
    assert_eq!(argument(&world), "dot table real");
    // Untrusted, the same `.env` is not heard.
    assert_eq!(argument(&world.untrusted()), " table real");
}

#[test]
fn variables_that_refer_to_each_other_are_an_error() {
    let world = World::new()
        .user("settings.toml", "[mcp_servers.s]\ncommand = '${A}'\n")
        .file(".env", "A=\"${B}\"\nB=${C:-x}\nC=${A}\n");
    let error = world.error();
    assert!(matches!(error, ConfigError::Cycle { .. }));
    assert!(
        error
            .to_string()
            .ends_with("`mcp_servers.s.command` uses variables that refer to each other: A → B → C → A"),
        "{error}"
    );
    let own = World::new().user("settings.toml", "[env]\nLOOP = 'x${LOOP}'\n").error();
    assert!(own.to_string().ends_with("LOOP → LOOP"), "{own}");
    // Single quotes in a `.env` end the chain.
    let world = world.file(".env", "A='${A}'\n");
    assert!(world.try_load().is_ok());
}

#[test]
fn a_broken_dot_env_does_not_stop_the_start() {
    let config = World::new().file(".env", "fine=1\nthis is not a variable\n").load();
    assert_eq!(config.warnings()[0].to_string(), ".env:2:1: not `NAME=value`, skipped");
    World::new().file(".env", [0xFF, 0xFE]).load();
    let world = World::new();
    std::fs::create_dir(world.workspace.join(".env")).unwrap();
    world.load();
}
