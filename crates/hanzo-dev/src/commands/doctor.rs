//! `hanzo-dev doctor`: is everything in order?

use std::process::{Command, ExitCode};
use std::sync::Arc;

use hanzo_config::{LoadInputs, LoadedConfig, Trust};
use hanzo_engine::parts::Models as _;
use hanzo_sandbox::jail::{Level, probe};
use serde::Serialize;

use crate::cli::Global;
use crate::commands::trust::{Standing, standing};
use crate::commands::{sandbox, settings};
use crate::exit::{Exit, Failure};
use crate::output::Printer;
use crate::root::models::{Catalogue, Failures};
use crate::root::trust::{Remembered, TrustFile};
use crate::root::{Wrap, data_dir};
use crate::sandbox::{Overrides, jail_config};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warning,
    Error,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Check {
    name: &'static str,
    state: State,
    details: Vec<String>,
}

/// Checks everything, and fails when something is broken.
pub fn run(global: &Global, json: bool, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let checks = checks(global);
    if json {
        printer.json(&checks)?;
    } else {
        for check in &checks {
            let state = match check.state {
                State::Ok => "ok",
                State::Warning => "warning",
                State::Error => "ERROR",
            };
            printer.line(&format!("{:<9} {state}", check.name))?;
            for line in check.details.iter().flat_map(|detail| detail.lines()).filter(|line| !line.is_empty())
            {
                printer.line(&format!("            {line}"))?;
            }
        }
    }
    let broken = checks.iter().any(|check| check.state == State::Error);
    Ok(if broken { Exit::Failure } else { Exit::Ok }.into())
}

/// Looks at everything.
pub fn checks(global: &Global) -> Vec<Check> {
    vec![
        program(),
        settings_files(global),
        trust(global),
        model(global),
        servers(global),
        store(global),
        jail(global),
        terminal(),
        editor(),
        git(),
    ]
}

/// The report as Markdown, for a transcript.
pub fn markdown(checks: &[Check]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for check in checks {
        let state = match check.state {
            State::Ok => "ok",
            State::Warning => "**warning**",
            State::Error => "**ERROR**",
        };
        let _ = writeln!(text, "- `{}` {state}", check.name);
        for line in check.details.iter().flat_map(|detail| detail.lines()).filter(|line| !line.is_empty()) {
            let _ = writeln!(text, "  - {line}");
        }
    }
    text
}

fn loaded(global: &Global) -> Result<(LoadInputs, LoadedConfig), Failure> {
    let inputs = settings::inputs(global, settings::trust(false))?;
    let config = hanzo_config::load(&inputs).map_err(|error| settings::failure(Exit::Config, &error))?;
    Ok((inputs, config))
}

/// The model that would be asked, and whether there is what it takes to ask it. Nothing is sent.
fn model(global: &Global) -> Check {
    let check = |state, details| Check { name: "model", state, details };
    let Ok((inputs, config)) = loaded(global) else {
        return check(State::Warning, vec!["not checked, because the settings are broken".to_owned()]);
    };
    let wrap: Wrap = Arc::new(|client| client);
    let catalogue = Catalogue::new(Arc::new(config), &inputs.environment, wrap, Failures::default(), None);
    match catalogue.resolve(None) {
        Ok(model) => {
            let count = catalogue.list().len();
            check(State::Ok, vec![format!("{} ({count} models can be chosen)", model.reference)])
        }
        Err(error) => check(State::Warning, vec![error.message]),
    }
}

/// The MCP servers of the settings. They are not started: `hanzo-dev mcp list` does that.
fn servers(global: &Global) -> Check {
    let check = |details| Check { name: "mcp", state: State::Ok, details };
    let Ok((_, config)) = loaded(global) else { return check(Vec::new()) };
    let named: Vec<String> = config
        .settings()
        .mcp_servers
        .values()
        .map(|server| format!("{}{}", server.name, if server.disabled { " (disabled)" } else { "" }))
        .collect();
    check(vec![if named.is_empty() {
        "no servers are configured".to_owned()
    } else {
        format!("{}; `hanzo-dev mcp list` tries them", named.join(", "))
    }])
}

/// Where threads are kept, and whether they can be.
fn store(global: &Global) -> Check {
    let check = |state, detail: String| Check { name: "store", state, details: vec![detail] };
    let data = match settings::inputs(global, settings::trust(false)).and_then(|inputs| data_dir(&inputs)) {
        Ok(data) => data,
        Err(failure) => return check(State::Error, failure.to_string()),
    };
    // The nearest directory there is: the others are made when they are needed.
    let there = data.ancestors().find(|directory| directory.exists()).unwrap_or(&data);
    match rustix::fs::access(there, rustix::fs::Access::WRITE_OK) {
        Ok(()) => check(State::Ok, format!("threads are kept in {}", data.display())),
        Err(error) => check(State::Error, format!("{} cannot be written: {error}", there.display())),
    }
}

/// What is known of the terminal.
fn terminal() -> Check {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut details = Vec::new();
    let term = variable("TERM");
    let state = match term.as_deref() {
        None | Some("dumb") => State::Warning,
        Some(_) => State::Ok,
    };
    details.push(format!("TERM={}", term.as_deref().unwrap_or("is not set")));
    for (name, about) in [
        ("TMUX", "inside tmux: `/copy` needs `set -g set-clipboard on`"),
        ("NO_COLOR", "NO_COLOR is set: no colours"),
        ("SSH_CONNECTION", "over SSH: `/copy` goes to the clipboard of the terminal you sit at (OSC 52)"),
    ] {
        if variable(name).is_some() {
            details.push(about.to_owned());
        }
    }
    Check { name: "terminal", state, details }
}

/// The editor for prompts and instruction files.
fn editor() -> Check {
    let set = ["VISUAL", "EDITOR"].into_iter().find_map(|name| {
        let value = std::env::var(name).ok().filter(|value| !value.trim().is_empty())?;
        Some(format!("{value} ({name})"))
    });
    let detail = set.unwrap_or_else(|| "vi; set `VISUAL` or `EDITOR` for another".to_owned());
    Check { name: "editor", state: State::Ok, details: vec![detail] }
}

fn program() -> Check {
    Check {
        name: "hanzo-dev",
        state: State::Ok,
        details: vec![format!("version {}", env!("HANZO_DEV_VERSION"))],
    }
}

fn settings_files(global: &Global) -> Check {
    let check = |state, details| Check { name: "settings", state, details };
    let inputs = match settings::inputs(global, settings::trust(false)) {
        Ok(inputs) => inputs,
        Err(failure) => return check(State::Error, vec![failure.to_string()]),
    };
    match hanzo_config::load(&inputs) {
        Err(error) => check(State::Error, vec![settings::failure(Exit::Config, &error).to_string()]),
        Ok(config) => {
            let files = config.files().iter().filter(|file| file.present);
            let mut details: Vec<String> =
                files.map(|file| format!("{} {}", file.tier, file.path.display())).collect();
            let notes = config.warnings().iter().map(ToString::to_string);
            let notes: Vec<String> = notes.chain(config.disabled().iter().map(ToString::to_string)).collect();
            let state = if notes.is_empty() { State::Ok } else { State::Warning };
            details.extend(notes);
            details.extend(settings::trust_hint(&inputs, &config));
            if details.is_empty() {
                details.push(
                    "no file is there; every value is the default (`hanzo-dev setup` writes one)".to_owned(),
                );
            }
            check(state, details)
        }
    }
}

/// What the user has said about this workspace.
fn trust(global: &Global) -> Check {
    let check = |state, detail: String| Check { name: "trust", state, details: vec![detail] };
    let inputs: LoadInputs = match settings::inputs(global, settings::trust(false)) {
        Ok(inputs) => inputs,
        Err(failure) => return check(State::Error, failure.to_string()),
    };
    if let Remembered::Broken { path, reason } = TrustFile::new(inputs.clone()).remembered() {
        let text = format!("{} cannot be read, so that no workspace is trusted: {reason}", path.display());
        return check(State::Warning, text);
    }
    let workspace = inputs.workspace_root.display().to_string();
    let Trust::Remembered(digest) = &inputs.trust else {
        return check(State::Ok, format!("{workspace} is not trusted: what it brings along is not run"));
    };
    if standing(&inputs, &inputs.workspace_root, digest.as_str()) == Standing::Trusted {
        return check(State::Ok, format!("{workspace} is trusted"));
    }
    let text = format!("{workspace} was trusted, and its settings have changed since: they wait again");
    check(State::Warning, text)
}

fn jail(global: &Global) -> Check {
    let check = |state, details| Check { name: "sandbox", state, details };
    let config = settings::inputs(global, settings::trust(false)).and_then(|inputs| {
        let loaded = hanzo_config::load(&inputs).map_err(|error| settings::failure(Exit::Config, &error))?;
        jail_config(&loaded.settings().sandbox, &inputs, &Overrides::default())
    });
    match config {
        Err(failure) if failure.exit() == Exit::Sandbox => check(State::Warning, vec![failure.to_string()]),
        Err(_) => check(State::Warning, vec!["not checked, because the settings are broken".to_owned()]),
        Ok(config) => {
            let report = probe(&config);
            let state = match report.level {
                Level::Full => State::Ok,
                level if level >= config.require => State::Warning,
                _ => State::Error,
            };
            check(state, sandbox::lines(&config, &report))
        }
    }
}

fn git() -> Check {
    let check = |state, detail: String| Check { name: "git", state, details: vec![detail] };
    match Command::new("git").arg("--version").output() {
        Ok(done) if done.status.success() => {
            check(State::Ok, String::from_utf8_lossy(&done.stdout).trim().to_owned())
        }
        Ok(done) => check(State::Warning, format!("`git --version` ended with {}", done.status)),
        Err(error) => check(State::Warning, format!("cannot run git: {error}")),
    }
}
