//! The engine of hanzo-dev.
//!
//! * [`engine`]: the engine API, answered.
//! * [`parts`]: what the composition root passes in.
//! * [`turn`]: one user input until the agent rests.
//! * [`gate`]: what every tool call passes before it runs. [`capability`]: what an agent may use at all.
//! * [`compaction`]: makes a conversation fit its budget of tokens.

mod answer;
mod budget;
pub mod capability;
pub mod compaction;
pub mod engine;
pub mod gate;
pub mod parts;
mod thread;
pub mod turn;

pub use engine::Engine;
