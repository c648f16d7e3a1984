//! A refusal, as the model and programs get it.

use hanzo_protocol::envelope::{Envelope, ErrorCode, Meta, ToolError};
use hanzo_protocol::ids::TraceId;
use hanzo_protocol::tool::ToolResult;
use serde_json::Value;

use super::types::Refusal;

/// Why a call does not run. The text is for the model: it says what stood in the way and what to do instead.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refused {
    pub(super) by: Refusal,
    pub(super) error: ToolError,
}

impl Refused {
    pub(super) fn new(by: Refusal, message: impl Into<String>) -> Self {
        let code = if by == Refusal::Sandbox { ErrorCode::SandboxDenied } else { ErrorCode::Denied };
        Self { by, error: ToolError::new(code, message) }
    }

    pub(super) fn with_details(mut self, details: Value) -> Self {
        self.error = self.error.with_details(details);
        self
    }
}

/// The result of a call that never ran.
pub(super) fn error_result(action: &str, trace: TraceId, error: &ToolError) -> ToolResult {
    let action = hanzo_hooks::plain_text(action, 200);
    let (tool, action) = action.split_once('.').unwrap_or((&action, ""));
    let envelope = Envelope::<Value>::failure(error.clone(), Meta::new(tool, action, trace));
    ToolResult {
        envelope: serde_json::to_value(&envelope).ok(),
        ..ToolResult::failure(format!("error {}: {}", error.code, error.message))
    }
}
