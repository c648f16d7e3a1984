//! Resolving a path that need not exist yet.
//!
//! `std::fs::canonicalize` refuses a path whose last component is missing, and a textual `..` removal is wrong
//! as soon as a symbolic link is involved. This walks the components from the left instead. It looks at the
//! file system as it is now, so it is for *explaining* and for comparing names, never for deciding what to open.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    path::{Component, Path, PathBuf},
};

/// The kernel's own limit on links in one resolution.
const MAX_LINKS: usize = 40;

/// The real location of `path`: links resolved for the part that exists, `..` applied to the *resolved* path,
/// and a tail that does not exist kept as it is.
///
/// `None` when it cannot be told: a loop, a component that may not be examined, a name the system refuses.
pub(crate) fn resolve(path: &Path) -> Option<PathBuf> {
    let mut real = PathBuf::new();
    let mut pending: VecDeque<Part> = parts(path).collect();
    let mut links = 0;
    while let Some(part) = pending.pop_front() {
        match part {
            // Pushing an anchor replaces what was there, and on Windows keeps the drive before a bare root.
            Part::Anchor(anchor) => real.push(anchor),
            Part::Up => {
                real.pop();
            }
            Part::Name(name) => {
                real.push(&name);
                let target = match std::fs::symlink_metadata(&real) {
                    Ok(meta) if meta.file_type().is_symlink() => std::fs::read_link(&real).ok()?,
                    Ok(_) => continue,
                    Err(error) if is_missing(&error) => continue,
                    Err(_) => return None,
                };
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                real.pop();
                for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                    pending.push_front(part);
                }
            }
        }
    }
    Some(real)
}

/// `/a/b` contains `/a/b/c` and itself, but not `/a/b2`.
pub(crate) fn contains(root: &Path, path: &Path) -> bool {
    path.starts_with(root)
}

enum Part {
    Anchor(PathBuf),
    Up,
    Name(OsString),
}

fn parts(path: &Path) -> impl Iterator<Item = Part> + '_ {
    path.components().filter_map(|component| match component {
        Component::Prefix(prefix) => Some(Part::Anchor(PathBuf::from(prefix.as_os_str()))),
        Component::RootDir => Some(Part::Anchor(PathBuf::from(std::path::MAIN_SEPARATOR_STR))),
        Component::CurDir => None,
        Component::ParentDir => Some(Part::Up),
        Component::Normal(name) => Some(Part::Name(name.to_owned())),
    })
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
