//! `hanzo-dev doctor`: is everything in order?

use std::process::{Command, ExitCode};

use hanzo_config::{LoadInputs, Trust};
use hanzo_sandbox::jail::{Level, probe};
use serde::Serialize;

use crate::cli::Global;
use crate::commands::trust::{Standing, standing};
use crate::commands::{sandbox, settings};
use crate::exit::{Exit, Failure};
use crate::output::Printer;
use crate::root::trust::{Remembered, TrustFile};
use crate::sandbox::{Overrides, jail_config};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warning,
    Error,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    details: Vec<String>,
}

/// Checks everything, and fails when something is broken.
pub fn run(global: &Global, json: bool, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let checks = [program(), settings_files(global), trust(global), jail(global), git()];
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
