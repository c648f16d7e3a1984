//! What can go wrong, and what to tell the user about it.

use std::path::PathBuf;

use serde::Serialize;

use crate::node::{Origin, Tier};

/// A configuration that cannot be used.
///
/// `Display` gives one line; [`ConfigError::hint`] gives what to try, for a `hint:` line of its own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The operating system would not give us the file.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A directory, a pipe or a device stands where a settings file belongs.
    #[error("`{}` is a directory, a pipe or a device; a settings file belongs there", path.display())]
    NotAFile {
        /// What was found.
        path: PathBuf,
    },
    /// Larger than any sensible settings file.
    #[error("`{}` has {} MiB; a settings file may have {} MiB", path.display(), size.div_ceil(1 << 20), limit >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size, or the part that was read before giving up.
        size: u64,
        /// The most we read.
        limit: u64,
    },
    /// Bytes that are not UTF-8.
    #[error("{at}: byte {offset} is not valid UTF-8")]
    NotUtf8 {
        /// Where.
        at: Origin,
        /// How many bytes into the file.
        offset: usize,
    },
    /// A NUL byte, which no text file has.
    #[error("{at}: the file holds a NUL byte")]
    Nul {
        /// Where.
        at: Origin,
    },
    /// Broken TOML or JSON.
    #[error("{at}: {message}")]
    Syntax {
        /// Where.
        at: Origin,
        /// What the parser says.
        message: String,
    },
    /// Nested deeper than any setting is.
    #[error("{at}: nested more than {limit} levels deep")]
    TooDeep {
        /// Where.
        at: Origin,
        /// The limit.
        limit: usize,
    },
    /// One key, server or provider twice in one file, or under two spellings.
    #[error("{at}: `{key}` is already set at {first}")]
    Duplicate {
        /// The second one.
        at: Origin,
        /// The key.
        key: String,
        /// The first one.
        first: Origin,
    },
    /// Both formats in one tier.
    #[error("the {tier} tier has two settings files: `{}` and `{}`", toml.display(), json.display())]
    TwoFormats {
        /// The tier.
        tier: Tier,
        /// The TOML file.
        toml: PathBuf,
        /// The JSON file.
        json: PathBuf,
    },
    /// A value of the wrong type.
    #[error("{at}: `{key}` must be {expected}, found {found}")]
    WrongType {
        /// Where.
        at: Origin,
        /// The key.
        key: String,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A value of the right type that makes no sense.
    #[error("{at}: `{key}` {problem}")]
    Invalid {
        /// Where.
        at: Origin,
        /// The key.
        key: String,
        /// What is wrong with it.
        problem: String,
        /// What to try.
        hint: Option<String>,
    },
    /// `${NAME}` without such a variable and without a default.
    #[error("{at}: `{key}` uses `${{{name}}}`, which is not set")]
    Unset {
        /// Where.
        at: Origin,
        /// The key.
        key: String,
        /// The variable.
        name: String,
    },
    /// Variables that refer to each other in a circle.
    #[error("{at}: `{key}` uses variables that refer to each other: {}", names.join(" → "))]
    Cycle {
        /// Where.
        at: Origin,
        /// The key.
        key: String,
        /// The circle, ending with the name it began with.
        names: Vec<String>,
    },
    /// Variables that expand to something huge.
    #[error("{at}: `{key}` expands to too much text or too many variables")]
    TooMuch {
        /// Where.
        at: Origin,
        /// The key.
        key: String,
    },
    /// A key nobody knows, asked for by name.
    #[error("there is no setting `{key}`")]
    NoSuchKey {
        /// What was asked for.
        key: String,
        /// The nearest known key.
        suggestion: Option<String>,
    },
    /// A `KEY=VALUE` flag without the `=`.
    #[error("`{flag}` is not `KEY=VALUE`")]
    BadFlag {
        /// The flag.
        flag: String,
    },
    /// The default settings would overwrite something.
    #[error("`{}` exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A settings file could not be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The checked settings did not fit the typed model: a mistake of ours, not of the user.
    #[error("the merged settings do not fit the model: {message}")]
    Inconsistent {
        /// What serde says.
        message: String,
    },
}

impl ConfigError {
    /// What to try, without the word `hint:`.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::TwoFormats { .. } => "keep one of them; both formats know the same keys".to_owned(),
            Self::NotAFile { .. } => "move it away".to_owned(),
            Self::Unset { name, .. } => {
                format!("set `{name}` in the environment, or write `${{{name}:-default}}`")
            }
            Self::NotUtf8 { .. } => "save the file as UTF-8".to_owned(),
            Self::Exists { .. } => "edit that file, or move it away first".to_owned(),
            Self::BadFlag { .. } => "for example `agent.max_steps=50`".to_owned(),
            Self::NoSuchKey { suggestion: Some(key), .. } => format!("did you mean `{key}`?"),
            Self::WrongType { expected, found, .. }
                if expected.starts_with("a list") && found.starts_with("the string") =>
            {
                "put it in brackets: [\"…\"]".to_owned()
            }
            Self::WrongType { expected, found, .. }
                if found.starts_with("the string")
                    && (expected.contains("number") || expected.contains("true")) =>
            {
                "write it without quotes".to_owned()
            }
            Self::Invalid { hint: Some(hint), .. } => hint.clone(),
            _ => return None,
        })
    }
}

/// Something the user should know although the configuration can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The key it is about.
    pub key: String,
    /// Where that key stands.
    pub origin: Origin,
    /// What is wrong.
    pub kind: WarningKind,
}

/// The kinds of [`Warning`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WarningKind {
    /// No such setting; perhaps the suggestion was meant.
    UnknownKey {
        /// The nearest known key.
        suggestion: Option<String>,
    },
    /// A secret in a file that travels with a repository: left out.
    UserTierOnly,
    /// A secret in a file that others on this machine can read.
    ReadableByOthers {
        /// The permission bits.
        mode: u32,
    },
    /// An entry about an MCP server that no file defines.
    NoSuchServer,
    /// A lower tier tried to undo a `deny` of the user.
    DenyKept,
    /// A line of `.env` that is not `NAME=value`.
    BadDotEnvLine,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key, origin, kind } = self;
        match kind {
            WarningKind::UnknownKey { suggestion: Some(near) } => {
                write!(f, "{origin}: unknown key `{key}`; did you mean `{near}`?")
            }
            WarningKind::UnknownKey { suggestion: None } => write!(f, "{origin}: unknown key `{key}`"),
            WarningKind::UserTierOnly => {
                write!(
                    f,
                    "{origin}: `{key}` is ignored here; secrets belong in the user tier or the environment"
                )
            }
            WarningKind::ReadableByOthers { mode } => {
                write!(
                    f,
                    "{origin}: `{key}` stands in a file others can read (mode {mode:04o}); make it 0600"
                )
            }
            WarningKind::NoSuchServer => {
                write!(f, "{origin}: `{key}` has neither `command` nor `url`, and no other file defines it")
            }
            WarningKind::DenyKept => write!(f, "{origin}: `{key}` stays denied; the user tier says so"),
            WarningKind::BadDotEnvLine => write!(f, "{origin}: not `NAME=value`, skipped"),
        }
    }
}

/// A value of an untrusted workspace that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disabled {
    /// The key.
    pub key: String,
    /// Where it stands.
    pub origin: Origin,
    /// The value, secrets masked, as JSON text.
    pub value: String,
    /// Why it waits for trust.
    pub reason: DisabledReason,
}

impl std::fmt::Display for Disabled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: `{}` is off until you trust this workspace: {}", self.origin, self.key, self.reason)
    }
}

/// Why a value of an untrusted workspace is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DisabledReason {
    /// It runs a program.
    RunsCode,
    /// It sends requests, and what is in them, somewhere.
    ChoosesEndpoint,
    /// It lets something through that would be asked about.
    AllowsWithoutAsking,
    /// It weakens the sandbox.
    WeakensSandbox,
    /// It sets variables that other settings and programs read.
    SetsEnvironment,
    /// It reads a file outside the workspace.
    LeavesWorkspace,
    /// It chooses where credentials are kept or read from.
    TouchesCredentials,
}

impl std::fmt::Display for DisabledReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::RunsCode => "it runs a program",
            Self::ChoosesEndpoint => "it chooses where requests go",
            Self::AllowsWithoutAsking => "it allows what would be asked about",
            Self::WeakensSandbox => "it weakens the sandbox",
            Self::SetsEnvironment => "it sets environment variables",
            Self::LeavesWorkspace => "it reads outside the workspace",
            Self::TouchesCredentials => "it changes how credentials are found",
        })
    }
}
