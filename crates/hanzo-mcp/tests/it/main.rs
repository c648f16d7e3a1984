//! Tests of the crate through its public face.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod client;
mod names;
mod vectors;
