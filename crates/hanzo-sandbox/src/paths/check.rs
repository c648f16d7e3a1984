//! The lists, applied to the place that was really reached.

use std::{os::fd::BorrowedFd, path::Path};

use rustix::fs::Stat;

use super::{
    Workspace,
    error::{Access, PathError},
    resolve::{Entry, Found},
    roots::RootKind,
    sys,
};
use crate::protected::{PathSet, is_dot_git, is_git_control};

/// What a write does to the name it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A file's content comes into being or changes.
    Content,
    /// A directory is made, or an empty one removed.
    Directory,
    /// The name is taken away, with all that is beneath it.
    MoveAway,
    /// Something else arrives under this name, with all that is beneath it.
    MoveHere,
}

impl Workspace {
    pub(super) fn check_read(&self, path: &Path, found: &Found) -> Result<(), PathError> {
        let root = self.resolver.roots.get(found.root);
        if root.kind == RootKind::PrivateTmp {
            return Ok(());
        }
        let closed = |entry: &Path| PathError::Unreadable {
            path: path.to_owned(),
            entry: entry.to_owned(),
            access: Access::Read,
        };
        if let Some(entry) = self.unreadable.covering(&found.location) {
            return Err(closed(entry));
        }
        if is_secret_of_a_process(&found.location, found.near()) {
            return Err(closed(&found.location));
        }
        if let Some(entry) = other_name_of(&self.unreadable, &found.stat) {
            return Err(closed(&entry));
        }
        Ok(())
    }

    /// Checks a name about to be created, changed, moved or removed.
    pub(super) fn check_write(&self, path: &Path, entry: &Entry, change: Change) -> Result<(), PathError> {
        self.check_write_at(path, entry.root, &entry.location, change)
    }

    /// Checks an existing file about to be changed in place.
    pub(super) fn check_write_found(&self, path: &Path, found: &Found) -> Result<(), PathError> {
        self.check_write_at(path, found.root, &found.location, Change::Content)?;
        if self.resolver.roots.get(found.root).kind == RootKind::PrivateTmp {
            return Ok(());
        }
        match other_name_of(&self.protected, &found.stat) {
            Some(entry) => Err(PathError::Protected { path: path.to_owned(), entry }),
            None => Ok(()),
        }
    }

    fn check_write_at(
        &self,
        path: &Path,
        root: usize,
        location: &Path,
        change: Change,
    ) -> Result<(), PathError> {
        let root = self.resolver.roots.get(root);
        if root.kind == RootKind::PrivateTmp {
            return Ok(());
        }
        let refuse =
            |entry: &Path| Err(PathError::Protected { path: path.to_owned(), entry: entry.to_owned() });
        // Commands change the workspace between calls, so the links on the way to a protected path are looked at
        // again for every write.
        let protected = self.protected.resolved_again();
        if let Some(entry) = protected.covering(location) {
            return refuse(entry);
        }
        let case = protected.case();
        if is_git_control(location.strip_prefix(&root.real).unwrap_or(location), case) {
            return refuse(location);
        }
        let is_move = matches!(change, Change::MoveAway | Change::MoveHere);
        if is_move && let Some(held) = self.root_within(location) {
            return refuse(held);
        }
        match change {
            // A *file* called `.git` names the repository that git will use from here.
            Change::Content if is_dot_git(location, case) => return refuse(location),
            Change::Content | Change::Directory => {}
            Change::MoveAway => {
                if is_dot_git(location, case) {
                    return refuse(location);
                }
                let existing = protected.inside(location).filter(|entry| entry.symlink_metadata().is_ok());
                if let Some(entry) = existing {
                    return refuse(entry);
                }
            }
            // Preparing a directory elsewhere and moving it to a place where parts of it would be protected.
            Change::MoveHere => {
                if is_dot_git(location, case) {
                    return refuse(location);
                }
                if let Some(entry) = protected.inside(location) {
                    return refuse(entry);
                }
            }
        }
        Ok(())
    }
}

impl Workspace {
    /// A root that is `location` or beneath it: moving it would pull the ground from under the descriptor.
    fn root_within(&self, location: &Path) -> Option<&Path> {
        let ordinary = self.resolver.roots.0.iter().filter(|root| root.kind == RootKind::Ordinary);
        ordinary.map(|root| root.real.as_path()).find(|real| real.starts_with(location))
    }
}

/// Process directories in procfs show environments, memory and open files, those of this very process included;
/// the others are views of kernel memory or block for ever.
fn is_secret_of_a_process(location: &Path, near: BorrowedFd<'_>) -> bool {
    let named = location.components().any(|component| {
        let name = component.as_os_str().as_encoded_bytes();
        (!name.is_empty() && name.iter().all(u8::is_ascii_digit))
            || matches!(name, b"kcore" | b"kmsg" | b"vmcore" | b"kpagecgroup" | b"kpagecount")
    });
    // The name is looked at first: it costs nothing, and hardly any file has one of these.
    named && sys::is_procfs(near)
}

/// A file with several names may be a listed file under another one.
pub(super) fn other_name_of(set: &PathSet, stat: &Stat) -> Option<std::path::PathBuf> {
    use std::os::unix::fs::MetadataExt as _;

    if stat.st_nlink < 2 || !sys::file_type(stat).is_file() {
        return None;
    }
    let listed = set.entries().find(|entry| {
        entry.metadata().is_ok_and(|meta| {
            #[cfg_attr(target_os = "linux", expect(clippy::useless_conversion, reason = "differs by system"))]
            let device = u64::try_from(stat.st_dev).ok();
            meta.is_file() && meta.ino() == stat.st_ino && Some(meta.dev()) == device
        })
    });
    listed.map(Path::to_owned)
}
