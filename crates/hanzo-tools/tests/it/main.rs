//! The integration tests of the crate, as one binary.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod contract;
mod edits;
mod files;
mod hostile;
mod names;
mod oracle_git;
#[cfg(unix)]
mod proc;
mod search;
mod support;
#[cfg(unix)]
mod vcs;
#[cfg(unix)]
mod world;
