//! The instruction files of a workspace and of the user, to be looked at and changed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hanzo_engine::instructions::NAMES;
use hanzo_tui::host::Memory;

/// The most files of directories below that are listed.
const MOST: usize = 50;

/// The user's file, that of the workspace, and those of directories below it. Where one of the first two is missing, it can be
/// begun.
pub fn files(workspace: &Path, config: Option<&Path>, look_at: usize) -> Vec<Memory> {
    let mut files = Vec::new();
    if let Some(config) = config {
        files.push(in_directory(config, "yours", "for everything you do"));
    }
    files.push(in_directory(workspace, "", "this workspace"));
    let mut below = BTreeSet::new();
    for entry in ignore::WalkBuilder::new(workspace).build().flatten().take(look_at) {
        let named = entry.file_name().to_str().is_some_and(|name| NAMES.contains(&name));
        let directory = entry.path().parent().filter(|directory| *directory != workspace);
        if let Some(directory) = directory.filter(|_| named && below.len() < MOST) {
            below.insert(directory.to_owned());
        }
    }
    for directory in below {
        let shown = directory.strip_prefix(workspace).unwrap_or(&directory).display().to_string();
        files.push(in_directory(&directory, &shown, "when the agent works there"));
    }
    files
}

/// The file that counts in a directory, or the one that would.
fn in_directory(directory: &Path, place: &str, holds: &str) -> Memory {
    let there = NAMES.iter().find(|name| directory.join(name).is_file());
    let name = there.copied().unwrap_or(NAMES[0]);
    let path: PathBuf = directory.join(name);
    let label = match place {
        "" => name.to_owned(),
        "yours" => format!("your {name}"),
        below => format!("{below}/{name}"),
    };
    let detail = match std::fs::read(&path) {
        Ok(text) => {
            let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
            format!("{holds} · {lines} lines")
        }
        Err(_) => format!("{holds} · not there yet"),
    };
    Memory { label, detail, path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_counts_is_named_and_those_that_are_missing_can_be_begun() {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().join("w");
        std::fs::create_dir_all(workspace.join("src/deep")).unwrap();
        std::fs::write(workspace.join("CLAUDE.md"), "one\n\ntwo\n").unwrap();
        std::fs::write(workspace.join("src/deep/AGENTS.md"), "x").unwrap();
        std::fs::write(workspace.join("src/deep/CLAUDE.md"), "not used").unwrap();
        let found = files(&workspace, Some(home.path()), 1_000);
        let shown: Vec<String> =
            found.iter().map(|file| format!("{} | {}", file.label, file.detail)).collect();
        assert_eq!(
            shown,
            [
                "your AGENTS.md | for everything you do · not there yet",
                "CLAUDE.md | this workspace · 2 lines",
                "src/deep/AGENTS.md | when the agent works there · 1 lines",
            ]
        );
    }
}
