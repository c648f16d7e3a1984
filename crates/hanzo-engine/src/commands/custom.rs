//! Custom commands: Markdown files of the user and of the project. `review.md` is `/review`, `git/commit.md` is
//! `/git:commit`. Loading only reads; a file that makes no sense is left out and said.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use hanzo_sandbox::paths::{FileKind, Workspace};

use super::{Action, CommandKind, Custom, Descriptor, Origin, is_name};
use crate::agents::ProjectTrust;
use crate::files;
use crate::fragment::Notice;
use crate::text::{clip, one_line};

/// Where a project keeps commands; the later ones win.
const PROJECT_DIRECTORIES: [&str; 2] = [".claude/commands", ".hanzo/commands"];
const LARGEST_FILE: usize = 64 * 1024;
const MOST_FILES: usize = 500;
const DEEPEST: usize = 4;
const LONGEST_DESCRIPTION: usize = 300;

/// Where custom commands are looked for.
#[derive(Debug, Clone, Copy)]
pub struct Directories<'a> {
    /// The user's configuration directory.
    pub config: Option<&'a Path>,
    /// The workspace, and whether the user trusts it.
    pub project: Option<(&'a Workspace, ProjectTrust)>,
}

/// Loads the custom commands, by name, and says what was left out. A project's command wins over the user's of the same
/// name; neither takes the place of a built-in one.
pub fn load(directories: &Directories<'_>) -> (Vec<Custom>, Vec<Notice>) {
    let mut loading = Loading::default();
    if let Some(config) = directories.config {
        loading.directory(&Own, &config.join("commands"), &Origin::User);
    }
    if let Some((workspace, trust)) = directories.project {
        for directory in PROJECT_DIRECTORIES {
            loading.directory(&Inside(workspace), Path::new(directory), &Origin::from(trust));
        }
        let untrusted =
            loading.found.values().filter(|custom| custom.descriptor.origin == Origin::UntrustedProject);
        let count = untrusted.count();
        if count > 0 {
            loading.notices.push(Notice::info(format!(
                "this workspace is not trusted and has {count} custom {}: what {} is only text to the model",
                if count == 1 { "command" } else { "commands" },
                if count == 1 { "it says" } else { "they say" },
            )));
        }
    }
    (loading.found.into_values().collect(), loading.notices)
}

/// A tree of files.
trait Tree {
    /// Names and kinds in a directory; nothing when it does not exist.
    fn list(&self, directory: &Path) -> Vec<(OsString, FileKind)>;
    /// The text of a file.
    fn read(&self, file: &Path) -> Result<String, String>;
}

struct Own;

impl Tree for Own {
    fn list(&self, directory: &Path) -> Vec<(OsString, FileKind)> {
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let kind = |entry: &std::fs::DirEntry| {
            // Links of the user's own are followed.
            let metadata = std::fs::metadata(entry.path()).ok()?;
            Some(if metadata.is_dir() { FileKind::Directory } else { FileKind::File })
        };
        let known =
            entries.flatten().take(MOST_FILES).filter_map(|entry| Some((entry.file_name(), kind(&entry)?)));
        known.collect()
    }

    fn read(&self, file: &Path) -> Result<String, String> {
        let file = files::open_own(file)?.ok_or("it is gone")?;
        files::whole_text(file, LARGEST_FILE)
    }
}

struct Inside<'a>(&'a Workspace);

impl Tree for Inside<'_> {
    fn list(&self, directory: &Path) -> Vec<(OsString, FileKind)> {
        let Ok(entries) = self.0.list_dir(directory) else { return Vec::new() };
        entries.flatten().take(MOST_FILES).map(|entry| (entry.name, entry.kind)).collect()
    }

    fn read(&self, file: &Path) -> Result<String, String> {
        let file = files::open_inside(self.0, file)?.ok_or("it is gone")?;
        files::whole_text(file, LARGEST_FILE)
    }
}

#[derive(Default)]
struct Loading {
    found: BTreeMap<String, Custom>,
    notices: Vec<Notice>,
    seen: usize,
}

impl Loading {
    fn directory(&mut self, tree: &dyn Tree, root: &Path, origin: &Origin) {
        let mut waiting = vec![(root.to_owned(), Vec::<String>::new())];
        while let Some((directory, parents)) = waiting.pop() {
            let mut entries = tree.list(&directory);
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            for (name, kind) in entries {
                let path = directory.join(&name);
                let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
                match kind {
                    FileKind::Directory if parents.len() < DEEPEST => {
                        waiting.push((path, parents.iter().cloned().chain([name.to_owned()]).collect()));
                    }
                    FileKind::File | FileKind::Symlink => {
                        let Some(stem) = name.strip_suffix(".md") else { continue };
                        self.seen += 1;
                        if self.seen > MOST_FILES {
                            self.notices.push(Notice::warning(format!(
                                "only the first {MOST_FILES} custom commands are loaded"
                            )));
                            return;
                        }
                        let name =
                            parents.iter().map(String::as_str).chain([stem]).collect::<Vec<_>>().join(":");
                        self.file(tree, &path, &name, origin);
                    }
                    _ => {}
                }
            }
        }
    }

    fn file(&mut self, tree: &dyn Tree, path: &Path, name: &str, origin: &Origin) {
        let custom = tree.read(path).and_then(|text| custom(name, &text, origin));
        match custom {
            Ok(_) if Action::ALL.iter().any(|action| action.name() == name) => {
                self.leave_out(path, &format!("`/{name}` is built in; give the file another name"));
            }
            Ok(custom) => {
                self.found.insert(name.to_owned(), custom);
            }
            Err(reason) => self.leave_out(path, &reason),
        }
    }

    fn leave_out(&mut self, path: &Path, reason: &str) {
        let text = format!("the command file `{}` is left out: {reason}", path.display());
        self.notices.push(Notice::warning(text));
    }
}

fn custom(name: &str, text: &str, origin: &Origin) -> Result<Custom, String> {
    if !is_name(name) || !name.starts_with(char::is_alphabetic) {
        return Err("its name cannot be typed as a command".to_owned());
    }
    let (fields, body) = split(text)?;
    if body.trim().is_empty() {
        return Err("it says nothing".to_owned());
    }
    let field = |wanted: &str| {
        let found = fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| clip(&one_line(value), LONGEST_DESCRIPTION).into_owned())
    };
    // Without a description, its first line says what it is about.
    let first = || body.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
    let description = field("description").filter(|text| !text.is_empty());
    let description =
        description.unwrap_or_else(|| clip(&one_line(first().unwrap_or_default()), 80).into_owned());
    Ok(Custom {
        descriptor: Descriptor {
            name: name.to_owned(),
            description,
            argument_hint: field("argument-hint").filter(|hint| !hint.is_empty()),
            kind: CommandKind::Turn,
            origin: origin.clone(),
        },
        body: body.trim().to_owned(),
    })
}

type Fields<'a> = Vec<(&'a str, &'a str)>;

/// The fields of the front matter, and the rest. Front matter is a block of `key: value` lines between two lines `---`, not
/// YAML: lines that continue another one are passed over.
fn split(text: &str) -> Result<(Fields<'_>, &str), String> {
    let Some(inside) = after_fence(text) else { return Ok((Vec::new(), text)) };
    let mut fields = Vec::new();
    let mut rest = inside;
    loop {
        if let Some(body) = after_fence(rest) {
            return Ok((fields, body));
        }
        let Some((line, behind)) = rest.split_once('\n').or_else(|| (!rest.is_empty()).then_some((rest, "")))
        else {
            return Err("its front matter has no closing `---`".to_owned());
        };
        rest = behind;
        let line = line.trim_end();
        if line.is_empty() || line.starts_with(['#', ' ', '\t', '-', ']', '}']) {
            continue;
        }
        let Some((key, value)) = line.split_once(':') else {
            return Err(format!("`{}` in its front matter is not `key: value`", clip(&one_line(line), 60)));
        };
        fields.push((key.trim(), unquoted(value.trim())));
    }
}

/// What is behind a line of nothing but `---`.
fn after_fence(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("---")?;
    let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
    line.trim().is_empty().then_some(behind)
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}
