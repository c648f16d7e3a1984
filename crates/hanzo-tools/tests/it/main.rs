//! The integration tests of the crate, as one binary.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(clippy::needless_pass_by_value, reason = "arguments are written in place with `json!`")]
#![expect(clippy::format_collect, reason = "test texts are short")]
#![expect(clippy::print_stderr, reason = "an oracle that did not run says so")]

mod code;
mod code_fuzz;
mod contract;
mod ctags;
mod edits;
mod files;
mod hostile;
mod names;
mod oracle_codex;
mod oracle_git;
mod search;
mod support;
