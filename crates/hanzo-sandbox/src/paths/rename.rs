//! Renames with conditions, also where the file system has none.
//!
//! `RENAME_NOREPLACE` and `RENAME_EXCHANGE` are known to ext4, XFS, btrfs and tmpfs, and not to NFS, most FUSE file systems
//! and some network shares. What is done there instead is as close as plain calls come, and says where it is not the same.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::roots::ALWAYS;
use super::sys;

/// Whether the file system, or the kernel, does not know what it was asked for.
fn is_unknown(errno: Errno) -> bool {
    // Where the flag is unknown the answer is EINVAL, which other mistakes have too; those fail again below.
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

/// Whether the file system has no hard links, or not to this file.
fn is_unlinkable(errno: Errno) -> bool {
    matches!(errno, Errno::PERM | Errno::MLINK | Errno::ACCESS) || is_unknown(errno)
}

/// Renames to a name that must be free; `EXIST` when it is not.
pub(super) fn to_free_name(
    from_dir: BorrowedFd<'_>,
    from: &OsStr,
    to_dir: BorrowedFd<'_>,
    to: &OsStr,
) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(from_dir, from, to_dir, to, RenameFlags::NOREPLACE) {
        Err(errno) if is_unknown(errno) => {}
        answer => return answer,
    }
    let stat = rustix::fs::statat(from_dir, from, AtFlags::SYMLINK_NOFOLLOW)?;
    if sys::file_type(&stat).is_dir() {
        // Making the directory takes the name, and a directory may replace an empty one.
        rustix::fs::mkdirat(to_dir, to, Mode::from_raw_mode(0o700))?;
        return rustix::fs::renameat(from_dir, from, to_dir, to).inspect_err(|_| {
            let _ = rustix::fs::unlinkat(to_dir, to, AtFlags::REMOVEDIR);
        });
    }
    match rustix::fs::linkat(from_dir, from, to_dir, to, AtFlags::empty()) {
        // A second name that must be free is decided by the system in one step as well.
        Ok(()) => return rustix::fs::unlinkat(from_dir, from, AtFlags::empty()),
        Err(errno) if is_unlinkable(errno) => {}
        Err(errno) => return Err(errno),
    }
    // An empty file takes the name. What somebody writes into it before the rename is lost.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | ALWAYS;
    drop(rustix::fs::openat(to_dir, to, flags, Mode::from_raw_mode(0o600))?);
    rustix::fs::renameat(from_dir, from, to_dir, to).inspect_err(|_| {
        let _ = rustix::fs::unlinkat(to_dir, to, AtFlags::empty());
    })
}

/// Swaps two files of a directory.
pub(super) fn exchange(dir: BorrowedFd<'_>, temporary: &OsStr, name: &OsStr) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(dir, temporary, dir, name, RenameFlags::EXCHANGE) {
        Err(errno) if is_unknown(errno) => {}
        answer => return answer,
    }
    let kept = kept_name(temporary);
    let stat = |name: &OsStr| rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let before = stat(name)?;
    match rustix::fs::linkat(dir, name, dir, &kept, AtFlags::empty()) {
        Ok(()) => {}
        Err(errno) if is_unlinkable(errno) => copy(dir, name, &kept, &before)?,
        Err(errno) => return Err(errno),
    }
    let put_back = |errno: Errno| {
        let _ = rustix::fs::unlinkat(dir, &kept, AtFlags::empty());
        errno
    };
    // As late as possible: whoever replaces the file between this look and the next line is not seen.
    match stat(name) {
        Ok(now) if is_unchanged(&before, &now) => {}
        Ok(_) => return Err(put_back(Errno::BUSY)),
        Err(errno) => return Err(put_back(errno)),
    }
    rustix::fs::renameat(dir, temporary, dir, name).map_err(put_back)?;
    rustix::fs::renameat(dir, &kept, dir, temporary).inspect_err(|_| {
        let _ = rustix::fs::renameat(dir, &kept, dir, name);
    })
}

/// Where [`exchange`] keeps the old file until `temporary` is free.
pub(super) fn kept_name(temporary: &OsStr) -> OsString {
    let mut name = temporary.to_owned();
    name.push("-old");
    name
}

fn is_unchanged(before: &Stat, now: &Stat) -> bool {
    let written = |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
    sys::is_same_file(before, now) && written(before) == written(now)
}

/// A copy of a plain file under a name that must be free.
fn copy(dir: BorrowedFd<'_>, name: &OsStr, copy: &OsStr, stat: &Stat) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | ALWAYS;
    let from = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | ALWAYS;
    let to = rustix::fs::openat(dir, copy, flags, Mode::from_raw_mode(0o600))?;
    let (mut from, mut to) = (std::fs::File::from(from), std::fs::File::from(to));
    let copied = std::io::copy(&mut from, &mut to).and_then(|_| {
        rustix::fs::fchmod(to.as_fd(), Mode::from_raw_mode(stat.st_mode & 0o777))?;
        to.sync_all()
    });
    copied.map_err(|fault| {
        let _ = rustix::fs::unlinkat(dir, copy, AtFlags::empty());
        Errno::from_io_error(&fault).unwrap_or(Errno::IO)
    })
}
