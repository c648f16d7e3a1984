//! `fs.apply_patch`: the one way to change what is in existing files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::{ContentHash, FileUri};
use hanzo_protocol::tool::Effect;
use hanzo_sandbox::paths::{FileKind, PathError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::text::{self, Decoded, TextForm};
use super::transaction::{self, Lock, Op};
use super::{diff_text, journal, read, shape};
use crate::contract::{Action, Answer, BaseHashes, Call, Target, place};
use crate::host::Host;
use crate::patch::{self, ChangeKind, Edit, FileChange, Hunk, NewMode, PatchError};

/// The most files of one patch.
const MAX_FILES: usize = 2000;
/// The diff of what changed behind the caller's back is no longer than this.
const MAX_STALE_DIFF: usize = 8_000;

/// Edits files.
pub(super) struct ApplyPatch;

/// The arguments of `fs.apply_patch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplyPatchInput {
    /// File or directory.
    path: Option<String>,
    /// Each old_text occurs once in path.
    edits: Option<Vec<Edit>>,
    /// Instead of edits: unified diff or *** Begin Patch.
    patch: Option<String>,
    /// Hash that read gave.
    base_hash: Option<String>,
    /// Of several files, by path.
    base_hashes: Option<BTreeMap<String, String>>,
    /// Other than UTF-8/16: e.g. windows-1252
    encoding: Option<String>,
}

/// The answer of `fs.apply_patch`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ApplyPatchOutput {
    /// What happened to each file.
    files: Vec<ChangedFile>,
    /// What changed, as a unified diff; shortened if it is long.
    diff: String,
    /// The whole diff, when it was shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff_ref: Option<String>,
}

/// A file that was changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ChangedFile {
    /// The file.
    uri: FileUri,
    /// What happened to it.
    change: Happened,
    /// The hash of its content now, for the next edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<ContentHash>,
    /// The hash of its content before, for `fs.diff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_hash: Option<ContentHash>,
    /// Where it was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_from: Option<FileUri>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Happened {
    /// Its content changed.
    Modified,
    /// It is new.
    Created,
    /// It is gone.
    Deleted,
    /// It has another name, and perhaps other content.
    Moved,
}

impl Action for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const SUMMARY: &'static str = "edit, all or nothing; returns new hashes";
    const EXAMPLE: &'static str =
        r#"{"path":"src/main.rs","base_hash":"sha256:…","edits":[{"old_text":"1","new_text":"2"}]}"#;
    const WORST: Effect = Effect::Write;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("uri", "path"),
        ("file_path", "path"),
        ("file", "path"),
        ("filename", "path"),
        ("diff", "patch"),
        ("input", "patch"),
        ("patch_text", "patch"),
    ];
    const HIDDEN: &'static [&'static str] = &["encoding"];
    const QUIET: &'static [&'static str] = &["path"];
    type Input = ApplyPatchInput;
    type Output = ApplyPatchOutput;

    /// One replacement may stand at the top.
    fn prepare(mut arguments: Map<String, Value>) -> Map<String, Value> {
        const NAMES: [(&str, &str); 8] = [
            ("old_text", "old_text"),
            ("old_string", "old_text"),
            ("old_str", "old_text"),
            ("new_text", "new_text"),
            ("new_string", "new_text"),
            ("new_str", "new_text"),
            ("replace_all", "all"),
            ("all", "all"),
        ];
        let mut edit = Map::new();
        for (given, name) in NAMES {
            if let Some(value) = arguments.shift_remove(given) {
                edit.insert(name.into(), value);
            }
        }
        if !edit.is_empty() {
            let edits = arguments.entry("edits").or_insert_with(|| json!([]));
            if let Value::Array(edits) = edits {
                edits.push(Value::Object(edit));
            }
        }
        arguments
    }

    fn effect(&self, _: &ApplyPatchInput) -> Effect {
        Effect::Write
    }

    fn targets(&self, input: &ApplyPatchInput) -> Vec<Target> {
        let mut targets: Vec<Target> = input.path.iter().map(Target::write).collect();
        if let Ok(changes) = wanted(input) {
            for change in changes {
                targets.push(Target::write(change.path));
                targets.extend(change.to.map(Target::write));
            }
        }
        targets.dedup();
        targets
    }

    async fn run(
        &self,
        call: &Call<'_>,
        input: ApplyPatchInput,
    ) -> Result<Answer<ApplyPatchOutput>, ToolError> {
        let changes = wanted(&input)?;
        let bases = Bases::new(call.host, &input, &changes, call.base_hashes)?;
        let encoding = input.encoding.as_deref().map(text::named).transpose()?;
        let runtime = tokio::runtime::Handle::current();
        let done = call
            .blocking(move |host, cancelled| {
                let lock = Lock::acquire(host, cancelled)?;
                journal::recover_locked(host, &lock)?;
                let mut plan = Plan::default();
                for change in changes {
                    cancelled.check()?;
                    match plan.add(host, change, &bases, encoding)? {
                        Checked::Fits => {}
                        Checked::Stale(stale) => return Ok(Err(stale)),
                    }
                }
                // What is about to be replaced is kept first; the put is quick when a read has kept it already.
                for old in plan.ops.iter().filter_map(old_content) {
                    runtime
                        .block_on(host.blobs.put(old))
                        .map_err(|fault| ToolError::new(ErrorCode::Io, fault.to_string()))?;
                }
                transaction::commit(host, &lock, &plan.ops, cancelled)?;
                Ok(Ok(plan))
            })
            .await?;
        let plan = match done {
            Ok(plan) => plan,
            Err(stale) => return Err(stale.into_error(call).await),
        };
        for file in &plan.files {
            let path = file.uri.to_path();
            match &file.hash {
                Some(hash) => call.host.ledger.saw(&path, hash),
                None => call.host.ledger.gone(&path),
            }
        }
        let hashes = plan.files.iter().filter_map(|file| file.hash.as_ref());
        let contents = plan.ops.into_iter().filter_map(|op| match op {
            Op::Replace { new, .. } | Op::Create { new, .. } => Some(new),
            Op::Delete { .. } => None,
        });
        for (hash, new) in hashes.zip(contents) {
            call.host.ledger.keep_read(&call.host.blobs, hash, new);
        }
        let (diff, diff_ref) = shape::shortened(call, plan.diff).await;
        Ok(Answer::new(ApplyPatchOutput { files: plan.files, diff, diff_ref }))
    }
}

fn old_content(op: &Op) -> Option<&[u8]> {
    match op {
        Op::Replace { old, .. } | Op::Delete { old, .. } => Some(old),
        Op::Create { .. } => None,
    }
}

/// What the call asks for, as changes to files.
fn wanted(input: &ApplyPatchInput) -> Result<Vec<Wanted>, ToolError> {
    let invalid = |message: &str| Err(ToolError::new(ErrorCode::InvalidArguments, message));
    match (&input.patch, &input.edits) {
        (Some(_), Some(_)) => invalid("`patch` and `edits` are both given; one of them is accepted"),
        (None, None) => invalid("`edits` or `patch` is missing: it says what to change"),
        (None, Some(edits)) => {
            let Some(path) = &input.path else {
                return invalid("`path` is missing: the file the `edits` are for");
            };
            if edits.is_empty() {
                return invalid("`edits` is empty");
            }
            Ok(vec![Wanted { path: path.clone(), to: None, kind: WantedKind::Edits(edits.clone()) }])
        }
        (Some(text), None) => {
            let changes = patch::parse(text).map_err(|error| error.into_tool_error(None))?;
            if changes.len() > MAX_FILES {
                return Err(ToolError::new(
                    ErrorCode::TooLarge,
                    format!("the patch is about {} files, more than {MAX_FILES}", changes.len()),
                ));
            }
            named(changes, input.path.as_deref())
        }
    }
}

/// A change with the file it is really about.
struct Wanted {
    path: String,
    to: Option<String>,
    kind: WantedKind,
}

enum WantedKind {
    Patch(ChangeKind),
    Edits(Vec<Edit>),
}

/// Puts the call's `path` where the patch names no file, and refuses it where the patch names another.
fn named(changes: Vec<FileChange>, path: Option<&str>) -> Result<Vec<Wanted>, ToolError> {
    let invalid = |message: String| Err(ToolError::new(ErrorCode::InvalidArguments, message));
    let count = changes.len();
    let mut wanted: Vec<Wanted> = Vec::with_capacity(count);
    for change in changes {
        let own = match (change.path.as_str(), path) {
            ("", None) => return invalid("the patch names no file, so `path` has to".into()),
            ("", Some(path)) => path.to_owned(),
            (own, Some(path)) if count == 1 => {
                let plain = place::parse(path)?;
                if !plain.ends_with(own) && !Path::new(own).ends_with(&plain) {
                    return invalid(format!("`path` is `{path}`, but the patch is about `{own}`"));
                }
                path.to_owned()
            }
            (own, _) => own.to_owned(),
        };
        if wanted.iter().any(|earlier| earlier.path == own) {
            return invalid(format!("the patch has `{own}` twice; put its hunks under one heading"));
        }
        wanted.push(Wanted { path: own, to: change.to, kind: WantedKind::Patch(change.kind) });
    }
    Ok(wanted)
}

/// The hashes the caller believes the files to have.
struct Bases {
    one: Option<String>,
    by_path: BTreeMap<PathBuf, String>,
    from_ledger: BaseHashes,
}

impl Bases {
    fn new(
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
struct Plan {
    ops: Vec<Op>,
    files: Vec<ChangedFile>,
    diff: String,
}

enum Checked {
    Fits,
    Stale(Stale),
}

/// A file that is not what the caller believes.
struct Stale {
    real: PathBuf,
    name: String,
    expected: String,
    actual: ContentHash,
    content: Vec<u8>,
}

impl Stale {
    async fn into_error(self, call: &Call<'_>) -> ToolError {
        let known = match self.expected.parse::<ContentHash>() {
            Ok(hash) => call.host.ledger.content(&call.host.blobs, &hash).await.ok().flatten(),
            Err(_) => None,
        };
        let diff =
            known.and_then(|old| match (text::decode(&old, None), text::decode(&self.content, None)) {
                (Decoded::Text(old, _), Decoded::Text(new, _)) => {
                    let mut diff = diff_text::unified(Some(&old), Some(&new), &self.name, &self.name);
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
            format!("nothing was changed: base_hash mismatch, `{}` is not what it was; {next}", self.name),
        )
        .with_details(json!({
            "uri": place::uri(&self.real),
            "expected": self.expected,
            "actual": self.actual,
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
    bytes: Vec<u8>,
    hash: ContentHash,
    mode: NewMode,
}

impl Plan {
    fn add(
        &mut self,
        host: &Host,
        change: Wanted,
        bases: &Bases,
        encoding: Option<&'static encoding_rs::Encoding>,
    ) -> Result<Checked, ToolError> {
        let path = place::parse(&change.path)?;
        let kind = match change.kind {
            WantedKind::Patch(ChangeKind::Add { text, mode }) => {
                return self.create(host, &path, &text, mode).map(|()| Checked::Fits);
            }
            // Replacing nothing in a file that is not there makes it.
            WantedKind::Edits(edits)
                if edits.len() == 1 && edits[0].old_text.is_empty() && is_missing(host, &path) =>
            {
                return self.create(host, &path, &edits[0].new_text, NewMode::Plain).map(|()| Checked::Fits);
            }
            kind => kind,
        };
        let existing = existing(host, &path)?;
        match bases.of(host, &path, &existing.real) {
            None => {
                return Err(ToolError::new(
                    ErrorCode::Conflict,
                    format!(
                        "nothing was changed: `{}` exists and no base_hash was given for it; read it and pass its hash",
                        change.path
                    ),
                )
                .with_details(json!({"uri": place::uri(&existing.real), "expected": null})));
            }
            Some(expected) if expected != existing.hash.as_str() => {
                let Existing { real, name, bytes, hash, .. } = existing;
                return Ok(Checked::Stale(Stale { real, name, expected, actual: hash, content: bytes }));
            }
            Some(_) => {}
        }
        let Decoded::Text(old, form) = text::decode(&existing.bytes, encoding) else {
            return Err(ToolError::new(
                ErrorCode::Unsupported,
                format!("`{}` is not text in an encoding that can be told; give `encoding`", change.path),
            ));
        };
        let misfit = |error: PatchError| error.into_tool_error(Some(&change.path));
        match kind {
            WantedKind::Edits(edits) => {
                let new = patch::replace(&old, &edits).map_err(misfit)?;
                self.replace(existing, &old, &new, form)?;
            }
            WantedKind::Patch(ChangeKind::Delete { hunks }) => {
                self.delete(host, &path, existing, &old, &hunks).map_err(misfit)?;
            }
            WantedKind::Patch(ChangeKind::Update { hunks }) => {
                let new = patch::apply(&old, &hunks).map_err(misfit)?;
                match &change.to {
                    None => self.replace(existing, &old, &new, form)?,
                    Some(to) => self.relocate(host, &path, &place::parse(to)?, existing, &old, &new, form)?,
                }
            }
            WantedKind::Patch(ChangeKind::Add { .. }) => unreachable!("new files are handled above"),
        }
        Ok(Checked::Fits)
    }

    fn create(&mut self, host: &Host, path: &Path, text: &str, mode: NewMode) -> Result<(), ToolError> {
        let real = free(host, path)?;
        let new = text.as_bytes().to_vec();
        let name = super::diff_name(host, &real);
        self.diff.push_str(&diff_text::unified(None, Some(text), &name, &name));
        self.files.push(ChangedFile {
            uri: place::uri(&real),
            change: Happened::Created,
            hash: Some(ContentHash::of(&new)),
            old_hash: None,
            moved_from: None,
        });
        self.ops.push(Op::Create { path: real, new, mode });
        Ok(())
    }

    fn replace(&mut self, existing: Existing, old: &str, new: &str, form: TextForm) -> Result<(), ToolError> {
        if old == new {
            return Err(ToolError::new(
                ErrorCode::InvalidArguments,
                format!("the patch changes nothing in `{}`", existing.name),
            ));
        }
        let bytes = text::encode(new, form)?;
        self.diff.push_str(&diff_text::unified(Some(old), Some(new), &existing.name, &existing.name));
        self.files.push(ChangedFile {
            uri: place::uri(&existing.real),
            change: Happened::Modified,
            hash: Some(ContentHash::of(&bytes)),
            old_hash: Some(existing.hash),
            moved_from: None,
        });
        self.ops.push(Op::Replace { path: existing.real, old: existing.bytes, new: bytes });
        Ok(())
    }

    fn delete(
        &mut self,
        host: &Host,
        path: &Path,
        existing: Existing,
        old: &str,
        hunks: &[Hunk],
    ) -> Result<(), PatchError> {
        if !hunks.is_empty() && !patch::apply(old, hunks)?.is_empty() {
            return Err(PatchError::NotFound {
                what: "the patch removes the file, but not all that is in it".into(),
            });
        }
        self.diff.push_str(&diff_text::unified(Some(old), None, &existing.name, &existing.name));
        self.files.push(ChangedFile {
            uri: place::uri(&existing.real),
            change: Happened::Deleted,
            hash: None,
            old_hash: Some(existing.hash),
            moved_from: None,
        });
        // The name that was given: of a link it is the link that goes.
        self.ops.push(Op::Delete { path: shape::absolute(host, path), old: existing.bytes });
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "each is one fact about the move, used once")]
    fn relocate(
        &mut self,
        host: &Host,
        path: &Path,
        to: &Path,
        existing: Existing,
        old: &str,
        new: &str,
        form: TextForm,
    ) -> Result<(), ToolError> {
        let target = free(host, to)?;
        let bytes = text::encode(new, form)?;
        let name = super::diff_name(host, &target);
        if old == new {
            let from = &existing.name;
            writeln!(self.diff, "rename from {from}\nrename to {name}")
                .expect("writing to a string does not fail");
        } else {
            self.diff.push_str(&diff_text::unified(Some(old), Some(new), &existing.name, &name));
        }
        self.files.push(ChangedFile {
            uri: place::uri(&target),
            change: Happened::Moved,
            hash: Some(ContentHash::of(&bytes)),
            old_hash: Some(existing.hash),
            moved_from: Some(place::uri(&existing.real)),
        });
        self.ops.push(Op::Create { path: target, new: bytes, mode: existing.mode });
        self.ops.push(Op::Delete { path: shape::absolute(host, path), old: existing.bytes });
        Ok(())
    }
}

fn existing(host: &Host, path: &Path) -> Result<Existing, ToolError> {
    let fail = |error: PathError| place::failure(&error);
    let there = host.workspace.stat(path).map_err(fail)?;
    let mut file = host.workspace.open_read(path).map_err(fail)?;
    let bytes = read::read_all(&mut file, path)?;
    let hash = ContentHash::of(&bytes);
    let name = super::diff_name(host, &there.location);
    let mode = if there.mode & 0o111 != 0 { NewMode::Executable } else { NewMode::Plain };
    Ok(Existing { real: there.location, name, bytes, hash, mode })
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
