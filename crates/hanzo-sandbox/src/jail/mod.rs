//! The jail for processes: configuration and reports on every platform, the jail itself on Linux.
//!
//! # How it is built
//!
//! A [`Jail`] is a *supervisor*, a process of one thread. It is forked from a *nursery*, which is the host's own binary run
//! once under another `argv[0]` (forking a threaded host would be unsafe, and would hand over its memory). It makes the
//! namespaces and the mount tree once. Each command is forked in it with its own pid namespace and its own copy of the
//! mount tree, so commands share loopback and `/tmp`, and nothing else of one is visible to another. Host and supervisor talk over a socket; a command's end is a message on a socket of
//! its own, which is how it can be waited for without a runtime.
//!
//! # What it does not do
//!
//! - A nested repository that a command makes in the workspace has hooks of its own making.
//! - A file of the unreadable set that the user replaces while a command runs is visible to that command.
//! - Unix sockets other than pairs are refused ([`UnixSockets`]), because no kernel before Landlock's ninth version can tell
//!   a socket inside from one outside. What needs them (a process pool that uses a fork server, a database on a socket
//!   file) has to be allowed them.
//! - Processor time is bounded per process, and control groups are not used: where one holds the host, it holds the jail.
//! - As root without capabilities, a command has the rights of `root` over files of `root` only: a workspace that belongs to
//!   somebody else is not writable.

mod config;
mod drain;
mod error;
mod git;
mod ladder;
mod report;

#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod nursery;
#[cfg(target_os = "linux")]
mod orders;
#[cfg(target_os = "linux")]
mod placeholder;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod ruleset;
#[cfg(target_os = "linux")]
mod rundir;
#[cfg(target_os = "linux")]
mod site;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(target_os = "linux")]
pub(crate) use sys::begin_writeback;

#[cfg(not(target_os = "linux"))]
mod unsupported;

pub use config::{
    EnvPolicy, JailConfig, Limits, Network, Placeholder, Protected, UnixSockets, default_protected,
};
pub use drain::{Drained, drain_bounded};
pub use error::JailError;
pub use ladder::{Facilities, Level, LimitMechanism, Missing, ProbeReport};
pub use report::{Denial, DenialKind, ExitReport, ExitStatus, Limit};

#[cfg(target_os = "linux")]
pub use child::{JailedChild, Output, Waiter};
#[cfg(target_os = "linux")]
pub use host::{Command, Io, Jail, Leftovers};
#[cfg(target_os = "linux")]
pub use orders::PtySize;
#[cfg(target_os = "linux")]
pub use probe::probe;
#[cfg(target_os = "linux")]
pub use site::JailSite;
#[cfg(not(target_os = "linux"))]
pub use unsupported::{Jail, probe};

/// The `argv[0]` of the process that supervisors are forked from.
#[cfg(target_os = "linux")]
const SUPERVISOR: &str = "hanzo-jail-supervisor";
/// The `argv[0]` of the self-test's helper.
#[cfg(target_os = "linux")]
const SELF_TEST: &str = "hanzo-jail-self-test";

/// Becomes the supervisor of a jail if the process was started as one, and then never returns. Call it first in `main`,
/// before any thread is started and anything is read from the environment.
pub fn run_personality() {
    #[cfg(target_os = "linux")]
    match std::env::args_os().next() {
        Some(name) if name == SUPERVISOR => nursery::main(),
        Some(name) if name == SELF_TEST => probe::helper_main(),
        _ => {}
    }
}
