//! What can go wrong with a server.

use std::time::Duration;

/// Why something could not be had from a server. Each says which server, what was wanted and why it failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// Its settings cannot be used, whoever tries and however often.
    #[error("the settings of the MCP server `{server}` cannot be used: {reason}")]
    Settings {
        /// The server.
        server: String,
        /// What is wrong with them.
        reason: String,
    },
    /// It could not be started or greeted.
    #[error("cannot connect to the MCP server `{server}`: {reason}")]
    Connect {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// It wants somebody to log in.
    #[error(
        "the MCP server `{server}` wants a login: {reason}\n\nhint: `hanzo-dev mcp login {server}` keeps a token for it, or give it `Authorization` in its `headers`"
    )]
    Login {
        /// The server.
        server: String,
        /// What it said.
        reason: String,
    },
    /// It did not answer in time.
    #[error("the MCP server `{server}` did not answer {what} within {} s", limit.as_secs())]
    Timeout {
        /// The server.
        server: String,
        /// What was asked.
        what: String,
        /// How long it had.
        limit: Duration,
    },
    /// It went away.
    #[error("the MCP server `{server}` is gone: {reason}")]
    Gone {
        /// The server.
        server: String,
        /// The last that was heard of it.
        reason: String,
    },
    /// It answered with an error.
    #[error("the MCP server `{server}` answered with error {code}: {message}")]
    Refused {
        /// The server.
        server: String,
        /// The number of the error.
        code: i32,
        /// What it says.
        message: String,
    },
    /// It answered something else than what was asked.
    #[error("the MCP server `{server}` does not keep to the protocol: {reason}")]
    Protocol {
        /// The server.
        server: String,
        /// What it did.
        reason: String,
    },
    /// There is no such server, prompt or resource.
    #[error("{0}")]
    Unknown(String),
}

impl McpError {
    /// Whether trying again can help.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Settings { .. } | Self::Unknown(_) | Self::Login { .. })
    }
}
