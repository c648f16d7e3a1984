//! Identifiers. Each is its own type, so that a turn can never be passed where a thread is meant; those we make
//! ourselves are UUIDv7, which sort by the moment they were made.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_ids {
    ($($(#[doc = $doc:literal])+ $name:ident),+ $(,)?) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id, later than every id of this process before it.
            #[expect(clippy::new_without_default, reason = "a default that differs each time would surprise")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }

            /// The id as a UUID, for stores that have a column type for it.
            pub fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Uuid::parse_str(text).map(Self).map_err(|_| IdError { kind: stringify!($name), text: text.to_owned() })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    )+};
}

uuid_ids! {
    /// A conversation in a workspace.
    ThreadId,
    /// One user input until the agent rests.
    TurnId,
    /// One entry of a thread.
    ItemId,
    /// A request for the user's consent that is waiting for its answer.
    ApprovalId,
    /// A question the agent put to the user.
    QuestionId,
    /// A state of the files the agent touched, kept so that a turn can be undone.
    CheckpointId,
    /// Ties everything that one tool call caused together, in results, logs and audit records.
    TraceId,
}

/// A text that should have been one of our ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {kind}\n\nhint: ids are UUIDs, as printed by the commands that list them")]
pub struct IdError {
    kind: &'static str,
    text: String,
}

/// A tool call's id as the model's vendor made it: opaque to us, and sent back unchanged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ToolCallId(String);

impl ToolCallId {
    /// The id the vendor gave.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolCallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_7_and_ordered_by_creation() {
        let ids: Vec<ThreadId> = (0..1000).map(|_| ThreadId::new()).collect();
        assert!(ids.iter().all(|id| id.as_uuid().get_version_num() == 7));
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn an_id_is_its_uuid_on_the_wire_and_in_text() {
        let id = TurnId::new();
        let wire = serde_json::to_value(id).unwrap();
        assert_eq!(wire, serde_json::Value::String(id.to_string()));
        assert_eq!(id.to_string().parse::<TurnId>(), Ok(id));
        assert_eq!(serde_json::from_value::<TurnId>(wire).unwrap(), id);
    }

    #[test]
    fn a_text_that_is_no_id_is_refused_by_name() {
        let error = "yesterday".parse::<ItemId>().unwrap_err();
        assert!(error.to_string().starts_with("`yesterday` is not a valid ItemId"), "{error}");
    }
}
