//! Serving others over MCP.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use hanzo_mcp::server::http::Rate;

use super::{Global, PostureArg};

/// The options of serving others over MCP.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// The agent whose capabilities bound every call: `coder` when absent
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// What to do about calls no rule speaks of; the setting `approval` when absent
    #[arg(long, value_enum, value_name = "POSTURE")]
    pub posture: Option<PostureArg>,
    /// Serve the tools, prompts and resources of the MCP servers in the settings as well
    #[arg(long)]
    pub with_servers: bool,
    /// Serve Streamable HTTP and WebSockets at ADDR, as in `127.0.0.1:8332`, instead of standard input and output
    ///
    /// Both are at `/mcp`. Clients show the token in `HANZO_MCP_TOKEN`, where it is set; other machines are let in only then.
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    /// Answer to this host name too, with `--http`
    #[arg(long = "allow-host", value_name = "HOST", requires = "http")]
    pub hosts: Vec<String>,
    /// Let pages of this origin call, with `--http`, as in `https://app.example`
    #[arg(long = "allow-origin", value_name = "ORIGIN", requires = "http")]
    pub origins: Vec<String>,
    /// Serve HTTPS with this certificate, and those that vouch for it, with `--http`: a PEM file
    #[arg(long, value_name = "FILE", requires = "http", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate: a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Let each client send this many requests, with `--http`, as in `600/min`; also `/s` and `/h`
    #[arg(long, value_name = "RATE", requires = "http")]
    pub rate_limit: Option<Rate>,
}

impl ServeArgs {
    /// Whether something was said about serving.
    pub fn says_something(&self) -> bool {
        let Self { agent, posture, with_servers, http, hosts, origins, tls_cert, tls_key, rate_limit } = self;
        *with_servers
            || agent.is_some()
            || posture.is_some()
            || http.is_some()
            || !hosts.is_empty()
            || !origins.is_empty()
            || tls_cert.is_some()
            || tls_key.is_some()
            || rate_limit.is_some()
    }
}

/// Serve the tools and agents of hanzo-dev over MCP
#[derive(Debug, Parser)]
#[command(name = "hanzo-mcp", version = env!("HANZO_DEV_VERSION"), arg_required_else_help = true)]
pub struct McpCli {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: McpProgramCommand,
}

/// What `hanzo-mcp` can do.
#[derive(Debug, Subcommand)]
pub enum McpProgramCommand {
    /// Serve a client on standard input and output, or several over HTTP; the same as `hanzo-dev mcp`
    Serve(ServeArgs),
}
