//! One module per command.

pub mod completions;
pub mod config;
pub mod permissions;
mod settings;
pub mod setup;
