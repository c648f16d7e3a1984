//! The jail where there is none.

use super::config::JailConfig;
use super::error::JailError;
use super::ladder::{Level, LimitMechanism, Missing, ProbeReport};

/// A jail for processes; cannot be had on this platform.
#[derive(Debug)]
pub enum Jail {}

impl Jail {
    /// Always [`JailError::Unsupported`].
    pub fn start(_config: JailConfig) -> Result<Self, JailError> {
        Err(JailError::Unsupported)
    }
}

/// Always [`Level::PathCheck`].
pub fn probe(_config: &JailConfig) -> ProbeReport {
    let missing = Missing {
        facility: "a kernel jail",
        why: "this platform has none that this library drives".to_owned(),
        how_to_get_it: "run on Linux, or in a Linux container",
    };
    ProbeReport {
        level: Level::PathCheck,
        missing: vec![missing],
        processes: LimitMechanism::None,
        memory: LimitMechanism::None,
    }
}
