//! `mcp_servers`: one form for the three ways of writing them.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secret::{SecretTemplate, Template};

/// One MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct McpServer {
    /// Its name, as in `mcp__<name>__<tool>`. In a table of servers the key is the name.
    #[serde(default)]
    pub name: String,
    /// How to reach it.
    #[serde(flatten)]
    pub transport: Transport,
    /// Seconds a request may take.
    #[serde(default = "thirty")]
    pub timeout_secs: u64,
    /// Variables of our environment the server may see besides `PATH`. A list under `env` means the same.
    #[serde(default)]
    pub allow_env: Vec<String>,
    /// Keep the entry, but do not use the server.
    #[serde(default)]
    pub disabled: bool,
    /// Believe what the server says about its tools (`readOnlyHint`).
    #[serde(default)]
    pub trusted: bool,
    /// Connect also when the host name in `url` stands for an address of this machine or of a private network.
    #[serde(default)]
    pub allow_private: bool,
}

fn thirty() -> u64 {
    30
}

/// How to reach an MCP server. `${VAR}` and `${VAR:-default}` are expanded in every text here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Transport {
    /// A child process; one JSON message per line.
    Stdio {
        /// The program. A list is the program and its first arguments.
        command: Template,
        /// Its arguments.
        #[serde(default)]
        args: Vec<Template>,
        /// Variables set for it.
        #[serde(default)]
        env: IndexMap<String, SecretTemplate>,
    },
    /// Streamable HTTP. `streamable-http` is another spelling.
    Http {
        /// The endpoint.
        url: Template,
        /// Headers sent with every request.
        #[serde(default)]
        headers: IndexMap<String, SecretTemplate>,
    },
    /// HTTP with the older event-stream transport as a fallback.
    Sse {
        /// The endpoint.
        url: Template,
        /// Headers sent with every request.
        #[serde(default)]
        headers: IndexMap<String, SecretTemplate>,
    },
    /// WebSocket. `ws` is another spelling.
    #[serde(rename = "websocket")]
    WebSocket {
        /// The endpoint, `ws://` or `wss://`.
        url: Template,
        /// Headers sent with the upgrade.
        #[serde(default)]
        headers: IndexMap<String, SecretTemplate>,
    },
}
