//! `vcs.branch`, `vcs.stash` and `vcs.worktree`.

use std::ffi::OsString;

use hanzo_protocol::envelope::ToolError;
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::git::{Access, Git, Paths, failure, invalid, name, needed};
use super::op::Op;
use crate::contract::place;
use crate::contract::{Action, Answer, Call, Target};

/// Branches.
pub(super) struct Branch;

/// The arguments of `vcs.branch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BranchInput {
    #[schemars(with = "Option<String>")]
    op: Option<Op>,
    name: Option<String>,
    /// New name
    to: Option<String>,
    /// Commit, branch or a..b
    r#ref: Option<String>,
    force: Option<bool>,
    cwd: Option<String>,
}

/// The answer of `vcs.branch`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BranchOutput {
    /// The branches there are now.
    branches: Vec<BranchEntry>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct BranchEntry {
    name: String,
    /// Whether it is checked out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    current: bool,
    commit: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    upstream: String,
    subject: String,
}

impl Action for Branch {
    const NAME: &'static str = "branch";
    const SUMMARY: &'static str = "list,create,delete,rename";
    const EXAMPLE: &'static str = r#"{"op":"create","name":"fix-1"}"#;
    const WORST: Effect = Effect::Write;
    const HIDDEN: &'static [&'static str] = &["cwd", "to", "force"];
    const QUIET: &'static [&'static str] = &["ref"];
    type Input = BranchInput;
    type Output = BranchOutput;

    fn effect(&self, input: &BranchInput) -> Effect {
        input.op.unwrap_or_default().effect()
    }

    async fn run(&self, call: &Call<'_>, input: BranchInput) -> Result<Answer<BranchOutput>, ToolError> {
        let git = Git::new(call, input.cwd.as_deref())?;
        let force = input.force == Some(true);
        let wanted = || needed("name", input.name.as_ref());
        let arguments: Vec<&str> = match input.op.unwrap_or_default() {
            Op::List => Vec::new(),
            Op::Create => {
                let start = name("ref", input.r#ref.as_deref().unwrap_or("HEAD"))?;
                vec!["branch", "--no-track", "--", wanted()?, start]
            }
            Op::Delete => vec!["branch", if force { "-D" } else { "-d" }, "--", wanted()?],
            Op::Rename => {
                vec![
                    "branch",
                    if force { "-M" } else { "-m" },
                    "--",
                    wanted()?,
                    needed("to", input.to.as_ref())?,
                ]
            }
            other => return Err(other.unknown("list, create, delete, rename")),
        };
        if !arguments.is_empty() {
            let ran = git.try_run(Access::Write, arguments, None).await?;
            // The branch has its new name; what the configuration says about the old one is closed to the sandbox.
            if ran.code != 0 && !ran.stderr.contains("branch is renamed, but") {
                return Err(failure(&ran));
            }
        }
        let format =
            "--format=%(refname:short)%1f%(HEAD)%1f%(objectname)%1f%(upstream:short)%1f%(contents:subject)";
        let text = git.text(Access::Read, ["for-each-ref", format, "refs/heads", "refs/remotes"]).await?;
        let branches = text.lines().filter_map(entry).collect();
        Ok(Answer::new(BranchOutput { branches }).by("git"))
    }
}

fn entry(line: &str) -> Option<BranchEntry> {
    let mut fields = line.splitn(5, '\u{1f}').map(str::to_owned);
    Some(BranchEntry {
        name: fields.next()?,
        current: fields.next()? == "*",
        commit: fields.next()?,
        upstream: fields.next()?,
        subject: fields.next()?,
    })
}

/// Changes put aside.
pub(super) struct Stash;

/// The arguments of `vcs.stash`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StashInput {
    #[schemars(with = "Option<String>")]
    op: Option<Op>,
    message: Option<String>,
    /// Commit, branch or a..b
    r#ref: Option<String>,
    /// Every tracked change
    all: Option<bool>,
    paths: Option<Paths>,
    cwd: Option<String>,
}

/// The answer of `vcs.stash`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StashOutput {
    /// What is put aside now, the newest first.
    stashes: Vec<StashEntry>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StashEntry {
    r#ref: String,
    subject: String,
}

impl Action for Stash {
    const NAME: &'static str = "stash";
    const SUMMARY: &'static str = "list,push,pop,drop";
    const EXAMPLE: &'static str = r#"{"op":"push","message":"half done"}"#;
    const WORST: Effect = Effect::Write;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = super::git::PATH_ALIASES;
    const HIDDEN: &'static [&'static str] = &["cwd", "message", "ref", "all", "paths"];
    type Input = StashInput;
    type Output = StashOutput;

    fn effect(&self, input: &StashInput) -> Effect {
        input.op.unwrap_or_default().effect()
    }

    async fn run(&self, call: &Call<'_>, input: StashInput) -> Result<Answer<StashOutput>, ToolError> {
        let git = Git::new(call, input.cwd.as_deref())?;
        let mut arguments: Vec<OsString> = vec!["stash".into()];
        let newest = name("ref", input.r#ref.as_deref().unwrap_or("stash@{0}"))?;
        match input.op.unwrap_or_default() {
            Op::List => arguments.clear(),
            Op::Push => {
                arguments.push("push".into());
                if input.all == Some(true) {
                    arguments.push("--include-untracked".into());
                }
                if let Some(message) = &input.message {
                    arguments.push(format!("--message={message}").into());
                }
                arguments.extend(git.pathspecs(input.paths.as_ref())?);
            }
            Op::Pop => arguments.extend(["pop".into(), newest.into()]),
            Op::Drop => arguments.extend(["drop".into(), newest.into()]),
            other => return Err(other.unknown("list, push, pop, drop")),
        }
        if !arguments.is_empty() {
            git.run(Access::Write, arguments, None).await?;
        }
        let text = git.text(Access::Read, ["stash", "list", "--format=%gd%x1f%gs"]).await?;
        let entry = |line: &str| {
            let (revision, subject) = line.split_once('\u{1f}')?;
            Some(StashEntry { r#ref: revision.to_owned(), subject: subject.to_owned() })
        };
        Ok(Answer::new(StashOutput { stashes: text.lines().filter_map(entry).collect() }).by("git"))
    }
}

/// Further working trees.
pub(super) struct Worktree;

/// The arguments of `vcs.worktree`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorktreeInput {
    #[schemars(with = "Option<String>")]
    op: Option<Op>,
    paths: Option<Paths>,
    /// Commit, branch or a..b
    r#ref: Option<String>,
    name: Option<String>,
    force: Option<bool>,
    cwd: Option<String>,
}

/// The answer of `vcs.worktree`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WorktreeOutput {
    /// The working trees there are now.
    worktrees: Vec<WorktreeEntry>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct WorktreeEntry {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
}

impl Action for Worktree {
    const NAME: &'static str = "worktree";
    const SUMMARY: &'static str = "list,add,remove";
    const EXAMPLE: &'static str = r#"{"op":"add","paths":"trees/fix","name":"fix-2"}"#;
    const WORST: Effect = Effect::Write;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = super::git::PATH_ALIASES;
    const HIDDEN: &'static [&'static str] = &["cwd", "ref", "name", "force"];
    type Input = WorktreeInput;
    type Output = WorktreeOutput;

    fn effect(&self, input: &WorktreeInput) -> Effect {
        input.op.unwrap_or_default().effect()
    }

    fn targets(&self, input: &WorktreeInput) -> Vec<Target> {
        input.paths.iter().flat_map(|Paths(paths)| paths).map(Target::write).collect()
    }

    async fn run(&self, call: &Call<'_>, input: WorktreeInput) -> Result<Answer<WorktreeOutput>, ToolError> {
        let git = Git::new(call, input.cwd.as_deref())?;
        let path = || match input.paths.as_ref().map(|Paths(paths)| paths.as_slice()) {
            Some([path]) => Ok(git.host().workspace.path().join(place::parse(path)?).into_os_string()),
            _ => Err(invalid("`paths` names one directory here")),
        };
        let force = input.force == Some(true);
        let mut arguments: Vec<OsString> = vec!["worktree".into()];
        match input.op.unwrap_or_default() {
            Op::List => arguments.clear(),
            Op::Add => {
                arguments.extend(["add".into(), "--no-track".into()]);
                if let Some(branch) = &input.name {
                    arguments.extend(["-b".into(), name("name", branch)?.into()]);
                } else if input.r#ref.is_none() {
                    arguments.push("--detach".into());
                }
                arguments.extend(["--".into(), path()?]);
                arguments.push(name("ref", input.r#ref.as_deref().unwrap_or("HEAD"))?.into());
            }
            Op::Remove => {
                arguments.push("remove".into());
                if force {
                    arguments.push("--force".into());
                }
                arguments.extend(["--".into(), path()?]);
            }
            other => return Err(other.unknown("list, add, remove")),
        }
        if !arguments.is_empty() {
            git.run(Access::Write, arguments, None).await?;
        }
        let text = git.text(Access::Read, ["worktree", "list", "--porcelain", "-z"]).await?;
        Ok(Answer::new(WorktreeOutput { worktrees: worktrees(&text) }).by("git"))
    }
}

fn worktrees(text: &str) -> Vec<WorktreeEntry> {
    let mut found: Vec<WorktreeEntry> = Vec::new();
    for record in text.split('\0') {
        match (record.split_once(' '), found.last_mut()) {
            (Some(("worktree", path)), _) => {
                found.push(WorktreeEntry { path: path.to_owned(), ..WorktreeEntry::default() });
            }
            (Some(("HEAD", commit)), Some(entry)) => entry.commit = Some(commit.to_owned()),
            (Some(("branch", branch)), Some(entry)) => {
                let short = branch.strip_prefix("refs/heads/").unwrap_or(branch);
                entry.branch = Some(short.to_owned());
            }
            _ => {}
        }
    }
    found
}
