//! The few places where systems differ.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::{AsFd as _, AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use super::{error::SpecialKind, roots::ALWAYS};

/// A directory to go through: only search permission is needed where the system can say so.
#[cfg(target_os = "linux")]
pub(super) const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(ALWAYS);
/// A directory to go through.
#[cfg(not(target_os = "linux"))]
pub(super) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(ALWAYS);

/// A file to examine without opening its content.
#[cfg(target_os = "linux")]
pub(super) const PATH_ONLY: OFlags = OFlags::PATH;
/// Never used without `openat2`.
#[cfg(not(target_os = "linux"))]
pub(super) const PATH_ONLY: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// How much of a large file is handed to the disk at a time.
const PIECE: usize = 1 << 20;

/// Writes all of it, and has the disk begin with what is written while the rest still is: flushing ten megabytes takes
/// longer than writing them.
pub(super) fn write_ahead(file: &mut File, content: &[&[u8]]) -> io::Result<()> {
    let mut at = 0;
    for piece in content {
        let mut rest = *piece;
        while !rest.is_empty() {
            // Up to the next whole piece of the file: a page that the disk has already would be written again.
            let (now, later) = rest.split_at(rest.len().min(PIECE - at % PIECE));
            file.write_all(now)?;
            at += now.len();
            rest = later;
            #[cfg(target_os = "linux")]
            if at.is_multiple_of(PIECE) {
                crate::jail::begin_writeback(file.as_fd(), (at - PIECE) as u64, PIECE as u64);
            }
        }
    }
    Ok(())
}

/// Where the kernel says a descriptor is, now. `None` without `/proc`, or when there is no such place.
#[cfg(target_os = "linux")]
pub(super) fn descriptor_path(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    let path = std::fs::read_link(proc_name(fd)).ok()?;
    path.is_absolute().then_some(path)
}

#[cfg(target_vendor = "apple")]
pub(super) fn descriptor_path(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let path = rustix::fs::getpath(fd).ok()?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(path.into_bytes())))
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(super) fn descriptor_path(_fd: BorrowedFd<'_>) -> Option<PathBuf> {
    None
}

fn proc_name(fd: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Opens the very file behind a path-only descriptor, for content this time.
pub(super) fn reopen(fd: BorrowedFd<'_>, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(CWD, proc_name(fd), flags | ALWAYS, Mode::empty())
}

/// `openat2` beneath `root`. With `whole_system` the root is `/` and absolute links stay within it.
#[cfg(target_os = "linux")]
pub(super) fn open_beneath(
    root: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    whole_system: bool,
) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;

    /// The kernel answers EAGAIN when a rename raced with a `..`; under a busy renamer that can go on.
    const ATTEMPTS: usize = 64;
    let scope = if whole_system { ResolveFlags::IN_ROOT } else { ResolveFlags::BENEATH };
    for _ in 0..ATTEMPTS {
        match rustix::fs::openat2(
            root,
            path,
            flags | ALWAYS,
            Mode::empty(),
            scope | ResolveFlags::NO_MAGICLINKS,
        ) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            answer => return answer,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn open_beneath(
    _root: BorrowedFd<'_>,
    _path: &Path,
    _flags: OFlags,
    _whole_system: bool,
) -> rustix::io::Result<OwnedFd> {
    Err(Errno::NOSYS)
}

/// Whether a descriptor is on procfs.
#[cfg(target_os = "linux")]
pub(super) fn is_procfs(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|stat| stat.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_procfs(_fd: BorrowedFd<'_>) -> bool {
    false
}

/// Whether links in this directory are the kernel's own. The links at the top of procfs (`self`, `mounts`) are
/// ordinary text; those in the directories of processes jump.
pub(super) fn has_magic_links(dir: BorrowedFd<'_>) -> bool {
    const PROC_ROOT_INODE: u64 = 1;
    is_procfs(dir) && rustix::fs::fstat(dir).is_ok_and(|stat| stat.st_ino != PROC_ROOT_INODE)
}

/// What a file is, when it is not something a file tool handles.
pub(super) fn special_kind(stat: &Stat) -> Option<SpecialKind> {
    match file_type(stat) {
        FileType::RegularFile | FileType::Directory | FileType::Symlink => None,
        FileType::Fifo => Some(SpecialKind::Fifo),
        FileType::Socket => Some(SpecialKind::Socket),
        FileType::CharacterDevice | FileType::BlockDevice => Some(SpecialKind::Device),
        FileType::Unknown => Some(SpecialKind::Other),
    }
}

pub(super) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether two answers are about the same file.
pub(super) fn is_same_file(left: &Stat, right: &Stat) -> bool {
    left.st_dev == right.st_dev && left.st_ino == right.st_ino
}
