//! The renderer from outside: what it promises about chunks, cost, layout and safety.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod cost;
mod golden;
mod invariance;
mod plain_text;
mod safety;
mod support;
mod tables;
mod tail;
