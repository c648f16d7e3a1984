//! MCP for hanzo-dev.
//!
//! * [`server`]: our tools and agents for others.
//! * [`names`]: under which name a server's tool is offered to a model, and which tool a name means.
//! * [`client`]: other people's servers, connected in the background and offered as tools, commands and resources.
//! * [`manifest`]: tools that are a script and a manifest (`mcp-tool.yaml`), run in the sandbox.

pub mod client;
pub mod manifest;
pub mod names;
mod rate;
mod results;
pub mod server;
