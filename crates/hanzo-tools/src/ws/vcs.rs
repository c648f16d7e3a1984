//! Which version control a directory is under, from its files alone: no program is started for a look.

use std::path::{Path, PathBuf};

use hanzo_sandbox::paths::{FileKind, Workspace};
use schemars::JsonSchema;
use serde::Serialize;

use crate::project::manifest;

/// A repository.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Repository {
    pub(super) kind: &'static str,
    /// Its top directory.
    root: String,
    /// The branch that is checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
}

/// The repository `directory` is in.
pub(super) fn find(workspace: &Workspace, directory: &Path) -> Option<Repository> {
    let kinds = [(".jj", "jj"), (".git", "git"), (".hg", "hg"), (".svn", "svn")];
    directory.ancestors().find_map(|top| {
        let is_there = |name: &str| workspace.stat_link(&top.join(name)).is_ok();
        let (_, kind) = kinds.iter().find(|(name, _)| is_there(name))?;
        let branch = if *kind == "git" { branch(workspace, top) } else { None };
        Some(Repository { kind, root: top.display().to_string(), branch })
    })
}

fn branch(workspace: &Workspace, top: &Path) -> Option<String> {
    let git = top.join(".git");
    let is_directory = workspace.stat(&git).is_ok_and(|found| found.kind == FileKind::Directory);
    // In a worktree it is a file that says where it is.
    let git = if is_directory {
        git
    } else {
        let text = manifest(workspace, &git)?;
        top.join(PathBuf::from(text.strip_prefix("gitdir:")?.trim()))
    };
    let head = manifest(workspace, &git.join("HEAD"))?;
    Some(head.strip_prefix("ref: refs/heads/")?.trim().to_owned())
}
