//! The integration tests of `hanzo-backoff`: the parity vectors, the distribution, the header and the limits.

mod delays;
mod retries;
mod retry_after;
mod vectors;
