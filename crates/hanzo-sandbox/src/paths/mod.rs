//! The path layer: what the built-in file tools use instead of `std::fs`.
//!
//! Looking at a path and then opening it leaves a gap in which another process can swap a directory for a link.
//! A [`Workspace`] has no such gap: it holds its directories open as descriptors and resolves every path beneath
//! them, by `openat2` where the kernel has it and otherwise by a walk of its own (module `resolve`). What it then
//! checks against the unreadable and protected lists is the place of the *descriptor it holds*, not the text.
//!
//! What it promises and what it does not:
//!
//! * A write lands beneath a writable root, or is refused. Links that stay inside are followed, links that lead
//!   out are refused by name.
//! * Devices, FIFOs and sockets are refused before they are opened: a FIFO cannot hang a tool, and looking at a
//!   watchdog does not start it.
//! * Reads outside follow [`Reads`]. The unreadable list holds everywhere, and so does a short list of
//!   kernel files that hold secrets of running processes (`/proc/<pid>/…`, our own environment among them).
//! * **Hard links** cannot be told from the file they were made from. Writing through one is allowed, because
//!   package stores and git worktrees are full of them; [`Workspace::replace`] gives the name a new file and leaves
//!   the other name as it was. When a file has several names it is compared by identity with the *files* of the
//!   protected and unreadable lists; files inside a listed *directory* are not recognised that way. The jail
//!   keeps commands from making such links in the first place.
//! * A directory moved out of the root by another process while a path through it is being resolved is still
//!   followed, as with any descriptor. Confined commands cannot move one out.
//! * A **bind mount** inside a root belongs to the root.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use crate::{
    config::{IsolationMode, Reads, SandboxConfig},
    protected::{self, CaseRule, PathSet},
};

mod check;
mod error;
mod ops;
mod rename;
mod replace;
mod resolve;
mod roots;
mod sys;
mod walk;

pub use error::{Access, Link, PathError, SpecialKind};
pub use ops::{DirEntry, FileKind, ListDir, Metadata, Overwrite, WriteMode};
pub use replace::Staged;
pub use resolve::Facilities;
pub use walk::OpenDir;

use resolve::Resolver;
use roots::{Root, RootKind, Roots};

/// The jail's private `/tmp`, so that file tools and commands see the same files there.
#[derive(Debug)]
pub struct TmpMapping {
    /// The path tools use, normally `/tmp`.
    pub alias: PathBuf,
    /// The directory that is meant, open.
    pub directory: OwnedFd,
}

/// The directories a thread's file tools work in, held open, with the lists that apply to them.
#[derive(Debug)]
pub struct Workspace {
    resolver: Resolver,
    unreadable: PathSet,
    protected: PathSet,
    skipped: Vec<PathBuf>,
}

impl Workspace {
    /// Opens `workspace` and the other writable roots of `config`.
    ///
    /// A further root that cannot be opened as a directory is left out and listed by
    /// [`skipped_roots`](Self::skipped_roots); the workspace itself must open.
    pub fn open(workspace: &Path, config: &SandboxConfig) -> Result<Self, PathError> {
        Self::open_with(workspace, config, Facilities::default())
    }

    /// As [`open`](Self::open), with some of the machine's facilities switched off.
    pub fn open_with(
        workspace: &Path,
        config: &SandboxConfig,
        facilities: Facilities,
    ) -> Result<Self, PathError> {
        let mut first = Root::open(workspace, RootKind::Ordinary)?;
        let facilities = Facilities {
            openat2: facilities.openat2 && has_openat2(&first),
            descriptor_paths: facilities.descriptor_paths && sys::descriptor_path(first.fd()).is_some(),
        };
        let base = first.real.clone();
        let mut skipped = Vec::new();
        let mut others: Vec<Root> = Vec::new();
        for path in protected::writable_roots(config, &base) {
            match Root::open(&path, RootKind::Ordinary) {
                Ok(root) if root.real == base || root.real == Path::new("/") => {}
                Ok(root) => others.push(root),
                Err(_) => skipped.push(path),
            }
        }
        first.writable = match config.mode {
            IsolationMode::Off | IsolationMode::Workspace => true,
            IsolationMode::Allowlist => config
                .allowed_paths
                .iter()
                .chain(&config.allow_write)
                .filter_map(|path| crate::canonical::resolve(&base.join(path)))
                .any(|allowed| base.starts_with(allowed)),
        };
        first.readable = first.writable || config.reads == Reads::Any;
        // A root inside another writable one adds nothing, and its descriptor would go stale when the
        // directory is replaced.
        let covered = |root: &Root| first.writable && root.real.starts_with(&base);
        others.retain(|root| !covered(root));

        let mut slash = Root::open(Path::new("/"), RootKind::Slash)?;
        slash.writable = config.mode == IsolationMode::Off;
        slash.readable = slash.writable || config.reads == Reads::Any;
        let mut roots = vec![first];
        roots.extend(others);
        roots.push(slash);

        let case = CaseRule::platform();
        let absolute = |paths: &[PathBuf]| paths.iter().map(|path| base.join(path)).collect::<Vec<_>>();
        let unreadable = PathSet::new(absolute(&config.unreadable), case);
        let protected =
            PathSet::new(protected::protected_under(config, &base).into_iter().map(|entry| entry.path), case);
        Ok(Self { resolver: Resolver { roots: Roots(roots), facilities }, unreadable, protected, skipped })
    }

    /// Sends a path such as `/tmp/x` to the jail's private directory instead of the real one.
    #[must_use]
    pub fn with_tmp(mut self, mapping: TmpMapping) -> Self {
        self.resolver.roots.0.push(Root::mapped(&mapping.alias, mapping.directory));
        self
    }

    /// The workspace's real path.
    pub fn path(&self) -> &Path {
        self.resolver.roots.workspace()
    }

    /// The real paths of all directories open for writing.
    pub fn writable_roots(&self) -> Vec<&Path> {
        let writable = self.resolver.roots.0.iter().filter(|root| root.writable);
        writable.map(|root| root.real.as_path()).collect()
    }

    /// Roots that were asked for and could not be opened as directories.
    pub fn skipped_roots(&self) -> &[PathBuf] {
        &self.skipped
    }

    /// How paths are resolved on this machine and what that leaves open.
    pub fn capabilities(&self) -> Capabilities {
        let facilities = self.resolver.facilities;
        let mut remaining = Vec::new();
        let resolution = if facilities.openat2 && facilities.descriptor_paths {
            Resolution::Kernel
        } else {
            remaining
                .push("a directory moved out of the workspace between two steps of a walk is still followed");
            Resolution::Walk
        };
        if !facilities.descriptor_paths {
            remaining.push(
                "the protected and unreadable lists are compared with the names walked through, \
                 which a rename during the walk can make out of date",
            );
        }
        Capabilities { resolution, remaining }
    }
}

/// How a [`Workspace`] resolves paths.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Who resolves.
    pub resolution: Resolution,
    /// Races that this leaves open, one sentence each.
    pub remaining: Vec<&'static str>,
}

/// Who resolves a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resolution {
    /// The kernel, in one call.
    Kernel,
    /// This crate, one component at a time on held descriptors.
    Walk,
}

/// Asked once, by using it: old kernels answer ENOSYS and some container filters EPERM.
fn has_openat2(root: &Root) -> bool {
    sys::open_beneath(root.fd(), Path::new("."), sys::DIRECTORY, false).is_ok()
}
