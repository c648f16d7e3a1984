//! `hanzo-dev` without a command: the terminal face.

mod clipboard;
mod draft;
mod host;
mod look;
mod memory;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::CommandFactory as _;
use hanzo_config::InputMode as Keys;
use hanzo_protocol::engine::{Attendance, ThreadOptions};
use hanzo_tui::edit::InputMode;
use hanzo_tui::keymap::Keymap;
use hanzo_tui::{Begin, Setup};

use crate::cli::{Cli, FaceArgs, Global};
use crate::commands::settings;
use crate::exit::{Exit, Failure};
use crate::root::{self, Keep, Root, RootOptions};
use host::Machine;

/// Opens the face and stays in it until the user leaves.
pub fn run(global: &Global, args: &FaceArgs) -> Result<ExitCode, Failure> {
    check(args)?;
    hanzo_sandbox::memory::be_frugal();
    let inputs = settings::inputs(global, settings::trust(false))?;
    let loaded = hanzo_config::load(&inputs).map_err(|error| settings::failure(Exit::Config, &error))?;
    let input = match loaded.settings().input_mode {
        Keys::Vim => InputMode::Vim,
        Keys::Emacs => InputMode::Emacs,
        _ => InputMode::Default,
    };
    let pending_timeout = Duration::from_millis(loaded.settings().input_timeout_ms.unwrap_or(500).into());
    let mut notices: Vec<String> = loaded.warnings().iter().map(ToString::to_string).collect();
    notices.extend(loaded.disabled().iter().map(ToString::to_string));
    let keymap = keymap(inputs.config_dir.as_deref(), &mut notices);
    let (theme, terminal) = look::of(&loaded.settings().terminal, args);
    let begin = match (&args.resume, args.continue_newest) {
        (Some(id), _) if id.is_empty() => Begin::Choose,
        (Some(id), _) => Begin::Id(id.clone()),
        (None, true) => Begin::Newest,
        (None, false) => Begin::New,
    };
    root::block_on(async {
        let workspace = inputs.workspace_root.clone();
        let options = RootOptions {
            inputs: inputs.clone(),
            keep: Keep::Stored,
            program: "hanzo-dev",
            wrap: None,
            instead: None,
        };
        let stop = stop()?;
        let root = Arc::new(Root::open(options).await?);
        notices.extend(root.notices.iter().cloned());
        let machine = Arc::new(Machine::new(global, &inputs, Arc::clone(&root)));
        let setup = Setup {
            workspace,
            begin,
            options: ThreadOptions {
                model: global.model.clone(),
                attendance: Attendance::Attended,
                ..ThreadOptions::default()
            },
            prompt: args.prompt.clone(),
            input,
            keymap,
            pending_timeout,
            draft: machine.draft(),
            prompts: machine.prompts(),
            theme,
            notices,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            terminal,
        };
        let left = hanzo_tui::run(root.client(), machine, setup, stop).await;
        root.close_shared().await;
        let left = left?;
        if let Some(error) = left.failed {
            return Err(root.explain(error));
        }
        if let Some(farewell) = left.farewell {
            // Whoever closed the terminal does not read it.
            let _ = writeln!(std::io::stderr(), "{farewell}");
        }
        Ok(Exit::Ok.into())
    })
}

/// What speaks against opening the face.
fn check(args: &FaceArgs) -> Result<(), Failure> {
    // One word that is nearly a command was meant to be it.
    if let Some(word) = args.prompt.as_deref().filter(|prompt| !prompt.contains(char::is_whitespace)) {
        let command = Cli::command();
        let near = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .find(|name| *name != word && strsim::damerau_levenshtein(name, word) <= 2);
        if let Some(near) = near {
            let text = format!("there is no command '{word}'\n\nhint: did you mean '{near}'?");
            return Err(Failure::message(Exit::Usage, text));
        }
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        if !args.is_given() {
            let help = Cli::command().render_help();
            return Err(Failure::message(Exit::Usage, format!("no command was given\n\n{help}")));
        }
        let text = "the terminal face needs a terminal\n\nhint: `hanzo-dev run \"what to do\"` works without one, \
                    `hanzo-dev --help` lists the commands";
        return Err(Failure::message(Exit::Usage, text));
    }
    Ok(())
}

/// The user's keys; a file with a mistake is not used, and said so.
fn keymap(config: Option<&std::path::Path>, notices: &mut Vec<String>) -> Keymap {
    let Some(file) = config.map(|config| config.join("keybindings.json")) else { return Keymap::default() };
    let Ok(text) = std::fs::read_to_string(&file) else { return Keymap::default() };
    Keymap::with_file(&text).unwrap_or_else(|error| {
        notices.push(format!("{} is not used: {error}", file.display()));
        Keymap::default()
    })
}

/// Done when the process is asked to end.
fn stop() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    })
}
