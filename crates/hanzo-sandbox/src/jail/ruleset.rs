//! The second wall against writes: a Landlock ruleset over the same writable set. It follows files, not paths, so a
//! directory descriptor that slipped through leads nowhere.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope,
};

use super::orders::Setup;

/// The newest rights this crate knows how to hand out again. Later ones are left alone, not denied by accident:
/// `ResolveUnix` (V9) would need a rule for every socket.
const NEWEST: ABI = ABI::V7;

fn other(error: impl std::error::Error) -> io::Error {
    io::Error::other(error.to_string())
}

/// Builds the ruleset; `namespaces` says whether the jail's own `/dev` and `/tmp` are mounted.
pub(crate) fn build(setup: &Setup, namespaces: bool) -> io::Result<OwnedFd> {
    let write = AccessFs::from_write(NEWEST);
    let mut created = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(write)
        .map_err(other)?
        // Abstract unix sockets and signals that leave the command.
        .scope(Scope::from_all(NEWEST))
        .map_err(other)?
        .create()
        .map_err(other)?;
    let mut allow = |path: &Path, access: BitFlags<AccessFs>| -> io::Result<()> {
        let Ok(fd) = PathFd::new(path) else { return Ok(()) }; // a device this machine does not have
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
        (&mut created).add_rule(PathBeneath::new(fd, access)).map_err(other).map(drop)
    };
    for root in &setup.roots {
        allow(root, write)?;
    }
    let device = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    if namespaces {
        for path in ["/tmp", "/var/tmp", "/dev/shm"] {
            allow(Path::new(path), write)?;
        }
        allow(Path::new("/dev"), device)?;
    } else {
        allow(&setup.tmp, write)?;
        // Not `/dev/pts`: it holds the user's other terminals.
        for path in ["null", "zero", "full", "random", "urandom", "tty", "ptmx"] {
            allow(&PathBuf::from("/dev").join(path), device)?;
        }
    }
    // What the mount namespace makes read-only (all of `/proc`) needs no rule here.
    Option::<OwnedFd>::from(created).ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}
