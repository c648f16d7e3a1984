//! Exit codes, and the error that carries one.

use std::fmt;
use std::process::ExitCode;

/// What the program's end means to a script. The numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It worked.
    Ok = 0,
    /// Something failed that has no number of its own.
    Failure = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// What was given to work on makes no sense.
    BadInput = 42,
    /// The sandbox could not be made.
    Sandbox = 44,
    /// A settings file is broken.
    Config = 52,
}

impl Exit {
    /// Every code with what it means, for the documentation.
    pub const ALL: &[(Self, &str)] = &[
        (Self::Ok, "success"),
        (Self::Failure, "something failed"),
        (Self::Usage, "the command line makes no sense"),
        (Self::BadInput, "an input (`--args`, `--rules`) makes no sense"),
        (Self::Sandbox, "a command could not be confined, so it was not run"),
        (Self::Config, "a settings file is broken; nothing was done"),
    ];

    /// The number.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error with the exit code it leads to. Its text may end in a blank line and `hint: …`.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    error: anyhow::Error,
}

impl Failure {
    /// `error`, which ends the program with `exit`.
    pub fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into() }
    }

    /// A message, which ends the program with `exit`.
    pub fn message(exit: Exit, text: impl fmt::Display) -> Self {
        Self { exit, error: anyhow::anyhow!("{text}") }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Whether the reader of our output went away.
    pub fn is_broken_pipe(&self) -> bool {
        let io = self.error.downcast_ref::<std::io::Error>();
        io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Exit::Failure, error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.error)
    }
}
