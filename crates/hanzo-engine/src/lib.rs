//! The engine of hanzo-dev.
//!
//! * [`engine`]: the engine API, answered.
//! * [`parts`]: what the composition root passes in.
//! * [`turn`]: one user input until the agent rests.
//! * [`compaction`]: makes a conversation fit its budget of tokens.

pub mod compaction;
pub mod engine;
pub mod parts;
mod thread;
pub mod turn;

pub use engine::Engine;
