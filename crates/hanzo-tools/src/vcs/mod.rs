//! `vcs`: git, as structured answers. It runs in the sandbox and by argument list only; hooks are off; commit messages and
//! patches go in on standard input. Diffs are unified and interchangeable with `fs.apply_patch`.

use crate::contract::{ToolBuilder, UnifiedTool};

mod change;
mod config;
mod diff;
mod git;
mod history;
mod op;
mod refs;
mod status;

/// The tool, to be given a host.
pub fn tool() -> ToolBuilder {
    UnifiedTool::builder("vcs", "Git, in the workspace.")
        .action(status::Status)
        .action(diff::Diff)
        .action(diff::Apply)
        .action(change::CommitAction)
        .action(refs::Branch)
        .action(change::Checkout)
        .action(history::Log)
        .action(history::Blame)
        .action(diff::Show)
        .action(refs::Stash)
        .action(refs::Worktree)
        .action(config::Config)
        .action(config::Fetch)
        .action(config::Push)
        .example_of("diff")
}
