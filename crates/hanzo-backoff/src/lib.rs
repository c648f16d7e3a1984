#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod backoff;
mod clock;
mod http_date;
mod jitter;
mod retries;
mod retry_after;

pub use backoff::Backoff;
pub use clock::{Clock, SystemClock};
pub use jitter::{Jitter, RandomJitter};
pub use retries::{Retries, is_transient_status};
pub use retry_after::RetryAfter;
