//! The directories a path may lead into, each held open as a descriptor.

use std::{
    ffi::OsStr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Component, Path, PathBuf},
};

use rustix::fs::{CWD, Mode, OFlags};

use super::{
    error::{Access, PathError},
    sys,
};

/// What kind of place a root is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RootKind {
    /// The workspace or another directory of this mount namespace.
    Ordinary,
    /// The jail's private `/tmp`. It may live in another mount namespace, where the path the kernel reports for a
    /// descriptor means nothing here, so nothing beneath it is ever compared by path.
    PrivateTmp,
    /// The whole file system.
    Slash,
}

/// One directory that may be entered.
#[derive(Debug)]
pub(super) struct Root {
    fd: OwnedFd,
    /// Spellings under which this root is recognised at the start of an absolute path.
    aliases: Vec<PathBuf>,
    /// Where it really is.
    pub(super) real: PathBuf,
    pub(super) kind: RootKind,
    pub(super) readable: bool,
    pub(super) writable: bool,
}

impl Root {
    pub(super) fn open(path: &Path, kind: RootKind) -> Result<Self, PathError> {
        let io = |source: std::io::Error| PathError::Io { action: "open", path: path.to_owned(), source };
        let named = std::path::absolute(path).map_err(io)?;
        let fd = rustix::fs::openat(CWD, &named, sys::DIRECTORY, Mode::empty())
            .map_err(|errno| io(errno.into()))?;
        // The descriptor is what counts; its name is asked for afterwards so that the two cannot disagree.
        let real = match sys::descriptor_path(fd.as_fd()) {
            Some(real) => real,
            None => std::fs::canonicalize(&named).map_err(io)?,
        };
        let mut aliases = vec![named];
        if !aliases.contains(&real) {
            aliases.push(real.clone());
        }
        Ok(Self { fd, aliases, real, kind, readable: true, writable: true })
    }

    /// A root that is called `alias` but is the directory behind `fd`, wherever that is.
    pub(super) fn mapped(alias: &Path, fd: OwnedFd) -> Self {
        Self {
            fd,
            aliases: vec![alias.to_owned()],
            real: alias.to_owned(),
            kind: RootKind::PrivateTmp,
            readable: true,
            writable: true,
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn try_clone_fd(&self) -> std::io::Result<OwnedFd> {
        self.fd.try_clone()
    }

    fn allows(&self, access: Access) -> bool {
        match access {
            Access::Read => self.readable,
            Access::Write => self.writable,
        }
    }
}

/// All roots; the first is the workspace, from which relative paths start.
#[derive(Debug)]
pub(super) struct Roots(pub(super) Vec<Root>);

/// A root and a path beneath it, not yet resolved and possibly containing `..`.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) root: usize,
    pub(super) rest: PathBuf,
}

impl Roots {
    pub(super) fn workspace(&self) -> &Path {
        &self.0[0].real
    }

    pub(super) fn get(&self, index: usize) -> &Root {
        &self.0[index]
    }

    /// The place an input names, or `None` when no root open for `access` contains it.
    ///
    /// Only the *leading* components are compared, as text, and only up to the root; a `..` among them never
    /// matches. Everything after the root is left to the resolver, which knows about links.
    pub(super) fn place(&self, path: &Path, access: Access) -> Option<Place> {
        if path.is_absolute() {
            return self.place_absolute(path, access);
        }
        self.place_absolute(&self.workspace().join(path), access)
    }

    fn place_absolute(&self, path: &Path, access: Access) -> Option<Place> {
        let mut best: Option<(usize, Place)> = None;
        for (index, root) in self.0.iter().enumerate().filter(|(_, root)| root.allows(access)) {
            for alias in &root.aliases {
                let Some(rest) = strip(path, alias) else { continue };
                let depth = alias.components().count();
                if best.as_ref().is_none_or(|(found, _)| depth > *found) {
                    best = Some((depth, Place { root: index, rest }));
                }
            }
        }
        best.map(|(_, place)| place)
    }
}

fn strip(path: &Path, prefix: &Path) -> Option<PathBuf> {
    let mut rest = path.components();
    for want in prefix.components() {
        if rest.next() != Some(want) {
            return None;
        }
    }
    let rest = rest.as_path();
    Some(if rest.as_os_str().is_empty() { PathBuf::from(".") } else { rest.to_owned() })
}

/// Refuses what no system call could take, before anything is opened.
pub(super) fn validate(path: &Path) -> Result<(), PathError> {
    let invalid = |reason| Err(PathError::Invalid { path: path.to_owned(), reason });
    if path.as_os_str().is_empty() {
        return invalid("the path is empty");
    }
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return invalid("it contains a NUL byte");
    }
    Ok(())
}

/// Splits the last named component off. `None` when the path ends in `..` or names a root.
pub(super) fn split_last(path: &Path) -> Option<(&Path, &OsStr)> {
    match path.components().next_back()? {
        Component::Normal(name) => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Some((parent.unwrap_or(Path::new(".")), name))
        }
        _ => None,
    }
}

/// Flags that every open in this layer carries. No more than this one: `openat2` refuses others together with
/// `O_PATH`.
pub(super) const ALWAYS: OFlags = OFlags::CLOEXEC;
