//! Changing files below a directory and nowhere else: no component of a path is followed when it is a symbolic link, also when
//! somebody puts one there at that moment.

#[cfg(unix)]
pub(super) use self::unix::Beneath;

#[cfg(not(unix))]
pub(super) use self::other::Beneath;

#[cfg(unix)]
mod unix {
    use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode};
    use uuid::Uuid;

    const DIRECTORY: OFlags =
        OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::RDONLY).union(OFlags::CLOEXEC);

    /// A directory below which files are changed.
    pub struct Beneath {
        root: OwnedFd,
    }

    /// What is at a path.
    pub enum There {
        Nothing,
        File { bytes: Vec<u8>, mode: u32 },
        Link { target: String },
        Other,
    }

    impl Beneath {
        pub fn open(root: &Path) -> Result<Self> {
            let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
            Ok(Self { root: rustix::fs::openat(CWD, root, flags, Mode::empty())? })
        }

        /// The directory a path is in, and its last component.
        fn parent<'p>(&self, path: &'p str, make: bool) -> Result<(OwnedFd, &'p str)> {
            let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
            let plain = |part: &str| !matches!(part, "" | "." | ".." | ".git");
            if !plain(name) || !(directories.is_empty() || directories.split('/').all(plain)) {
                return Err(Error::new(ErrorKind::InvalidInput, "not a path below the workspace"));
            }
            let mut at = self.root.try_clone()?;
            for part in directories.split('/').filter(|part| !part.is_empty()) {
                at = match rustix::fs::openat(&at, part, DIRECTORY, Mode::empty()) {
                    Err(rustix::io::Errno::NOENT) if make => {
                        rustix::fs::mkdirat(&at, part, Mode::from_raw_mode(0o777))?;
                        rustix::fs::openat(&at, part, DIRECTORY, Mode::empty())?
                    }
                    opened => opened?,
                };
            }
            Ok((at, name))
        }

        /// What is at `path`, with at most `most` bytes of it.
        pub fn look(&self, path: &str, most: u64) -> Result<There> {
            let (parent, name) = match self.parent(path, false) {
                Err(error) if matches!(error.kind(), ErrorKind::NotFound) => return Ok(There::Nothing),
                found => found?,
            };
            let stat = match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(rustix::io::Errno::NOENT) => return Ok(There::Nothing),
                stat => stat?,
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(&parent, name, Vec::new())?;
                    Ok(target.into_string().map_or(There::Other, |target| There::Link { target }))
                }
                FileType::RegularFile => {
                    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                    let file = std::fs::File::from(rustix::fs::openat(&parent, name, flags, Mode::empty())?);
                    let mut bytes = Vec::new();
                    file.take(most + 1).read_to_end(&mut bytes)?;
                    #[cfg_attr(
                        target_os = "linux",
                        expect(clippy::useless_conversion, reason = "narrower elsewhere")
                    )]
                    Ok(There::File { bytes, mode: u32::from(stat.st_mode) & 0o7777 })
                }
                _ => Ok(There::Other),
            }
        }

        /// Puts a file at `path`, whole or not at all, with the directories it needs.
        pub fn write(&self, path: &str, bytes: &[u8], mode: u32) -> Result<()> {
            let (parent, name) = self.parent(path, true)?;
            let unfinished = unfinished(name);
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&parent, unfinished.as_str(), flags, Mode::from_raw_mode(0o600))?;
            let mut file = std::fs::File::from(file);
            let written = file.write_all(bytes).and_then(|()| {
                let mode = RawMode::try_from(mode).unwrap_or(0o644);
                rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
                Ok(rustix::fs::renameat(&parent, unfinished.as_str(), &parent, name)?)
            });
            if written.is_err() {
                let _ = rustix::fs::unlinkat(&parent, unfinished.as_str(), AtFlags::empty());
            }
            written
        }

        /// Puts a symbolic link at `path`.
        pub fn link(&self, path: &str, target: &str) -> Result<()> {
            let (parent, name) = self.parent(path, true)?;
            let unfinished = unfinished(name);
            rustix::fs::symlinkat(target, &parent, unfinished.as_str())?;
            let placed = rustix::fs::renameat(&parent, unfinished.as_str(), &parent, name);
            if placed.is_err() {
                let _ = rustix::fs::unlinkat(&parent, unfinished.as_str(), AtFlags::empty());
            }
            Ok(placed?)
        }

        /// Removes the file or link at `path`.
        pub fn remove(&self, path: &str) -> Result<()> {
            let (parent, name) = self.parent(path, false)?;
            Ok(rustix::fs::unlinkat(&parent, name, AtFlags::empty())?)
        }

        /// Removes the directory at `path` if it is empty; whether it did.
        pub fn remove_empty(&self, path: &str) -> bool {
            self.parent(path, false)
                .is_ok_and(|(parent, name)| rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).is_ok())
        }
    }

    fn unfinished(name: &str) -> String {
        // Names are at most 255 bytes on most file systems.
        format!(".{}.{}", crate::text::cut(name, 100), Uuid::now_v7().simple())
    }
}

#[cfg(not(unix))]
mod other {
    use std::fs;
    use std::io::{Error, ErrorKind, Result};
    use std::path::{Path, PathBuf};

    /// A directory below which files are changed.
    pub struct Beneath {
        root: PathBuf,
    }

    /// What is at a path.
    pub enum There {
        Nothing,
        File { bytes: Vec<u8>, mode: u32 },
        Link { target: String },
        Other,
    }

    impl Beneath {
        pub fn open(root: &Path) -> Result<Self> {
            Ok(Self { root: root.canonicalize()? })
        }

        fn place(&self, path: &str, make: bool) -> Result<PathBuf> {
            let plain = |part: &str| !matches!(part, "" | "." | ".." | ".git") && !part.contains(['\\', ':']);
            if !path.split('/').all(plain) {
                return Err(Error::new(ErrorKind::InvalidInput, "not a path below the workspace"));
            }
            let mut at = self.root.clone();
            let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
            for part in directories.split('/').filter(|part| !part.is_empty()) {
                at.push(part);
                match fs::symlink_metadata(&at) {
                    Ok(meta) if meta.is_dir() => {}
                    Ok(_) => return Err(Error::new(ErrorKind::NotADirectory, "a link is in the way")),
                    Err(error) if make && error.kind() == ErrorKind::NotFound => fs::create_dir(&at)?,
                    Err(error) => return Err(error),
                }
            }
            Ok(at.join(name))
        }

        pub fn look(&self, path: &str, _: u64) -> Result<There> {
            let place = match self.place(path, false) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(There::Nothing),
                place => place?,
            };
            match fs::symlink_metadata(&place) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(There::Nothing),
                Err(error) => Err(error),
                Ok(meta) if meta.is_file() => Ok(There::File { bytes: fs::read(place)?, mode: 0o644 }),
                Ok(meta) if meta.is_symlink() => {
                    let target = fs::read_link(place)?;
                    Ok(target.to_str().map_or(There::Other, |target| There::Link { target: target.into() }))
                }
                Ok(_) => Ok(There::Other),
            }
        }

        pub fn write(&self, path: &str, bytes: &[u8], _: u32) -> Result<()> {
            let place = self.place(path, true)?;
            let mut name = place.clone().into_os_string();
            name.push(".unfinished");
            fs::write(&name, bytes)?;
            fs::rename(name, place)
        }

        pub fn link(&self, _: &str, _: &str) -> Result<()> {
            Err(ErrorKind::Unsupported.into())
        }

        pub fn remove(&self, path: &str) -> Result<()> {
            fs::remove_file(self.place(path, false)?)
        }

        pub fn remove_empty(&self, path: &str) -> bool {
            self.place(path, false).is_ok_and(|place| fs::remove_dir(place).is_ok())
        }
    }
}

#[cfg(unix)]
pub(super) use self::unix::There;

#[cfg(not(unix))]
pub(super) use self::other::There;
