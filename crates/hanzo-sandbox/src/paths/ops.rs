//! The operations of a [`Workspace`].

use std::{
    ffi::OsString,
    fs::File,
    os::fd::AsFd as _,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use super::{
    Workspace,
    check::Change,
    error::{Access, PathError},
    rename,
    resolve::{ATTEMPTS, Entry, Found, Last, failed},
    roots::ALWAYS,
    sys,
};

/// How an existing or new file is opened for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WriteMode {
    /// The file must exist; nothing is cut off.
    Existing,
    /// Made if missing, emptied if not.
    Truncate,
    /// Made if missing; every write goes to the end.
    Append,
}

/// What a rename does when the new name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overwrite {
    /// Fails; the system decides in one step where the file system has hard links or conditional renames.
    Refuse,
    /// Replaces it.
    Replace,
}

/// What a name in a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// A plain file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, FIFO or socket.
    Special,
}

impl FileKind {
    fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            _ => Self::Special,
        }
    }
}

/// What is known about a file without opening it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// What it is.
    pub kind: FileKind,
    /// Its size in bytes.
    pub len: u64,
    /// Its permission bits.
    pub mode: u32,
    /// Its last change, in nanoseconds since 1970; negative before that.
    pub modified_ns: i128,
    /// Device and inode: two paths with the same pair are the same file.
    pub identity: (u64, u64),
    /// How many names it has.
    pub links: u64,
    /// Where it really is.
    pub location: PathBuf,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirEntry {
    /// The name, which need not be UTF-8.
    pub name: OsString,
    /// What it is; a link is not followed.
    pub kind: FileKind,
}

impl Workspace {
    /// Opens a plain file for reading.
    pub fn open_read(&self, path: &Path) -> Result<File, PathError> {
        self.open_found(path, Access::Read, OFlags::RDONLY, FileType::RegularFile).map(|(file, _)| file)
    }

    /// Opens a plain file for reading, with what is known about the very file that was opened.
    pub fn open_read_known(&self, path: &Path) -> Result<(File, Metadata), PathError> {
        let (file, found) = self.open_found(path, Access::Read, OFlags::RDONLY, FileType::RegularFile)?;
        Ok((file, metadata(&found.stat, found.location)))
    }

    /// Opens a plain file for writing, following links that stay inside.
    ///
    /// The content is touched only after the file has been checked. A file that could be left half-written is
    /// better served by [`replace`](Self::replace).
    pub fn open_write(&self, path: &Path, mode: WriteMode) -> Result<File, PathError> {
        let flags = match mode {
            WriteMode::Append => OFlags::WRONLY | OFlags::APPEND,
            WriteMode::Existing | WriteMode::Truncate => OFlags::WRONLY,
        };
        for _ in 0..ATTEMPTS {
            match self.open_found(path, Access::Write, flags, FileType::RegularFile) {
                Ok((file, _)) => {
                    if mode == WriteMode::Truncate {
                        rustix::fs::ftruncate(&file, 0).map_err(|errno| failed("truncate", path, errno))?;
                    }
                    return Ok(file);
                }
                Err(error)
                    if mode != WriteMode::Existing
                        && error.io_kind() == Some(std::io::ErrorKind::NotFound) => {}
                Err(error) => return Err(error),
            }
            // Following the last link here lets a link to a file that is still to be made work.
            let entry = self.resolver.entry(path, Access::Write, Last::Follow)?;
            match self.create_in(path, &entry, flags) {
                Err(error) if error.io_kind() == Some(std::io::ErrorKind::AlreadyExists) => {}
                answer => return answer,
            }
        }
        Err(PathError::Unstable { path: path.to_owned() })
    }

    /// Makes a new file; fails if the name is taken, by a link as well.
    pub fn create_new(&self, path: &Path) -> Result<File, PathError> {
        let entry = self.resolver.entry(path, Access::Write, Last::Keep)?;
        self.create_in(path, &entry, OFlags::WRONLY)
    }

    fn create_in(&self, path: &Path, entry: &Entry, flags: OFlags) -> Result<File, PathError> {
        self.check_write(path, entry, Change::Content)?;
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | ALWAYS;
        let name = last_name(path, entry)?;
        let fd = rustix::fs::openat(&entry.parent, name, flags, Mode::from_raw_mode(0o666))
            .map_err(|errno| failed("create", path, errno))?;
        Ok(File::from(fd))
    }

    /// Makes a directory.
    pub fn mkdir(&self, path: &Path) -> Result<(), PathError> {
        let entry = self.resolver.entry(path, Access::Write, Last::Keep)?;
        self.check_write(path, &entry, Change::Directory)?;
        rustix::fs::mkdirat(&entry.parent, last_name(path, &entry)?, Mode::from_raw_mode(0o777))
            .map_err(|errno| failed("create", path, errno))
    }

    /// Makes a directory and those above it that are missing.
    pub fn mkdir_all(&self, path: &Path) -> Result<(), PathError> {
        let error = match self.mkdir(path) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        match error.io_kind() {
            Some(std::io::ErrorKind::NotFound) => {
                let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
                    return Err(error);
                };
                self.mkdir_all(parent)?;
                match self.mkdir(path) {
                    Err(error) if error.io_kind() == Some(std::io::ErrorKind::AlreadyExists) => {
                        self.expect_directory(path, error)
                    }
                    answer => answer,
                }
            }
            Some(std::io::ErrorKind::AlreadyExists) => self.expect_directory(path, error),
            // `a/..` and `.` name directories that exist already, if `a` does.
            None if matches!(error, PathError::Invalid { .. }) => self.expect_directory(path, error),
            _ => Err(error),
        }
    }

    fn expect_directory(&self, path: &Path, error: PathError) -> Result<(), PathError> {
        match self.resolver.find(path, Access::Write, Last::Follow) {
            Ok(found) if sys::file_type(&found.stat).is_dir() => Ok(()),
            _ => Err(error),
        }
    }

    /// Moves a file or directory. The two ends may be in different roots; across file systems it fails.
    pub fn rename(&self, from: &Path, to: &Path, overwrite: Overwrite) -> Result<(), PathError> {
        let source = self.resolver.entry(from, Access::Write, Last::Keep)?;
        let target = self.resolver.entry(to, Access::Write, Last::Keep)?;
        self.check_write(from, &source, Change::MoveAway)?;
        self.check_write(to, &target, Change::MoveHere)?;
        let (old, new) = (last_name(from, &source)?, last_name(to, &target)?);
        let answer = match overwrite {
            Overwrite::Replace => rustix::fs::renameat(&source.parent, old, &target.parent, new),
            Overwrite::Refuse => rename::to_free_name(source.parent.as_fd(), old, target.parent.as_fd(), new),
        };
        answer.map_err(|errno| failed("rename", if errno == Errno::EXIST { to } else { from }, errno))
    }

    /// Removes a file, or a link itself.
    pub fn remove_file(&self, path: &Path) -> Result<(), PathError> {
        let entry = self.resolver.entry(path, Access::Write, Last::Keep)?;
        self.check_write(path, &entry, Change::MoveAway)?;
        rustix::fs::unlinkat(&entry.parent, last_name(path, &entry)?, AtFlags::empty())
            .map_err(|errno| failed("remove", path, errno))
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, path: &Path) -> Result<(), PathError> {
        let entry = self.resolver.entry(path, Access::Write, Last::Keep)?;
        self.check_write(path, &entry, Change::Directory)?;
        rustix::fs::unlinkat(&entry.parent, last_name(path, &entry)?, AtFlags::REMOVEDIR)
            .map_err(|errno| failed("remove", path, errno))
    }

    /// Looks at what a path leads to, links followed.
    pub fn stat(&self, path: &Path) -> Result<Metadata, PathError> {
        self.stat_with(path, Last::Follow)
    }

    /// Looks at the name itself, even if it is a link.
    pub fn stat_link(&self, path: &Path) -> Result<Metadata, PathError> {
        self.stat_with(path, Last::Keep)
    }

    fn stat_with(&self, path: &Path, last: Last) -> Result<Metadata, PathError> {
        let found = self.resolver.find(path, Access::Read, last)?;
        self.check_read(path, &found)?;
        Ok(metadata(&found.stat, found.location))
    }

    /// What a link says, without following it.
    pub fn read_link(&self, path: &Path) -> Result<PathBuf, PathError> {
        let found = self.resolver.find(path, Access::Read, Last::Keep)?;
        self.check_read(path, &found)?;
        let entry = self.resolver.entry(path, Access::Read, Last::Keep)?;
        let target = rustix::fs::readlinkat(&entry.parent, last_name(path, &entry)?, Vec::new())
            .map_err(|errno| failed("read link", path, errno))?;
        Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
    }

    /// Lists a directory, in the system's order.
    pub fn list_dir(&self, path: &Path) -> Result<ListDir, PathError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let (file, _) = self.open_found(path, Access::Read, flags, FileType::Directory)?;
        let dir = Dir::read_from(&file).map_err(|errno| failed("list", path, errno))?;
        Ok(ListDir { dir, file, path: path.to_owned() })
    }

    /// Where a path leads and whether `access` to it is allowed, without doing anything. For rule matching and
    /// for asking; the operation itself checks again.
    pub fn locate(&self, path: &Path, access: Access) -> Result<PathBuf, PathError> {
        match access {
            Access::Read => {
                let found = self.resolver.find(path, access, Last::Follow)?;
                self.check_read(path, &found)?;
                Ok(found.location)
            }
            Access::Write => {
                let entry = self.resolver.entry(path, access, Last::Follow)?;
                self.check_write(path, &entry, Change::Content)?;
                Ok(entry.location)
            }
        }
    }

    /// Finds, checks, and only then opens the very file that was checked.
    pub(super) fn open_found(
        &self,
        path: &Path,
        access: Access,
        flags: OFlags,
        want: FileType,
    ) -> Result<(File, Found), PathError> {
        for _ in 0..ATTEMPTS {
            let found = self.resolver.find(path, access, Last::Follow)?;
            match access {
                Access::Read => self.check_read(path, &found)?,
                Access::Write => self.check_write_found(path, &found)?,
            }
            expect_type(path, access, &found.stat, want)?;
            // Non-blocking in case the name has become a FIFO by now; the descriptor is then not used.
            let careful = if found.is_held() { OFlags::empty() } else { OFlags::NONBLOCK };
            match found.reopen(flags | careful | OFlags::NOCTTY) {
                Ok(Some(fd)) => {
                    if !careful.is_empty() {
                        let blocking = flags & OFlags::APPEND;
                        rustix::fs::fcntl_setfl(&fd, blocking)
                            .map_err(|errno| failed("open", path, errno))?;
                    }
                    return Ok((File::from(fd), found));
                }
                Ok(None) | Err(Errno::LOOP | Errno::NXIO) => {}
                Err(errno) => return Err(failed("open", path, errno)),
            }
        }
        Err(PathError::Unstable { path: path.to_owned() })
    }
}

pub(super) fn expect_type(path: &Path, access: Access, stat: &Stat, want: FileType) -> Result<(), PathError> {
    if let Some(kind) = sys::special_kind(stat) {
        return Err(PathError::Special { path: path.to_owned(), kind, access });
    }
    match (sys::file_type(stat), want) {
        (have, want) if have == want => Ok(()),
        (_, FileType::Directory) => Err(failed("list", path, Errno::NOTDIR)),
        _ => Err(failed(if access == Access::Read { "read" } else { "write" }, path, Errno::ISDIR)),
    }
}

pub(super) fn last_name<'a>(path: &Path, entry: &'a Entry) -> Result<&'a OsString, PathError> {
    entry.name.as_ref().ok_or_else(|| PathError::Invalid {
        path: path.to_owned(),
        reason: "it names a directory as a whole, not an entry in one",
    })
}

#[cfg_attr(target_os = "linux", expect(clippy::useless_conversion, reason = "the types differ by system"))]
pub(super) fn metadata(stat: &Stat, location: PathBuf) -> Metadata {
    Metadata {
        kind: FileKind::of(sys::file_type(stat)),
        len: u64::try_from(stat.st_size).unwrap_or(0),
        mode: u32::from(stat.st_mode) & 0o7777,
        modified_ns: i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec),
        identity: (u64::try_from(stat.st_dev).unwrap_or(0), stat.st_ino),
        links: u64::from(stat.st_nlink),
        location,
    }
}

/// The entries of a directory, without `.` and `..`.
#[derive(Debug)]
pub struct ListDir {
    dir: Dir,
    file: File,
    path: PathBuf,
}

impl ListDir {
    pub(super) fn of(file: &File, path: &Path) -> Result<Self, PathError> {
        let dir = Dir::read_from(file).map_err(|errno| failed("list", path, errno))?;
        let file = file.try_clone().map_err(|source| PathError::Io {
            action: "list",
            path: path.to_owned(),
            source,
        })?;
        Ok(Self { dir, file, path: path.to_owned() })
    }
}

impl Iterator for ListDir {
    type Item = Result<DirEntry, PathError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.dir.next()? {
                Ok(entry) => entry,
                Err(errno) => return Some(Err(failed("list", &self.path, errno))),
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => {
                    match rustix::fs::statat(&self.file, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) => sys::file_type(&stat),
                        Err(Errno::NOENT) => continue,
                        Err(errno) => return Some(Err(failed("list", &self.path, errno))),
                    }
                }
                known => known,
            };
            let name = std::ffi::OsStr::from_bytes(name).to_owned();
            return Some(Ok(DirEntry { name, kind: FileKind::of(kind) }));
        }
    }
}
