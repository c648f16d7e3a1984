//! Tests of the crate through its public face.
#![expect(clippy::unwrap_used, reason = "a test that cannot get what it needs has failed")]

mod compaction;
mod fold;
mod items;
mod mocks;
mod tokens;
mod turn;
mod vectors;
