//! Going through a tree in path order.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hanzo_sandbox::paths::{FileKind, OpenDir, PathError, Workspace};

use super::ignored::Rules;
use crate::contract::Cancelled;

/// No tree anybody works in is deeper; a loop made of mounts is.
const MAX_DEPTH: usize = 512;

/// What to go through.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    /// Where to begin.
    pub(crate) start: PathBuf,
    /// How many levels; 1 is the directory itself.
    pub(crate) depth: Option<usize>,
    /// Whether ignored and hidden files are gone through as well.
    pub(crate) scope: Scope,
    /// Begin behind what has this order key.
    pub(crate) after: Option<Vec<u8>>,
}

/// Which files are gone through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Those that ignore files leave in and that are not hidden.
    #[default]
    Visible,
    /// All but what is in `.git`.
    All,
}

/// Something in the tree.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// The directory it was listed in.
    pub(crate) dir: Arc<OpenDir>,
    pub(crate) name: OsString,
    pub(crate) kind: FileKind,
    /// Relative to the start.
    pub(crate) relative: PathBuf,
}

impl Found {
    pub(crate) fn real(&self) -> PathBuf {
        self.dir.location().join(&self.name)
    }
}

impl Walk {
    /// Calls `visit` for everything in path order until it breaks. A directory that cannot be read is passed over; the start
    /// must be one that can.
    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        cancelled: &Cancelled,
        visit: &mut dyn FnMut(Found) -> ControlFlow<()>,
    ) -> Result<(), PathError> {
        let start = workspace.open_dir(&self.start)?;
        let rules = match self.scope {
            Scope::Visible => Rules::above(workspace, start.location()),
            Scope::All => None,
        };
        let mut walker = Walker { walk: self, workspace, cancelled, visit };
        let after = self.after.as_deref();
        let _ = walker.directory(&Arc::new(start), Path::new(""), after, rules.as_ref(), 1);
        Ok(())
    }
}

struct Walker<'a> {
    walk: &'a Walk,
    workspace: &'a Workspace,
    cancelled: &'a Cancelled,
    visit: &'a mut dyn FnMut(Found) -> ControlFlow<()>,
}

impl Walker<'_> {
    /// `after` is what is left of the order key to begin behind, when that is in here.
    fn directory(
        &mut self,
        dir: &Arc<OpenDir>,
        relative: &Path,
        after: Option<&[u8]>,
        above: Option<&Arc<Rules>>,
        depth: usize,
    ) -> ControlFlow<()> {
        if self.cancelled.is_set() {
            return ControlFlow::Break(());
        }
        let Ok(entries) = dir.entries() else { return ControlFlow::Continue(()) };
        let mut entries: Vec<_> = entries.flatten().collect();
        let rules = match self.walk.scope {
            Scope::Visible => {
                let has = |name: &str| entries.iter().any(|entry| entry.name == name);
                Some(Rules::of(self.workspace, dir, above.cloned(), has))
            }
            Scope::All => None,
        };
        // What earlier pages had is not worth sorting.
        if let Some(after) = after {
            entries.retain(|entry| {
                is_behind(&entry.name, entry.kind, after) || entered(&entry.name, entry.kind, after).is_some()
            });
        }
        // As whole paths sort: `a.b` before `a/b`, because `.` is before `/`.
        entries.sort_unstable_by(|a, b| Iterator::cmp(sort_key(&a.name, a.kind), sort_key(&b.name, b.kind)));
        for entry in entries {
            if entry.name == ".git" {
                continue;
            }
            let is_dir = entry.kind == FileKind::Directory;
            if let Some(rules) = &rules {
                let hidden = entry.name.as_encoded_bytes().first() == Some(&b'.');
                if hidden || rules.leave_out(dir.location(), &entry.name, is_dir) {
                    continue;
                }
            }
            let is_wanted = after.is_none_or(|after| is_behind(&entry.name, entry.kind, after));
            let relative = relative.join(&entry.name);
            let found = Found { dir: Arc::clone(dir), name: entry.name, kind: entry.kind, relative };
            let deeper = depth < self.walk.depth.unwrap_or(MAX_DEPTH).min(MAX_DEPTH);
            if !(is_dir && deeper) {
                if is_wanted {
                    (self.visit)(found)?;
                }
                continue;
            }
            if is_wanted {
                (self.visit)(found.clone())?;
            }
            if let Ok(inner) = self.workspace.open_dir_in(dir, &found.name) {
                let after = after.and_then(|after| entered(&found.name, found.kind, after));
                self.directory(&Arc::new(inner), &found.relative, after, rules.as_ref(), depth + 1)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether a walk over the workspace would come by `real`, a path in it.
pub(crate) fn is_visible(workspace: &Workspace, real: &Path) -> bool {
    let root = workspace.path();
    let Ok(inside) = real.strip_prefix(root) else { return false };
    let mut rules = Rules::above(workspace, root);
    let mut directory = root.to_owned();
    let mut rest = inside.components().peekable();
    while let Some(part) = rest.next() {
        let Ok(dir) = workspace.open_dir(&directory) else { return false };
        let level = Rules::of(workspace, &dir, rules, |_| true);
        let path = directory.join(part);
        let hidden = part.as_os_str().as_encoded_bytes().first() == Some(&b'.');
        if hidden || level.leave_out(&directory, part.as_os_str(), rest.peek().is_some()) {
            return false;
        }
        rules = Some(level);
        directory = path;
    }
    true
}

fn sort_key(name: &OsString, kind: FileKind) -> impl Iterator<Item = u8> + '_ {
    let slash = (kind == FileKind::Directory).then_some(b'/');
    name.as_encoded_bytes().iter().copied().chain(slash)
}

fn is_behind(name: &OsString, kind: FileKind, after: &[u8]) -> bool {
    sort_key(name, kind).gt(after.iter().copied())
}

/// What is left of `after` within the directory `name`. Everything in a directory is behind it and before whatever follows it.
fn entered<'a>(name: &OsString, kind: FileKind, after: &'a [u8]) -> Option<&'a [u8]> {
    let rest = after.strip_prefix(name.as_encoded_bytes()).filter(|_| kind == FileKind::Directory);
    rest.and_then(|rest| rest.strip_prefix(b"/"))
}

/// What orders the walk: the path as bytes, a directory's with a slash behind it, so that everything in it follows it at once.
pub(crate) fn order_key(relative: &Path, kind: FileKind) -> Vec<u8> {
    let mut key = relative.as_os_str().as_encoded_bytes().to_vec();
    if kind == FileKind::Directory {
        key.push(b'/');
    }
    key
}
