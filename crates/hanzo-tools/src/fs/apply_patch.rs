//! `fs.apply_patch`: the one way to change what is in existing files.

use std::collections::BTreeMap;
use std::path::Path;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::{ContentHash, FileUri};
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::plan::{Bases, Misfit, Plan};
use super::transaction::{Lock, Op, Ready};
use super::{journal, shape, text};
use crate::contract::{Action, Answer, Call, Target, place};
use crate::ledger::MAX_KEPT_READ;
use crate::patch::{self, ChangeKind, Edit, FileChange};

/// The most files of one patch.
const MAX_FILES: usize = 2000;

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
    pub(super) base_hash: Option<String>,
    /// Of several files, by path.
    pub(super) base_hashes: Option<BTreeMap<String, String>>,
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
    pub(super) uri: FileUri,
    /// What happened to it.
    pub(super) change: Happened,
    /// The hash of its content now, for the next edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hash: Option<ContentHash>,
    /// The hash of its content before, for `fs.diff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) old_hash: Option<ContentHash>,
    /// Where it was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) moved_from: Option<FileUri>,
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
                    match plan.add(host, &change, &bases, encoding) {
                        Ok(()) => {}
                        Err(Misfit::Stale(stale)) => return Ok(Err(stale)),
                        Err(Misfit::Other(error)) => return Err(error),
                    }
                }
                // What is about to be replaced is kept first; the put is quick when a read has kept it already.
                for old in plan.ops.iter().filter_map(Op::old) {
                    runtime
                        .block_on(host.blobs.put(&old.bytes()))
                        .map_err(|fault| ToolError::new(ErrorCode::Io, fault.to_string()))?;
                }
                let ready = Ready::stage(host, &lock, &plan.ops, cancelled)?;
                if let Some(stale) = plan.stale() {
                    return Ok(Err(stale));
                }
                ready.apply()?;
                Ok(Ok(plan))
            })
            .await?;
        let mut plan = match done {
            Ok(plan) => plan,
            Err(stale) => return Err(stale.into_error(call).await),
        };
        let diff = std::mem::take(&mut plan.diff);
        let (files, contents) = plan.done();
        for file in &files {
            let path = file.uri.to_path();
            match &file.hash {
                Some(hash) => call.host.ledger.saw(&path, hash),
                None => call.host.ledger.gone(&path),
            }
        }
        for new in contents {
            let hash = new.hash().clone();
            // What is too large to be kept is not put together for it either.
            if new.len() <= MAX_KEPT_READ {
                call.host.ledger.keep_read(&call.host.blobs, &hash, new.to_shared());
            }
        }
        let (diff, diff_ref) = shape::shortened(call, diff).await;
        Ok(Answer::new(ApplyPatchOutput { files, diff, diff_ref }))
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
pub(super) struct Wanted {
    pub(super) path: String,
    pub(super) to: Option<String>,
    pub(super) kind: WantedKind,
}

pub(super) enum WantedKind {
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
