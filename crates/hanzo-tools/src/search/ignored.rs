//! What `.gitignore` and `.ignore` files say, read through the path layer.
//!
//! As git and ripgrep have it: a deeper file goes before one above it, `.ignore` before `.gitignore`, and `.gitignore` counts
//! within a repository only and not across its border.

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hanzo_sandbox::paths::{OpenDir, Workspace};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// An ignore file is for people to read; a larger one is somebody's joke.
const MAX_IGNORE_FILE: u64 = 4 << 20;

/// The rules of a directory, and of those above it.
#[derive(Debug)]
pub(crate) struct Rules {
    parent: Option<Arc<Self>>,
    ignore: Option<Gitignore>,
    gitignore: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// A repository begins here.
    is_repository: bool,
    in_repository: bool,
    /// Neither these nor those above leave out anything.
    is_silent: bool,
}

impl Rules {
    /// The rules of the directories above `start`, outermost first.
    pub(crate) fn above(workspace: &Workspace, start: &Path) -> Option<Arc<Self>> {
        let mut rules = None;
        let ancestors: Vec<PathBuf> = start.ancestors().skip(1).map(Path::to_owned).collect();
        for directory in ancestors.iter().rev() {
            if let Ok(dir) = workspace.open_dir(directory) {
                let names = [".gitignore", ".ignore", ".git"];
                rules = Some(Self::of(workspace, &dir, rules, |name| names.contains(&name)));
            }
        }
        rules
    }

    /// The rules of `dir`; `has` says which of the names that matter are in it.
    pub(crate) fn of(
        workspace: &Workspace,
        dir: &OpenDir,
        parent: Option<Arc<Self>>,
        has: impl Fn(&str) -> bool,
    ) -> Arc<Self> {
        let load = |name: &str| {
            has(name).then(|| workspace.open_read_in(dir, OsStr::new(name)).ok()).flatten().and_then(|file| {
                let mut text = String::new();
                file.take(MAX_IGNORE_FILE).read_to_string(&mut text).ok()?;
                compile(dir.location(), &text)
            })
        };
        let is_repository = has(".git") && {
            // A file of that name is a worktree's or a submodule's.
            workspace.open_dir_in(dir, OsStr::new(".git")).is_ok()
                || workspace.open_read_in(dir, OsStr::new(".git")).is_ok()
        };
        let exclude = is_repository.then(|| exclude(workspace, dir)).flatten();
        let in_repository = is_repository || parent.as_ref().is_some_and(|parent| parent.in_repository);
        let ignore = load(".ignore");
        // Nobody would ask it: a repository further down begins anew.
        let gitignore = in_repository.then(|| load(".gitignore")).flatten();
        match parent {
            // Most directories say nothing.
            Some(parent) if ignore.is_none() && gitignore.is_none() && !is_repository => parent,
            parent => {
                let is_silent = ignore.is_none()
                    && gitignore.is_none()
                    && exclude.is_none()
                    && parent.as_ref().is_none_or(|parent| parent.is_silent);
                Arc::new(Self { parent, ignore, gitignore, exclude, is_repository, in_repository, is_silent })
            }
        }
    }

    /// Whether `name` in `directory`, an absolute path, is left out.
    pub(crate) fn leave_out(&self, directory: &Path, name: &OsStr, is_dir: bool) -> bool {
        if self.is_silent {
            return false;
        }
        let path = &directory.join(name);
        let mut own = Match::None;
        let mut git = Match::None;
        let mut exclude = Match::None;
        let mut inside = self.in_repository;
        let mut level = Some(self);
        while let Some(rules) = level {
            let look = |found: &mut Match<()>, file: &Option<Gitignore>| {
                if let (Match::None, Some(file)) = (&found, file) {
                    *found = file.matched(path, is_dir).map(|_| ());
                }
            };
            look(&mut own, &rules.ignore);
            if inside {
                look(&mut git, &rules.gitignore);
                look(&mut exclude, &rules.exclude);
            }
            if rules.is_repository {
                inside = false;
            }
            level = rules.parent.as_deref();
        }
        own.or(git).or(exclude).is_ignore()
    }
}

fn exclude(workspace: &Workspace, dir: &OpenDir) -> Option<Gitignore> {
    let git = workspace.open_dir_in(dir, OsStr::new(".git")).ok()?;
    let info = workspace.open_dir_in(&git, OsStr::new("info")).ok()?;
    let mut text = String::new();
    let file = workspace.open_read_in(&info, OsStr::new("exclude")).ok()?;
    file.take(MAX_IGNORE_FILE).read_to_string(&mut text).ok()?;
    compile(dir.location(), &text)
}

fn compile(directory: &Path, text: &str) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(directory);
    for line in text.lines() {
        // A line git would not understand either is passed over.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
