//! Confinement for a coding agent: what its built-in file tools may open, and what its commands may touch.
//!
//! * [`Sandbox::check_path`] answers the plain question "is this path allowed under this mode?".
//! * [`paths::Workspace`] is what file tools use instead of `std::fs`: it opens beneath a directory
//!   descriptor, so there is no gap between the check and the use.
//! * [`protected`] and [`detect_container`] supply the facts both of them and the jail work from.
//! * [`macos`] writes the Seatbelt profile, [`windows`] checks path strings; both are pure and run anywhere.

pub mod config;
pub mod container;
pub mod macos;
#[cfg(unix)]
pub mod paths;
pub mod protected;
pub mod windows;

mod canonical;

pub use config::{IsolationMode, Network, ParseModeError, Reads, Sandbox, SandboxConfig, default_mode};
pub use container::{Container, detect_container};
