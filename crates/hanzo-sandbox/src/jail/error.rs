//! What can go wrong on the host's side of a jail.

use std::io;
use std::path::PathBuf;

use super::ladder::Level;

/// Why a jail or a command in it could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JailError {
    /// This platform has no jail for processes.
    #[error(
        "this platform has no kernel jail for commands\n\nhint: file tools are still confined by path checks"
    )]
    Unsupported,
    /// The level in force is below the one that was required.
    #[error("the sandbox reaches level `{reached}` here, but `{required}` is required\n\nhint: {hint}")]
    BelowRequired {
        /// What the caller asked for.
        required: Level,
        /// What this machine can do.
        reached: Level,
        /// What is missing and how to get it.
        hint: String,
    },
    /// A path of the configuration cannot be used.
    #[error("cannot use `{path}` as {role}: {reason}")]
    BadPath {
        /// The path as resolved.
        path: PathBuf,
        /// What it was meant for.
        role: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The supervisor process could not be started.
    #[error(
        "cannot start the jail's supervisor from `{binary}`: {source}\n\nhint: the binary must call `hanzo_sandbox::run_personality()` first in `main`"
    )]
    Supervisor {
        /// The host binary.
        binary: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A step of the jail failed; nothing was run.
    #[error("the jail could not be built: {step}: {source}")]
    Step {
        /// The step, in words.
        step: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The program of a command could not be run in the finished jail.
    #[error("cannot run `{program}`: {source}")]
    Exec {
        /// The program as given.
        program: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The supervisor is gone; every command it had is dead.
    #[error("the jail's supervisor has ended")]
    SupervisorGone,
    /// Talking to the supervisor or preparing descriptors failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

#[cfg(target_os = "linux")]
impl JailError {
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}
