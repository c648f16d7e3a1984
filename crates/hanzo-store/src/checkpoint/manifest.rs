//! The list of files of a checkpoint, as it is in memory and as it is kept: what changed since another list, and that list's
//! hash, so that a turn that changes three files of ten thousand keeps three lines.

use std::collections::{BTreeMap, HashMap};
use std::io::{Error, ErrorKind};

use hanzo_protocol::primitives::ContentHash;
use serde::{Deserialize, Serialize};

use crate::FileBlobs;

/// After so many lists that build on each other a whole one is kept, so that reading one stays fast.
const LONGEST_CHAIN: u32 = 32;

/// The files of a workspace at one moment. Paths are relative, with `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    pub files: HashMap<Box<str>, Entry>,
    pub left_out: Vec<LeftOut>,
    /// How many more were left out than the list has.
    pub left_out_more: u64,
    /// How many lists this one builds on.
    chain: u32,
}

/// A file that a checkpoint left out, and why. Restoring cannot bring it back and does not remove it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// Relative to the workspace; a directory ends with `/` and stands for everything in it.
    pub path: String,
    /// Why.
    pub why: LeftOutWhy,
}

/// Why a file was left out of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum LeftOutWhy {
    /// Git ignores it.
    Ignored,
    /// It is larger than a checkpoint keeps.
    TooLarge,
    /// It could not be read.
    Unreadable,
    /// Its name is not Unicode.
    Name,
    /// It is neither a file, a directory nor a symbolic link.
    Special,
    /// There were too many files.
    TooMany,
    /// Looking at the workspace took too long.
    TookTooLong,
}

/// What is known of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    #[serde(flatten)]
    pub content: Content,
    /// By which a later look tells that nothing happened to it.
    #[serde(rename = "s")]
    pub stat: Stat,
}

/// What a file is, as far as it is brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Content {
    #[serde(rename = "f")]
    File { hash: ContentHash, mode: u32 },
    #[serde(rename = "l")]
    Link { target: String },
}

/// Size, times in nanoseconds, inode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stat(pub u64, pub i64, pub i64, pub u64);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<ContentHash>,
    chain: u32,
    set: BTreeMap<Box<str>, Entry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removed: Vec<Box<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    #[serde(default)]
    left_out_more: u64,
}

impl Manifest {
    /// Whether the file at `path` was not looked at, so that its absence says nothing.
    pub fn leaves_out(&self, path: &str) -> bool {
        self.left_out_more > 0 && !self.files.contains_key(path)
            || self.left_out.iter().any(|left| {
                left.path == path
                    || left.path.is_empty()
                    || left.path.ends_with('/') && path.starts_with(left.path.as_str())
            })
    }

    /// Whether the same files have the same content.
    pub fn same_content(&self, other: &Self) -> bool {
        self.files.len() == other.files.len()
            && self.left_out == other.left_out
            && self.left_out_more == other.left_out_more
            && self
                .files
                .iter()
                .all(|(path, entry)| other.files.get(path).is_some_and(|o| o.content == entry.content))
    }

    /// Keeps the list, as what changed since `base` where that is shorter.
    pub fn keep(
        &mut self,
        base: Option<(&ContentHash, &Self)>,
        blobs: &FileBlobs,
    ) -> std::io::Result<ContentHash> {
        let base = base.filter(|(_, base)| base.chain < LONGEST_CHAIN);
        let differs = |path: &str, entry: &Entry| match base {
            None => true,
            Some((_, base)) => base.files.get(path) != Some(entry),
        };
        let set: BTreeMap<_, _> = self
            .files
            .iter()
            .filter(|(path, entry)| differs(path, entry))
            .map(|(path, entry)| (path.clone(), entry.clone()))
            .collect();
        let mut removed: Vec<_> = base.map_or_else(Vec::new, |(_, base)| {
            base.files.keys().filter(|path| !self.files.contains_key(*path)).cloned().collect()
        });
        removed.sort_unstable();
        self.chain = base.map_or(0, |(_, base)| base.chain + 1);
        let kept = Kept {
            version: 1,
            base: base.map(|(hash, _)| hash.clone()),
            chain: self.chain,
            set,
            removed,
            left_out: self.left_out.clone(),
            left_out_more: self.left_out_more,
        };
        blobs.keep(&serde_json::to_vec(&kept).map_err(Error::other)?)
    }

    /// Reads a list back, with those it builds on.
    pub fn load(hash: &ContentHash, blobs: &FileBlobs) -> std::io::Result<Self> {
        let mut kept = vec![load_one(hash, blobs)?];
        while let Some(base) = kept.last().and_then(|kept| kept.base.clone()) {
            if kept.len() > LONGEST_CHAIN as usize + 1 {
                return Err(Error::new(
                    ErrorKind::InvalidData,
                    "the lists of files build on each other endlessly",
                ));
            }
            kept.push(load_one(&base, blobs)?);
        }
        let mut manifest = Self::default();
        for one in kept.into_iter().rev() {
            for path in &one.removed {
                manifest.files.remove(path);
            }
            manifest.files.extend(one.set);
            manifest.left_out = one.left_out;
            manifest.left_out_more = one.left_out_more;
            manifest.chain = one.chain;
        }
        Ok(manifest)
    }
}

fn load_one(hash: &ContentHash, blobs: &FileBlobs) -> std::io::Result<Kept> {
    let bytes = blobs.load(hash)?;
    let bytes =
        bytes.ok_or_else(|| Error::new(ErrorKind::NotFound, "the checkpoint's list of files is gone"))?;
    let kept: Kept = serde_json::from_slice(&bytes)
        .map_err(|error| Error::new(ErrorKind::InvalidData, format!("not a list of files: {error}")))?;
    if kept.version == 1 {
        Ok(kept)
    } else {
        Err(Error::new(ErrorKind::InvalidData, "a newer version of hanzo-dev made this checkpoint"))
    }
}
