//! Tests of the crate through its public face.
#![expect(clippy::unwrap_used, reason = "a test that cannot get what it needs has failed")]

mod agents;
mod breaks;
mod commands;
mod compaction;
mod faces;
mod fold;
mod folding;
mod full_disk;
mod ground;
mod harness;
mod instructions;
mod interruptions;
mod items;
mod local_model;
mod long;
mod mocks;
mod planning;
mod prompt;
mod references;
mod tokens;
mod turn;
mod turns;
mod vectors;
mod watching;
mod wire;
