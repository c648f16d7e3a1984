//! The options of `run`, and what it shares with the other commands that start an engine.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hanzo_protocol::engine::{Mode, Posture};

/// The options of `run`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "a switch of the command line is a bool to its parser")]
pub struct RunArgs {
    /// What the agent is to do; what is piped in is added to it, and alone is the whole prompt
    #[arg(value_name = "PROMPT")]
    pub prompt: Option<String>,

    /// Give the agent this file with the prompt: text as text, an image as an image
    #[arg(short, long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// What to write to standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output_format: OutputFormat,

    /// What standard input is
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub input_format: InputFormat,

    /// The answer must be JSON that is valid against the schema in FILE
    #[arg(long, value_name = "FILE")]
    pub json_schema: Option<PathBuf>,

    /// Stop after N model requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_turns: Option<u32>,

    /// Stop when this many US dollars are spent
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub max_cost: Option<f64>,

    /// Stop after SECONDS
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,

    /// Go on with the newest thread of this workspace
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub continue_newest: bool,

    /// Go on with a thread; the start of its id is enough
    #[arg(short, long, value_name = "ID")]
    pub resume: Option<String>,

    /// Go on in a copy, and leave the thread itself as it is
    #[arg(long)]
    pub fork: bool,

    /// What to do about calls no rule speaks of; the setting `approval` when absent
    #[arg(long, value_enum, value_name = "POSTURE")]
    pub posture: Option<PostureArg>,

    /// `plan` looks and plans, and every change is refused
    #[arg(long, value_enum, value_name = "MODE")]
    pub mode: Option<ModeArg>,

    /// Allow what RULE covers, as in `--allow 'Bash(git push:*)'`
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,

    /// Block what RULE covers
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,

    /// Keep nothing of this thread
    #[arg(long, conflicts_with_all = ["continue_newest", "resume"])]
    pub no_store: bool,

    /// The agent to run
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// Write what the model answers to FILE, for `hanzo-dev replay`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Say nothing but the answer and errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// What goes to standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// The answer
    #[default]
    Text,
    /// One object with the answer, tokens and cost
    Json,
    /// Everything that happens, one JSON object a line, `result` last
    StreamJson,
}

/// What standard input is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// Text that belongs to the prompt
    #[default]
    Text,
    /// One message a line, `{"type": "user", "text": "…"}`; each is a turn of its own
    StreamJson,
}

/// How to ask for consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PostureArg {
    /// Follow the rules; what they say to ask about runs inside the sandbox and is refused at its edge
    Ask,
    /// Also allow what no rule speaks of
    Auto,
    /// Ask nothing; what is denied stays denied
    Yolo,
}

impl From<PostureArg> for Posture {
    fn from(argument: PostureArg) -> Self {
        match argument {
            PostureArg::Ask => Self::Ask,
            PostureArg::Auto => Self::Auto,
            PostureArg::Yolo => Self::Yolo,
        }
    }
}

/// How to collaborate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// Do what is asked
    Normal,
    /// Look and plan
    Plan,
}

impl From<ModeArg> for Mode {
    fn from(argument: ModeArg) -> Self {
        match argument {
            ModeArg::Normal => Self::Normal,
            ModeArg::Plan => Self::Plan,
        }
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    let amount: f64 = text.trim_start_matches('$').parse().map_err(|_| "write it as `0.50`".to_owned())?;
    // Up to a billion, so that it fits whatever counts it.
    (amount > 0.0 && amount < 1e9).then_some(amount).ok_or_else(|| "must be more than nothing".to_owned())
}
