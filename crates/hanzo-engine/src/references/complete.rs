//! Completion of `@…` for faces: one directory level at a time, never a walk, so that it is fast in any repository.

use std::path::Path;

use hanzo_sandbox::paths::{FileKind, Workspace};

use super::{ResourceName, ResourceReader};

/// How many names of a directory are looked at.
const MOST_NAMES: usize = 20_000;
/// How many servers and resources stand beside the files of the top level.
const BESIDE_FILES: usize = 12;

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
    /// A resource of an MCP server.
    Resource,
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
    if let Some(resources) = resources
        && let Some((server, begun)) = typed.split_once(':')
        && resources.is_server(server)
    {
        return resources_of(resources, server, begun, most);
    }
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
    completions.sort_by(|one, other| (one.kind, &one.label).cmp(&(other.kind, &other.label)));
    completions.truncate(most);
    if let Some(resources) = resources.filter(|_| prefix.is_empty()) {
        let beside = beside_files(resources, &lower);
        // A directory of many files must not hide that there are servers.
        completions.truncate(most.saturating_sub(beside.len()));
        completions.extend(beside);
    }
    completions
}

/// The servers, and what they have as far as it fits beside files.
fn beside_files(resources: &dyn ResourceReader, lower: &str) -> Vec<Completion> {
    let mut found = Vec::new();
    for server in resources.servers() {
        if server.to_lowercase().starts_with(lower) {
            let insert = format!("{server}:");
            found.push(Completion { label: insert.clone(), insert, kind: CompletionKind::Server });
        }
        // What is typed here is most often the name of a file.
        if found.len() < BESIDE_FILES {
            let named = resources.resources(&server).into_iter().filter(|resource| {
                let begins = resource.name.to_lowercase().starts_with(lower);
                begins || (lower.len() > 2 && resource.uri.to_lowercase().contains(lower))
            });
            found.extend(named.filter_map(|resource| resource_of(&server, resource)).take(BESIDE_FILES));
        }
    }
    found.truncate(BESIDE_FILES);
    found
}

/// The resources of one server in which `begun` occurs.
fn resources_of(resources: &dyn ResourceReader, server: &str, begun: &str, most: usize) -> Vec<Completion> {
    let lower = begun.to_lowercase();
    let fits = |resource: &ResourceName| {
        resource.uri.to_lowercase().contains(&lower) || resource.name.to_lowercase().contains(&lower)
    };
    let fitting = resources.resources(server).into_iter().filter(fits);
    fitting.filter_map(|resource| resource_of(server, resource)).take(most).collect()
}

/// `None` for one that cannot be typed.
fn resource_of(server: &str, resource: ResourceName) -> Option<Completion> {
    let ResourceName { uri, name } = resource;
    if uri.contains(['"', '\n', '\r']) {
        return None;
    }
    let reference = format!("{server}:{uri}");
    let label =
        if name.is_empty() || name == uri { reference.clone() } else { format!("{reference}  {name}") };
    let quote = reference.contains(char::is_whitespace) || reference.contains(['`', '<', '>', '\\']);
    let insert = if quote { format!("\"{reference}\"") } else { reference };
    Some(Completion { label, insert, kind: CompletionKind::Resource })
}
