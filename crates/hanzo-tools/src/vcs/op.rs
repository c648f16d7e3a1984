//! What `branch`, `stash`, `worktree` and `config` do, by one field: a model sees one type per field name.

use hanzo_protocol::envelope::ToolError;
use hanzo_protocol::tool::Effect;
use serde::{Deserialize, Serialize};

use super::git::invalid;

/// What to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Op {
    #[default]
    List,
    Create,
    Delete,
    Rename,
    Push,
    Pop,
    Drop,
    Add,
    Remove,
    Get,
    Set,
    Unset,
}

impl Op {
    pub(super) fn effect(self) -> Effect {
        match self {
            Self::List | Self::Get => Effect::Read,
            _ => Effect::Write,
        }
    }

    /// The error for an op that this action does not have.
    pub(super) fn unknown(self, known: &str) -> ToolError {
        let given = serde_json::to_value(self).unwrap_or_default();
        invalid(format!("`op` is {given}; here it is one of {known}"))
    }
}
