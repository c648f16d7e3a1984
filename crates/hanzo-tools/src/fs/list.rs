//! `fs.list`.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use hanzo_protocol::envelope::ToolError;
use hanzo_protocol::primitives::{FileUri, PageCursor};
use hanzo_protocol::tool::Effect;
use hanzo_sandbox::paths::{FileKind, OpenDir};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::{Action, Answer, Call, Target, place};
use crate::search::glob_set;
use crate::search::walk::{Scope, Walk, order_key};

/// Entries of one answer, unless the caller says otherwise.
const DEFAULT_ENTRIES: u32 = 500;
/// Bytes of URIs in one answer.
const MAX_BYTES: usize = 60_000;

/// Lists a directory.
pub(super) struct List;

/// The arguments of `fs.list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListInput {
    /// File or directory.
    path: Option<String>,
    /// Levels; default 1, with pattern all.
    depth: Option<u32>,
    /// Regex; for list a glob like **/*.rs
    pattern: Option<String>,
    /// Hidden and ignored files too.
    #[serde(default)]
    all: bool,
    /// Most lines or entries.
    limit: Option<u32>,
    /// From the previous page.
    cursor: Option<PageCursor>,
}

/// The answer of `fs.list`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ListOutput {
    /// The entries, in path order.
    entries: Vec<ListEntry>,
}

/// An entry of a directory.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ListEntry {
    /// Where it is.
    uri: FileUri,
    /// What it is.
    kind: EntryKind,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum EntryKind {
    /// A plain file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, FIFO or socket.
    Special,
}

impl From<FileKind> for EntryKind {
    fn from(kind: FileKind) -> Self {
        match kind {
            FileKind::File => Self::File,
            FileKind::Directory => Self::Directory,
            FileKind::Symlink => Self::Symlink,
            _ => Self::Special,
        }
    }
}

impl Action for List {
    const NAME: &'static str = "list";
    const SUMMARY: &'static str = "directory entries, or files by glob";
    const EXAMPLE: &'static str = r#"{"path":"src","pattern":"**/*.rs"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = super::PATH_ALIASES;
    const QUIET: &'static [&'static str] = &["path"];
    type Input = ListInput;
    type Output = ListOutput;

    fn effect(&self, _: &ListInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &ListInput) -> Vec<Target> {
        vec![Target::read(input.path.as_deref().unwrap_or("."))]
    }

    async fn run(&self, call: &Call<'_>, input: ListInput) -> Result<Answer<ListOutput>, ToolError> {
        let start = place::parse(input.path.as_deref().unwrap_or("."))?;
        let after = call.position::<String>(input.cursor.as_ref())?;
        let glob = input.pattern.as_deref().map(|pattern| glob_set(&[pattern])).transpose()?;
        let depth = match (input.depth, &glob) {
            (Some(depth), _) => Some(depth.max(1) as usize),
            (None, Some(_)) => None,
            (None, None) => Some(1),
        };
        let limit = input.limit.unwrap_or(DEFAULT_ENTRIES).max(1) as usize;
        let scope = if input.all { Scope::All } else { Scope::Visible };
        let caller = call.context.caller;
        let (entries, next, taint) = call
            .blocking(move |host, cancelled| {
                let fail = |error: hanzo_sandbox::paths::PathError| place::failure(&error);
                let real = host.workspace.stat(&start).map_err(fail)?.location;
                let taint = super::taint(host, &real, caller)?;
                let after = after.map(|key| percent_decoded(&key));
                let walk = Walk { start, depth, scope, after };
                let mut entries: Vec<ListEntry> = Vec::new();
                let mut bytes = 0;
                let mut next = None;
                let mut last = None;
                // The address of the directory that the entries now come from.
                let mut known: Option<(Arc<OpenDir>, FileUri)> = None;
                walk.run(&host.workspace, cancelled, &mut |found| {
                    if glob.as_ref().is_some_and(|glob| !glob.is_match(&found.relative)) {
                        return ControlFlow::Continue(());
                    }
                    let (_, directory) = match known.take() {
                        Some(same) if Arc::ptr_eq(&same.0, &found.dir) => known.insert(same),
                        _ => known.insert((Arc::clone(&found.dir), place::uri(found.dir.location()))),
                    };
                    let uri = directory.child(&found.name);
                    if entries.len() >= limit
                        || (!entries.is_empty() && bytes + uri.as_str().len() > MAX_BYTES)
                    {
                        next = last
                            .take()
                            .map(|(relative, kind): (PathBuf, FileKind)| order_key(&relative, kind));
                        return ControlFlow::Break(());
                    }
                    bytes += uri.as_str().len();
                    entries.push(ListEntry { uri, kind: found.kind.into() });
                    last = Some((found.relative, found.kind));
                    ControlFlow::Continue(())
                })
                .map_err(fail)?;
                cancelled.check()?;
                Ok((entries, next, taint))
            })
            .await?;
        let answer = Answer::new(ListOutput { entries }).tainted(taint);
        Ok(match next {
            Some(key) => answer.paged(call.more(&percent_encoded(&key))),
            None => answer,
        })
    }
}

/// A key as text; names need not be UTF-8.
pub(super) fn percent_encoded(key: &[u8]) -> String {
    use std::fmt::Write as _;

    let mut text = String::new();
    for byte in key {
        match byte {
            b'%' | 0..=0x1F | 0x7F.. => {
                write!(text, "%{byte:02X}").expect("writing to a string does not fail");
            }
            _ => text.push(char::from(*byte)),
        }
    }
    text
}

pub(super) fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        if let (b'%', Some(byte)) = (first, hex.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    bytes
}
