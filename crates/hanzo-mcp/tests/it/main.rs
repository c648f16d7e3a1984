//! Tests of the crate through its public face.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod names;
mod server;
mod server_engine;
mod server_framing;
mod vectors;
