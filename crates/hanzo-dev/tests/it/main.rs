//! The program as a user runs it: the real binary, a home and a workspace of its own for each test.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod bad_input;
mod basics;
mod config;
mod engine_commands;
mod face;
mod face_commands;
mod face_composer;
#[cfg(target_os = "linux")]
mod face_terminal;
mod face_turns;
#[cfg(target_os = "linux")]
mod felt;
mod first_request;
#[cfg(target_os = "linux")]
mod hands;
#[cfg(target_os = "linux")]
mod killed;
mod mcp;
mod mcp_asks;
mod mcp_http;
mod mcp_others;
mod mcp_server;
#[cfg(target_os = "linux")]
mod memory;
mod net;
mod permissions;
#[cfg(target_os = "linux")]
mod pty;
mod resumed;
mod run;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod scrollback;
mod setup;
mod support;
mod trust;
