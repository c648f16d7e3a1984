//! The engine of hanzo-dev.
//!
//! * [`turn`]: one user input until the agent rests.
//! * [`gate`]: what every tool call passes before it runs. [`capability`]: what an agent may use at all.
//! * [`compaction`]: makes a conversation fit its budget of tokens.

pub mod capability;
pub mod compaction;
pub mod gate;
pub mod turn;
