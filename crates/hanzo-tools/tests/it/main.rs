//! The integration tests of the crate, as one binary.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod contract;
mod edits;
mod files;
mod hostile;
mod mode;
mod names;
mod oracle_git;
#[cfg(unix)]
mod oracle_runners;
#[cfg(unix)]
mod proc;
#[cfg(unix)]
mod runners;
mod search;
mod support;
mod think;
#[cfg(unix)]
mod vcs;
#[cfg(unix)]
mod world;
mod ws;
