//! The program as a user runs it: the real binary, a home and a workspace of its own for each test.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod bad_input;
mod basics;
mod config;
mod engine_commands;
mod face;
mod face_commands;
mod face_composer;
mod face_turns;
mod first_request;
#[cfg(target_os = "linux")]
mod hands;
#[cfg(target_os = "linux")]
mod killed;
mod mcp;
#[cfg(target_os = "linux")]
mod memory;
mod net;
mod permissions;
mod resumed;
mod run;
#[cfg(target_os = "linux")]
mod sandbox;
mod setup;
mod support;
mod trust;
