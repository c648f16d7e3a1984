//! The tool contract: an [`Action`] is typed, a [`UnifiedTool`] is a named set of them and answers with the envelope.
//!
//! What a program or a model sends goes one way: alias names become canonical ones (`validate`), the arguments are checked
//! against the action's exact schema, and only then is the typed input made. [`hanzo_protocol::tool::Tool::reach`] takes the
//! same way, so the gate decides about exactly the call that will run.

mod action;
mod cursor;
mod help;
pub mod place;
mod schema;
mod tool;
mod validate;

pub(crate) use action::Nothing;
pub use action::{Action, Answer, BaseHashes, Call, Cancelled, Target, Touch};
pub use schema::FlatSchemaError;
pub use tool::{ToolBuilder, UnifiedTool};
