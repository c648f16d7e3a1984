//! Which keys exist and what they take: one table for checking, suggesting, masking and explaining.
//!
//! A test compares it with the JSON Schema of [`crate::Settings`], so that the two cannot drift apart.

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Field {
    pub name: &'static str,
    /// Another spelling that loads.
    pub alias: Option<&'static str>,
    pub shape: Shape,
    pub need: Need,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Optional,
    Required,
}

/// What a value must look like.
#[derive(Debug)]
pub(crate) enum Shape {
    Bool,
    Integer {
        min: i64,
        max: i64,
    },
    Number {
        min: f64,
        max: f64,
    },
    Text,
    /// Text that may not be empty.
    Name,
    /// Text that names a file or directory; `~` and relative paths are resolved while loading.
    Path,
    /// An address with one of these schemes.
    Url(&'static [&'static str]),
    Secret,
    /// A secret of any type.
    SecretAny,
    /// Text in which `${VAR}` is expanded.
    Template,
    /// Like [`Shape::Template`], and a literal is a secret.
    SecretTemplate,
    Choice(&'static [&'static str]),
    List(&'static Shape),
    /// A table with keys of the user's choice.
    Map(&'static Shape),
    Table(&'static [Field]),
    /// Options of a provider kind, which we do not know.
    Any,
    /// A table by name, or a list of entries with a `name`.
    Named(&'static [Field]),
    /// `permissions`, in any of its forms; the fields are those of the table form.
    Permissions(&'static [Field]),
    /// A permission rule: its text, or a table with examples beside it.
    Rule,
    /// A program: text, or a list of text.
    Command,
    /// `env` of an MCP server: a table of values, or a list of names to let through.
    Environment,
    /// `transport` of an MCP server: a table, or just the type.
    Transport,
}

const fn field(name: &'static str, shape: Shape) -> Field {
    Field { name, alias: None, shape, need: Need::Optional }
}

const fn required(name: &'static str, shape: Shape) -> Field {
    Field { name, alias: None, shape, need: Need::Required }
}

const fn aliased(name: &'static str, alias: &'static str, shape: Shape) -> Field {
    Field { name, alias: Some(alias), shape, need: Need::Optional }
}

const TEXTS: Shape = Shape::List(&Shape::Text);
const NAMES: Shape = Shape::List(&Shape::Name);
const PATHS: Shape = Shape::List(&Shape::Path);
const STEPS: Shape = Shape::Integer { min: 0, max: 1_000_000 };
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// Spellings of a rule's answer; `prompt` and `ask` are the same.
pub(crate) const MODES: &[&str] = &["allow", "ask", "deny", "prompt"];
/// Spellings of a server's transport.
pub(crate) const TRANSPORTS: &[&str] =
    &["stdio", "http", "sse", "websocket", "streamable-http", "streamable_http", "ws"];

/// Every setting.
pub(crate) const SETTINGS: &[Field] = &[
    aliased("model", "default_model", Shape::Text),
    field("api_key", Shape::Secret),
    field("oauth_credentials", Shape::SecretAny),
    field("custom_instructions", Shape::Text),
    field("input_mode", Shape::Choice(&["default", "vim", "emacs"])),
    field("input_timeout_ms", Shape::Integer { min: 0, max: 60_000 }),
    field("language", Shape::Text),
    field("credentials_store", Shape::Choice(&["auto", "os", "file"])),
    field("approval", Shape::Choice(&["ask", "auto", "yolo"])),
    field("agent", Shape::Table(AGENT)),
    field("providers", Shape::Named(PROVIDER)),
    field("tools", Shape::Table(TOOLS)),
    field("skills", Shape::Table(SKILLS)),
    field("permissions", Shape::Permissions(PERMISSIONS)),
    field("sandbox", Shape::Table(SANDBOX)),
    field("hooks", Shape::List(&Shape::Table(HOOK))),
    aliased("mcp_servers", "plugins", Shape::Named(SERVER)),
    field("a2a", Shape::Table(A2A)),
    field("bridge", Shape::Table(BRIDGE)),
    field("terminal", Shape::Table(TERMINAL)),
    field("env", Shape::Map(&Shape::SecretTemplate)),
];

const TERMINAL: &[Field] = &[
    field("theme", Shape::Choice(&["auto", "ansi", "dark", "light", "colour-blind", "plain", "words"])),
    field("screen", Shape::Choice(&["inline", "alternate"])),
    field("mouse", Shape::Bool),
    field("notifications", Shape::Choice(&["desktop", "bell", "off"])),
];

const AGENT: &[Field] = &[
    field("system_prompt", Shape::Text),
    field("system_prompt_file", Shape::Path),
    field("max_steps", STEPS),
    field("planner_model", Shape::Text),
    field("planner_max_steps", STEPS),
    field("subagent_model", Shape::Text),
    field("subagent_models", Shape::Map(&Shape::Text)),
    field("temperature", Shape::Number { min: 0.0, max: 2.0 }),
    field("reasoning_language", Shape::Name),
    field("compact_ratio", Shape::Number { min: 0.1, max: 1.0 }),
    field("auto_plan", Shape::Bool),
];

const PROVIDER: &[Field] = &[
    field("name", Shape::Name),
    field("kind", Shape::Name),
    field("base_url", Shape::Template),
    field("model", Shape::Name),
    field("models", NAMES),
    field("default", Shape::Name),
    field("api_key_env", Shape::Name),
    field("api_key", Shape::Secret),
    field("context_window", Shape::Integer { min: 0, max: 1_000_000_000 }),
    field("price", Shape::Table(PRICE)),
    field("extra", Shape::Any),
    field("headers", Shape::Map(&Shape::SecretTemplate)),
];

const COST: Shape = Shape::Number { min: 0.0, max: 1_000_000.0 };
const PRICE: &[Field] =
    &[field("input", COST), field("output", COST), field("cache_read", COST), field("cache_write", COST)];

const TOOLS: &[Field] = &[
    field("enabled", NAMES),
    field("profile", Shape::Choice(&["unified", "classic"])),
    field("strict", Shape::Bool),
    field("timeout_seconds", Shape::Integer { min: 1, max: DAY_SECONDS }),
    field("background_after_seconds", Shape::Integer { min: 1, max: DAY_SECONDS }),
    field("bash_timeout_seconds", Shape::Integer { min: 0, max: DAY_SECONDS }),
    field("shell", Shape::Table(SHELL)),
    field("net", Shape::Table(NET)),
];

const NET: &[Field] = &[field("private_hosts", NAMES), field("browser", Shape::Bool)];

const SHELL: &[Field] = &[
    field("prefer", Shape::Choice(&["auto", "bash", "powershell", "pwsh"])),
    // Not `Shape::Path`: a bare name is looked up on `PATH`.
    field("path", Shape::Name),
];

const SKILLS: &[Field] =
    &[field("paths", PATHS), field("excluded_paths", PATHS), field("disabled_skills", NAMES)];

const PERMISSIONS: &[Field] = &[
    field("mode", Shape::Choice(MODES)),
    field("allow", PERMISSION_RULES),
    field("ask", PERMISSION_RULES),
    field("deny", PERMISSION_RULES),
    field("rules", Shape::List(&Shape::Table(RULE))),
];

const PERMISSION_RULES: Shape = Shape::List(&Shape::Rule);

/// The table form of an entry of `allow`, `ask` and `deny`.
pub(crate) const FULL_RULE: &[Field] = &[
    required("rule", Shape::Name),
    field("match", NAMES),
    field("not_match", NAMES),
    field("reason", Shape::Text),
];

pub(crate) const RULE: &[Field] = &[
    required("tool_pattern", Shape::Name),
    required("mode", Shape::Choice(MODES)),
    field("reason", Shape::Text),
];

const SANDBOX: &[Field] = &[
    field("mode", Shape::Choice(&["off", "workspace", "allowlist", "auto"])),
    field("allowed_paths", PATHS),
    field("workspace_root", Shape::Path),
    field("allow_write", PATHS),
    field("network", Shape::Bool),
    field("reads", Shape::Choice(&["any", "workspace"])),
    field("require", Shape::Choice(&["path-check", "landlock+seccomp", "full"])),
    field("bash", Shape::Choice(&["enforce", "off"])),
    field("limits", Shape::Table(LIMITS)),
];

const LIMITS: &[Field] = &[
    field("memory_mb", Shape::Integer { min: 16, max: 16_777_216 }),
    field("cpu_seconds", Shape::Integer { min: 1, max: DAY_SECONDS }),
    field("processes", Shape::Integer { min: 1, max: 4_194_304 }),
    field("file_size_mb", Shape::Integer { min: 1, max: 16_777_216 }),
    field("open_files", Shape::Integer { min: 16, max: 1_048_576 }),
];

const HOOK: &[Field] = &[
    required("event", Shape::Choice(&["pre_tool_use", "post_tool_use", "notification"])),
    required("command", Shape::Name),
    field("tool_pattern", Shape::Name),
    field("timeout_ms", Shape::Integer { min: 1, max: 600_000 }),
    field("on_error", Shape::Choice(&["block", "warn"])),
];

pub(crate) const SERVER: &[Field] = &[
    field("name", Shape::Name),
    field("type", Shape::Choice(TRANSPORTS)),
    field("transport", Shape::Transport),
    field("command", Shape::Command),
    field("args", Shape::List(&Shape::Template)),
    field("env", Shape::Environment),
    field("url", Shape::Template),
    field("headers", Shape::Map(&Shape::SecretTemplate)),
    field("timeout_secs", Shape::Integer { min: 1, max: 3600 }),
    field("allow_env", NAMES),
    field("disabled", Shape::Bool),
    field("trusted", Shape::Bool),
    field("allow_private", Shape::Bool),
];

/// The keys that say what a server is, as opposed to how it is treated.
pub(crate) const TRANSPORT_KEYS: &[&str] = &["type", "command", "args", "env", "allow_env", "url", "headers"];

pub(crate) const TRANSPORT: &[Field] = &[
    field("type", Shape::Choice(TRANSPORTS)),
    field("command", Shape::Command),
    field("args", Shape::List(&Shape::Template)),
    field("env", Shape::Environment),
    field("url", Shape::Template),
    field("headers", Shape::Map(&Shape::SecretTemplate)),
];

const A2A: &[Field] = &[
    field("enabled", Shape::Bool),
    field("listen_path", Shape::Name),
    field("external_agents", Shape::List(&Shape::Table(EXTERNAL_AGENT))),
];

const EXTERNAL_AGENT: &[Field] = &[required("name", Shape::Name), required("url", Shape::Url(HTTP))];

const BRIDGE: &[Field] = &[
    field("server", Shape::Name),
    field("app_addr", Shape::Name),
    aliased("allowed_origins", "allow_origin", TEXTS),
];

/// Schemes of plain requests.
pub(crate) const HTTP: &[&str] = &["http://", "https://"];
/// Schemes of WebSockets.
pub(crate) const WEBSOCKET: &[&str] = &["ws://", "wss://"];

/// The shape at a canonical key path, and the path with aliases replaced. `None` when there is no such key.
pub(crate) fn shape_at(segments: &[String]) -> Option<(&'static Shape, Vec<String>)> {
    static ROOT: Shape = Shape::Table(SETTINGS);
    let mut shape = &ROOT;
    let mut canonical = Vec::with_capacity(segments.len());
    for segment in segments {
        let (next, name) = step(shape, segment)?;
        shape = next;
        canonical.push(name);
    }
    Some((shape, canonical))
}

fn step(shape: &'static Shape, segment: &str) -> Option<(&'static Shape, String)> {
    static TEXT: Shape = Shape::Text;
    static SECRET_TEMPLATE: Shape = Shape::SecretTemplate;
    static SECRET: Shape = Shape::Secret;
    static ANY: Shape = Shape::Any;
    static ENTRY_OF_SERVER: Shape = Shape::Table(SERVER);
    static ENTRY_OF_PROVIDER: Shape = Shape::Table(PROVIDER);
    let same = |shape| Some((shape, segment.to_owned()));
    match shape {
        Shape::Table(fields) | Shape::Permissions(fields) => fields
            .iter()
            .find(|field| field.name == segment || field.alias == Some(segment))
            .map(|field| (&field.shape, field.name.to_owned())),
        Shape::Named(fields) => {
            same(if std::ptr::eq(*fields, SERVER) { &ENTRY_OF_SERVER } else { &ENTRY_OF_PROVIDER })
        }
        Shape::List(inner) => segment.parse::<usize>().ok().and_then(|_| same(inner)),
        Shape::Map(inner) => same(inner),
        Shape::Any if crate::settings::names_a_secret(segment) => same(&SECRET),
        Shape::Any => same(&ANY),
        Shape::Environment => same(&SECRET_TEMPLATE),
        Shape::Command => same(&TEXT),
        _ => None,
    }
}
