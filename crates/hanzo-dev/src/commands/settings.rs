//! Loading the settings for a command, with the process's own surroundings.

use std::path::PathBuf;

use hanzo_config::{
    ConfigError, Environment, FlagOverride, LoadInputs, LoadedConfig, Trust, load as load_config,
};

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output::Printer;

/// What the process's surroundings and the global options say about where settings are.
pub fn inputs(global: &Global, trust: Trust) -> Result<LoadInputs, Failure> {
    // A variable that is not Unicode cannot be any of ours.
    let environment: Environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let mut inputs = LoadInputs::new(directory(global)?, environment);
    inputs.trust = trust;
    inputs.flags = flags(global)?;
    Ok(inputs)
}

/// Loads the settings and says on stderr what the user should know about them.
pub fn load(global: &Global, trust: Trust, printer: &mut Printer) -> Result<LoadedConfig, Failure> {
    let config = load_config(&inputs(global, trust)?).map_err(|error| failure(Exit::Config, &error))?;
    for warning in config.warnings() {
        printer.warning(&warning.to_string());
    }
    for disabled in config.disabled() {
        printer.warning(&disabled.to_string());
    }
    Ok(config)
}

/// The error with its hint, where it has one.
pub fn failure(exit: Exit, error: &ConfigError) -> Failure {
    match error.hint() {
        Some(hint) => Failure::message(exit, format!("{error}\n\nhint: {hint}")),
        None => Failure::message(exit, error),
    }
}

/// What `--trusted` means.
pub fn trust(trusted: bool) -> Trust {
    if trusted { Trust::Trusted } else { Trust::Untrusted }
}

fn directory(global: &Global) -> Result<PathBuf, Failure> {
    let given = global.directory.clone().map_or_else(std::env::current_dir, Ok)?;
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
