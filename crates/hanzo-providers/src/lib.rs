//! Model vendors for hanzo-dev: OpenAI-compatible, Anthropic and recorded threads behind one interface.
//!
//! A [`Registry`] makes an [`ApiClient`](hanzo_protocol::roles::ApiClient) of a [`ProviderConfig`]. There is no code per
//! vendor: what one does differently is data, a [`quirks::Quirks`], and [`presets`] has it for the common ones. Errors are
//! sorted by what can be done about them, and those that may pass are tried again before anything of an answer was passed
//! on ([`RetryPolicy`], [`RetryObserver`]). [`cassette`] records what a model answered and plays it back without a network.

pub mod anthropic;
mod api_key;
mod attachments;
pub mod cassette;
mod client;
mod config;
mod error;
mod exchange;
mod failure;
mod http;
mod json;
mod observe;
pub mod openai;
pub mod presets;
pub mod quirks;
mod reader;
mod redact;
mod registry;

pub use api_key::ApiKey;
pub use client::Client;
pub use config::{ProviderConfig, RetryPolicy, Timeouts};
pub use error::ProviderError;
pub use observe::{RetryNotice, RetryObserver};
pub use registry::{Factory, Registry};
