//! What the sandbox lets through and what it stops, tried for real.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod config;
mod container;
#[cfg(target_os = "linux")]
mod hostile;
mod macos;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(unix)]
mod protected;
#[cfg(target_os = "linux")]
mod race;
#[cfg(target_os = "linux")]
mod stage;
mod windows;
