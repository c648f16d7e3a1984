//! Replacing a file's content so that every moment shows either the old content or the new.

use std::{
    ffi::OsString,
    fs::File,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    os::fd::AsFd as _,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access as Permission, AtFlags, FileType, Mode, OFlags},
    io::Errno,
};

use super::{
    Workspace,
    check::Change,
    error::{Access, PathError},
    ops::{expect_type, last_name},
    rename,
    resolve::{ATTEMPTS, Entry, Last, failed},
    roots::ALWAYS,
    sys,
};

/// New content, complete and on disk under a temporary name beside the file it will replace.
///
/// Several can be staged and then committed one after the other. Dropping one without committing removes it.
#[derive(Debug)]
#[must_use = "nothing is replaced until it is committed"]
pub struct Staged {
    entry: Entry,
    name: OsString,
    temporary: OsString,
    path: PathBuf,
    is_committed: bool,
}

impl Workspace {
    /// Replaces the content of a file, or makes it: a temporary file in the same directory, flushed, then renamed.
    ///
    /// The permission bits stay; set-uid and set-gid bits do not, nor do extended attributes and the identity of
    /// the file (other hard links keep the old content). A link is followed, so it keeps being a link.
    pub fn replace(&self, path: &Path, content: &[u8]) -> Result<(), PathError> {
        self.stage(path, content)?.commit()
    }

    /// The first half of [`replace`](Self::replace).
    pub fn stage(&self, path: &Path, content: &[u8]) -> Result<Staged, PathError> {
        self.stage_pieces(path, &[content])
    }

    /// The same with content that is not in one piece.
    pub fn stage_pieces(&self, path: &Path, content: &[&[u8]]) -> Result<Staged, PathError> {
        for _ in 0..ATTEMPTS {
            let entry = self.resolver.entry(path, Access::Write, Last::Follow)?;
            self.check_write(path, &entry, Change::Content)?;
            let name = last_name(path, &entry)?.clone();
            let mode = match rustix::fs::statat(&entry.parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if sys::file_type(&stat).is_symlink() => continue,
                Ok(stat) => {
                    expect_type(path, Access::Write, &stat, FileType::RegularFile)?;
                    // A rename needs no permission on the file, but somebody made it read-only on purpose.
                    rustix::fs::accessat(&entry.parent, &name, Permission::WRITE_OK, AtFlags::empty())
                        .map_err(|errno| failed("write", path, errno))?;
                    Some(Mode::from_raw_mode(stat.st_mode & 0o777))
                }
                Err(Errno::NOENT) => None,
                Err(errno) => return Err(failed("write", path, errno)),
            };
            return stage_in(path, entry, name, mode, content);
        }
        Err(PathError::Unstable { path: path.to_owned() })
    }
}

fn stage_in(
    path: &Path,
    entry: Entry,
    name: OsString,
    mode: Option<Mode>,
    content: &[&[u8]],
) -> Result<Staged, PathError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | ALWAYS;
    // Private until it is complete when it replaces a file whose mode is known; a new file gets the user's umask.
    let first_mode = if mode.is_some() { 0o600 } else { 0o666 };
    for _ in 0..ATTEMPTS {
        let temporary = temporary_name();
        let fd = match rustix::fs::openat(&entry.parent, &temporary, flags, Mode::from_raw_mode(first_mode)) {
            Ok(fd) => fd,
            Err(Errno::EXIST) => continue,
            Err(errno) => return Err(failed("write", path, errno)),
        };
        let staged = Staged { entry, name, temporary, path: path.to_owned(), is_committed: false };
        let mut file = File::from(fd);
        let written = sys::write_ahead(&mut file, content).and_then(|()| {
            if let Some(mode) = mode {
                rustix::fs::fchmod(&file, mode)?;
            }
            file.sync_all()
        });
        // On failure `staged` is dropped here, which removes the temporary file.
        return match written {
            Ok(()) => Ok(staged),
            Err(source) => Err(PathError::Io { action: "write", path: path.to_owned(), source }),
        };
    }
    Err(PathError::Unstable { path: path.to_owned() })
}

impl Staged {
    /// Puts the new content in place and flushes the directory.
    pub fn commit(mut self) -> Result<(), PathError> {
        rustix::fs::renameat(&self.entry.parent, &self.temporary, &self.entry.parent, &self.name)
            .map_err(|errno| failed("write", &self.path, errno))?;
        self.is_committed = true;
        self.flush_directory()
    }

    /// Puts the new content in place if the name is free, and fails if it is not; the system decides in one step. The directory
    /// is not flushed.
    pub fn commit_new(&mut self) -> Result<(), PathError> {
        let parent = self.entry.parent.as_fd();
        rename::to_free_name(parent, &self.temporary, parent, &self.name)
            .map_err(|errno| failed("create", &self.path, errno))?;
        self.is_committed = true;
        Ok(())
    }

    /// Swaps the new content with what is there, in one step: the temporary name then holds the old file, to be compared with
    /// what the caller took it for. A second call swaps back. Dropping removes whatever the temporary name holds. The
    /// directory is not flushed.
    ///
    /// File systems that cannot swap get the same result in several steps. The name shows old or new content at every moment
    /// there too, but a file that another program *renames* to it within the last microseconds is lost unseen; one it writes
    /// in place is still seen where there are hard links.
    pub fn exchange(&self) -> Result<(), PathError> {
        rename::exchange(self.entry.parent.as_fd(), &self.temporary, &self.name)
            .map_err(|errno| failed("write", &self.path, errno))
    }

    /// Leaves the temporary name as it is when this is dropped: a journal knows of it.
    pub fn leave(mut self) {
        self.is_committed = true;
    }

    /// Flushes the directory the file is in.
    pub fn flush_directory(&self) -> Result<(), PathError> {
        // A path-only descriptor cannot be flushed. A directory that may be searched but not listed cannot be
        // opened for it; the rename has happened all the same.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | ALWAYS;
        match rustix::fs::openat(&self.entry.parent, ".", flags, Mode::empty()) {
            Ok(dir) => match rustix::fs::fsync(&dir) {
                // Some network and user-space file systems have no such operation.
                Ok(()) | Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(()),
                Err(errno) => Err(failed("flush the directory of", &self.path, errno)),
            },
            Err(_) => Ok(()),
        }
    }

    /// Where the file is or will be.
    pub fn location(&self) -> &Path {
        &self.entry.location
    }

    /// The temporary name, for a journal.
    pub fn temporary(&self) -> PathBuf {
        self.entry.location.with_file_name(&self.temporary)
    }

    /// Where a swap in several steps keeps the old file on its way to `temporary`; a process that dies in between leaves it
    /// there.
    pub fn on_its_way(temporary: &Path) -> PathBuf {
        temporary.with_file_name(rename::kept_name(temporary.file_name().unwrap_or_default()))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_committed {
            // Nothing can be done about a failure here; the name says whose it is.
            let _ = rustix::fs::unlinkat(&self.entry.parent, &self.temporary, AtFlags::empty());
        }
    }
}

/// Unguessable enough that nobody occupies it in advance; `O_EXCL` does the rest.
fn temporary_name() -> OsString {
    let random = RandomState::new().build_hasher().finish();
    OsString::from(format!(".hanzo-tmp-{random:016x}"))
}
