//! `vcs.commit` and `vcs.checkout`.

use std::ffi::OsString;

use hanzo_protocol::envelope::{Intent, ToolError};
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::git::{Access, Git, PATH_ALIASES, Paths, invalid, name};
use super::status::standing;
use crate::contract::{Action, Answer, Call, Target};

/// Makes a commit.
pub(super) struct CommitAction;

/// The arguments of `vcs.commit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CommitInput {
    message: String,
    paths: Option<Paths>,
    /// Every tracked change
    all: Option<bool>,
    cwd: Option<String>,
}

/// Where the repository stands after a change.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct HeadOutput {
    /// The branch; absent when a commit is checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// The commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// What git said.
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
}

impl HeadOutput {
    async fn of(git: &Git<'_>, said: &str) -> Result<Self, ToolError> {
        let now = standing(git).await?;
        Ok(Self { branch: now.branch, commit: now.commit, text: said.trim().chars().take(2000).collect() })
    }
}

impl Action for CommitAction {
    const NAME: &'static str = "commit";
    const SUMMARY: &'static str = "staged, paths or all";
    const EXAMPLE: &'static str = r#"{"message":"Fix the parser","paths":["src/parse.rs"]}"#;
    const WORST: Effect = Effect::Write;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = PATH_ALIASES;
    const INTENTS: Option<&'static [Intent]> = Some(&[Intent::Apply, Intent::Ship]);
    const HIDDEN: &'static [&'static str] = &["cwd"];
    const QUIET: &'static [&'static str] = &["all"];
    type Input = CommitInput;
    type Output = HeadOutput;

    fn effect(&self, _: &CommitInput) -> Effect {
        Effect::Write
    }

    async fn run(&self, call: &Call<'_>, input: CommitInput) -> Result<Answer<HeadOutput>, ToolError> {
        if input.message.trim().is_empty() {
            return Err(invalid("`message` is empty"));
        }
        if input.message.contains('\0') {
            return Err(invalid("`message` contains a NUL byte"));
        }
        let git = Git::new(call, input.cwd.as_deref())?;
        let paths = git.pathspecs(input.paths.as_ref())?;
        if paths.len() == 1 {
            return Err(invalid("`paths` is an empty list; leave it out to commit what is staged"));
        }
        if !paths.is_empty() {
            // New files too: naming one is saying that it belongs to the commit.
            let mut add: Vec<OsString> = vec!["add".into(), "--all".into()];
            add.extend(paths.clone());
            git.run(Access::Write, add, None).await?;
        }
        let mut arguments: Vec<OsString> =
            ["commit", "--cleanup=whitespace", "--file=-", "--no-status"].map(Into::into).to_vec();
        if input.all == Some(true) {
            arguments.push("--all".into());
        }
        arguments.extend(paths);
        let said = git.run(Access::Write, arguments, Some(input.message.into_bytes())).await?;
        Ok(Answer::new(HeadOutput::of(&git, &String::from_utf8_lossy(&said)).await?).by("git"))
    }
}

/// Checks something out.
pub(super) struct Checkout;

/// The arguments of `vcs.checkout`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckoutInput {
    /// Commit, branch or a..b
    r#ref: Option<String>,
    /// As a new branch
    create: Option<bool>,
    paths: Option<Paths>,
    cwd: Option<String>,
}

impl Action for Checkout {
    const NAME: &'static str = "checkout";
    const SUMMARY: &'static str = "switch; with paths restore";
    const EXAMPLE: &'static str = r#"{"ref":"fix-1","create":true}"#;
    const WORST: Effect = Effect::Write;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] =
        &[("path", "paths"), ("files", "paths"), ("file", "paths"), ("branch", "ref")];
    const HIDDEN: &'static [&'static str] = &["cwd"];
    const QUIET: &'static [&'static str] = &["ref", "create"];
    type Input = CheckoutInput;
    type Output = HeadOutput;

    fn effect(&self, _: &CheckoutInput) -> Effect {
        Effect::Write
    }

    fn targets(&self, input: &CheckoutInput) -> Vec<Target> {
        input.paths.iter().flat_map(|Paths(paths)| paths).map(Target::write).collect()
    }

    async fn run(&self, call: &Call<'_>, input: CheckoutInput) -> Result<Answer<HeadOutput>, ToolError> {
        let git = Git::new(call, input.cwd.as_deref())?;
        let paths = git.pathspecs(input.paths.as_ref())?;
        let create = input.create == Some(true);
        let mut arguments: Vec<OsString> = vec!["checkout".into(), "--quiet".into()];
        match &input.r#ref {
            Some(revision) => {
                let revision = name("ref", revision)?;
                if create {
                    // Following a remote branch would be a change of git's configuration.
                    arguments.extend(["--no-track".into(), "-b".into()]);
                }
                arguments.push(revision.into());
            }
            None if paths.len() > 1 => {}
            None => return Err(invalid("`ref` is missing: the branch or commit to switch to")),
        }
        if create && !paths.is_empty() {
            return Err(invalid("`create` makes a branch and `paths` restores files; one of them has to go"));
        }
        if !create {
            arguments.extend(if paths.is_empty() { vec!["--".into()] } else { paths });
        }
        let ran = git.try_run(Access::Write, arguments, None).await?;
        if ran.code != 0 {
            return Err(super::git::failure(&ran));
        }
        Ok(Answer::new(HeadOutput::of(&git, &ran.stderr).await?).by("git"))
    }
}
