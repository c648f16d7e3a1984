//! HIP-0301's own view of the configuration, for the parity vectors and the SDKs.
//!
//! It is a pure function over tier values that uses the same checks and the same merge as [`crate::load`]. It
//! differs in what HIP-0301 says: there is a default model, `permissions` is a map from pattern to mode, servers
//! that are disabled are absent (the type has no such field), and variables are left as they are written.

use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::canonical;
use crate::check::{Checker, UnknownKeys};
use crate::environment::ENVIRONMENT;
use crate::error::{ConfigError, Warning, WarningKind};
use crate::expand::Environment;
use crate::finish::drop_undefined;
use crate::load::mcp_json_servers;
use crate::merge;
use crate::node::{Node, Source, Sources, Table, Tier, join};
use crate::parse::from_json;
use crate::secret::Secret;
use crate::settings::InputMode;
use crate::trust::strip_secrets;

/// The model of HIP-0301 when nothing names one.
pub const DEFAULT_MODEL: &str = "claude-sonnet-4-20250514";

/// What the tiers say. A tier that does not exist is `None`.
#[derive(Clone, Default)]
pub struct HipInput {
    /// The user tier.
    pub user: Option<Value>,
    /// The project tier.
    pub project: Option<Value>,
    /// The local tier.
    pub local: Option<Value>,
    /// The document of a `.mcp.json`.
    pub mcp_json: Option<Value>,
    /// The environment.
    pub env: Environment,
}

/// The merged configuration as HIP-0301 defines it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HanzoConfig {
    /// The key for the API.
    pub api_key: Option<Secret>,
    /// The model.
    pub model: String,
    /// MCP servers that are not disabled, by name.
    pub mcp_servers: IndexMap<String, HipServer>,
    /// Pattern to mode: `allow`, `deny` or `prompt`.
    pub permissions: IndexMap<String, String>,
    /// Text added to the instructions.
    pub custom_instructions: String,
    /// Hooks, in order.
    pub hooks: Vec<HipHook>,
    /// Keys of the input line.
    pub input_mode: InputMode,
}

/// An MCP server.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum HipServer {
    /// A program.
    Stdio {
        /// The program and its first arguments.
        command: Vec<String>,
        /// More arguments.
        args: Vec<String>,
        /// Variables set for it.
        env: IndexMap<String, String>,
    },
    /// An address.
    Remote {
        /// `http`, `sse` or `websocket`.
        kind: String,
        /// The address.
        url: String,
        /// Headers sent with every request.
        headers: IndexMap<String, String>,
    },
}

/// Without the values of variables and headers.
impl std::fmt::Debug for HipServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdio { command, args, env } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", args)
                .field("env", &env.keys())
                .finish(),
            Self::Remote { kind, url, headers } => f
                .debug_struct("Remote")
                .field("kind", kind)
                .field("url", &crate::secret::mask_url_password(url))
                .field("headers", &headers.keys())
                .finish(),
        }
    }
}

/// A hook.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HipHook {
    /// `pre_tool_use`, `post_tool_use` or `notification`.
    pub event: String,
    /// The command.
    pub command: String,
    /// A glob over tool names.
    pub tool_pattern: String,
    /// Milliseconds it may take.
    pub timeout_ms: i64,
}

impl HanzoConfig {
    /// The whole value **with its secrets**, for a binding that hands it to a program. Never for display.
    pub fn expose(&self) -> Value {
        let servers: serde_json::Map<String, Value> = self
            .mcp_servers
            .iter()
            .map(|(name, server)| {
                let value = match server {
                    HipServer::Stdio { command, args, env } => {
                        json!({"command": command, "args": args, "env": env})
                    }
                    HipServer::Remote { kind, url, headers } => {
                        json!({"type": kind, "url": url, "headers": headers})
                    }
                };
                (name.clone(), value)
            })
            .collect();
        let hooks: Vec<Value> = self
            .hooks
            .iter()
            .map(|hook| {
                json!({
                    "event": hook.event,
                    "command": hook.command,
                    "tool_pattern": hook.tool_pattern,
                    "timeout_ms": hook.timeout_ms,
                })
            })
            .collect();
        json!({
            "api_key": self.api_key.as_ref().map(Secret::expose),
            "model": self.model,
            "mcp_servers": servers,
            "permissions": self.permissions,
            "custom_instructions": self.custom_instructions,
            "hooks": hooks,
            "input_mode": self.input_mode,
        })
    }
}

/// Merges the tiers: user < project < local < environment.
pub fn merge_hip(input: &HipInput) -> Result<(HanzoConfig, Vec<Warning>), ConfigError> {
    let mut sources = Sources::default();
    let mut warnings = Vec::new();
    let mut layers = Vec::new();
    for (tier, value) in
        [(Tier::User, &input.user), (Tier::Project, &input.project), (Tier::Local, &input.local)]
    {
        let source = sources.add(Source::Given(tier));
        let empty = json!({});
        let mut node = from_json(value.as_ref().unwrap_or(&empty), source);
        Checker { sources: &sources, warnings: &mut warnings, unknown: UnknownKeys::Warn }
            .settings(&mut node)?;
        canonical::settings(&sources, &mut node)?;
        if tier != Tier::User {
            strip_secrets(&mut node, &sources, &mut warnings);
        }
        layers.push(node);
    }
    let source = sources.add(Source::Given(Tier::McpJson));
    let mcp_json = match &input.mcp_json {
        Some(document) => mcp_json_servers(from_json(document, source), &sources)?,
        None => None,
    };
    let mut merged = merge::under(&mcp_json.unwrap_or_else(|| Node::table(source.at(0))), &layers);
    let permissions = permissions(&layers, &sources, &mut warnings);
    for layer in layers {
        merge::settings(&mut merged, layer, &sources);
    }
    if let Some(servers) = merged.as_table_mut().and_then(|root| root.get_mut("mcp_servers"))
        && let Some(servers) = servers.node.as_table_mut()
    {
        drop_undefined(servers, &sources, &mut warnings);
    }

    let from_environment = |key: &str| {
        ENVIRONMENT
            .iter()
            .find(|variable| variable.key == Some(key))
            .and_then(|variable| input.env.get(variable.name))
    };
    let text = |key: &str| {
        from_environment(key).or_else(|| merged.get(key).and_then(Node::as_text)).map(str::to_owned)
    };
    let config = HanzoConfig {
        api_key: text("api_key").map(Secret::new),
        model: text("model").unwrap_or_else(|| DEFAULT_MODEL.to_owned()),
        mcp_servers: servers(merged.get("mcp_servers").and_then(Node::as_table)),
        permissions,
        custom_instructions: text("custom_instructions").unwrap_or_default(),
        hooks: merged.get("hooks").and_then(Node::as_list).unwrap_or_default().iter().map(hook).collect(),
        input_mode: match text("input_mode").as_deref() {
            Some("vim") => InputMode::Vim,
            Some("emacs") => InputMode::Emacs,
            _ => InputMode::Default,
        },
    };
    Ok((config, warnings))
}

/// Later tiers win pattern by pattern, except that a `deny` of the user stays.
fn permissions(layers: &[Node], sources: &Sources, warnings: &mut Vec<Warning>) -> IndexMap<String, String> {
    let mut result: IndexMap<String, String> = IndexMap::new();
    let mut denied_by_user = Vec::new();
    for layer in layers {
        let Some(table) = layer.get("permissions") else { continue };
        let is_user = sources.tier(table.at.source) == Some(Tier::User);
        for (pattern, mode, at) in rules(table) {
            if !is_user && mode != "deny" && denied_by_user.contains(&pattern) {
                let key = join("permissions", &pattern);
                warnings.push(Warning { key, origin: sources.origin(at), kind: WarningKind::DenyKept });
                continue;
            }
            if is_user && mode == "deny" {
                denied_by_user.push(pattern.clone());
            }
            result.insert(pattern, mode.to_owned());
        }
    }
    result
}

/// The rules of a canonical `permissions` table, those of the lists in order of strength.
fn rules(table: &Node) -> Vec<(String, &'static str, crate::node::Spot)> {
    let mut found = Vec::new();
    for (list, mode) in [("allow", "allow"), ("ask", "prompt"), ("deny", "deny")] {
        for item in table.get(list).and_then(Node::as_list).unwrap_or_default() {
            let text = item.as_text().or_else(|| item.get("rule")?.as_text()).unwrap_or_default();
            found.push((text.to_owned(), mode, item.at));
        }
    }
    for rule in table.get("rules").and_then(Node::as_list).unwrap_or_default() {
        let pattern = rule.get("tool_pattern").and_then(Node::as_text).unwrap_or_default().to_owned();
        let mode = match rule.get("mode").and_then(Node::as_text) {
            Some("allow") => "allow",
            Some("deny") => "deny",
            _ => "prompt",
        };
        found.push((pattern, mode, rule.at));
    }
    found
}

fn servers(table: Option<&Table>) -> IndexMap<String, HipServer> {
    let enabled = table
        .into_iter()
        .flatten()
        .filter(|(_, member)| member.node.get("disabled").and_then(Node::as_bool) != Some(true));
    enabled.map(|(name, member)| (name.clone(), server(&member.node))).collect()
}

fn server(node: &Node) -> HipServer {
    let text = |key: &str| node.get(key).and_then(Node::as_text).unwrap_or_default().to_owned();
    let map = |key: &str| -> IndexMap<String, String> {
        let table = node.get(key).and_then(Node::as_table);
        let texts = table.into_iter().flatten();
        texts.filter_map(|(name, member)| Some((name.clone(), member.node.as_text()?.to_owned()))).collect()
    };
    if node.get("url").is_some() {
        return HipServer::Remote { kind: text("type"), url: text("url"), headers: map("headers") };
    }
    let args = node.get("args").and_then(Node::as_list).unwrap_or_default();
    HipServer::Stdio {
        command: vec![text("command")],
        args: args.iter().filter_map(|arg| arg.as_text().map(str::to_owned)).collect(),
        env: map("env"),
    }
}

fn hook(node: &Node) -> HipHook {
    let text = |key: &str| node.get(key).and_then(Node::as_text).map(str::to_owned);
    HipHook {
        event: text("event").unwrap_or_default(),
        command: text("command").unwrap_or_default(),
        tool_pattern: text("tool_pattern").unwrap_or_else(|| "*".to_owned()),
        timeout_ms: match node.get("timeout_ms").map(|node| &node.data) {
            Some(crate::node::Data::Integer(value)) => *value,
            _ => 5000,
        },
    }
}
