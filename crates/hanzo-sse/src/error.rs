//! What can go wrong in a format that ignores what it does not understand: only size.

use std::fmt;

/// Why an event was not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SseError {
    /// An event grew past the limit. It was dropped up to its closing blank line; the events after it are intact.
    EventTooLarge {
        /// The limit in bytes that was in force.
        limit: usize,
    },
}

impl fmt::Display for SseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EventTooLarge { limit } => {
                write!(f, "a server-sent event was dropped because it is larger than {limit} bytes")
            }
        }
    }
}

impl std::error::Error for SseError {}
