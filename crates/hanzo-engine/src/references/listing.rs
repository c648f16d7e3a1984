//! Directories: what is in them, as far as a person would care.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hanzo_sandbox::paths::{FileKind, PathError, Workspace};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::files;
use crate::text::one_line;

const MOST_ENTRIES: usize = 500;
const MOST_VISITED: usize = 20_000;
const DEEPEST: usize = 12;
const LONGEST_TIME: Duration = Duration::from_secs(2);
const LARGEST_IGNORE_FILE: usize = 256 * 1024;

/// Never worth listing, whether or not a `.gitignore` says so.
const NOISE: [&str; 3] = [".git", "node_modules", ".DS_Store"];

struct Lister<'a> {
    workspace: &'a Workspace,
    /// From the outermost directory to the one that is being listed.
    rules: Vec<Gitignore>,
    text: String,
    room: usize,
    entries: usize,
    visited: usize,
    started: Instant,
    full: bool,
}

/// The tree below a directory, one entry a line, directories with a `/`, depth first.
pub(super) fn list(workspace: &Workspace, path: &Path, room: usize) -> Result<String, PathError> {
    let mut lister = Lister {
        workspace,
        rules: Vec::new(),
        text: String::new(),
        room,
        entries: 0,
        visited: 0,
        started: Instant::now(),
        full: false,
    };
    let real = workspace.stat(path)?.location;
    // The rules of the directories above hold too, up to the workspace.
    if let Ok(below) = real.strip_prefix(workspace.path()) {
        let mut above = workspace.path().to_owned();
        for part in below.components() {
            lister.enter(&above);
            above.push(part);
        }
    }
    lister.directory(&real, "", 0)?;
    if lister.full {
        lister.text.push_str("[more entries are not shown]\n");
    }
    if lister.text.is_empty() {
        lister.text.push_str("[empty]\n");
    }
    Ok(lister.text)
}

impl Lister<'_> {
    /// Reads the ignore rules of a directory.
    fn enter(&mut self, directory: &Path) {
        let mut builder = GitignoreBuilder::new(directory);
        let opened = self.workspace.open_read(&directory.join(".gitignore"));
        if let Ok(text) = opened
            .map_err(|error| error.to_string())
            .and_then(|file| files::whole_text(file, LARGEST_IGNORE_FILE))
        {
            for line in text.lines() {
                // A line that is no pattern is passed over, as git does.
                let _ = builder.add_line(None, line);
            }
        }
        self.rules.push(builder.build().unwrap_or_else(|_| Gitignore::empty()));
    }

    fn is_ignored(&self, path: &Path, is_directory: bool) -> bool {
        for rules in self.rules.iter().rev() {
            match rules.matched(path, is_directory) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }

    fn directory(&mut self, path: &Path, shown: &str, depth: usize) -> Result<(), PathError> {
        let mut entries = Vec::new();
        for entry in self.workspace.list_dir(path)? {
            self.visited += 1;
            if self.visited > MOST_VISITED || self.started.elapsed() > LONGEST_TIME {
                self.full = true;
                break;
            }
            entries.extend(entry.ok());
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        self.enter(path);
        for entry in entries {
            if self.full {
                break;
            }
            let child: PathBuf = path.join(&entry.name);
            let is_directory = entry.kind == FileKind::Directory;
            let name = entry.name.to_string_lossy();
            if NOISE.contains(&name.as_ref()) || self.is_ignored(&child, is_directory) {
                continue;
            }
            let shown = format!("{shown}{}", one_line(&name));
            let mark = match entry.kind {
                FileKind::Directory => "/",
                FileKind::Symlink => " (link)",
                FileKind::Special => " (special)",
                _ => "",
            };
            if self.entries == MOST_ENTRIES || self.text.len() + shown.len() + 64 > self.room {
                self.full = true;
                break;
            }
            self.entries += 1;
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "{shown}{mark}");
            if is_directory && depth < DEEPEST {
                // One that is closed is named and left alone.
                let _ = self.directory(&child, &format!("{shown}/"), depth + 1);
            }
        }
        self.rules.pop();
        Ok(())
    }
}
