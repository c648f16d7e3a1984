//! One module per command.

pub mod audit;
pub mod completions;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod face;
pub mod mcp;
mod mcp_settings;
pub mod permissions;
mod recording;
pub mod run;
pub mod sandbox;
pub mod serve;
pub(crate) mod settings;
pub mod setup;
pub mod threads;
pub mod tool;
pub mod trust;
mod with_engine;
