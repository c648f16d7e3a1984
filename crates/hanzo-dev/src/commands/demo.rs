//! `hanzo-dev demo` and `hanzo-dev replay`: a recording instead of a model, and everything else real.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use hanzo_protocol::engine::{Attendance, ThreadOptions};

use crate::cli::{Global, OutputFormat};
use crate::commands::run::{task_in_root, watched};
use crate::commands::{recording, settings};
use crate::exit::{Exit, Failure};
use crate::headless::{Output, Prompt, Task, ThreadChoice};
use crate::output::Printer;
use crate::root::{self, Keep, RootOptions};

/// The recording.
const CASSETTE: &str = include_str!("../../assets/demo.cassette.jsonl");

/// The repository it was made in.
const FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("../../assets/demo/README.md")),
    ("slug.sh", include_str!("../../assets/demo/slug.sh")),
    ("check.sh", include_str!("../../assets/demo/check.sh")),
];

/// What the user of the demo asks.
const PROMPT: &str = "The check fails. Find out why and fix it.";

/// Plays the demo in a new repository.
pub fn demo(global: &Global, keep: Option<&Path>, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let place = DemoPlace::new(keep)?;
    let directory = place.directory();
    repository(directory)?;
    printer.note("This is a recording: no model is asked, what it says comes from a file in this program. Everything else happens");
    printer.note("now, on this machine: the tools, the sandbox, the files, and a check that fails first and passes then.\n");
    printer.note(&format!("A repository to work on was made in {}\n", directory.display()));
    printer.note(&format!("> {PROMPT}\n"));
    let player = recording::player("the demo", CASSETTE, directory)?;
    let global = Global { directory: Some(directory.to_owned()), model: None, config: global.config.clone() };
    let code = play(&global, player, PROMPT.to_owned(), OutputFormat::Text)?;
    printer.note("\nThat was the recording. To work on your own code with a model of your choice:\n");
    printer.note("  hanzo-dev setup                        finds keys and local model servers");
    printer.note("  hanzo-dev run \"fix the failing test\"   gives the agent a task");
    if place.is_kept() {
        printer.note(&format!("\nThe repository stays in {}", directory.display()));
    }
    Ok(code)
}

/// Plays a recording in the workspace.
pub fn replay(global: &Global, file: &Path, format: OutputFormat) -> Result<ExitCode, Failure> {
    let wrong = |what: &dyn std::fmt::Display| {
        Failure::message(Exit::BadInput, format!("cannot play {}: {what}", file.display()))
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let prompt = recording::prompt(&text).ok_or_else(|| wrong(&"it does not say what was asked"))?;
    let workspace = settings::inputs(global, settings::trust(false))?.workspace_root;
    let player = recording::player(&file.display().to_string(), &text, &workspace)?;
    play(global, player, prompt, format)
}

fn play(
    global: &Global,
    player: std::sync::Arc<dyn hanzo_protocol::roles::ApiClient>,
    prompt: String,
    format: OutputFormat,
) -> Result<ExitCode, Failure> {
    let inputs = settings::inputs(global, settings::trust(false))?;
    let task = Task {
        thread: ThreadChoice::New,
        workspace: inputs.workspace_root.clone(),
        agent: None,
        ephemeral: true,
        options: ThreadOptions { attendance: Attendance::Headless, ..ThreadOptions::default() },
        prompts: VecDeque::from([Prompt { text: prompt, attachments: Vec::new() }]),
        schema: None,
    };
    let options = RootOptions {
        inputs,
        keep: Keep::Nothing,
        program: "hanzo-dev replay",
        wrap: None,
        instead: Some(player),
    };
    root::block_on(async {
        let mut output = Output::standard(format, watched(format));
        task_in_root(task, options, &mut output, None).await.map(Into::into)
    })
}

/// Where the demo works.
enum DemoPlace {
    Kept(PathBuf),
    Temporary(PathBuf),
}

impl DemoPlace {
    fn new(keep: Option<&Path>) -> Result<Self, Failure> {
        let Some(directory) = keep else {
            let name = format!("hanzo-demo-{}", hanzo_protocol::ids::TraceId::new());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir(&path)?;
            return Ok(Self::Temporary(path.canonicalize()?));
        };
        let wrong = |what: &dyn std::fmt::Display| {
            Failure::message(
                Exit::BadInput,
                format!("cannot make the demo in {}: {what}", directory.display()),
            )
        };
        std::fs::create_dir_all(directory).map_err(|error| wrong(&error))?;
        if std::fs::read_dir(directory).map_err(|error| wrong(&error))?.next().is_some() {
            return Err(wrong(&"it is not empty"));
        }
        Ok(Self::Kept(directory.canonicalize()?))
    }

    fn directory(&self) -> &Path {
        match self {
            Self::Kept(path) | Self::Temporary(path) => path,
        }
    }

    fn is_kept(&self) -> bool {
        matches!(self, Self::Kept(_))
    }
}

impl Drop for DemoPlace {
    fn drop(&mut self) {
        if let Self::Temporary(path) = self {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// Makes the repository of the demo.
fn repository(directory: &Path) -> Result<(), Failure> {
    for (name, content) in FILES {
        std::fs::write(directory.join(name), content)?;
    }
    git(directory, &["init", "--quiet"])?;
    git(directory, &["add", "."])?;
    git(directory, &["commit", "--quiet", "--message", "Turn titles into file names"])
}

/// Runs git as nobody in particular: the demo must not depend on whose machine it is.
fn git(directory: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let failed = |what: &dyn std::fmt::Display| {
        let text = format!("the demo needs git: {what}\n\nhint: install git, and try again");
        Failure::message(Exit::Failure, text)
    };
    let done = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=Demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgSign=false"])
        .args(["-c", "init.defaultBranch=main", "-c", "core.hooksPath=/dev/null"])
        .args(arguments)
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(&error))?;
    if done.status.success() {
        return Ok(());
    }
    Err(failed(&format!("`git {}` failed: {}", arguments[0], String::from_utf8_lossy(&done.stderr).trim())))
}
