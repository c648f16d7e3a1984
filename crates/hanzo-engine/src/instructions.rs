//! Instruction files: AGENTS.md from the root of the workspace down to the directory the thread works in, the closest
//! last; CLAUDE.md or GEMINI.md where a directory has no AGENTS.md; and the user's own file for every project.
//!
//! What is found at the start is part of the system message. A directory the agent enters later may have a file of its
//! own: [`Nested`] hands that out once, as a fragment.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use hanzo_sandbox::paths::Workspace;

use crate::files;
use crate::fold::INSTRUCTIONS_KIND;
use crate::fragment::{Fragment, Notice};

/// The names looked for in each directory; the first that exists counts.
pub const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];

/// The largest file that is taken whole, in bytes.
pub const LARGEST_FILE: usize = 32 * 1024;
/// What all files together may take. A repository with a file in each of fifty directories must not fill the window.
const LARGEST_SUM: usize = 96 * 1024;
/// The deepest chain of directories that is searched.
const DEEPEST: usize = 32;

/// An instruction file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// How it is called in the prompt: its path below the root; never an absolute one.
    pub label: String,
    /// What it holds for.
    pub scope: Scope,
    /// Its text, without a byte order mark. Says so at its end when it was cut.
    pub text: String,
}

/// What an instruction file holds for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything the user does.
    User,
    /// A directory, relative to the root; empty for the root itself.
    Directory(PathBuf),
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The files, from the most general to the closest.
    pub files: Vec<InstructionFile>,
    /// What the user should know: files that could not be used, or not whole.
    pub notices: Vec<Notice>,
}

/// Where to look.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// Opens the files of the workspace.
    pub workspace: &'a Workspace,
    /// The directory the thread works in, relative to the workspace; empty for the workspace itself.
    pub cwd: &'a Path,
    /// The user's configuration directory.
    pub config: Option<&'a Path>,
}

/// Finds the instruction files that hold from the start.
pub fn find(search: &Search<'_>) -> Found {
    let mut found = Found::default();
    let mut left = LARGEST_SUM;
    if let Some(config) = search.config {
        user_file(config, &mut found, &mut left);
    }
    for directory in chain(search.cwd) {
        directory_file(search.workspace, &directory, &mut found, &mut left);
    }
    found
}

/// The root and each directory on the way to `cwd`. Nothing for a path that leaves the workspace.
fn chain(cwd: &Path) -> Vec<PathBuf> {
    let mut chain = vec![PathBuf::new()];
    for component in cwd.components() {
        match component {
            Component::Normal(name) if chain.len() < DEEPEST => {
                let next = chain.last().map_or_else(|| PathBuf::from(name), |last| last.join(name));
                chain.push(next);
            }
            Component::CurDir => {}
            _ => break,
        }
    }
    chain
}

/// The user's own file is not the workspace's business, and is not opened through it.
fn user_file(config: &Path, found: &mut Found, left: &mut usize) {
    for name in NAMES {
        let path = config.join(name);
        let opened = match files::open_own(&path) {
            Ok(None) => continue,
            Ok(Some(file)) => text_of(file, *left).map_err(|error| error.to_string()),
            Err(error) => Err(error),
        };
        match opened {
            Ok(Some(read)) => read.add(format!("your {name}"), Scope::User, found, left),
            Ok(None) => {}
            Err(error) => {
                let why = format!("cannot read your instruction file `{}`: {error}", path.display());
                found.notices.push(Notice::warning(why));
            }
        }
        return;
    }
}

fn directory_file(workspace: &Workspace, directory: &Path, found: &mut Found, left: &mut usize) {
    for name in NAMES {
        let path = directory.join(name);
        match files::open_inside(workspace, &path) {
            Ok(None) => continue,
            Ok(Some(file)) => match text_of(file, *left) {
                Ok(Some(read)) => {
                    read.add(files::slashed(&path), Scope::Directory(directory.to_owned()), found, left);
                }
                Ok(None) => {}
                Err(error) => {
                    let why = format!("cannot read the instruction file `{}`: {error}", path.display());
                    found.notices.push(Notice::warning(why));
                }
            },
            Err(reason) => {
                let why = format!("the instruction file `{}` is not used: {reason}", path.display());
                found.notices.push(Notice::warning(why));
            }
        }
        return;
    }
}

struct Text {
    text: String,
    /// How large the file is, when only a part of it was taken.
    cut: Option<usize>,
}

impl Text {
    fn add(self, label: String, scope: Scope, found: &mut Found, left: &mut usize) {
        *left = left.saturating_sub(self.text.len());
        if self.cut.is_some() {
            let why = format!(
                "the instruction file `{label}` is long: only its first {} bytes are used",
                self.text.len()
            );
            found.notices.push(Notice::warning(why));
        }
        let text = match self.cut {
            None => self.text,
            Some(_) => format!("{}\n[the rest of this file was left out because it is too long]", self.text),
        };
        found.files.push(InstructionFile { label, scope, text });
    }
}

/// What a file says, up to its cap; `None` when it says nothing. Bytes that are not UTF-8 are replaced: instructions with an
/// odd quotation mark are better than none.
fn text_of(file: std::fs::File, left: usize) -> std::io::Result<Option<Text>> {
    let most = LARGEST_FILE.min(left);
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    let cut = (bytes.len() > most).then_some(most);
    bytes.truncate(most);
    if cut.is_some() {
        // Not in the middle of a character.
        while bytes.last().is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {
            bytes.pop();
        }
        if bytes.last().is_some_and(|byte| *byte >= 0b1100_0000) {
            bytes.pop();
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\0', "\u{fffd}");
    Ok((!text.trim().is_empty()).then_some(Text { text, cut }))
}

/// Hands out the instruction files of directories the agent enters after the start, each once.
#[derive(Debug, Clone, Default)]
pub struct Nested {
    seen: HashSet<PathBuf>,
    told: usize,
}

/// What [`Nested::entered`] has to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entered {
    /// For the model.
    pub fragment: Option<Fragment>,
    /// For the user.
    pub notices: Vec<Notice>,
}

impl Nested {
    /// A thread that works in `cwd`, relative to the workspace: what [`find`] looked at is not told again.
    pub fn new(cwd: &Path) -> Self {
        Self { seen: chain(cwd).into_iter().collect(), told: 0 }
    }

    /// The agent has read or changed the file at `path`, relative to the workspace or below it. Instruction files on the
    /// way there that were not told yet come as one fragment, the closest last.
    pub fn entered(&mut self, workspace: &Workspace, path: &Path) -> Entered {
        let relative = path.strip_prefix(workspace.path()).unwrap_or(path);
        let mut entered = Entered::default();
        if relative.is_absolute() || relative.components().any(|part| part == Component::ParentDir) {
            return entered;
        }
        let mut found = Found::default();
        let mut left = LARGEST_SUM.saturating_sub(self.told);
        for directory in chain(relative.parent().unwrap_or(Path::new(""))) {
            if self.seen.contains(&directory) || left == 0 {
                continue;
            }
            directory_file(workspace, &directory, &mut found, &mut left);
            self.seen.insert(directory);
        }
        self.told = LARGEST_SUM - left;
        // The file itself may be the one: the agent has just read it.
        found.files.retain(|file| Path::new(&file.label) != relative);
        if !found.files.is_empty() {
            let mut text = String::from(
                "These hold for the directories named, and win over those of the directories above them:",
            );
            for file in &found.files {
                let _ = write!(text, "\n\n## {}\n{}", file.label, file.text.trim());
            }
            // A file must not be able to end the block it stands in.
            let text = text.replace("</instructions", "< /instructions");
            entered.fragment = Some(Fragment { kind: INSTRUCTIONS_KIND, text });
        }
        entered.notices = found.notices;
        entered
    }

    /// Goes on after a restart: these labels were told by fragments that are still in the thread.
    pub fn mark_told(&mut self, directory: impl Into<PathBuf>) {
        self.seen.insert(directory.into());
    }
}
