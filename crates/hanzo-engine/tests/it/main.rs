//! Tests of the crate through its public face.

mod compaction;
mod mocks;
mod turn;
mod vectors;
