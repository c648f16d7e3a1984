//! The clients against the scripted model server, over real connections: what is sent, what is read, and what becomes of
//! every way an answer can go wrong.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(
    clippy::print_stdout,
    reason = "a test says why it did nothing, and a child of one what it measured"
)]

mod anthropic;
mod cassette;
mod faults;
mod local_model;
mod openai;
mod prefix;
mod presets;
mod registry;
mod retries;
mod size;
mod support;
mod truncation;
