//! The engine of hanzo-dev.
//!
//! * [`turn`]: one user input until the agent rests.
//! * [`prompt`], [`instructions`], [`fragment`]: what the model is told beside the conversation.
//! * [`fold`], [`tokens`]: keeps a thread within the model's window.
//! * [`compaction`]: makes a conversation fit its budget of tokens, as a pure function over messages.

pub mod compaction;
pub mod fold;
pub mod fragment;
pub mod instructions;
pub mod prompt;
mod text;
pub mod tokens;
pub mod turn;
