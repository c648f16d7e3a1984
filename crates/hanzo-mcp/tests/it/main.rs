//! Tests of the crate through its public face.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(clippy::print_stderr, reason = "a test that did not run says so")]

mod client;
mod names;
mod server;
mod server_engine;
mod server_framing;
mod vectors;
