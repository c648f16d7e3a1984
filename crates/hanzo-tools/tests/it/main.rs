//! The integration tests of the crate, as one binary.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod code;
mod code_fuzz;
mod contract;
mod ctags;
mod edits;
mod files;
mod hostile;
mod names;
mod oracle_git;
mod search;
mod support;
