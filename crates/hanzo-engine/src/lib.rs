//! The engine of hanzo-dev.
//!
//! * [`engine`]: the engine API, answered.
//! * [`parts`]: what the composition root passes in.
//! * [`turn`]: one user input until the agent rests.
//! * [`gate`]: what every tool call passes before it runs. [`capability`]: what an agent may use at all.
//! * [`prompt`], [`instructions`], [`fragment`]: what the model is told beside the conversation.
//! * [`references`], [`commands`]: what `@path` and `/command` in the user's input become.
//! * [`agents`]: the manifests of agents.
//! * [`fold`], [`tokens`]: keeps a thread within the model's window.
//! * [`compaction`]: makes a conversation fit its budget of tokens, as a pure function over messages.

pub mod agents;
mod answer;
mod budget;
pub mod capability;
pub mod commands;
pub mod compaction;
pub mod engine;
mod files;
pub mod fold;
pub mod fragment;
pub mod gate;
pub mod instructions;
mod own_tools;
pub mod parts;
pub mod prompt;
pub mod references;
mod text;
mod thread;
pub mod tokens;
pub mod turn;

pub use engine::Engine;
