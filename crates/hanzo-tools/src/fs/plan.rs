//! What an edit is going to do to which files, worked out before anything is touched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::ContentHash;
use hanzo_sandbox::paths::{FileKind, PathError};
use serde_json::json;

use super::apply_patch::{ApplyPatchInput, ChangedFile, Happened, Wanted, WantedKind};
use super::content::Content;
use super::text::{self, Decoded, TextForm};
use super::transaction::Op;
use super::{diff_text, read, shape};
use crate::contract::{BaseHashes, Call, place};
use crate::host::Host;
use crate::patch::{self, ChangeKind, NewMode, PatchError};

/// The diff of what changed behind the caller's back is no longer than this.
const MAX_STALE_DIFF: usize = 8_000;

/// The hashes the caller believes the files to have.
pub(super) struct Bases {
    one: Option<String>,
    by_path: BTreeMap<PathBuf, String>,
    from_ledger: BaseHashes,
}

impl Bases {
    pub(super) fn new(
        host: &Arc<Host>,
        input: &ApplyPatchInput,
        changes: &[Wanted],
        from_ledger: BaseHashes,
    ) -> Result<Self, ToolError> {
        let mut by_path = BTreeMap::new();
        for (path, hash) in input.base_hashes.iter().flatten() {
            by_path.insert(shape::absolute(host, &place::parse(path)?), hash.clone());
        }
        let is_existing =
            |change: &&Wanted| !matches!(change.kind, WantedKind::Patch(ChangeKind::Add { .. }));
        if input.base_hash.is_some() && changes.iter().filter(is_existing).count() > 1 {
            return Err(ToolError::new(
                ErrorCode::InvalidArguments,
                "`base_hash` is for one file, but the patch changes several; give `base_hashes: {path: hash}`",
            ));
        }
        Ok(Self { one: input.base_hash.clone(), by_path, from_ledger })
    }

    fn of(&self, host: &Host, given: &Path, real: &Path) -> Option<String> {
        let named = self.by_path.get(&shape::absolute(host, given)).or_else(|| self.by_path.get(real));
        named.or(self.one.as_ref()).cloned().or_else(|| match self.from_ledger {
            BaseHashes::Given => None,
            BaseHashes::FromLedger => host.ledger.last_seen(real).map(|hash| hash.to_string()),
        })
    }
}

/// What is going to be done.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) ops: Vec<Op>,
    pub(super) diff: String,
    files: Vec<Planned>,
    /// What the caller takes existing files to be. Looked at when the new contents are on disk, because a large file is
    /// hashed meanwhile.
    beliefs: Vec<Belief>,
}

/// What a file is, and what the caller takes it to be.
#[derive(Clone)]
struct Belief {
    real: PathBuf,
    name: String,
    expected: String,
    actual: Content,
}

struct Planned {
    file: ChangedFile,
    /// The operation with its new content.
    op: Option<usize>,
}

/// Why there is no plan.
pub(super) enum Misfit {
    Stale(Stale),
    Other(ToolError),
}

impl From<ToolError> for Misfit {
    fn from(error: ToolError) -> Self {
        Self::Other(error)
    }
}

/// A file that is not what the caller believes.
pub(super) struct Stale(Belief);

impl Belief {
    fn is_true(&self) -> bool {
        self.expected == self.actual.hash().as_str()
    }
}

impl Stale {
    pub(super) async fn into_error(self, call: &Call<'_>) -> ToolError {
        let Belief { real, name, expected, actual } = self.0;
        let known = match expected.parse::<ContentHash>() {
            Ok(hash) => call.host.ledger.content(&call.host.blobs, &hash).await.ok().flatten(),
            Err(_) => None,
        };
        let diff =
            known.and_then(|old| match (text::decode(&old, None), text::decode(&actual.bytes(), None)) {
                (Decoded::Text(old, _), Decoded::Text(new, _)) => {
                    let mut diff = diff_text::unified(Some(&old), Some(&new), &name, &name);
                    if diff.len() > MAX_STALE_DIFF {
                        let end = diff[..floor(&diff, MAX_STALE_DIFF)].rfind('\n').map_or(0, |at| at + 1);
                        diff.truncate(end);
                        diff.push_str("(more changed)\n");
                    }
                    Some(diff)
                }
                _ => None,
            });
        let next = if diff.is_some() { "what changed since is below" } else { "read it again" };
        ToolError::new(
            ErrorCode::Conflict,
            format!("nothing was changed: base_hash mismatch, `{name}` is not what it was; {next}"),
        )
        .with_details(json!({
            "uri": place::uri(&real),
            "expected": expected,
            "actual": actual.hash(),
            "diff": diff,
        }))
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// An existing file, as it is.
struct Existing {
    real: PathBuf,
    name: String,
    content: Content,
    mode: NewMode,
}

/// What becomes of an existing file.
struct Outcome {
    /// Its content; none when it goes.
    new: Option<Content>,
    /// Its new place, when it moves.
    target: Option<PathBuf>,
    diff: String,
}

impl Plan {
    pub(super) fn add(
        &mut self,
        host: &Host,
        change: &Wanted,
        bases: &Bases,
        encoding: Option<&'static encoding_rs::Encoding>,
    ) -> Result<(), Misfit> {
        let path = place::parse(&change.path)?;
        match &change.kind {
            WantedKind::Patch(ChangeKind::Add { text, mode }) => {
                return Ok(self.create(host, &path, text, *mode)?);
            }
            // Replacing nothing in a file that is not there makes it.
            WantedKind::Edits(edits)
                if edits.len() == 1 && edits[0].old_text.is_empty() && is_missing(host, &path) =>
            {
                return Ok(self.create(host, &path, &edits[0].new_text, NewMode::Plain)?);
            }
            _ => {}
        }
        let existing = existing(host, &path)?;
        let Some(expected) = bases.of(host, &path, &existing.real) else {
            return Err(ToolError::new(
                ErrorCode::Conflict,
                format!(
                    "nothing was changed: `{}` exists and no base_hash was given for it; read it and pass its hash",
                    change.path
                ),
            )
            .with_details(json!({"uri": place::uri(&existing.real), "expected": null}))
            .into());
        };
        let outcome = outcome(host, &existing, change, encoding);
        let Existing { real, name, content: old, mode } = existing;
        let belief = Belief { real: real.clone(), name, expected, actual: old.clone() };
        let Outcome { new, target, diff } = match outcome {
            Ok(outcome) => outcome,
            // That the patch does not fit is no wonder then.
            Err(_) if !belief.is_true() => return Err(Misfit::Stale(Stale(belief))),
            Err(error) => return Err(error.into()),
        };
        self.diff.push_str(&diff);
        let uri = place::uri(&real);
        let old_hash = belief.expected.parse().ok();
        self.beliefs.push(belief);
        // The name that was given: of a link it is the link that goes.
        let given = shape::absolute(host, &path);
        let (file, op) = match (new, target) {
            (Some(new), None) => {
                self.ops.push(Op::Replace { path: real, old, new });
                let file =
                    ChangedFile { uri, change: Happened::Modified, hash: None, old_hash, moved_from: None };
                (file, Some(self.ops.len() - 1))
            }
            (Some(new), Some(target)) => {
                let file = ChangedFile {
                    uri: place::uri(&target),
                    change: Happened::Moved,
                    hash: None,
                    old_hash,
                    moved_from: Some(uri),
                };
                self.ops.push(Op::Create { path: target, new, mode });
                self.ops.push(Op::Delete { path: given, old });
                (file, Some(self.ops.len() - 2))
            }
            (None, _) => {
                self.ops.push(Op::Delete { path: given, old });
                let file =
                    ChangedFile { uri, change: Happened::Deleted, hash: None, old_hash, moved_from: None };
                (file, None)
            }
        };
        self.files.push(Planned { file, op });
        Ok(())
    }

    /// The first file that is not what the caller takes it to be.
    pub(super) fn stale(&self) -> Option<Stale> {
        self.beliefs.iter().find(|belief| !belief.is_true()).cloned().map(Stale)
    }

    fn create(&mut self, host: &Host, path: &Path, text: &str, mode: NewMode) -> Result<(), ToolError> {
        let real = free(host, path)?;
        let name = super::diff_name(host, &real);
        self.diff.push_str(&diff_text::unified(None, Some(text), &name, &name));
        let file = ChangedFile {
            uri: place::uri(&real),
            change: Happened::Created,
            hash: None,
            old_hash: None,
            moved_from: None,
        };
        self.files.push(Planned { file, op: Some(self.ops.len()) });
        self.ops.push(Op::Create { path: real, new: Content::new(text.as_bytes().to_vec()), mode });
        Ok(())
    }

    /// The files with their new hashes, and the new contents.
    pub(super) fn done(self) -> (Vec<ChangedFile>, Vec<Content>) {
        let new = |op: &Op| match op {
            Op::Replace { new, .. } | Op::Create { new, .. } => Some(new.hash().clone()),
            Op::Delete { .. } => None,
        };
        let files = self.files.into_iter().map(|Planned { mut file, op }| {
            file.hash = op.and_then(|op| new(&self.ops[op]));
            file
        });
        let files = files.collect();
        let contents = self.ops.into_iter().filter_map(|op| match op {
            Op::Replace { new, .. } | Op::Create { new, .. } => Some(new),
            Op::Delete { .. } => None,
        });
        (files, contents.collect())
    }
}

/// What a change makes of an existing file.
fn outcome(
    host: &Host,
    existing: &Existing,
    change: &Wanted,
    encoding: Option<&'static encoding_rs::Encoding>,
) -> Result<Outcome, ToolError> {
    let bytes = existing.content.bytes();
    let Decoded::Text(old, form) = text::decode(&bytes, encoding) else {
        return Err(ToolError::new(
            ErrorCode::Unsupported,
            format!("`{}` is not text in an encoding that can be told; give `encoding`", change.path),
        ));
    };
    let misfit = |error: PatchError| error.into_tool_error(Some(&change.path));
    let name = &existing.name;
    let splice = match &change.kind {
        WantedKind::Edits(edits) => patch::replace(&old, edits).map_err(misfit)?,
        WantedKind::Patch(ChangeKind::Update { hunks }) => patch::apply(&old, hunks).map_err(misfit)?,
        WantedKind::Patch(ChangeKind::Delete { hunks }) => {
            if !hunks.is_empty() && !patch::apply(&old, hunks).map_err(misfit)?.of(&old).is_empty() {
                let what = "the patch removes the file, but not all that is in it".into();
                return Err(misfit(PatchError::NotFound { what }));
            }
            let diff = diff_text::unified(Some(&old), None, name, name);
            return Ok(Outcome { new: None, target: None, diff });
        }
        WantedKind::Patch(ChangeKind::Add { .. }) => unreachable!("new files are handled before"),
    };
    let target = match &change.to {
        Some(to) => Some(free(host, &place::parse(to)?)?),
        None => None,
    };
    let new_name = target.as_ref().map_or_else(|| name.clone(), |target| super::diff_name(host, target));
    let is_same = splice.replaced(&old) == splice.middle;
    if is_same && target.is_none() {
        return Err(ToolError::new(
            ErrorCode::InvalidArguments,
            format!("the patch changes nothing in `{name}`"),
        ));
    }
    let diff = if is_same {
        format!("rename from {name}\nrename to {new_name}\n")
    } else {
        diff_text::of_splice(&old, &splice, name, &new_name)
    };
    let new = if form == TextForm::PLAIN {
        // The text is the bytes.
        Content::spliced(&existing.content, splice)
    } else {
        Content::new(text::encode(&splice.of(&old), form)?)
    };
    Ok(Outcome { new: Some(new), target, diff })
}

fn existing(host: &Host, path: &Path) -> Result<Existing, ToolError> {
    let fail = |error: PathError| place::failure(&error);
    let (mut file, there) = host.workspace.open_read_known(path).map_err(fail)?;
    let content = Content::new(read::read_all(&mut file, path)?);
    let name = super::diff_name(host, &there.location);
    let mode = if there.mode & 0o111 != 0 { NewMode::Executable } else { NewMode::Plain };
    Ok(Existing { real: there.location, name, content, mode })
}

fn is_missing(host: &Host, path: &Path) -> bool {
    let error = host.workspace.stat_link(path).err();
    error.is_some_and(|error| error.io_kind() == Some(std::io::ErrorKind::NotFound))
}

/// The place of a file that is not there yet.
fn free(host: &Host, path: &Path) -> Result<PathBuf, ToolError> {
    match host.workspace.stat_link(path) {
        Ok(there) => {
            let what = if there.kind == FileKind::Directory { "is a directory" } else { "exists already" };
            Err(ToolError::new(
                ErrorCode::AlreadyExists,
                format!("nothing was changed: `{}` {what}", path.display()),
            )
            .with_details(json!({ "uri": place::uri(&there.location) })))
        }
        Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => {
            Ok(place::resolve(&host.workspace, path))
        }
        Err(error) => Err(place::failure(&error)),
    }
}
