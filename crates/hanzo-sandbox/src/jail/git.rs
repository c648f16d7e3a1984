//! Where git keeps what it executes. A command that can write `hooks` or `config` runs code outside the jail the next
//! time the user types `git status`.

use std::fs;
#[cfg(target_os = "linux")]
use std::path::Component;
use std::path::{Path, PathBuf};

use super::config::Protected;

/// The git directories of a workspace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct GitLayout {
    /// Git directories outside the workspace that git must write.
    pub(crate) writable: Vec<PathBuf>,
    /// What git executes or is redirected by.
    pub(crate) protected: Vec<Protected>,
}

/// Finds the git directories of `workspace`.
pub(crate) fn layout(workspace: &Path) -> GitLayout {
    let dot_git = workspace.join(".git");
    if dot_git.is_dir() {
        return GitLayout { writable: Vec::new(), protected: repository(&dot_git) };
    }
    if !dot_git.exists() {
        // One placeholder for the whole directory: with only `hooks` and `config` held, git would see a broken repository.
        return GitLayout { writable: Vec::new(), protected: vec![Protected::new(dot_git)] };
    }
    let mut out = GitLayout { writable: Vec::new(), protected: vec![Protected::new(&dot_git)] };
    let Some(git_dir) = linked_git_dir(workspace, &dot_git) else { return out };
    let common = fs::read_to_string(git_dir.join("commondir"))
        .ok()
        .and_then(|text| git_dir.join(text.trim_end()).canonicalize().ok());
    if let Some(common) = common {
        // A forged `.git` file in a hostile checkout must not make an arbitrary directory writable: a linked worktree's
        // directory lies in `<common>/worktrees`, and points back at this workspace.
        let points_back = fs::read_to_string(git_dir.join("gitdir"))
            .ok()
            .and_then(|text| Path::new(text.trim_end()).canonicalize().ok())
            .is_some_and(|back| dot_git.canonicalize().is_ok_and(|here| here == back));
        if points_back && git_dir.starts_with(common.join("worktrees")) && is_repository(&common) {
            out.protected.extend(repository(&common));
            out.writable = vec![common];
        }
    }
    out
}

fn linked_git_dir(workspace: &Path, dot_git: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(dot_git).ok()?;
    workspace.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()
}

fn is_repository(dir: &Path) -> bool {
    dir.join("HEAD").is_file() && dir.join("objects").is_dir() && dir.join("refs").is_dir()
}

/// What is executed from a repository directory, or redirects git to another: its own files, those of its linked worktrees
/// (another worktree of the same repository is the user's too) and of its submodules.
///
/// `commondir` names the directory that `config` and `hooks` are read from, so whoever writes it brings his own. Where it is
/// missing its neutral value holds the place, because git refuses to run when it cannot read it.
fn repository(git_dir: &Path) -> Vec<Protected> {
    let mut out = vec![
        Protected::new(git_dir.join("hooks")),
        Protected::file(git_dir.join("config"), ""),
        Protected::file(git_dir.join("config.worktree"), ""),
        Protected::file(git_dir.join("commondir"), ".\n"),
    ];
    for worktree in directories(&git_dir.join("worktrees")) {
        out.push(Protected::file(worktree.join("config.worktree"), ""));
        out.push(Protected::if_present(worktree.join("commondir")));
    }
    let mut pending = vec![(git_dir.join("modules"), 0)];
    while let Some((dir, depth)) = pending.pop() {
        for path in directories(&dir) {
            if is_repository(&path) {
                out.extend(repository(&path));
            } else if depth < 4 {
                pending.push((path, depth + 1)); // a submodule called `vendor/x` lives in `modules/vendor/x`
            }
        }
    }
    out
}

fn directories(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// `path` without `.` and `..`, by text alone.
#[cfg(target_os = "linux")]
pub(crate) fn lexically_clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forged_git_file_makes_nothing_writable() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        fs::create_dir_all(victim.join("objects")).unwrap();
        fs::create_dir_all(victim.join("refs")).unwrap();
        fs::write(victim.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::create_dir_all(victim.join("worktrees/x")).unwrap();
        fs::write(victim.join("worktrees/x/commondir"), "../..\n").unwrap();
        fs::write(victim.join("worktrees/x/gitdir"), "/elsewhere/.git\n").unwrap();
        let work = dir.path().join("work");
        fs::create_dir(&work).unwrap();
        fs::write(work.join(".git"), format!("gitdir: {}\n", victim.join("worktrees/x").display())).unwrap();
        assert_eq!(layout(&work).writable, Vec::<PathBuf>::new());

        fs::write(victim.join("worktrees/x/gitdir"), format!("{}\n", work.join(".git").display())).unwrap();
        let victim = victim.canonicalize().unwrap();
        let layout = layout(&work);
        assert_eq!(layout.writable, std::slice::from_ref(&victim));
        for name in ["hooks", "config", "commondir", "worktrees/x/commondir", "worktrees/x/config.worktree"] {
            assert!(layout.protected.iter().any(|protected| protected.path == victim.join(name)), "{name}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn dots_are_cleaned_by_text() {
        assert_eq!(lexically_clean(Path::new("/a/./b/../c")), Path::new("/a/c"));
    }
}
