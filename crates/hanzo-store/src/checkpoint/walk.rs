//! Looking at a workspace: every file that git does not ignore, by its `stat` alone, and at the content only of those that changed.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::CheckpointLimits;
use super::manifest::{Content, Entry, LeftOut, LeftOutWhy, Manifest, Stat};
use crate::FileBlobs;

/// A file changed so shortly before it was looked at may change again without its time telling: the clock of file systems is
/// coarse. It is looked at again next time.
const TICK: Duration = Duration::from_millis(20);

/// The most files listed as left out; beyond, they are counted.
const LISTED: usize = 1000;

/// The rules of one directory, and of those above it.
struct Rules {
    own: Gitignore,
    above: Option<Rc<Rules>>,
}

struct Directory {
    /// Relative, empty or with `/` at its end.
    path: String,
    rules: Option<Rc<Rules>>,
}

pub(super) struct Walk<'w> {
    root: &'w Path,
    blobs: &'w FileBlobs,
    limits: &'w CheckpointLimits,
    last: Option<&'w Manifest>,
    began: Instant,
    /// What was last changed after this is looked at again next time.
    fresh_after: i64,
    found: Manifest,
    /// How many files were read.
    pub read: u64,
}

impl<'w> Walk<'w> {
    pub fn new(
        root: &'w Path,
        blobs: &'w FileBlobs,
        limits: &'w CheckpointLimits,
        last: Option<&'w Manifest>,
    ) -> Self {
        let fresh_after = nanoseconds(SystemTime::now().checked_sub(TICK));
        let mut found = Manifest::default();
        found.files = HashMap::with_capacity(last.map_or(64, |last| last.files.len() + 16));
        Self { root, blobs, limits, last, began: Instant::now(), fresh_after, found, read: 0 }
    }

    /// Everything there is.
    pub fn run(mut self) -> std::io::Result<(Manifest, u64)> {
        // A workspace that cannot be listed is an error; a directory in it is left out.
        fs::read_dir(self.root)?;
        let mut waiting = vec![Directory { path: String::new(), rules: rules_above(self.root) }];
        while let Some(directory) = waiting.pop() {
            if let Some(why) = self.cap() {
                self.leave_out(directory.path, why);
                for rest in waiting.drain(..) {
                    self.leave_out(rest.path, why);
                }
                break;
            }
            self.directory(directory, &mut waiting);
        }
        self.found.left_out.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((self.found, self.read))
    }

    fn cap(&self) -> Option<LeftOutWhy> {
        if self.found.files.len() >= self.limits.files {
            return Some(LeftOutWhy::TooMany);
        }
        (self.began.elapsed() >= self.limits.time).then_some(LeftOutWhy::TookTooLong)
    }

    fn leave_out(&mut self, path: String, why: LeftOutWhy) {
        if self.found.left_out.len() < LISTED {
            self.found.left_out.push(LeftOut { path, why });
        } else {
            self.found.left_out_more += 1;
        }
    }

    fn directory(&mut self, directory: Directory, waiting: &mut Vec<Directory>) {
        let absolute = self.root.join(&directory.path);
        let Ok(listing) = fs::read_dir(&absolute) else {
            return self.leave_out(directory.path, LeftOutWhy::Unreadable);
        };
        let entries: Vec<_> = listing.filter_map(Result::ok).collect();
        let mut rules = directory.rules;
        if entries.iter().any(|entry| entry.file_name() == OsStr::new(".gitignore")) {
            let (own, _) = Gitignore::new(absolute.join(".gitignore"));
            if !own.is_empty() {
                rules = Some(Rc::new(Rules { own, above: rules }));
            }
        }
        for entry in entries {
            let name = entry.file_name();
            if name == OsStr::new(".git") {
                continue;
            }
            let Some(name) = name.to_str() else {
                self.leave_out(format!("{}{}", directory.path, name.display()), LeftOutWhy::Name);
                continue;
            };
            let mut path = String::with_capacity(directory.path.len() + name.len() + 1);
            path.push_str(&directory.path);
            path.push_str(name);
            let Ok(kind) = entry.file_type() else {
                self.leave_out(path, LeftOutWhy::Unreadable);
                continue;
            };
            if is_ignored(rules.as_deref(), &entry, kind.is_dir()) {
                if kind.is_dir() {
                    path.push('/');
                }
                self.leave_out(path, LeftOutWhy::Ignored);
            } else if kind.is_dir() {
                path.push('/');
                waiting.push(Directory { path, rules: rules.clone() });
            } else if kind.is_file() || kind.is_symlink() {
                match entry.metadata() {
                    Ok(meta) => self.file(path, &entry.path(), &meta),
                    Err(_) => self.leave_out(path, LeftOutWhy::Unreadable),
                }
            } else {
                self.leave_out(path, LeftOutWhy::Special);
            }
        }
    }

    fn file(&mut self, path: String, absolute: &Path, meta: &Metadata) {
        let stat = stat(meta);
        if let Some(known) = self.last.and_then(|last| last.files.get(path.as_str()))
            && known.stat == stat
            && mode_agrees(&known.content, meta)
        {
            self.found.files.insert(path.into(), known.clone());
            return;
        }
        if let Some(why) = self.cap() {
            return self.leave_out(path, why);
        }
        if meta.is_file() && meta.len() > self.limits.file_size {
            return self.leave_out(path, LeftOutWhy::TooLarge);
        }
        self.read += 1;
        match content(absolute, meta, self.limits.file_size, self.blobs) {
            Ok(content) => {
                let settled = stat.1 < self.fresh_after && stat.2 < self.fresh_after;
                let stat = if settled { stat } else { Stat::default() };
                self.found.files.insert(path.into(), Entry { content, stat });
            }
            Err(_) => self.leave_out(path, LeftOutWhy::Unreadable),
        }
    }
}

/// Reads a file or link and keeps what it holds.
fn content(absolute: &Path, meta: &Metadata, most: u64, blobs: &FileBlobs) -> std::io::Result<Content> {
    if meta.is_symlink() {
        let target = fs::read_link(absolute)?;
        let target = target.to_str().ok_or(std::io::ErrorKind::InvalidData)?.to_owned();
        return Ok(Content::Link { target });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default().saturating_add(1));
    // It may have grown, or become something else, since it was looked at.
    let mut file = open_plain(absolute)?.take(most + 1);
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    Ok(Content::File { hash: blobs.keep(&bytes)?, mode: mode(meta) })
}

#[cfg(unix)]
fn open_plain(path: &Path) -> std::io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    // Not through a link, and not waiting for the other end of a pipe that took the file's place.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::ErrorKind::InvalidInput.into()) }
}

#[cfg(not(unix))]
fn open_plain(path: &Path) -> std::io::Result<fs::File> {
    fs::File::open(path)
}

fn nanoseconds(at: Option<SystemTime>) -> i64 {
    let since = at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(unix)]
pub(super) fn stat(meta: &Metadata) -> Stat {
    use std::os::unix::fs::MetadataExt as _;
    let time =
        |seconds: i64, nanoseconds: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
    Stat(
        meta.size(),
        time(meta.mtime(), meta.mtime_nsec()),
        time(meta.ctime(), meta.ctime_nsec()),
        meta.ino(),
    )
}

#[cfg(not(unix))]
pub(super) fn stat(meta: &Metadata) -> Stat {
    Stat(meta.len(), nanoseconds(meta.modified().ok()), nanoseconds(meta.created().ok()), 0)
}

#[cfg(unix)]
pub(super) fn mode(meta: &Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    meta.permissions().mode() & 0o7777
}

#[cfg(not(unix))]
pub(super) fn mode(_: &Metadata) -> u32 {
    0o644
}

fn mode_agrees(content: &Content, meta: &Metadata) -> bool {
    match content {
        Content::File { mode: known, .. } => meta.is_file() && *known == mode(meta),
        Content::Link { .. } => meta.is_symlink(),
    }
}

fn is_ignored(rules: Option<&Rules>, entry: &fs::DirEntry, is_directory: bool) -> bool {
    let mut rules = rules;
    if rules.is_none() {
        return false;
    }
    let path = entry.path();
    // The nearest rule that speaks of the file counts.
    while let Some(here) = rules {
        match here.own.matched(&path, is_directory) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => rules = here.above.as_deref(),
        }
    }
    false
}

/// The rules that hold in the whole workspace: those of the directories above it in the same repository, and the repository's own.
fn rules_above(root: &Path) -> Option<Rc<Rules>> {
    let above: Vec<PathBuf> = root.ancestors().map(Path::to_owned).collect();
    let repository = above.iter().position(|directory| directory.join(".git").exists())?;
    let mut rules = None;
    let top = &above[repository];
    let mut exclude = GitignoreBuilder::new(top);
    if exclude.add(top.join(".git/info/exclude")).is_none()
        && let Ok(own) = exclude.build()
        && !own.is_empty()
    {
        rules = Some(Rc::new(Rules { own, above: rules }));
    }
    for directory in above[1..=repository].iter().rev() {
        let (own, _) = Gitignore::new(directory.join(".gitignore"));
        if !own.is_empty() {
            rules = Some(Rc::new(Rules { own, above: rules }));
        }
    }
    rules
}
