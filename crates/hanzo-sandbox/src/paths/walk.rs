//! Going through a directory tree on held descriptors: each directory is opened once, from the one above it, and files from
//! the directory they were listed in. No link is followed on the way, so nothing leads out, and there is no path to swap.

use std::{
    ffi::OsStr,
    fs::File,
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::{
    Workspace,
    check::other_name_of,
    error::{Access, PathError},
    ops::{DirEntry, ListDir, Metadata, expect_type, metadata},
    resolve::failed,
    roots::{ALWAYS, RootKind},
    sys,
};

/// A directory, held open.
#[derive(Debug)]
pub struct OpenDir {
    file: File,
    location: PathBuf,
    listed: Listed,
}

/// What the lists say about the names in a directory that may itself be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    /// Nothing: it is the jail's private `/tmp`.
    Private,
    /// Nothing by name: no listed path is beneath it. Most directories are like that, and their names need no comparing.
    Nowhere,
    /// Some of what is beneath it may be closed.
    Beneath,
}

impl OpenDir {
    /// Where it was when it was opened.
    pub fn location(&self) -> &Path {
        &self.location
    }

    /// Its entries, in the system's order.
    pub fn entries(&self) -> Result<impl Iterator<Item = Result<DirEntry, PathError>> + use<>, PathError> {
        ListDir::of(&self.file, &self.location)
    }
}

impl Workspace {
    /// Opens a directory to go through, links followed.
    pub fn open_dir(&self, path: &Path) -> Result<OpenDir, PathError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let (file, found) = self.open_found(path, Access::Read, flags, FileType::Directory)?;
        let listed = match self.resolver.roots.get(found.root).kind {
            RootKind::PrivateTmp => Listed::Private,
            _ => self.listed_beneath(&found.location),
        };
        Ok(OpenDir { file, location: found.location, listed })
    }

    /// Opens a directory listed in `dir`; a link is refused.
    pub fn open_dir_in(&self, dir: &OpenDir, name: &OsStr) -> Result<OpenDir, PathError> {
        let location = dir.location.join(name);
        self.check_listed(dir, &location)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | ALWAYS;
        let fd = rustix::fs::openat(&dir.file, name, flags, Mode::empty())
            .map_err(|errno| failed("list", &location, errno))?;
        // Processes' directories hold their secrets, and a mount of them can be anywhere.
        if sys::is_procfs(fd.as_fd()) && !sys::is_procfs(dir.file.as_fd()) {
            return Err(PathError::Unreadable {
                path: location.clone(),
                entry: location,
                access: Access::Read,
            });
        }
        let listed = match dir.listed {
            Listed::Beneath => self.listed_beneath(&location),
            nothing => nothing,
        };
        Ok(OpenDir { file: File::from(fd), location, listed })
    }

    fn listed_beneath(&self, location: &Path) -> Listed {
        match self.unreadable.inside(location) {
            Some(_) => Listed::Beneath,
            None => Listed::Nowhere,
        }
    }

    /// Looks at something listed in `dir` without opening it; a link is not followed.
    pub fn stat_in(&self, dir: &OpenDir, name: &OsStr) -> Result<Metadata, PathError> {
        let location = dir.location.join(name);
        self.check_listed(dir, &location)?;
        let stat = rustix::fs::statat(&dir.file, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| failed("look at", &location, errno))?;
        Ok(metadata(&stat, location))
    }

    /// Opens a plain file listed in `dir` for reading; a link or a special file is refused.
    pub fn open_read_in(&self, dir: &OpenDir, name: &OsStr) -> Result<File, PathError> {
        let location = dir.location.join(name);
        self.check_listed(dir, &location)?;
        // Non-blocking in case the name has become a FIFO since it was listed.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | ALWAYS;
        let fd = rustix::fs::openat(&dir.file, name, flags, Mode::empty())
            .map_err(|errno| failed("open", &location, errno))?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| failed("open", &location, errno))?;
        expect_type(&location, Access::Read, &stat, FileType::RegularFile)?;
        if dir.listed != Listed::Private
            && let Some(entry) = other_name_of(&self.unreadable, &stat)
        {
            return Err(PathError::Unreadable { path: location, entry, access: Access::Read });
        }
        Ok(File::from(fd))
    }

    fn check_listed(&self, dir: &OpenDir, location: &Path) -> Result<(), PathError> {
        if dir.listed != Listed::Beneath {
            return Ok(());
        }
        match self.unreadable.covering(location) {
            Some(entry) => Err(PathError::Unreadable {
                path: location.to_owned(),
                entry: entry.to_owned(),
                access: Access::Read,
            }),
            None => Ok(()),
        }
    }
}
