//! One module per command.

pub mod completions;
pub mod config;
pub mod doctor;
pub mod permissions;
pub mod sandbox;
pub(crate) mod settings;
pub mod setup;
