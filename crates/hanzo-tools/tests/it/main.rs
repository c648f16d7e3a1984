//! The integration tests of the crate, as one binary.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(clippy::needless_pass_by_value, reason = "arguments are written in place with `json!`")]
#![expect(clippy::format_collect, reason = "test texts are short")]
#![expect(clippy::print_stderr, reason = "an oracle that did not run says so")]

mod contract;
mod edits;
mod files;
mod hostile;
mod names;
#[cfg(unix)]
mod net;
#[cfg(unix)]
mod net_websocket;
mod oracle_codex;
mod oracle_git;
#[cfg(feature = "ui")]
mod oracle_ui;
#[cfg(unix)]
mod proc;
mod search;
#[cfg(unix)]
mod site;
mod support;
#[cfg(unix)]
mod vcs;
#[cfg(unix)]
mod world;
