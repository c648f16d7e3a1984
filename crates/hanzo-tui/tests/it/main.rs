//! The editing core against real editors, against anything typed at it, and key by key.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod keys;
mod oracle;
mod properties;
