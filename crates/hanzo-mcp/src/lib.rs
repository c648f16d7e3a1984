//! MCP for hanzo-dev.
//!
//! * [`server`]: our tools and agents for others.
//! * [`names`]: under which name a server's tool is offered to a model, and which tool a name means.
//! * [`client`]: other people's servers, connected in the background and offered as tools, commands and resources.

pub mod client;
pub mod names;
pub mod server;
