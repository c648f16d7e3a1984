#![doc = include_str!("../README.md")]
//!
//! # Parts
//!
//! * [`jail`] confines processes; [`run_personality`] is how a host binary opts in.
//! * [`paths::Workspace`] is what file tools use instead of `std::fs`: it opens beneath a directory descriptor, so there
//!   is no gap between the check and the use.
//! * [`Sandbox::check_path`] answers the plain question "is this path allowed under this mode?".
//! * [`protected`] and [`detect_container`] supply the facts all of them work from.
//! * [`memory`] gives back what a program that waits does not need.
//! * [`macos`] writes the Seatbelt profile, [`windows`] checks path strings; both are pure and run anywhere.

pub mod config;
pub mod container;
pub mod jail;
pub mod macos;
pub mod memory;
#[cfg(unix)]
pub mod paths;
pub mod protected;
pub mod windows;

mod canonical;

pub use config::{IsolationMode, Network, ParseModeError, Reads, Sandbox, SandboxConfig, default_mode};
pub use container::{Container, detect_container};
pub use jail::{Jail, JailConfig, JailError, Level, ProbeReport, probe, run_personality};
