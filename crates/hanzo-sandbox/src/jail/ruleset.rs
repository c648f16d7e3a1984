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

/// The largest trees that together hold everything in `dir` but the `hidden` ones. What is made later beside a hidden path
/// is not among them: at this level, that is the price.
fn all_but(dir: &Path, hidden: &[PathBuf], out: &mut Vec<PathBuf>) {
    if hidden.iter().any(|hidden| dir.starts_with(hidden)) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(dir)) {
        out.push(dir.to_path_buf());
        return;
    }
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        // A link's target is where it is, and a rule for the link would be one for the target.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            all_but(&entry.path(), hidden, out);
        }
    }
}

/// Builds the ruleset; `namespaces` says whether the jail's own `/dev` and `/tmp` are mounted.
pub(crate) fn build(setup: &Setup, namespaces: bool) -> io::Result<OwnedFd> {
    let write = AccessFs::from_write(NEWEST);
    let handled = if namespaces { write } else { write | AccessFs::ReadFile };
    let mut created = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(handled)
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
    for root in setup.roots.iter().filter(|root| !setup.protected.iter().any(|it| it.path == **root)) {
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
        // Masks are mounts. Without them reading is allowed everywhere but in the hidden places, which Landlock can only
        // say by naming everything else.
        let mut readable = Vec::new();
        all_but(Path::new("/"), &setup.unreadable, &mut readable);
        readable.extend(setup.roots.iter().chain([&setup.tmp]).cloned());
        for path in &readable {
            allow(path, AccessFs::ReadFile.into())?;
        }
        // Not `/dev/pts`: it holds the user's other terminals.
        for path in ["null", "zero", "full", "random", "urandom", "tty", "ptmx"] {
            allow(&PathBuf::from("/dev").join(path), device)?;
        }
    }
    // What the mount namespace makes read-only (all of `/proc`) needs no rule here.
    Option::<OwnedFd>::from(created).ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_the_hidden_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["home/.ssh", "home/code/deep", "etc"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::fs::write(at("home/.netrc"), "").unwrap();
        std::os::unix::fs::symlink(at("home/.ssh"), at("home/link")).unwrap();
        let mut named = Vec::new();
        all_but(dir.path(), &[at("home/.ssh"), at("home/.netrc"), at("missing")], &mut named);
        named.sort();
        assert_eq!(named, [at("etc"), at("home/code")]);
    }
}
