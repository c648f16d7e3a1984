//! Completion of `@…` for faces: one directory level at a time, never a walk, so that it is fast in any repository.

use std::path::Path;

use hanzo_sandbox::paths::{FileKind, Workspace};

use super::ResourceReader;

/// How many names of a directory are looked at.
const MOST_NAMES: usize = 20_000;

/// Something that could be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// What to show: the name alone.
    pub label: String,
    /// What to put behind the `@`, quoted where it has to be.
    pub insert: String,
    /// What it is.
    pub kind: CompletionKind,
}

/// What a completion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompletionKind {
    /// A directory, to descend into.
    Directory,
    /// A file, which completes the reference.
    File,
    /// An MCP server, whose resources follow.
    Server,
}

/// What `typed`, the text behind an `@` so far, could become: the entries of one directory whose names begin with its last
/// part, directories first, and the servers beside those of the top level. At most `most`.
pub fn complete(
    workspace: &Workspace,
    resources: Option<&dyn ResourceReader>,
    typed: &str,
    most: usize,
) -> Vec<Completion> {
    let typed = typed.strip_prefix('"').unwrap_or(typed);
    let (directory, begun) = typed.rsplit_once('/').map_or(("", typed), |(above, name)| (above, name));
    let prefix = if typed.contains('/') { format!("{directory}/") } else { String::new() };
    let place = if prefix.is_empty() { "." } else { prefix.as_str() };
    let lower = begun.to_lowercase();

    let mut completions = Vec::new();
    for entry in workspace.list_dir(Path::new(place)).into_iter().flatten().take(MOST_NAMES).flatten() {
        let Some(name) = entry.name.to_str() else { continue };
        // Hidden names are for those who ask.
        let hidden = name.starts_with('.') && !begun.starts_with('.');
        let typable = !name.contains(['"', '\n', '\r']);
        if hidden || name == ".git" || !typable || !name.to_lowercase().starts_with(&lower) {
            continue;
        }
        let kind = match entry.kind {
            FileKind::Directory => CompletionKind::Directory,
            FileKind::File => CompletionKind::File,
            FileKind::Symlink => match workspace.stat(Path::new(&format!("{prefix}{name}"))) {
                Ok(stat) if stat.kind == FileKind::Directory => CompletionKind::Directory,
                Ok(_) => CompletionKind::File,
                Err(_) => continue,
            },
            _ => continue,
        };
        let slash = if kind == CompletionKind::Directory { "/" } else { "" };
        let path = format!("{prefix}{name}{slash}");
        let quote = path.contains(char::is_whitespace) || path.contains(['`', '<', '>', '\\']);
        // A directory is gone on with, so that its quotation mark stays open.
        let insert = match (quote, kind) {
            (false, _) => path,
            (true, CompletionKind::Directory) => format!("\"{path}"),
            (true, _) => format!("\"{path}\""),
        };
        completions.push(Completion { label: format!("{name}{slash}"), insert, kind });
    }
    if prefix.is_empty() {
        for server in resources.map(ResourceReader::servers).unwrap_or_default() {
            if server.to_lowercase().starts_with(&lower) {
                let insert = format!("{server}:");
                completions.push(Completion { label: insert.clone(), insert, kind: CompletionKind::Server });
            }
        }
    }
    completions.sort_by(|one, other| (one.kind, &one.label).cmp(&(other.kind, &other.label)));
    completions.truncate(most);
    completions
}
