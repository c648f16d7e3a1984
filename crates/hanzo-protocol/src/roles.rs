//! The three roles a turn needs filled (seed 000 §2): something that talks to a model, something that runs tools
//! ([`ToolExecutor`](crate::tool::ToolExecutor)), and something that asks for consent. The engine takes them as
//! constructor arguments, so that tests pass their own and need no network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{ModelRequest, StreamEvent};
use crate::{BoxFuture, BoxStream};

/// Talks to a model. Seed 004 calls this a provider.
pub trait ApiClient: Send + Sync {
    /// The configured name, such as `deepseek`.
    fn name(&self) -> &str;

    /// Sends a request and yields the answer as it arrives. The stream ends with exactly one
    /// [`MessageStop`](StreamEvent::MessageStop) or [`Error`](StreamEvent::Error); dropping it aborts the request.
    fn send_message(&self, request: &ModelRequest) -> BoxStream<'static, StreamEvent>;
}

/// Asks whoever is responsible whether a call may run.
pub trait PermissionPrompter: Send + Sync {
    /// Asks about a call of `tool_name` with `input`.
    fn request_permission<'a>(
        &'a self,
        tool_name: &'a str,
        input: &'a Value,
    ) -> BoxFuture<'a, PermissionDecision>;
}

/// The answer to a request for permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PermissionDecision {
    /// It may run.
    Allow,
    /// It may not.
    Deny {
        /// Why, for the model to read.
        reason: String,
    },
    /// This prompter cannot decide; ask the next one, or refuse when there is none.
    Escalate,
}
