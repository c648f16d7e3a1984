//! A model server that plays a script: OpenAI chat completions and Anthropic messages as server-sent events on loopback,
//! with every way of going wrong a network has. Plain threads, so that any test can use it, async or not.
//!
//! ```
//! use hanzo_testkit::scripted::{Reply, Server};
//! use serde_json::json;
//!
//! let server = Server::start([
//!     Reply::tool_call("fs", json!({"action": "list"})),
//!     Reply::text("All done.").with_usage(120, 4),
//! ]);
//! // … point a client at `server.base_url()`, then look at what it sent:
//! assert!(server.base_url().starts_with("http://127.0.0.1:"));
//! assert!(server.requests().is_empty());
//! ```
//!
//! The path of a request decides what is spoken: `…/chat/completions` or `…/messages`. `GET …/models` lists one model.
//! The n-th request gets the n-th reply; a request after the last one is answered with status 400 and the words
//! `script is over`, which no client tries again. Dropping the server ends it and everything under way.

mod http;
mod reply;
mod server;
mod wire;

pub use http::Request;
pub use reply::{Api, Call, Reply};
pub use server::Server;
