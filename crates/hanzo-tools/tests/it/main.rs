//! The integration tests of the crate, as one binary.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(clippy::needless_pass_by_value, reason = "arguments are written in place with `json!`")]
#![expect(clippy::format_collect, reason = "test texts are short")]
#![expect(clippy::print_stderr, reason = "an oracle that did not run says so")]

mod bad_input;
mod code;
mod code_fuzz;
mod code_hostile;
mod contract;
#[cfg(target_os = "linux")]
mod crash;
mod ctags;
mod edits;
mod files;
mod hostile;
mod mode;
mod names;
#[cfg(unix)]
mod net;
#[cfg(unix)]
mod net_hostile;
#[cfg(unix)]
mod net_websocket;
mod oracle_codex;
mod oracle_encodings;
mod oracle_git;
#[cfg(unix)]
mod oracle_runners;
#[cfg(feature = "ui")]
mod oracle_ui;
#[cfg(unix)]
mod proc;
#[cfg(unix)]
mod runners;
mod search;
#[cfg(unix)]
mod site;
mod support;
mod think;
#[cfg(unix)]
mod vcs;
#[cfg(unix)]
mod vcs_places;
#[cfg(unix)]
mod world;
mod ws;
