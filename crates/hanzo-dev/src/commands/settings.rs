//! Loading the settings for a command, with the process's own surroundings.

use std::path::{Path, PathBuf};

use hanzo_config::{
    ConfigError, Environment, FlagOverride, LoadInputs, LoadedConfig, Trust, load as load_config,
};

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output::Printer;
use crate::root::trust::TrustFile;

/// Whose word counts on whether the workspace is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assume {
    /// What the user said earlier, with `hanzo-dev trust` or in a face.
    Remembered,
    /// That it is, for this once: `--trusted`.
    Trusted,
}

/// What the process's surroundings and the global options say about where settings are.
pub fn inputs(global: &Global, assume: Assume) -> Result<LoadInputs, Failure> {
    inputs_in(global, None, assume)
}

/// The same for a workspace that is named.
pub fn inputs_in(global: &Global, workspace: Option<&Path>, assume: Assume) -> Result<LoadInputs, Failure> {
    // A variable that is not Unicode cannot be any of ours.
    let environment: Environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let mut inputs = LoadInputs::new(directory(workspace.or(global.directory.as_deref()))?, environment);
    inputs.trust = match assume {
        Assume::Trusted => Trust::Trusted,
        Assume::Remembered => TrustFile::new(inputs.clone()).trust(&inputs.workspace_root),
    };
    inputs.flags = flags(global)?;
    Ok(inputs)
}

/// Loads the settings and says on stderr what the user should know about them.
pub fn load(global: &Global, assume: Assume, printer: &mut Printer) -> Result<LoadedConfig, Failure> {
    let inputs = inputs(global, assume)?;
    let config = load_config(&inputs).map_err(|error| failure(Exit::Config, &error))?;
    for warning in config.warnings() {
        printer.warning(&warning.to_string());
    }
    for disabled in config.disabled() {
        printer.warning(&disabled.to_string());
    }
    if let Some(hint) = trust_hint(&inputs, &config) {
        printer.warning(&hint);
    }
    Ok(config)
}

/// What can be done about settings that wait for trust; `None` when none do.
pub fn trust_hint(inputs: &LoadInputs, config: &LoadedConfig) -> Option<String> {
    if config.disabled().is_empty() {
        return None;
    }
    let before = match inputs.trust {
        Trust::Remembered(_) => {
            "this workspace was trusted, and its settings have changed since; look at them, then"
        }
        _ => "this workspace is not trusted; look at these settings, then",
    };
    Some(format!("{before} run `hanzo-dev trust add`"))
}

/// The error with its hint, where it has one.
pub fn failure(exit: Exit, error: &ConfigError) -> Failure {
    match error.hint() {
        Some(hint) => Failure::message(exit, format!("{error}\n\nhint: {hint}")),
        None => Failure::message(exit, error),
    }
}

/// What `--trusted` means.
pub fn trust(trusted: bool) -> Assume {
    if trusted { Assume::Trusted } else { Assume::Remembered }
}

fn directory(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let given = given.map(ToOwned::to_owned).map_or_else(std::env::current_dir, Ok)?;
    let shown = given.display();
    match std::fs::canonicalize(&given) {
        Ok(directory) if directory.is_dir() => Ok(directory),
        Ok(_) => Err(Failure::message(Exit::BadInput, format!("`{shown}` is not a directory"))),
        Err(error) => Err(Failure::message(Exit::BadInput, format!("cannot work in `{shown}`: {error}"))),
    }
}

fn flags(global: &Global) -> Result<Vec<FlagOverride>, Failure> {
    let mut flags = global
        .config
        .iter()
        // Only the key is shown as the value's origin: the value may be a secret.
        .map(|assignment| {
            let key = assignment.split_once('=').map_or(assignment.as_str(), |(key, _)| key);
            FlagOverride::parse(&format!("--config {key}"), assignment)
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| failure(Exit::Usage, &error))?;
    flags.extend(global.model.as_ref().map(|model| FlagOverride::new("--model", "model", model.as_str())));
    Ok(flags)
}
