//! Taking files back to a checkpoint.

use hanzo_protocol::primitives::ContentHash;
use serde::{Deserialize, Serialize};

use super::beneath::{Beneath, There};
use super::manifest::{Content, Manifest};
use super::{CheckpointLimits, FileChange, changes};
use crate::FileBlobs;

/// Which files to take back, and what to do about those that somebody else changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Only these, relative to the workspace, with `/`; all when absent.
    pub paths: Option<Vec<String>>,
    /// What to do with files that were changed after the newer checkpoint.
    pub changed_since: ChangedSince,
}

/// What happens to a file that is not as the newer checkpoint has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ChangedSince {
    /// It is left alone and reported.
    #[default]
    Leave,
    /// It is taken back as well. What it held is in the checkpoint made before restoring.
    Overwrite,
}

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// Files that are again what they were.
    pub written: Vec<String>,
    /// Files that did not exist then and are gone.
    pub removed: Vec<String>,
    /// What could not be undone, and why.
    pub kept: Vec<NotRestored>,
    /// The state just before, by which the restore itself can be undone.
    pub before: ContentHash,
}

/// A file that was not taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotRestored {
    /// The file.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// Whether files are taken back, or only told which would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Do,
    Tell,
}

pub(super) fn restore(
    inner: &super::Inner,
    to: &Manifest,
    since: &Manifest,
    options: &RestoreOptions,
    before: ContentHash,
    act: Act,
) -> std::io::Result<Restored> {
    let (workspace, blobs, limits) = (inner.workspace.as_path(), &inner.blobs, &inner.limits);
    let root = Beneath::open(workspace)?;
    let mut restored = Restored { written: Vec::new(), removed: Vec::new(), kept: Vec::new(), before };
    let wanted = |path: &str| options.paths.as_ref().is_none_or(|paths| paths.iter().any(|p| p == path));
    let mut changed = changes(to, since);
    // Removing first lets a directory become a file again; files that a link or directory replaced come after.
    changed.sort_by_key(|change| (to.files.contains_key(change.path()), change.path().to_owned()));
    for change in changed.iter().filter(|change| wanted(change.path())) {
        let path = change.path();
        let job = Job { root: &root, blobs, limits, path, to, since, overwrite: options.changed_since, act };
        match job.run() {
            Ok(Outcome::Written) => restored.written.push(path.to_owned()),
            Ok(Outcome::Removed) => {
                restored.removed.push(path.to_owned());
                if act == Act::Do {
                    remove_empty_parents(&root, path, to);
                }
            }
            Ok(Outcome::Already) => {}
            Ok(Outcome::Kept(reason)) => {
                restored.kept.push(NotRestored { path: path.to_owned(), reason: reason.to_owned() });
            }
            Err(error) => {
                restored.kept.push(NotRestored { path: path.to_owned(), reason: error.to_string() });
            }
        }
    }
    for left in since.left_out.iter().chain(&to.left_out) {
        let asked = options.paths.as_ref().is_some_and(|paths| paths.contains(&left.path));
        if asked {
            let reason = "the checkpoint does not have it".to_owned();
            restored.kept.push(NotRestored { path: left.path.clone(), reason });
        }
    }
    Ok(restored)
}

enum Outcome {
    Written,
    Removed,
    Already,
    Kept(&'static str),
}

struct Job<'j> {
    root: &'j Beneath,
    blobs: &'j FileBlobs,
    limits: &'j CheckpointLimits,
    path: &'j str,
    to: &'j Manifest,
    since: &'j Manifest,
    overwrite: ChangedSince,
    act: Act,
}

impl Job<'_> {
    fn run(&self) -> std::io::Result<Outcome> {
        let content =
            |manifest: &'_ Manifest| manifest.files.get(self.path).map(|entry| entry.content.clone());
        let (wanted, expected) = (content(self.to), content(self.since));
        let now = match self.root.look(self.path, self.limits.file_size)? {
            There::Nothing => None,
            There::File { bytes, mode } => Some(Content::File { hash: ContentHash::of(&bytes), mode }),
            There::Link { target } => Some(Content::Link { target }),
            There::Other => return Ok(Outcome::Kept("there is something else than a file now")),
        };
        if now == wanted {
            return Ok(Outcome::Already);
        }
        if now != expected && self.overwrite == ChangedSince::Leave {
            return Ok(Outcome::Kept("it was changed afterwards"));
        }
        if self.act == Act::Tell {
            return Ok(match wanted {
                None => Outcome::Removed,
                Some(Content::File { hash, .. }) if !self.blobs.has(&hash) => {
                    Outcome::Kept("its content is no longer kept")
                }
                Some(_) => Outcome::Written,
            });
        }
        match wanted {
            None => self.root.remove(self.path).map(|()| Outcome::Removed),
            Some(Content::Link { target }) => self.root.link(self.path, &target).map(|()| Outcome::Written),
            Some(Content::File { hash, mode }) => {
                let Some(bytes) = self.blobs.load(&hash)? else {
                    return Ok(Outcome::Kept("its content is no longer kept"));
                };
                self.root.write(self.path, &bytes, mode).map(|()| Outcome::Written)
            }
        }
    }
}

/// Removes directories that the removed file leaves empty, unless the checkpoint has files in them.
fn remove_empty_parents(root: &Beneath, path: &str, to: &Manifest) {
    let mut directory = path;
    while let Some((above, _)) = directory.rsplit_once('/') {
        let prefix = format!("{above}/");
        if to.files.keys().any(|path| path.starts_with(&prefix)) || !root.remove_empty(above) {
            return;
        }
        directory = above;
    }
}

/// The kinds of difference between two checkpoints, for [`Restored`] and for showing.
pub(super) fn change_of(path: &str, before: Option<&Content>, after: Option<&Content>) -> Option<FileChange> {
    let path = path.to_owned();
    match (before, after) {
        (None, Some(_)) => Some(FileChange::Created { path }),
        (Some(_), None) => Some(FileChange::Deleted { path }),
        (Some(before), Some(after)) if before != after => Some(FileChange::Modified { path }),
        _ => None,
    }
}
