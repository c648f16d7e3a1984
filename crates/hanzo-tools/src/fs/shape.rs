//! The actions that change what there is, not what is in it: `write` (new files), `mkdir`, `mv`, `rm`; and `stat`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::{ContentHash, FileUri};
use hanzo_protocol::tool::Effect;
use hanzo_sandbox::paths::{FileKind, Overwrite, PathError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::content::Content;
use super::list::EntryKind;
use super::transaction::{self, Lock, Op};
use super::{journal, read};
use crate::contract::{Action, Answer, BaseHashes, Call, Cancelled, Target, place};
use crate::host::Host;
use crate::patch::NewMode;

/// The longest diff in an answer; a longer one is behind a ref.
const MAX_DIFF: usize = 16_000;

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn fail(error: PathError) -> ToolError {
    place::failure(&error)
}

/// A diff as an answer carries it: its beginning and a ref to the whole when it is long.
pub(super) async fn shortened(call: &Call<'_>, diff: String) -> (String, Option<String>) {
    if diff.len() <= MAX_DIFF {
        return (diff, None);
    }
    let kept = call.host.blobs.put(diff.as_bytes()).await.ok();
    let mut end = MAX_DIFF;
    while !diff.is_char_boundary(end) {
        end -= 1;
    }
    let end = diff[..end].rfind('\n').map_or(end, |at| at + 1);
    (diff[..end].to_owned(), kept.map(|hash| format!("{}{hash}", read::REF_PREFIX)))
}

/// Makes a file.
pub(super) struct Write;

/// The arguments of `fs.write`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteInput {
    /// File or directory.
    path: String,
    /// Whole text of the new file.
    content: String,
}

/// The answer of the actions that make something.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WriteOutput {
    /// The file.
    uri: FileUri,
    /// The hash of its content.
    hash: ContentHash,
    /// Its size in bytes.
    size: u64,
}

impl Action for Write {
    const NAME: &'static str = "write";
    const SUMMARY: &'static str = "create a new file";
    const EXAMPLE: &'static str = r##"{"path":"docs/new.md","content":"# New\n"}"##;
    const WORST: Effect = Effect::Write;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("uri", "path"),
        ("file_path", "path"),
        ("file", "path"),
        ("filename", "path"),
        ("text", "content"),
        ("contents", "content"),
        ("file_text", "content"),
    ];
    const QUIET: &'static [&'static str] = &["path", "content"];
    type Input = WriteInput;
    type Output = WriteOutput;

    fn effect(&self, _: &WriteInput) -> Effect {
        Effect::Write
    }

    fn targets(&self, input: &WriteInput) -> Vec<Target> {
        vec![Target::write(&input.path)]
    }

    async fn run(&self, call: &Call<'_>, input: WriteInput) -> Result<Answer<WriteOutput>, ToolError> {
        let path = place::parse(&input.path)?;
        let base_hashes = call.base_hashes;
        let content = Content::new(input.content.into_bytes());
        let (real, content) =
            call.blocking(move |host, cancelled| write(host, &path, content, base_hashes, cancelled)).await?;
        let (hash, content) = (content.hash().clone(), content.to_shared());
        let size = content.len() as u64;
        call.host.ledger.saw(&real, &hash);
        call.host.ledger.keep_read(&call.host.blobs, &hash, content);
        Ok(Answer::new(WriteOutput { uri: place::uri(&real), hash, size }))
    }
}

fn write(
    host: &Host,
    path: &Path,
    content: Content,
    base_hashes: BaseHashes,
    cancelled: &Cancelled,
) -> Result<(PathBuf, Content), ToolError> {
    let lock = Lock::acquire(host, cancelled)?;
    journal::recover_locked(host, &lock)?;
    let op = match host.workspace.stat(path) {
        Ok(there) => {
            if base_hashes == BaseHashes::Given || there.kind != FileKind::File {
                return Err(ToolError::new(
                    ErrorCode::AlreadyExists,
                    format!("`{}` exists; change it with apply_patch", path.display()),
                )
                .with_details(json!({ "uri": place::uri(&there.location) })));
            }
            let old = read::read_all(&mut host.workspace.open_read(path).map_err(fail)?, path)?;
            let actual = ContentHash::of(&old);
            if host.ledger.last_seen(&there.location).as_ref() != Some(&actual) {
                return Err(ToolError::new(
                    ErrorCode::Conflict,
                    format!(
                        "`{}` exists and was not read since it last changed; read it first",
                        path.display()
                    ),
                ));
            }
            Op::Replace { path: there.location, old: Content::hashed(old, actual), new: content }
        }
        Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => {
            Op::Create { path: place::resolve(&host.workspace, path), new: content, mode: NewMode::Plain }
        }
        Err(error) => return Err(fail(error)),
    };
    let ops = [op];
    transaction::commit(host, &lock, &ops, cancelled)?;
    let real = host.workspace.stat(path).map(|there| there.location).map_err(fail)?;
    let [Op::Replace { new, .. } | Op::Create { new, .. }] = ops else { unreachable!("it is one of these") };
    Ok((real, new))
}

/// The path as an absolute one, so that a journal can be read from anywhere.
pub(super) fn absolute(host: &Host, path: &Path) -> PathBuf {
    host.workspace.path().join(path)
}

/// Makes a directory.
pub(super) struct Mkdir;

/// The arguments of actions that take a path and nothing else.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PathInput {
    /// File or directory.
    path: String,
}

/// The answer of actions that have nothing else to say.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PathOutput {
    /// What was made, moved or removed.
    uri: FileUri,
}

impl Action for Mkdir {
    const NAME: &'static str = "mkdir";
    const SUMMARY: &'static str = "parents too";
    const EXAMPLE: &'static str = r#"{"path":"src/new"}"#;
    const WORST: Effect = Effect::Write;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = super::PATH_ALIASES;
    const QUIET: &'static [&'static str] = &["path"];
    type Input = PathInput;
    type Output = PathOutput;

    fn effect(&self, _: &PathInput) -> Effect {
        Effect::Write
    }

    fn targets(&self, input: &PathInput) -> Vec<Target> {
        vec![Target::write(&input.path)]
    }

    async fn run(&self, call: &Call<'_>, input: PathInput) -> Result<Answer<PathOutput>, ToolError> {
        let path = place::parse(&input.path)?;
        let real = call
            .blocking(move |host, _| {
                // Resolved first: on the way through `a/..` a directory `a` would be made.
                host.workspace.mkdir_all(&place::resolve(&host.workspace, &path)).map_err(fail)?;
                host.workspace.stat(&path).map(|there| there.location).map_err(fail)
            })
            .await?;
        Ok(Answer::new(PathOutput { uri: place::uri(&real) }))
    }
}

/// Moves a file or directory.
pub(super) struct Mv;

/// The arguments of `fs.mv`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MvInput {
    /// File or directory.
    path: String,
    /// New path; must not exist.
    to: String,
}

impl Action for Mv {
    const NAME: &'static str = "mv";
    const SUMMARY: &'static str = "move or rename";
    const EXAMPLE: &'static str = r#"{"path":"a.rs","to":"b.rs"}"#;
    const WORST: Effect = Effect::Write;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("uri", "path"),
        ("file_path", "path"),
        ("from", "path"),
        ("source", "path"),
        ("source_path", "path"),
        ("old_path", "path"),
        ("destination", "to"),
        ("destination_path", "to"),
        ("dest", "to"),
        ("target", "to"),
        ("new_path", "to"),
    ];
    const QUIET: &'static [&'static str] = &["path", "to"];
    type Input = MvInput;
    type Output = PathOutput;

    fn effect(&self, _: &MvInput) -> Effect {
        Effect::Write
    }

    fn targets(&self, input: &MvInput) -> Vec<Target> {
        vec![Target::write(&input.path), Target::write(&input.to)]
    }

    async fn run(&self, call: &Call<'_>, input: MvInput) -> Result<Answer<PathOutput>, ToolError> {
        let (from, to) = (place::parse(&input.path)?, place::parse(&input.to)?);
        let real = call
            .blocking(move |host, cancelled| {
                let _lock = Lock::acquire(host, cancelled)?;
                let old = host.workspace.stat_link(&from).map_err(fail)?.location;
                if let Some(parent) = place::resolve(&host.workspace, &to).parent() {
                    host.workspace.mkdir_all(parent).map_err(fail)?;
                }
                host.workspace.rename(&from, &to, Overwrite::Refuse).map_err(fail)?;
                let new = host.workspace.stat_link(&to).map_err(fail)?.location;
                if let Some(hash) = host.ledger.last_seen(&old) {
                    host.ledger.gone(&old);
                    host.ledger.saw(&new, &hash);
                }
                Ok(new)
            })
            .await?;
        Ok(Answer::new(PathOutput { uri: place::uri(&real) }))
    }
}

/// Removes a file or directory.
pub(super) struct Rm;

/// The arguments of `fs.rm`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RmInput {
    /// File or directory.
    path: String,
    /// Must be true for rm.
    confirm: Option<bool>,
}

/// The answer of `fs.rm`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RmOutput {
    /// What was removed.
    uri: FileUri,
    /// How many files and directories that were.
    removed: u64,
    /// The hash of the file that was removed, if it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<ContentHash>,
}

impl Action for Rm {
    const NAME: &'static str = "rm";
    const SUMMARY: &'static str = "remove; confirm must be true";
    const EXAMPLE: &'static str = r#"{"path":"old.txt","confirm":true}"#;
    const WORST: Effect = Effect::Write;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = super::PATH_ALIASES;
    const QUIET: &'static [&'static str] = &["path", "confirm"];
    type Input = RmInput;
    type Output = RmOutput;

    fn effect(&self, _: &RmInput) -> Effect {
        Effect::Write
    }

    fn targets(&self, input: &RmInput) -> Vec<Target> {
        vec![Target::write(&input.path)]
    }

    async fn run(&self, call: &Call<'_>, input: RmInput) -> Result<Answer<RmOutput>, ToolError> {
        if input.confirm != Some(true) {
            return Err(ToolError::new(
                ErrorCode::ConfirmationRequired,
                format!("removing `{}` cannot be undone; pass `confirm: true` if it is meant", input.path),
            ));
        }
        let path = place::parse(&input.path)?;
        let (real, removed, old) = call
            .blocking(move |host, cancelled| {
                let _lock = Lock::acquire(host, cancelled)?;
                let there = host.workspace.stat_link(&path).map_err(fail)?;
                let old = match there.kind {
                    FileKind::File if there.len <= read::MAX_FILE => host
                        .workspace
                        .open_read(&path)
                        .ok()
                        .and_then(|mut file| read::read_all(&mut file, &path).ok()),
                    _ => None,
                };
                let removed = if there.kind == FileKind::Directory {
                    let mut tree = vec![path.clone()];
                    let mut names = Vec::new();
                    while let Some(directory) = tree.pop() {
                        cancelled.check()?;
                        names.push((directory.clone(), FileKind::Directory));
                        for entry in host.workspace.list_dir(&directory).map_err(fail)? {
                            let entry = entry.map_err(fail)?;
                            if entry.name == ".git" {
                                return Err(ToolError::new(
                                    ErrorCode::Denied,
                                    format!(
                                        "nothing was removed: `{}` holds a git repository",
                                        directory.display()
                                    ),
                                ));
                            }
                            let inner = directory.join(&entry.name);
                            if entry.kind == FileKind::Directory {
                                tree.push(inner);
                            } else {
                                names.push((inner, entry.kind));
                            }
                        }
                    }
                    // Whatever is in a directory comes after it, so backwards is inside out.
                    for (name, kind) in names.iter().rev() {
                        match kind {
                            FileKind::Directory => host.workspace.remove_dir(name),
                            _ => host.workspace.remove_file(name),
                        }
                        .map_err(fail)?;
                    }
                    names.len() as u64
                } else {
                    host.workspace.remove_file(&path).map_err(fail)?;
                    1
                };
                host.ledger.gone(&there.location);
                Ok((there.location, removed, old))
            })
            .await?;
        let hash = old.map(|old| {
            let hash = ContentHash::of(&old);
            call.host.ledger.keep_read(&call.host.blobs, &hash, old);
            hash
        });
        Ok(Answer::new(RmOutput { uri: place::uri(&real), removed, hash }))
    }
}

/// Looks at a file without reading it to the caller.
pub(super) struct Stat;

/// The answer of `fs.stat`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StatOutput {
    /// Where it really is.
    uri: FileUri,
    /// What it is.
    kind: EntryKind,
    /// Its size in bytes.
    size: u64,
    /// The hash of its content; none for what is no plain file or too large to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<ContentHash>,
    /// When it last changed, RFC 3339.
    mtime: String,
    /// Its permissions, such as `644`.
    mode: String,
    /// Where the link leads, when it leads nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

impl Action for Stat {
    const NAME: &'static str = "stat";
    const SUMMARY: &'static str = "kind, size, hash, mtime";
    const EXAMPLE: &'static str = r#"{"path":"Cargo.toml"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = super::PATH_ALIASES;
    const QUIET: &'static [&'static str] = &["path"];
    type Input = PathInput;
    type Output = StatOutput;

    fn effect(&self, _: &PathInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &PathInput) -> Vec<Target> {
        vec![Target::read(&input.path)]
    }

    async fn run(&self, call: &Call<'_>, input: PathInput) -> Result<Answer<StatOutput>, ToolError> {
        let path = place::parse(&input.path)?;
        let caller = call.context.caller;
        let looked = call.briefly(move |host| stat(host, &path, caller)).await?;
        let output = match looked {
            Looked::Known(output) => output,
            Looked::ToRead(output, mut file) => {
                let real = output.uri.to_path();
                let hash = move |_: &Arc<Host>, _: &Cancelled| {
                    read::read_all(&mut file, &real).map(|content| ContentHash::of(&content))
                };
                StatOutput { hash: Some(call.blocking(hash).await?), ..output }
            }
        };
        Ok(Answer::new(output))
    }
}

/// A file that was looked at.
enum Looked {
    Known(StatOutput),
    /// Its hash is to come; reading it takes a while.
    ToRead(StatOutput, File),
}

/// Up to here reading and hashing a file takes no longer than handing it to another thread.
const SMALL: u64 = 64 << 10;

fn stat(host: &Host, path: &Path, caller: hanzo_protocol::tool::ToolCaller) -> Result<Looked, ToolError> {
    let workspace = &host.workspace;
    // Most are plain files, which are found and opened in one go. What is not is looked at again more closely.
    let (there, file) = match workspace.open_read_known(path) {
        Ok((file, there)) => (there, Some(file)),
        Err(_) => match workspace.stat(path) {
            Ok(there) if there.kind == FileKind::File => {
                let file = workspace.open_read(path).map_err(fail)?;
                (there, Some(file))
            }
            Ok(there) => (there, None),
            Err(error) => match workspace.stat_link(path) {
                Ok(link) if link.kind == FileKind::Symlink => (link, None),
                _ => return Err(fail(error)),
            },
        },
    };
    super::taint(host, &there.location, caller)?;
    let target = match there.kind {
        FileKind::Symlink => workspace.read_link(path).ok().map(|target| target.display().to_string()),
        _ => None,
    };
    let mtime = jiff::Timestamp::from_nanosecond(there.modified_ns).unwrap_or_default();
    let output = StatOutput {
        uri: place::uri(&there.location),
        kind: there.kind.into(),
        size: there.len,
        hash: None,
        mtime: mtime.to_string(),
        mode: format!("{:o}", there.mode),
        target,
    };
    Ok(match file {
        Some(mut file) if there.len <= SMALL => {
            let hash = Some(ContentHash::of(&read::read_all(&mut file, path)?));
            Looked::Known(StatOutput { hash, ..output })
        }
        Some(file) if there.len <= read::MAX_FILE => Looked::ToRead(output, file),
        _ => Looked::Known(output),
    })
}
