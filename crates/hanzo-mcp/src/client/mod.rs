//! The client: a [`Manager`] holds the servers of one workspace.
//!
//! Servers are hostile and slow until shown otherwise. So nothing here waits for one except a call that needs it: the
//! manager starts with the lists of the last run ([`cache`]), connects in the background, tries again with growing
//! pauses when a server ends, and says what changed by a number ([`Manager::revision`]) that the composition root looks
//! at between turns. What a server says about itself is cleaned ([`text`]), repaired where that is unambiguous
//! ([`schema`]) and remembered ([`approvals`]), so that a tool which changed after it was approved is noticed.

pub mod address;
pub mod approvals;
pub mod cache;
pub mod config;
pub mod elicitation;
mod exchange;
pub mod fault;
mod handler;
pub mod hip10;
pub mod host;
mod listing;
mod manager;
mod method;
mod prompts;
mod result;
pub mod schema;
mod server;
pub mod text;
mod tool;
pub(crate) mod transport;

pub use config::{
    Reachable, RemoteConfig, SecretText, ServerConfig, ServerTrust, StdioConfig, Switch, TransportConfig,
};
pub use fault::McpError;
pub use listing::{Listing, PromptArgument, PromptInfo, RawTool, ResourceInfo};
pub use manager::{Manager, ManagerParts};
pub use method::{MethodCall, ServerMethod};
pub use prompts::PromptCommand;
pub use result::ResourceContent;
pub use server::{Phase, ServerStatus};
pub use tool::RemoteTool;

/// The largest message that is taken from a server.
pub const MOST_MESSAGE_BYTES: usize = 10 * 1024 * 1024;
