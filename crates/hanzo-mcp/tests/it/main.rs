//! Tests of the crate through its public face.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(clippy::print_stderr, reason = "a test that did not run says so")]

mod client;
mod manifest;
mod names;
mod server;
mod server_contexts;
mod server_direct;
mod server_engine;
mod server_framing;
mod server_hip10;
mod server_http;
mod server_news;
mod server_others;
mod vectors;
