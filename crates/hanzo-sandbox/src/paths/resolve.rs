//! From a path to a descriptor, never through a gap.
//!
//! The kernel does the work where it can (`openat2`). Three cases are walked by hand, one component at a time on
//! held descriptors: kernels without the call, absolute links that lead back inside (the kernel refuses all
//! absolute links), and refusals, to find out *which* link led where.
//!
//! The walk never asks for `..` and never lets the kernel follow a link: it opens one name at a time with
//! `O_NOFOLLOW`, goes up by dropping the descriptor it came through, and reads links itself. Swapping a directory
//! for a link between two steps therefore changes *which* permitted file is found, not whether it is permitted.

use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, Stat},
    io::Errno,
};

use super::{
    error::{Access, Link, PathError},
    roots::{Place, RootKind, Roots, split_last, validate},
    sys,
};

/// The kernel's own limit on links in one resolution.
const MAX_LINKS: usize = 40;
/// How often a step is tried again when a name changes under it.
pub(super) const ATTEMPTS: usize = 32;

/// What the machine offers; tests switch facilities off to reach the fallbacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facilities {
    /// `openat2` may be used.
    pub openat2: bool,
    /// `/proc/self/fd` (or `F_GETPATH`) may be used to learn where a descriptor is.
    pub descriptor_paths: bool,
}

impl Default for Facilities {
    fn default() -> Self {
        Self { openat2: true, descriptor_paths: true }
    }
}

/// Whether a link at the very end of the path is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    Follow,
    Keep,
}

/// A directory and one name in it, which may or may not exist. Without a name: the directory itself.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) root: usize,
    pub(super) parent: OwnedFd,
    pub(super) name: Option<OsString>,
    /// Where it is, free of links.
    pub(super) location: PathBuf,
}

/// Something that exists.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) root: usize,
    pub(super) location: PathBuf,
    pub(super) stat: Stat,
    handle: Handle,
}

#[derive(Debug)]
enum Handle {
    /// A path-only descriptor of the file itself.
    File(OwnedFd),
    Entry(Entry),
}

impl Found {
    /// A descriptor in the same file system as what was found.
    pub(super) fn near(&self) -> BorrowedFd<'_> {
        match &self.handle {
            Handle::File(fd) => fd.as_fd(),
            Handle::Entry(entry) => entry.parent.as_fd(),
        }
    }

    /// Whether the file itself is held, so that it cannot have become another since it was examined.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.handle, Handle::File(_))
    }

    /// Opens for content exactly the file that was examined, or answers `Ok(None)` when its name now belongs to
    /// another file.
    pub(super) fn reopen(&self, flags: OFlags) -> rustix::io::Result<Option<OwnedFd>> {
        match &self.handle {
            Handle::File(fd) => sys::reopen(fd.as_fd(), flags).map(Some),
            Handle::Entry(entry) => {
                let name = entry.name.as_deref().unwrap_or(OsStr::new("."));
                let flags = flags | OFlags::NOFOLLOW | super::roots::ALWAYS;
                let fd = rustix::fs::openat(&entry.parent, name, flags, Mode::empty())?;
                Ok(sys::is_same_file(&rustix::fs::fstat(&fd)?, &self.stat).then_some(fd))
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Resolver {
    pub(super) roots: Roots,
    pub(super) facilities: Facilities,
}

impl Resolver {
    /// Finds what `path` names, without opening its content.
    pub(super) fn find(&self, path: &Path, access: Access, last: Last) -> Result<Found, PathError> {
        let place = self.place(path, access)?;
        if self.facilities.openat2
            && self.facilities.descriptor_paths
            && let Some(found) = self.find_by_kernel(path, &place, last)?
        {
            return Ok(found);
        }
        for _ in 0..ATTEMPTS {
            let entry = self.walk(path, &place, access, last)?;
            let name = entry.name.as_deref().unwrap_or(OsStr::new("."));
            let stat = rustix::fs::statat(&entry.parent, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|errno| failed("find", path, errno))?;
            // Turned into a link after the walk had looked: walk again.
            if last == Last::Follow && sys::file_type(&stat).is_symlink() {
                continue;
            }
            return Ok(Found {
                root: entry.root,
                location: entry.location.clone(),
                stat,
                handle: Handle::Entry(entry),
            });
        }
        Err(PathError::Unstable { path: path.to_owned() })
    }

    /// Finds the directory that holds (or will hold) the last name of `path`.
    pub(super) fn entry(&self, path: &Path, access: Access, last: Last) -> Result<Entry, PathError> {
        let place = self.place(path, access)?;
        if self.facilities.openat2
            && self.facilities.descriptor_paths
            && let Some(entry) = self.entry_by_kernel(path, &place, last)?
        {
            return Ok(entry);
        }
        self.walk(path, &place, access, last)
    }

    fn place(&self, path: &Path, access: Access) -> Result<Place, PathError> {
        validate(path)?;
        self.roots.place(path, access).ok_or_else(|| self.outside(path, access, None))
    }

    fn outside(&self, path: &Path, access: Access, via: Option<Link>) -> PathError {
        PathError::Outside { path: path.to_owned(), root: self.roots.workspace().to_owned(), via, access }
    }

    /// `Ok(None)` means: the kernel will not say, walk it.
    fn open_by_kernel(
        &self,
        path: &Path,
        place: &Place,
        rest: &Path,
        flags: OFlags,
    ) -> Result<Option<OwnedFd>, PathError> {
        let root = self.roots.get(place.root);
        match sys::open_beneath(root.fd(), rest, flags, root.kind == RootKind::Slash) {
            Ok(fd) => Ok(Some(fd)),
            // XDEV: a link or `..` leads out, or a link is absolute. LOOP: a loop or a magic link.
            Err(Errno::XDEV | Errno::LOOP | Errno::AGAIN) => Ok(None),
            Err(errno) => Err(failed("find", path, errno)),
        }
    }

    fn find_by_kernel(&self, path: &Path, place: &Place, last: Last) -> Result<Option<Found>, PathError> {
        let flags = match last {
            Last::Follow => sys::PATH_ONLY,
            Last::Keep => sys::PATH_ONLY | OFlags::NOFOLLOW,
        };
        let Some(fd) = self.open_by_kernel(path, place, &place.rest, flags)? else { return Ok(None) };
        let stat = rustix::fs::fstat(&fd).map_err(|errno| failed("find", path, errno))?;
        let Some(mut location) = sys::descriptor_path(fd.as_fd()) else { return Ok(None) };
        // Said by the kernel when the name has gone to another file, or is part of the name: then the file is there.
        if let Some(named) = location.as_os_str().as_encoded_bytes().strip_suffix(b" (deleted)")
            && !rustix::fs::lstat(&location)
                .is_ok_and(|there| (there.st_dev, there.st_ino) == (stat.st_dev, stat.st_ino))
        {
            location = PathBuf::from(OsString::from_vec(named.to_vec()));
        }
        Ok(Some(Found { root: place.root, location, stat, handle: Handle::File(fd) }))
    }

    fn entry_by_kernel(&self, path: &Path, place: &Place, last: Last) -> Result<Option<Entry>, PathError> {
        let (dir, name) = match split_last(&place.rest) {
            Some((dir, name)) => (dir, Some(name)),
            None => (place.rest.as_path(), None),
        };
        let Some(parent) = self.open_by_kernel(path, place, dir, sys::DIRECTORY)? else { return Ok(None) };
        if let Some(name) = name
            && last == Last::Follow
            && rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| sys::file_type(&stat).is_symlink())
        {
            return Ok(None);
        }
        let Some(mut location) = sys::descriptor_path(parent.as_fd()) else { return Ok(None) };
        if let Some(name) = name {
            location.push(name);
        }
        Ok(Some(Entry { root: place.root, parent, name: name.map(OsStr::to_owned), location }))
    }

    fn walk(&self, path: &Path, place: &Place, access: Access, last: Last) -> Result<Entry, PathError> {
        let mut walk = Walk { resolver: self, path, access, root: place.root, held: Vec::new(), links: 0 };
        walk.run(&place.rest, last)
    }
}

/// One resolution by hand.
struct Walk<'a> {
    resolver: &'a Resolver,
    path: &'a Path,
    access: Access,
    root: usize,
    /// The directories entered below the root, with the names they were entered by.
    held: Vec<(OwnedFd, OsString)>,
    links: usize,
}

impl Walk<'_> {
    fn run(&mut self, rest: &Path, last: Last) -> Result<Entry, PathError> {
        let mut pending = reversed(rest);
        let mut changed = 0;
        // The most recent link; if the walk leaves the roots, it is the one to name.
        let mut via = None;
        while let Some(step) = pending.pop() {
            let Step::Name(name) = step else {
                if self.held.pop().is_none() {
                    pending = self.leave(pending, via.as_ref())?;
                }
                continue;
            };
            let is_last = pending.is_empty();
            if is_last && last == Last::Keep {
                return self.finish(Some(name));
            }
            if !is_last {
                match rustix::fs::openat(self.dir(), &name, sys::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
                {
                    Ok(fd) => {
                        self.held.push((fd, name));
                        continue;
                    }
                    Err(Errno::NOTDIR | Errno::LOOP) => {}
                    Err(errno) => return Err(failed("find", self.path, errno)),
                }
            }
            // Either the last name or not a directory: reading it as a link tells which, in one step.
            match rustix::fs::readlinkat(self.dir(), &name, Vec::new()) {
                Ok(target) => {
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    let link = self.link(&name, target)?;
                    if link.target.is_absolute() {
                        let place = self.enter(&link.target, Some(&link))?;
                        pending.extend(reversed(&place.rest));
                    } else {
                        pending.extend(reversed(&link.target));
                    }
                    via = Some(link);
                }
                Err(Errno::INVAL | Errno::NOENT) if is_last => return self.finish(Some(name)),
                Err(Errno::INVAL) => {
                    // Not a link. Either it never was a directory or it became one just now.
                    changed += 1;
                    let stat = rustix::fs::statat(self.dir(), &name, AtFlags::SYMLINK_NOFOLLOW)
                        .map_err(|errno| failed("find", self.path, errno))?;
                    if !sys::file_type(&stat).is_dir() {
                        return Err(failed("find", self.path, Errno::NOTDIR));
                    }
                    if changed > ATTEMPTS {
                        return Err(PathError::Unstable { path: self.path.to_owned() });
                    }
                    pending.push(Step::Name(name));
                }
                Err(errno) => return Err(failed("find", self.path, errno)),
            }
        }
        self.finish(None)
    }

    fn dir(&self) -> BorrowedFd<'_> {
        self.held.last().map_or_else(|| self.resolver.roots.get(self.root).fd(), |(fd, _)| fd.as_fd())
    }

    /// The path walked so far, free of links.
    fn here(&self) -> PathBuf {
        let mut here = self.resolver.roots.get(self.root).real.clone();
        here.extend(self.held.iter().map(|(_, name)| name));
        here
    }

    fn link(&mut self, name: &OsStr, target: PathBuf) -> Result<Link, PathError> {
        if sys::has_magic_links(self.dir()) {
            return Err(PathError::MagicLink { path: self.path.to_owned() });
        }
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(PathError::Loop { path: self.path.to_owned() });
        }
        if target.as_os_str().is_empty() {
            return Err(failed("find", self.path, Errno::NOENT));
        }
        Ok(Link { link: self.here().join(name), target })
    }

    /// `..` at the top of a root. The root's own path is free of links, so its parent is known as text; what
    /// follows may be in another root.
    fn leave(&mut self, mut pending: Vec<Step>, via: Option<&Link>) -> Result<Vec<Step>, PathError> {
        let root = self.resolver.roots.get(self.root);
        let mut outer = root.real.clone();
        outer.pop();
        if root.kind == RootKind::Slash {
            return Ok(pending);
        }
        // As many plain names as follow decide which root it is; the rest stays pending behind them.
        while matches!(pending.last(), Some(Step::Name(_))) {
            if let Some(Step::Name(name)) = pending.pop() {
                outer.push(name);
            }
        }
        let place = self.enter(&outer, via)?;
        pending.extend(reversed(&place.rest));
        Ok(pending)
    }

    fn enter(&mut self, target: &Path, via: Option<&Link>) -> Result<Place, PathError> {
        let place = self
            .resolver
            .roots
            .place(target, self.access)
            .ok_or_else(|| self.resolver.outside(self.path, self.access, via.cloned()))?;
        self.root = place.root;
        self.held.clear();
        Ok(place)
    }

    fn finish(&mut self, name: Option<OsString>) -> Result<Entry, PathError> {
        let walked = self.here();
        let root = self.resolver.roots.get(self.root);
        let parent = match self.held.pop() {
            Some((fd, _)) => fd,
            None => root.try_clone_fd().map_err(|source| PathError::Io {
                action: "find",
                path: self.path.to_owned(),
                source,
            })?,
        };
        let use_kernel_name = self.resolver.facilities.descriptor_paths && root.kind != RootKind::PrivateTmp;
        let mut location =
            use_kernel_name.then(|| sys::descriptor_path(parent.as_fd())).flatten().unwrap_or(walked);
        if let Some(name) = &name {
            location.push(name);
        }
        Ok(Entry { root: self.root, parent, name, location })
    }
}

#[derive(Debug)]
enum Step {
    Up,
    Name(OsString),
}

fn reversed(path: &Path) -> Vec<Step> {
    path.components()
        .rev()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(Step::Name(name.to_owned())),
            Component::ParentDir => Some(Step::Up),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

/// A system error in the layer's own words.
pub(super) fn failed(action: &'static str, path: &Path, errno: Errno) -> PathError {
    match errno {
        Errno::LOOP => PathError::Loop { path: path.to_owned() },
        _ => PathError::Io { action, path: path.to_owned(), source: errno.into() },
    }
}
