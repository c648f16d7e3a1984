//! The editing core against real editors, against anything typed at it, and key by key. The face without a terminal: what
//! happens goes in, a terminal emulator shows what comes out.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod asking;
mod commands;
mod keys;
mod oracle;
mod overlays;
mod pausing;
mod properties;
mod screen;
mod screens;
mod stage;
mod transcript;
mod turns;
