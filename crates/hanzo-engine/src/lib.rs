//! The engine of hanzo-dev.
//!
//! * [`turn`]: one user input until the agent rests.
//! * [`compaction`]: makes a conversation fit its budget of tokens.

pub mod compaction;
pub mod turn;
