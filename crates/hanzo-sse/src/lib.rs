#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod decoder;
mod error;
mod frame;
mod scan;

pub use decoder::{DEFAULT_LIMIT, SseDecoder};
pub use error::SseError;
pub use frame::{SseEvent, SseFrame, SseFrameBuffer};
