//! Contexts on the disk. A context is an index, `NAME.json`, with everything but its large values; each of those is a file in
//! `NAME.values`, named by the digest of what is in it.
//!
//! A change writes the values that are new, then the index, then removes the values nobody names any more; each file is written beside
//! its place, forced to the disk and put there. So at whatever moment the machine stops, the index is the old one or the new one, and
//! all it names is there. What does not have the digest it is named by is not believed. Several servers may share the directory: a
//! change holds the context's lock, and an index another server wrote is noticed.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hanzo_protocol::primitives::ContentHash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Context, Fault, Held, Load, MOST_BYTES, MOST_OPEN, MOST_VALUE};

/// From which size on a value has a file of its own.
const LARGE: usize = 64 * 1024;
/// How long an index gets. Values that are not large go to files of their own, too, before it is longer.
const MOST_INDEX: usize = 1024 * 1024;

/// A value in a file of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The digest of what is in the file, by which it is named.
    hash: ContentHash,
    /// How long it is.
    pub(super) bytes: usize,
}

impl Kept {
    /// What its file is called: the digits of the digest, and so never a way elsewhere.
    fn file(&self) -> &str {
        let text = self.hash.as_str();
        text.split_once(':').map_or(text, |(_, digits)| digits)
    }
}

/// The contexts in a directory.
pub(in crate::server) struct Disk {
    directory: PathBuf,
    open: Mutex<HashMap<String, (Stamp, Arc<Context>)>>,
}

/// What tells one index from the next: each is a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    modified: (i64, i64),
    length: u64,
}

/// Whether others may read at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Shared,
    Alone,
}

impl Disk {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, open: Mutex::default() }
    }

    /// Looks at a context. Its large values are read when `look` asks for them.
    pub(super) fn look(
        &self,
        name: &str,
        look: impl FnOnce(&Context, Load<'_>) -> Result<Value, Fault>,
    ) -> Result<Value, Fault> {
        let mut context = self.context(name)?;
        let is_apart = |entry: &super::Entry| matches!(entry.held, Held::Apart { .. });
        let mut _lock = None;
        if context.entries.iter().any(is_apart) {
            // What it names stays where it is for as long as this is held.
            _lock = Some(self.lock(name, Access::Shared)?);
            context = self.context(name)?;
        }
        look(&context, &|kept| self.load(name, kept))
    }

    /// Changes a context, on the disk and then in memory.
    pub(super) fn change(
        &self,
        name: &str,
        change: impl FnOnce(&mut Context, Load<'_>) -> Result<(), Fault>,
    ) -> Result<Value, Fault> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let _lock = self.lock(name, Access::Alone)?;
        let before = self.context(name)?;
        let mut context = Context::clone(&before);
        change(&mut context, &|kept| self.load(name, kept))?;
        let new = settle(&mut context)?;
        let text = serde_json::to_vec(&context)?;
        if text.len() > MOST_INDEX {
            let message =
                format!("the keys, the types and the metadata of a context have at most {MOST_INDEX} bytes");
            return Err(Fault::Caller(message));
        }
        let bytes = context.entries.iter().map(|entry| entry.held.bytes()).sum();
        context.check(bytes, MOST_BYTES)?;
        let values = self.values(name);
        for (kept, text) in &new {
            let path = values.join(kept.file());
            // A value that is there already is as it should be, or it is put right.
            if fs::read(&path).ok().is_none_or(|there| ContentHash::of(&there) != kept.hash) {
                DirBuilder::new().recursive(true).mode(0o700).create(&values)?;
                put(&path, text)?;
            }
        }
        if !new.is_empty() {
            // The index names them, so they are there first.
            File::open(&values)?.sync_all()?;
            File::open(&self.directory)?.sync_all()?;
        }
        put(&self.index(name), &text)?;
        File::open(&self.directory)?.sync_all()?;
        sweep(&values, &context);
        let answer = context.changed(name);
        let stamp = self.stamp(name)?;
        self.remember(name, stamp.map(|stamp| (stamp, Arc::new(context))));
        Ok(answer)
    }

    /// A context as it is now.
    fn context(&self, name: &str) -> Result<Arc<Context>, Fault> {
        let Some(stamp) = self.stamp(name)? else {
            self.remember(name, None);
            return Ok(Arc::default());
        };
        if let Some((known, context)) = self.open().get(name)
            && *known == stamp
        {
            return Ok(Arc::clone(context));
        }
        let text = match fs::read(self.index(name)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Arc::default()),
            Err(error) => return Err(error.into()),
        };
        let context: Context = serde_json::from_slice(&text).map_err(|error| {
            Fault::Kept(format!("`{name}.json` is damaged: {error}\n\nhint: remove it to begin anew"))
        })?;
        let context = Arc::new(context);
        // Should it have been replaced in between, the stamp is that of the older one, and the next look reads it again.
        self.remember(name, Some((stamp, Arc::clone(&context))));
        Ok(context)
    }

    fn remember(&self, name: &str, context: Option<(Stamp, Arc<Context>)>) {
        let mut open = self.open();
        if open.len() >= MOST_OPEN && !open.contains_key(name) {
            open.clear();
        }
        match context {
            Some(context) => drop(open.insert(name.to_owned(), context)),
            None => drop(open.remove(name)),
        }
    }

    /// Reads a value; an error when it is not what was kept.
    fn load(&self, name: &str, kept: &Kept) -> Result<Value, Fault> {
        let damaged = |why: &str| {
            Fault::Kept(format!("a value cannot be read: {why}\n\nhint: set it anew with `context/update`"))
        };
        let path = self.values(name).join(kept.file());
        let text = fs::read(path).map_err(|error| damaged(&error.to_string()))?;
        if ContentHash::of(&text) != kept.hash {
            return Err(damaged("it is damaged"));
        }
        serde_json::from_slice(&text).map_err(|error| damaged(&error.to_string()))
    }

    fn stamp(&self, name: &str) -> io::Result<Option<Stamp>> {
        match fs::metadata(self.index(name)) {
            Ok(about) => Ok(Some(Stamp {
                inode: about.ino(),
                modified: (about.mtime(), about.mtime_nsec()),
                length: about.len(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Held until it is dropped, by this server and all others.
    fn lock(&self, name: &str, access: Access) -> io::Result<File> {
        let path = self.directory.join(format!(".{name}.lock"));
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).read(true).mode(0o600).open(path)?;
        match access {
            Access::Shared => file.lock_shared()?,
            Access::Alone => file.lock()?,
        }
        Ok(file)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, (Stamp, Arc<Context>)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn index(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    fn values(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.values"))
    }
}

/// Decides what is in files of its own; those values, written.
fn settle(context: &mut Context) -> Result<Vec<(Kept, Vec<u8>)>, Fault> {
    let mut new = Vec::new();
    let mut here: Vec<(usize, usize)> = Vec::new();
    for (index, entry) in context.entries.iter_mut().enumerate() {
        let Held::Here { .. } = &entry.held else { continue };
        let bytes = entry.held.bytes();
        if bytes > MOST_VALUE {
            let message = format!(
                "the value of `{}` has {bytes} bytes, and one value has at most {MOST_VALUE}\n\nhint: divide it among several keys",
                entry.key
            );
            return Err(Fault::Caller(message));
        }
        if bytes > LARGE {
            new.extend(set_apart(&mut entry.held)?);
        } else {
            here.push((bytes, index));
        }
    }
    let mut length = serde_json::to_vec(context)?.len();
    here.sort_unstable();
    while length > MOST_INDEX
        && let Some((bytes, index)) = here.pop()
    {
        new.extend(set_apart(&mut context.entries[index].held)?);
        length = length.saturating_sub(bytes);
    }
    Ok(new)
}

/// Puts a value into a file of its own.
fn set_apart(held: &mut Held) -> Result<Option<(Kept, Vec<u8>)>, Fault> {
    let Held::Here { value } = held else { return Ok(None) };
    let text = serde_json::to_vec(value)?;
    let kept = Kept { hash: ContentHash::of(&text), bytes: text.len() };
    *held = Held::Apart { kept: kept.clone() };
    Ok(Some((kept, text)))
}

/// Written beside its place and put there, so that there is always a whole one. Only whoever holds the lock does this.
fn put(path: &Path, text: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.new"));
    let mut out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    out.write_all(text)?;
    out.sync_all()?;
    fs::rename(beside, path)
}

/// Removes what the context does not name: values of before, and what was being written when the machine stopped. What cannot be
/// removed is in nobody's way.
fn sweep(values: &Path, context: &Context) {
    let named: HashSet<&str> = context
        .entries
        .iter()
        .filter_map(|entry| match &entry.held {
            Held::Apart { kept } => Some(kept.file()),
            Held::Here { .. } => None,
        })
        .collect();
    let Ok(files) = fs::read_dir(values) else { return };
    for file in files.flatten() {
        if !file.file_name().to_str().is_some_and(|name| named.contains(name)) {
            let _ = fs::remove_file(file.path());
        }
    }
    if named.is_empty() {
        let _ = fs::remove_dir(values);
    }
}
