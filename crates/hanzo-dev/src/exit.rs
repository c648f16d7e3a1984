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
    /// There is no credential for the model, or the vendor refused it.
    Auth = 41,
    /// What was given to work on makes no sense.
    BadInput = 42,
    /// The sandbox could not be made.
    Sandbox = 44,
    /// A settings file is broken.
    Config = 52,
    /// The agent took the most model requests it may take.
    TurnLimit = 53,
    /// The agent's calls led nowhere, so that the loop guard ended its turn.
    NoProgress = 54,
    /// What was asked for stands in settings of a workspace that is not trusted.
    Untrusted = 55,
    /// Consent was needed and nobody could be asked.
    ApprovalNeeded = 56,
    /// The budget is spent.
    Budget = 57,
    /// The answer is not what the schema asks for.
    Schema = 58,
    /// The time is over.
    Timeout = 124,
    /// Ctrl-C.
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// Every code with what it means, for the documentation.
    pub const ALL: &[(Self, &str)] = &[
        (Self::Ok, "success"),
        (Self::Failure, "something failed: the model, a tool, the network"),
        (Self::Usage, "the command line makes no sense"),
        (Self::Auth, "no model can be reached with the credentials there are"),
        (Self::BadInput, "an input (a prompt, a file, an id, `--json`) makes no sense"),
        (Self::Sandbox, "a command could not be confined, so it was not run"),
        (Self::Config, "a settings file is broken; nothing was done"),
        (Self::TurnLimit, "`--max-turns` model requests were not enough"),
        (Self::NoProgress, "the agent kept repeating calls that led nowhere"),
        (Self::Untrusted, "what was asked for stands in settings of a workspace you do not trust"),
        (
            Self::ApprovalNeeded,
            "calls needed your consent, nobody could be asked, and no call succeeded after the last of them",
        ),
        (Self::Budget, "`--max-cost` is spent"),
        (Self::Schema, "the answer is not valid against `--json-schema`, also when asked again"),
        (Self::Timeout, "`--timeout` is over"),
        (Self::Interrupted, "interrupted (SIGINT)"),
        (Self::Terminated, "terminated (SIGTERM)"),
    ];

    /// The number.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The word for it in the `subtype` of a result object.
    pub fn subtype(self) -> &'static str {
        match self {
            Self::Ok => "success",
            Self::Failure => "error_execution",
            Self::Usage => "error_usage",
            Self::Auth => "error_auth",
            Self::BadInput => "error_input",
            Self::Sandbox => "error_sandbox",
            Self::Config => "error_config",
            Self::TurnLimit => "error_max_turns",
            Self::NoProgress => "error_no_progress",
            Self::Untrusted => "error_untrusted",
            Self::ApprovalNeeded => "error_approval_needed",
            Self::Budget => "error_max_cost",
            Self::Schema => "error_schema",
            Self::Timeout => "error_timeout",
            Self::Interrupted | Self::Terminated => "error_interrupted",
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented_once() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|(exit, _)| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 41, 42, 44, 52, 53, 54, 55, 56, 57, 58, 124, 130, 143]);
    }
}
