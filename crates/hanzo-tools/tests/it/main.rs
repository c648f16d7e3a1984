//! The integration tests of the crate, as one binary.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[cfg(unix)]
mod proc;
#[cfg(unix)]
mod vcs;
#[cfg(unix)]
mod world;
