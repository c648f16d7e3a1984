//! Every spelling the source documents use loads, and means the same.

use hanzo_config::{
    CredentialsStore, HookEvent, HookFailure, McpServer, PermissionMode, ReadScope, SandboxLevel, ShellKind,
    Template, Transport,
};
use hanzo_protocol::engine::Posture;

use crate::world::{World, warned};

/// Documents with the keys of the source documents, one per family.
pub const SEED_DOCUMENTS: &[&str] = &[ENGINE, OPENFANG, HIP];

/// The configuration of the engine specification.
const ENGINE: &str = r#"
default_model = "deepseek"
language = "zh"
credentials_store = "auto"

[agent]
system_prompt = "You are an agent"
max_steps = 0
planner_max_steps = 12
temperature = 0.0
reasoning_language = "auto"
planner_model = "mimo-pro"
subagent_model = "deepseek/v4-pro"
subagent_models = { review = "v4-pro", security_review = "v4-pro" }

[[providers]]
name = "deepseek"
kind = "openai"
base_url = "https://api.deepseek.com"
models = ["v4-flash", "v4-pro"]
default = "v4-flash"
api_key_env = "DEEPSEEK_API_KEY"
context_window = 1000000

[[providers]]
name = "mimo-pro"
kind = "openai"
base_url = "https://mimo.example/v1"
model = "mimo-v2.5-pro"
api_key_env = "MIMO_API_KEY"

[tools]
enabled = []
bash_timeout_seconds = 120

[tools.shell]
prefer = "pwsh"
path = 'C:\Program Files\PowerShell\7\pwsh.exe'

[skills]
paths = ["~/my-skills", "../shared/skills"]
excluded_paths = ["~/.agents/skills"]
disabled_skills = ["review"]

[permissions]
mode = "ask"
deny = ["Bash(rm -rf*)", "Bash(git push*)"]
allow = ["Bash(go test:*)", "Bash(git status:*)"]
ask = []

[sandbox]
workspace_root = ""
allow_write = ["/tmp"]
bash = "enforce"
network = true

[[plugins]]
name = "example"
command = "example-plugin"
args = []
env = { FOO = "bar" }

[[plugins]]
name = "stripe"
type = "http"
url = "https://mcp.stripe.com"
headers = { Authorization = "Bearer ${STRIPE_KEY:-none}" }
"#;

/// The MCP and A2A guide.
const OPENFANG: &str = r#"
[[mcp_servers]]
name = "github"
timeout_secs = 60
env = ["GITHUB_PERSONAL_ACCESS_TOKEN"]
[mcp_servers.transport]
type = "stdio"
command = "npx"
args = ["-y", "@modelcontextprotocol/server-github"]

[[mcp_servers]]
name = "remote-tools"
[mcp_servers.transport]
type = "sse"
url = "https://tools.example.com/mcp"

[a2a]
enabled = true
listen_path = "/a2a"

[[a2a.external_agents]]
name = "research-agent"
url = "https://research.example.com"
"#;

/// The runtime protocols.
const HIP: &str = r#"
api_key = "sk"
model = "claude"
custom_instructions = "Be brief"
input_mode = "emacs"
oauth_credentials = { access_token = "t" }
[mcp_servers.list]
command = ["npx", "-y", "server"]
args = ["--flag"]
env = { A = "1" }
[permissions]
"mcp__*" = "prompt"
"fs.write" = "deny"
[[hooks]]
event = "pre_tool_use"
command = "check"
tool_pattern = "fs.*"
timeout_ms = 1000
on_error = "warn"
[[hooks]]
event = "post_tool_use"
command = "log"
[sandbox]
mode = "allowlist"
allowed_paths = ["/srv"]
reads = "workspace"
require = "landlock+seccomp"
[bridge]
server = "127.0.0.1:1"
app_addr = "127.0.0.1:2"
allow_origin = ["https://app.example"]
"#;

#[test]
fn the_engine_specification_loads_whole() {
    let config = World::new().user("settings.toml", ENGINE).load();
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    let settings = config.settings();
    assert_eq!(settings.model.as_deref(), Some("deepseek"));
    assert_eq!(settings.language.as_deref(), Some("zh"));
    assert_eq!(settings.credentials_store, CredentialsStore::Auto);
    assert_eq!(settings.agent.planner_model.as_deref(), Some("mimo-pro"));
    assert_eq!(settings.agent.subagent_model.as_deref(), Some("deepseek/v4-pro"));
    assert_eq!(settings.agent.subagent_models["review"], "v4-pro");
    assert_eq!(settings.agent.temperature, Some(0.0));
    assert_eq!(settings.agent.reasoning_language, "auto");
    assert_eq!(settings.providers[0].api_key_env.as_deref(), Some("DEEPSEEK_API_KEY"));
    assert_eq!(settings.tools.shell.prefer, ShellKind::Pwsh);
    assert!(settings.tools.shell.path.is_some());
    assert_eq!(settings.skills.disabled_skills, ["review"]);
    assert_eq!(settings.skills.excluded_paths.len(), 1);
    assert_eq!(settings.permissions.allow.len(), 2);
    assert!(settings.sandbox.network);
    assert_eq!(settings.mcp_servers.keys().collect::<Vec<_>>(), ["example", "stripe"]);
    let Transport::Http { headers, .. } = &settings.mcp_servers["stripe"].transport else { panic!() };
    assert_eq!(headers["Authorization"].expose(), "Bearer none");
}

#[test]
fn the_mcp_and_a2a_guide_loads_whole() {
    let config = World::new().user("settings.toml", OPENFANG).load();
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    let settings = config.settings();
    let github = &settings.mcp_servers["github"];
    assert_eq!((github.name.as_str(), github.timeout_secs), ("github", 60));
    assert_eq!(github.allow_env, ["GITHUB_PERSONAL_ACCESS_TOKEN"]);
    let Transport::Stdio { command, args, env } = &github.transport else { panic!() };
    assert_eq!((command.expanded(), args.len(), env.len()), ("npx", 2, 0));
    let remote = &settings.mcp_servers["remote-tools"];
    assert_eq!(remote.timeout_secs, 30);
    assert!(
        matches!(&remote.transport, Transport::Sse { url, .. } if url.expanded() == "https://tools.example.com/mcp")
    );
    assert!(settings.a2a.enabled);
    assert_eq!(settings.a2a.external_agents[0].url, "https://research.example.com");
}

#[test]
fn the_runtime_protocols_load_whole() {
    let config = World::new().user("settings.toml", HIP).load();
    assert!(
        warned(&config).iter().all(|key| ["api_key", "oauth_credentials"].contains(key)),
        "{:?}",
        config.warnings()
    );
    let settings = config.settings();
    let Transport::Stdio { command, args, env } = &settings.mcp_servers["list"].transport else { panic!() };
    assert_eq!(command.expanded(), "npx");
    assert_eq!(args.iter().map(Template::expanded).collect::<Vec<_>>(), ["-y", "server", "--flag"]);
    assert_eq!(env["A"].expose(), "1");
    let rules: Vec<_> =
        settings.permissions.rules.iter().map(|rule| (rule.tool_pattern.as_str(), rule.mode)).collect();
    assert_eq!(rules, [("mcp__*", PermissionMode::Ask), ("fs.write", PermissionMode::Deny)]);
    let hooks = &settings.hooks;
    assert_eq!(
        (hooks[0].event, hooks[0].timeout_ms, hooks[0].on_error),
        (HookEvent::PreToolUse, 1000, HookFailure::Warn)
    );
    assert_eq!(
        (hooks[1].tool_pattern.as_str(), hooks[1].timeout_ms, hooks[1].on_error),
        ("*", 5000, HookFailure::Block)
    );
    assert_eq!(settings.sandbox.reads, ReadScope::Workspace);
    assert_eq!(settings.sandbox.require, SandboxLevel::LandlockSeccomp);
    assert_eq!(settings.bridge.allowed_origins, ["https://app.example"]);
    assert_eq!(settings.oauth_credentials.as_ref().unwrap().expose(), r#"{"access_token":"t"}"#);
}

#[test]
fn toml_and_json_of_the_same_document_mean_the_same() {
    for document in SEED_DOCUMENTS {
        let json: serde_json::Value = toml::from_str(document).unwrap();
        let from_toml = World::new().user("settings.toml", document);
        let from_json = World::new().user("settings.json", json.to_string());
        let comparable = |world: &World| {
            let mut settings = world.load().settings().clone();
            // Paths differ by the temporary home, and `toml::from_str` sorted the keys of the JSON form.
            settings.skills = hanzo_config::Skills::default();
            settings.permissions.rules.sort_by(|a, b| a.tool_pattern.cmp(&b.tool_pattern));
            settings
        };
        assert_eq!(comparable(&from_toml), comparable(&from_json));
    }
}

fn server(text: &str) -> McpServer {
    let config = World::new().user("settings.toml", text).load();
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    config.settings().mcp_servers["s"].clone()
}

#[test]
fn the_three_spellings_of_a_server_are_one() {
    let list = server(
        "[[mcp_servers]]\nname = 's'\n[mcp_servers.transport]\ntype = 'stdio'\ncommand = 'c'\nargs = ['a']\n",
    );
    let plugin = server("[[plugins]]\nname = 's'\ncommand = 'c'\nargs = ['a']\n");
    let map = server("mcp_servers = { s = { command = ['c', 'a'] } }\n");
    assert_eq!(list, plugin);
    assert_eq!(plugin, map);
}

#[test]
fn transports_are_named_or_implied() {
    for (text, expected) in [
        ("url = 'https://h'", "http"),
        ("type = 'streamable-http'\nurl = 'https://h'", "http"),
        ("transport = 'sse'\nurl = 'https://h'", "sse"),
        ("type = 'ws'\nurl = 'wss://h'", "websocket"),
        ("url = 'ws://h'", "websocket"),
        ("command = 'c'", "stdio"),
    ] {
        let server = server(&format!("[mcp_servers.s]\n{text}\n"));
        assert_eq!(serde_json::to_value(&server).unwrap()["type"], expected, "{text}");
    }
}

#[test]
fn a_server_that_makes_no_sense_is_an_error() {
    for (text, words) in [
        ("command = 'c'\nurl = 'https://h'", "cannot stand beside `command`"),
        ("type = 'http'\ncommand = 'c'", "`mcp_servers.s.url` is missing for type \"http\""),
        ("type = 'stdio'\nurl = 'https://h'", "`mcp_servers.s.command` is missing"),
        ("url = 'ftp://h'", "must be an address that starts with http:// or https://"),
        ("command = []", "may not be empty"),
        ("command = 'c'\ntimeout_secs = 0", "must be between 1 and 3600, found 0"),
    ] {
        let error =
            World::new().user("settings.toml", format!("[mcp_servers.s]\n{text}\n")).error().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
    let twice = World::new()
        .user("settings.toml", "[mcp_servers.s]\ncommand = 'c'\n[[plugins]]\nname = 's'\ncommand = 'd'\n")
        .error();
    assert!(twice.to_string().contains("`mcp_servers.s` is already set at"), "{twice}");
}

#[test]
fn servers_merge_by_name_and_a_later_tier_switches_one_off() {
    let world = World::new()
        .user("settings.toml", "[mcp_servers.s]\ncommand = 'c'\nenv = { SECRET = 'x' }\ntrusted = true\n")
        .project("[mcp_servers.s]\ntimeout_secs = 5\n[mcp_servers.t]\nurl = 'https://${NOT_SET}/'\n")
        .local("[mcp_servers.t]\ndisabled = true\n[mcp_servers.nobody]\ndisabled = true\n");
    let config = world.load();
    let settings = config.settings();
    assert_eq!(settings.mcp_servers["s"].timeout_secs, 5);
    assert!(settings.mcp_servers["s"].trusted);
    assert!(settings.mcp_servers["t"].disabled, "and its missing variable does not matter");
    assert_eq!(settings.enabled_servers().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["s"]);
    assert_eq!(warned(&config), ["mcp_servers.nobody"]);
}

#[test]
fn a_redefined_server_inherits_neither_variables_nor_trust() {
    let world = World::new()
        .user(
            "settings.toml",
            "[mcp_servers.s]\ncommand = 'c'\nargs = ['a']\nenv = { SECRET = 'x' }\ntrusted = true\n",
        )
        .project("[mcp_servers.s]\ncommand = 'other'\n");
    let config = world.load();
    let server = &config.settings().mcp_servers["s"];
    let Transport::Stdio { command, args, env } = &server.transport else { panic!() };
    assert_eq!((command.expanded(), args.len(), env.len(), server.trusted), ("other", 0, 0, false));
}

#[test]
fn mcp_json_is_read_last_and_gives_way_to_settings_of_any_tier() {
    let document = r#"{ // shared with other programs
        "mcpServers": {
            "stripe": {"type": "http", "url": "https://mcp.stripe.com", "headers": {"Authorization": "Bearer ${KEY}"}},
            "mine": {"command": "from-mcp-json", "env": {"LEAK": "no"}, "disabled": true, "alwaysAllow": ["x"]},
            "off": {"command": "c"},
        },
        "otherProgram": 1
    }"#;
    let world = World::new()
        .user(
            "settings.toml",
            "[mcp_servers.mine]\ncommand = 'from-user'\n[mcp_servers.off]\ndisabled = true\n",
        )
        .file(".mcp.json", document)
        .env("KEY", "k");
    let config = world.load();
    let servers = &config.settings().mcp_servers;
    let Transport::Http { headers, .. } = &servers["stripe"].transport else { panic!() };
    assert_eq!(headers["Authorization"].expose(), "Bearer k");
    let Transport::Stdio { command, env, .. } = &servers["mine"].transport else { panic!() };
    assert_eq!((command.expanded(), env.len()), ("from-user", 0));
    assert!(!servers["mine"].disabled, "nothing of the other entry is left");
    assert!(servers["off"].disabled);
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
}

#[test]
fn permissions_have_three_forms_kept_in_order() {
    let modes = |text: &str| {
        let config = World::new().user("settings.json", text).load();
        let rules = config.settings().permissions.rules.clone();
        rules
            .into_iter()
            .map(|rule| format!("{}={:?}/{:?}", rule.tool_pattern, rule.mode, rule.reason))
            .collect::<Vec<_>>()
    };
    let map = modes(r#"{"permissions": {"z": "allow", "mcp__*": "prompt", "a": "deny", "ask": "deny"}}"#);
    assert_eq!(map, ["z=Allow/None", "mcp__*=Ask/None", "a=Deny/None", "ask=Deny/None"]);
    let list = modes(r#"{"permissions": [{"tool_pattern": "z", "mode": "deny", "reason": "no"}]}"#);
    assert_eq!(list, ["z=Deny/Some(\"no\")"]);
    let mixed = modes(
        r#"{"permissions": {"deny": ["Bash"], "rules": [{"tool_pattern": "r", "mode": "ask"}], "x": "allow"}}"#,
    );
    assert_eq!(mixed, ["r=Ask/None", "x=Allow/None"]);
    let in_toml = World::new().user("settings.toml", "[permissions]\nz = 'allow'\na = 'deny'\n").load();
    assert_eq!(
        in_toml.settings().permissions.rules[0].tool_pattern,
        "z",
        "the order of the file, not the alphabet"
    );
}

#[test]
fn a_spelling_twice_in_one_file_is_an_error() {
    let error = World::new().user("settings.toml", "model = 'a'\ndefault_model = 'b'\n").error();
    assert_eq!(
        error.to_string(),
        "~/.config/hanzo/settings.toml:2:1: `model` is already set at ~/.config/hanzo/settings.toml:1:1"
    );
}

#[test]
fn postures_and_flags_are_typed() {
    let world =
        World::new().env("HANZO_APPROVAL", "auto").flag("agent.max_steps=5").flag("permissions.deny=['Net']");
    let config = world.load();
    assert_eq!(config.settings().approval, Posture::Auto);
    assert_eq!(config.settings().agent.max_steps, 5);
    assert_eq!(config.settings().permissions.deny, ["Net"]);
    let error = World::new().flag("agent.max_steps=many").error();
    assert_eq!(
        error.to_string(),
        "--config: `agent.max_steps` must be a whole number, found the string \"many\""
    );
    let error = World::new().env("HANZO_APPROVAL", "yes").error();
    assert!(error.to_string().starts_with("$HANZO_APPROVAL: `approval` must be one of"), "{error}");
    assert!(hanzo_config::FlagOverride::parse("--config", "no-value").is_err());
}
