//! `hanzo-dev trust`: which workspaces may bring along what runs something, sends something somewhere or loosens a rule.

use std::path::{Path, PathBuf};

use hanzo_config::{LoadInputs, Trust, TrustDigest, load};
use hanzo_protocol::engine::WorkspaceTrust;
use serde_json::json;

use crate::cli::{Global, TrustCommand};
use crate::commands::settings::{self, Assume};
use crate::exit::{Exit, Failure};
use crate::output::Printer;
use crate::root::trust::{Remembered, TrustFile};

/// Runs the command.
pub fn run(global: &Global, command: &TrustCommand, printer: &mut Printer) -> Result<(), Failure> {
    match command {
        TrustCommand::List { json } => list(global, *json, printer),
        TrustCommand::Add { workspace } => add(global, workspace.as_deref(), printer),
        TrustCommand::Remove { workspace } => remove(global, workspace.as_deref(), printer),
    }
}

/// How it stands with a workspace that is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is as it was when it was trusted.
    Trusted,
    /// Its settings are other ones now, so that they wait again.
    Changed,
    /// Its settings cannot be read.
    Broken,
    /// It is not there.
    Gone,
}

impl Standing {
    fn word(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Changed => "changed since, so not trusted",
            Self::Broken => "has settings that cannot be read",
            Self::Gone => "is not there",
        }
    }
}

/// How it stands with `workspace`, which was trusted when its settings had this digest.
pub fn standing(around: &LoadInputs, workspace: &Path, digest: &str) -> Standing {
    if !workspace.is_dir() {
        return Standing::Gone;
    }
    match load(&inputs_of(around, workspace, Trust::Untrusted)) {
        Err(_) => Standing::Broken,
        Ok(config) if config.trust_digest().map_or("", TrustDigest::as_str) == digest => Standing::Trusted,
        Ok(_) => Standing::Changed,
    }
}

fn inputs_of(around: &LoadInputs, workspace: &Path, trust: Trust) -> LoadInputs {
    let mut inputs = around.clone();
    workspace.clone_into(&mut inputs.cwd);
    workspace.clone_into(&mut inputs.workspace_root);
    inputs.trust = trust;
    inputs
}

fn list(global: &Global, json: bool, printer: &mut Printer) -> Result<(), Failure> {
    let inputs = settings::inputs(global, Assume::Remembered)?;
    let all = match TrustFile::new(inputs.clone()).remembered() {
        Remembered::Workspaces(all) => all,
        Remembered::Broken { path, reason } => {
            let text = format!(
                "{} cannot be read, so that no workspace is trusted: {reason}\n\nhint: correct or remove it",
                path.display()
            );
            return Err(Failure::message(Exit::Config, text));
        }
    };
    let standings: Vec<(PathBuf, Standing)> = all
        .into_iter()
        .map(|(workspace, digest)| {
            let standing = standing(&inputs, &workspace, &digest);
            (workspace, standing)
        })
        .collect();
    if json {
        let entry = |(workspace, standing): &(PathBuf, Standing)| json!({"workspace": workspace, "state": format!("{standing:?}").to_lowercase()});
        return printer.json(&standings.iter().map(entry).collect::<Vec<_>>());
    }
    if standings.is_empty() {
        printer.note("no workspace is trusted");
    }
    for (workspace, standing) in standings {
        printer.line(&format!("{}  {}", workspace.display(), standing.word()))?;
    }
    Ok(())
}

fn add(global: &Global, workspace: Option<&Path>, printer: &mut Printer) -> Result<(), Failure> {
    let inputs = settings::inputs_in(global, workspace, Assume::Remembered)?;
    let workspace = inputs.workspace_root.clone();
    let failed = |error| settings::failure(Exit::Config, &error);
    let shown = load(&inputs_of(&inputs, &workspace, Trust::Untrusted)).map_err(failed)?;
    let digest = shown.trust_digest().map(ToString::to_string).unwrap_or_default();
    for waiting in shown.disabled() {
        printer.line(&format!(
            "{}: `{}` = {} ({})",
            waiting.origin, waiting.key, waiting.value, waiting.reason
        ))?;
    }
    let decision = WorkspaceTrust { workspace: workspace.clone(), digest, trusted: true };
    TrustFile::new(inputs)
        .decide(&decision)
        .map_err(|error| Failure::message(Exit::BadInput, error.message))?;
    printer.note(&match shown.disabled().len() {
        0 => format!("{} is trusted; its settings bring along nothing that needed it", workspace.display()),
        1 => {
            format!("{} is trusted with the setting above, as long as it stays as it is", workspace.display())
        }
        count => format!(
            "{} is trusted with the {count} settings above, as long as they stay as they are",
            workspace.display()
        ),
    });
    Ok(())
}

fn remove(global: &Global, workspace: Option<&Path>, printer: &mut Printer) -> Result<(), Failure> {
    let inputs = settings::inputs(global, Assume::Remembered)?;
    let file = TrustFile::new(inputs);
    // One that is gone has no root to be found any more, and is named as it was listed.
    let known =
        |path: &Path| matches!(file.remembered(), Remembered::Workspaces(all) if all.contains_key(path));
    let workspace = match workspace.filter(|path| known(path)) {
        Some(path) => path.to_owned(),
        None => settings::inputs_in(global, workspace, Assume::Remembered)?.workspace_root,
    };
    if !known(&workspace) {
        let text =
            format!("{} is not trusted\n\nhint: `hanzo-dev trust list` shows which are", workspace.display());
        return Err(Failure::message(Exit::BadInput, text));
    }
    let decision = WorkspaceTrust { workspace: workspace.clone(), digest: String::new(), trusted: false };
    file.decide(&decision).map_err(|error| Failure::message(Exit::BadInput, error.message))?;
    printer.note(&format!("{} is no longer trusted", workspace.display()));
    Ok(())
}
