//! `proc`: running programs.

mod capture;
mod job;
mod jobs;
mod shell;
mod stream;
mod text;

pub use job::{Job, Over, Phase, ProcId, Source};
pub use jobs::{JobError, JobOptions, Jobs, Launch, LaunchInput, Lifetime, Wait};
pub use shell::{ShellChoice, ShellKind};
