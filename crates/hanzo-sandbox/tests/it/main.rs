//! What the sandbox lets through and what it stops, tried for real. Each escape is tried outside first, where it must work: an
//! attempt that fails everywhere proves nothing.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]
#![expect(clippy::print_stdout, reason = "an attempt says on standard output what it got")]

mod config;
mod container;
mod macos;
#[cfg(unix)]
mod protected;
mod windows;

#[cfg(target_os = "linux")]
mod escape;
#[cfg(target_os = "linux")]
mod escape_kernel;
#[cfg(target_os = "linux")]
mod escape_net;
#[cfg(target_os = "linux")]
mod escape_protected;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(target_os = "linux")]
mod kill;
#[cfg(target_os = "linux")]
mod ladder;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod nursery;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
mod probes;
#[cfg(target_os = "linux")]
mod race;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod support;
#[cfg(target_os = "linux")]
mod work;
