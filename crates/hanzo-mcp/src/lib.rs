//! MCP for hanzo-dev.
//!
//! * [`names`]: under which name a server's tool is offered to a model, and which tool a name means.

pub mod names;
