//! The engine of hanzo-dev.
//!
//! * [`parts`]: what the composition root passes in.
//! * [`turn`]: one user input until the agent rests.
//! * [`compaction`]: makes a conversation fit its budget of tokens.

pub mod compaction;
pub mod parts;
pub mod turn;
