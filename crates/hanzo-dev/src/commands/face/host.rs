//! The machine, for the terminal face.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use hanzo_config::{Environment, LoadInputs, Platform, user_data_dir};
use hanzo_engine::references::{CompletionKind, ResourceReader, complete};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::message::{Attachment, AttachmentSource};
use hanzo_sandbox::paths::Workspace;
use hanzo_tui::host::{Completion, FileEdit, Host, Memory};
use hanzo_tui::text::fuzzy;
use serde_json::{Value, json};

use super::draft::Drafts;
use super::{clipboard, memory};
use crate::cli::Global;
use crate::commands::doctor;
use crate::root::{Root, write_private};

/// How many entries of a directory are offered, and how many files found anywhere.
const OFFERED: usize = 50;
const FOUND: usize = 20;
/// The most files that are looked through for a name.
const LOOKED_AT: usize = 50_000;
/// The largest image that is attached.
const LARGEST_IMAGE: u64 = 8 * 1024 * 1024;
/// How much of the file of earlier prompts is read.
const PROMPTS_READ: u64 = 256 * 1024;

/// The machine this process runs on.
pub struct Machine {
    root: Arc<Root>,
    directory: PathBuf,
    workspace: OnceLock<Option<Workspace>>,
    /// Where prompts are remembered.
    prompts: Option<PathBuf>,
    drafts: Option<Drafts>,
    config: Option<PathBuf>,
    environment: Environment,
    global: Global,
    editor: Option<String>,
}

impl Machine {
    pub fn new(global: &Global, inputs: &LoadInputs, root: Arc<Root>) -> Self {
        let data = user_data_dir(&inputs.environment, Platform::current());
        let set = |name: &str| {
            inputs.environment.get(name).filter(|value| !value.trim().is_empty()).map(str::to_owned)
        };
        Self {
            root,
            directory: inputs.workspace_root.clone(),
            workspace: OnceLock::new(),
            prompts: data.as_ref().map(|data| data.join("prompts.jsonl")),
            drafts: data.map(|data| Drafts::new(&data, &inputs.workspace_root)),
            config: inputs.config_dir.clone(),
            environment: inputs.environment.clone(),
            global: global.clone(),
            editor: set("VISUAL").or_else(|| set("EDITOR")),
        }
    }

    fn workspace(&self) -> Option<&Workspace> {
        let open = || Workspace::open(&self.directory, &hanzo_sandbox::SandboxConfig::default()).ok();
        self.workspace.get_or_init(open).as_ref()
    }

    /// What was written here last time and not sent.
    pub fn draft(&self) -> Option<String> {
        self.drafts.as_ref().and_then(Drafts::take)
    }

    /// The prompts of this workspace that are remembered, oldest first.
    pub fn prompts(&self) -> Vec<String> {
        let here = self.directory.display().to_string();
        let Some(text) = self.prompts.as_deref().and_then(tail) else { return Vec::new() };
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|entry| entry["workspace"] == here.as_str())
            .filter_map(|entry| entry["text"].as_str().map(str::to_owned))
            .collect()
    }
}

/// The end of a file, from the start of a line on.
fn tail(path: &Path) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let from = length.saturating_sub(PROMPTS_READ);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(PROMPTS_READ).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some(if from == 0 {
        text
    } else {
        text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
    })
}

impl Host for Machine {
    fn complete(&self, typed: &str) -> Vec<Completion> {
        let Some(workspace) = self.workspace() else { return Vec::new() };
        let resources = self.root.resources(&self.directory);
        let resources = resources.as_ref().map(|resources| resources as &dyn ResourceReader);
        complete(workspace, resources, typed, OFFERED)
            .into_iter()
            .map(|found| Completion {
                label: found.label,
                insert: found.insert,
                goes_on: matches!(found.kind, CompletionKind::Directory | CompletionKind::Server),
            })
            .collect()
    }

    fn find(&self, query: &str) -> Vec<Completion> {
        let mut found: Vec<(i64, String)> = Vec::new();
        let walk = ignore::WalkBuilder::new(&self.directory).build();
        for entry in walk.flatten().take(LOOKED_AT) {
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let Ok(path) = entry.path().strip_prefix(&self.directory) else { continue };
            let Some(path) = path.to_str().filter(|path| !path.contains(['"', '\n', '\r'])) else { continue };
            if let Some(score) = fuzzy(query, path) {
                found.push((-score, path.to_owned()));
            }
        }
        found.sort();
        found.truncate(FOUND);
        let quoted = |path: &str| {
            let quote = path.contains(char::is_whitespace) || path.contains(['`', '<', '>', '\\']);
            if quote { format!("\"{path}\"") } else { path.to_owned() }
        };
        found
            .into_iter()
            .map(|(_, path)| Completion { insert: quoted(&path), label: path, goes_on: false })
            .collect()
    }

    fn branch(&self) -> Option<String> {
        let git = self.directory.join(".git");
        // In a worktree it is a file that says where the directory is.
        let git = match std::fs::read_to_string(&git) {
            Ok(text) => self.directory.join(text.trim().strip_prefix("gitdir: ")?),
            Err(_) => git,
        };
        let head = std::fs::read_to_string(git.join("HEAD")).ok()?;
        let head = head.trim();
        Some(match head.strip_prefix("ref: refs/heads/") {
            Some(branch) => branch.to_owned(),
            None => head.chars().take(8).collect(),
        })
    }

    fn sandbox(&self, thread: ThreadId) -> Option<String> {
        Some(self.root.sandbox_level(thread))
    }

    fn image(&self, path: &str) -> Option<Attachment> {
        let path = self.directory.join(path);
        let media_type = match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "png" => "image/png",
            "jpg" | "jpeg" => "image/jpeg",
            "gif" => "image/gif",
            "webp" => "image/webp",
            _ => return None,
        };
        let metadata = std::fs::metadata(&path).ok()?;
        if !metadata.is_file() || metadata.len() > LARGEST_IMAGE {
            return None;
        }
        let bytes = std::fs::read(&path).ok()?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Some(attachment(media_type, name, &bytes))
    }

    fn clipboard_image(&self) -> Result<Attachment, String> {
        let bytes = clipboard::image(&self.environment, LARGEST_IMAGE)?;
        Ok(attachment("image/png", Some("clipboard.png".to_owned()), &bytes))
    }

    fn memories(&self) -> Vec<Memory> {
        memory::files(&self.directory, self.config.as_deref(), LOOKED_AT)
    }

    fn edit_file(&self, path: &Path) -> Result<FileEdit, String> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)
                .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        }
        let before = std::fs::read(path).ok();
        self.open_editor(path)?;
        let after = std::fs::read(path).ok();
        Ok(if before == after { FileEdit::Same } else { FileEdit::Changed })
    }

    fn doctor(&self) -> String {
        doctor::markdown(&doctor::checks(&self.global))
    }

    fn keep_draft(&self, draft: &str) {
        if let Some(drafts) = &self.drafts {
            drafts.keep(draft);
        }
    }

    fn remember(&self, prompt: &str) {
        let Some(file) = &self.prompts else { return };
        let entry = json!({"workspace": self.directory.display().to_string(), "text": prompt});
        let opened = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(file);
        // A prompt that is not remembered is no reason to disturb anybody.
        if let Ok(mut file) = opened {
            let _ = file.write_all(format!("{entry}\n").as_bytes());
        }
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.directory.join(name);
        std::fs::write(&path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(path)
    }

    fn copy(&self, text: &str) -> Option<&'static str> {
        clipboard_programs(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
            .iter()
            .find(|(program, arguments)| fed(program, arguments, text))
            .map(|(program, _)| *program)
    }

    fn run(&self, program: &str, arguments: &[String]) -> Result<String, String> {
        let shown = format!("{program} {}", arguments.join(" "));
        let shown = shown.lines().next().unwrap_or_default();
        let ended = Command::new(program)
            .args(arguments)
            .current_dir(&self.directory)
            // A question on the terminal would be lost behind the face.
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_PAGER", "cat")
            .stdin(std::process::Stdio::null())
            .output()
            .map_err(|error| format!("cannot run `{shown}`: {error}\n\nhint: is `{program}` installed?"))?;
        let out = String::from_utf8_lossy(&ended.stdout).into_owned();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        match ended.status.success() {
            true if out.trim().is_empty() => Ok(said),
            true => Ok(out),
            false => Err(format!(
                "`{shown}` failed: {}",
                if said.trim().is_empty() { out.trim() } else { said.trim() }
            )),
        }
    }

    fn edit(&self, text: &str) -> Result<String, String> {
        let name = format!("hanzo-prompt-{}.md", hanzo_protocol::ids::TraceId::new());
        let path = std::env::temp_dir().join(name);
        write_private(&path, text.as_bytes())
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let ended = self.open_editor(&path);
        let edited = std::fs::read_to_string(&path);
        let _ = std::fs::remove_file(&path);
        ended?;
        edited.map_err(|error| format!("cannot read what was written: {error}"))
    }
}

impl Machine {
    /// Has the user's editor open a file and waits for its end.
    fn open_editor(&self, path: &Path) -> Result<(), String> {
        let editor = self.editor.as_deref().unwrap_or("vi");
        // Through a shell, because people have arguments in it: `EDITOR="code --wait"`.
        let ended = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(path).status();
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!(
                "the editor `{editor}` ended with {status}; everything is as it was\n\nhint: set `VISUAL` or `EDITOR`"
            )),
            Err(error) => {
                Err(format!("cannot start the editor `{editor}`: {error}\n\nhint: set `VISUAL` or `EDITOR`"))
            }
        }
    }
}

fn attachment(media_type: &str, name: Option<String>, bytes: &[u8]) -> Attachment {
    let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
    Attachment { media_type: media_type.to_owned(), name, source: AttachmentSource::Inline { base64 } }
}

/// The programs that put text on the clipboard of the desktop we run on. Over a connection that would be the wrong desktop: the
/// user sits at another.
fn clipboard_programs(is_set: impl Fn(&str) -> bool) -> &'static [(&'static str, &'static [&'static str])] {
    if is_set("SSH_CONNECTION") || is_set("SSH_TTY") {
        &[]
    } else if cfg!(target_os = "macos") {
        &[("pbcopy", &[])]
    } else if is_set("WAYLAND_DISPLAY") {
        &[("wl-copy", &[])]
    } else if is_set("DISPLAY") {
        &[("xclip", &["-selection", "clipboard"]), ("xsel", &["--clipboard", "--input"])]
    } else if is_set("WSL_DISTRO_NAME") {
        &[("clip.exe", &[])]
    } else {
        &[]
    }
}

/// Whether a program took the text to its end and was content.
fn fed(program: &str, arguments: &[&str], text: &str) -> bool {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    let written = child.stdin.take().is_some_and(|mut input| input.write_all(text.as_bytes()).is_ok());
    // Such a program leaves a copy of itself behind that holds the text; the one we started ends.
    written && child.wait().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clipboard_is_only_looked_for_where_the_user_sits() {
        let names = |set: &'static [&'static str]| {
            clipboard_programs(|name| set.contains(&name)).iter().map(|(name, _)| *name).collect::<Vec<_>>()
        };
        if cfg!(not(target_os = "macos")) {
            assert_eq!(names(&["DISPLAY"]), ["xclip", "xsel"]);
            assert_eq!(names(&["WAYLAND_DISPLAY", "DISPLAY"]), ["wl-copy"]);
            assert!(names(&[]).is_empty());
        }
        assert!(names(&["DISPLAY", "SSH_CONNECTION"]).is_empty());
    }

    #[test]
    fn it_is_not_said_that_a_program_took_what_it_did_not() {
        assert!(fed("cat", &[], "text"));
        assert!(!fed("false", &[], "text"));
        assert!(!fed("no-such-program-anywhere", &[], "text"));
    }
}
