//! The commands about MCP servers.

use clap::{Args, Subcommand, ValueEnum};

/// The commands about MCP servers.
#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// List the servers of the settings, and how each is
    List {
        /// Do not connect; say only what the settings and the last run say
        #[arg(long)]
        offline: bool,
        /// Wait at most this long for servers to answer
        #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
        timeout: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },

    /// Add a server to a settings file
    ///
    /// For example `hanzo-dev mcp add files -- npx -y @modelcontextprotocol/server-filesystem .` or `hanzo-dev mcp add docs
    /// https://example.com/mcp --header "Authorization=Bearer ${DOCS_TOKEN}"`.
    Add(McpAddArgs),

    /// Take a server out of a settings file
    Remove {
        /// The server
        name: String,
        /// Out of which file
        #[arg(long, value_enum, default_value_t)]
        scope: McpScope,
    },

    /// Print the settings of a server, secrets masked
    Get {
        /// The server
        name: String,
    },

    /// Keep a token for a server at an address
    ///
    /// The token is asked for, or is the first line of standard input where that is no terminal. It is tried, kept in
    /// `credentials.json` in your configuration directory, which only you can read, and sent as `Authorization: Bearer` to the
    /// address the server has now and to no other.
    Login {
        /// The server
        name: String,
    },

    /// Forget the token that is kept for a server
    Logout {
        /// The server
        name: String,
    },

    /// Connect to a server and say what it has
    Test {
        /// The server
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The options of `mcp add`.
#[derive(Debug, Args)]
pub struct McpAddArgs {
    /// What the server is to be called, as in `mcp__NAME__tool`
    pub name: String,
    /// Its address, when it is not a program
    #[arg(value_name = "URL", conflicts_with = "command")]
    pub url: Option<String>,
    /// How to talk to an address
    #[arg(long, value_enum, default_value_t)]
    pub transport: McpTransport,
    /// A variable for the program; `${VAR}` stands for one of yours
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// A variable of yours the program may see
    #[arg(long, value_name = "NAME")]
    pub allow_env: Vec<String>,
    /// A header for every request; `${VAR}` stands for a variable of yours
    #[arg(long, value_name = "NAME=VALUE")]
    pub header: Vec<String>,
    /// How long a request may take
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: Option<u64>,
    /// Believe what it says about its tools, such as that they only read
    #[arg(long)]
    pub trusted: bool,
    /// Into which file
    #[arg(long, value_enum, default_value_t)]
    pub scope: McpScope,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Which settings file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum McpScope {
    /// Yours, for every workspace
    #[default]
    User,
    /// The project's, for everybody who works on it
    Project,
    /// Yours, for this workspace
    Local,
}

/// How to talk to an address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum McpTransport {
    /// Streamable HTTP
    #[default]
    Http,
    /// Streamable HTTP, or the older event stream
    Sse,
    /// WebSocket
    Websocket,
}
