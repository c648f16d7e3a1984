//! The integration tests of `hanzo-sse`: the parity vectors, properties against a naive parser, and memory.

mod limits;
mod memory;
mod properties;
mod reference;
mod vectors;
